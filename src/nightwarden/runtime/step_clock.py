"""A streaming step's own time: what it spends paused, or waiting for an item, does not count.

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class StepClock:
    """Calls `over` once the step has worked for `timeout_s`; never where that is None.

    It stands until it is started. Starting one that runs, or stopping one that stands, changes
    nothing.
    """

    def __init__(self, timeout_s: float | None, over: Callable[[], None]) -> None:
        self._left = timeout_s
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The step works."""
        if self._left is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self._ran_out)

    def stop(self) -> None:
        """The step waits; what it has left is kept."""
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - asyncio.get_running_loop().time())
            self._timer.cancel()
            self._timer = None

    def _ran_out(self) -> None:
        self._timer = None
        self._over()
