"""Nodes that work on whole streams: flow.Batch, Window, Limit, Dedupe and Sort, in real runs.

Each is held against the few lines of plain Python that say what it means. Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from case_runs import Asked
from hypothesis import given, settings
from hypothesis import strategies as st

import nightwarden as nw
from nightwarden import Session, SpecError
from nightwarden.events import StreamClosed, WindowWidened
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.testing import Played, play
from nightwarden.verdict import EndStream, Skip

MANY_DECISIONS = Bounds(max_decisions=1_000)
seeds = st.one_of(st.none(), st.integers(0, 1_000))


def made(step: Callable[..., Any], **promises: Any) -> Callable[..., Any]:
    return nw.node(type=f"test.{step.__name__.capitalize()}", **promises)(step)


@dataclass
class Produced:
    """A fan-out that yields `values`, after the given seconds each, and notes how far it came."""

    values: Sequence[Any]
    after_s: Sequence[float] = ()
    yielded: int = 0
    closed: bool = False
    times: list[float] = field(default_factory=list)

    def node(self) -> Callable[..., Any]:
        async def source() -> AsyncIterator[Any]:
            gaps = list(self.after_s) or [0.0] * len(self.values)
            try:
                for value, gap in zip(self.values, gaps, strict=True):
                    await asyncio.sleep(gap)
                    self.yielded += 1
                    self.times.append(asyncio.get_running_loop().time())
                    yield value
            finally:
                self.closed = True

        return made(source)


@dataclass
class Endless:
    """A fan-out that yields `make(0)`, `make(1)`, …, a second apart, until it is closed."""

    make: Callable[[int], Any] = int
    yielded: int = 0
    closed: bool = False

    def node(self) -> Callable[..., Any]:
        async def source() -> AsyncIterator[Any]:
            try:
                while True:
                    await asyncio.sleep(1)
                    self.yielded += 1
                    yield self.make(self.yielded - 1)
            finally:
                self.closed = True

        return made(source)


def through(source: Callable[..., Any], kind: str, **properties: Any) -> Workflow:
    """source ─▶ flow.<kind> as `out`."""
    with nw.workflow("through") as w:
        items = w.add(source, id="items")
        given = items.collect() if kind == "Sort" else items
        w.add(f"flow.{kind}", id="out", items=given, **properties)
    return w.build()


def out_of(values: Sequence[Any], kind: str, *, seed: int | None = None, **properties: Any) -> Any:
    """What comes out of flow.<kind> for these values."""
    played = play(Session(through(Produced(values).node(), kind, **properties)), seed=seed)
    assert played.result.status == "completed", played.result.reason
    assert played.left_open == ()
    found = played.result.outputs["out"]
    assert list(found.indices) == list(range(len(found)))
    return list(found)


def reason_of(values: Sequence[Any], kind: str, **properties: Any) -> str:
    """Why flow.<kind> fails for these values."""
    result = play(Session(through(Produced(values).node(), kind, **properties))).result
    assert result.status == "failed"
    return result.reason


def with_a_loss(
    lost: int, of: int, kind: str, properties: Mapping[str, Any]
) -> tuple[Workflow, Asked]:
    """items ─▶ picky, which loses some ─▶ flow.<kind> ─▶ last, which always fails; all skipped."""

    async def picky(value: int) -> int:
        if value == lost:
            raise ValueError("not this one")
        return value

    async def last(value: Any) -> Any:
        raise ValueError(f"at {value}")

    with nw.workflow("losses") as w:
        items = w.add(Produced(range(of)).node(), id="items")
        kept = w.add(made(picky), id="picky", value=items)
        given = kept.collect() if kind == "Sort" else kept
        out = w.add(f"flow.{kind}", id="out", items=given, **properties)
        w.add(made(last), id="last", value=out)
    asked = Asked([Rule(answers=(ScriptedAnswer(Skip(), "as written"),))])
    return w.build(), asked


def root_of(played: Played, node_id: str) -> Mapping[str, Any]:
    return next(r for r in played.result.ledger["roots"] if r["node"] == node_id)


def counts_of(played: Played, node_id: str) -> dict[str, int]:
    """How the items of a root ended at its only exit, without zeros."""
    (exit_,) = root_of(played, node_id)["exits"]
    return {k: v for k, v in exit_.items() if isinstance(v, int) and v and k != "emitted"}


# -- Batch --


def batched(values: Sequence[Any], size: int) -> list[list[Any]]:
    return [list(values[at : at + size]) for at in range(0, len(values), size)]


@given(values=st.lists(st.integers(), max_size=25), size=st.integers(1, 8), seed=seeds)
def test_batches_are_of_the_size_and_the_last_holds_the_rest(
    values: list[int], size: int, seed: int | None
) -> None:
    assert out_of(values, "Batch", size=size, seed=seed) == batched(values, size)


def test_items_that_were_filtered_out_leave_no_gap_in_a_batch() -> None:
    async def even(value: int) -> bool:
        return value % 2 == 0

    with nw.workflow("filtered") as w:
        items = w.add(Produced(range(9)).node(), id="items")
        test = w.add(made(even), id="even", value=items)
        kept = w.add("flow.Filter", id="kept", value=items, condition=test)
        w.add("flow.Batch", id="out", items=kept, size=2)
    played = play(Session(w.build()), seed=2)
    assert list(played.result.outputs["out"]) == [[0, 2], [4, 6], [8]]


def test_a_batch_is_made_for_each_parent() -> None:
    """kernel.md §1: a reader's scope is the parent of its stream."""

    async def inner(value: int) -> AsyncIterator[int]:
        for number in range(value):
            yield 10 * value + number

    with nw.workflow("nested") as w:
        outer = w.add(Produced([3, 0, 1]).node(), id="outer")
        items = w.add(made(inner), id="inner", value=outer)
        batches = w.add("flow.Batch", id="batches", items=items, size=2)
        w.add("flow.Collect", id="out", items=batches.collect())
    played = play(Session(w.build()), seed=4)
    assert [list(part) for part in played.result.outputs["out"]] == [[[30, 31], [32]], [], [[10]]]


