"""A costly chain: a poster is painted, checked, enlarged, published once, and announced.

`paint` and `upscale` are paid for and book it. `publish` passes a key on, and the outside takes
a key once, unless the case's promises say that it does not.

Read next: `nightly.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

import nightwarden as nw
from nightwarden.errors import RecoverableError
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.spec.workflow import Workflow

PAINT_USD: Final = 0.04
UPSCALE_USD: Final = 0.02
KEY: Final = "harbour"


@dataclass(frozen=True, slots=True)
class Take:
    """One picture that was painted: what it shows, its contrast from 0 to 1, its licence."""

    picture: str
    contrast: float
    licensed: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """Which take goes on, from 1."""

    take: Annotated[int, Field(ge=1, le=2)]


def announced(take: int = 1) -> str:
    """What the run puts out."""
    return f"published: {posted(take)}"


def posted(take: int = 1) -> str:
    """What reaches the outside."""
    return f"harbour, take {take}, large"


def poster(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""
    washed_out = "check" in case.replies
    unlicensed = case.replies.get("check") == "unlicensed"
    keyed = case.promises.get("publish", {}).get("idempotent_by", "key") is not None

    async def describe() -> str:
        """Say exactly what the poster shows."""
        return "harbour"

    async def paint(description: str, ctx: Context) -> list[Take]:
        """Have the picture painted in two takes; the service charges $0.04 for both."""
        await world.meet("paint", ctx)
        world.charge(PAINT_USD)
        ctx.spend(PAINT_USD)
        first = Take(f"{description}, take 1", 0.2 if washed_out else 0.7)
        return [first, Take(f"{description}, take 2", 0.8, licensed=not unlicensed)]

    async def check(takes: list[Take]) -> Choice:
        """Choose the take to print: one that is licensed, with a contrast of at least 0.4."""
        if takes[0].contrast >= 0.4:
            return Choice(1)
        raise RecoverableError(
            f"take 1 has a contrast of {takes[0].contrast}, too little to be printed",
            candidate_output={"take": 1},
            code="contrast",
        )

    async def upscale(takes: list[Take], choice: Choice, ctx: Context) -> str:
        """Have the chosen take enlarged for printing; the service charges $0.02."""
        await world.meet("upscale", ctx)
        world.charge(UPSCALE_USD)
        ctx.spend(UPSCALE_USD)
        return f"{takes[choice.take - 1].picture}, large"

    async def publish(poster: str, key: str, ctx: Context) -> str:
        """Publish the poster where everybody sees it. The outside takes a key once."""
        await world.meet("publish", ctx)
        world.post(key, poster, once=keyed)
        await world.meet("publish", ctx, after=True)
        return poster

    async def notify(receipt: str, ctx: Context) -> str:
        """Tell the team that the poster is out."""
        await world.meet("notify", ctx)
        return f"published: {receipt}"

    with nw.workflow("poster", description="Has a poster painted and publishes it.") as w:
        text = w.add(step(case, describe), id="describe")
        takes = w.add(step(case, paint, retry_safe=True), id="paint", description=text)
        choice = w.add(step(case, check, retry_safe=True), id="check", takes=takes)
        large = w.add(
            step(case, upscale, retry_safe=True), id="upscale", takes=takes, choice=choice
        )
        out = w.add(step(case, publish, idempotent_by="key"), id="publish", poster=large, key=text)
        end = w.add(step(case, notify), id="notify", receipt=out)
        w.output("result", end)
    return w.build()
