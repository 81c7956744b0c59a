"""The stream a reading step iterates over: asks the kernel for one item at a time.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from nightwarden.nodes.io import Loss, Stream

_END = object()


class StepStream(Stream[object]):
    """Implements `nodes.Stream` over the kernel's requests.

    `ask` tells the kernel that the step wants the next item; `losses_so_far` reads what was
    lost among those before it; `parked` and `unparked` enclose the time it waits. Plain `def`
    steps iterate with `for`, from their own thread.
    """

    def __init__(
        self,
        ask: Callable[[], None],
        losses_so_far: Callable[[], Sequence[Loss]],
        *,
        parked: Callable[[], None],
        unparked: Callable[[], None],
    ) -> None:
        self._ask = ask
        self._parked = parked
        self._unparked = unparked
        self._losses = losses_so_far
        self._box: deque[tuple[int, object]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._over = False
        self._loop = asyncio.get_running_loop()

    # -- the driver's side --

    def feed(self, index: int, value: object) -> None:
        """The item that was asked for."""
        self._box.append((index, value))
        self._wake()

    def end(self) -> None:
        """There is no further item."""
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- the step's side --

    @property
    def losses(self) -> Sequence[Loss]:
        """What has been lost among the items read so far."""
        return self._losses()

    async def __anext__(self) -> object:
        found = await self._next()
        if found is _END:
            raise StopAsyncIteration
        return found[1]  # type: ignore[index]

    def indexed(self) -> AsyncIterator[tuple[int, object]]:
        """The items with their 0-based numbers."""
        return self._indexed()

    async def _indexed(self) -> AsyncIterator[tuple[int, object]]:
        while (found := await self._next()) is not _END:
            yield found  # type: ignore[misc]

    def __iter__(self) -> Iterator[object]:
        while True:
            found = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
            if found is _END:
                return
            yield found[1]  # type: ignore[index]

    async def _next(self) -> object:
        if not self._box and not self._over:
            self._ask()
            if not self._box and not self._over:
                self._waiter = self._loop.create_future()
                self._parked()
                try:
                    await self._waiter
                finally:
                    self._unparked()
                self._waiter = None
        return self._box.popleft() if self._box else _END
