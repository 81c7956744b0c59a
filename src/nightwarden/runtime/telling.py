"""How a step at work is heard: its events are masked and cut before they exist.

    event ─▶ each of its fields masked, cut ─▶ a new event, of this invocation ─▶ the bus

Read next: `context.py`, `nodes/working.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from nightwarden.events import Event
from nightwarden.lineage import Lineage
from nightwarden.nodes.context import Mailbox

_COMMON: Final = frozenset(Event.__struct_fields__)


class Voice(Protocol):
    """What it needs of the run."""

    def masked(self, text: str) -> str:
        """The text without secrets, uncut."""
        ...

    def shown(self, value: object) -> object:
        """A value as a record may show it: masked and cut."""
        ...

    @property
    def told(self) -> bool:
        """Whether anybody hears what is told."""
        ...

    def tell(self, event: Event) -> None:
        """Publish an event."""
        ...


@dataclass(frozen=True, slots=True)
class StepDesk:
    """Implements `nodes.working.Desk` for one invocation."""

    voice: Voice
    mailbox: Mailbox
    node_id: str
    lineage: Lineage
    attempt: int

    def mask(self, text: str) -> str:
        """A text without secrets, uncut."""
        return self.voice.masked(text)

    def tell(self, event: Event) -> None:
        """Say what happens."""
        if not self.voice.told:
            return
        fields = {
            name: self.voice.shown(getattr(event, name))
            for name in event.__struct_fields__
            if name not in _COMMON and not isinstance(getattr(event, name), (int, float))
        }
        fields |= {"node_id": self.node_id, "lineage": self.lineage, "attempt": self.attempt}
        self.voice.tell(msgspec.structs.replace(event, **fields))
