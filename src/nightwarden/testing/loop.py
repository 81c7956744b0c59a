"""An asyncio loop for tests: virtual time, and a seeded order of what is ready.

Where a test would wait, the clock jumps to the next timer instead; a minute costs nothing.
When every task is blocked and no timer is pending, nothing can ever happen again: that is
a `Deadlock`, at once, instead of a test that hangs. With a seed, callbacks that are ready
together run in shuffled order, so that no code may lean on the accident of it.

For coroutines only: a real thread, socket or process is not waited for. Leans on asyncio's
internals (`_ready`, `_run_once`), and so lives in the test kit.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Coroutine
from typing import TypeVar

_T = TypeVar("_T")


class Deadlock(RuntimeError):
    """Every task is blocked and no timer is pending."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for I/O, moves the clock to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise Deadlock("all tasks are blocked and no timer is pending")
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time is virtual and starts at 0; with a seed, the order of what is ready is shuffled."""

    _ready: deque[asyncio.Handle]  # asyncio's own
    waits = False  # for a thread or a file; who needs one has to block

    def __init__(self, seed: int | None = None) -> None:
        self._jumping = _JumpingSelector()
        self._rng = None if seed is None else random.Random(seed)
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Seconds of virtual time since the loop was made."""
        return self._jumping.now

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        if self._rng is not None:
            batch = list(self._ready)
            self._rng.shuffle(batch)
            self._ready.clear()
            self._ready.extend(batch)


def run(main: Coroutine[object, object, _T], *, seed: int | None = None) -> _T:
    """Like `asyncio.run`, on a `VirtualLoop`."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        return runner.run(main)
