"""Streams in, streams out: cut into lists, cut by time, cut short.

    a b c d e ─▶ Batch(size=2) ─▶ [a b] [c d] [e]
                 Window(seconds=…) ─▶ what came in each span of time
                 Limit(count=2) ─▶ a b          and whoever produces more is closed

What comes out are new items, numbered from 1. Nothing is read ahead: while what came out is not
taken, nothing more is read. Losses that were read on the way stay in the account of the fan-out
they were lost from, and behind whatever comes out after them.

Read next: `_sorting.py`, `flow.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt

from nightwarden.nodes.define import define, node, register
from nightwarden.nodes.io import Stream

T = TypeVar("T")
S = TypeVar("S", bound=Callable[..., Any])

AtLeastOne = Annotated[int, Ge(1)]


def settled(name: str, *, inline: bool = False) -> Callable[[S], S]:
    """Decorate a node whose items follow from its input alone: the engine can make them again."""

    def decorate(code: S) -> S:
        made = define(code, name=name, engine_owned=True, retry_safe=True, pure=True, inline=inline)
        return register(code, made)

    return decorate


@settled("flow.Batch")
async def batch(items: Stream[T], *, size: AtLeastOne) -> AsyncIterator[list[T]]:
    """Gather a stream into lists of `size` items, in order; the last one holds the rest.

    Only values count: items that were lost or filtered out before leave no gap. No items, no list.
    """
    found: list[T] = []
    async for item in items:
        found.append(item)
        if len(found) == size:
            yield found
            found = []
    if found:
        yield found


@settled("flow.Limit")
async def limit_(items: Stream[T], *, count: Annotated[int, Ge(0)]) -> AsyncIterator[T]:
    """Let the first `count` items pass, in order, then stop reading.

    What is produced beyond counts as left, and a fan-out from which nobody else reads is closed at
    its next item ("cut short"). Items lost or filtered out before do not count as passed.
    """
    left = count
    if left == 0:
        return
    async for item in items:
        yield item
        left -= 1
        if left == 0:
            return


@node(type="flow.Window", pure=True)
async def window(
    items: Stream[T],
    *,
    seconds: Annotated[float, Gt(0)],
    max_items: AtLeastOne | None = None,
) -> AsyncIterator[list[T]]:
    """Gather a stream into lists by time: one list for each `seconds`, with what came meanwhile.

    Windows follow one another from the moment the first item is there. A list comes out when its
    window ends, or the stream does; a window in which nothing came puts out nothing. A list that
    reaches `max_items` comes out at once, and what else comes in its window makes another one.
    Not safe to run again: items do not come at the same times twice.
    """
    clock = asyncio.get_running_loop().time
    began, ends = clock(), 0.0
    found: list[T] = []
    while True:
        try:
            async with asyncio.timeout_at(ends if found else None) as timer:
                item = await anext(items)
        except StopAsyncIteration:
            break
        except TimeoutError:
            if not timer.expired():
                raise
            yield found
            found = []
            continue
        if found and clock() >= ends:
            # It came with the end of the window, or while nobody took the last list.
            yield found
            found = []
        if not found:
            ends = began + seconds * ((clock() - began) // seconds + 1)
        found.append(item)
        if len(found) == max_items:
            yield found
            found = []
    if found:
        yield found
