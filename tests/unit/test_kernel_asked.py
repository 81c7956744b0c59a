"""What a run can be asked about while it goes on: the questions of `Machine`, one a test.

kernel.md §1. Evidence, streams and reports are made of these answers.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import Node, collect, fan, node, step, stream, workflow

from nightwarden.errors import KernelBug
from nightwarden.kernel.effects import Escalate, Pause
from nightwarden.kernel.stimuli import RunCancelled, RunStarted
from nightwarden.verdict import Skip

NOBODY = 999


def started(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def nested() -> Hand:
    run = started(fan("shops"), fan("goods", x="shops"), step("price", x="goods"))
    run.emits("shops", "north", "south")
    run.emits("goods", "tea", "salt", at=(1,))
    return run


# -- names and numbers of items --


def test_a_call_stands_under_the_items_above_it_outermost_first() -> None:
    run = nested()
    path = run.machine.label(run.calls["price", (1, 0)])
    assert path == [(1, "south"), (0, "tea")]


def test_a_call_of_the_run_itself_and_one_that_is_over_stand_under_nothing() -> None:
    run = nested()
    assert run.machine.label(run.calls["shops", ()]) == []
    run.returns("price", 1, 0)
    assert run.machine.label(run.calls["price", (1, 0)]) == []


def test_how_many_items_there_are_is_known_once_their_fan_out_has_ended() -> None:
    run = nested()
    call = run.calls["price", (1, 1)]
    assert run.machine.totals(call) == [None, None]
    run.returns("goods", 1)
    assert run.machine.totals(call) == [None, 2]
    run.emits("shops", "east")
    run.returns("shops")
    assert run.machine.totals(call) == [3, 2]


def test_a_call_of_the_run_itself_and_one_that_is_over_have_no_totals() -> None:
    run = nested()
    assert run.machine.totals(run.calls["shops", ()]) == []
    run.returns("price", 1, 0)
    assert run.machine.totals(run.calls["price", (1, 0)]) == []


# -- what a reader has missed --


def lossy_reader() -> Hand:
    run = started(
        fan("items"), step("one", x="items"), step("two", x="items"), step("read", x=stream("one"))
    )
    run.emits("items", "a", "b", "c")
    return run


def test_a_reader_is_told_which_items_it_has_missed_in_their_order() -> None:
    run = lossy_reader()
    for index in (2, 0):
        run.fails("one", index)
        run.decides(Skip())
    run.returns("one", 1)
    run.asks("read", "x")
    run.asks("read", "x")
    reader = run.calls["read", ()]
    losses = run.machine.losses(reader, "x")
    assert [index for index, _ in losses] == [0, 2]
    for index, causes in losses:
        assert [cause.lineage for cause in run.machine.explain(causes)] == [(index,)]


def test_a_slot_nobody_reads_has_missed_nothing() -> None:
    run = lossy_reader()
    run.returns("one", 0)
    assert run.machine.losses(run.calls["read", ()], "y") == ()
    assert run.machine.losses(run.calls["two", (0,)], "x") == ()
    assert run.machine.losses(NOBODY, "x") == ()


# -- how much room there is --


def test_a_fan_out_may_put_out_what_its_window_has_room_for() -> None:
    run = started(fan("items"), step("each", x="items"), window=4)
    fan_out = run.calls["items", ()]
    assert run.machine.room(fan_out) == 4
    run.emits("items", "a")
    assert run.machine.room(fan_out) == 3


def test_there_is_room_for_one_where_the_answer_to_each_counts() -> None:
    run = started(fan("items"), step("each", x="items"), window=4)
    run.emits("items", "a")
    assert run.machine.room(run.calls["each", (0,)]) == 1
    assert run.machine.room(NOBODY) == 1
    run.tell(RunCancelled("enough"))
    assert run.machine.room(run.calls["items", ()]) == 1


def test_a_fan_out_is_paused_from_its_full_window_until_there_is_room() -> None:
    run = started(fan("items"), step("each", x="items"), window=2)
    fan_out = run.calls["items", ()]
    run.emits("items", "a")
    assert not run.machine.paused(fan_out)
    run.emits("items", "b")
    assert [effect.call for effect in run.of(Pause)] == [fan_out]
    assert run.machine.paused(fan_out)
    run.returns("each", 0)
    assert not run.machine.paused(fan_out)
    assert not run.machine.paused(NOBODY)


def test_nobody_wants_more_of_what_is_over_or_of_a_run_that_stops() -> None:
    run = started(fan("items"), step("each", x="items"))
    fan_out = run.calls["items", ()]
    run.emits("items", "a")
    assert run.machine.wanted(fan_out)
    assert run.machine.wanted(run.calls["each", (0,)])
    assert not run.machine.wanted(NOBODY)
    run.tell(RunCancelled("enough"))
    assert not run.machine.wanted(fan_out)
    assert not run.machine.wanted(run.calls["each", (0,)])


# -- how it stands --


def test_how_the_lineages_of_a_node_have_ended_is_counted_without_the_zeros() -> None:
    run = started(fan("items"), step("each", x="items"), step("after", x="each"))
    run.emits("items", "a", "b", "c")
    run.returns("each", 0)
    run.fails("each", 1)
    run.decides(Skip())
    each, after = run._plan("each").index, run._plan("after").index
    assert run.machine.counts(each) == {"succeeded": 1, "skipped": 1}
    assert run.machine.counts(after) == {"pruned": 1}


def test_what_is_open_is_said_in_words_and_nothing_once_the_run_has_ended() -> None:
    run = started(
        fan("items"),
        node("each", {"x": "items"}, concurrency=1),
        step("both", x="each", y="items"),
        step("all", x=collect("both")),
    )
    run.emits("items", "a", "b")
    run.returns("items")
    each = run.calls["each", (0,)]
    assert run.machine.pending() == [
        "both: 2 joins",
        "each: 1 queued",
        f"each: call {each}",
        "run: 1 open",
        "items: 1 open",
    ]
    for index in range(2):
        run.returns("each", index)
        run.returns("both", index)
    run.returns("all")
    assert run.machine.pending() == []


def test_a_run_that_waits_for_a_decision_is_not_idle_and_starts_only_once() -> None:
    run = started(step("only"))
    run.fails("only")
    assert len(run.of(Escalate)) == 1
    assert not run.machine.idle
    with pytest.raises(KernelBug, match="a run starts once"):
        run.tell(RunStarted({}))
