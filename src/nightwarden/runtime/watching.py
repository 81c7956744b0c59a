"""Every invocation with its inputs and outputs, for somebody who watches the run.

    recording.py ─▶ Watch ─▶ masked and cut ─▶ Seen ─▶ the watcher

Only made where somebody watches; without it a run builds none of this. Secrets are masked from
when they are known: those the workflow names from the beginning, others once a step has asked.

Read next: `events/seen.py`, `recording.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nightwarden.events.seen import Moment, Seen
from nightwarden.kernel.causes import NOT_TAKEN, Absent
from nightwarden.kernel.effects import USE_DEFAULT, Invoke
from nightwarden.kernel.plan import CONTROL, NodePlan, OutPlan, Plan
from nightwarden.kernel.state import Gathered
from nightwarden.lineage import Lineage
from nightwarden.masking.redaction import Limits
from nightwarden.runtime.services import RunServices
from nightwarden.spec.catalog import TIES, SlotKind
from nightwarden.spec.names import mark_of
from nightwarden.spec.workflow import SecretRef

Watcher = Callable[[Seen], None]

LIMITS: Final = Limits(string_chars=500, elements=20, depth=5, record_bytes=4_000)
NOTHING_CAME: Final = {"$absent": True}
_STREAM: Final = "<a stream>"


class Watch:
    """Tells `tell` of every invocation of one run; on the run's loop.

    A watcher that raises is told nothing more: watching must not change the run.
    """

    def __init__(self, plan: Plan, services: RunServices, tell: Watcher) -> None:
        self._plan = plan
        self._services = services
        self._tell: Watcher | None = tell
        self._shown = [not mark_of(node.id) for node in plan.nodes]

    def began(self, invoke: Invoke) -> None:
        """An invocation is about to run."""
        if self._tell is None or not self._shown[invoke.node]:
            return
        node = self._plan.nodes[invoke.node]
        self._say(Moment.BEGAN, invoke, _given(node, invoke.inputs))

    def put_out(
        self,
        moment: Moment,
        invoke: Invoke,
        outs: Sequence[OutPlan],
        values: Sequence[object],
        took_s: float | None = None,
    ) -> None:
        """An invocation returned, or put out an item."""
        if self._tell is not None and self._shown[invoke.node]:
            self._say(moment, invoke, _slots(outs, values), took_s=took_s)

    def ended(self, moment: Moment, invoke: Invoke, detail: str = "") -> None:
        """An invocation ended without a result; `detail` is masked."""
        if self._shown[invoke.node]:
            self._say(moment, invoke, {}, detail)

    def failed(self, node_id: str, lineage: Lineage, attempt: int, detail: str) -> None:
        """An attempt failed; `detail` is masked."""
        self._hand_on(
            Seen(
                moment=Moment.FAILED,
                node_id=node_id,
                lineage=lineage,
                attempt=attempt,
                detail=detail,
            )
        )

    def _say(
        self,
        moment: Moment,
        invoke: Invoke,
        values: Mapping[str, object],
        detail: str = "",
        took_s: float | None = None,
    ) -> None:
        self._hand_on(
            Seen(
                moment=moment,
                node_id=self._plan.nodes[invoke.node].id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                values=self._services.registry.redact_fields(values, limits=LIMITS),
                detail=detail,
                took_s=took_s,
            )
        )

    def _hand_on(self, seen: Seen) -> None:
        if self._tell is None:
            return
        try:
            self._tell(seen)
        except Exception:
            # As with the bus: whoever watches must not be able to change the run.
            self._tell = None
            logging.getLogger("nightwarden").warning(
                "a watcher raised and is no longer told", exc_info=True
            )


def _given(node: NodePlan, inputs: Sequence[object]) -> dict[str, object]:
    """What a step is given, by slot; what its own code defaults to is left out."""
    properties = {k: _named(v) for k, v in node.spec.properties.items()}
    wired = {slot.name for slot in node.slots}
    found = {k: v for k, v in properties.items() if k not in wired}
    for slot, value in zip(node.slots, inputs, strict=True):
        if slot.name == CONTROL:
            found.update(value if isinstance(value, Mapping) else {})
        elif value is USE_DEFAULT:
            found.update({k: v for k, v in properties.items() if k == slot.name})
        elif slot.kind is SlotKind.STREAM:
            found[slot.name] = _STREAM
        elif slot.name not in TIES:
            found[slot.name] = _arrived(value)
    return found


def _arrived(value: object) -> object:
    if isinstance(value, Absent):
        return NOTHING_CAME
    return list(value.values) if isinstance(value, Gathered) else value


def _slots(outs: Sequence[OutPlan], values: Sequence[object]) -> dict[str, object]:
    """Outputs by slot; a slot of which only fields lead somewhere is shown by these."""
    whole = {out.base for out in outs if not out.projected}
    return {
        f"{out.base}.{out.name}" if out.projected else out.base: (
            NOTHING_CAME if value is NOT_TAKEN or isinstance(value, Absent) else value
        )
        for out, value in zip(outs, values, strict=True)
        if not (out.projected and out.base in whole)
    }


def _named(value: object) -> object:
    """A property as its author wrote it: a secret by its name."""
    if isinstance(value, SecretRef):
        return f"$secrets.{value.name}"
    if isinstance(value, Mapping):
        return {k: _named(v) for k, v in value.items()}
    return [_named(v) for v in value] if isinstance(value, (list, tuple)) else value
