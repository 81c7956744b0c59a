"""The kernel, one rule a test, by hand: what is behind a pairing that fails, and how one ends.

kernel.md §1, the rows of `Zip` and `Cross`. Each of these rules was once broken on purpose and no
other test minded.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import (
    Node,
    built_in,
    crossed,
    fan,
    loop,
    node,
    step,
    stream,
    wire,
    workflow,
    zipped,
)

from nightwarden.kernel.causes import Absent
from nightwarden.kernel.effects import Escalate, Widen
from nightwarden.kernel.stimuli import Parked
from nightwarden.verdict import EndStream, Skip, Substitute


def begun(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def mend(run: Hand, name: str, *lineage: int, value: object = 1) -> int:
    """Fail and be repaired; the number of that escalation."""
    run.fails(name, *lineage, has_candidate=True, checkable=True)
    number = run.of(Escalate)[-1].number
    run.decides(Substitute({"output": value}), outputs=(value,))
    return number


# -- what is behind one that fails --


@pytest.mark.parametrize("empty", ["a", "b"])
def test_the_repair_behind_a_side_that_had_no_item_is_behind_unequal_sides(empty: str) -> None:
    """row: K1-CAUSES, K1-FAN-ZIP. That there are no items is a result of that side too."""
    run = begun(
        step("first"), fan(empty, x="first"), fan("ab".replace(empty, "")), zipped("p", "a", "b")
    )
    repaired = mend(run, "first")
    run.emits("ab".replace(empty, ""), 0)
    run.returns(empty)
    unequal = run.of(Escalate)[-1]
    assert unequal.signature == "zip:unequal"
    assert unequal.caused_by == (repaired,)


@pytest.mark.parametrize("lost", [("l", 0), ("r", 0), ("r", 1)])
def test_more_pairs_than_the_limit_have_every_lost_item_behind_them(lost: tuple[str, int]) -> None:
    """row: K1-CAUSES, K1-FAN-ZIP"""
    run = begun(
        fan("a"), fan("b"), step("l", x="a"), step("r", x="b"), crossed("p", "l", "r", limit=1)
    )
    run.emits("a", 0)
    run.emits("b", 0, 1)
    run.returns("b")
    run.fails(*lost)
    run.decides(Skip())
    for each in {("l", 0), ("r", 0), ("r", 1)} - {lost}:
        run.returns(*each)
    given_up, too_many = run.of(Escalate)
    assert too_many.signature == "cross:limit"
    assert too_many.caused_by == (given_up.number,)


def test_more_pairs_than_the_limit_have_the_end_of_the_right_side_behind_them() -> None:
    """row: K1-CAUSES, K1-FAN-ZIP. What ended the loop is why it has the items it has."""
    run = begun(
        fan("a"),
        step("start"),
        loop("l", {"initial": "start", "next": "body"}, max_iterations=1),
        step("body", x="l.value"),
        crossed("p", "a", "l.value", limit=1),
    )
    run.emits("a", 0, 1)
    run.returns("start")
    repaired = mend(run, "body", 0)
    too_many = run.of(Escalate)[-1]
    assert too_many.signature == "cross:limit"
    assert too_many.caused_by == (repaired,)


# -- how one ends --


def test_of_a_side_with_several_edges_what_is_beyond_an_early_end_is_lost_to_it() -> None:
    """row: K1-FAN-ZIP"""
    both = wire("b", "s")
    run = begun(
        fan("a"),
        fan("b"),
        step("s", x="b"),
        built_in("p", "flow.Zip", {"left": "a", "right": both}),
        step("use", x="p.right"),
    )
    run.emits("a", 0)
    run.fails("a")
    run.decides(EndStream())
    run.emits("b", "b0")
    run.returns("s", 0)
    run.returns("b")
    assert run.ran("use") == {(0,): ("b0",)}
    run.returns("use", 0)
    (missing,) = run.root("b").missing
    assert run.machine.cause(missing.cause).node_id == "a"
    assert run.root("p").marks == {"early": 1}
    assert run.status() == "completed"


def test_pairs_that_nobody_reads_on_leave_no_full_window_behind() -> None:
    """row: K1-FAN-ZIP, K2-PRESSURE"""
    wired = {"x": stream("slow"), "y": stream("p.right"), "z": stream("p.index")}
    run = begun(
        fan("a"),
        fan("b"),
        zipped("p", "a", "b"),
        step("slow", x="p.left"),
        node("read", wired),
        window=3,
    )
    for item in range(4):
        run.emits("a", item)
        run.emits("b", item)
    run.returns("slow", 0)
    assert run.root("p").items == 3
    run.returns("read")
    assert run.root("p").marks == {"cut": 1}
    for name in "ab":
        run.returns(name)
    for item in (1, 2):
        run.tell(Parked(run.calls["slow", (item,)]))
    assert not run.of(Widen)
    for item in (1, 2):
        run.returns("slow", item)
    assert run.status() == "completed"


def test_a_pair_without_its_left_side_has_nothing_to_be_called_by() -> None:
    """row: K1-FAN-ZIP"""
    run = begun(
        fan("a"), fan("b"), step("l", x="a"), zipped("p", "l", "b"), step("use", x="p.right")
    )
    for name in "ab":
        run.emits(name, "x", "y")
        run.returns(name)
    run.returns("l", 0, output="first")
    run.fails("l", 1)
    run.decides(Skip())
    assert isinstance(run.settled("p", "right")[1,], Absent)
    assert run.machine.label(run.calls["use", (0,)]) == [(0, "first")]
    assert [m.label for m in run.root("p").missing] == [None]
