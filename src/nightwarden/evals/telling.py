"""An evaluation for people, as a table, and for programs, as versioned plain data. Pure.

Read next: `nightwarden/cli/evaluating.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

import msgspec

from nightwarden.evals.case import Ends, Kind
from nightwarden.evals.playing import Asked
from nightwarden.evals.scoring import Gate, Score, Totals
from nightwarden.events.words import count, cut, dollars
from nightwarden.runtime.supervisors.verbs import WORDS
from nightwarden.verdict import action_of

FORMAT: Final = 1
_WIDTH: Final = 110


def as_json(
    subject: str, scores: Sequence[Score], totals: Totals, gates: Sequence[Gate]
) -> dict[str, object]:
    """Everything, as plain data."""
    figures = asdict(totals)
    cost = figures.pop("cost_micro_usd")
    figures["harms"] = {str(harm): number for harm, number in totals.harms.items()}
    return {
        "version": FORMAT,
        "subject": subject,
        "passed": all(gate.held for gate in gates),
        "gates": [asdict(gate) for gate in gates],
        "totals": {
            **figures,
            "recovery_rate": totals.recovery_rate,
            "false_wake_rate": totals.false_wake_rate,
            "cost_usd": cost / 1_000_000,
        },
        "cases": [_case(each) for each in scores],
    }


def _case(score: Score) -> dict[str, object]:
    case, seen = score.case, score.seen
    return {
        "name": case.name,
        "kind": str(case.kind),
        "labelled": str(case.ends),
        "right": [str(action) for action in case.actions()],
        "as_labelled": score.as_labelled,
        "completed": seen.completed,
        "reason": seen.reason,
        "harms": [str(harm) for harm in score.harms],
        "needless_stop": score.needless_stop,
        "false_wake": score.false_wake,
        "cost_usd": score.cost_micro_usd / 1_000_000,
        "decisions": [_decision(asked) for asked in score.decisions],
    }


def _decision(asked: Asked) -> dict[str, object]:
    decision = asked.decision
    return {
        "step": asked.step,
        "item": asked.item,
        "verdict": msgspec.to_builtins(asked.answered),
        "refused": asked.refused,
        "decided_by": str(decision.decided_by),
        "rationale": decision.rationale,
        "cost_usd": decision.cost_micro_usd / 1_000_000,
        "duration_s": round(decision.duration_s, 3),
    }


def as_text(
    subject: str, scores: Sequence[Score], totals: Totals, gates: Sequence[Gate]
) -> list[str]:
    """The lines for people: the figures, the kinds of faults, and what was not as labelled."""
    return [
        f"{subject}: {count(totals.cases, 'case')}, {count(totals.decisions, 'decision')}",
        "",
        *_figures(totals, {gate.name: gate for gate in gates}),
        "",
        *_kinds(scores),
        *_wrong(scores),
    ]


def _figures(t: Totals, gates: dict[str, Gate]) -> Iterator[str]:
    recovery, unsafe, wakes = (gates[n] for n in ("min_recovery", "max_unsafe", "max_false_wakes"))
    harms = ", ".join(f"{number} {harm}" for harm, number in t.harms.items() if number)
    yield _row(
        "recovered", _of(t.recovered, t.recoverable), _gate(recovery, f"≥ {_share(recovery.limit)}")
    )
    yield _row(
        "unsafe",
        str(t.unsafe) + (f" ({harms})" if harms else ""),
        _gate(unsafe, f"≤ {unsafe.limit:g}"),
    )
    yield _row("false wakes", _of(t.false_wakes, t.clean), _gate(wakes, f"≤ {_share(wakes.limit)}"))
    yield _row("needless stops", str(t.needless_stops))
    yield _row("right stops", _of(t.stopped_rightly, t.to_stop))
    yield _row("right verbs", _of(t.right, t.decisions))
    yield _row("cost", f"{dollars(t.cost_micro_usd)}{_each(t)}")
    yield _row("time to decision", f"{t.median_s:.1f} s in the middle, {t.longest_s:.1f} s at most")


def _row(name: str, value: str, gate: str = "") -> str:
    return f"  {name:<18}{gate:<18}{value}".rstrip()


def _gate(gate: Gate, limit: str) -> str:
    return f"{'held' if gate.held else 'NOT HELD'}: {limit}"


def _of(some: int, all_: int) -> str:
    return f"{some} of {all_}" + (f" ({_share(some / all_)})" if all_ else "")


def _share(rate: float) -> str:
    return f"{rate * 100:.3g} %"


def _each(t: Totals) -> str:
    return f", {dollars(t.cost_micro_usd // t.decisions)} a decision" if t.cost_micro_usd else ""


def _kinds(scores: Sequence[Score]) -> Iterator[str]:
    """A line a kind of fault: how many are as labelled, unsafe, stopped needlessly."""
    yield f"  {'fault':<40}{'cases':>6}{'right':>7}{'unsafe':>8}{'needless':>10}"
    for kind in Kind:
        of_kind = [each for each in scores if each.case.kind is kind]
        if of_kind:
            right = sum(each.as_labelled for each in of_kind)
            unsafe = sum(bool(each.harms) for each in of_kind)
            needless = sum(each.needless_stop for each in of_kind)
            yield f"  {kind:<40}{len(of_kind):>6}{right:>7}{unsafe:>8}{needless:>10}"


def _wrong(scores: Sequence[Score]) -> Iterator[str]:
    """What was not as labelled: the case, what it came to, the answer that led there, the label."""
    wrong = [each for each in scores if not each.as_labelled]
    if wrong:
        yield ""
        yield "  not as labelled:"
    for each in wrong:
        yield f"  {each.case.name}: {came_to(each)}"
        if each.decisions:
            yield cut(f"      {_said(_telling(each))}", _WIDTH)
        yield cut(f"      labelled {_verbs(each)}: {each.case.why}", 160)


def _verbs(score: Score) -> str:
    return " or ".join(WORDS[action] for action in score.case.actions()) or "unasked"


def came_to(score: Score) -> str:
    """What became of a case, in a word or two."""
    if score.harms:
        return "UNSAFE, " + ", ".join(score.harms)
    if score.needless_stop:
        return "stopped needlessly"
    if score.false_wake:
        return "asked, although nothing was wrong"
    if score.as_labelled:
        return "recovered" if score.case.ends is Ends.RECOVERED else str(score.case.ends)
    return "completed, and should have stopped" if score.seen.completed else "failed"


def _telling(score: Score) -> Asked:
    """The answer that tells most of why it went wrong: the last one that was done, or refused."""
    done = [asked for asked in score.decisions if asked.applied]
    return (done if score.harms and done else score.decisions)[-1]


def _said(asked: Asked) -> str:
    item = f"[{asked.item}]" if asked.item else ""
    refused = " (not allowed)" if asked.refused else ""
    word = WORDS[action_of(asked.answered)]
    return f"{asked.step}{item} → {word}{refused}: {asked.decision.rationale}"
