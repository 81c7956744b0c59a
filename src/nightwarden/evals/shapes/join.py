"""A join: an order's buyer and stock are looked up apart, and come together in an offer.

`stock` reads a reply of another service and hands it over where it cannot.

Read next: `loop.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import msgspec

import nightwarden as nw
from nightwarden.errors import RecoverableError
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.nodes.io import Collect
from nightwarden.spec.workflow import Workflow

BUYERS: Final = ("Ada", "Ben", "Cleo", "Dan")


@dataclass(frozen=True, slots=True)
class Stock:
    """How many are there, and how many of those are promised to others."""

    pieces: int
    reserved: int


def offers(*, without: tuple[int, ...] = ()) -> list[str]:
    """The offers, without those of the orders that are missing (1-based)."""
    return [
        f"{buyer}: {n + 4} pieces" for n, buyer in enumerate(BUYERS, start=1) if n not in without
    ]


def join(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""

    async def orders() -> AsyncIterator[int]:
        """List the open orders."""
        for number in range(1, len(BUYERS) + 1):
            yield number

    async def buyer(order: int, ctx: Context) -> str:
        """Look up who placed the order."""
        await world.meet("buyer", ctx)
        return BUYERS[order - 1]

    async def stock(order: int, ctx: Context) -> Stock:
        """Ask the warehouse how many pieces are there, and how many are reserved."""
        await world.meet("stock", ctx)
        usual = msgspec.json.encode({"pieces": order + 6, "reserved": 2}).decode()
        text = world.reply("stock", ctx, usual)
        try:
            return msgspec.json.decode(text, type=Stock)
        except msgspec.MsgspecError as error:
            raise RecoverableError(
                f"the warehouse's reply cannot be read: {error}",
                candidate_output=text,
                code="no-stock",
            ) from error

    async def offer(buyer: str, stock: Stock, ctx: Context) -> str:
        """Write a binding offer: all pieces that are there and not reserved."""
        await world.meet("offer", ctx)
        return f"{buyer}: {stock.pieces - stock.reserved} pieces"

    async def offers(each: Collect[str]) -> list[str]:
        """Gather the offers; an order without one is answered by hand tomorrow."""
        return list(each)

    with nw.workflow("join", description="Writes an offer for each open order.") as w:
        order = w.add(step(case, orders), id="orders")
        who = w.add(
            step(case, buyer, retry_safe=True, label="order {order}"), id="buyer", order=order
        )
        much = w.add(
            step(case, stock, retry_safe=True, label="order {order}"), id="stock", order=order
        )
        made = w.add(step(case, offer, retry_safe=True), id="offer", buyer=who, stock=much)
        end = w.add(step(case, offers), id="offers", each=made.collect())
        w.output("result", end)
    return w.build()
