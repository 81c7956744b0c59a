"""The kernel, one rule a test, by hand: who holds a place or room, while it waits and after.

kernel.md §2. A fan-out that is paused, a stage that waits for its next item, and a call that waits
for something outside hold nothing that others could use; whoever goes on holds it again.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import Node, collect, fan, node, step, stream, workflow, zipped

from nightwarden.kernel.effects import CloseRoot, Halt, Pause, Resume, Widen
from nightwarden.kernel.stimuli import Parked, Unparked


def started(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def stage(name: str, source: str, *, concurrency: int | None = None) -> Node:
    """A node that reads a stream and puts items out."""
    wires = {"x": stream(source)}
    return node(name, wires, frames=("output",), outs=(), concurrency=concurrency)


def paused(run: Hand) -> list[int]:
    return [effect.call for effect in run.of(Pause)]


def widened(run: Hand) -> list[tuple[str, int]]:
    return [(run.plan.nodes[e.node].id, e.window) for e in run.of(Widen)]


# -- fan-outs that wait for room --


def test_a_fan_out_whose_reader_keeps_up_is_not_paused_for_what_another_has_out() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("outer"), fan("items", x="outer"), step("read", x=stream("items")), window=3)
    run.emits("outer", 0, 1)
    run.emits("items", 0, 1, 2, at=(0,))
    run.emits("items", "a", at=(1,))
    slow, quick = run.calls["items", (0,)], run.calls["items", (1,)]
    assert paused(run) == [slow, quick]
    run.asks("read", "x", 1)
    assert [effect.call for effect in run.of(Resume)] == [quick]
    run.asks("read", "x", 1)
    run.emits("items", "b", at=(1,))
    assert paused(run) == [slow, quick]


def test_a_paused_fan_out_gives_its_place_to_one_other() -> None:
    """row: K2-PRESSURE"""
    items = node("items", {"x": "outer"}, frames=("output",), outs=(), concurrency=1)
    run = started(fan("outer"), items, step("each", x="items"), window=4)
    run.emits("outer", 0, 1, 2)
    run.emits("items", 0, 1, 2, 3, at=(0,))
    assert paused(run) == [run.calls["items", (0,)]]
    assert set(run.ran("items")) == {(0,), (1,)}


def test_a_stage_that_puts_out_an_item_while_it_waits_for_one_holds_its_place_again() -> None:
    """row: K2-PRESSURE"""
    run = started(
        fan("outer"),
        fan("items", x="outer"),
        stage("again", "items", concurrency=1),
        step("each", x="again"),
    )
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("items", "a", at=(outer,))
    run.asks("again", "x", 0)
    run.asks("again", "x", 0)
    assert set(run.ran("again")) == {(0,), (1,)}
    run.emits("again", "b", at=(0,))
    run.asks("again", "x", 1)
    run.asks("again", "x", 1)
    assert set(run.ran("again")) == {(0,), (1,)}
    run.returns("again", 0)
    assert set(run.ran("again")) == {(0,), (1,), (2,)}


def both(name: str, source: str) -> Node:
    """A reader that needs the end of its stream before it begins."""
    return step(name, x=stream(source), y=collect(source))


def test_of_several_full_windows_the_smallest_gives() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("a"), fan("b"), both("of_a", "a"), both("of_b", "b"), window=2)
    run.emits("a", 0, 1)
    run.emits("b", 0, 1)
    assert widened(run) == [("a", 4)]
    run.emits("a", 2, 3)
    assert widened(run) == [("a", 4), ("b", 4)]


def test_a_window_gives_to_a_stage_that_is_paused_while_an_item_it_asked_for_is_still_to_come() -> (
    None
):
    """row: K2-PRESSURE"""
    wires = {"x": stream("a"), "y": stream("slow")}
    again = node("again", wires, frames=("output",), outs=())
    run = started(fan("a"), fan("b"), step("slow", x="b"), again, both("read", "again"), window=3)
    run.emits("a", 0)
    run.returns("a")
    run.emits("b", 0, 1)
    run.returns("b")
    run.returns("slow", 0)
    run.tell(Parked(run.calls["slow", (1,)]))
    for slot in ("y", "y", "x"):
        run.asks("again", slot)
    run.emits("again", "p", "q", "r")
    assert widened(run) == [("again", 6)]


# -- calls that wait for something outside --


def one_besides(**settings: object) -> Hand:
    """A fan-out whose window has to give when all wait, and a call besides."""
    return started(fan("many"), both("read", "many"), step("far"), window=2, **settings)


def test_a_window_gives_while_the_only_call_at_work_waits_for_something_outside() -> None:
    """row: K2-PRESSURE"""
    run = one_besides()
    run.tell(Parked(run.calls["far", ()]))
    run.emits("many", 0, 1)
    assert widened(run) == [("many", 4)]


def test_no_window_gives_for_a_call_that_has_what_it_waited_for() -> None:
    """row: K2-PRESSURE"""
    run = one_besides()
    run.tell(Parked(run.calls["far", ()]))
    run.tell(Unparked(run.calls["far", ()]))
    run.emits("many", 0, 1)
    assert widened(run) == []
    run.returns("far")
    assert widened(run) == [("many", 4)]


def test_what_comes_for_a_call_that_waits_for_nothing_changes_nothing() -> None:
    """row: K2-PRESSURE"""
    run = one_besides()
    run.tell(Unparked(run.calls["far", ()]))
    run.tell(Parked(run.calls["far", ()]))
    run.emits("many", 0, 1)
    assert widened(run) == [("many", 4)]


def test_nothing_waits_for_a_call_that_returned_while_it_waited_itself() -> None:
    """row: K2-PRESSURE"""
    run = one_besides()
    run.tell(Parked(run.calls["far", ()]))
    run.returns("far")
    run.emits("many", 0, 1)
    assert widened(run) == [("many", 4)]


def test_a_call_that_was_away_holds_its_place_again_when_it_is_back() -> None:
    """row: K2-PRESSURE"""
    each = node("each", {"x": "items"}, concurrency=1)
    run = started(fan("items"), each)
    run.emits("items", 0, 1, 2)
    run.tell(Parked(run.calls["each", (0,)], away=True))
    assert set(run.ran("each")) == {(0,), (1,)}
    run.tell(Unparked(run.calls["each", (0,)]))
    run.returns("each", 1)
    assert set(run.ran("each")) == {(0,), (1,)}
    run.returns("each", 0)
    assert set(run.ran("each")) == {(0,), (1,), (2,)}


# -- fan-outs nobody wants more of --


def test_a_stage_that_waits_for_its_next_item_is_cancelled_when_nobody_wants_more_of_it() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), stage("again", "items"), step("read", x=stream("again")))
    run.emits("items", 0)
    run.asks("again", "x")
    run.emits("again", "a")
    run.asks("again", "x")
    run.returns("read")
    assert [(e.call, e.gently) for e in run.of(Halt)] == [(run.calls["again", ()], False)]
    run.halted("again")
    assert run.root("again").marks == {"cut": 1}
    assert run.root("items").marks == {"open": 1}


def test_a_paused_fan_out_is_closed_where_it_stands_when_nobody_wants_more_of_it() -> None:
    """row: K1-FAN-LEFT, K2-PRESSURE"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")), window=3)
    run.emits("items", 0, 1, 2)
    assert paused(run) == [run.calls["items", ()]]
    run.returns("each", 0)
    run.returns("read")
    assert [(e.call, e.gently) for e in run.of(Halt)] == [(run.calls["items", ()], True)]


@pytest.mark.parametrize("far", ["a", "b"])
def test_pairs_nobody_wants_more_of_end_at_once_though_a_side_still_waits(far: str) -> None:
    """row: K1-FAN-LEFT, K1-FAN-ZIP"""
    read = node("read", {name: stream(f"p.{name}") for name in ("left", "right", "index")})
    run = started(fan("a"), fan("b"), zipped("p", "a", "b"), read)
    for name in "ab":
        run.emits(name, 0)
    run.tell(Parked(run.calls[far, ()]))
    run.returns("read")
    assert [(run.plan.nodes[e.node].id, e.mark) for e in run.of(CloseRoot)] == [("p", "cut")]
    assert [(e.call, e.gently) for e in run.of(Halt)] == [(run.calls[far, ()], True)]
