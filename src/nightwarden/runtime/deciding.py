"""Escalations on their way to a supervisor, and decisions on their way back.

    Escalate ─▶ Escalation (masked) ─▶ sticky? ─▶ queue ─▶ one at a time ─▶ Decided
                                          └──────────────────────────────────▲
    Apply, Conclude ─▶ the intervention's record

Without a supervisor the answer is *fail* at once, and nothing is an intervention.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nightwarden.events import (
    SupervisorDeciding,
    SupervisorDecision,
    SupervisorEscalation,
    SupervisorOutcome,
)
from nightwarden.events.words import place
from nightwarden.ids import EscalationId, RunId
from nightwarden.kernel.effects import Apply, Conclude, Escalate
from nightwarden.kernel.stimuli import Decided
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.context import Decided as DecisionTold
from nightwarden.runtime.bounded import Bounded
from nightwarden.runtime.bus import Bus
from nightwarden.runtime.failing import Failure
from nightwarden.verdict import (
    DecidedBy,
    Decision,
    Escalation,
    Fail,
    Intervention,
    Item,
    Outcome,
    OutcomeKind,
    Substitute,
)

Form = Mapping[str, object] | None
Check = Callable[[str, Mapping[str, object], Form], tuple[tuple[object, ...], Sequence[str]]]
"""(node id, repair, schema of the output) → the values in `outs` order, what is wrong with them."""


class Deciding:
    """The decision side of one run. `tell` hands a `Decided` to the kernel."""

    def __init__(
        self,
        run_id: RunId,
        supervisor: Bounded | None,
        bus: Bus,
        *,
        tell: Callable[[Decided], None],
        check: Check,
        registry: SecretRegistry,
        stamp: Callable[[], str],
        rng: random.Random,
    ) -> None:
        self.interventions: dict[int, Intervention] = {}
        self.candidates: dict[int, object] = {}
        """The broken values of failures nobody has answered yet, raw, by escalation."""
        self.forms: dict[int, Mapping[str, object]] = {}
        """What repairs of them have to fit besides the output's type, where that was declared."""
        self.recalled: frozenset[int] = frozenset()
        self._run_id = run_id
        self._supervisor = supervisor
        self._bus = bus
        self._tell = tell
        self._check = check
        self._registry = registry
        self._stamp = stamp
        self._rng = rng
        self._queue: deque[Escalation] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def supervised(self) -> bool:
        """Whether anyone is asked at all."""
        return self._supervisor is not None and self._supervisor.asks

    def told(self) -> Sequence[DecisionTold]:
        """The decisions so far, as steps may read them."""
        found = [self.interventions[number] for number in sorted(self.interventions)]
        return tuple(
            DecisionTold(
                node_id=each.escalation.node_id,
                lineage=each.escalation.lineage,
                item=str(each.escalation.item),
                detail=each.escalation.detail,
                action=str(each.action),
                decided_by=str(each.decision.decided_by),
                rationale=each.decision.rationale,
            )
            for each in found
            if each.decision is not None
        )

    def recall(self, interventions: Mapping[int, Intervention]) -> None:
        """Carry on with the interventions of the run's earlier parts."""
        self.interventions.update(interventions)
        self.recalled = frozenset(interventions)

    def escalate(self, effect: Escalate, node_type: str, facts: Failure, declared: object) -> None:
        """A failure needs a decision."""
        escalation = self._escalation(effect, node_type, facts, declared)
        if facts.ends_run or not self.supervised:
            self._answer(escalation, _unasked(escalation, facts))
            return
        self.interventions[effect.number] = Intervention(escalation=escalation)
        if facts.has_candidate:
            self.candidates[effect.number] = facts.raw_candidate
        if facts.output_schema is not None:
            self.forms[effect.number] = facts.output_schema
        self._bus.publish(
            SupervisorEscalation(
                node_id=escalation.node_id,
                lineage=escalation.lineage,
                attempt=escalation.attempt,
                caused_by=escalation.caused_by,
                escalation=escalation,
            )
        )
        assert self._supervisor is not None
        known = self._supervisor.sticky(escalation)
        if known is not None:
            self._answer(escalation, known)
            return
        self._queue.append(escalation)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._decide_all())

    async def _decide_all(self) -> None:
        supervisor = self._supervisor
        assert supervisor is not None
        while self._queue:
            escalation = self._queue.popleft()
            if supervisor.sticky(escalation) is None:
                self._bus.publish(
                    SupervisorDeciding(
                        node_id=escalation.node_id,
                        lineage=escalation.lineage,
                        attempt=escalation.attempt,
                        escalation_id=escalation.id,
                    )
                )
            decision = await supervisor.decide(escalation)
            if not self._closed:
                self._answer(escalation, decision)

    def _answer(self, escalation: Escalation, decision: Decision) -> None:
        values: tuple[object, ...] = ()
        problems: Sequence[str] = ()
        verdict = decision.verdict
        number = int(escalation.id[1:])
        if isinstance(verdict, Substitute):
            form = self.forms.get(number)
            values, problems = self._check(escalation.node_id, verdict.outputs, form)
        decision = self._masked(decision)
        self.candidates.pop(number, None)
        self.forms.pop(number, None)
        self._tell(
            Decided(
                escalation=number,
                decision=decision,
                outputs=values,
                problems=tuple(problems),
                jitter=self._rng.random(),
            )
        )

    def _masked(self, decision: Decision) -> Decision:
        """The decision as it may be recorded: a supervisor's words and values are masked too."""
        mask = self._registry.mask_text
        verdict = decision.verdict
        if isinstance(verdict, Substitute):
            outputs, _ = self._registry.mask_value(dict(verdict.outputs))
            verdict = Substitute(outputs=outputs)  # type: ignore[arg-type]
        elif isinstance(verdict, Fail):
            reason = verdict.reason or decision.rationale
            verdict = Fail(reason=mask(reason), apply_to=verdict.apply_to)
        return msgspec.structs.replace(
            decision, verdict=verdict, rationale=mask(decision.rationale)
        )

    def apply(self, effect: Apply) -> None:
        """A decision took effect, perhaps not the one that was given."""
        found = self.interventions.get(effect.escalation)
        if found is None or found.decision is not None:
            return
        found.decision = msgspec.structs.replace(
            effect.decision,
            escalation_id=found.escalation.id,
            started_at=effect.decision.started_at or self._stamp(),
        )
        self._bus.publish(
            SupervisorDecision(
                node_id=found.escalation.node_id,
                lineage=found.escalation.lineage,
                attempt=found.escalation.attempt,
                escalation_id=found.escalation.id,
                decision=found.decision,
                used=self._supervisor.decisions_used if self._supervisor else 0,
                spent_micro_usd=self._supervisor.spent_micro_usd if self._supervisor else 0,
            )
        )

    def conclude(self, effect: Conclude) -> None:
        """What became of a decision is known."""
        found = self.interventions.get(effect.escalation)
        if found is None or found.outcome is not None:
            return
        found.outcome = Outcome(
            escalation_id=found.escalation.id,
            kind=effect.kind,
            detail=_outcome_detail(found, effect.kind),
            kept=effect.kept,
        )
        self._bus.publish(
            SupervisorOutcome(
                node_id=found.escalation.node_id,
                lineage=found.escalation.lineage,
                attempt=found.escalation.attempt,
                escalation_id=found.escalation.id,
                outcome=found.outcome,
            )
        )

    def abort(self) -> None:
        """The run is ending: whoever is being asked is interrupted, nobody else is asked."""
        self._closed = True
        self._queue.clear()
        self.candidates.clear()
        self.forms.clear()
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Wait for an interrupted supervisor, no longer than its grace, and close it."""
        self.abort()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._supervisor is not None:
            await self._supervisor.aclose()

    def _escalation(
        self, effect: Escalate, node_type: str, facts: Failure, declared: object
    ) -> Escalation:
        return Escalation(
            id=EscalationId(f"e{effect.number}"),
            run_id=self._run_id,
            node_id=facts.node_id,  # type: ignore[arg-type]
            node_type=node_type,
            lineage=effect.lineage,
            item=Item(facts.number, facts.total, facts.label),
            attempt=effect.attempt,
            retries_left=effect.retries_left,
            allowed_actions=effect.allowed,
            detail=facts.detail,
            error_type=facts.error_type,
            signature=facts.signature,
            has_candidate=facts.has_candidate,
            candidate_output=facts.candidate,
            inputs=facts.inputs,
            declared_outputs=declared,  # type: ignore[arg-type]
            cost_micro_usd=facts.cost_micro_usd,
            created_assets=facts.assets,
            retry_safe=facts.retry_safe,
            retry_refused=effect.retry_refused,
            emitted=effect.emitted,
            caused_by=tuple(EscalationId(f"e{n}") for n in effect.caused_by if n),
            at=self._stamp(),
        )


def summary(escalation: Escalation) -> str:
    """Where and what, in one line."""
    where = place(escalation.node_id, str(escalation.item))
    return f"{where}: {escalation.detail}"


def _unasked(escalation: Escalation, facts: Failure) -> Decision:
    """What becomes of a failure nobody is asked about."""
    return Decision(
        verdict=Fail(reason=summary(escalation)),
        decided_by=DecidedBy.BOUNDS if facts.ends_run else DecidedBy.DEFAULT,
        rationale="the run's budget is used up" if facts.ends_run else "no supervisor",
    )


def _outcome_detail(found: Intervention, kind: OutcomeKind) -> str:
    if kind in (OutcomeKind.SKIPPED, OutcomeKind.ENDED_EARLY):
        return place(found.escalation.node_id, str(found.escalation.item))
    return ""
