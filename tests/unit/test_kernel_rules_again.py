"""The kernel, one rule a test, by hand: who goes on again, who is told to end, and how often.

kernel.md §2 and §3. Each of these rules was once broken on purpose and no other test minded.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import controlling, fan, node, safe, step, stream, workflow

from nightwarden.errors import KernelBug
from nightwarden.kernel.causes import Kind
from nightwarden.kernel.effects import (
    Conclude,
    Ended,
    EndFeed,
    Feed,
    Halt,
    Pause,
    Prune,
    Resume,
    Stop,
    Widen,
)
from nightwarden.kernel.stimuli import ControlSent, Parked, RunCancelled, Unparked
from nightwarden.verdict import DecidedBy, EndStream, Fail, OutcomeKind, Retry


def started(*nodes: object, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)  # type: ignore[arg-type]
    run.start()
    return run


def forfeit(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


def give_up(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that stops the run."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.OPERATOR)


def told_to_end(run: Hand, name: str, *lineage: int) -> list[bool]:
    """How a call was told to end each time: gently or not."""
    return [e.gently for e in run.of(Halt) if e.call == run.calls[name, lineage]]


# -- places --


def test_a_fan_out_that_goes_on_holds_its_place_again() -> None:
    """row: K2-PARKED, K2-PRESSURE"""
    inner = node("inner", {"x": "outer"}, frames=("output",), outs=(), concurrency=1)
    run = started(fan("outer"), inner, step("each", x="inner"), window=3)
    run.emits("outer", 0, 1, 2)
    run.emits("inner", "a", "b", "c", at=(0,))
    assert set(run.ran("inner")) == {(0,), (1,)}  # the first one waits, and holds no place
    run.returns("each", 0, 0)
    run.returns("each", 0, 1)
    assert [e.call for e in run.of(Resume)] == [run.calls["inner", (0,)]]
    run.returns("inner", 1)
    assert set(run.ran("inner")) == {(0,), (1,)}
    run.returns("inner", 0)
    assert set(run.ran("inner")) == {(0,), (1,), (2,)}


def test_a_reader_that_was_fed_holds_its_place_again() -> None:
    """row: K2-PARKED"""
    read = node("read", {"x": stream("inner")}, concurrency=1)
    run = started(fan("outer"), fan("inner", x="outer"), read)
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("inner", "a", at=(outer,))
    run.asks("read", "x", 0)
    run.asks("read", "x", 0)
    assert set(run.ran("read")) == {(0,), (1,)}  # the first one waits, and holds no place
    run.emits("inner", "b", at=(0,))
    assert [e.value for e in run.of(Feed)] == ["a", "b"]
    run.returns("read", 1)
    assert set(run.ran("read")) == {(0,), (1,)}
    run.returns("read", 0)
    assert set(run.ran("read")) == {(0,), (1,), (2,)}


def test_a_call_that_was_away_and_is_back_takes_its_place_once() -> None:
    """row: K3-KEEP-GOING"""
    read = node("read", {"x": stream("each")}, concurrency=1)
    run = started(
        fan("outer"), fan("items", x="outer"), step("each", x="items"), read, keep_going=True
    )
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("items", "a", "b", at=(outer,))
        run.returns("each", outer, 0)
    call = run.calls["read", (0,)]
    run.tell(Parked(call, away=True))
    run.tell(Unparked(call))
    assert set(run.ran("read")) == {(0,), (1,)}
    forfeit(run, "each", 0, 1)
    run.halted("read", 0)
    assert set(run.ran("read")) == {(0,), (1,)}
    run.returns("read", 1)
    assert set(run.ran("read")) == {(0,), (1,), (2,)}


# -- windows --


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_taken_of_one_fan_out_lets_no_other_go_on_before_there_is_room(
    *, ended: bool
) -> None:
    """row: K2-PRESSURE"""
    run = started(fan("outer"), fan("inner", x="outer"), step("each", x="inner"), window=3)
    run.emits("outer", 0, 1)
    run.emits("inner", "a", at=(0,))
    if ended:
        run.returns("inner", 0)
    run.emits("inner", "b", "c", at=(1,))
    assert [e.call for e in run.of(Pause)] == [run.calls["inner", (1,)]]
    run.returns("each", 0, 0)
    assert not run.of(Resume)
    run.returns("each", 1, 0)
    assert [e.call for e in run.of(Resume)] == [run.calls["inner", (1,)]]


def test_a_fan_out_that_is_told_to_end_is_not_told_to_go_on() -> None:
    """row: K2-PRESSURE, K3-STOP"""
    run = started(fan("items"), step("each", x="items"), step("other"), window=2)
    run.emits("items", 0, 1)
    assert len(run.of(Pause)) == 1
    give_up(run, "other")
    assert told_to_end(run, "items") == [True]
    for item in (0, 1):
        run.returns("each", item)
    assert not run.of(Resume)
    run.halted("items")
    assert run.status() == "failed"


# -- what is read --


def test_a_stream_has_ended_for_its_reader_when_the_last_item_has_come() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1)
    run.returns("items")
    run.returns("each", 0, output="a")
    run.asks("read", "x")
    run.asks("read", "x")
    assert not run.of(EndFeed)
    run.returns("each", 1, output="b")
    assert [e.value for e in run.of(Feed)] == ["a", "b"]
    run.asks("read", "x")
    assert len(run.of(EndFeed)) == 1


def test_a_reader_of_two_edges_reads_item_by_item_to_the_end_of_both() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items", frames=("p", "q")), step("read", x=stream("items.p", "items.q")))
    for item in range(2):
        run.emits("items", {"p": f"p{item}", "q": f"q{item}"})
    run.returns("items")
    for _ in range(5):
        run.asks("read", "x")
    assert [(e.index, e.value) for e in run.of(Feed)] == [
        (0, "p0"),
        (0, "q0"),
        (1, "p1"),
        (1, "q1"),
    ]
    assert len(run.of(EndFeed)) == 1


def test_what_is_shown_ahead_comes_in_the_order_of_arrival_where_that_counts() -> None:
    """row: K1-FAN-READ"""
    arriving = stream("each", by_arrival=True)
    run = started(fan("items"), step("each", x="items"), step("read", x=arriving))
    run.emits("items", 0, 1, 2)
    for item in (0, 2, 1):
        run.returns("each", item, output=item)
    (fed,) = [e for e in run.asks("read", "x", ahead=9) if isinstance(e, Feed)]
    assert (fed.index, fed.value) == (0, 0)
    assert list(fed.shown) == [(2, 2), (1, 1)]


def test_a_reader_that_has_not_begun_is_pruned_as_soon_as_something_failed_reaches_it() -> None:
    """row: K3-KEEP-GOING"""
    run = started(
        fan("items"), step("each", x="items"), step("read", x=stream("each")), keep_going=True
    )
    run.emits("items", 0)
    forfeit(run, "each", 0)
    assert [e.kind for e in run.of(Prune)] == ["failed"]
    assert run.kind("read") is Kind.FAILED
    forfeit(run, "items")
    assert run.status() == "failed"
    assert run.node("read").pruned == 1


def test_a_reader_that_waits_for_its_decision_is_not_told_to_end() -> None:
    """row: K3-KEEP-GOING"""
    run = started(
        fan("items"), step("each", x="items"), step("read", x=stream("each")), keep_going=True
    )
    run.emits("items", 0, 1)
    run.returns("each", 0)
    run.fails("read")
    forfeit(run, "each", 1)
    assert not run.of(Halt)
    run.decides(EndStream(), number=1)
    run.returns("items")
    assert run.status() == "failed"


def test_a_reader_that_is_told_to_end_while_it_waits_is_fed_nothing_more() -> None:
    """row: K3-STOP"""
    run = started(
        fan("items"), step("each", x="items"), step("read", x=stream("each")), step("other")
    )
    run.emits("items", 0, 1)
    run.returns("each", 0)
    for _ in range(2):
        run.asks("read", "x")
    give_up(run, "other")
    assert told_to_end(run, "read") == [False]
    run.returns("each", 1)
    run.returns("items")
    assert [e.index for e in run.of(Feed)] == [0]
    assert not run.of(EndFeed)
    assert run.exit("items", "read.x").delivered == 1


# -- waiting for more than one --


def reading_two(**settings: object) -> Hand:
    """A reader of a fan-out and of what few of its items come to; the window is of two."""
    few = {"x": stream("few"), "y": stream("items")}
    run = started(fan("items"), step("few", x="items"), node("read", few), window=2, **settings)
    run.emits("items", 0)
    run.returns("few", 0, nothing=None)
    return run


def pass_over(run: Hand, *items: int) -> None:
    for item in items:
        run.emits("items", item)
        run.returns("few", item, nothing=None)


def test_a_reader_that_has_one_item_and_waits_for_another_is_no_reason_not_to_widen() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    run = reading_two()
    run.asks("read", "x")
    run.asks("read", "y")
    assert [(e.slot, e.value) for e in run.of(Feed)] == [("y", 0)]
    pass_over(run, 1, 2)
    assert [e.window for e in run.of(Widen)] == [4]
    run.emits("items", 3)
    run.returns("few", 3, output="found")
    assert [(e.slot, e.value) for e in run.of(Feed)] == [("y", 0), ("x", "found")]
    run.emits("items", 4)
    assert [e.window for e in run.of(Widen)] == [4]  # it has all it asked for: it is at work
    run.returns("few", 4, nothing=None)
    assert len(run.of(Widen)) == 1
    run.returns("read")
    run.returns("items")
    assert run.status() == "completed"


def test_a_reader_that_has_all_it_asked_for_is_a_reason_not_to_widen() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    run = reading_two()
    run.asks("read", "y")
    pass_over(run, 1)
    assert len(run.of(Pause)) == 1
    assert not run.of(Widen)


def test_a_reader_that_has_an_item_and_waits_for_two_more_is_no_reason_not_to_widen() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    three = {"x": stream("few"), "y": stream("some"), "z": stream("items")}
    run = started(
        fan("items"),
        step("few", x="items"),
        step("some", x="items"),
        node("read", three),
        window=2,
    )
    for item in range(3):
        run.emits("items", item)
        run.returns("few", item, nothing=None)
        assert not run.of(Widen)  # one step is at work
        run.returns("some", item, nothing=None)
        for slot in "" if item else "xzy":
            run.asks("read", slot)
    assert [(e.slot, e.value) for e in run.of(Feed)] == [("z", 0)]
    assert [e.window for e in run.of(Widen)] == [4]


def test_a_reader_that_is_told_to_end_is_at_work_until_it_has() -> None:
    """row: K2-PRESSURE, K3-KEEP-GOING"""
    run = reading_two(keep_going=True)
    run.asks("read", "x")
    run.asks("read", "y")
    run.emits("items", 1)
    forfeit(run, "few", 1)
    assert told_to_end(run, "read") == [False]
    pass_over(run, 2)
    assert (len(run.of(Pause)), len(run.of(Widen)), len(run.of(Resume))) == (1, 0, 0)
    run.halted("read")
    assert (len(run.of(Widen)), len(run.of(Resume))) == (0, 1)


def test_a_reader_that_puts_out_an_item_while_it_waits_for_one_is_no_reason_not_to_widen() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    again = node("again", {"x": stream("few"), "y": stream("items")}, frames=("output",), outs=())
    run = started(fan("items"), step("few", x="items"), again, step("use", x="again"), window=2)
    run.emits("items", 0)
    run.returns("few", 0, nothing=None)
    run.asks("again", "x")
    run.emits("again", "a", "b")
    assert len(run.of(Pause)) == 1  # it is ahead of its users itself
    pass_over(run, 1)
    assert len(run.of(Pause)) == 2
    assert not run.of(Widen)
    for item in (0, 1):
        run.returns("use", item)
    assert [e.node for e in run.of(Widen)] == [run._plan("items").index]


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_a_reader_that_waits_for_two_items_gives_up_its_place_once(order: str) -> None:
    """row: K2-PARKED"""
    read = node("read", {"x": stream("a"), "y": stream("b")}, concurrency=1)
    run = started(fan("outer"), fan("a", x="outer"), fan("b", x="outer"), read)
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("a", "a", at=(outer,))
        run.emits("b", "b", at=(outer,))
    for slot in "xy":
        run.asks("read", slot, 0)
    for slot in order:
        run.asks("read", slot, 0)
    assert set(run.ran("read")) == {(0,), (1,)}
    run.returns("read", 1)
    assert set(run.ran("read")) == {(0,), (1,), (2,)}


# -- told to end --


def calling() -> Hand:
    """Two callers of one tool, of which one runs at a time, and the first waits for its answer."""
    one = controlling(node("one", {"x": "each"}, concurrency=1), "tool")
    run = started(fan("each"), one, step("tool"), step("other"))
    run.emits("each", 0, 1)
    run.returns("each")
    tool = run._plan("tool").index
    run.tell(ControlSent(run.calls["one", (0,)], tool, 1, {}, awaits=True))
    return run


def test_who_is_told_to_end_is_not_told_again_when_the_run_is_cancelled() -> None:
    """row: K3-STOP"""
    run = calling()
    give_up(run, "other")
    assert told_to_end(run, "one", 0) == [False]
    run.tell(RunCancelled("enough"))
    assert told_to_end(run, "one", 0) == [False]
    assert told_to_end(run, "tool", 0, 0) == [False]


def test_who_is_told_gently_to_end_is_told_again_when_the_run_is_cancelled() -> None:
    """row: K3-STOP"""
    run = started(fan("items"), step("each", x="items"), step("other"), window=1)
    run.emits("items", 0)
    give_up(run, "other")
    assert told_to_end(run, "items") == [True]
    run.tell(RunCancelled("enough"))
    assert told_to_end(run, "items") == [True, False]


def test_the_first_of_two_equal_endings_stands() -> None:
    """row: K3-STATUS"""
    run = started(step("a"))
    run.tell(RunCancelled("first"))
    assert list(run.tell(RunCancelled("second"))) == []
    run.halted("a")
    assert [e.reason for e in run.of(Stop)] == ["first"]
    assert [(e.status, e.reason) for e in run.of(Ended)] == [("cancelled", "first")]


def test_what_a_stop_gives_up_a_cancel_does_not_give_up_again() -> None:
    """row: K1-LEDGER-5, K3-STOP"""
    run = started(safe("delayed"), step("asked"), step("other"), step("runs"))
    run.fails("delayed")
    run.decides(Retry())
    run.fails("asked")
    give_up(run, "other")
    run.tell(RunCancelled("enough"))
    assert [(e.escalation, e.kind) for e in run.of(Conclude)] == [
        (3, OutcomeKind.STOPPED),
        (2, OutcomeKind.NEVER_RAN),
        (1, OutcomeKind.RETRY_NEVER_RAN),
    ]
    assert run.node("delayed").failed == run.node("asked").failed == 1
    assert list(run.waits()) == []
    assert not [words for words in run.machine.pending() if "queued" in words]


def test_a_call_that_ends_as_if_it_had_been_told_to_is_a_fault_of_the_kernel() -> None:
    run = started(step("a"))
    with pytest.raises(KernelBug, match="a: halted for no reason"):
        run.halted("a")


# -- what will move by itself --


def test_nothing_moves_where_all_are_queued_behind_one_that_waits_for_one_that_is_held() -> None:
    """row: K3-RESUME-UNKNOWN"""
    run = calling()
    run.returns("other")
    assert set(run.ran("one")) == {(0,)}
    held = run.calls["tool", (0, 0)]
    idle = [run.machine.idle]
    for stimulus in (Parked(held, away=True), Unparked(held)):
        run.tell(stimulus)
        idle.append(run.machine.idle)
    assert idle == [False, True, False]
