"""The frames of a generator, whatever kind it is, as one asynchronous iterator.

    async generator   awaited on the loop
    plain generator   pulled by a thread of its own, a few frames ahead
    inline generator  stepped on the loop

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextvars import copy_context
from typing import Final

AHEAD: Final = 32
"""How many frames a plain generator's thread may be ahead of the loop."""


async def from_inline(frames: Iterator[object]) -> AsyncGenerator[object, None]:
    """Frames of a generator that never blocks."""
    for frame in frames:
        yield frame


async def from_async(frames: AsyncIterator[object]) -> AsyncGenerator[object, None]:
    """Frames of an async iterator that cannot be closed."""
    async for frame in frames:
        yield frame


class ThreadFrames:
    """A plain generator in a thread of its own; the thread waits when nobody takes its frames."""

    def __init__(self, frames: Iterator[object]) -> None:
        self._frames = frames
        self._loop = asyncio.get_running_loop()
        self._ready: deque[object] = deque()
        self._room = threading.Semaphore(AHEAD)
        self.closed = False
        self._over = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended = self._loop.create_future()
        context = copy_context()
        threading.Thread(
            target=context.run, args=(self._pull,), name="nightwarden-generator", daemon=True
        ).start()

    def __aiter__(self) -> ThreadFrames:
        return self

    async def __anext__(self) -> object:
        while not self._ready:
            if self._over:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            await self._waiter
        frame = self._ready.popleft()
        self._room.release()
        return frame

    async def aclose(self) -> None:
        """Close the generator where it stands, and wait until its thread has done so."""
        self.closed = True
        self._room.release()
        await asyncio.shield(self._ended)
        if self._error is not None and not isinstance(self._error, GeneratorExit):
            raise self._error

    def leave(self) -> None:
        """Close the generator at its next frame, without waiting for that."""
        self.closed = True
        self._room.release()

    def _pull(self) -> None:
        error: BaseException | None = None
        try:
            while not self.closed:
                try:
                    frame = next(self._frames)
                except StopIteration:
                    break
                self._tell(self._put, frame)
                self._room.acquire()
            if isinstance(self._frames, Generator):
                self._frames.close()
        except BaseException as raised:  # a step may raise anything
            error = raised
        self._tell(self._end, error)

    def _tell(self, call: object, argument: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, argument)  # type: ignore[arg-type]

    def _put(self, frame: object) -> None:
        self._ready.append(frame)
        self._wake()

    def _end(self, error: BaseException | None) -> None:
        self._over, self._error = True, error
        if not self._ended.done():
            self._ended.set_result(None)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
