"""What supervision would have done, before one dares.

The supervisor inside is asked as always, and pays as always; its answer is recorded as "would
have", and *fail* is applied. With `--keep-going` a whole run can be watched that way. An answer
that would have stuck sticks in here too, so that it is not asked, and paid, for each item.

Read next: `operator.py`.
"""

from __future__ import annotations

import msgspec

from nightwarden.runtime.answers import flaw_of, stopped_because
from nightwarden.runtime.sticky import StickyAnswers
from nightwarden.runtime.supervision import RunReader, Supervisor
from nightwarden.runtime.supervisors.verbs import WORDS
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, action_of


class Shadow:
    """Asks another supervisor, records its answer as "would have", and fails."""

    def __init__(self, inner: Supervisor) -> None:
        self.inner = inner
        self._memory = StickyAnswers()

    @property
    def human(self) -> bool:
        """Whether a person answers inside."""
        return bool(getattr(self.inner, "human", False))

    def sticky(self, escalation: Escalation) -> Decision | None:
        """What would have been answered without asking again."""
        found = self._memory.find(escalation)
        return None if found is None else _would_have(escalation, found)

    async def decide(self, escalation: Escalation) -> Decision:
        """*fail*, with what would have been answered. Raises what the supervisor inside raises.

        What cannot be used goes out as it is: the bounds refuse it, and know what it cost.
        """
        answer = await self.inner.decide(escalation)
        if flaw_of(answer) is not None:
            return answer
        self._memory.remember(escalation, answer)
        return _would_have(escalation, answer)

    def attach(self, reader: RunReader) -> None:
        """Hand the run to the supervisor inside."""
        self.inner.attach(reader)

    async def aclose(self) -> None:
        """Close the supervisor inside."""
        await self.inner.aclose()


def _would_have(escalation: Escalation, answer: Decision) -> Decision:
    """The answer as a record of itself; what it cost is kept."""
    action = action_of(answer.verdict)
    verb = WORDS[action]
    notes = [] if action in escalation.allowed_actions else ["not allowed here"]
    if answer.decided_by == DecidedBy.STICKY:
        notes.append("as for all like it")
    said = f"would have: {verb}" + (f" ({', '.join(notes)})" if notes else "")
    why = f"{said} — because {answer.rationale}" if answer.rationale else said
    return msgspec.structs.replace(
        answer,
        verdict=Fail(reason=stopped_because(f"a supervisor {said}", escalation)),
        decided_by=DecidedBy.DEFAULT,
        rationale=why,
        escalation_id=escalation.id,
        asked_for=answer.verdict,
    )
