"""The workers of one node: tasks that drain what the kernel has ordered for it.

Never a task a step: a worker goes on as long as there is work, and the next one is woken only
when work is left over while the first one is busy. How many may run at once is the kernel's
business; it never orders more than that.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from nightwarden.kernel.effects import Invoke
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.binding import Arguments, Binding


class Worker:
    """One task of a pool. `call` is what it runs now, 0 for nothing, on `account`."""

    __slots__ = (
        "abandoned",
        "account",
        "arguments",
        "call",
        "halting",
        "invoke",
        "task",
        "timed_out",
    )

    def __init__(self) -> None:
        self.call = 0
        self.halting = False
        self.abandoned = False
        self.timed_out = False
        self.invoke: Invoke | None = None
        self.account: Account | None = None
        self.arguments: Arguments | None = None
        self.task: asyncio.Task[None] | None = None


class Pool:
    """Runs the plain invocations of one node.

    `drain` takes invocations off the queue until it is empty, or some more have been done than
    is fair to others; it never raises. `plain` says that the node does not stream; `direct` is
    its code and the name of its only input, where nothing else is to be done.
    """

    def __init__(self, binding: Binding, drain: Callable[[Pool, Worker], Awaitable[None]]) -> None:
        self.binding = binding
        self.queue: deque[Invoke] = deque()
        self.workers: list[Worker] = []
        self.started = False
        self.plain = False
        self.direct: tuple[Any, str] = (None, "")
        self.waking = False
        self._drain = drain
        self._idle: deque[asyncio.Future[None]] = deque()

    def find(self, call: int) -> Worker | None:
        """The worker that runs a call, if any."""
        return next((w for w in self.workers if w.call == call), None)

    def drop_all(self) -> list[int]:
        """Take back every call that no worker has begun."""
        calls = [invoke.call for invoke in self.queue]
        self.queue.clear()
        return calls

    def abandon(self, worker: Worker) -> None:
        """Leave a worker behind that does not come back."""
        worker.abandoned = True
        self.workers.remove(worker)

    async def close(self) -> None:
        """End the idle workers; none is running any more but abandoned ones."""
        tasks = [w.task for w in self.workers if w.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def wake(self) -> None:
        """Get one more worker to look at the queue; not while one is on its way."""
        self.waking = True
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        worker = Worker()
        self.workers.append(worker)
        worker.task = asyncio.get_running_loop().create_task(self._work(worker))

    async def _work(self, worker: Worker) -> None:
        self.waking = False
        while not worker.abandoned:
            if self.queue:
                await self._drain(self, worker)
                await asyncio.sleep(0)
            else:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle.append(waiter)
                await waiter
                self.waking = False
