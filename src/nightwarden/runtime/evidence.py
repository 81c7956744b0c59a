"""What a supervisor that investigates may read of a running session: `RunEvidence`.

    brief      what the step is for, who uses it, how like failures were answered
    output     from the record: what the failing item descends from (`ancestry.py`)
    candidate  the broken value, masked whole; `patched` works on it raw, in here only

Everything that leaves is masked: recorded values are, and the rest passes the registry.

Read next: `ancestry.py`, `supervision.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nightwarden.events.base import Event
from nightwarden.events.budget import BudgetState
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.lineage import Lineage, show
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.ancestry import Ancestry, Element, Share
from nightwarden.runtime.bus import Bus
from nightwarden.runtime.patching import BadPatch, apply_patch, repairable
from nightwarden.runtime.supervision import Brief, Found
from nightwarden.runtime.supervisors.verbs import WORDS
from nightwarden.spec.workflow import INPUTS
from nightwarden.verdict import Escalation, Intervention, OutcomeKind, Substitute, action_of

_MOST_LIKE: Final = 10
_MOST_GATHERED: Final = 200
_PUT: Final = (b'{"type":"invocation_succeeded"', b'{"type":"item_emitted"')


class _Put(msgspec.Struct, gc=False):
    """A line of the record with values somebody put out; as `InvocationSucceeded` has them."""

    type: str
    node_id: str
    lineage: Lineage = ()
    outputs: Mapping[str, Any] = {}
    absent: tuple[str, ...] = ()
    blobs: Mapping[str, str] = {}


_decoder = msgspec.json.Decoder(_Put)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the evidence of a run comes from.

    `lines` are the record so far, `blob` a large value by its digest; without a record there are
    none. `raw_candidate` is the broken value of an escalation by its number. `inputs` are the
    run's own, raw. `decisions_left` is None where there is no limit.
    """

    plan: Plan
    bus: Bus
    registry: SecretRegistry
    interventions: Mapping[int, Intervention]
    state: Callable[[], Mapping[str, object]]
    check: Callable[[Escalation, Mapping[str, object]], Sequence[str]]
    raw_candidate: Callable[[int], object]
    inputs: Mapping[str, object]
    lines: Callable[[], Iterable[bytes]]
    blob: Callable[[str], bytes]
    decisions_left: Callable[[], int | None]
    spent: BudgetState


