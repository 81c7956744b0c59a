"""Runs that once hung: what `make soak` found, made small by hand.

A failure that reaches a reader before it has begun, or one the kernel runs itself; callers that
wait for answers while the window is full. kernel.md §2 Back-pressure, §3 keep-going.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import nightwarden as nw
from nightwarden import Collect, Context, NodeError, Stream
from nightwarden.testing import InlineExecutor, Played, play


@nw.node(type="f.Breaks")
async def breaks(n: int = 1) -> AsyncIterator[int]:
    for i in range(n):
        yield i
    raise NodeError("broke")


@nw.node(type="f.Count")
async def counts(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


@nw.node(type="f.Slow")
async def slow(x: int) -> int:
    await asyncio.sleep(1)
    return x


@nw.node(type="f.Read")
async def reads(xs: Stream[Any]) -> int:
    return len([x async for x in xs])


@nw.node(type="f.PassOn")
async def passes_on(xs: Stream[Any]) -> AsyncIterator[Any]:
    async for x in xs:
        yield x


@nw.node(type="f.Wrong")
async def wrong(x: int) -> int:
    raise NodeError("no")


def played(w: Any, *, seed: int | None = None, **options: Any) -> Played:
    return play(nw.Session(w.build(), executor=InlineExecutor(), **options), seed=seed)


def counted(found: Played, node: str) -> dict[str, int]:
    (counts_,) = (n for n in found.result.ledger["nodes"] if n["node_id"] == node)
    return {k: v for k, v in counts_.items() if isinstance(v, int) and v}


@pytest.mark.parametrize("reader", [reads, passes_on])
@pytest.mark.parametrize("seed", range(4))
def test_a_failure_that_reaches_a_reader_before_it_has_begun_prunes_it(
    reader: Any, seed: int
) -> None:
    with nw.workflow("w") as w:
        w.add(reader, id="r", xs=w.add(breaks, id="b"))
    found = played(w, keep_going=True, seed=seed)
    assert found.result.status == "failed"
    assert counted(found, "b")["failed"] == 1
    reached = counted(found, "r")
    assert reached["due"] == 1
    assert reached.get("pruned", 0) + reached.get("cancelled", 0) == 1
    assert found.left_open == ()


@pytest.mark.parametrize("role", ["flow.Zip", "flow.Cross"])
def test_a_failure_that_reaches_a_pair_ends_it_and_the_rest_goes_on(role: str) -> None:
    with nw.workflow("w") as w:
        left, right = w.add(breaks, id="left", n=3), w.add(counts, id="right", n=3)
        pair = w.add(role, id="pair", left=left, right=w.add(slow, id="late", x=right))
        w.add(slow, id="after", x=pair.slot("left"))
    found = played(w, keep_going=True)
    assert found.result.status == "failed"
    assert counted(found, "late")["succeeded"] == 3
    assert found.left_open == ()


def test_a_failed_item_that_reaches_a_pair_ends_it() -> None:
    with nw.workflow("w") as w:
        items = w.add(counts, id="items", n=2)
        w.add("flow.Zip", id="pair", left=w.add(wrong, id="bad", x=items), right=items)
    found = played(w, keep_going=True)
    assert found.result.status == "failed"
    assert counted(found, "bad")["failed"] == 2


def test_a_pair_of_a_pair_that_failed_ends() -> None:
    """Unequal sides fail the first pair, which is a side of the second."""
    with nw.workflow("w") as w:
        few, many = w.add(counts, id="few", n=1), w.add(counts, id="many", n=3)
        pair = w.add("flow.Zip", id="pair", left=few, right=many)
        w.add("flow.Zip", id="second", left=pair.slot("left"), right=many)
    found = played(w, keep_going=True)
    assert found.result.status == "failed"
    assert "left ended after 1 item, right has more" in found.result.reason


# -- callers that wait --


@nw.node(type="f.Answer")
async def answers(x: int, n: int) -> int:
    return x + n


@nw.node(type="f.Sum")
async def sums(xs: Collect[int]) -> int:
    return sum(xs)


@nw.node(type="f.Asks")
async def asks(x: int, ctx: Context) -> int:
    return int((await ctx.call("answer", x=x))["output"])


@nw.node(type="f.AsksTwice")
async def asks_twice(x: int, ctx: Context) -> int:
    both = await asyncio.gather(ctx.call("answer", x=x), ctx.call("answer", x=x))
    return sum(int(one["output"]) for one in both)


@pytest.mark.parametrize("caller", [asks, asks_twice])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_window_gives_where_callers_wait_for_what_lies_beyond_it(
    caller: Any, groups: int
) -> None:
    """The answer needs a sum over all items, and the items cannot come before the answer."""
    with nw.workflow("w") as w:
        outer = w.add(counts, id="outer", n=groups)
        items = w.add(counts, id="items", n=w.add(plus, id="three", x=outer))
        total = w.add(sums, id="total", xs=items.collect())
        w.add(answers, id="answer", n=total, x=0)
        w.add(caller, id="caller", x=items, controls=["answer"])
    found = played(w, window=1)
    assert found.result.status == "completed", found.result.reason
    assert counted(found, "caller")["succeeded"] == 3 * groups


@nw.node(type="f.Plus")
async def plus(x: int) -> int:
    return 3
