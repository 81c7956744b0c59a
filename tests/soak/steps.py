"""What the steps of a drawn run do: take their time, fail now and then, count their calls.

Everything hangs on a number drawn for the run, the node, the item and the attempt, so that a
run can be played again. Each node gets functions of its own, for a function is one node type.

Read next: `drawing.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import nightwarden as nw
from nightwarden import ABSENT, ARRIVAL, Absent, Collect, Context, Many, RecoverableError, Stream
from nightwarden.errors import NodeError

Step = Callable[..., Any]
DELAYS_S = (0.0, 0.0, 0.001, 0.5, 3.0, 40.0)


@dataclass(slots=True)
class World:
    """One run as its steps see it. `wrong`: one call in so many fails; 0 for none.

    `seen` is what a step was given that it should not have been.
    """

    seed: int
    wrong: int = 0
    suspends: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    begun: Counter[tuple[str, tuple[int, ...], int]] = field(default_factory=Counter)
    seen: list[str] = field(default_factory=list)

    def dice(self, name: str, ctx: Context, *more: object) -> random.Random:
        """The chance of one moment of one call."""
        return random.Random(f"{self.seed} {name} {ctx.lineage} {ctx.attempt} {more}")

    async def live(self, name: str, ctx: Context, moment: int = 0) -> random.Random:
        """Let some time pass; then perhaps fail."""
        if not moment:
            self.calls[name] += 1
            self.begun[name, ctx.lineage, ctx.attempt] += 1
        dice = self.dice(name, ctx, moment)
        for _ in range(dice.randint(0, 2)):
            await asyncio.sleep(dice.choice(DELAYS_S))
        if self.wrong and dice.randrange(self.wrong) == 0:
            self._fail(dice, ctx)
        return dice

    def _fail(self, dice: random.Random, ctx: Context) -> None:
        match dice.randrange(6):
            case 0:
                raise RecoverableError("nearly", candidate_output=-1, code="soak")
            case 1:
                ctx.spend(0.01)
                raise ValueError("it cost something")
            case 2:
                raise SystemExit(3)
            case 3 if self.suspends:
                ctx.suspend("a while")
            case 4:
                raise asyncio.CancelledError
            case _:
                raise NodeError("no", code="soak:no")


def plain(world: World, name: str, kind: str) -> Step:
    """A step that runs once a lineage; `kind` says what its slots take."""

    async def one(ctx: Context, x: Any) -> Any:
        return (await world.live(name, ctx)).randrange(9)

    async def two(ctx: Context, x: Any, y: Any) -> Any:
        return (await world.live(name, ctx)).randrange(9)

    async def default(ctx: Context, x: Any, y: Any = 7) -> Any:
        return (await world.live(name, ctx)).randrange(9)

    async def accepts(ctx: Context, x: Any, y: Any | Absent = ABSENT) -> Any:
        return (await world.live(name, ctx)).randrange(9)

    async def many(ctx: Context, x: Many[Any]) -> Any:
        await world.live(name, ctx)
        return len(x)

    async def collects(ctx: Context, x: Collect[Any]) -> Any:
        if len(x) != len(x.indices) or list(x.indices) != sorted(set(x.indices)):
            world.seen.append(f"{name}: {len(x)} values at {list(x.indices)}")
        await world.live(name, ctx)
        return len(x)

    async def tells(ctx: Context, x: Any) -> bool:
        return (await world.live(name, ctx)).random() < 0.7

    kinds: dict[str, Step] = {
        "one": one,
        "two": two,
        "default": default,
        "accepts": accepts,
        "many": many,
        "collects": collects,
        "tells": tells,
    }
    return kinds[kind]


def streaming(world: World, name: str, kind: str, most: int) -> Step:
    """A step that puts out items, or reads them, or both."""

    async def fans(ctx: Context, x: Any) -> AsyncIterator[Any]:
        await world.live(name, ctx)
        for number in range(world.dice(name, ctx, "length").randint(0, most)):
            yield number
            await world.live(name, ctx, number + 1)

    async def reads(ctx: Context, x: Stream[Any]) -> Any:
        await world.live(name, ctx)
        read, enough = 0, world.dice(name, ctx, "enough").choice((10_000, 10_000, 1, 0))
        if enough:
            async for _ in x:
                read += 1
                await world.live(name, ctx, read)
                if read == enough:
                    break
        return read

    async def reads_as_it_comes(ctx: Context, x: Annotated[Stream[Any], ARRIVAL]) -> Any:
        await world.live(name, ctx)
        return len([item async for item in x])

    async def passes_on(ctx: Context, x: Stream[Any]) -> AsyncIterator[Any]:
        await world.live(name, ctx)
        read = 0
        async for item in x:
            read += 1
            yield item
            await world.live(name, ctx, read)

    async def reads_both(ctx: Context, x: Stream[Any], y: Stream[Any]) -> Any:
        await world.live(name, ctx)
        return [item async for item in x], [item async for item in y]

    kinds: dict[str, Step] = {
        "fans": fans,
        "reads": reads,
        "reads_as_it_comes": reads_as_it_comes,
        "passes_on": passes_on,
        "reads_both": reads_both,
    }
    return kinds[kind]


def caller(world: World, name: str, target: str, most: int) -> Step:
    """A step that controls another one: sends it events, and waits for some of the answers."""

    async def calls(ctx: Context, x: Any) -> Any:
        dice = await world.live(name, ctx)
        answered = 0
        for number in range(dice.randint(0, most)):
            if dice.random() < 0.5:
                ctx.control(target, x=number)
                continue
            try:
                answered += "output" in await ctx.call(target, x=number)
            except NodeError:
                await asyncio.sleep(0)
        if dice.random() < 0.3:
            ctx.end_control(target)
        return answered

    return calls


def node_type(name: str, step: Step, *, safe: bool) -> Step:
    """The step as a node type of its own."""
    return nw.node(type=f"soak.{name.capitalize()}", retry_safe=safe)(step)
