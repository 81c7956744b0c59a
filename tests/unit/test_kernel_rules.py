"""The kernel, one rule a test, by hand: how inputs are joined, how items fan out and in.

kernel.md §1. What holds for whatever graph and order is in `test_kernel_meaning.py`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import pytest
from by_hand import Hand
from reference.small import collect, fan, many, merge, node, step, stream, wire, workflow

from nightwarden.kernel.causes import Absent, Carried, Kind
from nightwarden.kernel.effects import (
    USE_DEFAULT,
    Ended,
    EndFeed,
    Feed,
    Finish,
    Halt,
    Pause,
    Prune,
    Resume,
    Widen,
)
from nightwarden.kernel.state import Gathered
from nightwarden.verdict import DecidedBy, EndStream, Fail, Skip, Substitute


def started(*nodes: object, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)  # type: ignore[arg-type]
    run.start()
    return run


def lose(run: Hand, name: str, *lineage: int) -> None:
    run.fails(name, *lineage)
    run.decides(Skip())


def forfeit(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


def not_take(run: Hand, name: str, *lineage: int) -> None:
    run.returns(name, *lineage, nothing=None)


ABSENCES: list[Callable[..., None]] = [not_take, lose, forfeit]
KINDS = [Kind.NOT_TAKEN, Kind.LOST, Kind.FAILED]


# -- joining --


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_inputs_of_equal_scope_meet_by_lineage_in_any_order(order: tuple[int, ...]) -> None:
    """row: K1-JOIN-EQUAL"""
    run = started(
        fan("items"), step("a", x="items"), step("b", x="items"), step("join", a="a", b="b")
    )
    run.emits("items", 0, 1)
    for which in order:
        run.returns("ab"[which % 2], which // 2)
    assert run.ran("join") == {(0,): ("a(1)", "b(1)"), (1,): ("a(2)", "b(2)")}


@pytest.mark.parametrize("early", [True, False])
def test_what_runs_once_reaches_every_item_whether_it_comes_early_or_late(*, early: bool) -> None:
    """row: K1-JOIN-BROADCAST"""
    run = started(fan("items"), step("once"), step("join", a="items", b="once"))
    if early:
        run.returns("once", output="x")
    run.emits("items", "i", "j")
    if not early:
        assert not run.ran("join")
        run.returns("once", output="x")
    run.emits("items", "k")
    assert run.ran("join") == {(0,): ("i", "x"), (1,): ("j", "x"), (2,): ("k", "x")}


def test_an_item_is_broadcast_to_what_it_fans_out_into_and_to_nothing_else() -> None:
    """row: K1-JOIN-BROADCAST"""
    run = started(fan("outer"), fan("inner", x="outer"), step("join", a="inner", b="outer"))
    run.emits("outer", "one", "two")
    run.emits("inner", "a", at=(0,))
    run.emits("inner", "b", at=(1,))
    assert run.ran("join") == {(0, 0): ("a", "one"), (1, 0): ("b", "two")}


@pytest.mark.parametrize("absent", [lose, not_take])
def test_a_join_is_decided_only_when_all_inputs_are_settled(absent: Callable[..., None]) -> None:
    """row: K1-JOIN-DECIDED"""
    run = started(step("a"), step("b"), step("join", a="a", b="b"))
    absent(run, "a")
    assert not run.of(Prune)
    run.returns("b")
    assert [e.node for e in run.of(Prune)] == [2]
    assert not run.ran("join")


def test_what_a_required_input_lacks_every_output_lacks() -> None:
    """row: K1-JOIN-REQUIRED"""
    run = started(
        step("a"), step("b"), step("join", a="a", b="b", outs=("left", "right")), step("end", x="a")
    )
    lose(run, "a")
    lose(run, "b")
    for slot in ("left", "right"):
        found = run.settled("join", slot)[()]
        assert isinstance(found, Absent)
        assert found.kind is Kind.LOST
        assert [c.node_id for c in run.causes(found)] == ["a", "b"]


@pytest.mark.parametrize(("absent", "kind"), list(zip(ABSENCES, KINDS, strict=True)))
def test_the_strongest_kind_of_an_absence_wins(absent: Callable[..., None], kind: Kind) -> None:
    """row: K1-CAUSES"""
    run = started(step("a"), step("b"), step("join", a="a", b="b"), keep_going=True)
    not_take(run, "a")
    absent(run, "b")
    assert run.kind("join") is kind


def test_a_default_is_used_where_a_branch_was_not_taken() -> None:
    """row: K1-JOIN-DEFAULT"""
    run = started(step("a"), step("b"), step("join", a="a", b=wire("b", default=7)))
    not_take(run, "b")
    run.returns("a", output=1)
    assert run.ran("join") == {(): (1, USE_DEFAULT)}


def test_a_branch_not_taken_never_runs_on_defaults() -> None:
    """row: K1-JOIN-DEFAULT"""
    defaults = {"a": wire("a", default=1), "b": wire("b", default=2)}
    run = started(step("a"), step("b"), step("join", **defaults))
    not_take(run, "a")
    not_take(run, "b")
    assert not run.ran("join")
    assert run.kind("join") is Kind.NOT_TAKEN


def test_a_broadcast_does_not_make_defaults_count() -> None:
    """row: K1-JOIN-DEFAULT"""
    run = started(
        fan("items"),
        step("a", x="items"),
        step("once"),
        step("join", a=wire("a", default=1), b="once"),
    )
    run.returns("once")
    run.emits("items", 0)
    not_take(run, "a", 0)
    assert not run.ran("join")
    assert run.kind("join", 0) is Kind.NOT_TAKEN


def test_a_loss_never_turns_into_a_default() -> None:
    """row: K1-JOIN-LOST"""
    run = started(step("a"), step("b"), step("join", a="a", b=wire("b", default=7)))
    lose(run, "b")
    run.returns("a")
    assert not run.ran("join")
    assert run.kind("join") is Kind.LOST


@pytest.mark.parametrize("absent", [not_take, lose])
def test_a_slot_that_accepts_an_absence_is_given_it(absent: Callable[..., None]) -> None:
    """row: K1-JOIN-LOST"""
    run = started(step("a"), step("join", a=wire("a", accepts=True)), step("end", x="join"))
    absent(run, "a")
    ((given,),) = run.ran("join").values()
    assert isinstance(given, Absent)


@pytest.mark.parametrize("absent", [not_take, lose])
def test_accepting_comes_before_a_default(absent: Callable[..., None]) -> None:
    """row: K1-JOIN-ORDER"""
    run = started(step("a"), step("b"), step("join", a=wire("a", default=1, accepts=True), b="b"))
    absent(run, "a")
    run.returns("b")
    ((given, _),) = run.ran("join").values()
    assert isinstance(given, Absent)


def test_a_failure_prunes_whatever_the_slot_would_take() -> None:
    """row: K1-JOIN-FAILED"""
    run = started(
        step("a"), step("b"), step("join", a=wire("a", default=1, accepts=True), b="b"),
        keep_going=True,
    )  # fmt: skip
    forfeit(run, "a")
    run.returns("b")
    assert not run.ran("join")
    assert run.kind("join") is Kind.FAILED


def test_a_failure_prunes_a_merge_that_has_a_value() -> None:
    """row: K1-JOIN-ORDER, K1-JOIN-MERGE"""
    run = started(step("a"), step("b"), merge("join", x=many("a", "b")), keep_going=True)
    forfeit(run, "a")
    run.returns("b")
    assert not run.ran("join")
    assert run.kind("join") is Kind.FAILED


def test_a_merge_fires_once_with_all_that_has_a_value() -> None:
    """row: K1-JOIN-MERGE"""
    run = started(step("a"), step("b"), step("c"), merge("join", x=many("a", "b", "c")))
    run.returns("c")
    assert not run.ran("join")
    lose(run, "b")
    assert not run.ran("join")
    run.returns("a")
    assert run.ran("join") == {(): (["a()", "c()"],)}
    run.returns("join", output="m")
    found = run.settled("join")[()]
    assert isinstance(found, Carried)
    assert [c.node_id for c in run.causes(found)] == ["b"]


def test_a_merge_carries_no_branch_that_was_not_taken() -> None:
    """row: K1-JOIN-MERGE"""
    run = started(step("a"), step("b"), merge("join", x=many("a", "b")))
    not_take(run, "a")
    run.returns("b")
    run.returns("join", output="m")
    assert run.settled("join") == {(): "m"}


@pytest.mark.parametrize("absent", [not_take, lose])
def test_a_merge_is_pruned_when_nothing_has_a_value(absent: Callable[..., None]) -> None:
    """row: K1-JOIN-MERGE"""
    run = started(step("a"), step("b"), merge("join", x=many("a", "b")))
    absent(run, "a")
    not_take(run, "b")
    assert not run.ran("join")
    assert run.kind("join") is (Kind.LOST if absent is lose else Kind.NOT_TAKEN)


def test_a_merge_node_gives_empty_slots_their_default_or_the_absence() -> None:
    """row: K1-JOIN-ORDER"""
    run = started(
        step("a"), step("b"), step("c"), merge("join", x="a", y=wire("b", default=1), z="c")
    )
    run.returns("a", output="v")
    lose(run, "b")
    lose(run, "c")
    ((value, default, absent),) = run.ran("join").values()
    assert (value, default) == ("v", USE_DEFAULT)
    assert isinstance(absent, Absent)


def test_many_gives_a_list_in_edge_order_without_branches_not_taken() -> None:
    """row: K1-JOIN-MANY"""
    run = started(step("a"), step("b"), step("c"), step("join", x=many("a", "b", "c")))
    run.returns("c")
    not_take(run, "b")
    run.returns("a")
    assert run.ran("join") == {(): (["a()", "c()"],)}


@pytest.mark.parametrize("accepts", [True, False])
def test_a_loss_prunes_many_unless_it_accepts_that(*, accepts: bool) -> None:
    """row: K1-JOIN-MANY"""
    run = started(step("a"), step("b"), step("join", x=many("a", "b", accepts=accepts)))
    run.returns("a")
    lose(run, "b")
    assert run.ran("join") == ({(): (["a()"],)} if accepts else {})


def test_many_without_a_value_is_one_absence() -> None:
    """row: K1-JOIN-MANY"""
    given = many("a", "b", accepts=True)
    run = started(step("a"), step("b"), step("join", x=given), step("end", x="join"))
    lose(run, "a")
    not_take(run, "b")
    ((value,),) = run.ran("join").values()
    assert isinstance(value, Absent)
    assert value.kind is Kind.LOST


# -- fanning out --


def test_a_frame_is_one_item_on_all_slots_and_what_it_lacks_is_not_taken() -> None:
    """row: K1-FAN-OUT"""
    run = started(fan("items", frames=("a", "b")), step("x", v="items.a"), step("y", v="items.b"))
    run.emits("items", {"a": 1}, {"b": 2}, {"a": 3, "b": 4})
    assert run.ran("x") == {(0,): (1,), (2,): (3,)}
    assert run.ran("y") == {(1,): (2,), (2,): (4,)}
    assert run.kind("items", 0, slot="b") is Kind.NOT_TAKEN


def test_scalar_slots_settle_when_the_fan_out_ends() -> None:
    """row: K1-FAN-SCALAR"""
    run = started(fan("items", outs=("total",)), step("sum", n="items.total"))
    run.emits("items", 1)
    assert not run.ran("sum")
    run.returns("items", total=1)
    assert run.ran("sum") == {(): (1,)}


def test_what_reads_and_puts_out_again_numbers_its_own_items() -> None:
    """row: K1-FAN-THROUGH"""
    run = started(
        fan("items"), fan("pairs", x=stream("items")), step("use", x="pairs"), keep_going=True
    )
    run.emits("items", "a", "b", "c")
    for _ in range(2):
        run.asks("pairs", "x")
    run.emits("pairs", "ab")
    run.asks("pairs", "x")
    run.emits("pairs", "c")
    assert run.ran("use") == {(0,): ("ab",), (1,): ("c",)}
    assert [r.node_id for r in run.machine.report().roots] == ["items", "pairs"]


# -- collecting --


def collected(run: Hand, name: str = "list", *lineage: int) -> Gathered:
    (given,) = run.ran(name)[lineage]
    assert isinstance(given, Gathered)
    return given


def test_a_list_is_in_item_order_whatever_came_first() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("items"), step("each", x="items"), step("list", x=collect("each")))
    run.emits("items", *range(4))
    for item in (2, 0, 3):
        run.returns("each", item, output=item * 10)
    run.returns("items")
    assert not run.ran("list")
    run.returns("each", 1, output=10)
    assert collected(run).values == [0, 10, 20, 30]
    assert list(collected(run).indices) == [0, 1, 2, 3]


def test_a_list_names_gaps_and_losses() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("items"), step("each", x="items"), step("list", x=collect("each")))
    run.emits("items", *range(4))
    run.returns("items")
    run.returns("each", 3, output="d")
    not_take(run, "each", 2)
    lose(run, "each", 1)
    run.returns("each", 0, output="a")
    found = collected(run)
    assert (found.values, list(found.indices)) == (["a", "d"], [0, 3])
    assert [index for index, _ in found.losses] == [1]
    run.returns("list", output="csv")
    assert [c.lineage for c in run.causes(run.settled("list")[()])] == [(1,)]


def test_a_list_of_which_the_last_is_lost_is_not_taken_for_a_whole_one() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("items"), step("each", x="items"), step("list", x=collect("each")))
    run.emits("items", *range(3))
    run.returns("items")
    lose(run, "each", 0)
    run.returns("each", 1)
    run.returns("each", 2)
    assert list(collected(run).indices) == [1, 2]


def test_an_empty_fan_out_gives_an_empty_list() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("items"), step("list", x=collect("items")))
    run.returns("items")
    assert (collected(run).values, len(collected(run).indices), collected(run).losses) == (
        [],
        0,
        (),
    )


def test_several_edges_are_collected_in_item_then_edge_order() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(
        fan("items"),
        step("a", x="items"),
        step("b", x="items"),
        step("list", x=collect("a", "b")),
    )
    run.emits("items", 0, 1, 2)
    run.returns("items")
    for name, item in [("b", 1), ("a", 0), ("b", 0), ("a", 2)]:
        run.returns(name, item)
    lose(run, "a", 1)
    not_take(run, "b", 2)
    found = collected(run)
    assert found.values == ["a(1)", "b(1)", "b(2)", "a(3)"]
    assert list(found.indices) == [0, 0, 1, 2]
    assert [index for index, _ in found.losses] == [1]


def test_each_parent_gets_its_own_list() -> None:
    """row: K1-FAN-COLLECT"""
    run = started(fan("outer"), fan("inner", x="outer"), step("list", x=collect("inner")))
    run.emits("outer", "o", "p")
    run.emits("inner", 1, at=(1,))
    run.returns("inner", 1)
    assert set(run.ran("list")) == {(1,)}
    run.emits("inner", 2, 3, at=(0,))
    run.returns("inner", 0)
    assert collected(run, "list", 0).values == [2, 3]
    assert collected(run, "list", 1).values == [1]


def test_one_failed_item_prunes_the_list_alone() -> None:
    """row: K1-FAN-COLLECT, K3-KEEP-GOING"""
    run = started(
        fan("items"), step("each", x="items"), step("list", x=collect("each")), keep_going=True
    )
    run.emits("items", 0, 1)
    run.returns("items")
    forfeit(run, "each", 0)
    assert run.status() == ""
    run.returns("each", 1)
    assert not run.ran("list")
    assert run.kind("list") is Kind.FAILED
    assert run.status() == "failed"


# -- reading --


def feeds(run: Hand) -> list[tuple[int, object]]:
    return [(e.index, e.value) for e in run.of(Feed)]


def test_a_reader_starts_with_the_first_item_and_reads_in_item_order() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1)
    assert not run.ran("read")
    run.returns("each", 1, output="b")
    assert run.ran("read") == {(): (None,)}
    run.asks("read", "x")
    assert feeds(run) == []
    run.returns("each", 0, output="a")
    assert feeds(run) == [(0, "a")]
    run.asks("read", "x")
    assert feeds(run) == [(0, "a"), (1, "b")]
    run.asks("read", "x")
    assert not run.of(EndFeed)
    run.returns("items")
    assert len(run.of(EndFeed)) == 1


def test_a_reader_may_read_in_the_order_of_arrival() -> None:
    """row: K1-FAN-READ"""
    arriving = stream("each", by_arrival=True)
    run = started(fan("items"), step("each", x="items"), step("read", x=arriving))
    run.emits("items", 0, 1)
    run.returns("each", 1, output="b")
    run.asks("read", "x")
    run.returns("each", 0, output="a")
    run.asks("read", "x")
    assert feeds(run) == [(1, "b"), (0, "a")]


def test_what_came_first_is_read_first_where_arrival_counts() -> None:
    """row: K1-FAN-READ"""
    arriving = stream("each", by_arrival=True)
    run = started(fan("items"), step("each", x="items"), step("read", x=arriving))
    run.emits("items", 0, 1, 2)
    for item in (2, 0, 1):
        run.returns("each", item, output=item)
    for _ in range(3):
        run.asks("read", "x")
    assert feeds(run) == [(2, 2), (0, 0), (1, 1)]
    run.asks("read", "x")
    run.emits("items", 3)
    run.returns("each", 3, output=3)
    assert feeds(run)[3:] == [(3, 3)]
    run.asks("read", "x")
    run.returns("items")
    assert len(run.of(EndFeed)) == 1


def test_a_reader_starts_at_the_close_of_an_empty_fan_out() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.returns("items")
    run.asks("read", "x")
    assert len(run.of(EndFeed)) == 1


def test_a_reader_passes_over_what_is_absent_and_carries_its_losses() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", *range(4))
    run.returns("items")
    lose(run, "each", 0)
    not_take(run, "each", 2)
    run.returns("each", 1, output="b")
    run.returns("each", 3, output="d")
    for _ in range(3):
        run.asks("read", "x")
    assert feeds(run) == [(1, "b"), (3, "d")]
    assert len(run.of(EndFeed)) == 1
    assert [i for i, _ in run.machine.losses(run.calls["read", ()], "x")] == [0]
    run.returns("read", output="all")
    assert [c.lineage for c in run.causes(run.settled("read")[()])] == [(0,)]


def test_a_reader_carries_the_repairs_it_has_read() -> None:
    """row: K1-FAN-READ, K1-CAUSES"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0)
    run.fails("each", 0, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    run.asks("read", "x")
    assert feeds(run) == [(0, 1)]
    run.returns("read", output="r")
    assert [c.lineage for c in run.causes(run.settled("read")[()])] == [(0,)]


def test_a_reader_that_was_fed_waits_no_longer() -> None:
    """row: K2-PARKED"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.emits("items", 0)
    run.asks("read", "x")
    run.asks("read", "x")
    assert run.machine.paused(run.calls["read", ()])
    run.emits("items", 1)
    assert not run.machine.paused(run.calls["read", ()])


def test_a_reader_does_not_carry_what_it_has_not_read() -> None:
    """row: K1-FAN-READ"""
    run = started(fan("items"), step("each", x="items"), step("read", x=stream("each")))
    run.emits("items", 0, 1)
    run.returns("each", 0, output="a")
    lose(run, "each", 1)
    run.asks("read", "x")
    run.returns("read", output="first")
    assert run.settled("read") == {(): "first"}


def test_what_a_reader_leaves_is_left_and_not_lost() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.emits("items", 0, 1, 2)
    run.asks("read", "x")
    run.returns("read", output="one")
    run.emits("items", 3)
    run.returns("items")
    left = run.exit("items", "read.x")
    assert (left.delivered, left.left, left.lost) == (1, 2, 0)
    assert run.root("items").kept == 3
    assert run.root("items").marks == {"cut": 1}
    assert run.status() == "completed"


def test_a_fan_out_is_closed_at_its_next_yield_when_every_exit_has_left() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), step("a", x=stream("items")), step("b", x=stream("items")))
    run.emits("items", 0)
    run.returns("a")
    assert run.emits("items", 1) == []
    run.returns("b")
    assert [type(e) for e in run.emits("items", 2)] == [Halt]
    run.halted("items")
    assert (run.root("items").items, run.root("items").marks) == (2, {"cut": 1})
    assert run.node("items").succeeded == 1
    assert run.status() == "completed"


def test_a_fan_out_with_another_exit_goes_on_when_its_reader_leaves() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), step("read", x=stream("items")), step("each", x="items"))
    run.emits("items", 0)
    run.returns("read")
    run.emits("items", 1)
    assert not run.of(Halt)
    assert set(run.ran("each")) == {(0,), (1,)}


def test_a_reader_that_is_given_up_loses_what_it_has_not_read() -> None:
    """row: K1-FAN-LEFT"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.emits("items", 0, 1)
    run.asks("read", "x")
    run.fails("read")
    run.decides(EndStream())
    run.returns("items")
    found = run.exit("items", "read.x")
    assert (found.delivered, found.left, found.lost) == (1, 0, 1)
    assert run.kind("read") is Kind.LOST


def test_a_running_reader_is_cancelled_when_a_failed_item_reaches_its_slot() -> None:
    """row: K3-KEEP-GOING"""
    run = started(
        fan("items"), step("each", x="items"), step("read", x=stream("each")), keep_going=True
    )
    run.emits("items", 0, 1)
    run.returns("each", 0)
    run.asks("read", "x")
    forfeit(run, "each", 1)
    assert [e.gently for e in run.of(Halt)] == [False]
    run.halted("read")
    assert run.kind("read") is Kind.FAILED
    assert run.node("read").cancelled == 1


def test_a_reader_that_waits_for_its_place_is_pruned_by_a_failed_item() -> None:
    """row: K3-KEEP-GOING"""
    read = node("read", {"x": stream("each")}, concurrency=1)
    run = started(
        fan("outer"), fan("items", x="outer"), step("each", x="items"), read, keep_going=True
    )
    run.emits("outer", 0, 1)
    for outer in (0, 1):
        run.emits("items", "a", "b", at=(outer,))
        run.returns("each", outer, 0)
    assert set(run.ran("read")) == {(0,)}
    forfeit(run, "each", 1, 1)
    run.returns("each", 0, 1)
    run.returns("read", 0)
    assert set(run.ran("read")) == {(0,)}
    assert run.kind("read", 1) is Kind.FAILED
    for outer in (0, 1):
        run.returns("items", outer)
    run.returns("outer")
    assert run.status() == "failed"


def test_a_reader_that_is_cancelled_gives_its_place_to_one() -> None:
    """row: K3-KEEP-GOING"""
    read = node("read", {"x": stream("each")}, concurrency=1)
    run = started(
        fan("outer"), fan("items", x="outer"), step("each", x="items"), read, keep_going=True
    )
    run.emits("outer", 0, 1, 2)
    for outer in range(3):
        run.emits("items", "a", "b", at=(outer,))
        run.returns("each", outer, 0)
    run.asks("read", "x", 0)
    run.asks("read", "x", 0)
    assert set(run.ran("read")) == {(0,), (1,)}
    forfeit(run, "each", 0, 1)
    run.halted("read", 0)
    assert set(run.ran("read")) == {(0,), (1,)}
    run.returns("read", 1)
    assert set(run.ran("read")) == {(0,), (1,), (2,)}


# -- windows --


def test_a_fan_out_pauses_at_its_window_and_goes_on_at_half_of_it() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("items"), step("each", x="items"), window=4)
    run.emits("items", 0, 1, 2)
    assert not run.of(Pause)
    run.emits("items", 3)
    assert len(run.of(Pause)) == 1
    run.returns("each", 0)
    assert not run.of(Resume)
    run.returns("each", 1)
    assert len(run.of(Resume)) == 1


