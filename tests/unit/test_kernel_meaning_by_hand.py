"""Small cases the drawn ones found once: the kernel against the reference, by hand."""

from __future__ import annotations

import pytest
from reference.acting import Act, Case, Fault, Frame, Read, codes, judge
from reference.comparing import differences, excess
from reference.drive import Pace, drive
from reference.interpreter import interpret
from reference.small import Node, collect, fan, many, safe, step, stream, workflow
from reference.translate import Run
from reference.words import Absent, Kind, Meaning

from nightwarden.verdict import Action

ABSENT = Act(absent=frozenset({"output"}))
BREAKS = Act(fault=Fault(after=0))
FAILS = Act(fault=Fault(after=0), answers=(Action.FAIL,))
PACES = [
    Pace(order=o, seed=s, races=True, together=s % 3)
    for o in ("first", "last", "any")
    for s in range(20)
]


def by_hand(*nodes: Node, **acts: Act | tuple[Act, ...]) -> Case:
    full = {n.spec.id: acts.get(n.spec.id, Act()) for n in nodes}
    return Case(workflow(*nodes), {k: a if isinstance(a, tuple) else (a,) for k, a in full.items()})


def meaning(case: Case, run: Run, *, keep_going: bool) -> Meaning:
    return interpret(
        case.workflow,
        case.inputs,
        codes(case),
        judge(case),
        keep_going=keep_going,
        choices=run.choices,
    )


def check(case: Case, pace: Pace | None = None, *, keep_going: bool = False) -> Run:
    run = drive(case, pace or Pace(), keep_going=keep_going)
    assert differences(case, run, meaning(case, run, keep_going=keep_going)) == []
    return run


def test_a_loss_that_a_list_survives_does_not_change_the_kind_of_an_absence() -> None:
    """kernel.md §1, Cause; Joining, row Many: with a value left, it is no absent input."""
    j = step("j", x="a", m=many("b", "c", accepts=True))
    check(by_hand(step("a"), step("b"), step("c"), j, a=ABSENT, b=BREAKS))


def test_a_branch_left_out_of_a_list_is_no_cause() -> None:
    j = step("j", x="a", m=many("b", "c"))
    check(by_hand(step("a"), step("b"), step("c"), j, a=ABSENT, b=ABSENT))


def test_an_empty_list_carries_the_repair_behind_its_fan_out() -> None:
    mended = Act(fault=Fault(after=0, has_candidate=True), answers=(Action.SUBSTITUTE,))
    check(by_hand(step("a"), fan("m", x="a"), step("c", x=collect("m")), a=mended))


def test_a_reader_that_awaits_its_decision_is_not_told_to_end() -> None:
    """kernel.md §3: a *running* reader is cancelled by a failed item."""
    failing = Act(script=(Frame(),), fault=Fault(after=1), answers=(Action.FAIL,))
    check(by_hand(fan("n"), step("r", x=stream("n")), n=failing, r=BREAKS), keep_going=True)


@pytest.mark.parametrize("pace", PACES)
def test_a_reader_that_breaks_while_it_is_told_to_end_has_ended(pace: Pace) -> None:
    case = by_hand(
        fan("n"),
        step("f", x="n"),
        step("r", x=stream("f")),
        step("g", x="r"),
        n=Act(script=(Frame(),) * 3),
        f=(Act(), FAILS),
        r=Act(script=(Read("x", 1),), fault=Fault(after=1)),
    )
    check(case, pace, keep_going=True)


@pytest.mark.parametrize("pace", PACES)
def test_why_a_reader_is_pruned_does_not_hang_on_the_order_of_arrival(pace: Pace) -> None:
    """kernel.md §1, Joining, row 3: only a closing that never opened is an absent input."""
    case = by_hand(
        fan("n"),
        step("f", x="n"),
        step("z"),
        step("a", z="z"),
        step("r", items=stream("f"), x="a"),
        n=Act(script=(Frame(),) * 3),
        f=(Act(), FAILS),
        a=ABSENT,
    )
    settled = check(case, pace, keep_going=True).captures["r", "output"][()]
    assert isinstance(settled, Absent)
    assert settled.kind is Kind.NOT_TAKEN


@pytest.mark.parametrize("after", range(8))
def test_a_retry_that_suspends_the_run_still_comes_to_an_outcome(after: int) -> None:
    """supervision.md §2: a third event closes each intervention."""
    again = Act(fault=Fault(attempts=1), answers=(Action.RETRY,))
    case = by_hand(fan("n"), safe("f", x="n"), n=Act(script=(Frame(),)), f=again)
    run = drive(case, Pace(interrupt="suspend", after=after))
    assert excess(case, run, meaning(case, run, keep_going=False)) == []
