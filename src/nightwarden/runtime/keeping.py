"""What of a step's values stands in its record: masked, plain, and whether it is the value.

One `Keeper` a run. The common case, one value that is plain data and no secret known, costs little.

Read next: `recording.py`, `spec/storing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.kernel.causes import NOT_TAKEN
from nightwarden.kernel.plan import OutPlan, Plan
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.spec.checker import Checker
from nightwarden.spec.storing import plain_form

_PLAIN: Final = frozenset((str, bool, int, type(None)))
_ANY: Final = Checker(Any)


class Kept(msgspec.Struct, frozen=True):
    """Values of one invocation as a record has them; `sealed`: they are not the values."""

    outputs: Mapping[str, object]
    absent: tuple[str, ...] = ()
    sealed: bool = False


class Keeper:
    """How the values of one run are kept. `records` is False where they are only announced."""

    def __init__(self, plan: Plan, registry: SecretRegistry, *, records: bool) -> None:
        self.checks: Sequence[Mapping[str, Checker]] = ()
        self._registry = registry
        self._records = records
        # What the engine makes of values on record is made again when it is needed.
        self._made_again = [records and node.type.engine_owned for node in plan.nodes]

    def kept(self, node: int, outs: Sequence[OutPlan], values: Sequence[object]) -> Kept:
        """The values of a node's slots, by slot."""
        if self._made_again[node]:
            return Kept({}, sealed=True)
        if len(outs) == 1 and type(values[0]) in _PLAIN and not self._registry.secrets:
            return Kept({outs[0].base: values[0]})
        outputs: dict[str, object] = {}
        absent: tuple[str, ...] = ()
        sealed = False
        for out, value in zip(outs, values, strict=True):
            if out.projected:
                continue
            if value is NOT_TAKEN:
                absent = (*absent, out.base)
                continue
            outputs[out.base], whole = self._form(node, out.base, value)
            sealed = sealed or not whole
        return Kept(outputs, absent, sealed)

    def anything(self, value: object) -> tuple[object, bool]:
        """A value that belongs to no slot, and whether it is kept as it is."""
        masked, changed = self._registry.mask_value(value)
        plain, whole = plain_form(_ANY, masked)
        return plain, whole and not changed

    def _form(self, node: int, slot: str, value: object) -> tuple[object, bool]:
        masked, changed = self._registry.mask_value(value)
        if changed:
            return masked, False
        return plain_form(self.checks[node][slot], value) if self._records else (value, True)
