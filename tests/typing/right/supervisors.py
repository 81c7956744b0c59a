"""Supervisors somebody else writes: the protocol, with and without its base."""

from __future__ import annotations

from typing import assert_never

import nightwarden as nw
from nightwarden.runtime.supervision import RunReader, SupervisorBase
from nightwarden.verdict import (
    Action,
    ApplyTo,
    DecidedBy,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Retry,
    Skip,
    Substitute,
    Verdict,
)


class Patient:
    """All three methods, no base."""

    def __init__(self) -> None:
        self._run: RunReader | None = None

    def attach(self, reader: RunReader) -> None:
        self._run = reader

    async def decide(self, escalation: Escalation) -> Decision:
        if Action.RETRY in escalation.allowed_actions and escalation.retries_left:
            return answer(escalation, Retry())
        if self._run is not None and not self._run.check(escalation.id, {"output": 1.0}):
            return answer(escalation, Substitute({"output": 1.0}))
        return answer(escalation, Fail(reason=f"{escalation.node_id}: {escalation.detail}"))

    async def aclose(self) -> None:
        self._run = None


class Skipping(SupervisorBase):
    """Only what is needed."""

    async def decide(self, escalation: Escalation) -> Decision:
        return answer(escalation, Skip(apply_to=ApplyTo.SIGNATURE))


def answer(escalation: Escalation, verdict: Verdict) -> Decision:
    return Decision(
        verdict=verdict,
        decided_by=DecidedBy.OPERATOR,
        rationale=named(verdict),
        escalation_id=escalation.id,
    )


def named(verdict: Verdict) -> str:
    """The verdicts are closed: a new one is an error here."""
    match verdict:
        case Retry() | Skip() | EndStream() | Fail():
            return type(verdict).__name__
        case Substitute():
            return ", ".join(verdict.outputs)
    assert_never(verdict)


SUPERVISORS: list[nw.Supervisor] = [Patient(), Skipping()]
