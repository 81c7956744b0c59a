"""Answers as a recorded run got them, by node, item and attempt.

What is not in the record is answered with *fail*. What was sticky there costs nothing here
either. A fail that nobody chose (no supervisor, bounds, the kernel) stays credited as it was,
for a run that keeps going must keep going in replay; every other answer is the replay's.

Read next: `shadow.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from nightwarden.errors import RunError
from nightwarden.ids import NodeId
from nightwarden.lineage import Lineage, show
from nightwarden.runtime.answers import describe, stopped_because
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail

Pair = tuple[Escalation, Decision]
_R = TypeVar("_R", Escalation, Decision)

_NOBODY_CHOSE: Final = (DecidedBy.DEFAULT, DecidedBy.BOUNDS, DecidedBy.KERNEL)


class Replay(SupervisorBase):
    """Answers from recorded pairs; where the record answers twice (a resumed run), the last."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._recorded: dict[tuple[NodeId, Lineage, int], Decision] = {
            _key(escalation): decision for escalation, decision in pairs
        }

    def sticky(self, escalation: Escalation) -> Decision | None:
        """What was answered for nothing then is answered for nothing now."""
        found = self._recorded.get(_key(escalation))
        if found is None or found.decided_by != DecidedBy.STICKY:
            return None
        return _again(escalation, found, DecidedBy.STICKY)

    async def decide(self, escalation: Escalation) -> Decision:
        """The recorded answer, or *fail*."""
        found = self._recorded.get(_key(escalation))
        if found is not None:
            chosen = found.decided_by not in _NOBODY_CHOSE
            return _again(escalation, found, DecidedBy.REPLAY if chosen else found.decided_by)
        item = show(escalation.lineage)
        place = f"{escalation.node_id} [{item}]" if item else escalation.node_id
        return Decision(
            verdict=Fail(reason=stopped_because("not in the recorded run", escalation)),
            decided_by=DecidedBy.REPLAY,
            rationale=f"the recorded run has no answer for {place}, attempt {escalation.attempt}",
            escalation_id=escalation.id,
        )


def pairs_from_events(events: Iterable[Mapping[str, object]]) -> tuple[Pair, ...]:
    """The escalations of a record with their decisions, in order of decision.

    Other events, unknown fields, and escalations that were never decided are passed over.
    Raises `RunError` for an event that cannot be read.
    """
    pending: dict[str, Escalation] = {}
    pairs = []
    for event in events:
        if event.get("type") == "supervisor_escalation":
            escalation = _read(event, "escalation", Escalation)
            pending[escalation.id] = escalation
        elif event.get("type") == "supervisor_decision":
            decision = _read(event, "decision", Decision)
            answered = decision.escalation_id or str(event.get("escalation_id", ""))
            if answered in pending:
                pairs.append((pending[answered], decision))
    return tuple(pairs)


def _again(escalation: Escalation, recorded: Decision, credit: DecidedBy) -> Decision:
    """The recorded answer, given anew: it costs nothing this time."""
    return Decision(
        verdict=recorded.verdict,
        decided_by=credit,
        rationale=recorded.rationale,
        escalation_id=escalation.id,
        asked_for=recorded.asked_for,
        model=recorded.model,
    )


def _key(escalation: Escalation) -> tuple[NodeId, Lineage, int]:
    return escalation.node_id, escalation.lineage, escalation.attempt


def _read(event: Mapping[str, object], key: str, kind: type[_R]) -> _R:
    try:
        return msgspec.convert(event.get(key), kind)
    except msgspec.ValidationError as error:
        where = f"event {event.get('seq', '?')} ({event.get('type')})"
        raise RunError(f"{where} of the recorded run cannot be read: {describe(error)}") from error
