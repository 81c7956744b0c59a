"""What users of a comparable engine ran into: values, joins, fan-outs, streams, life cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scenarios import (
    add,
    count,
    even,
    frames,
    gather,
    gather_all,
    inc,
    list_of,
    one_side,
    pair,
    played,
    read,
    run,
)

import nightwarden as nw
from nightwarden import Collect, Context, Stream
from nightwarden.session import run_session
from nightwarden.testing import play
from nightwarden.verdict import Skip

SEEDS = [1, 2, 3]


def wired(build: Any) -> Any:
    with nw.workflow("scenario") as w:
        build(w)
    return w.build()


# -- plain values --


def test_an_edge_is_a_data_edge_unless_it_says_otherwise() -> None:
    """scenario: 1, 97"""

    def build(w: Any) -> None:
        w.add(inc, id="sink", x=w.input("x", int))

    assert run(wired(build), {"x": 41}).outputs == {"sink": 42}


def test_an_empty_workflow_completes() -> None:
    """scenario: 25"""
    result = run(wired(lambda w: None))
    assert (result.status, result.outputs) == ("completed", {})


def test_a_single_node_puts_its_value_out_under_its_name() -> None:
    """scenario: 26, 42, 49, 145"""

    def build(w: Any) -> None:
        w.add(add, id="sum", a=7, b=3)
        w.add(add, id="other", a=1)

    assert run(wired(build)).outputs == {"sum": 10, "other": 2}


@pytest.mark.parametrize("seed", SEEDS)
def test_diamond_chain_fan_out_to_five_and_separate_parts(seed: int) -> None:
    """scenario: 51, 52"""

    def build(w: Any) -> None:
        x = w.input("x", int)
        left, right = w.add(inc, id="left", x=x), w.add(inc, id="right", x=x)
        w.add(add, id="diamond", a=left, b=right)
        chain = x
        for i in range(8):
            chain = w.add(inc, id=f"chain{i}", x=chain)
        for i in range(5):
            w.add(inc, id=f"sink{i}", x=left)
        w.add(inc, id="apart", x=w.input("y", int))

    outputs = run(wired(build), {"x": 4, "y": 0}, seed=seed).outputs
    assert outputs["diamond"] == 10
    assert outputs["chain7"] == 12
    assert [outputs[f"sink{i}"] for i in range(5)] == [6] * 5
    assert outputs["apart"] == 1


def test_none_is_a_value_and_goes_on() -> None:
    """scenario: 50"""

    @nw.node(type="s.Nothing")
    async def nothing() -> None:
        return None

    def build(w: Any) -> None:
        w.add(pair, id="pair", a=w.add(nothing, id="nothing"), b=1)

    assert run(wired(build)).outputs == {"pair": [None, 1]}


def test_a_given_value_beats_the_default_and_an_edge_beats_both() -> None:
    """scenario: 56, 129"""

    def build(w: Any) -> None:
        w.add(add, id="given", a=1, b=5)
        w.add(add, id="wired", a=1, b=w.input("b", int, default=7))

    workflow = wired(build)
    assert run(workflow).outputs == {"given": 6, "wired": 8}
    assert run(workflow, {"b": 9}).outputs["wired"] == 10


def test_a_missing_or_unknown_input_stops_the_run_before_it_starts() -> None:
    """scenario: 129, 130"""

    def build(w: Any) -> None:
        w.add(add, id="sum", a=w.input("a", int), b=w.input("b", int))

    with pytest.raises(nw.RunError) as error:
        nw.Session(wired(build), {"c": 1})
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert all(name in str(error.value) for name in ("input a", "input b", "input c"))


def test_a_slot_of_the_wrong_type_is_named_with_what_was_expected() -> None:
    """scenario: 22, 24"""

    @nw.node(type="s.Text")
    async def text() -> Any:
        return "no number"

    def build(w: Any) -> None:
        w.add(inc, id="inc", x=w.add(text, id="text"))

    result = run(wired(build))
    assert result.status == "failed"
    assert "inc" in result.reason
    assert "input x" in result.reason
    assert "whole number" in result.reason
    assert "text" in result.reason


def test_a_whole_number_is_good_for_a_float_and_a_wrong_element_is_named() -> None:
    """scenario: 19, 23"""

    @nw.node(type="s.Half")
    async def half(x: float) -> float:
        return x / 2

    @nw.node(type="s.Sum")
    async def total(xs: list[int]) -> int:
        return sum(xs)

    @nw.node(type="s.Mixed")
    async def mixed() -> Any:
        return [1, "two"]

    def build(w: Any) -> None:
        w.add(half, id="half", x=w.input("x", int))

    def wrong(w: Any) -> None:
        w.add(total, id="total", xs=w.add(mixed, id="mixed"))

    assert run(wired(build), {"x": 3}).outputs == {"half": 1.5}
    assert "[1]" in run(wired(wrong)).reason


# -- fanning out and in --


def test_items_keep_their_numbers_and_order_whatever_ends_first() -> None:
    """scenario: 29, 30, 98, 100, 101, 105. defect: D57, D52"""

    @nw.node(type="s.Slow", retry_safe=True, concurrency=10)
    async def slow(x: int) -> int:
        await asyncio.sleep(10 - x)
        return x * 10

    def build(w: Any) -> None:
        items = w.input("items", list[int]).each()
        late = w.add(slow, id="late", x=items)
        both = w.add(pair, id="both", a=items, b=w.add(inc, id="again", x=late))
        w.add(gather, id="all", xs=both.collect())

    outputs = run(wired(build), {"items": list(range(6))}).outputs
    assert outputs["all"] == [[i, i * 10 + 1] for i in range(6)]


def test_three_values_at_the_top_make_three_calls_also_with_a_late_constant() -> None:
    """scenario: 45, 46, 103, 113, 117. defect: D12, D13"""

    @nw.node(type="s.Late")
    async def late() -> int:
        await asyncio.sleep(5)
        return 100

    def build(w: Any) -> None:
        items = w.add(frames([1, 2, 3]), id="items")
        w.add(add, id="sums", a=items, b=w.add(late, id="late"))

    assert list(run(wired(build)).outputs["sums"]) == [101, 102, 103]


def test_nested_fan_outs_give_one_list_a_parent() -> None:
    """scenario: 86, 104, 107. defect: D55"""

    def build(w: Any) -> None:
        outer = w.input("ns", list[int]).each()
        inner = w.add(count, id="inner", n=outer)
        both = w.add(pair, id="both", a=outer, b=inner)
        lists = w.add(gather, id="lists", xs=both.collect())
        w.add(gather, id="all", xs=lists.collect())

    assert run(wired(build), {"ns": [2, 0, 3]}).outputs["all"] == [
        [[2, 0], [2, 1]],
        [],
        [[3, 0], [3, 1], [3, 2]],
    ]


def test_an_empty_fan_out_gives_an_empty_list_once() -> None:
    """scenario: 106, 109"""

    def build(w: Any) -> None:
        w.add(gather, id="all", xs=w.add(inc, id="i", x=w.input("xs", list[int]).each()).collect())

    assert run(wired(build), {"xs": []}).outputs["all"] == []


def test_a_filter_before_a_diamond_leaves_no_half_pair_behind() -> None:
    """scenario: 38, 39, 108. defect: D56"""

    def build(w: Any) -> None:
        items = w.input("xs", list[int]).each()
        kept = w.add("flow.Filter", id="kept", value=items, condition=w.add(even, id="e", x=items))
        left, right = w.add(inc, id="left", x=kept), w.add(inc, id="right", x=kept)
        both = w.add(pair, id="both", a=left, b=right)
        w.add(gather, id="all", xs=both.collect())

    result = run(wired(build), {"xs": [0, 1, 2]})
    assert result.outputs["all"] == [[1, 1], [3, 3]]
    assert result.ledger["roots"][0]["filtered"] == 1
    assert "1 filtered out" in result.headline


def test_a_branch_decides_item_by_item_also_over_a_constant() -> None:
    """scenario: 63. defect: D23, D41, D58"""
    ran: list[int] = []

    @nw.node(type="s.Only")
    async def only(x: int) -> int:
        ran.append(x)
        return x

    def build(w: Any) -> None:
        items = w.input("xs", list[int]).each()
        sides = w.add("flow.If", id="if", value=7, condition=w.add(even, id="e", x=items))
        w.add(only, id="only", x=sides.slot("then"))

    result = run(wired(build), {"xs": [0, 1, 2]})
    assert ran == [7, 7]
    assert list(result.outputs["only"].indices) == [0, 2]


def test_a_slot_that_is_not_put_out_silences_its_edge_and_nothing_waits() -> None:
    """scenario: 63. defect: D23"""

    def build(w: Any) -> None:
        sides = w.add(one_side, id="sides", x=1)
        w.add(inc, id="a", x=sides.slot("a"))
        w.add(inc, id="b", x=sides.slot("b"))

    outputs = run(wired(build)).outputs
    assert outputs["a"] == 2
    assert outputs["b"]["absent"] == "not_taken"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_list_over_several_edges_fires_once_with_all_of_them(seed: int) -> None:
    """scenario: 15, 61, 90, 116. defect: D42, D61"""

    def build(w: Any) -> None:
        one, two = w.add(inc, id="one", x=1), w.add(inc, id="two", x=2)
        w.add(list_of, id="top", xs=[one, two, w.add(inc, id="three", x=3)])
        items = w.input("xs", list[int]).each()
        more = w.add(inc, id="more", x=items)
        w.add(list_of, id="each", xs=[more, items])

    outputs = run(wired(build), {"xs": [10, 20]}, seed=seed).outputs
    assert outputs["top"] == [2, 3, 4]
    assert list(outputs["each"]) == [[11, 10], [21, 20]]


def test_all_firings_of_a_terminal_node_are_kept_equal_ones_too() -> None:
    """scenario: 54, 143. defect: D24, D46"""

    def build(w: Any) -> None:
        w.add(inc, id="end", x=w.add(frames([1, 1, 5]), id="items"))

    assert list(run(wired(build)).outputs["end"]) == [2, 2, 6]


# -- windows and readers --


@pytest.mark.parametrize("window", [1, 2, 7])
def test_a_producer_waits_for_room_and_order_stays(window: int) -> None:
    """scenario: 31, 32, 34, 35, 40, 41, 99. defect: D15"""
    ahead: list[int] = []
    taken: list[int] = []

    @nw.node(type="s.Source", retry_safe=True)
    async def source() -> AsyncIterator[int]:
        for i in range(20):
            ahead.append(i - len(taken))
            yield i

    @nw.node(type="s.Slowly")
    async def slowly(xs: Stream[int]) -> list[int]:
        async for x in xs:
            await asyncio.sleep(1)
            taken.append(x)
        return list(taken)

    def build(w: Any) -> None:
        w.add(slowly, id="end", xs=w.add(source, id="source"))

    assert run(wired(build), window=window).outputs["end"] == list(range(20))
    assert max(ahead) <= window + 1


def test_a_reader_that_dies_with_a_full_window_ends_the_run_not_hangs_it() -> None:
    """scenario: 149. defect: D33"""

    @nw.node(type="s.Dies")
    async def dies(xs: Stream[int]) -> int:
        async for _ in xs:
            raise ValueError("enough")
        return 0

    def build(w: Any) -> None:
        w.add(dies, id="dies", xs=w.add(count, id="many", n=25))

    result = run(wired(build), window=1)
    assert result.status == "failed"
    assert "dies: ValueError: enough" in result.reason


def test_a_reader_that_has_enough_closes_what_it_reads() -> None:
    """scenario: 57, 58"""
    emitted: list[int] = []

    @nw.node(type="s.Endless", retry_safe=True)
    async def endless() -> AsyncIterator[int]:
        i = 0
        while True:
            emitted.append(i)
            yield i
            i += 1

    def build(w: Any) -> None:
        w.add(read, id="three", xs=w.add(endless, id="endless"), most=3)

    result = run(wired(build), window=8)
    assert result.outputs["three"] == [0, 1, 2]
    assert result.ledger["roots"][0]["marks"] == {"cut": 1}
    assert len(emitted) < 20


def test_an_endless_producer_sees_the_cancellation() -> None:
    """scenario: 77, 137, 177"""
    closed: list[str] = []

    @nw.node(type="s.Ticks")
    async def ticks() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(1)
        finally:
            closed.append("closed")

    def build(w: Any) -> None:
        w.add(inc, id="inc", x=w.add(ticks, id="ticks"))

    result = played(wired(build), at=[(3.5, lambda s: s.cancel())])
    assert result.result.status == "cancelled"
    assert result.ended_s == pytest.approx(3.5)
    assert closed == ["closed"]


def test_cancelled_with_a_hundred_items_waiting_nothing_more_is_invoked() -> None:
    """scenario: 59, 177. defect: D59"""
    started: list[int] = []

    @nw.node(type="s.OneByOne")
    async def one(x: int) -> None:
        started.append(x)
        await asyncio.sleep(1)

    def build(w: Any) -> None:
        w.add(one, id="one", x=w.input("xs", list[int]).each())

    result = run(wired(build), {"xs": list(range(100))}, at=[(2.5, lambda s: s.cancel())])
    assert result.status == "cancelled"
    assert started == [0, 1, 2]


# -- inputs pushed while it runs --


def pushing(*values: int, close: bool = True) -> Any:
    def build(w: Any) -> None:
        w.add(inc, id="sink", x=w.input("xs", list[int], default=[]).each())

    session = nw.Session(wired(build), open_inputs=["xs"])

    def act() -> None:
        async def push() -> None:
            for value in values:
                await session.push("xs", value)
            if close:
                session.close("xs")

        tasks.append(asyncio.get_running_loop().create_task(push()))

    tasks: list[Any] = []
    return play(session, seed=1, at=[(1.0, act)]).result


def test_what_is_pushed_reaches_the_sink_and_finishing_without_a_push_does_not() -> None:
    """scenario: 59, 60, 62. defect: D19"""
    assert list(pushing(777, 5).outputs["sink"]) == [778, 6]
    assert list(pushing().outputs["sink"]) == []


def test_a_push_that_cannot_be_taken_says_why() -> None:
    """scenario: 61, 62"""

    def build(w: Any) -> None:
        w.add(inc, id="sink", x=w.input("xs", list[int], default=[]).each())

    session = nw.Session(wired(build), open_inputs=["xs"])
    with pytest.raises(nw.RunError, match="has not started"):
        asyncio.run(session.push("xs", 1))
    with pytest.raises(nw.RunError, match="ys is not open"):
        asyncio.run(session.push("ys", 1))
    with pytest.raises(nw.RunError, match="expected a whole number"):
        asyncio.run(session.push("xs", "one"))
    with pytest.raises(nw.RunError, match="no such input"):
        nw.Session(wired(build), open_inputs=["zs"])


# -- life cycle --


def test_a_node_that_raises_fails_the_run_and_nothing_below_it_runs() -> None:
    """scenario: 132, 133. defect: D5"""
    ran: list[int] = []

    @nw.node(type="s.Bad")
    async def bad(x: int) -> int:
        raise ValueError(f"cannot take {x}")

    @nw.node(type="s.Below")
    async def below(x: int) -> int:
        ran.append(x)
        return x

    def build(w: Any) -> None:
        w.add(below, id="below", x=w.add(bad, id="bad", x=3))

    result = run(wired(build))
    assert result.status == "failed"
    assert result.reason == "bad: ValueError: cannot take 3"
    assert ran == []


def test_the_sibling_of_a_failing_branch_is_in_the_outputs() -> None:
    """scenario: 134, 155. defect: D44"""

    @nw.node(type="s.Fails")
    async def fails() -> int:
        await asyncio.sleep(1)
        raise ValueError("no")

    @nw.node(type="s.Takes")
    async def takes() -> int:
        await asyncio.sleep(2)
        return 9

    def build(w: Any) -> None:
        w.add(fails, id="fails")
        w.add(takes, id="takes")

    result = run(wired(build))
    assert result.status == "failed"
    assert result.outputs["takes"] == 9


def test_one_item_refused_and_skipped_the_rest_is_delivered_and_it_is_named() -> None:
    """scenario: 154, 161, 162. defect: D45"""

    @nw.node(type="s.Picky", label="{x}")
    async def picky(x: int) -> int:
        if x == 11:
            raise ValueError("content refused")
        return x

    def build(w: Any) -> None:
        kept = w.add(picky, id="picky", x=w.input("xs", list[int]).each())
        w.add(gather, id="all", xs=kept.collect())

    result = run(wired(build), {"xs": [10, 11, 12]}, supervise=Skipping())
    assert result.outputs["all"] == [10, 12]
    assert result.ledger["roots"][0]["missing"][0]["item"] == "2"
    assert result.interventions[0].escalation.item.label == "11"


def test_a_skipped_fan_out_prunes_what_collects_it_unless_that_accepts_the_loss() -> None:
    """scenario: 53, 163. defect: D53"""

    @nw.node(type="s.Broken")
    async def broken() -> AsyncIterator[int]:
        raise ValueError("nothing to read")
        yield 1

    def build(w: Any) -> None:
        items = w.add(broken, id="items")
        w.add(gather, id="strict", xs=items.collect())
        w.add(gather_all, id="lenient", xs=items.collect())

    result = run(wired(build), supervise=Skipping())
    assert result.outputs["strict"]["absent"] == "lost"
    assert result.outputs["lenient"] == []
    assert result.headline.startswith("completed (supervised): ")
    assert "strict" in result.headline


def test_a_session_runs_once_and_two_of_them_do_not_touch_each_other() -> None:
    """scenario: 138, 139, 152, 153. defect: D6, D28, D29, D30"""

    def build(w: Any) -> None:
        w.add(inc, id="inc", x=w.input("x", int))

    workflow = wired(build)
    before = workflow.canonical()
    session = nw.Session(workflow, {"x": 1})
    assert run_session(session).outputs == {"inc": 2}
    with pytest.raises(nw.RunError, match="runs once"):
        asyncio.run(session.run())
    assert run(workflow, {"x": 5}).outputs == {"inc": 6}
    assert workflow.canonical() == before
    early = nw.Session(workflow, {"x": 1})
    early.cancel()
    assert run_session(early).status == "cancelled"


def test_two_runs_of_the_same_inputs_say_the_same() -> None:
    """scenario: 131, 140, 141, 142, 153. defect: D17, D31"""

    def build(w: Any) -> None:
        w.add(
            gather, id="all", xs=w.add(inc, id="inc", x=w.input("xs", list[int]).each()).collect()
        )

    def told() -> list[tuple[str, str, Any]]:
        run_ = played(wired(build), {"xs": [1, 2, 3]}, seed=None, run_id="same")
        assert run_.types()[0] == "run_started"
        assert [t for t in run_.types() if t.startswith("run_")][1:] == ["run_completed"]
        assert run_.types()[-1] == "run_completed"
        assert {e.run_id for e in run_.events if hasattr(e, "run_id")} == {"same"}
        return [(str(e.__struct_config__.tag), e.node_id, e.lineage) for e in run_.events]

    assert told() == told()


def test_set_up_comes_first_on_the_instance_that_runs_and_tear_down_always() -> None:
    """scenario: 135, 136. defect: D14, D34, D36"""
    said: list[str] = []

    class Step(nw.Node):
        async def setup(self, ctx: Context) -> None:
            self.ready = True
            said.append("setup")

        async def run(self, x: int) -> int:
            said.append(f"run {self.ready}")
            raise ValueError("no")

        async def teardown(self) -> None:
            said.append("teardown")

    def build(w: Any) -> None:
        w.add(nw.node(type="s.Step")(Step), id="step", x=1)

    assert run(wired(build)).status == "failed"
    assert said == ["setup", "run True", "teardown"]


def test_a_pause_is_no_failure_and_cancel_comes_before_it() -> None:
    """scenario: 139. defect: D40"""

    @nw.node(type="s.Waits")
    async def waits(ctx: Context) -> int:
        await asyncio.sleep(1)
        ctx.suspend("waiting for the boss", {"page": 3})

    def build(w: Any) -> None:
        w.add(waits, id="waits")

    result = run(wired(build))
    assert result.status == "suspended"
    assert result.reason == "waiting for the boss"
    assert result.suspended[0]["state"] == {"page": 3}
    assert run(wired(build), at=[(0.5, lambda s: s.cancel())]).status == "cancelled"


def test_whoever_watches_cannot_break_the_run() -> None:
    """scenario: 140, 150. defect: D35"""

    def build(w: Any) -> None:
        w.add(inc, id="inc", x=1)

    session = nw.Session(wired(build))

    def broken(event: object) -> None:
        raise ValueError("no screen")

    session.subscribe(broken)
    assert play(session, seed=1).result.outputs == {"inc": 2}


def test_a_timed_out_step_fails_and_closes_what_hangs_on_it() -> None:
    """scenario: 55"""

    @nw.node(type="s.Hangs", timeout=2)
    async def hangs() -> int:
        await asyncio.sleep(1_000)
        return 1

    def build(w: Any) -> None:
        w.add(inc, id="below", x=w.add(hangs, id="hangs"))

    result = played(wired(build))
    assert result.ended_s == pytest.approx(2)
    assert result.result.reason == "hangs: timeout after 2 s"


class Skipping:
    """Skips whatever it is asked."""

    async def decide(self, escalation: Any) -> nw.Decision:
        return nw.Decision(verdict=Skip(), rationale="dispensable")

    def attach(self, reader: Any) -> None: ...

    async def aclose(self) -> None: ...


def test_many_collects_of_one_fan_out_agree() -> None:
    """scenario: 105, 144"""

    @nw.node(type="s.Last")
    async def last(xs: Collect[int]) -> int:
        return xs[-1]

    @nw.node(type="s.Len")
    async def length(xs: Collect[int]) -> int:
        return len(xs)

    def build(w: Any) -> None:
        items = w.add(add, id="same", a=w.input("xs", list[int]).each(), b=0)
        w.add(last, id="last", xs=items.collect())
        w.add(length, id="length", xs=items.collect())
        w.add(gather, id="all", xs=items.collect())

    assert run(wired(build), {"xs": [1, 2, 3, 4]}).outputs == {
        "last": 4,
        "length": 4,
        "all": [1, 2, 3, 4],
    }
