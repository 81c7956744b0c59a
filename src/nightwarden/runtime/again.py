"""What an invocation had done before the run was resumed, when it runs again.

It does not do twice what others have seen already: the items it had put out are compared and
swallowed, the events it had sent likewise, its rejected records are not counted again. Should it
say something else than before, it has failed: what followed from its first words stands.

Read next: `replaying.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nightwarden.errors import NodeError
from nightwarden.events.plain import plain

Values = tuple[object, ...]


@dataclass(slots=True)
class Before:
    """An item on record: what it holds, to be compared, and its values, made when needed."""

    outputs: Mapping[str, object]
    absent: tuple[str, ...]
    values: Callable[[], Values]


@dataclass(slots=True)
class Again:
    """One invocation's first part. `state` is what it gave to `suspend`."""

    frames: list[Before] = field(default_factory=list)
    sent: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    rejected: int = 0
    state: object = None

    def sent_before(self, target: str, overrides: object) -> bool:
        """Whether this event is on record. Raises `NodeError` if another one is in its place."""
        if not self.sent:
            return False
        known, settings = self.sent.pop(0)
        if known != target or not alike(settings, overrides):
            raise changed(f"it sent another event to {target} than before")
        return True


ANEW: Final = Again()
"""Of an invocation that runs for the first time."""


def same_item(before: Before, outputs: Mapping[str, object], absent: tuple[str, ...]) -> bool:
    """Whether an item is what it was."""
    return before.absent == absent and alike(before.outputs, outputs)


def alike(recorded: object, value: object) -> bool:
    """Whether a value would be recorded as it was."""
    try:
        found = msgspec.json.encode(value)
    except Exception:  # what has no form in JSON is recorded as well as it can be
        found = msgspec.json.encode(plain(value))
    return bool(msgspec.json.decode(found) == recorded)


def changed(what: str) -> NodeError:
    """The failure of a step that does not repeat itself."""
    return NodeError(
        f"{what} the run was resumed: a step that is run again has to say the same",
        code="not-the-same",
    )
