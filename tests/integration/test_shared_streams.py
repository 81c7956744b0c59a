"""A stream that several tasks of one step read: each item goes to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Annotated

import pytest

import nightwarden as nw
from nightwarden import ARRIVAL, Stream
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.testing import play
from nightwarden.verdict import Decision, EndStream, Escalation


@nw.node(type="shared.Slow", retry_safe=True)
async def slow(count: int) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(1)
        yield number


def read_by(step: object, count: int = 6) -> nw.RunResult:
    with nw.workflow("shared") as w:
        items = w.add(slow, id="slow", count=count)
        w.add(step, id="read", lines=items)
    return play(nw.Session(w.build())).result


@nw.node(type="shared.Both", retry_safe=True)
async def both(lines: Stream[int]) -> list[int]:
    async def drain() -> list[int]:
        return [line async for line in lines]

    async with asyncio.timeout(100):
        return sorted(chain(*await asyncio.gather(drain(), drain(), drain())))


@nw.node(type="shared.Arriving", retry_safe=True)
async def arriving(lines: Annotated[Stream[int], ARRIVAL]) -> list[int]:
    async def drain() -> list[int]:
        return [line async for _, line in lines.indexed()]

    async with asyncio.timeout(100):
        return sorted(chain(*await asyncio.gather(drain(), drain())))


@nw.node(type="shared.Threads", retry_safe=True)
def threads(lines: Stream[int]) -> list[int]:
    def drain(_: int) -> list[int]:
        return list(lines)  # type: ignore[call-overload, no-any-return]

    with ThreadPoolExecutor(2) as pool:
        return sorted(chain(*pool.map(drain, range(2))))


@pytest.mark.parametrize("step", [both, arriving])
def test_tasks_that_share_a_stream_have_all_its_items_between_them(step: object) -> None:
    assert read_by(step).outputs == {"read": [0, 1, 2, 3, 4, 5]}


def test_threads_that_share_a_stream_have_all_its_items_between_them() -> None:
    with nw.workflow("shared") as w:
        items = w.input("items", list[int])
        w.add(threads, id="read", lines=items.each())
    assert nw.run(w.build(), {"items": list(range(200))}).outputs == {"read": list(range(200))}


@nw.node(type="shared.Impatient", retry_safe=True)
async def impatient(lines: Stream[int]) -> list[int]:
    """Gives up waiting after a third of the time an item takes, and comes back."""
    found: list[int] = []
    while True:
        try:
            async with asyncio.timeout(0.3):
                found.append(await anext(lines))
        except TimeoutError:
            continue
        except StopAsyncIteration:
            return found


def test_an_item_is_not_lost_to_who_has_given_up_waiting_for_it() -> None:
    assert read_by(impatient).outputs == {"read": [0, 1, 2, 3, 4, 5]}


class Slowly(SupervisorBase):
    """Thinks for as long as two items take."""

    async def decide(self, escalation: Escalation) -> Decision:
        await asyncio.sleep(2)
        return Decision(verdict=EndStream(), rationale="it waits no longer")


@nw.node(type="shared.GivesUp")
async def gives_up(lines: Stream[int]) -> list[int]:
    found = [await anext(lines)]
    async with asyncio.timeout(0.3):
        found.append(await anext(lines))
    return found


def test_an_item_that_comes_after_its_reader_has_failed_is_lost_and_not_read() -> None:
    """kernel.md §1: a reader that dies takes the rest unread, as lost."""
    with nw.workflow("shared") as w:
        w.add(gives_up, id="read", lines=w.add(slow, id="slow", count=6))
    result = play(nw.Session(w.build(), supervise=Slowly())).result
    assert result.status == "completed"
    assert [i.escalation.detail for i in result.interventions] == ["TimeoutError"]
    assert "1/6 items, 5 skipped" in result.headline
    assert result.outputs["read"] == {"absent": "lost", "causes": ["read was given up"]}
