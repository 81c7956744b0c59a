"""Values from a record: made again as they were, or what stands for those it does not have.

    {"price": 12} ─▶ of its slot's type ─▶ told again
    sealed        ─▶ `NotOnRecord`, which no step is given and every report shows as recorded

Who needs a value that is not on record cannot run: its producer would have to, and may not.

Read next: `past.py`, `replaying.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.errors import NodeError, StoreError
from nightwarden.kernel.causes import NOT_TAKEN
from nightwarden.kernel.plan import NodePlan, OutPlan
from nightwarden.kernel.state import Gathered
from nightwarden.nodes.io import Collect
from nightwarden.runtime.binding import Binding, projected
from nightwarden.runtime.desk import Desk
from nightwarden.runtime.past import Put
from nightwarden.runtime.substitution import ABSENT_FORM
from nightwarden.spec.checker import Misfit
from nightwarden.spec.storing import original

SIGNATURE: Final = "interrupted"

_decode = msgspec.json.decode


class Interrupted(NodeError):
    """An invocation that was cut off, or lacks a value, and that nobody may simply run again."""


class NotOnRecord:
    """Stands for a value the record does not have: it held a secret, or has no form there."""

    def __init__(self, node_id: str, slot: str, shown: object) -> None:
        self.node_id, self.slot, self.shown = node_id, slot, shown

    def __repr__(self) -> str:
        return f"<{self.node_id}.{self.slot} is not on record>"


class RecordedValues:
    """The values of one record. `blob` gives a large one by its digest."""

    def __init__(self, desk: Desk, blob: Callable[[str], bytes]) -> None:
        self._desk = desk
        self._blob = blob

    def of(self, node: NodePlan, outs: Sequence[OutPlan], found: Put) -> tuple[object, ...]:
        """What was put out, in the order of `outs`. Raises `StoreError` for what fits no more."""
        plain = self.plain(found)
        binding = self._desk.bindings[node.index]
        made: dict[str, object] = {}
        values: list[object] = []
        for out in outs:
            slot = out.base
            if slot in found.absent or slot not in plain:
                values.append(NOT_TAKEN)
                continue
            if slot not in made:
                made[slot] = self._original(binding, slot, plain[slot], found)
            value = made[slot]
            values.append(value if isinstance(value, NotOnRecord) else projected(out, value))
        return tuple(values)

    def plain(self, found: Put) -> dict[str, Any]:
        """What was put out as plain data, by slot."""
        plain: dict[str, Any] = _decode(found.outputs)
        for slot, digest in found.blobs.items():
            plain[slot] = _decode(self._blob(digest))
        return plain

    def _original(self, binding: Binding, slot: str, plain: object, found: Put) -> object:
        if found.sealed:
            return NotOnRecord(binding.node.id, slot, plain)
        try:
            return original(binding.checker(slot), plain)
        except Misfit as misfit:
            raise StoreError(
                f"{binding.node.id}.{slot}: what is on record is no longer of its type "
                f"({misfit.problems[0]}); resume with --from {binding.node.id}"
            ) from misfit


def stand_ins(node: NodePlan, outputs: Mapping[str, object]) -> tuple[object, ...]:
    """What stands for a repair that held a secret, in the order of `NodePlan.outs`."""
    return tuple(
        NOT_TAKEN
        if outputs.get(out.base) == ABSENT_FORM
        else NotOnRecord(node.id, out.base, outputs.get(out.base))
        for out in node.outs
    )


def lack(values: Sequence[object]) -> Interrupted | None:
    """Why these cannot be handed to a step; None where the record has them all."""
    missing = _missing(values)
    if missing is None:
        return None
    return Interrupted(
        f"{missing.node_id}.{missing.slot} is not on record (it held a secret, or has no form "
        f"there), and {missing.node_id} may not simply be run again",
        code=SIGNATURE,
    )


def as_recorded(value: object) -> object:
    """An output of a resumed run: what the record does not have, as it is shown there."""
    if isinstance(value, NotOnRecord):
        return value.shown
    if type(value) is Collect and _missing(value) is not None:
        shown = [as_recorded(part) for part in value]
        return Collect(shown, value.indices, value.losses, ended_early=value.ended_early)
    return value


def _missing(inputs: Sequence[object]) -> NotOnRecord | None:
    """An input that the record does not have."""
    for value in inputs:
        if isinstance(value, NotOnRecord):
            return value
        parts = value.values if type(value) is Gathered else value if type(value) is list else ()
        for part in parts:
            if isinstance(part, NotOnRecord):
                return part
    return None
