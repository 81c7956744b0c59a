"""What a turn is booked at where the provider's own numbers cannot be true. (supervision.md §6)"""

from __future__ import annotations

import asyncio

import pytest

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.meter import Meter
from nightwarden.agents.prices import Price, Usage, catalogued
from nightwarden.events.base import Event
from nightwarden.events.budget import Booking, BudgetCommitted

HUGE = 10**30


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        self.events.append(event)

    async def durable(self) -> None:
        pass


@pytest.fixture(scope="module")
def price() -> Price:
    found = catalogued("anthropic", "claude-sonnet-4-5")
    assert found is not None
    return found


@pytest.mark.parametrize(
    "usage",
    [
        Usage(tokens_in=100, tokens_out=10, cache_read=1_000),
        Usage(tokens_in=100, tokens_out=10, cache_read=100, cache_write=100),
        Usage(tokens_in=100, tokens_out=10, cache_write=-1),
        Usage(tokens_in=-100, tokens_out=10),
        Usage(tokens_in=HUGE, tokens_out=10),
    ],
)
def test_numbers_that_cannot_be_true_cost_the_worst_case(price: Price, usage: Usage) -> None:
    """The turn is closed, so that nobody waits for it, and its record can be written."""
    budget, journal = TurnBudget(1_000_000), Kept()
    meter = Meter(budget, price, model="m", journal=journal)
    turn = asyncio.run(meter.reserve(1_000))
    meter.book(turn, Booking.ACTUAL, usage)
    (booked,) = [event for event in journal.events if isinstance(event, BudgetCommitted)]
    assert (booked.booked, booked.cost_micro_usd) == (Booking.WORST, turn.worst_micro_usd)
    assert (booked.tokens_in, booked.tokens_out) == (0, 0)
    assert (budget.spent_micro_usd, budget.outstanding_micro_usd) == (turn.worst_micro_usd, 0)
