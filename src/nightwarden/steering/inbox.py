"""Events that wait for a supervisor: bounded, and never in the way of who publishes them.

When it is full, something goes that can be missed; starts, ends and terminal events stay, so
that it is always known who is active. What went is counted.

Read next: `coordinator.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from nightwarden.steering.activity import ENDS, STARTS, TERMINAL
from nightwarden.steering.observed import Observed

LIMIT: Final = 256
_KEPT: Final = STARTS | ENDS | TERMINAL


class Inbox:
    """A queue of events. `ring` is called when something came; `ended` once nothing more will."""

    def __init__(self, ring: Callable[[], None], limit: int = LIMIT) -> None:
        self._ring = ring
        self._limit = limit
        self._waiting: deque[Observed] = deque()
        self.dropped = 0
        self.ended = False

    def offer(self, seen: Observed) -> None:
        """Take an event, at once and without failing."""
        if len(self._waiting) >= self._limit and not self._make_room(seen):
            return
        self._waiting.append(seen)
        if len(self._waiting) == 1:
            self._ring()

    def end(self) -> None:
        """There will be no more."""
        self.ended = True
        self._ring()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> Observed:
        """The next event. Raises `IndexError` when there is none."""
        return self._waiting.popleft()

    def _make_room(self, seen: Observed) -> bool:
        """Whether there is room for this event, by letting it or an older one go."""
        self.dropped += 1
        if seen.type not in _KEPT:
            return False
        for i, old in enumerate(self._waiting):
            if old.type not in _KEPT:
                del self._waiting[i]
                return True
        self.dropped -= 1  # nothing in it can be missed: it grows
        return True
