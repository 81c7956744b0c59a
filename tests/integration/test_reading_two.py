"""Readers of two streams, through the real driver. (kernel.md §2, Back-pressure)"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import nightwarden as nw
from nightwarden import ABSENT, Absent, Stream
from nightwarden.session import Session
from nightwarden.testing import InlineExecutor
from nightwarden.testing.loop import run


@nw.node(type="two.Numbers")
async def numbers() -> AsyncIterator[int]:
    for number in range(40):
        yield number


@nw.node(type="two.Late", inline=True)
def late(number: int) -> int | Absent:
    return number if number == 15 else ABSENT


@nw.node(type="two.Both")
async def both(few: Stream[int], all_: Stream[int]) -> list[tuple[int, int]]:
    """The two streams side by side, as far as both go."""
    pairs: list[tuple[int, int]] = []
    one, other = aiter(few), aiter(all_)
    while True:
        left, right = await asyncio.gather(anext(one, None), anext(other, None))
        if left is None or right is None:
            return pairs
        pairs.append((left, right))


def test_a_reader_that_waits_for_two_items_at_once_gets_both_whatever_the_window() -> None:
    """row: K2-PRESSURE, K2-PARKED"""
    with nw.workflow("two") as w:
        made = w.add(numbers, id="numbers")
        w.add(both, id="both", few=w.add(late, id="late", number=made), all_=made)
    session = Session(w.build(), {}, window=2, executor=InlineExecutor())
    result = run(session.run())
    assert (result.status, result.outputs) == ("completed", {"both": [(15, 0)]})
