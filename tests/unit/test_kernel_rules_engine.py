"""The kernel, one rule a test, by hand: pairs, loops and control events.

kernel.md §1, the rows of `Zip`, `Cross`, `Loop` and of control edges.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from by_hand import Hand

import nightwarden as nw
from nightwarden.kernel.causes import Absent, Carried, Kind
from nightwarden.kernel.effects import Answer, Escalate, Halt, Pause, Warn, Widen
from nightwarden.kernel.state import Gathered
from nightwarden.kernel.stimuli import ControlEnded, ControlSent, RunCancelled
from nightwarden.spec.build import Builder
from nightwarden.spec.where import control_root
from nightwarden.verdict import DecidedBy, EndStream, Fail, Retry, Skip, Substitute


@nw.node(type="rules.Items")
async def items(x: object = None) -> AsyncIterator[object]:
    yield x


@nw.node(type="rules.Step")
async def step(x: object = None) -> object:
    return x


@nw.node(type="rules.Safe", retry_safe=True)
async def safe(x: object = None) -> object:
    return x


@nw.node(type="rules.Listed")
async def listed(x: nw.Collect[object]) -> object:
    return x


@nw.node(type="rules.Both")
async def both(x: nw.Stream[object], y: nw.Collect[object]) -> object:
    return x


@nw.node(type="rules.Condition")
async def holds(x: object) -> bool:
    return bool(x)


def begun(draw: Callable[[Builder], None], **settings: object) -> Hand:
    with nw.workflow("rules") as w:
        draw(w)
    run = Hand(w.build(), **settings)
    run.start()
    return run


# -- Zip --


def zipped(w: Builder) -> None:
    a, b = w.add(items, id="a"), w.add(items, id="b")
    each = w.add(step, id="each", x=b)
    pair = w.add("flow.Zip", id="zip", left=a, right=each)
    w.add(step, id="left", x=pair.slot("left"))
    w.add(step, id="right", x=pair.slot("right"))
    w.add(step, id="index", x=pair.slot("index"))


def pairs(run: Hand) -> dict[tuple[int, ...], tuple[object, ...]]:
    left, right = run.ran("left"), run.ran("right")
    return {at: (*left[at], *right[at], *run.ran("index")[at]) for at in left if at in right}


def test_zip_pairs_items_of_equal_number_whatever_comes_first() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    run.emits("a", "a0", "a1")
    run.emits("b", 0, 1)
    run.returns("each", 1, output="b1")
    assert pairs(run) == {}
    run.returns("each", 0, output="b0")
    assert pairs(run) == {(0,): ("a0", "b0", 0), (1,): ("a1", "b1", 1)}


@pytest.mark.parametrize("lost", [True, False])
def test_a_pair_lacks_what_either_side_lacks_and_the_next_keeps_its_number(*, lost: bool) -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    run.emits("a", "a0", "a1")
    run.emits("b", 0, 1)
    run.returns("each", 1, output="b1")
    if lost:
        run.fails("each", 0)
        run.decides(Skip())
    else:
        run.returns("each", 0, nothing=1)
    assert run.kind("left", 0) is (Kind.LOST if lost else Kind.NOT_TAKEN)
    assert pairs(run) == {(1,): ("a1", "b1", 1)}


@pytest.mark.parametrize("longer", ["a", "b"])
def test_unequal_sides_are_a_failure_that_names_them(longer: str) -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    for name in "ab":
        run.emits(name, *range(3 if name == longer else 2))
        run.returns(name)
    for item in range(3 if longer == "b" else 2):
        run.returns("each", item)
    (escalation,) = run.of(Escalate)
    sides = {"a": ("right", "left"), "b": ("left", "right")}[longer]
    assert f"{sides[0]} ended after 2 items, {sides[1]} has more" in escalation.detail
    assert escalation.signature == "zip:unequal"
    assert [str(a) for a in escalation.allowed] == ["end_stream", "fail"]
    run.decides(EndStream())
    assert len(pairs(run)) == 2


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_what_one_side_has_beyond_an_early_end_is_lost_to_it(shorter: str) -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    run.emits(shorter, 0)
    run.fails(shorter)
    run.decides(EndStream())
    other = "ab".replace(shorter, "")
    run.emits(other, 0, 1)
    for item in range(1 if shorter == "b" else 2):
        run.returns("each", item)
    run.returns(other)
    assert len(pairs(run)) == 1
    for name in ("left", "right", "index"):
        run.returns(name, 0)
    assert (run.root(other).kept, len(run.root(other).missing)) == (1, 1)
    assert run.root("zip").marks == {"early": 1}
    assert run.status() == "completed"


def test_pairs_end_when_both_sides_do() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    run.emits("a", 0)
    run.emits("b", 0)
    run.returns("each", 0)
    for name in "ab":
        run.returns(name)
    assert run.root("zip").marks == {"closed": 1}
    assert (run.node("zip").started, run.node("zip").succeeded) == (1, 1)
    for name in ("left", "right", "index"):
        run.returns(name, 0)
    assert run.status() == "completed"


def test_pairs_of_a_side_that_ended_early_end_early_too() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(zipped)
    run.emits("a", 0)
    run.emits("b", 0)
    run.returns("each", 0)
    run.returns("b")
    run.fails("a")
    run.decides(EndStream())
    assert len(pairs(run)) == 1
    assert run.root("zip").marks == {"early": 1}


def test_a_pair_that_lacks_both_sides_names_both_causes() -> None:
    """row: K1-FAN-ZIP, K1-CAUSES"""

    def drawn(w: Builder) -> None:
        a = w.add(step, id="one", x=w.add(items, id="a"))
        b = w.add(step, id="two", x=w.add(items, id="b"))
        pair = w.add("flow.Zip", id="zip", left=a, right=b)
        w.add(step, id="use", x=pair.slot("left"))

    run = begun(drawn)
    run.emits("a", 0)
    run.emits("b", 0)
    run.returns("one", 0, nothing=1)
    run.fails("two", 0)
    run.decides(Skip())
    found = run.settled("zip", "left")[0,]
    assert isinstance(found, Absent)
    assert found.kind is Kind.LOST
    assert [c.node_id for c in run.causes(found)] == ["one", "two"]


def test_a_cancel_ends_what_the_kernel_runs_itself() -> None:
    """row: S5-CANCEL"""
    run = begun(zipped)
    run.emits("a", 0)
    run.emits("b", 0)
    run.returns("each", 0)
    run.tell(RunCancelled())
    assert run.node("zip").cancelled == 1
    assert "zip" not in {c.node.plan.id for c in run.machine._state.calls.values()}


# -- Cross --


def crossed(w: Builder) -> None:
    a, b = w.add(items, id="a"), w.add(items, id="b")
    pair = w.add("flow.Cross", id="cross", left=a, right=w.add(step, id="each", x=b), limit=5)
    w.add(step, id="left", x=pair.slot("left"))
    w.add(step, id="right", x=pair.slot("right"))
    w.add(step, id="index", x=pair.slot("index"))


def test_cross_pairs_each_with_each_and_numbers_them_by_the_left_side() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(crossed)
    run.emits("a", "x", "y")
    run.emits("b", 0, 1)
    run.returns("each", 1, output="1")
    run.returns("b")
    assert pairs(run) == {}
    run.returns("each", 0, output="0")
    assert pairs(run) == {
        (0,): ("x", "0", 0),
        (1,): ("x", "1", 1),
        (2,): ("y", "0", 2),
        (3,): ("y", "1", 3),
    }


def test_cross_keeps_the_numbers_of_pairs_that_are_lost() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(crossed)
    run.emits("a", "x", "y")
    run.emits("b", 0, 1)
    run.returns("b")
    run.fails("each", 0)
    run.decides(Skip())
    run.returns("each", 1, output="1")
    assert pairs(run) == {(1,): ("x", "1", 1), (3,): ("y", "1", 3)}
    assert [run.kind("left", i) for i in (0, 2)] == [Kind.LOST, Kind.LOST]


def test_more_pairs_than_the_limit_are_a_failure() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(crossed)
    run.emits("a", "x", "y", "z")
    run.emits("b", 0, 1)
    run.returns("b")
    run.returns("each", 0)
    run.returns("each", 1)
    assert "more than 5 pairs" in run.of(Escalate)[-1].detail
    assert len(pairs(run)) == 5


def test_cross_waits_when_its_window_is_full() -> None:
    """row: K2-PRESSURE"""
    run = begun(crossed, window=2)
    run.emits("a", "x")
    run.emits("b", 0)
    run.returns("each", 0)
    run.emits("b", 1)
    run.returns("each", 1)
    run.emits("b", 2)
    run.returns("each", 2)
    run.returns("b")
    assert len(pairs(run)) == 2
    for name in ("left", "right", "index"):
        run.returns(name, 0)
    assert len(pairs(run)) == 3


# -- Loop --


def looping(w: Builder) -> None:
    start = w.add(step, id="start")
    loop = w.add("flow.Loop", id="loop", initial=start, max_iterations=3)
    body = w.add(step, id="body", x=loop.slot("value"))
    condition = w.add(holds, id="again", x=body)
    w.feed(loop, next=body, condition=condition)
    w.add(step, id="end", x=loop.slot("done"))
    w.add(listed, id="all", x=loop.slot("value").collect())


def test_a_loop_repeats_its_body_until_the_condition_is_false() -> None:
    """row: K1-FAN-LOOP"""
    run = begun(looping)
    run.returns("start", output=10)
    assert run.ran("body") == {(0,): (10,)}
    run.returns("body", 0, output=11)
    assert len(run.ran("body")) == 1
    run.returns("again", 0, output=True)
    assert run.ran("body") == {(0,): (10,), (1,): (11,)}
    run.returns("body", 1, output=12)
    run.returns("again", 1, output=False)
    assert run.ran("end") == {(): (12,)}
    ((given,),) = run.ran("all").values()
    assert isinstance(given, Gathered)
    assert given.values == [10, 11]
    assert not run.of(Warn)


def test_a_loop_ends_at_its_limit_and_says_so() -> None:
    """row: K1-FAN-LOOP"""
    run = begun(looping)
    run.returns("start", output=0)
    for k in range(3):
        run.returns("body", k, output=k + 1)
        run.returns("again", k, output=True)
    assert sorted(run.ran("body")) == [(0,), (1,), (2,)]
    assert run.ran("end") == {(): (3,)}
    assert [w.message for w in run.of(Warn)] == [
        "stopped at its limit of 3 iterations; the condition still held"
    ]


def test_a_loop_without_a_condition_runs_so_many_times() -> None:
    """row: K1-FAN-LOOP"""

    def counted(w: Builder) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.add(step, id="start"), max_iterations=2)
        w.feed(loop, next=w.add(step, id="body", x=loop.slot("value")))
        w.add(step, id="end", x=loop.slot("done"))

    run = begun(counted)
    run.returns("start")
    run.returns("body", 0)
    run.returns("body", 1)
    assert sorted(run.ran("body")) == [(0,), (1,)]
    assert run.ran("end") == {(): ("body(2)",)}
    assert not run.of(Warn)


@pytest.mark.parametrize("lost", [True, False])
def test_an_iteration_that_leads_nowhere_ends_the_loop(*, lost: bool) -> None:
    """row: K1-FAN-LOOP"""
    run = begun(looping)
    run.returns("start", output=0)
    run.returns("body", 0, output=1)
    run.returns("again", 0, output=True)
    if lost:
        run.fails("body", 1)
        run.decides(Skip())
    else:
        run.returns("body", 1, nothing=1)
    assert run.kind("end") is (Kind.LOST if lost else Kind.NOT_TAKEN)
    ((given,),) = run.ran("all").values()
    assert isinstance(given, Gathered)
    assert given.values == [0, 1]
    assert run.root("loop").marks == {"early" if lost else "closed": 1}


@pytest.mark.parametrize("missing", ["body", "again"])
def test_a_loop_ends_where_either_of_its_ways_back_is_absent(missing: str) -> None:
    """row: K1-FAN-LOOP"""

    def drawn(w: Builder) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.add(step, id="start"))
        body = w.add(step, id="body", x=loop.slot("value"))
        again = w.add(holds, id="again", x=loop.slot("value"))
        w.feed(loop, next=body, condition=again)
        w.add(step, id="end", x=loop.slot("done"))

    run = begun(drawn)
    run.returns("start")
    for name in ("body", "again"):
        run.returns(name, 0, **({"nothing": 1} if name == missing else {"output": True}))
    assert run.kind("end") is Kind.NOT_TAKEN
    assert sorted(run.ran("body")) == [(0,)]
    assert run.status() == "completed"


def test_a_loop_that_lacks_both_its_ways_back_names_both_causes() -> None:
    """row: K1-FAN-LOOP, K1-CAUSES"""

    def drawn(w: Builder) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.add(step, id="start"))
        body = w.add(step, id="body", x=loop.slot("value"))
        again = w.add(holds, id="again", x=loop.slot("value"))
        w.feed(loop, next=body, condition=again)
        w.add(step, id="end", x=loop.slot("done"))

    run = begun(drawn)
    run.returns("start")
    run.returns("body", 0, nothing=1)
    run.fails("again", 0)
    run.decides(Skip())
    found = run.settled("loop", "done")[()]
    assert isinstance(found, Absent)
    assert found.kind is Kind.LOST
    assert sorted(c.node_id for c in run.causes(found)) == ["again", "body"]


def test_a_failed_iteration_fails_what_comes_of_the_loop() -> None:
    """row: K1-FAN-LOOP, K3-KEEP-GOING"""
    run = begun(looping, keep_going=True)
    run.returns("start", output=0)
    run.fails("body", 0)
    run.decides(Fail(), by=DecidedBy.DEFAULT)
    assert (run.kind("end"), run.kind("all")) == (Kind.FAILED, Kind.FAILED)


def test_a_loop_carries_what_its_iterations_have_survived() -> None:
    """row: K1-CAUSES, K1-FAN-LOOP"""
    run = begun(looping)
    run.returns("start", output=0)
    run.fails("body", 0, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    run.returns("again", 0, output=False)
    run.returns("end", output="e")
    found = run.settled("end")[()]
    assert isinstance(found, Carried)
    assert [c.node_id for c in run.causes(found)] == ["body"]


# -- control --


def controlled(w: Builder) -> None:
    once = w.add(step, id="once")
    tool = w.add("rules.Step", id="tool", x=once)
    one = w.add(step, id="one", controls=[tool])
    w.add(step, id="two", controls=[tool])
    w.add(step, id="use", x=tool)
    w.add(step, id="end", x=one)


def send(run: Hand, caller: str, event: int, *, awaits: bool = False, **overrides: object) -> int:
    call = run.calls[caller, ()]
    run.tell(ControlSent(call, run._plan("tool").index, event, overrides, awaits))
    return call


def test_a_controlled_step_runs_once_an_event_with_its_overrides() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    assert not run.ran("tool")
    send(run, "one", 1, x=7)
    assert not run.ran("tool")
    run.returns("once", output="data")
    send(run, "two", 1, x=8)
    assert run.ran("tool") == {(0,): ({"x": 7}, "data"), (1,): ({"x": 8}, "data")}
    run.returns("tool", 1)
    assert set(run.ran("use")) == {(1,)}


def test_an_answer_goes_to_the_caller_that_asked_and_to_nobody_else() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("once")
    one = send(run, "one", 5, awaits=True)
    two = send(run, "two", 6, awaits=True)
    send(run, "two", 7)
    run.returns("tool", 2)
    assert not run.of(Answer)
    run.returns("tool", 1, output="second")
    assert run.of(Answer) == [Answer(two, 6, {"output": "second"})]
    run.returns("tool", 0, output="first")
    assert run.of(Answer)[1:] == [Answer(one, 5, {"output": "first"})]


def test_a_caller_is_released_by_a_skip_too() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("once")
    send(run, "one", 5, awaits=True)
    run.fails("tool", 0)
    run.decides(Skip())
    (answer,) = run.of(Answer)
    assert (answer.event, answer.outputs) == (5, None)
    assert answer.error == "it, or what it needs, was given up"


def test_a_caller_is_told_of_a_repair() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("once")
    send(run, "one", 5, awaits=True)
    run.fails("tool", 0, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    assert [a.outputs for a in run.of(Answer)] == [{"output": 1}]


def test_a_caller_is_released_when_the_run_ends() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("once")
    run.tell(RunCancelled())
    call = send(run, "one", 5, awaits=True)
    assert [(a.call, a.outputs, a.error) for a in run.of(Answer)] == [
        (call, None, "the run is ending")
    ]


def test_who_asks_while_the_run_stops_is_cancelled_and_gets_no_answer_to_go_on_with() -> None:
    """row: K1-FAN-CONTROL, K3-STOP"""
    run = begun(controlled)
    run.fails("once")
    run.decides(Fail())
    call = send(run, "one", 5, awaits=True)
    assert (run.of(Answer), [(e.call, e.gently) for e in run.of(Halt)]) == ([], [(call, False)])


def test_an_event_sent_while_the_run_stops_is_due_and_starts_nothing() -> None:
    """row: K1-FAN-CONTROL, K3-STOP

    The sender drains and its result is kept: an event that was dropped would never be sent again.
    """
    run = begun(controlled)
    run.fails("once")
    run.decides(Fail())
    send(run, "one", 5)
    run.returns("one")
    run.returns("two")
    assert not run.ran("tool")
    assert (run.node("tool").due, run.node("tool").unrun) == (1, 1)
    assert run.status() == "failed"


def test_a_stop_cancels_who_waits_for_an_answer_and_lets_who_has_it_finish() -> None:
    """row: K1-FAN-CONTROL, K3-STOP"""

    def drawn(w: Builder) -> None:
        tool = w.add(step, id="tool")
        w.add(step, id="one", controls=[tool])
        w.add(step, id="two", controls=[tool])
        w.add(step, id="bad")

    run = begun(drawn)
    send(run, "one", 1, awaits=True)
    waiting = send(run, "two", 1, awaits=True)
    run.returns("tool", 0)
    run.fails("bad")
    run.decides(Fail())
    assert [(e.call, e.gently) for e in run.of(Halt)] == [(waiting, False)]


def test_what_a_caller_says_after_its_end_changes_nothing() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("one")
    over = run.calls["one", ()]
    assert run.tell(ControlEnded(over, run._plan("tool").index)) == []
    send(run, "one", 5, awaits=True)
    assert [a.outputs for a in run.of(Answer)] == [None]


def test_a_caller_that_has_its_answer_no_longer_counts_as_waiting() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""

    def drawn(w: Builder) -> None:
        many = w.add(items, id="many")
        tool = w.add("rules.Step", id="tool")
        w.add(step, id="one", controls=[tool])
        w.add(both, id="both", x=many, y=many.collect())

    run = begun(drawn, window=2)
    send(run, "one", 1, awaits=True)
    run.returns("tool", 0)
    run.returns("one")
    run.emits("many", 0, 1)
    assert [e.window for e in run.of(Widen)] == [4]


def test_the_events_are_over_when_every_controller_is() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(controlled)
    run.returns("once")
    send(run, "one", 1)
    run.returns("one")
    assert run.root(control_root("tool")).marks == {"open": 1}
    run.tell(ControlEnded(run.calls["two", ()], run._plan("tool").index))
    assert run.root(control_root("tool")).marks == {"closed": 1}
    call = send(run, "two", 2, awaits=True)
    assert "takes no more events from two" in run.of(Answer)[-1].error
    assert run.of(Answer)[-1].call == call


def test_events_that_nobody_could_send_are_absent() -> None:
    """row: K1-FAN-CONTROL"""

    def drawn(w: Builder) -> None:
        first = w.add(step, id="first")
        tool = w.add(step, id="tool")
        w.add(step, id="one", x=first, controls=[tool])
        w.add(listed, id="all", x=tool.collect())

    run = begun(drawn)
    run.fails("first")
    run.decides(Skip())
    assert run.root(control_root("tool")).marks == {"absent": 1}
    assert run.kind("all") is Kind.LOST
    assert run.status() == "completed"


def test_a_call_that_waits_for_what_depends_on_itself_is_refused() -> None:
    """row: K1-FAN-CONTROL"""

    def drawn(w: Builder) -> None:
        once = w.add(step, id="once")
        tool = w.add("rules.Step", id="tool", x=w.add(step, id="far", x=once))
        w.add(step, id="one", x=once, controls=[tool])

    run = begun(drawn)
    run.returns("once")
    send(run, "one", 1, awaits=True)
    assert not run.of(Answer)
    assert isinstance(run.machine.pending(), list)
    run.returns("far")
    run.returns("tool", 0)
    assert len(run.of(Answer)) == 1


def test_what_a_caller_has_lived_through_its_events_carry() -> None:
    """row: K1-CAUSES"""

    def drawn(w: Builder) -> None:
        once = w.add(step, id="once")
        tool = w.add("rules.Step", id="tool")
        w.add(step, id="one", x=once, controls=[tool])
        w.add(step, id="use", x=tool)

    run = begun(drawn)
    run.fails("once", has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    send(run, "one", 1)
    run.returns("tool", 0, output="t")
    found = run.settled("tool")[0,]
    assert isinstance(found, Carried)
    assert [c.node_id for c in run.causes(found)] == ["once"]
    assert not isinstance(found, Absent)
    assert not run.of(Pause)


@pytest.mark.parametrize("how", ["its input was repaired", "it was repaired", "it said so first"])
def test_that_there_are_no_more_events_carries_what_their_senders_have_lived_through(
    how: str,
) -> None:
    """row: K1-CAUSES. An empty list of events is a result of their senders as well."""

    def drawn(w: Builder) -> None:
        once = w.add(step, id="once")
        tool = w.add(step, id="tool")
        w.add(step, id="one", x=once, controls=[tool])
        w.add(listed, id="all", x=tool.collect())

    run = begun(drawn)
    repaired = "one" if how == "it was repaired" else "once"
    if repaired == "one":
        run.returns("once")
    run.fails(repaired, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    if how == "it said so first":
        run.tell(ControlEnded(run.calls["one", ()], run._plan("tool").index))
    elif repaired == "once":
        run.returns("one")
    run.returns("all", output=[])
    found = run.settled("all")[()]
    assert isinstance(found, Carried)
    assert [c.node_id for c in run.causes(found)] == [repaired]


def test_a_loop_that_is_controlled_runs_once_an_event_with_its_overrides() -> None:
    """row: K1-FAN-CONTROL, K1-FAN-LOOP"""

    def drawn(w: Builder) -> None:
        start = w.add(step, id="start")
        tool = w.add("flow.Loop", id="tool", initial=start, max_iterations=3)
        w.feed(tool, next=w.add(step, id="body", x=tool.slot("value")))
        w.add(step, id="one", controls=[tool])

    run = begun(drawn)
    run.returns("start", output=10)
    call = send(run, "one", 4, awaits=True, max_iterations=1)
    send(run, "one", 5, initial=20, max_iterations=2)
    assert run.ran("body") == {(0, 0): (10,), (1, 0): (20,)}
    run.returns("body", 0, 0, output=11)
    assert run.of(Answer) == [Answer(call, 4, {"done": 11})]
    run.returns("body", 1, 0, output=21)
    assert run.ran("body")[1, 1] == (21,)
    run.returns("body", 1, 1, output=22)
    run.returns("one")
    assert run.status() == "completed"


def test_who_asks_twice_at_once_is_one_that_waits() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""

    def drawn(w: Builder) -> None:
        many = w.add(items, id="many")
        tool = w.add("rules.Step", id="tool", x=w.add(listed, id="all", x=many.collect()))
        w.add(step, id="one", controls=[tool])
        w.add(both, id="both", x=many, y=many.collect())

    run = begun(drawn, window=2)
    send(run, "one", 1, awaits=True)
    send(run, "one", 2, awaits=True)
    run.emits("many", 0, 1)
    assert [e.window for e in run.of(Widen)] == [4]


def test_an_answer_to_an_attempt_that_is_over_is_given_to_nobody() -> None:
    """row: K1-FAN-CONTROL"""

    def drawn(w: Builder) -> None:
        w.add(safe, id="one", controls=[w.add(step, id="tool")])

    run = begun(drawn)
    send(run, "one", 1, awaits=True)
    run.fails("one")
    run.decides(Retry())
    run.waits()
    again = send(run, "one", 2, awaits=True)
    run.returns("tool", 0, output="late")
    assert not run.of(Answer)
    run.returns("tool", 1, output="its own")
    assert run.of(Answer) == [Answer(again, 2, {"output": "its own"})]
    run.returns("one")
    assert run.status() == "completed"
