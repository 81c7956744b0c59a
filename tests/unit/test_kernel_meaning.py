"""The kernel does what the reference says, whatever is drawn and in whatever order.

kernel.md §1 and §2: values, invocations, settlements per edge, closings, the ledger, and
nothing pending at the end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from reference.accounts import unlawful_cuts
from reference.acting import Act, Case, Frame, Read, codes, judge
from reference.comparing import differences, excess
from reference.drive import Pace, drive
from reference.graphs import cases
from reference.interpreter import interpret
from reference.small import Node, collect, fan, step, stream, workflow
from reference.translate import Run
from reference.words import Meaning

from nightwarden.kernel.effects import Status

PACES = st.builds(
    Pace,
    order=st.sampled_from(("first", "last", "by node", "any")),
    seed=st.integers(0, 2**16),
    window=st.sampled_from((1024, 1, 2, 3)),
    races=st.booleans(),
    together=st.sampled_from((0, 0, 3)),
)


def meaning_of(case: Case, run: Run, *, keep_going: bool = False) -> Meaning:
    """What the case means, given what the order of events decided."""
    meaning = interpret(
        case.workflow,
        case.inputs,
        codes(case),
        judge(case),
        keep_going=keep_going,
        max_retries=case.max_retries,
        choices=run.choices,
    )
    assert unlawful_cuts(case.workflow, meaning, run.choices) == []
    return meaning


@given(cases(), PACES)
def test_the_kernel_does_what_the_workflow_means(case: Case, pace: Pace) -> None:
    run = drive(case, pace)
    meaning = meaning_of(case, run)
    assert differences(case, run, meaning) == []
    assert run.status is Status.COMPLETED
    for word in {end.word for end in meaning.endings.values()}:
        event(word)
    event("cut short", bool(run.choices.cuts))
    event("widened", bool(run.widened))


@given(cases(failing=True), PACES)
def test_keep_going_does_all_that_does_not_depend_on_a_failure(case: Case, pace: Pace) -> None:
    """kernel.md §3."""
    run = drive(case, pace, keep_going=True)
    meaning = meaning_of(case, run, keep_going=True)
    assert differences(case, run, meaning) == []
    failed = any(end.word == "failed" for end in meaning.endings.values())
    assert run.status is (Status.FAILED if failed else Status.COMPLETED)
    event("failed", failed)
    event("cancelled", any(steps >= 0 for steps in run.choices.cancels.values()))


@given(cases(failing=True), PACES)
def test_a_stopped_run_does_a_part_of_what_the_workflow_means(case: Case, pace: Pace) -> None:
    """kernel.md §3: nothing new starts, what runs drains, its results are kept."""
    run = drive(case, pace)
    meaning = meaning_of(case, run)
    assert excess(case, run, meaning) == []
    assert run.status is (Status.FAILED if meaning.stopped else Status.COMPLETED)
    event("stopped", bool(meaning.stopped))


@given(
    cases(),
    PACES,
    st.sampled_from((("cancel", Status.CANCELLED), ("suspend", Status.SUSPENDED))),
    st.integers(0, 60),
)
def test_an_interrupted_run_does_a_part_of_what_the_workflow_means(
    case: Case, pace: Pace, interrupt: tuple[str, Status], after: int
) -> None:
    """kernel.md §3: cancelled > suspended > failed > completed."""
    run = drive(case, replace(pace, interrupt=interrupt[0], after=after))
    meaning = meaning_of(case, run)
    assert excess(case, run, meaning) == []
    assert run.status is (interrupt[1] if run.interrupted else Status.COMPLETED)
    event("interrupted", run.interrupted)


def by_hand(*nodes: Node, **acts: Act) -> Case:
    made = workflow(*nodes)
    return Case(made, {n.spec.id: (acts.get(n.spec.id, Act()),) for n in nodes})


ORDERS = pytest.mark.parametrize("order", ["first", "last", "any", "by node"])


@ORDERS
def test_a_fan_out_is_closed_at_its_next_yield_when_every_reader_has_left(order: str) -> None:
    case = by_hand(
        fan("n"),
        step("a", x="n"),
        step("r", items=stream("a")),
        step("s", items=stream("n")),
        n=Act(script=(Frame(),) * 50),
        r=Act(script=(Read("items", 2),)),
        s=Act(script=(Read("items", 1),)),
    )
    run = drive(case, Pace(order=order, window=4))
    assert differences(case, run, meaning_of(case, run)) == []
    assert 2 <= run.closings["n", ()].n < 50
    assert run.choices.cuts


@ORDERS
def test_a_window_gives_way_when_everything_waits_for_it(order: str) -> None:
    """kernel.md §2, Back-pressure: buffering beats deadlock, and it shows."""
    case = by_hand(fan("n"), step("j", x="n", all=collect("n")), n=Act(script=(Frame(),) * 9))
    run = drive(case, Pace(order=order, window=2))
    assert differences(case, run, meaning_of(case, run)) == []
    assert run.widened == 3