def test_the_element_type_goes_through_a_batch() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    async def takes_text(value: list[str]) -> None:
        return None

    w = nw.workflow("types")
    items = w.add(made(numbers), id="items")
    batches = w.add("flow.Batch", id="batches", items=items, size=2)
    w.add(made(takes_text), id="last", value=batches)
    with pytest.raises(SpecError, match=r"list\[int\]"):
        w.build()


def test_a_size_of_zero_is_refused_at_load() -> None:
    with pytest.raises(SpecError, match="greater than or equal to 1"):
        through(Produced([]).node(), "Batch", size=0)


def test_what_was_read_before_a_stream_ended_early_still_comes_out() -> None:
    async def dying() -> AsyncIterator[int]:
        for number in range(5):
            yield number
        raise ValueError("dry")

    asked = Asked([Rule(answers=(ScriptedAnswer(EndStream(), "enough"),))])
    workflow = through(made(dying), "Batch", size=2)
    played = play(Session(workflow, supervise=asked), seed=1)
    assert list(played.result.outputs["out"]) == [[0, 1], [2, 3], [4]]
    assert "items ended early: kept 5 of unknown" in played.result.headline


# -- Window --


def windowed(
    values: Sequence[Any], times: Sequence[float], seconds: float, most: int | None
) -> list[list[Any]]:
    """By the number of the window each value falls into, cut into lists of at most `most`."""
    spans: dict[int, list[Any]] = {}
    for value, when in zip(values, times, strict=True):
        spans.setdefault(int((when - times[0]) // seconds), []).append(value)
    lists = [spans[number] for number in sorted(spans)]
    return [part for found in lists for part in batched(found, most or len(found))]


@settings(max_examples=150)
@given(
    gaps=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.75, 10.0]), max_size=14),
    seconds=st.sampled_from([0.25, 0.5, 1.0, 1.5, 4.0]),
    most=st.one_of(st.none(), st.integers(1, 4)),
    seed=seeds,
)
def test_a_window_holds_what_came_in_its_time(
    gaps: list[float], seconds: float, most: int | None, seed: int | None
) -> None:
    """What comes at the very end of a window belongs to the next one."""
    produced = Produced(range(len(gaps)), gaps)
    workflow = through(produced.node(), "Window", seconds=seconds, max_items=most)
    played = play(Session(workflow), seed=seed)
    expected = windowed(range(len(gaps)), produced.times, seconds, most)
    assert list(played.result.outputs["out"]) == expected


