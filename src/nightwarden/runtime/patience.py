"""Waiting for code that may be slow, raise anything, or be deaf to cancellation.

Each call runs in a task of its own, outside any group, and comes back as a value: what it
returned, `Raised`, or `TooLate`. After its time, or when the waiting itself is cancelled, the
task is cancelled and given two seconds. One that goes on regardless is abandoned: nobody waits
for it, and what it returns in the end goes to `on_late`.

Read next: `bounded.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from nightwarden.runtime.answers import Raised, raised

GRACE_S: Final = 2.0
"""How long a call may take to notice that it was cancelled."""


@dataclass(frozen=True, slots=True)
class TooLate:
    """In place of an answer: the time is over. `answer` is what came within the grace."""

    answer: object = None


class Patience:
    """Waits for calls, and keeps account of those it has given up on."""

    def __init__(self, on_late: Callable[[object], None]) -> None:
        self._on_late = on_late
        self._abandoned: set[asyncio.Task[object]] = set()

    @property
    def abandoned(self) -> frozenset[asyncio.Task[object]]:
        """Tasks that go on although they were cancelled."""
        return frozenset(self._abandoned)

    async def wait(
        self, call: Callable[[], Awaitable[object]], limit_s: float, *, name: str
    ) -> object:
        """What the call returns within its time, else why not. Only cancellation is raised."""
        task = asyncio.get_running_loop().create_task(_as_value(call), name=name)
        try:
            await asyncio.wait({task}, timeout=limit_s)
        except asyncio.CancelledError:
            self._on_late(await self._withdraw(task))
            raise
        return _result(task) if task.done() else TooLate(await self._withdraw(task))

    async def _withdraw(self, task: asyncio.Task[object]) -> object:
        """Cancel the task; what it returned if it ended within the grace, else abandon it."""
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=GRACE_S)
        finally:
            if not task.done():
                self._abandoned.add(task)
                task.add_done_callback(self._came_late)
        return _result(task) if task.done() else None

    def _came_late(self, task: asyncio.Task[object]) -> None:
        self._abandoned.discard(task)
        self._on_late(_result(task))


async def _as_value(call: Callable[[], Awaitable[object]]) -> object:
    """The call's answer, or what it raised.

    A task that *ended* in SystemExit or KeyboardInterrupt would take the loop down, and one
    that ended in an exception nobody reads would say so on standard error.
    """
    try:
        return await call()
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # GeneratorExit too: a coroutine that is closed may return
        return raised(error)


def _result(task: asyncio.Task[object]) -> object:
    """What a finished task came to; one that was cancelled has not answered."""
    return Raised("it was cancelled from within") if task.cancelled() else task.result()
