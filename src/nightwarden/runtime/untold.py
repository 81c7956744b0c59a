"""What streaming calls have done and not yet told the kernel: frames put out, items used.

Such facts are told together, and always

    before the kernel is told anything else, so that facts keep their order;
    when there is no room for more of them;
    when the step gives way to the loop, in the loop's next turn.

So nothing happens between a fact and its telling but what the same step does, and nobody can
tell it from a fact told at once.

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

TOGETHER: Final = 64
"""How many frames are told together at most; then others get a turn."""


class Teller(Protocol):
    """Who has something to tell."""

    def tell(self) -> None:
        """Tell it."""


class Untold:
    """Who has something to tell, the longest waiting first; nearly always one, or none."""

    def __init__(self) -> None:
        self.waiting: list[Teller] = []
        self._called = False

    def note(self, teller: Teller) -> None:
        """Something is about to be done that has to be told."""
        if teller not in self.waiting:
            self.waiting.append(teller)
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._turn)

    def tell(self, teller: Teller) -> None:
        """Tell what one has done, now."""
        if teller in self.waiting:
            self.waiting.remove(teller)
        teller.tell()

    def tell_all(self) -> None:
        """Tell everything, now."""
        while self.waiting:
            self.waiting.pop(0).tell()

    def _turn(self) -> None:
        self._called = False
        self.tell_all()
