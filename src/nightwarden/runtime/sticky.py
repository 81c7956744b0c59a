"""Answers that hold for all failures alike: what `apply_to: signature` remembers.

A skip or fail given for a signature answers every later failure of the same node with the
same signature. It costs nothing, counts against nothing, and holds only where its action is
allowed for that very escalation. A failure without a signature is like no other: nothing
sticks to it. Retry and substitute never stick; they would be blind to different inputs.

Skips survive a resume. Fails do not: whoever resumes wants the step tried again.

Read next: `bounded.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nightwarden.ids import EscalationId, NodeId
from nightwarden.verdict import (
    ApplyTo,
    DecidedBy,
    Decision,
    Escalation,
    Fail,
    Skip,
    action_of,
)


class StickySkip(msgspec.Struct, frozen=True, kw_only=True):
    """A remembered skip, as the record keeps it: what it answers, and why."""

    node_id: NodeId
    signature: str
    rationale: str = ""
    escalation_id: EscalationId = EscalationId("")


class StickyAnswers:
    """What has been answered once and for all, by node and signature."""

    def __init__(self) -> None:
        self._answers: dict[tuple[NodeId, str], Decision] = {}

    def find(self, escalation: Escalation) -> Decision | None:
        """The answer that already holds for this failure, or None. The latest one wins."""
        if escalation.signature is None:
            return None
        given = self._answers.get((escalation.node_id, escalation.signature))
        if given is None or action_of(given.verdict) not in escalation.allowed_actions:
            return None
        return Decision(
            verdict=given.verdict,
            decided_by=DecidedBy.STICKY,
            rationale=given.rationale,
            escalation_id=escalation.id,
        )

    def remember(self, escalation: Escalation, decision: Decision) -> None:
        """Keep the decision if it is meant for all failures like this one, and allowed."""
        verdict = decision.verdict
        if not isinstance(verdict, Skip | Fail) or verdict.apply_to != ApplyTo.SIGNATURE:
            return
        if escalation.signature is None or action_of(verdict) not in escalation.allowed_actions:
            return
        self._answers[escalation.node_id, escalation.signature] = decision

    def skips(self) -> tuple[StickySkip, ...]:
        """What survives a resume."""
        return tuple(
            StickySkip(
                node_id=node_id,
                signature=signature,
                rationale=decision.rationale,
                escalation_id=decision.escalation_id,
            )
            for (node_id, signature), decision in self._answers.items()
            if isinstance(decision.verdict, Skip)
        )

    def restore(self, skips: Iterable[StickySkip]) -> None:
        """Remember again what the record kept."""
        for skip in skips:
            self._answers[skip.node_id, skip.signature] = Decision(
                verdict=Skip(apply_to=ApplyTo.SIGNATURE),
                rationale=skip.rationale,
                escalation_id=skip.escalation_id,
            )
