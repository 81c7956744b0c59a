"""A fan-out in a fan-out: shops have shelves, shelves have a price.

`shelves` streams too: a shop whose list breaks off has put some shelves out already.

Read next: `../cases/__init__.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import nightwarden as nw
from nightwarden.errors import RecoverableError
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.nodes.io import Collect
from nightwarden.spec.workflow import Workflow

SHOPS: Final = ("north", "south", "west")
SHELVES: Final = 3


def prices(
    *, without: tuple[str, ...] = (), changed: tuple[tuple[str, float], ...] = ()
) -> list[list[float]]:
    """The prices shop by shop, less the shops (`"2"`) and shelves (`"2.3"`) named."""
    named = dict(changed)
    return [
        [
            named.get(item, shelf_price(shop, shelf))
            for shelf in range(1, SHELVES + 1)
            if (item := f"{shop}.{shelf}") not in without
        ]
        for shop in range(1, len(SHOPS) + 1)
        if str(shop) not in without
    ]


def shelf_price(shop: int, shelf: int) -> float:
    """The price on a shelf; both counted from 1."""
    return shop * 10 + shelf + 0.5


def nested(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""

    async def shops() -> AsyncIterator[str]:
        """List the shops."""
        for name in SHOPS:
            yield name

    async def shelves(shop: str, ctx: Context) -> AsyncIterator[str]:
        """List the shelves of one shop."""
        await world.meet("shelves", ctx)
        for number in range(1, SHELVES + 1):
            if number == SHELVES:
                await world.meet("shelves", ctx, after=True)
            yield f"{shop} {number}"

    async def price(shelf: str, ctx: Context) -> float:
        """Read the price on one shelf's label, for a survey; single shelves may be missing."""
        await world.meet("price", ctx)
        shop, number = shelf.split()
        usual = shelf_price(SHOPS.index(shop) + 1, int(number))
        text = world.reply("price", ctx, f"{usual}")
        try:
            return float(text)
        except ValueError as error:
            raise RecoverableError(
                "the label shows no price", candidate_output=text, code="no-price"
            ) from error

    async def shop(each: Collect[float]) -> list[float]:
        """Gather the prices of one shop."""
        return list(each)

    async def prices(each: Collect[list[float]]) -> list[list[float]]:
        """Gather the prices of all shops."""
        return list(each)

    with nw.workflow("nested", description="Surveys the prices of several shops.") as w:
        name = w.add(step(case, shops), id="shops")
        one = w.add(step(case, shelves, retry_safe=True, label="{shop}"), id="shelves", shop=name)
        read = w.add(step(case, price, retry_safe=True, label="{shelf}"), id="price", shelf=one)
        per_shop = w.add(step(case, shop), id="shop", each=read.collect())
        end = w.add(step(case, prices), id="prices", each=per_shop.collect())
        w.output("result", end)
    return w.build()
