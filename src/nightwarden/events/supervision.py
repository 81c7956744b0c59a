"""Events of an intervention: escalation, deciding, decision, outcome.

Read next: `render.py`.
"""

from __future__ import annotations

from nightwarden.events.base import Event
from nightwarden.verdict import Decision, Escalation, Outcome


class SupervisorEscalation(Event, tag="supervisor_escalation"):
    """A step failed and a decision is needed."""

    escalation: Escalation


class SupervisorDeciding(Event, tag="supervisor_deciding"):
    """A supervisor has been asked."""

    escalation_id: str


class SupervisorDecision(Event, tag="supervisor_decision"):
    """A decision as it was applied. `used` and `spent_micro_usd` are the run's so far."""

    escalation_id: str
    decision: Decision
    used: int = 0
    spent_micro_usd: int = 0


class SupervisorOutcome(Event, tag="supervisor_outcome"):
    """What became of it."""

    escalation_id: str
    outcome: Outcome
