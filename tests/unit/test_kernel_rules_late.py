"""The kernel, one rule a test, by hand: what calls say that are over, or are told to end.

kernel.md §2 and §3. Facts cross orders on their way: a call may have said something before it
heard that it is over, that nobody wants more of it, or that the run stops.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import Node, collect, fan, node, safe, step, stream, workflow

from nightwarden.errors import KernelBug
from nightwarden.kernel.causes import NOT_TAKEN
from nightwarden.kernel.effects import Conclude, Feed, Halt, Status, Stop, Widen
from nightwarden.kernel.stimuli import (
    ControlEnded,
    DelayPassed,
    Emitted,
    Failed,
    Halted,
    Overspent,
    Parked,
    Read,
    Requested,
    RunCancelled,
    Stimulus,
    Succeeded,
    Suspended,
    Unbegun,
    Unparked,
)
from nightwarden.verdict import DecidedBy, Fail, OutcomeKind, Retry

NOBODY = 999


def started(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def forfeit(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


def halts(run: Hand) -> list[tuple[int, bool]]:
    return [(effect.call, effect.gently) for effect in run.of(Halt)]


def stage(name: str, source: str, *, concurrency: int | None = None) -> Node:
    """A node that reads a stream and puts items out."""
    wires = {"x": stream(source)}
    return node(name, wires, frames=("output",), outs=(), concurrency=concurrency)


# -- calls that are over --


@pytest.mark.parametrize(
    "said",
    [
        Succeeded(NOBODY, ("late",)),
        Emitted(NOBODY, ("late",)),
        Requested(NOBODY, "x"),
        Read(NOBODY, "x", 1),
        Failed(call=NOBODY),
        Suspended(NOBODY, "late"),
        Halted(NOBODY),
        Parked(NOBODY),
        Parked(NOBODY, away=True),
        Unparked(NOBODY),
        Unbegun(NOBODY),
        DelayPassed(NOBODY),
        ControlEnded(NOBODY, 0),
    ],
    ids=lambda said: type(said).__name__,
)
def test_what_a_call_says_that_is_over_changes_nothing(said: Stimulus) -> None:
    run = started(fan("items"), step("read", x=stream("items")))
    run.emits("items", "a")
    before = run.machine.report()
    assert list(run.tell(said)) == []
    assert run.machine.report() == before


def test_nothing_is_wrong_with_a_run_that_has_not_begun() -> None:
    run = Hand(workflow(step("only")))
    assert list(run.tell(Halted(NOBODY))) == []
    run.start()
    run.returns("only")
    assert run.status() == "completed"


def test_a_run_in_which_nothing_can_move_is_a_bug_with_its_story() -> None:
    """row: K1-LEDGER-BUG"""
    run = started(step("only"), step("next", x="only", y="only"))
    state = run.machine._state
    state.calls.clear()
    state.active = 0
    with pytest.raises(KernelBug, match="nothing can move, yet the run is not over") as caught:
        run.tell(Halted(NOBODY))
    assert list(caught.value.story) == ["run: 1 open"]


# -- calls that are told to end --


def told_to_end() -> Hand:
    """A stage at its one place, whose stream has failed; another one waits for the place."""
    run = started(
        fan("outer"),
        fan("items", x="outer"),
        step("each", x="items"),
        stage("again", "each", concurrency=1),
        step("use", x="again"),
        keep_going=True,
    )
    run.emits("outer", 0, 1)
    for outer in (0, 1):
        run.emits("items", 0, 1, 2, at=(outer,))
        run.returns("each", outer, 0)
    run.returns("each", 0, 1)
    run.asks("again", "x", 0, ahead=5)
    forfeit(run, "each", 0, 2)
    assert halts(run) == [(run.calls["again", (0,)], False)]
    return run


def test_a_call_that_is_told_to_end_is_fed_nothing_more() -> None:
    """row: K3-KEEP-GOING"""
    run = told_to_end()
    assert list(run.asks("again", "x", 0)) == []
    assert [effect.index for effect in run.of(Feed)] == [0]


def test_a_call_that_is_told_to_end_has_not_used_what_it_was_shown() -> None:
    """row: K3-KEEP-GOING"""
    run = told_to_end()
    run.tell(Read(run.calls["again", (0,)], "x", 1))
    run.halted("again", 0)
    found = run.exit("items", "again.x")
    assert (found.delivered, found.failed) == (1, 2)


def test_a_call_that_is_told_to_end_puts_nothing_out_any_more() -> None:
    """row: K3-KEEP-GOING"""
    run = told_to_end()
    assert list(run.emits("again", "late", at=(0,))) == []
    run.halted("again", 0)
    assert run.root("again").items == 0
    assert run.ran("use") == {}


def test_a_call_that_is_told_to_end_holds_its_place_until_it_has() -> None:
    """row: K3-KEEP-GOING"""
    run = told_to_end()
    assert list(run.tell(Parked(run.calls["again", (0,)], away=True))) == []
    assert set(run.ran("again")) == {(0,)}
    run.halted("again", 0)
    assert set(run.ran("again")) == {(0,), (1,)}


def test_nobody_wants_more_of_a_call_that_is_told_to_end() -> None:
    """row: K3-KEEP-GOING"""
    run = told_to_end()
    call = run.calls["again", (0,)]
    assert not run.machine.wanted(call)
    assert run.machine.room(call) == 1


def test_nothing_waits_for_a_call_that_was_told_to_end_while_it_waited_itself() -> None:
    """row: K2-PRESSURE, K3-KEEP-GOING"""
    run = started(
        fan("items"),
        step("each", x="items"),
        step("read", x=stream("each")),
        fan("many"),
        step("both", x=stream("many"), y=collect("many")),
        keep_going=True,
        window=3,
    )
    run.emits("items", 0, 1)
    run.returns("items")
    run.returns("each", 0)
    run.tell(Parked(run.calls["read", ()]))
    forfeit(run, "each", 1)
    run.halted("read")
    run.emits("many", 0, 1, 2)
    assert [effect.window for effect in run.of(Widen)] == [6]


# -- calls of a run that stops --


def stopping(*nodes: Node) -> Hand:
    """A run in which somebody has chosen to stop, while these are at work."""
    run = started(*nodes, step("bad"))
    run.emits("items", 0)
    return run


def stop(run: Hand) -> None:
    run.fails("bad")
    run.decides(Fail(reason="no use"), by=DecidedBy.OPERATOR)


def test_a_reader_that_asks_while_the_run_stops_is_cancelled() -> None:
    """row: K3-STOP"""
    run = stopping(fan("items"), step("read", x=stream("items")))
    stop(run)
    run.asks("read", "x")
    assert halts(run) == [(run.calls["read", ()], False)]


def test_a_call_that_begins_to_wait_while_the_run_stops_is_cancelled() -> None:
    """row: K3-STOP"""
    run = stopping(fan("items"), step("each", x="items"))
    stop(run)
    run.tell(Parked(run.calls["each", (0,)]))
    assert halts(run) == [(run.calls["each", (0,)], False)]


def test_nobody_wants_more_of_a_call_that_goes_on_while_the_run_stops() -> None:
    """row: K3-STOP"""
    run = stopping(fan("items"), step("each", x="items"))
    stop(run)
    assert halts(run) == []
    assert not run.machine.wanted(run.calls["items", ()])


def test_a_fan_out_that_ends_when_the_run_stops_was_cancelled_though_nobody_wanted_more() -> None:
    """row: K1-FAN-LEFT, K3-STOP"""
    run = stopping(fan("items"), step("read", x=stream("items")))
    run.returns("read")
    stop(run)
    run.emits("items", 1)
    assert halts(run) == [(run.calls["items", ()], True)]
    run.halted("items")
    found = run.node("items")
    assert (found.succeeded, found.cancelled) == (0, 1)
    assert run.root("items").marks == {"open": 1}


def test_what_breaks_when_a_cancel_tells_it_to_end_has_failed() -> None:
    """row: K1-LEDGER-4, K3-STATUS"""
    run = started(step("only"))
    run.tell(RunCancelled("enough"))
    run.fails("only")
    found = run.node("only")
    assert (found.failed, found.cancelled) == (1, 0)
    assert run.status() == "cancelled"


def test_a_run_that_has_spent_too_much_lets_what_runs_end_and_starts_nothing_else() -> None:
    """row: K3-STOP"""
    run = started(fan("items"), node("each", {"x": "items"}, concurrency=1))
    run.emits("items", 0, 1)
    run.returns("items")
    run.tell(Overspent("too dear"))
    assert [(e.status, e.reason) for e in run.of(Stop)] == [(Status.FAILED, "too dear")]
    assert halts(run) == []
    run.returns("each", 0)
    assert set(run.ran("each")) == {(0,)}
    assert run.status() == "failed"
    found = run.node("each")
    assert (found.succeeded, found.unrun) == (1, 1)


@pytest.mark.parametrize("ending", ["returns", "suspends", "is cancelled"])
def test_nothing_is_left_to_move_in_a_run_whose_last_call_waited(ending: str) -> None:
    """row: K3-STATUS"""
    run = started(step("far"))
    far = run.calls["far", ()]
    run.tell(Parked(far))
    if ending == "returns":
        run.returns("far")
    elif ending == "suspends":
        run.tell(Suspended(far, "later"))
    else:
        run.tell(RunCancelled("enough"))
        run.halted("far")
    assert run.status()
    assert run.machine.idle


# -- retries --


def concluded(run: Hand) -> list[OutcomeKind]:
    return [effect.kind for effect in run.of(Conclude)]


def test_a_retried_fan_out_has_got_over_its_failure_with_its_first_item() -> None:
    """row: K1-LEDGER-5"""
    items = node("items", {}, frames=("output",), outs=(), retry_safe=True)
    run = started(items, step("each", x="items"))
    run.fails("items")
    run.decides(Retry())
    run.waits()
    assert concluded(run) == []
    run.emits("items", "a")
    assert concluded(run) == [OutcomeKind.RETRIED_SUCCEEDED]
    run.emits("items", "b")
    run.returns("items")
    assert concluded(run) == [OutcomeKind.RETRIED_SUCCEEDED]


def test_a_retry_that_is_cancelled_is_concluded_like_one_that_was_cut_off() -> None:
    run = started(safe("only"))
    run.fails("only")
    run.decides(Retry())
    run.waits()
    run.tell(RunCancelled("enough"))
    assert concluded(run) == []
    run.halted("only")
    assert concluded(run) == [OutcomeKind.NEVER_RAN]
    assert run.status() == "cancelled"


# -- items told together --


def test_what_follows_from_items_told_together_keeps_their_order() -> None:
    """row: K2-COST"""
    nodes = fan("items"), step("each", x="items"), step("after", x="each")
    one_by_one, together = started(*nodes), started(*nodes)
    values = ["a", NOT_TAKEN, NOT_TAKEN, "b"]
    one_by_one.emits("items", *values)
    together.emits_together("items", *values)
    assert [repr(e) for e in together.said] == [repr(e) for e in one_by_one.said]
