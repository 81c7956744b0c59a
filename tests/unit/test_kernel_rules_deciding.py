"""The kernel, one rule a test, by hand: what is refused and why, and what a completed run owes.

kernel.md §1 (the ledger) and §3; supervision.md §1. Each of these rules was once broken on purpose
and no other test minded.
"""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Hand
from reference.small import Node, fan, node, safe, step, stream, workflow

from nightwarden.errors import KernelBug
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.effects import Apply, EndFeed, Escalate, Feed, Invoke, Prune, Stop
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.stimuli import Emitted, Failed, RunStarted, Succeeded, Suspended, Unbegun
from nightwarden.spec.scopes import analyse
from nightwarden.verdict import DecidedBy, Decision, EndStream, Fail, Retry, Substitute


def begun(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def refused(run: Hand) -> tuple[str, DecidedBy]:
    """Why the last verdict was not applied as it was given, and who stood in the way."""
    decision: Decision = run.of(Apply)[-1].decision
    assert isinstance(decision.verdict, Fail)
    return decision.verdict.reason, decision.decided_by


# -- what may be answered --


@pytest.mark.parametrize(
    ("retry_safe", "idempotent", "why"),
    [
        (True, False, "it was cut off, and whether it took effect is not known"),
        (True, True, ""),
        (False, True, ""),
    ],
)
def test_what_was_cut_off_is_retried_only_where_it_passes_a_key(
    *, retry_safe: bool, idempotent: bool, why: str
) -> None:
    """kernel.md §3, resume: "retry only with an idempotency key"."""
    run = begun(node("a", {}, retry_safe=retry_safe))
    run.fails("a", cut_off=True, idempotent=idempotent)
    (asked,) = run.of(Escalate)
    assert asked.retry_refused == why
    assert ("retry" in asked.allowed) == (not why)


def test_a_retry_that_is_refused_is_refused_for_what_the_step_is() -> None:
    """row: S1-CREDIT-KERNEL"""
    run = begun(step("a"))
    run.fails("a")
    run.decides(Retry())
    assert refused(run) == (
        "retry was refused: the step does not say that it is safe to run again",
        DecidedBy.KERNEL,
    )


def test_a_retry_where_there_never_is_one_is_not_refused_by_the_bounds() -> None:
    """row: S1-CREDIT-KERNEL, S1-FANOUT-EMITTED"""
    run = begun(node("items", {}, frames=("output",), outs=(), retry_safe=True), max_retries=0)
    run.emits("items", 0)
    run.fails("items")
    run.decides(Retry())
    why, by = refused(run)
    assert (why.startswith("retry was refused: only "), by) == (True, DecidedBy.KERNEL)


def test_only_a_retry_is_refused_by_the_bounds() -> None:
    """row: S1-CREDIT-KERNEL"""
    run = begun(safe("a"), max_retries=0)
    run.fails("a")
    run.decides(Substitute({"output": 1}), outputs=(1,))
    assert refused(run)[1] is DecidedBy.KERNEL


def test_a_repair_is_refused_for_the_first_thing_that_is_wrong_with_it() -> None:
    """row: S1-CREDIT-KERNEL"""
    run = begun(step("a"))
    run.fails("a", has_candidate=True, checkable=True)
    run.decides(Substitute({"output": "x"}), outputs=("x",), problems=("no number", "too short"))
    assert refused(run) == ("the repair was refused: no number", DecidedBy.KERNEL)


def test_a_failure_that_is_asked_about_again_keeps_its_number_and_a_new_one_gets_the_next() -> None:
    """kernel.md §3, resume: what was decided is never asked again."""
    made = workflow(step("a"), step("b"))
    plan = compile_plan(made, analyse(made))
    machine = Machine(plan, numbered={(plan.node("b").index, (), 1): 3}, numbers=5)
    calls = {e.node: e.call for e in machine.handle(RunStarted({})) if isinstance(e, Invoke)}
    found = []
    for name in "ab":
        effects = machine.handle(Failed(call=calls[plan.node(name).index]))
        found += [e.number for e in effects if isinstance(e, Escalate)]
    assert found == [6, 3]


# -- what comes of it --


@pytest.mark.parametrize("by", [DecidedBy.DEFAULT, DecidedBy.BOUNDS, DecidedBy.KERNEL])
def test_a_run_that_does_not_keep_going_stops_whoever_said_stop(by: DecidedBy) -> None:
    """row: K3-STOP, K3-KEEP-GOING"""
    run = begun(step("a"), step("b"), step("c", x="b"))
    run.fails("a")
    run.decides(Fail("enough"), by=by)
    assert [(e.status, e.reason) for e in run.of(Stop)] == [("failed", "enough")]
    run.returns("b")
    assert not run.ran("c")


def reading_on() -> Hand:
    """A reader that has asked for its second item."""
    run = begun(fan("items"), node("read", {"x": stream("items")}, frames=("output",), outs=()))
    run.emits("items", 0)
    for _ in range(2):
        run.asks("read", "x")
    return run


def test_a_reader_that_failed_while_it_waited_is_fed_nothing_more() -> None:
    """row: K1-FAN-READ. What comes while somebody decides about it, it has not read."""
    run = reading_on()
    run.fails("read")
    assert list(run.emits("items", 1)) == []
    run.decides(EndStream())
    run.returns("items")
    found = run.exit("items", "read")
    assert (found.delivered, found.lost) == (1, 1)
    assert [e.index for e in run.of(Feed)] == [0]
    assert not run.of(EndFeed)


@pytest.mark.parametrize("how", ["suspended", "failed"])
def test_a_reader_that_is_over_in_a_run_that_stops_is_fed_nothing_more(how: str) -> None:
    """row: K3-STOP. It had put something out while it waited, and so was not told to end."""
    read = node("read", {"x": stream("each")}, frames=("output",), outs=())
    run = begun(fan("items"), step("each", x="items"), read, step("bad"))
    run.emits("items", 0, 1)
    run.returns("each", 0)
    for _ in range(2):
        run.asks("read", "x")
    run.tell(Emitted(run.calls["read", ()], ("yielded",)))
    if how == "suspended":
        run.tell(Suspended(run.calls["read", ()], "later"))
    else:
        run.fails("bad")
        run.decides(Fail())
        run.fails("read")
    run.tell(Succeeded(run.calls["each", (1,)], ("late",)))
    assert [e.index for e in run.of(Feed)] == [0]


def test_a_reader_that_failure_reaches_before_it_began_is_said_to_be_pruned() -> None:
    """row: K3-KEEP-GOING. As if the failure had come first."""
    run = begun(
        fan("items"), step("each", x="items"), step("read", x=stream("each")), keep_going=True
    )
    run.emits("items", 0, 1)
    run.returns("each", 0)
    run.fails("each", 1)
    run.decides(Fail(), by=DecidedBy.DEFAULT)
    run.tell(Unbegun(run.calls["read", ()]))
    assert [(e.node, e.lineage, e.kind) for e in run.of(Prune)] == [
        (run._plan("read").index, (), "failed")
    ]


def test_a_call_that_ended_though_nobody_told_it_to_is_a_bug() -> None:
    run = begun(step("a"))
    with pytest.raises(KernelBug, match="a: halted for no reason"):
        run.halted("a")


# -- what a completed run owes --


def completed() -> Hand:
    """A run whose fan-out ends at an edge and at a node."""
    run = begun(fan("items"), step("each", x="items"), node("read", {"x": stream("items")}))
    run.emits("items", 0)
    run.returns("items")
    run.asks("read", "x")
    run.returns("read")
    run.returns("each", 0)
    assert run.status() == "completed"
    return run


@pytest.mark.parametrize("ending", ["failed", "cancelled", "suspended"])
def test_a_completed_run_in_which_something_broke_off_is_a_bug(ending: str) -> None:
    """row: K1-LEDGER-6, K1-LEDGER-BUG"""
    run = completed()
    account: Any = run.machine._state.nodes[run._plan("each").index]
    account.succeeded = 0
    setattr(account, ending, 1)
    with pytest.raises(KernelBug, match="each: the run completed, but"):
        run.machine.report()


def test_a_completed_run_with_items_that_are_not_through_is_a_bug() -> None:
    """row: K1-LEDGER-6, K1-LEDGER-BUG"""
    run = completed()
    run.machine._state.roots[1].outstanding = 1
    with pytest.raises(KernelBug, match="items: the run completed, but not 1 items"):
        run.machine.report()


@pytest.mark.parametrize("exit_", ["each", "output → read.x"])
def test_a_completed_run_with_an_exit_that_took_too_few_is_a_bug(exit_: str) -> None:
    """row: K1-LEDGER-1, K1-LEDGER-BUG"""
    run = completed()
    root = run.machine._state.roots[1]
    root.delivered[root.plan.exits.index(exit_)] -= 1
    with pytest.raises(KernelBug, match="items: the run completed, but ExitCounts"):
        run.machine.report()
