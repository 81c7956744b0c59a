"""The workers of one node: tasks that drain what the kernel has ordered for it.

Never a task a step: a worker goes on as long as there is work. Others are called only when work
is left over once it has given way to the loop, and then all that are needed: steps that never
wait are run by one worker, however many may run at once. How many may is the kernel's business;
it never orders more than that.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

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
    is fair to others; it never raises. `plain` says that the node does not stream. `coming`
    workers have been called, or have given way to others, and will look at the queue. `looking`
    says that what is left over will be seen to.
    """

    def __init__(self, binding: Binding, drain: Callable[[Pool, Worker], Awaitable[None]]) -> None:
        self.binding = binding
        self.queue: deque[Invoke] = deque()
        self.workers: list[Worker] = []
        self.started = False
        self.plain = False
        self.coming = 0
        self.looking = False
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

    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of all workers that were not left behind."""
        return [w.task for w in self.workers if w.task is not None]

    def call(self) -> None:
        """Call one worker. Whoever queues something does, unless one is coming."""
        self.coming += 1
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        worker = Worker()
        self.workers.append(worker)
        worker.task = asyncio.get_running_loop().create_task(self._work(worker))

    def left_over(self) -> None:
        """A worker takes a call while others wait: see to them once it gives way to the loop.

        Once is enough: see `looking`.
        """
        self.looking = True
        asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self.looking = False
        for _ in range(len(self.queue) - self.coming):
            self.call()

    async def _work(self, worker: Worker) -> None:
        loop = asyncio.get_running_loop()
        self.coming -= 1
        while True:
            if self.queue:
                await self._drain(self, worker)
                if worker.abandoned:
                    return
            if self.queue:
                self.coming += 1
                await asyncio.sleep(0)
            else:
                waiter: asyncio.Future[None] = loop.create_future()
                self._idle.append(waiter)
                await waiter
            self.coming -= 1
