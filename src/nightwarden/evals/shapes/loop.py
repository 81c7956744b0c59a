"""A loop: a statement is read sheet by sheet, each carrying the sum of those before.

An iteration that is lost ends the loop without a result: here a skip loses everything.

Read next: `nested.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import nightwarden as nw
from nightwarden.errors import RecoverableError
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.spec.workflow import Workflow

SHEETS: Final = 4
AMOUNT: Final = 25.0


@dataclass(frozen=True, slots=True)
class Sum:
    """How many sheets were read, and what they come to."""

    sheets: int
    total: float


def closed() -> str:
    """What the run puts out."""
    return f"{SHEETS} sheets, {SHEETS * AMOUNT:.2f} in all"


def loop(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""

    async def amount(so_far: Sum, ctx: Context) -> float:
        """Read the amount on the next sheet of the statement, as it stands there."""
        await world.meet("amount", ctx)
        text = world.reply("amount", ctx, f"{AMOUNT}")
        try:
            return float(text)
        except ValueError as error:
            raise RecoverableError(
                f"sheet {so_far.sheets + 1}: the amount is no number",
                candidate_output=text,
                code="no-number",
            ) from error

    async def add(so_far: Sum, amount: float) -> Sum:
        """Add the sheet's amount to the sum."""
        return Sum(so_far.sheets + 1, so_far.total + amount)

    async def more(so_far: Sum) -> bool:
        """Whether there are further sheets."""
        return so_far.sheets < SHEETS and math.isfinite(so_far.total)

    async def closing(end: Sum) -> str:
        """Close the month with the sum of all sheets; the tax office gets this number."""
        return f"{end.sheets} sheets, {end.total:.2f} in all"

    with nw.workflow("loop", description="Adds a statement up, sheet by sheet.") as w:
        again = w.add("flow.Loop", id="loop", initial=w.add(step(case, start), id="start"))
        value = again.slot("value")
        read = w.add(step(case, amount, retry_safe=True), id="amount", so_far=value)
        summed = w.add(step(case, add), id="add", so_far=value, amount=read)
        on = w.add(step(case, more), id="more", so_far=summed)
        w.feed(again, next=summed, condition=on)
        end = w.add(step(case, closing), id="closing", end=again.slot("done"))
        w.output("result", end)
    return w.build()


async def start() -> Sum:
    """Begin with nothing."""
    return Sum(0, 0.0)