def test_a_parent_with_nothing_outstanding_is_not_held_up_by_another() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("outer"), fan("inner", x="outer"), step("each", x="inner"), window=2)
    run.emits("outer", 0, 1)
    run.emits("inner", "a", "b", at=(0,))
    assert len(run.of(Pause)) == 2  # outer, and inner of the first
    run.emits("inner", "c", at=(1,))
    assert len(run.of(Pause)) == 3
    run.returns("each", 1, 0)
    assert run.calls["inner", (1,)] in [e.call for e in run.of(Resume)]


def test_a_run_in_which_everything_waits_widens_a_window_and_says_so() -> None:
    """row: K2-PRESSURE"""
    run = started(
        fan("items"), step("read", x=stream("items"), y=collect("items")), window=2
    )  # fmt: skip
    run.emits("items", 0, 1)
    assert [e.window for e in run.of(Widen)] == [4]
    assert len(run.of(Resume)) == 1
    run.emits("items", 2)
    assert len(run.of(Widen)) == 1
    run.emits("items", 3)
    assert [e.window for e in run.of(Widen)] == [4, 8]


def test_a_reader_that_waits_is_no_reason_not_to_widen() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    reads = {"x": stream("items"), "y": stream("each")}
    run = started(
        fan("items"), step("each", x="items"), node("read", reads), step("r", z=stream("items")),
        window=1,
    )  # fmt: skip
    run.emits("items", 0)
    run.returns("each", 0)
    for name, slot in (("read", "y"), ("read", "y"), ("r", "z"), ("r", "z")):
        run.asks(name, slot)
    assert [e.window for e in run.of(Widen)] == [2]
    assert len(run.of(Resume)) == 1


