"""The measure of things: what a careful person writes in plain asyncio, without an engine.

    source ─▶ Queue(64) ─▶ stage ─▶ Queue(64) ─▶ … ─▶ sink

One task a node, bounded queues between them, items are (key, value). No lineage, no accounts,
no record, no way on after a failure: the first exception ends everything. Nothing of the
engine is imported here.

Read next: `subject.py`, which does the same work on the engine.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from gauge import Workload, gauge, read_task, serve
from steps import (
    AT_ONCE,
    CHAIN,
    add,
    add_one,
    change,
    joined_total,
    make_record,
    nap,
    number,
    rewrite,
    total,
)

CAPACITY: Final = 64
END: Final = object()

Pipe = asyncio.Queue[Any]
Step = Callable[[Any], Awaitable[Any]]
Sink = Callable[[int, Any], None]


async def source(items: int, make: Callable[[int], Any], out: Pipe) -> None:
    """Puts the items on their way."""
    for key in range(items):
        await out.put((key, make(key)))
    await out.put(END)


async def stage(step: Step, inbox: Pipe, out: Pipe) -> None:
    """A node that takes one item at a time."""
    while (item := await inbox.get()) is not END:
        key, value = item
        await out.put((key, await step(value)))
    await out.put(END)


async def crowd(step: Step, inbox: Pipe, out: Pipe) -> None:
    """A node that has several items in hand."""

    async def worker() -> None:
        while (item := await inbox.get()) is not END:
            key, value = item
            await out.put((key, await step(value)))
        await inbox.put(END)  # for the next worker

    async with asyncio.TaskGroup() as workers:
        for _ in range(AT_ONCE):
            workers.create_task(worker())
    await out.put(END)


async def drain(inbox: Pipe, sink: Sink) -> None:
    """The end of the line."""
    while (item := await inbox.get()) is not END:
        sink(*item)


async def pipeline(
    items: int,
    steps: Sequence[Step],
    sink: Sink,
    *,
    make: Callable[[int], Any] = int,
    crowded: Step | None = None,
) -> None:
    """Items through steps in a row; `crowded` is the step that has `AT_ONCE` in hand."""
    pipes = [Pipe(CAPACITY) for _ in range(len(steps) + 1)]
    async with asyncio.TaskGroup() as nodes:
        nodes.create_task(source(items, make, pipes[0]))
        for step, inbox, out in zip(steps, pipes, pipes[1:], strict=False):
            node = crowd if step is crowded else stage
            nodes.create_task(node(step, inbox, out))
        nodes.create_task(drain(pipes[-1], sink))


async def fanout(items: int, step: Step = add_one, make: Callable[[int], Any] = int) -> int:
    """Three steps, everything collected by key."""
    kept: dict[int, Any] = {}
    await pipeline(items, [step] * 3, kept.__setitem__, make=make)
    return sum(map(number, kept.values()))


async def chain(items: int) -> int:
    """One item after the other through a hundred nodes, built afresh each time."""
    sums = 0
    for key in range(items):
        kept: dict[int, Any] = {}
        await pipeline(1, [add_one] * CHAIN, kept.__setitem__, make=partial(operator.add, key))
        sums += kept[0]
    return sums


async def join(items: int) -> int:
    """a ─▶ b, c ─▶ the two of a key added up."""
    first, to_b, to_c, to_join = (Pipe(CAPACITY) for _ in range(4))
    kept: dict[int, int] = {}

    async def split() -> None:
        while (item := await first.get()) is not END:
            key, value = item
            value = await add_one(value)
            await to_b.put((key, value))
            await to_c.put((key, value))
        await to_b.put(END)
        await to_c.put(END)

    async def side(name: str, inbox: Pipe) -> None:
        while (item := await inbox.get()) is not END:
            key, value = item
            await to_join.put((key, (name, await add_one(value))))
        await to_join.put(END)

    async def meet() -> None:
        waiting: dict[int, dict[str, int]] = {}
        open_sides = 2
        while open_sides:
            item = await to_join.get()
            if item is END:
                open_sides -= 1
                continue
            key, (name, value) = item
            sides = waiting.setdefault(key, {})
            sides[name] = value
            if len(sides) == 2:
                del waiting[key]
                kept[key] = await add(**sides)

    async with asyncio.TaskGroup() as nodes:
        nodes.create_task(source(items, int, first))
        nodes.create_task(split())
        nodes.create_task(side("left", to_b))
        nodes.create_task(side("right", to_c))
        nodes.create_task(meet())
    return sum(kept.values())


async def waiting(items: int) -> int:
    """Three steps, the middle one waits; everything collected."""
    kept: dict[int, int] = {}
    await pipeline(items, [add_one, nap, add_one], kept.__setitem__, crowded=nap)
    return sum(kept.values())


async def stream(items: int) -> int:
    """Three steps, nothing kept but the sum."""
    sums = 0

    def count(_: int, value: int) -> None:
        nonlocal sums
        sums += value

    await pipeline(items, [add_one] * 3, count)
    return sums


WORKLOADS = {
    "fanout": Workload(fanout, 3, total),
    "changed-records": Workload(lambda n: fanout(n, change, make_record), 3, total),
    "rewritten-records": Workload(lambda n: fanout(n, rewrite, make_record), 3, total),
    "chain": Workload(chain, CHAIN, lambda n: total(n, CHAIN), warm_up=2),
    "join": Workload(join, 4, joined_total),
    "waiting": Workload(waiting, 3, total),
    "stream": Workload(stream, 3, total),
}

if __name__ == "__main__":
    task = read_task()
    serve(gauge(WORKLOADS[task.workload], task))
