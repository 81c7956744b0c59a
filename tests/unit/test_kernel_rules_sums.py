"""The kernel, one rule a test, by hand: what a list, an absent input and an account say.

kernel.md §1. Each of these rules was once broken on purpose and no other test minded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from by_hand import Hand
from reference.small import (
    Node,
    collect,
    controlling,
    fan,
    many,
    merge,
    node,
    step,
    wire,
    workflow,
)

import nightwarden as nw
from nightwarden.kernel.causes import Absent, Kind
from nightwarden.kernel.effects import CloseRoot
from nightwarden.kernel.state import Gathered
from nightwarden.kernel.stimuli import ControlSent
from nightwarden.spec.build import Builder
from nightwarden.verdict import DecidedBy, Fail, Skip


@nw.node(type="sums.Items")
async def items(x: object = None) -> AsyncIterator[object]:
    yield x


@nw.node(type="sums.Step")
async def once(x: object = None) -> object:
    return x


@nw.node(type="sums.Holds")
async def holds(x: object) -> bool:
    return bool(x)


@nw.node(type="sums.Listed")
async def listed(x: nw.Collect[object]) -> object:
    return x


def begun(draw: Callable[[Builder], None]) -> Hand:
    with nw.workflow("sums") as w:
        draw(w)
    run = Hand(w.build())
    run.start()
    return run


def started(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def not_take(run: Hand, name: str) -> None:
    run.returns(name, nothing=None)


def lose(run: Hand, name: str) -> None:
    run.fails(name)
    run.decides(Skip())


def forfeit(run: Hand, name: str) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


def behind(run: Hand, settlement: object) -> list[str]:
    return [cause.node_id for cause in run.causes(settlement)]


def sends(run: Hand, caller: str, target: str, *lineage: int, event: int = 1) -> None:
    run.tell(ControlSent(run.calls[caller, lineage], run._plan(target).index, event, {}))


# -- lists --


def test_a_list_of_two_edges_says_of_each_value_whose_it_is() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("items", frames=("p", "q")), step("all", x=collect("items.p", "items.q")))
    for frame in ({"p": "p0", "q": "q0"}, {"r": None}, {"q": "q2"}):
        run.emits("items", frame)
    run.returns("items")
    (found,) = run.ran("all")[()]
    assert isinstance(found, Gathered)
    assert (found.values, list(found.indices)) == (["p0", "q0", "q2"], [0, 0, 2])


def test_a_loop_that_leads_to_no_next_round_has_not_ended_early() -> None:
    """row: K1-FAN-LOOP"""

    def drawn(w: Builder) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.add(once, id="start"))
        body = w.add(once, id="body", x=loop.slot("value"))
        w.feed(loop, next=body, condition=w.add(holds, id="more", x=body))
        w.add(listed, id="all", x=w.add(once, id="side", x=loop.slot("value")).collect())

    run = begun(drawn)
    run.returns("start", output=0)
    run.returns("side", 0, output="s")
    run.returns("body", 0, nothing=None)
    (found,) = run.ran("all")[()]
    assert isinstance(found, Gathered)
    assert (found.values, found.ended) == (["s"], frozenset())
    assert run.root("loop").marks == {"closed": 1}


# -- absent inputs --


def test_many_that_lack_a_loss_and_a_branch_name_both() -> None:
    """row: K1-JOIN-MANY, K1-CAUSES"""
    run = started(step("a"), step("b"), step("c"), step("use", x=many("a", "b", "c")))
    run.returns("a")
    lose(run, "b")
    not_take(run, "c")
    assert run.kind("use") is Kind.LOST
    assert behind(run, run.settled("use")[()]) == ["b", "c"]


def test_a_merge_that_fails_names_no_absence_of_a_slot_that_has_a_value() -> None:
    """row: K1-JOIN-MERGE, K1-CAUSES"""
    run = started(
        step("a"), step("b"), step("c"), merge("use", x=wire("a", "b"), y="c"), keep_going=True
    )
    run.returns("a")
    lose(run, "b")
    forfeit(run, "c")
    assert run.kind("use") is Kind.FAILED
    assert behind(run, run.settled("use")[()]) == ["c"]


@pytest.mark.parametrize("first", ["b", "c"])
@pytest.mark.parametrize(
    "made",
    [
        merge("use", x="a", y=wire("b", "c")),
        merge("use", x="a", y=many("b", "c")),
        step("use", x="a", y=many("b", "c", accepts=True)),
    ],
    ids=["merge", "merge of many", "many"],
)
def test_an_absence_of_several_edges_is_as_bad_as_the_worst_and_names_all(
    made: Node, first: str
) -> None:
    """row: K1-JOIN-MERGE, K1-JOIN-MANY, K1-CAUSES"""
    run = started(step("a"), step("b"), step("c"), made)
    run.returns("a", output=1)
    lose(run, first)
    not_take(run, "bc".replace(first, ""))
    value, absent = run.ran("use")[()]
    assert value == 1
    assert isinstance(absent, Absent)
    assert absent.kind is Kind.LOST
    assert behind(run, absent) == ["b", "c"]


def test_a_list_of_a_branch_not_taken_is_an_absence_and_no_empty_list() -> None:
    """row: K1-VERDICT-SKIP-FANOUT, K1-FAN-COLLECT"""
    run = started(
        step("a", outs=("x", "y")),
        fan("items", x="a.x"),
        step("all", x=collect("items", accepts=True)),
        step("else", x="a.y"),
    )
    run.returns("a", y=1)
    (found,) = run.ran("all")[()]
    assert isinstance(found, Absent)
    assert found.kind is Kind.NOT_TAKEN


def test_a_branch_not_taken_is_one_cause_however_many_items_there_are() -> None:
    """row: K1-CAUSES, K2-COST"""
    run = started(
        fan("items"),
        step("choose", x="items", outs=("p", "q")),
        step("p", x="choose.p"),
        step("q", x="choose.q"),
    )
    run.emits("items", 0, 1, 2)
    for item in range(3):
        run.returns("choose", item, p=1)
    found = run.settled("choose", "q")
    assert len(found) == 3
    assert len({absent.causes for absent in found.values() if isinstance(absent, Absent)}) == 1


# -- accounts --


def test_a_fan_out_that_never_opens_is_said_to_be_closed_with_nothing() -> None:
    """row: K1-LEDGER-3, K1-VERDICT-NEVER-OPENED"""
    run = started(step("a"), fan("items", x="a"), step("each", x="items"))
    lose(run, "a")
    assert run.of(CloseRoot) == [CloseRoot(run._plan("items").index, (), 0, "absent")]
    assert run.root("items").marks == {"absent": 1}


def test_an_item_of_which_one_fan_out_never_opens_is_over_when_the_other_one_is() -> None:
    """row: K1-LEDGER-6"""
    run = started(
        fan("outer"),
        fan("inner", x="outer"),
        step("each", x="inner"),
        controlling(step("call", x="choose.q"), "tool"),
        step("choose", x="outer", outs=("p", "q")),
        step("tool"),
    )
    run.emits("outer", 0)
    run.emits("inner", "a", at=(0,))
    run.returns("inner", 0)
    run.returns("choose", 0, p=1)
    assert len(run.of(CloseRoot)) == 2  # of the two below the item; one of them is not through
    run.returns("each", 0, 0)
    run.returns("outer")
    assert run.status() == "completed"
    assert run.root("outer").items == 1
    assert run.machine.pending() == []


def test_an_item_that_has_come_through_is_not_filtered_out_because_another_one_was() -> None:
    """row: K1-LEDGER-HEADLINE"""
    calls = controlling(node("call", {"x": "items"}), "tool")
    run = started(fan("items"), calls, step("all", x=collect("call")), step("tool"))
    run.emits("items", 0, 1)
    sends(run, "call", "tool", 0)
    run.returns("call", 0, nothing=None)  # nothing comes of it, but its tool is still at work
    run.returns("call", 1)
    assert run.root("items").filtered == 0
    run.returns("tool", 0, 0)
    run.returns("items")
    run.returns("all")
    assert run.status() == "completed"
    assert len(run.root("items").exits) == run.root("items").filtered == 1