def test_a_window_is_not_widened_while_something_still_runs() -> None:
    """row: K2-PRESSURE"""
    run = started(fan("items"), step("each", x="items"), step("list", x=collect("each")), window=1)
    run.emits("items", 0)
    assert not run.of(Widen)
    run.returns("each", 0)
    assert len(run.of(Resume)) == 1


# -- places --


def test_a_step_runs_at_most_so_many_at_once_and_in_order() -> None:
    each = node("each", {"x": "items"}, concurrency=2)
    run = started(fan("items"), each)
    run.emits("items", *range(4))
    assert list(run.ran("each")) == [(0,), (1,)]
    run.returns("each", 1)
    assert list(run.ran("each")) == [(0,), (1,), (2,)]
    run.returns("each", 0)
    assert list(run.ran("each")) == [(0,), (1,), (2,), (3,)]


def test_what_waits_for_an_item_or_for_room_holds_no_place() -> None:
    """row: K2-PARKED"""
    inner = node("inner", {"x": "outer"}, frames=("output",), outs=(), concurrency=1)
    read = node("read", {"x": stream("inner")}, concurrency=1)
    run = started(fan("outer"), inner, read, window=1)
    run.emits("outer", "a")
    run.emits("inner", 0, at=(0,))  # inner of the first is full, and is given more room
    assert len(run.of(Widen)) == 0
    run.asks("read", "x", 0)
    run.asks("read", "x", 0)
    assert run.machine.paused(run.calls["read", (0,)])


