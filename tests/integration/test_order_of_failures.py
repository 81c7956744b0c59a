"""What a run says of several failures does not hang on which of them came about first.

All on virtual time, with the failing items ending in every order.
"""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

import nightwarden as nw
from nightwarden import Collect, NodeError, Session
from nightwarden.nodes.io import Many
from nightwarden.result import RunResult
from nightwarden.spec.workflow import Workflow
from nightwarden.testing import play

FAILING = (1, 3, 4)
ORDERS = list(permutations(range(3)))


def shop(waits: dict[int, float]) -> Workflow:
    async def price(value: int) -> int:
        await asyncio.sleep(waits.get(value, 0.5))
        if value in waits:
            raise NodeError(f"{value} has no price", code="no-price")
        return value

    async def total(values: Collect[int]) -> int:
        return sum(values)

    async def both(values: Many[int]) -> int:
        return sum(values)

    with nw.workflow("shop") as w:
        items = w.input("items", list[int])
        step = nw.node(type="order.Price", retry_safe=True, concurrency=8)(price)
        one = w.add(step, id="one", value=items.each())
        other = w.add(step, id="other", value=items.each())
        sums = nw.node(type="order.Total", retry_safe=True)(total)
        first, second = (
            w.add(sums, id=f"sum_{name}", values=made.collect())
            for name, made in (("one", one), ("other", other))
        )
        end = nw.node(type="order.Both", retry_safe=True)(both)
        w.output("both", w.add(end, id="both", values=[first, second]))
    return w.build()


def played(order: tuple[int, ...], supervise: str | None = None) -> RunResult:
    waits = {value: 1.0 + order[i] for i, value in enumerate(FAILING)}
    session = Session(shop(waits), {"items": list(range(5))}, keep_going=True, supervise=supervise)
    return play(session).result


def charged(result: RunResult) -> list[tuple[object, ...]]:
    """What is missing, and what it is charged to; escalations are numbered as they come."""
    missing = [m for root in result.ledger["roots"] for m in root["missing"]]
    missing += result.ledger["run"]["missing"]
    return [(m["item"], m["kind"], m["node"], m["at"]) for m in missing]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_what_a_run_names_is_the_same_in_whatever_order_its_items_fail(
    order: tuple[int, ...],
) -> None:
    result = played(order)
    assert result.status == "failed"
    assert result.reason.startswith("one [2/5 1]: 1 has no price")
    assert result.outputs["both"]["causes"] == [
        *(f"one [{value + 1}] failed" for value in FAILING),
        *(f"other [{value + 1}] failed" for value in FAILING),
    ]
    assert charged(result) == charged(played(ORDERS[0]))


def test_a_run_is_told_by_the_failure_that_ended_it() -> None:
    """Without `keep_going` the one that came first ends it, whatever comes of the others."""
    waits = {1: 3.0, 3: 2.0, 4: 1.0}
    result = play(Session(shop(waits), {"items": list(range(5))})).result
    assert result.reason.startswith("one [5/5 4]: 4 has no price")
