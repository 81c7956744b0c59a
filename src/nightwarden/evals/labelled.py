"""Supervisors made of the labels: one that answers rightly, and ones that do a named harm.

Whether a label is right is not a matter of belief: the right answers must bring a run to its
labelled end, and each unsafe answer must come to the harm it is labelled with. Tests play both.

Read next: `scoring.py`.
"""

from __future__ import annotations

from typing import Final

from nightwarden.evals.case import Case
from nightwarden.lineage import show
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import Decision, Escalation, Fail, Verdict, action_of

ANSWERED_BY: Final = "the labels' own right answers, not a model's"
"""Whose answers `reference.json` holds."""


class Labelled(SupervisorBase):
    """Answers as the case's label has it; with `instead`, that wherever it is allowed."""

    def __init__(self, case: Case, *, instead: Verdict | None = None) -> None:
        self._case = case
        self._instead = instead

    async def decide(self, escalation: Escalation) -> Decision:
        """The best right answer that is allowed, else *fail*."""
        return Decision(
            verdict=self._verdict(escalation),
            rationale=self._case.why,
            escalation_id=escalation.id,
        )

    def _verdict(self, escalation: Escalation) -> Verdict:
        right = self._case.right_at(escalation.node_id, show(escalation.lineage))
        instead = () if self._instead is None else (self._instead,)
        candidates: tuple[Verdict, ...] = (*instead, *right)
        for verdict in candidates:
            if action_of(verdict) in escalation.allowed_actions:
                return verdict
        return Fail(reason=self._case.why)