def test_a_list_comes_out_when_its_window_ends_not_when_the_next_item_comes() -> None:
    seen: list[tuple[float, list[int]]] = []

    async def note(value: list[int]) -> None:
        seen.append((asyncio.get_running_loop().time(), value))

    with nw.workflow("when") as w:
        items = w.add(Produced([1, 2, 3], [1.0, 1.0, 60.0]).node(), id="items")
        lists = w.add("flow.Window", id="lists", items=items, seconds=5)
        w.add(made(note), id="note", value=lists)
    played = play(Session(w.build()), seed=5)
    assert seen == [(6.0, [1, 2]), (62.0, [3])]
    assert played.ended_s == 62.0


def test_a_full_window_comes_out_at_once() -> None:
    seen: list[tuple[float, list[int]]] = []

    async def note(value: list[int]) -> None:
        seen.append((asyncio.get_running_loop().time(), value))

    with nw.workflow("when") as w:
        items = w.add(Produced([1, 2, 3], [0.0, 1.0, 1.0]).node(), id="items")
        lists = w.add("flow.Window", id="lists", items=items, seconds=10, max_items=2)
        w.add(made(note), id="note", value=lists)
    play(Session(w.build()), seed=5)
    assert seen == [(1.0, [1, 2]), (2.0, [3])]


@pytest.mark.parametrize("pressure", [1, 2, 1024])
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_slow_consumer_of_windows_gets_everything_in_order(
    pressure: int, seed: int | None
) -> None:
    """While nobody takes the last list, nothing is read: windows grow longer, memory does not."""
    seen: list[int] = []
    produced = Produced(range(40), [0.5] * 40)

    async def slow(value: list[int]) -> None:
        await asyncio.sleep(7)
        seen.extend(value)

    with nw.workflow("slow") as w:
        items = w.add(produced.node(), id="items")
        lists = w.add("flow.Window", id="lists", items=items, seconds=1)
        w.add(made(slow), id="slow", value=lists)
    played = play(Session(w.build(), window=pressure), seed=seed)
    assert played.result.status == "completed", played.result.reason
    assert seen == list(range(40))
    assert played.of(WindowWidened) == []
    assert counts_of(played, "items") == {"delivered": 40}


# -- Limit, and consumers that stop early --


@given(values=st.lists(st.integers(), max_size=12), count=st.integers(0, 15), seed=seeds)
def test_limit_lets_the_first_pass(values: list[int], count: int, seed: int | None) -> None:
    assert out_of(values, "Limit", count=count, seed=seed) == values[:count]


def test_a_limit_closes_its_producer_at_its_next_item_and_marks_it_cut_short() -> None:
    """kernel.md §1: `left` after a normal return; every exit has left: closed, cut short."""
    endless = Endless()
    played = play(Session(through(endless.node(), "Limit", count=3)), seed=1)
    assert played.result.status == "completed"
    assert list(played.result.outputs["out"]) == [0, 1, 2]
    assert (endless.yielded, endless.closed, played.ended_s) == (4, True, 4.0)
    assert [e.mark for e in played.of(StreamClosed) if e.node_id == "items"] == ["cut"]


