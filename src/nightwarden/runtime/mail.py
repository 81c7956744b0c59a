"""The mailbox of a step nobody writes to.

Read next: `context.py`, `nightwarden/steering/managed.py` (the one that may hold something).
"""

from __future__ import annotations

from typing import Final

from nightwarden.nodes.context import Note


class NoMail:
    """Implements `nodes.Mailbox`: always empty."""

    def take(self) -> tuple[Note, ...]:
        """Nothing."""
        return ()

    def stepped(self) -> None:
        """Nothing was handed over."""


NO_MAIL: Final = NoMail()
