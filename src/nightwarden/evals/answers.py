"""Recorded answers: what a model decided in each case, to be scored again without it.

    {"version": 1, "answered_by": "anthropic:…", "cases": {"pages/…": [{"node": "page",
     "lineage": [3], "attempt": 1, "verdict": {"action": "retry"}, "rationale": "…", …}]}}

What a decision cost and how long it took is kept and counts again, on virtual time. A failure
the file has no answer for is answered with *fail*, and named: the cases have changed since.

Read next: `subjects.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from nightwarden.errors import NightwardenError
from nightwarden.evals.scoring import Score
from nightwarden.ids import NodeId
from nightwarden.lineage import Lineage
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, Verdict

FORMAT: Final = 1
REFERENCE: Final = "reference"
"""The name of the answers that come with the package."""


class BadAnswers(NightwardenError):
    """A file of recorded answers that cannot be read; the message says where and why."""


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer: to which failure, what, why, by whom, and at what cost."""

    node: NodeId
    lineage: Lineage
    attempt: int
    verdict: Verdict
    rationale: str = ""
    decided_by: DecidedBy = DecidedBy.AGENT
    model: str = ""
    cost_micro_usd: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    duration_s: float = 0.0


class AnswersFile(msgspec.Struct, frozen=True, kw_only=True):
    """A whole record; `answered_by` says who answered."""

    version: int
    answered_by: str
    cases: dict[str, tuple[RecordedAnswer, ...]]


def read_answers(name: str) -> AnswersFile:
    """The answers of a file, or of the package's own for `reference`.

    Raises `BadAnswers` for a file that holds none, `OSError` for one that cannot be read.
    """
    shipped = name == REFERENCE
    place = resources.files(__package__) / "reference.json" if shipped else Path(name)
    data = place.read_bytes()
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != FORMAT:
            raise BadAnswers(
                f"{name}: these are answers of version {version}, and version {FORMAT} was "
                "expected: record them anew with --model … --record FILE"
            )
        return msgspec.json.decode(data, type=AnswersFile)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswers(
            f"{name}: no recorded answers: {error}; expected what --record FILE writes"
        ) from error


class _Version(msgspec.Struct):
    version: int


def written(answered_by: str, scores: Iterable[Score]) -> bytes:
    """What was decided, as a file. Sticky answers come of themselves and are left out."""
    cases = {
        each.case.name: tuple(
            RecordedAnswer(
                node=asked.escalation.node_id,
                lineage=asked.escalation.lineage,
                attempt=asked.escalation.attempt,
                verdict=asked.answered,
                rationale=asked.decision.rationale,
                decided_by=DecidedBy.BOUNDS if asked.by_bounds else DecidedBy.AGENT,
                model=asked.decision.model,
                cost_micro_usd=asked.decision.cost_micro_usd,
                tokens_in=asked.decision.tokens_in,
                tokens_out=asked.decision.tokens_out,
                duration_s=round(asked.decision.duration_s, 3),
            )
            for asked in each.decisions
        )
        for each in scores
        if each.decisions
    }
    whole = AnswersFile(version=FORMAT, answered_by=answered_by, cases=cases)
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


class Recorded(SupervisorBase):
    """Answers one case from a record. `missing` names the failures it has no answer for."""

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self.missing: list[str] = []
        self._answers: Mapping[tuple[NodeId, Lineage, int], RecordedAnswer] = {
            (answer.node, answer.lineage, answer.attempt): answer for answer in answers
        }

    async def decide(self, escalation: Escalation) -> Decision:
        """The recorded answer, after the time it took; else *fail*."""
        key = (escalation.node_id, escalation.lineage, escalation.attempt)
        found = self._answers.get(key)
        if found is None:
            self.missing.append(escalation.node_id)
            why = f"no answer is recorded for {escalation.node_id}, attempt {escalation.attempt}"
            return Decision(verdict=Fail(reason=why), rationale=why, decided_by=DecidedBy.BOUNDS)
        await asyncio.sleep(found.duration_s)
        return Decision(
            verdict=found.verdict,
            decided_by=found.decided_by,
            rationale=found.rationale,
            escalation_id=escalation.id,
            cost_micro_usd=found.cost_micro_usd,
            tokens_in=found.tokens_in,
            tokens_out=found.tokens_out,
            model=found.model,
        )
