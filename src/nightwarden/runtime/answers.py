"""Whether what a supervisor answered can be used, and the *fail* it comes to where not.

An answer is anything at all: code of others gave it. `flaw_of` names the first thing wrong
with it and who is credited with the fail that follows: the kernel for a verdict that is none,
the bounds for everything else. What the answer cost is kept in any case.

Read next: `bounded.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

import msgspec

from nightwarden.errors import NightwardenError
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, Substitute, Verdict

_VERDICTS: Final = get_args(Verdict)
_MAX_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Raised:
    """In place of an answer: what the supervisor raised, in words, and what that cost."""

    why: str
    cost_micro_usd: int = 0


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why an answer cannot be used, and who is credited with the fail."""

    why: str
    credit: DecidedBy = DecidedBy.BOUNDS


def raised(error: BaseException) -> Raised:
    """The error as a value. One that carries `cost_micro_usd` tells what was spent on it."""
    cost = getattr(error, "cost_micro_usd", 0)
    return Raised(describe(error), cost if _is_money(cost) else 0)


def describe(error: BaseException) -> str:
    """An error in one bounded line; our own errors are sentences, others need their name."""
    try:
        words = " ".join(str(error).split())
    except BaseException:  # `str` of code that is not ours
        words = ""
    if not (isinstance(error, NightwardenError) and words):
        words = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return words if len(words) <= _MAX_WORDS else words[:_MAX_WORDS] + "…"


def cost_of(answer: object) -> int:
    """What an answer cost, as far as it can be known; 0 where it cannot."""
    if isinstance(answer, Decision | Raised) and _is_money(answer.cost_micro_usd):
        return answer.cost_micro_usd
    return 0


def flaw_of(answer: object) -> Flaw | None:
    """What makes an answer unusable, or None. Says nothing about whether it is allowed."""
    if isinstance(answer, Raised):
        return Flaw(f"the supervisor failed: {answer.why}")
    if not isinstance(answer, Decision):
        return Flaw(f"the supervisor answered with {_kind(answer)} where a Decision was expected")
    wrong = _wrong_verdict(answer.verdict)
    if wrong:
        return Flaw(wrong, DecidedBy.KERNEL)
    wrong = _wrong_record(answer)
    if wrong:
        return Flaw(f"the supervisor's decision is not well formed: {wrong}")
    if answer.decided_by == DecidedBy.AGENT and not _rationale(answer).strip():
        return Flaw("the supervisor gave no rationale; an agent's decision needs one")
    return None


def settle(escalation: Escalation, answer: object, *, human: bool) -> Decision:
    """The decision an answer comes to: itself where it is usable, else *fail*."""
    flaw = flaw_of(answer)
    if flaw is not None:
        return failed(escalation, flaw.why, credit=flaw.credit, answer=answer)
    assert isinstance(answer, Decision)  # what has no flaw is one
    credit = answer.decided_by
    if credit == DecidedBy.STICKY:
        # Who was asked cannot say that nobody was: sticky decisions do not count.
        credit = DecidedBy.OPERATOR if human else DecidedBy.AGENT
    return msgspec.structs.replace(answer, decided_by=credit, rationale=_rationale(answer))


def failed(
    escalation: Escalation,
    why: str,
    *,
    credit: DecidedBy = DecidedBy.BOUNDS,
    answer: object = None,
) -> Decision:
    """*fail*, for this reason; what a dropped answer cost, and who gave it, is kept."""
    reason = Fail(reason=stopped_because(why, escalation))
    decision = Decision(verdict=reason, decided_by=credit, rationale=why)
    if not isinstance(answer, Decision) or _wrong_record(answer):
        return msgspec.structs.replace(decision, cost_micro_usd=cost_of(answer))
    return msgspec.structs.replace(
        decision,
        cost_micro_usd=answer.cost_micro_usd,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        model=answer.model,
        digest_hash=answer.digest_hash,
    )


def stopped_because(why: str, escalation: Escalation) -> str:
    """The run's one-sentence summary where nobody wrote a reason."""
    item = escalation.item
    count = item.number if item.total is None else f"{item.number}/{item.total}"
    place = f"{escalation.node_id} [{count}]" if count else escalation.node_id
    return f"stopped: {why}; {place} {escalation.detail}".rstrip()


def _wrong_verdict(verdict: object) -> str:
    if type(verdict) not in _VERDICTS:
        return f"{_kind(verdict)} is no verdict"
    if isinstance(verdict, Substitute):
        outputs: object = verdict.outputs
        if not isinstance(outputs, Mapping) or not all(isinstance(key, str) for key in outputs):
            return "substitute does not map slots to values"
        return ""
    return _misfit(verdict, type(verdict))


def _wrong_record(decision: Decision) -> str:
    """What is wrong with the fields beside the verdicts."""
    if decision.asked_for is not None and _wrong_verdict(decision.asked_for):
        return "asked_for is no verdict"
    wrong = _misfit(msgspec.structs.replace(decision, verdict=Fail(), asked_for=None), Decision)
    if wrong:
        return wrong
    numbers = (decision.cost_micro_usd, decision.tokens_in, decision.tokens_out)
    return "" if min(numbers) >= 0 else "cost and tokens cannot be negative"


def _misfit(record: object, kind: type) -> str:
    """How a record built by other code breaks its own declaration; they are not checked there."""
    try:
        msgspec.convert(msgspec.to_builtins(record), kind)
    except Exception as error:
        return describe(error)
    return ""


def _rationale(decision: Decision) -> str:
    """Why; the reason of a *fail* says that as well."""
    if not decision.rationale.strip() and isinstance(decision.verdict, Fail):
        return decision.verdict.reason
    return decision.rationale


def _is_money(cost: object) -> bool:
    return isinstance(cost, int) and not isinstance(cost, bool) and cost >= 0


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__!r}"