def test_what_a_limit_did_not_read_is_left_and_no_loss() -> None:
    played = play(Session(through(Produced(range(10)).node(), "Limit", count=3)), seed=1)
    counts = counts_of(played, "items")
    assert counts["delivered"] == 3
    assert set(counts) <= {"delivered", "left"}
    assert root_of(played, "items")["missing"] == []
    assert not played.result.supervised


def test_a_limit_beside_another_consumer_stops_nobody() -> None:
    async def echo(value: int) -> int:
        return value

    with nw.workflow("beside") as w:
        items = w.add(Produced(range(6)).node(), id="items")
        w.add("flow.Limit", id="few", items=items, count=2)
        w.add(made(echo), id="all", value=items)
    played = play(Session(w.build()), seed=3)
    assert list(played.result.outputs["few"]) == [0, 1]
    assert list(played.result.outputs["all"]) == list(range(6))
    assert [e.mark for e in played.of(StreamClosed) if e.node_id == "items"] == ["closed"]


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
@pytest.mark.parametrize(
    ("kind", "properties", "first"),
    [
        ("Batch", {"size": 3}, [0, 1, 2]),
        ("Window", {"seconds": 2}, [0, 1]),
        ("Dedupe", {}, 0),
        ("Limit", {"count": 100}, 0),
    ],
)
def test_a_stream_that_is_cut_below_closes_all_above(
    kind: str, properties: dict[str, Any], first: object, seed: int | None
) -> None:
    endless = Endless()
    with nw.workflow("cut") as w:
        items = w.add(endless.node(), id="items")
        between = w.add(f"flow.{kind}", id="between", items=items, **properties)
        w.add("flow.Limit", id="out", items=between, count=1)
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "completed", played.result.reason
    assert list(played.result.outputs["out"]) == [first]
    assert endless.closed
    assert endless.yielded <= 6
    assert played.left_open == ()


def test_a_stream_that_is_cut_below_need_not_yield_again_to_end() -> None:
    """The second value never comes: Dedupe has nothing to yield at which it could be closed."""
    endless = Endless(lambda _: "the same")
    with nw.workflow("cut") as w:
        items = w.add(endless.node(), id="items")
        once = w.add("flow.Dedupe", id="once", items=items)
        w.add("flow.Limit", id="out", items=once, count=1)
    session = Session(w.build())
    played = play(session, seed=1, at=[(1_000.0, lambda: session.cancel("still running"))])
    assert played.result.status == "completed", played.result.reason
    assert list(played.result.outputs["out"]) == ["the same"]
    assert endless.yielded <= 3


@pytest.mark.parametrize(
    ("kind", "properties"),
    [("Batch", {"size": 4}), ("Window", {"seconds": 3}), ("Dedupe", {}), ("Limit", {"count": 99})],
)
def test_a_producer_that_never_ends_can_be_cancelled(kind: str, properties: dict[str, Any]) -> None:
    endless = Endless()
    session = Session(through(endless.node(), kind, **properties))
    played = play(session, seed=2, at=[(10.5, session.cancel)])
    assert played.result.status == "cancelled"
    assert endless.closed
    assert endless.yielded == 10
    assert played.ended_s < 12
    assert played.left_open == ()


@pytest.mark.parametrize(
    ("kind", "properties"),
    [("Batch", {"size": 4}), ("Window", {"seconds": 3}), ("Dedupe", {}), ("Limit", {"count": 99})],
)
def test_nothing_is_read_ahead_of_a_slow_consumer(kind: str, properties: dict[str, Any]) -> None:
    """kernel.md §2: back-pressure reaches through readers; memory is bounded by the windows."""
    produced = Produced(range(60))
    ahead: list[int] = []
    done = 0

    async def slow(value: Any) -> None:
        nonlocal done
        await asyncio.sleep(1)
        done += len(value) if isinstance(value, list) else 1
        ahead.append(produced.yielded - done)

    with nw.workflow("slow") as w:
        items = w.add(produced.node(), id="items")
        between = w.add(f"flow.{kind}", id="between", items=items, **properties)
        w.add(made(slow), id="slow", value=between)
    played = play(Session(w.build(), window=2), seed=1)
    assert played.result.status == "completed", played.result.reason
    assert done == 60
    if kind != "Window":  # a window may hold any number: all of these come within its time
        assert max(ahead) <= 16
    assert played.of(WindowWidened) == []


