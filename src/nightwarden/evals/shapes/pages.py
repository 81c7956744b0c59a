"""A fan-out: pages of a catalogue are fetched, read, and become one table.

`entry` reads what a page replied and hands the reply over where it cannot: a repair is possible.

Read next: `poster.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

import nightwarden as nw
from nightwarden.errors import RecoverableError
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.nodes.io import Collect
from nightwarden.spec.workflow import Workflow

GOODS: Final = (
    "kettle", "lamp", "chair", "clock", "shelf", "table",
    "mirror", "basket", "candle", "carpet", "curtain", "cushion",
    "vase", "stool", "desk", "bench", "frame", "hook", "tray", "jug",
    "bowl", "plate", "spoon", "cup",
)  # fmt: skip
USUAL: Final = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """What a page of the catalogue says."""

    title: str
    price: float


def price_of(number: int) -> float:
    """The price of the good with that number, from 0."""
    return 10.5 + number


def rows(*, without: tuple[int, ...] = (), count: int = USUAL) -> list[dict[str, Any]]:
    """The table, without the items that are missing (1-based)."""
    return [
        {"title": good.title(), "price": price_of(i)}
        for i, good in enumerate(GOODS[:count])
        if i + 1 not in without
    ]


def reply(title: str, price: object) -> str:
    """A page as it should be."""
    return msgspec.json.encode({"title": title, "price": price}).decode()


def pages(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""

    async def addresses() -> AsyncIterator[str]:
        """List the addresses of the catalogue's pages."""
        for good in GOODS[: case.items or USUAL]:
            yield f"https://shop.example/{good}"

    async def page(address: str, ctx: Context) -> str:
        """Fetch one page of the catalogue; changes nothing there."""
        await world.meet("page", ctx)
        good = address.rpartition("/")[2]
        return world.reply("page", ctx, reply(good.title(), price_of(GOODS.index(good))))

    async def entry(text: str, ctx: Context) -> Entry:
        """Read title and price, as they stand on the page, for a table that customers see."""
        await world.meet("entry", ctx)
        try:
            return msgspec.json.decode(text, type=Entry)
        except msgspec.MsgspecError as error:
            raise RecoverableError(
                f"the page is no entry: {error}", candidate_output=text, code="no-entry"
            ) from error

    async def table(entries: Collect[Entry]) -> list[dict[str, Any]]:
        """Put the entries that are there into one table; a missing row is named in the report."""
        return [asdict(each) for each in entries]

    with nw.workflow("pages", description="Makes a table of a catalogue's pages.") as w:
        each = w.add(step(case, addresses), id="addresses")
        got = w.add(step(case, page, retry_safe=True, label="{address}"), id="page", address=each)
        read = w.add(step(case, entry, retry_safe=True), id="entry", text=got)
        end = w.add(step(case, table), id="table", entries=read.collect())
        w.output("result", end)
    return w.build()
