"""Small steps and short forms for the scenario tests.

Every scenario of the engine's list is cited as `scenario: 12` or `defect: D7`, several
separated by commas; `test_engine_scenarios_listed.py` holds that against the list.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import nightwarden as nw
from nightwarden import ABSENT, Absent, Collect, Context, Many, Stream
from nightwarden.testing import InlineExecutor, Played, play


@nw.node(type="s.Inc", retry_safe=True)
async def inc(x: int) -> int:
    return x + 1


@nw.node(type="s.Add", retry_safe=True)
async def add(a: int, b: int = 1) -> int:
    return a + b


@nw.node(type="s.Pair", retry_safe=True)
async def pair(a: Any, b: Any) -> list[Any]:
    return [a, b]


@nw.node(type="s.Even", retry_safe=True)
async def even(x: int) -> bool:
    return x % 2 == 0


@nw.node(type="s.Count", retry_safe=True)
async def count(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


@nw.node(type="s.Gather")
async def gather(xs: Collect[Any]) -> list[Any]:
    return list(xs)


@nw.node(type="s.GatherAll")
async def gather_all(xs: Collect[Any] | Absent) -> list[Any]:
    return list(xs) if isinstance(xs, list) else []


@nw.node(type="s.ListOf")
async def list_of(xs: Many[Any]) -> list[Any]:
    return list(xs)


@nw.node(type="s.Read")
async def read(xs: Stream[Any], most: int = 1_000) -> list[Any]:
    found: list[Any] = []
    async for x in xs:
        found.append(x)
        if len(found) == most:
            break
    return found


@nw.outputs
class Sides(NamedTuple):
    a: int | Absent = ABSENT
    b: int | Absent = ABSENT


@nw.node(type="s.OneSide", retry_safe=True)
async def one_side(x: int) -> Sides:
    return Sides(a=x)


def run(workflow: Any, inputs: dict[str, object] | None = None, **options: Any) -> nw.RunResult:
    """What a workflow comes to, on virtual time and with shuffled order."""
    return played(workflow, inputs, **options).result


def played(
    workflow: Any,
    inputs: dict[str, object] | None = None,
    *,
    seed: int | None = 7,
    at: Any = (),
    **options: Any,
) -> Played:
    """The same with all events."""
    session = nw.Session(workflow, inputs, executor=InlineExecutor(), **options)
    actions = [(when, lambda act=act: act(session)) for when, act in at]
    return play(session, seed=seed, at=actions)


_numbers = itertools.count()


def caller(*calls: Callable[[Context], Any]) -> Any:
    """A step that makes these calls at once and returns what they gave, errors as text."""

    @nw.node(type=f"s.Caller{next(_numbers)}")
    async def step(ctx: Context) -> list[Any]:
        found = await asyncio.gather(*(c(ctx) for c in calls), return_exceptions=True)
        return [str(f) if isinstance(f, BaseException) else dict(f) for f in found]

    return step


def frames(values: list[Any]) -> Any:
    """A fan-out that yields these."""

    @nw.node(type="s.Frames", retry_safe=True)
    async def step() -> AsyncIterator[Any]:
        for value in values:
            yield value

    return step