# -- Dedupe --


def deduped(keys: Sequence[Hashable], remember: int | None) -> list[int]:
    """The positions that pass: a value is known if it is among the last `remember` seen."""
    passed, seen = [], []
    for position, key in enumerate(keys):
        if key in seen:
            seen.remove(key)
        else:
            passed.append(position)
        seen.append(key)
        if remember is not None:
            seen = seen[-remember:]
    return passed


@given(
    values=st.lists(st.integers(0, 5), max_size=25),
    remember=st.one_of(st.none(), st.integers(1, 4)),
    seed=seeds,
)
def test_dedupe_lets_each_value_pass_once(
    values: list[int], remember: int | None, seed: int | None
) -> None:
    expected = [values[position] for position in deduped(values, remember)]
    assert out_of(values, "Dedupe", remember=remember, seed=seed) == expected


@given(values=st.lists(st.integers(0, 3), max_size=15))
def test_values_that_cannot_be_hashed_count_by_their_content(values: list[int]) -> None:
    records = [
        {"b": [value], "a": {"x": None}} if turn % 2 else {"a": {"x": None}, "b": [value]}
        for turn, value in enumerate(values)
    ]
    expected = [records[position] for position in deduped(values, None)]
    assert out_of(records, "Dedupe") == expected


@dataclass
class Page:
    url: str
    tags: list[str]


def test_dedupe_by_a_field_of_records_of_any_kind() -> None:
    pages = [Page("a", ["x"]), Page("b", ["x"]), Page("a", ["y"])]
    rows = [{"url": "a", "n": 1}, {"url": "a", "n": 2}, {"url": "b", "n": 3}]
    assert out_of(pages, "Dedupe", key="url") == pages[:2]
    assert out_of(pages, "Dedupe", key="tags") == [pages[0], pages[2]]
    assert out_of(rows, "Dedupe", key="url") == [rows[0], rows[2]]
    assert out_of(pages, "Dedupe") == pages


def test_true_is_not_one_and_nothing_is_a_value() -> None:
    nan = float("nan")
    values = [1, True, 1.0, None, False, 0, None, nan, nan, "1", [1], [True], [1], (1,), b"1"]
    found = out_of(values, "Dedupe")
    expected = [1, True, None, False, 0, nan, "1", [1], [True], (1,), b"1"]
    assert [repr(value) for value in found] == [repr(value) for value in expected]


def test_text_that_no_encoding_can_say_is_told_apart() -> None:
    values = [["\udc80"], ["\udc81"], ["\udc80"]]
    assert out_of(values, "Dedupe") == values[:2]


def test_a_missing_field_is_named_with_those_there_are() -> None:
    reason = reason_of([{"url": "a", "n": 1}, {"link": "b"}], "Dedupe", key="url")
    assert "{'link': 'b'} has no field 'url'; it has link" in reason


def test_a_value_that_has_no_content_to_compare_is_named() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "an odd one"

    reason = reason_of([Odd()], "Dedupe")
    assert "an odd one cannot be told from others" in reason
    assert "name a field with key:" in reason


# -- Sort --


@given(values=st.lists(st.integers(-9, 9), max_size=25), descending=st.booleans(), seed=seeds)
def test_sort_puts_values_in_order(values: list[int], descending: bool, seed: int | None) -> None:
    found = out_of(values, "Sort", descending=descending, seed=seed)
    assert found == sorted(values, reverse=descending)


