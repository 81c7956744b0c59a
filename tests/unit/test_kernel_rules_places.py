"""The kernel, one rule a test, by hand: who holds a place, what waits, and what is counted.

kernel.md §1 and §2. Each of these rules was once broken on purpose and no other test minded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from by_hand import Hand
from reference.small import collect, fan, node, step, stream, workflow

import nightwarden as nw
from nightwarden.kernel.allowed import retry_delay_s
from nightwarden.kernel.causes import Absent, Kind
from nightwarden.kernel.effects import (
    Apply,
    Conclude,
    Escalate,
    Feed,
    Halt,
    Pause,
    Resume,
    Warn,
    Widen,
)
from nightwarden.kernel.stimuli import ControlSent, Halted, Parked, RunCancelled, Unbegun
from nightwarden.spec.build import Builder
from nightwarden.verdict import DecidedBy, EndStream, Fail, OutcomeKind, Retry, Skip, Substitute


@nw.node(type="places.Items")
async def items(x: object = None) -> AsyncIterator[object]:
    yield x


@nw.node(type="places.Step")
async def once(x: object = None) -> object:
    return x


@nw.node(type="places.Safe", retry_safe=True)
async def safe(x: object = None) -> object:
    return x


@nw.node(type="places.Listed")
async def listed(x: nw.Collect[object]) -> object:
    return x


@nw.node(type="places.Holds")
async def holds(x: object) -> bool:
    return bool(x)


@nw.node(type="places.Both")
async def both(x: nw.Stream[object], y: nw.Collect[object]) -> object:
    return x


def begun(draw: Callable[[Builder], None], **settings: object) -> Hand:
    with nw.workflow("places") as w:
        draw(w)
    run = Hand(w.build(), **settings)
    run.start()
    return run


def forfeit(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


# -- what waits --


def one_caller_at_a_time(w: Builder) -> None:
    many, each = w.add(items, id="many"), w.add(items, id="each")
    tool = w.add(once, id="tool", x=w.add(listed, id="all", x=many.collect()))
    w.add(once, id="one", x=each, controls=[tool], concurrency=1)
    w.add(both, id="both", x=many, y=many.collect())


def ask(run: Hand, caller: str, *lineage: int) -> None:
    call, tool = run.calls[caller, lineage], run._plan("tool").index
    run.tell(ControlSent(call, tool, 1, {}, awaits=True))


def test_a_window_gives_where_all_wait_for_an_answer_or_for_the_place_of_one_who_does() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""
    run = begun(one_caller_at_a_time, window=3)
    run.emits("each", 0, 1)
    run.returns("each")
    ask(run, "one", 0)
    run.emits("many", 0, 1, 2)
    assert [e.window for e in run.of(Widen)] == [6]
    run.returns("many")
    run.returns("all")
    run.returns("tool", 0, 0)
    assert set(run.ran("one")) == {(0,)}
    run.returns("one", 0)
    assert set(run.ran("one")) == {(0,), (1,)}


def test_no_window_gives_while_a_call_is_at_work_that_others_wait_behind() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""

    def drawn(w: Builder) -> None:
        one_caller_at_a_time(w)
        w.add(once, id="busy")

    run = begun(drawn, window=3)
    run.emits("each", 0, 1)
    run.returns("each")
    ask(run, "one", 0)
    run.emits("many", 0, 1, 2)
    assert not run.of(Widen)
    run.returns("busy")
    assert [e.window for e in run.of(Widen)] == [6]


def test_a_caller_that_asks_again_at_its_next_attempt_waits_again() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""

    def drawn(w: Builder) -> None:
        many = w.add(items, id="many")
        tool = w.add(once, id="tool", x=w.add(listed, id="all", x=many.collect()))
        w.add(safe, id="one", controls=[tool])
        w.add(both, id="both", x=many, y=many.collect())

    run = begun(drawn, window=2)
    ask(run, "one")
    run.fails("one")
    run.decides(Retry())
    run.waits()
    ask(run, "one")
    run.emits("many", 0, 1)
    assert [e.window for e in run.of(Widen)] == [4]


# -- who holds a place --


def read_one_at_a_time() -> Hand:
    read = node("read", {"x": stream("each")}, concurrency=1)
    run = Hand(
        workflow(fan("outer"), fan("items", x="outer"), step("each", x="items"), read),
        keep_going=True,
    )
    run.start()
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("items", "a", "b", at=(outer,))
        run.returns("each", outer, 0)
    return run


def test_a_call_that_is_away_and_told_to_end_gives_up_no_place_twice() -> None:
    """row: K3-KEEP-GOING"""
    run = read_one_at_a_time()
    assert set(run.ran("read")) == {(0,)}
    run.tell(Parked(run.calls["read", (0,)], away=True))
    assert set(run.ran("read")) == {(0,), (1,)}
    forfeit(run, "each", 0, 1)
    assert [e.call for e in run.of(Halt)] == [run.calls["read", (0,)]]
    run.tell(Halted(run.calls["read", (0,)]))
    assert set(run.ran("read")) == {(0,), (1,)}
    run.returns("read", 1)
    assert set(run.ran("read")) == {(0,), (1,), (2,)}


# -- what is counted --


def test_a_reader_that_failure_reaches_before_it_began_is_pruned_and_was_never_started() -> None:
    """row: K1-LEDGER-4, K3-KEEP-GOING"""
    run = read_one_at_a_time()
    forfeit(run, "each", 0, 1)
    run.tell(Unbegun(run.calls["read", (0,)]))
    found = run.node("read")
    assert (found.started, found.pruned, found.pruned_lost, found.cancelled) == (1, 1, 1, 0)
    assert run.kind("read", 0) is Kind.FAILED


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_an_item_that_two_have_given_up_is_charged_to_the_one_first_on_its_way(order: str) -> None:
    """row: K1-LEDGER-CHARGE"""
    run = Hand(workflow(fan("items"), step("a", x="items"), step("b", x="items")))
    run.start()
    run.emits("items", 0)
    for name in order:
        run.fails(name, 0)
        run.decides(Skip())
    (missing,) = run.root("items").missing
    assert run.machine.cause(missing.cause).node_id == "a"


@pytest.mark.parametrize("failing", ["a", "b"])
def test_pairs_end_as_failed_where_a_side_has_failed(failing: str) -> None:
    """row: K1-FAN-ZIP, K3-KEEP-GOING"""

    def drawn(w: Builder) -> None:
        pair = w.add("flow.Zip", id="zip", left=w.add(items, id="a"), right=w.add(items, id="b"))
        w.add(once, id="use", x=pair.slot("index"))

    run = begun(drawn, keep_going=True)
    for name in "ab":
        run.emits(name, 0)
    forfeit(run, failing)
    run.returns("ab".replace(failing, ""))
    run.returns("use", 0)
    assert run.root("zip").marks == {"failed": 1}


def test_a_loop_that_no_one_bounds_ends_after_a_thousand_iterations_and_says_so() -> None:
    """row: K1-FAN-LOOP"""

    def drawn(w: Builder) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.add(once, id="start"))
        body = w.add(once, id="body", x=loop.slot("value"))
        w.feed(loop, next=body, condition=w.add(holds, id="more", x=body))
        w.add(once, id="end", x=loop.slot("done"))

    run = begun(drawn)
    run.returns("start", output=0)
    for i in range(1000):
        run.returns("body", i, output=i + 1)
        run.returns("more", i, output=True)
    assert run.ran("end") == {(): (1000,)}
    assert [w.message for w in run.of(Warn)] == [
        "stopped at its limit of 1000 iterations; the condition still held"
    ]


def test_a_fan_out_that_fails_while_it_is_paused_is_not_told_to_go_on() -> None:
    """row: K2-PRESSURE, K1-VERDICT-END-STREAM"""
    run = Hand(workflow(fan("items"), step("each", x="items")), window=2)
    run.start()
    run.emits("items", 0, 1)
    assert len(run.of(Pause)) == 1
    run.fails("items")
    run.decides(EndStream())
    for item in (0, 1):
        run.returns("each", item)
    assert not run.of(Resume)
    assert run.status() == "completed"


def read_two() -> Hand:
    """A reader of two streams under each of two items, one at a time."""
    read = node("read", {"x": stream("a"), "y": stream("b")}, concurrency=1)
    run = Hand(
        workflow(
            fan("outer"),
            fan("items", x="outer"),
            step("a", x="items"),
            step("b", x="items"),
            read,
        ),
        keep_going=True,
    )
    run.start()
    run.emits("outer", 0, 1)
    for outer in (0, 1):
        run.emits("items", 0, 1, at=(outer,))
        for name in "ab":
            run.returns(name, outer, 0)
    return run


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("outer", [0, 1])
def test_what_a_reader_fails_of_is_all_that_failed_in_its_streams(order: str, outer: int) -> None:
    """row: K1-CAUSES, K3-KEEP-GOING"""
    run = read_two()
    assert set(run.ran("read")) == {(0,)}
    for name in order:
        forfeit(run, name, outer, 1)
    if outer:
        run.returns("read", 0)
    else:
        run.halted("read", 0)
    found = run.settled("read")[outer,]
    assert isinstance(found, Absent)
    assert [c.node_id for c in run.causes(found)] == ["a", "b"]


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_pairing_that_fails_is_behind_what_was_lost_on_its_way(side: str) -> None:
    """row: K1-CAUSES, K1-FAN-ZIP"""

    def drawn(w: Builder) -> None:
        a, b = w.add(items, id="a"), w.add(items, id="b")
        left, right = w.add(once, id="each_a", x=a), w.add(once, id="each_b", x=b)
        pair = w.add("flow.Zip", id="zip", left=left, right=right)
        w.add(once, id="use", x=pair.slot("index"))

    run = begun(drawn)
    run.emits("a", 0)
    run.emits("b", 0, 1)
    run.fails(f"each_{side}", 0)
    run.decides(Skip())
    run.returns(f"each_{'ab'.replace(side, '')}", 0)
    run.returns("each_b", 1)
    for name in "ab":
        run.returns(name)
    lost, unequal = run.of(Escalate)
    assert unequal.signature == "zip:unequal"
    assert unequal.caused_by == (lost.number,)


def test_a_retry_that_waits_for_its_place_never_runs_in_a_run_that_stops() -> None:
    """row: K1-LEDGER-5, K3-STOP"""
    each = node("each", {"x": "items"}, retry_safe=True, concurrency=1)
    run = Hand(workflow(fan("items"), each, step("other")))
    run.start()
    run.emits("items", 0, 1)
    run.fails("each", 0)
    run.decides(Retry())
    assert set(run.ran("each")) == {(0,), (1,)}
    run.waits()
    run.tell(RunCancelled("by hand"))
    assert [c.kind for c in run.of(Conclude)] == [OutcomeKind.RETRY_NEVER_RAN]
    for name, lineage in (("each", (1,)), ("other", ()), ("items", ())):
        run.halted(name, *lineage)
    assert run.status() == "cancelled"
    found = run.node("each")
    assert (found.failed, found.cancelled, found.unrun) == (1, 1, 0)
    assert (found.retries_decided, found.retries_run) == (1, 0)
    assert not [w for w in run.machine.pending() if "queued" in w]


def test_a_run_that_is_over_cannot_be_cancelled() -> None:
    """row: K3-STATUS"""
    run = Hand(workflow(step("a")))
    run.start()
    run.returns("a")
    assert run.status() == "completed"
    assert list(run.tell(RunCancelled("late"))) == []
    assert run.machine.report().status == "completed"


def test_what_a_reader_is_shown_of_two_edges_has_the_number_of_its_item() -> None:
    """row: K2-COST"""
    run = Hand(
        workflow(fan("items", frames=("p", "q")), step("read", x=stream("items.p", "items.q")))
    )
    run.start()
    for i in range(3):
        run.emits("items", {"p": f"p{i}", "q": f"q{i}"})
    (fed,) = [e for e in run.asks("read", "x", ahead=9) if isinstance(e, Feed)]
    assert (fed.index, fed.value) == (0, "p0")
    assert list(fed.shown) == [(0, "q0"), (1, "p1"), (1, "q1"), (2, "p2"), (2, "q2")]


# -- what is answered --


def test_what_is_refused_besides_a_retry_is_refused_for_its_own_reason() -> None:
    """row: S1-CREDIT-KERNEL"""
    run = Hand(workflow(step("a")))
    run.start()
    run.fails("a")
    run.decides(EndStream())
    assert refusal(run) == "end_stream was refused: only skip, stop may be answered here"


def refusal(run: Hand) -> str:
    (applied,) = run.of(Apply)
    assert isinstance(applied.decision.verdict, Fail)
    return applied.decision.verdict.reason


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, "the step had no value at hand to be repaired"),
        (
            {"has_candidate": True, "checkable": False},
            "the step declares no type of its output that a repair could be held against",
        ),
        ({"bad_input": True, "has_candidate": True}, "only skip, stop may be answered here"),
    ],
)
def test_a_repair_that_is_refused_says_why(facts: dict[str, bool], why: str) -> None:
    """row: S1-CREDIT-KERNEL"""
    run = Hand(workflow(step("a")))
    run.start()
    run.fails("a", **facts)
    run.decides(Substitute({"output": 1}))
    assert refusal(run) == f"repair was refused: {why}"


def test_a_reading_fan_out_that_ends_early_with_nothing_emitted_never_opened() -> None:
    """row: K1-VERDICT-NEVER-OPENED"""
    again = node("again", {"x": stream("items")}, frames=("output",), outs=())
    run = Hand(workflow(fan("items"), again, step("end", x=collect("again"))))
    run.start()
    run.emits("items", 0)
    run.fails("again")
    run.decides(EndStream())
    assert run.kind("end") is Kind.LOST
    assert run.root("again").marks == {"absent": 1}


@pytest.mark.parametrize(
    ("retry", "seconds"), [(1, 1.0), (2, 2.0), (6, 32.0), (7, 60.0), (9, 60.0)]
)
def test_a_retry_waits_twice_as_long_each_time_but_a_minute_at_most(
    retry: int, seconds: float
) -> None:
    """row: K3-DELAY"""
    assert retry_delay_s(retry, None, 0.0) == seconds / 2
    assert retry_delay_s(retry, None, 0.5) == seconds * 0.75


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (7.5, 7.5), (-3.0, 0.0)])
def test_an_error_that_says_how_long_to_wait_is_waited_for(asked: float, waited: float) -> None:
    """row: K3-DELAY"""
    assert retry_delay_s(5, asked, 0.9) == waited
