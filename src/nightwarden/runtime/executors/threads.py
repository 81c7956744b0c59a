"""Worker threads for plain `def` steps: daemon threads that may be left behind.

A thread cannot be stopped. When a step times out or is cancelled, its thread is abandoned:
it leaves the pool, its late result is dropped, and it does not keep the process alive.

Read next: `base.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue


class _Job:
    __slots__ = ("call", "context", "done", "loop")

    def __init__(
        self,
        call: Callable[[], object],
        context: Context,
        loop: asyncio.AbstractEventLoop,
        done: asyncio.Future[tuple[object, BaseException | None]],
    ) -> None:
        self.call = call
        self.context = context
        self.loop = loop
        self.done = done


class ThreadExecutor:
    """Runs functions in daemon threads; how many at once is up to the caller."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, call: Callable[[], object]) -> object:
        """The result of `call`, run in a worker thread with the caller's context variables.

        Cancelling this abandons the thread.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()
        job = _Job(call, copy_context(), loop, done)
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            else:
                threading.Thread(target=self._work, name="nightwarden-step", daemon=True).start()
        self._jobs.put(job)
        result, error = await done
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Let idle threads end; busy ones end with their job."""
        with self._lock:
            self._closed = True
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            outcome = _outcome(job)
            # Free before the result is told: the next job may come at once.
            with self._lock:
                if self._closed:
                    _tell(job, outcome)
                    return
                self._idle += 1
            _tell(job, outcome)
            del job, outcome


def _outcome(job: _Job) -> tuple[object, BaseException | None]:
    try:
        return job.context.run(job.call), None
    except BaseException as error:  # a step may raise anything, and must not end the thread
        return None, error


def _tell(job: _Job, outcome: tuple[object, BaseException | None]) -> None:
    def settle() -> None:
        if not job.done.done():
            job.done.set_result(outcome)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        job.loop.call_soon_threadsafe(settle)