@given(keys=st.lists(st.integers(0, 3), max_size=15), descending=st.booleans())
def test_items_that_rank_alike_keep_their_order(keys: list[int], descending: bool) -> None:
    rows = [{"key": key, "at": at} for at, key in enumerate(keys)]
    found = out_of(rows, "Sort", key="key", descending=descending)
    assert found == sorted(rows, key=lambda row: row["key"], reverse=descending)


def test_values_without_an_order_fail_and_two_items_are_named() -> None:
    reason = reason_of([3, "three", 1], "Sort")
    assert "item 1 (3) and item 2 ('three') have no order" in reason
    assert "of type int in one and of type str in the other" in reason
    rows = [{"n": 1}, {"n": None}]
    reason = reason_of(rows, "Sort", key="n")
    assert "item 1 ({'n': 1}) and item 2 ({'n': None}) have no order: n is of type int" in reason
    assert "nothing in the other" in reason


def test_a_number_that_is_none_is_named_instead_of_scrambling_the_rest() -> None:
    reason = reason_of([3.0, float("nan"), 1.0], "Sort")
    assert "item 2 (nan) has no place in an order: the value is NaN" in reason


def test_items_keep_their_numbers_in_what_sort_says() -> None:
    """The item's number is the one it has in its fan-out, gaps and all."""

    async def picky(value: Any) -> Any:
        if value == 1:
            raise ValueError("not this one")
        return value

    with nw.workflow("numbers") as w:
        items = w.add(Produced([1, 2, "three"]).node(), id="items")
        kept = w.add(made(picky), id="picky", value=items)
        w.add("flow.Sort", id="out", items=kept.collect())
    asked = Asked([Rule(answers=(ScriptedAnswer(Skip(), "as written"),), node="picky")])
    played = play(Session(w.build(), supervise=asked), seed=1)
    assert "item 2 (2) and item 3 ('three') have no order" in played.result.reason


# -- losses before them --


@pytest.mark.parametrize(
    ("kind", "properties", "expected"),
    [
        ("Batch", {"size": 2}, [[0, 2], [3, 4]]),
        ("Window", {"seconds": 1}, [[0, 2, 3, 4]]),
        ("Limit", {"count": 2}, [0, 2]),
        ("Dedupe", {}, [0, 2, 3, 4]),
        ("Sort", {"descending": True}, [4, 3, 2, 0]),
    ],
)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_loss_stays_visible_behind_what_comes_out(
    kind: str, properties: dict[str, Any], expected: list[Any], seed: int | None
) -> None:
    """kernel.md §1: a reader's results carry the losses it read; the ledger names the item."""
    workflow, asked = with_a_loss(1, 5, kind, properties)
    played = play(Session(workflow, supervise=asked, bounds=MANY_DECISIONS), seed=seed)
    assert played.result.status == "completed", played.result.reason
    (missing,) = root_of(played, "items")["missing"]
    assert (missing["item"], missing["node"]) == ("2", "picky")
    below = [e for e in asked.escalations if e.node_id == "last"]
    assert [e.detail for e in below] == [f"ValueError: at {value}" for value in expected]
    first = next(e for e in asked.escalations if e.node_id == "picky")
    after = below[1:] if kind in ("Limit", "Dedupe") else below
    assert all(e.caused_by == (first.id,) for e in after)


def test_a_failed_item_ends_the_reader_under_keep_going() -> None:
    """kernel.md §3: a running reader is cancelled when a failed item reaches its slot."""

    async def picky(value: int) -> int:
        if value == 3:
            raise ValueError("not this one")
        return value

    with nw.workflow("failed") as w:
        items = w.add(Produced(range(5), [1.0] * 5).node(), id="items")
        kept = w.add(made(picky), id="picky", value=items)
        w.add("flow.Batch", id="out", items=kept, size=2)
    played = play(Session(w.build(), keep_going=True), seed=1)
    assert played.result.status == "failed"
    assert list(played.result.outputs["out"]) == [[0, 1]]