# -- ends --


def test_a_node_of_the_run_is_finished_once_and_one_below_items_with_its_fan_out() -> None:
    run = started(fan("items"), step("each", x="items"), step("last", x=collect("each")))
    run.emits("items", 0)
    assert not run.of(Finish)
    run.returns("items")
    assert [e.node for e in run.of(Finish)] == [0]
    run.returns("each", 0)
    run.returns("last")
    assert sorted(e.node for e in run.of(Finish)) == [0, 1, 2]


def test_a_run_ends_once_when_all_is_settled() -> None:
    run = started(step("a"), step("b", x="a"))
    run.returns("a")
    assert not run.of(Ended)
    run.returns("b")
    assert [e.status for e in run.of(Ended)] == ["completed"]
    assert run.machine.pending() == []


# -- cost --


def calls_of_the_kernel(items: int) -> int:
    """How many functions of the kernel a broadcast to so many waiting items takes."""
    run = started(
        fan("items"),
        step("once"),
        step("join", a="items", b="once"),
        step("list", x=collect("join")),
        window=10**6,
    )
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run.emits("items", *range(items))
        run.returns("once")
        run.returns("items")
        for item in range(items):
            run.returns("join", item)
    finally:
        sys.setprofile(before)
    assert len(collected(run).values) == items
    return count


def test_a_settlement_costs_the_same_however_many_items_there_are() -> None:
    """row: K2-COST"""
    few, more = calls_of_the_kernel(100), calls_of_the_kernel(400)
    assert more < 4.2 * few


def test_a_long_way_down_is_no_deep_recursion() -> None:
    """row: K2-COST"""
    length = 2 * sys.getrecursionlimit()
    chain = [step(f"n{i}", x=f"n{i - 1}") for i in range(1, length)]
    run = started(step("n0"), *chain)
    lose(run, "n0")
    assert len(run.of(Prune)) == length - 1
    assert run.status() == "completed"


def test_what_is_finished_is_forgotten() -> None:
    """row: K2-COST"""
    run = started(fan("outer"), fan("inner", x="outer"), step("join", a="inner", b="outer"))
    run.emits("outer", 0)
    run.emits("inner", 0, 1, at=(0,))
    run.returns("join", 0, 0)
    run.returns("join", 0, 1)
    root = run.machine._state.roots[2]
    assert len(root.open_groups) == 1
    run.returns("inner", 0)
    assert not root.open_groups
    assert not any(n.entries for n in run.machine._state.nodes)
    assert [c.node.plan.id for c in run.machine._state.calls.values()] == ["outer"]
