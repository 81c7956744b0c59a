"""What a call may do before it says so: items shown ahead, frames told together.

Nothing may depend on it: whatever is told together means what it would mean one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from by_hand import Hand
from reference.small import fan, step, stream, workflow

from nightwarden.kernel.causes import Kind
from nightwarden.kernel.effects import Effect, EndFeed, Feed, Halt, Invoke, Pause, Resume
from nightwarden.kernel.stimuli import RunCancelled
from nightwarden.verdict import EndStream, Skip, Substitute


def started(*nodes: object, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)  # type: ignore[arg-type]
    run.start()
    return run


def reading(*values: object, **settings: object) -> Hand:
    """A fan-out that has put out these, and a reader of it."""
    run = started(fan("items"), step("read", x=stream("items")), **settings)
    run.emits("items", *values)
    return run


def shown(effects: Sequence[Effect]) -> list[tuple[int, object]]:
    (fed,) = [e for e in effects if isinstance(e, Feed)]
    return list(fed.shown)


def left_at(run: Hand) -> tuple[int, int, int]:
    found = run.exit("items", "read.x")
    return found.delivered, found.left, found.lost


# -- shown ahead --


def test_a_reader_is_shown_what_is_there_besides_what_it_asked_for() -> None:
    run = reading("a", "b", "c", "d")
    assert shown(run.asks("read", "x", ahead=2)) == [(1, "b"), (2, "c")]


def test_a_reader_is_shown_nothing_it_did_not_ask_to_see() -> None:
    run = reading("a", "b")
    assert shown(run.asks("read", "x")) == []


def test_a_reader_that_waited_gets_the_one_it_waited_for() -> None:
    run = reading("a")
    run.asks("read", "x")
    run.asks("read", "x", ahead=5)
    assert shown(run.emits_together("items", "b", "c")) == []
    assert shown(run.asks("read", "x", ahead=5)) == []
    run.asks("read", "x")
    run.returns("items")
    assert len(run.of(EndFeed)) == 1


def test_what_is_shown_follows_the_order_of_arrival_where_that_counts() -> None:
    arriving = stream("each", by_arrival=True)
    run = started(fan("items"), step("each", x="items"), step("read", x=arriving))
    run.emits("items", 0, 1, 2)
    for item in (2, 0, 1):
        run.returns("each", item, output=item)
    assert shown(run.asks("read", "x", ahead=9)) == [(0, 0), (1, 1)]
    run.uses("read", "x", 1)
    run.asks("read", "x")
    assert [(e.index, e.value) for e in run.of(Feed)] == [(2, 2), (1, 1)]


def test_nothing_is_shown_beyond_an_item_that_has_not_come() -> None:
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1, 2, 3)
    for item in (0, 1, 3):
        run.returns("each", item, output=item)
    assert shown(run.asks("read", "x", ahead=9)) == [(1, 1)]


def test_what_is_lost_has_to_be_asked_for() -> None:
    """So that a reader knows of exactly the losses it has passed."""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1, 2)
    run.returns("each", 0, output="a")
    run.fails("each", 1)
    run.decides(Skip())
    run.returns("each", 2, output="c")
    assert shown(run.asks("read", "x", ahead=9)) == []
    assert run.machine.losses(run.calls["read", ()], "x") == []
    assert shown(run.asks("read", "x", ahead=9)) == []
    assert [i for i, _ in run.machine.losses(run.calls["read", ()], "x")] == [1]


def test_a_reader_does_not_carry_the_repair_of_an_item_it_was_about_to_be_shown() -> None:
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1)
    run.returns("each", 0, output="a")
    run.fails("each", 1, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    assert shown(run.asks("read", "x", ahead=9)) == []
    run.returns("read", output="r")
    assert run.settled("read") == {(): "r"}


def test_what_was_shown_and_not_used_is_left_like_anything_else() -> None:
    """row: K1-FAN-LEFT"""
    run = reading("a", "b", "c", "d")
    run.asks("read", "x", ahead=9)
    run.uses("read", "x", 2)
    run.returns("read")
    run.returns("items")
    assert left_at(run) == (3, 1, 0)
    assert run.status() == "completed"


def test_a_reader_that_is_given_up_loses_what_it_was_shown_and_had_not_used() -> None:
    """row: K1-FAN-LEFT"""
    run = reading("a", "b", "c")
    run.asks("read", "x", ahead=9)
    run.uses("read", "x", 1)
    run.fails("read")
    run.decides(EndStream())
    run.returns("items")
    assert left_at(run) == (2, 0, 1)


def test_the_next_item_asked_for_comes_after_those_that_were_used() -> None:
    run = reading("a", "b", "c", "d")
    run.asks("read", "x", ahead=9)
    run.uses("read", "x", 2)
    run.asks("read", "x")
    assert [(e.index, e.value) for e in run.of(Feed)] == [(0, "a"), (3, "d")]


def test_an_item_is_outstanding_until_it_is_used() -> None:
    """row: K2-PRESSURE"""
    run = reading("a", "b", "c", "d", window=4)
    run.asks("read", "x", ahead=9)
    assert not run.of(Resume)
    assert [type(e) for e in run.uses("read", "x", 1)] == [Resume]


def test_a_call_that_was_told_to_stop_has_read_nothing_more() -> None:
    run = reading("a", "b", "c")
    run.asks("read", "x", ahead=9)
    run.tell(RunCancelled())
    assert run.uses("read", "x", 2) == []
    assert left_at(run)[0] == 1


# -- told together --


def test_frames_told_together_are_those_frames() -> None:
    run = started(fan("items"), step("each", x="items"))
    run.emits_together("items", "a", "b", "c")
    assert run.ran("each") == {(0,): ("a",), (1,): ("b",), (2,): ("c",)}


def test_frames_told_together_are_ordered_in_the_same_order() -> None:
    nodes = (fan("items"), step("each", x="items"), step("next", x="each"))
    one_by_one, together = started(*nodes), started(*nodes)
    one_by_one.emits("items", "a", "b", "c")
    together.emits_together("items", "a", "b", "c")
    assert one_by_one.of(Invoke) == together.of(Invoke)
    assert one_by_one.machine.trace == together.machine.trace


def test_a_fan_out_pauses_after_the_frame_that_fills_its_window() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("items"), step("each", x="items"), window=4)
    call = run.calls["items", ()]
    assert run.machine.room(call) == 4
    run.emits("items", "a")
    assert run.machine.room(call) == 3
    assert not run.of(Pause)
    run.emits_together("items", "b", "c", "d")
    assert len(run.of(Pause)) == 1


def test_there_is_room_for_one_frame_at_least() -> None:
    """Another fan-out of the same root may have filled the window."""
    run = started(fan("outer"), fan("items", x="outer"), step("each", x="items"), window=2)
    run.emits("outer", 0, 1)
    run.emits("items", "a", "b", at=(0,))
    assert run.machine.room(run.calls["items", (1,)]) == 1


@pytest.mark.parametrize("ending", ["cut", "stopped"])
def test_a_call_that_may_have_to_end_says_each_thing_at_once(ending: str) -> None:
    """row: K1-FAN-LEFT, K3-STOP"""
    run = started(fan("items"), step("read", x=stream("items")), step("other"))
    run.emits("items", "a")
    call = run.calls["items", ()]
    assert run.machine.wanted(call)
    if ending == "cut":
        run.returns("read")
    else:
        run.fails("other")
        run.decides(Skip())
        run.tell(RunCancelled())
    assert not run.machine.wanted(call)
    assert run.machine.room(call) == 1


def test_a_stage_nobody_wants_more_of_may_not_use_what_it_was_shown() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), fan("stage", x=stream("items")), step("read", x=stream("stage")))
    run.emits("items", "a", "b", "c")
    run.asks("stage", "x", ahead=9)
    run.emits("stage", "A")
    assert run.machine.wanted(run.calls["stage", ()])
    run.returns("read")
    assert not run.machine.wanted(run.calls["stage", ()])
    assert [type(e) for e in run.asks("stage", "x", ahead=9)] == [Halt]


def test_frames_nobody_wants_any_more_are_dropped_together() -> None:
    """row: K1-FAN-LEFT"""
    run = reading("a")
    run.returns("read")
    assert [type(e) for e in run.emits_together("items", "b", "c")] == [Halt]
    run.halted("items")
    assert run.root("items").items == 1


def test_what_a_stage_carries_is_behind_every_frame_told_together() -> None:
    """row: K1-CAUSES"""
    run = started(
        fan("items"),
        step("each", x="items"),
        fan("stage", x=stream("each")),
        step("last", x="stage"),
    )
    run.emits("items", 0)
    run.fails("each", 0, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    run.asks("stage", "x", ahead=9)
    run.emits_together("stage", "A", "B")
    for number in (0, 1):
        (cause,) = run.causes(run.settled("stage")[number,])
        assert (cause.node_id, cause.kind) == ("each", Kind.REPAIRED)