class SessionEvidence:
    """Implements `RunEvidence` for the supervisor of one session."""

    def __init__(self, run_id: str, sources: Sources) -> None:
        self.run_id = run_id
        self._from = sources

    def state(self) -> Mapping[str, object]:
        """Per node counts and the decisions so far."""
        return self._from.state()

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        """What is wrong with a repair."""
        escalation = self._escalation(escalation_id)
        if escalation is None:
            return [f"there is no escalation {escalation_id}"]
        problems = self._from.check(escalation, outputs)
        return [self._from.registry.mask_text(problem) for problem in problems]

    def brief(self, escalation_id: str) -> Brief:
        """What is known around the failed step."""
        escalation = self._escalation(escalation_id)
        if escalation is None:
            return Brief()
        node = self._from.plan.node(escalation.node_id)
        used = {e.target for out in (*node.outs, *node.ends) for e in out.edges if e.target >= 0}
        return Brief(
            purpose=" ".join(node.type.doc.split())[:500],
            consumers=tuple(self._from.plan.nodes[index].id for index in sorted(used)),
            like=tuple(self._like(escalation))[-_MOST_LIKE:],
            decisions_left=self._from.decisions_left(),
        )

    def output(self, escalation_id: str, node_id: str) -> Found:
        """What a step put out that the failing item descends from."""
        escalation = self._escalation(escalation_id)
        source = next((node for node in self._from.plan.nodes if node.id == node_id), None)
        if escalation is None or (source is None and node_id != INPUTS):
            return Found(refusal=f"there is no step {node_id!r} in this run")
        target = self._from.plan.node(escalation.node_id)
        ancestry = Ancestry(self._from.plan, target, escalation.lineage)
        share = ancestry.share_of_inputs() if source is None else ancestry.share(source)
        if share.empty:
            return Found(
                refusal=f"{node_id} put out nothing that belongs to this item alone: it is not "
                "upstream of it, or its values are of other items, too"
            )
        return self._found(node_id, source, share, ancestry)

    def candidate(self, escalation_id: str) -> object:
        """The broken value, masked and whole."""
        raw = self._from.raw_candidate(_number(escalation_id))
        return self._from.registry.mask_value(raw)[0]

    def patched(
        self, escalation_id: str, patch: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Sequence[str]]:
        """The outputs a patch makes of the raw broken value, and what is wrong, masked."""
        escalation = self._escalation(escalation_id)
        if escalation is None:
            return {}, [f"there is no escalation {escalation_id}"]
        raw = self._from.raw_candidate(_number(escalation_id))
        try:
            outputs = apply_patch(repairable(raw, list(escalation.declared_outputs)), patch)
        except BadPatch as error:
            return {}, [self._from.registry.mask_text(str(error))]
        problems = self.check(escalation_id, outputs)
        return ({} if problems else outputs), problems

    def budget(self) -> BudgetState:
        """What was spent before this process."""
        return self._from.spent

    def protect(self, name: str, value: str) -> None:
        """Mask a value from here on, in records and in the log lines of libraries."""
        self._from.registry.register(name, value)

    def publish(self, event: Event) -> None:
        """Add an event to the run's record."""
        self._from.bus.publish(event)

    async def durable(self) -> None:
        """Return once everything published so far would survive a crash."""
        await self._from.bus.durable()

    def _escalation(self, escalation_id: str) -> Escalation | None:
        found = self._from.interventions.get(_number(escalation_id))
        return None if found is None else found.escalation

    def _like(self, escalation: Escalation) -> Iterable[str]:
        """How earlier failures of this step with the same signature were answered."""
        for other in self._from.interventions.values():
            failed, decision = other.escalation, other.decision
            same = (failed.node_id, failed.signature) == (escalation.node_id, escalation.signature)
            if failed.id == escalation.id or decision is None or not same:
                continue
            if escalation.signature is None and failed.lineage != escalation.lineage:
                continue  # without a signature, only the same item's earlier attempts are like it
            place = str(failed.item) or show(failed.lineage) or failed.node_id
            verb = WORDS[action_of(decision.verdict)]
            became = other.outcome.kind if other.outcome is not None else "not known yet"
            yield f"{place}: {verb} by {decision.decided_by} ({became}): {decision.rationale}"

    # -- values --

    def _found(
        self, node_id: str, source: NodePlan | None, share: Share, ancestry: Ancestry
    ) -> Found:
        if source is None:
            masked, _ = self._from.registry.mask_value(dict(self._from.inputs))
            return Found(value=_part(masked, share))  # type: ignore[arg-type]
        if share.frame is not None and source.type.engine_owned:
            return self._list_element(source, ancestry)
        puts = self._put_out(node_id, share, ancestry)
        if not puts:
            kept = "" if self._from.bus.records else "; this run keeps no record of values"
            return Found(refusal=f"{node_id} has put out nothing on this item's way{kept}")
        if len(puts) == 1 and next(iter(puts)) == ():
            return Found(value=puts[()])
        own = [{"item": show(lineage), **values} for lineage, values in puts.items()]
        if len(own) == 1:
            return Found(value=next(iter(puts.values())))
        return Found(value=own[:_MOST_GATHERED])

    def _list_element(self, border: NodePlan, ancestry: Ancestry) -> Found:
        """An item of a list: the element, read where the list was put out."""
        for node, only in ancestry.feeding(border):
            return self._found(INPUTS if node is None else node.id, node, only, ancestry)
        return Found(refusal=f"the list behind {border.id} is not kept")

    def _put_out(
        self, node_id: str, share: Share, ancestry: Ancestry
    ) -> dict[Lineage, dict[str, object]]:
        """What the step put out on this item's way, by lineage; the latest stands."""
        found: dict[Lineage, dict[str, object]] = {}
        frames: dict[Lineage, int] = {}
        for put in self._puts(node_id):
            if not ancestry.is_its_own(put.lineage):
                continue
            if put.type == "item_emitted":
                number = frames[put.lineage] = frames.get(put.lineage, -1) + 1
                if share.frame is None:
                    found[(*put.lineage, number)] = self._values(put, share)
                elif number == share.frame:
                    found[put.lineage] = self._values(put, None)
            elif share.frame is None:
                found[put.lineage] = self._values(put, share)
        if share.frame is None:
            found.update(self._repaired(node_id, share, ancestry))
        return found

    def _puts(self, node_id: str) -> Iterable[_Put]:
        name = b'"node_id":' + msgspec.json.encode(node_id)
        for line in self._from.lines():
            if line.startswith(_PUT) and name in line:
                put = _decoder.decode(line)
                if put.node_id == node_id:
                    yield put

    def _values(self, put: _Put, share: Share | None) -> dict[str, object]:
        values: dict[str, object] = dict(put.outputs)
        wanted = None if share is None else {*share.whole, *share.elements}
        for slot, digest in put.blobs.items():
            if wanted is None or slot in wanted:
                values[slot] = msgspec.json.decode(self._from.blob(digest))
        values.update(dict.fromkeys(put.absent, "(not taken)"))
        return values if share is None else _part(values, share)

    def _repaired(
        self, node_id: str, share: Share, ancestry: Ancestry
    ) -> dict[Lineage, dict[str, object]]:
        """What was put in place of what a step upstream did not deliver."""
        found = {}
        for other in self._from.interventions.values():
            verdict = other.decision.verdict if other.decision is not None else None
            done = other.outcome is not None and other.outcome.kind == OutcomeKind.REPAIR_ACCEPTED
            failed = other.escalation
            own = failed.node_id == node_id and ancestry.is_its_own(failed.lineage)
            if isinstance(verdict, Substitute) and done and own:
                found[failed.lineage] = _part(verdict.outputs, share)
        return found


def _part(values: Mapping[str, object], share: Share) -> dict[str, object]:
    """The slots that are given whole, and of the others the one element."""
    part = {slot: value for slot, value in values.items() if slot in share.whole}
    for slot, element in share.elements.items():
        if slot in values:
            part[slot] = _at(values[slot], element)
    return part


def _at(value: object, element: Element) -> object:
    for name in element.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    fits = isinstance(value, (list, tuple)) and element.place < len(value)
    return value[element.place] if fits else "(not kept)"  # type: ignore[index]


def _number(escalation_id: str) -> int:
    digits = escalation_id.removeprefix("e")
    return int(digits) if digits.isdecimal() else -1
