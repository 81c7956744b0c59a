"""No supervisor: a failure stops the run, as it would in any engine.

`FailClosed` is never asked. Its answer is known beforehand, so that nothing waits in a
queue for it and nothing is counted; `asks` tells the runtime.

Read next: `scripted.py`.
"""

from __future__ import annotations

from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail


def default_fail(escalation: Escalation, rationale: str) -> Decision:
    """*fail*, because nobody was there to choose: no supervisor, cancelled, or stopping."""
    return Decision(
        verdict=Fail(),
        decided_by=DecidedBy.DEFAULT,
        rationale=rationale,
        escalation_id=escalation.id,
    )


class FailClosed(SupervisorBase):
    """Answers *fail* to everything, without being asked."""

    asks: bool = False

    async def decide(self, escalation: Escalation) -> Decision:
        """*fail*, by default."""
        return default_fail(escalation, "no supervisor")
