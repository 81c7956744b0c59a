"""Frames told together and items shown ahead: nobody can tell them from those told one by one.

All on virtual time, in several seeded orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kept import events_of

import nightwarden as nw
from nightwarden import Context, Session, Stream
from nightwarden.testing import Played, play

SEEDS = (None, 1, 2, 3)


def made(step: Callable[..., Any], **promises: Any) -> Callable[..., Any]:
    return nw.node(type=f"test.{step.__name__.capitalize()}", **promises)(step)


def now() -> float:
    return asyncio.get_running_loop().time()


async def ten() -> AsyncIterator[int]:
    for number in range(10):
        yield number


def exit_of(played: Played, node_id: str) -> Mapping[str, Any]:
    """The one exit of a fan-out."""
    root = next(r for r in played.result.ledger["roots"] if r["node"] == node_id)
    (found,) = root["exits"]
    assert isinstance(found, Mapping)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_an_item_is_there_as_soon_as_its_source_waits(seed: int | None) -> None:
    seen: list[float] = []

    async def source() -> AsyncIterator[int]:
        for number in range(3):
            yield number
            await asyncio.sleep(10)

    async def reader(value: Stream[int]) -> int:
        async for _ in value:
            seen.append(now())
        return len(seen)

    with nw.workflow("at-once") as w:
        items = w.add(made(source), id="items")
        w.add(made(reader), id="reader", value=items)
    play(Session(w.build()), seed=seed)
    assert [s - seen[0] for s in seen] == [pytest.approx(t) for t in (0, 10, 20)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stage_nobody_wants_more_of_reads_no_further(seed: int | None) -> None:
    """row: K1-FAN-LEFT"""
    read: list[int] = []

    async def stage(value: Stream[int]) -> AsyncIterator[int]:
        async for item in value:
            read.append(item)
            if item == 0:
                yield item
            await asyncio.sleep(1)

    async def first(value: Stream[int]) -> int:
        async for item in value:
            return item
        return -1

    with nw.workflow("unwanted") as w:
        items = w.add(made(ten), id="items")
        out = w.add(made(stage), id="stage", value=items)
        w.add(made(first), id="first", value=out)
    played = play(Session(w.build()), seed=seed)
    assert played.result.outputs == {"first": 0}
    assert read == [0]
    assert exit_of(played, "items")["delivered"] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_reads_no_further_once_the_run_stops(seed: int | None) -> None:
    """row: K3-STOP"""
    read: list[int] = []

    async def reader(value: Stream[int]) -> int:
        async for item in value:
            read.append(item)
            await asyncio.sleep(1)
        return len(read)

    async def bad() -> str:
        await asyncio.sleep(2.5)
        raise ValueError("bad")

    with nw.workflow("stop") as w:
        items = w.add(made(ten), id="items")
        w.add(made(reader), id="reader", value=items)
        w.add(made(bad), id="bad")
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "failed"
    assert read == [0, 1, 2]
    assert exit_of(played, "items")["delivered"] == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_is_closed_at_its_first_yield_after_the_run_stops(seed: int | None) -> None:
    """row: K3-STOP"""
    begun: list[int] = []

    async def source() -> AsyncIterator[int]:
        for number in range(100):
            begun.append(number)
            await asyncio.sleep(1)
            yield number

    async def bad() -> str:
        await asyncio.sleep(2.5)
        raise ValueError("bad")

    with nw.workflow("stop") as w:
        w.add(made(source), id="items")
        w.add(made(bad), id="bad")
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "failed"
    assert begun == [0, 1, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_reader_has_not_used_is_left(seed: int | None) -> None:
    """row: K1-FAN-LEFT"""

    async def three(value: Stream[int]) -> list[int]:
        found: list[int] = []
        async for item in value:
            found.append(item)
            if len(found) == 3:
                break
        return found

    with nw.workflow("left") as w:
        items = w.add(made(ten), id="items")
        w.add(made(three), id="three", value=items)
    played = play(Session(w.build()), seed=seed)
    assert played.result.outputs == {"three": [0, 1, 2]}
    found = exit_of(played, "items")
    assert (found["delivered"], found["left"]) == (3, 7)


def test_the_record_says_how_many_items_were_used_and_not_how_many_were_shown(
    tmp_path: Path,
) -> None:
    """row: K3-RESUME-READER"""

    async def stage(value: Stream[int]) -> AsyncIterator[int]:
        found = 0
        async for item in value:
            found += 1
            if item % 2:
                yield item
            if found == 6:
                return

    with nw.workflow("read") as w:
        items = w.add(made(ten), id="items")
        w.add(made(stage), id="stage", value=items)
    nw.run(w.build(), store=tmp_path)
    events = [e for e in events_of(tmp_path) if e.get("node_id") == "stage"]
    put_out = [e["read"] for e in events if e["type"] == "item_emitted"]
    assert put_out == [{"value": 2}, {"value": 4}, {"value": 6}]
    (returned,) = [e["read"] for e in events if e["type"] == "invocation_succeeded"]
    assert returned == {"value": 6}


@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_of_a_step_share_its_stream(seed: int | None) -> None:
    """What they use is told although the step itself only waits for them."""

    async def source() -> AsyncIterator[int]:
        for number in range(40):
            yield number

    async def reader(value: Stream[int]) -> int:
        async def sums() -> int:
            found = 0
            async for item in value:
                await asyncio.sleep(1)
                found += item
            return found

        return await asyncio.create_task(sums())

    with nw.workflow("tasks") as w:
        items = w.add(made(source), id="items")
        w.add(made(reader), id="reader", value=items)
    played = play(Session(w.build(), window=4), seed=seed)
    assert played.result.outputs == {"reader": sum(range(40))}


@pytest.mark.parametrize("kind", ["async", "inline"])
def test_a_source_that_never_waits_lets_others_have_a_turn(kind: str) -> None:
    turns: list[int] = []
    put_out: list[int] = []

    async def by_loop() -> AsyncIterator[int]:
        for number in range(1_000):
            put_out.append(number)
            yield number

    def inline() -> Iterator[int]:
        for number in range(1_000):
            put_out.append(number)
            yield number

    async def other() -> int:
        while len(put_out) < 1_000:
            turns.append(len(put_out))
            await asyncio.sleep(0)
        return len(turns)

    with nw.workflow("turns") as w:
        source = made(by_loop) if kind == "async" else made(inline, inline=True)
        w.add(source, id="items")
        w.add(made(other), id="other")
    played = play(Session(w.build()), seed=None)
    assert played.result.status == "completed"
    assert len(turns) > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_source_that_dies_has_put_out_what_it_yielded(seed: int | None) -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise ValueError("dry")

    async def echo(value: int) -> int:
        return value

    with nw.workflow("dies") as w:
        items = w.add(made(source), id="items")
        w.add(made(echo), id="echo", value=items)
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "failed"
    root = next(r for r in played.result.ledger["roots"] if r["node"] == "items")
    assert root["items"] == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_frame_is_told_before_what_the_step_does_next(seed: int | None) -> None:
    """A control event sent after a frame comes after it: its answer may need what the frame led
    to."""
    order: list[str] = []

    async def source(ctx: Context) -> AsyncIterator[int]:
        yield 1
        await ctx.call("target", value=2)
        order.append("answered")
        yield 2

    async def echo(value: int) -> int:
        order.append(f"echo {value}")
        return value

    async def target(value: int) -> int:
        await asyncio.sleep(1)
        return value

    with nw.workflow("order") as w:
        controlled = w.add(made(target), id="target")
        items = w.add(made(source), id="items", controls=[controlled])
        w.add(made(echo), id="echo", value=items)
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "completed", played.result.headline
    assert order == ["echo 1", "answered", "echo 2"]
