"""The kernel does what the reference says, whatever is drawn and in whatever order.

kernel.md §1 and §2: values, invocations, settlements per edge, closings, the ledger, and
nothing pending at the end.
"""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from reference.accounts import unlawful_cuts
from reference.acting import Case, codes, judge
from reference.comparing import differences, excess
from reference.drive import Pace, drive
from reference.graphs import cases
from reference.interpreter import interpret
from reference.translate import Run
from reference.words import Meaning

from nightwarden.kernel.effects import Status

PACES = st.builds(
    Pace,
    order=st.sampled_from(("first", "last", "by node", "any")),
    seed=st.integers(0, 2**16),
    window=st.sampled_from((1024, 1, 2, 3)),
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
