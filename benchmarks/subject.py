"""The engine at the same work as `reference.py`: whole runs, as a user of the library has them.

The clock starts before the session is opened and stops when the result is there. Workflows are
built once, before. How the steps are declared is part of the question:

    pure      pure=True, retry_safe=True, concurrency=1    nothing has to be copied
    default   @node and nothing else                       one at a time, in order
    retry     retry_safe=True                              eight at once, inputs copied

Read next: `trouble.py`, which measures what failures cost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from gauge import Run, Workload, gauge, read_task, serve
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

import nightwarden as nw
from nightwarden.spec.workflow import Workflow

Step = Callable[..., Any]

DECLARED: dict[str, dict[str, Any]] = {
    "pure": {"pure": True, "retry_safe": True, "concurrency": 1},
    "default": {},
    "retry": {"retry_safe": True},
}


async def numbers(count: int) -> AsyncIterator[int]:
    """A source that never holds them all."""
    for i in range(count):
        yield i


async def records(count: int) -> AsyncIterator[dict[str, object]]:
    """A source of records."""
    for i in range(count):
        yield make_record(i)


async def sum_up(values: nw.Stream[int]) -> int:
    """Reads a stream and keeps nothing of it."""
    sums = 0
    async for value in values:
        sums += value
    return sums


async def add_one_each(values: nw.Stream[int]) -> AsyncIterator[int]:
    """A stage that takes a stream in and puts one out."""
    async for value in values:
        yield value + 1


def fanout(declare: Step, step: Step = add_one) -> Workflow:
    """A list fanned out over three steps, and collected."""
    declare(step)
    with nw.workflow("fanout") as w:
        item = w.input("items", list[int]).each()
        for i in range(3):
            item = w.add(step, id=f"step_{i}", x=item)
        w.output("kept", item.collect())
    return w.build()


def generated(declare: Step, source: Step, step: Step, slot: str) -> Workflow:
    """The same from a step that yields."""
    declare(source), declare(step)
    with nw.workflow("generated") as w:
        item = w.add(source, id="source", count=w.input("count", int))
        for i in range(3):
            item = w.add(step, id=f"step_{i}", properties={slot: item})
        w.output("kept", item.collect())
    return w.build()


def chain(declare: Step) -> Workflow:
    """A hundred steps in a row."""
    declare(add_one)
    with nw.workflow("chain") as w:
        value = w.input("x", int)
        for i in range(CHAIN):
            value = w.add(add_one, id=f"step_{i}", x=value)
        w.output("kept", value)
    return w.build()


def diamond(declare: Step) -> Workflow:
    """Each item over two ways, and joined by its lineage."""
    declare(add_one), declare(add)
    with nw.workflow("diamond") as w:
        a = w.add(add_one, id="a", x=w.input("items", list[int]).each())
        b, c = w.add(add_one, id="b", x=a), w.add(add_one, id="c", x=a)
        w.output("kept", w.add(add, id="d", left=b, right=c).collect())
    return w.build()


def waiting(declare: Step) -> Workflow:
    """Three steps, the middle one waits with fifty items in hand."""
    declare(add_one)
    nw.node(retry_safe=True, pure=True, concurrency=AT_ONCE)(nap)
    with nw.workflow("waiting") as w:
        a = w.add(add_one, id="a", x=w.input("items", list[int]).each())
        c = w.add(add_one, id="c", x=w.add(nap, id="b", x=a))
        w.output("kept", c.collect())
    return w.build()


def stream(declare: Step) -> Workflow:
    """Three steps for each item, read by one that keeps nothing."""
    declare(numbers), declare(add_one), declare(sum_up)
    with nw.workflow("stream") as w:
        item = w.add(numbers, id="source", count=w.input("count", int))
        for i in range(3):
            item = w.add(add_one, id=f"step_{i}", x=item)
        w.output("kept", w.add(sum_up, id="sum", values=item))
    return w.build()


def stages(declare: Step) -> Workflow:
    """Three stages that read a stream and put out another."""
    declare(numbers), declare(add_one_each), declare(sum_up)
    with nw.workflow("stages") as w:
        item = w.add(numbers, id="source", count=w.input("count", int))
        for i in range(3):
            item = w.add(add_one_each, id=f"stage_{i}", values=item)
        w.output("kept", w.add(sum_up, id="sum", values=item))
    return w.build()


async def kept(workflow: Workflow, inputs: dict[str, object]) -> Any:
    """The run's one output."""
    result = await nw.arun(workflow, inputs)
    if not result.ok:
        raise SystemExit(f"{workflow.name}: {result.headline}")
    return result.outputs["kept"]


def over_list(workflow: Workflow) -> Run:
    """Runs over 0 … n-1, given as a list."""

    async def run(items: int) -> int:
        return sum(await kept(workflow, {"items": list(range(items))}))

    return run


def over_source(workflow: Workflow) -> Run:
    """Runs over what a source yields."""

    async def run(items: int) -> int:
        found = await kept(workflow, {"count": items})
        return found if isinstance(found, int) else sum(map(number, found))

    return run


def one_by_one(workflow: Workflow) -> Run:
    """A run for each item, from nothing."""

    async def run(items: int) -> int:
        return sum([await kept(workflow, {"x": key}) for key in range(items)])

    return run


def opened(workflow: Workflow) -> Run:
    """Only opens the sessions."""

    async def run(items: int) -> int:
        return len([nw.Session(workflow, {"x": key}) for key in range(items)])

    return run


def _record_runs(declare: Step, step: Step) -> Run:
    return over_source(generated(declare, records, step, "record"))


def workload(name: str, declared: str) -> Workload:
    """A workload by name, with its workflow built."""
    declare = nw.node(**DECLARED[declared])
    over: dict[str, Callable[[], Workload]] = {
        "fanout": lambda: Workload(over_list(fanout(declare)), 3, total),
        "generated": lambda: Workload(
            over_source(generated(declare, numbers, add_one, "x")), 3, total
        ),
        "changed-records": lambda: Workload(_record_runs(declare, change), 3, total),
        "rewritten-records": lambda: Workload(_record_runs(declare, rewrite), 3, total),
        "chain": lambda: Workload(
            one_by_one(chain(declare)), CHAIN, partial(total, steps=CHAIN), warm_up=2
        ),
        "open": lambda: Workload(opened(chain(declare)), CHAIN, int, warm_up=2),
        "join": lambda: Workload(over_list(diamond(declare)), 4, joined_total),
        "waiting": lambda: Workload(over_list(waiting(declare)), 3, total),
        "stream": lambda: Workload(over_source(stream(declare)), 3, total),
        "stages": lambda: Workload(over_source(stages(declare)), 3, total),
    }
    return over[name]()


if __name__ == "__main__":
    task = read_task()
    serve(gauge(workload(task.workload, task.declared), task))
