"""Reserves for every turn of a conversation, books what it cost, and writes both down.

    reserve(tokens in) ─▶ on record ─▶ the turn ─▶ book(actual | worst | refused)

It knows no provider: a model library is held to it in `metering.py`, a program that asks by
itself in `claude/proxy.py`.

Read next: `budget.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nightwarden.agents.budget import Journal, NoJournal, Purse, Reservation
from nightwarden.agents.prices import Price, Usage
from nightwarden.errors import ModelError
from nightwarden.events.budget import Booking, BudgetCommitted, BudgetReserved

MAX_OUTPUT_TOKENS: Final = 2048
"""The longest answer of a turn, unless told otherwise."""
UNSEEN_TOKENS: Final = 1024
"""What a provider may add to a request on its own, at most: its instructions for using tools."""

_MOST_TOKENS: Final = 1_000_000_000
"""No turn has more; a provider that says so has not said what it used."""
_UNTOLD: Final = Usage(tokens_in=0, tokens_out=0)


@dataclass(slots=True)
class Tally:
    """What the turns of one conversation came to."""

    turns: int = 0
    cost_micro_usd: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class Meter:
    """Reserves and books the turns of one conversation, and writes both down."""

    def __init__(
        self,
        budget: Purse,
        price: Price | None,
        *,
        model: str,
        journal: Journal | None = None,
        max_output_tokens: int = MAX_OUTPUT_TOKENS,
        escalation_id: str = "",
        tally: Tally | None = None,
    ) -> None:
        self.budget = budget
        self.price = price
        self.max_output_tokens = max_output_tokens
        self.tally = tally or Tally()
        self._model = model
        self._journal = journal or NoJournal()
        self._escalation_id = escalation_id

    async def reserve(self, tokens_in: int) -> Reservation:
        """Hold the worst case of a turn; it is on record when this returns.

        Raises `BudgetRefused`, `ModelError` where there is no price, and whatever the journal
        raises: then nothing is held.
        """
        if self.price is None:
            raise ModelError("the model has no price, and without one no turn is begun")
        usage = Usage(tokens_in=tokens_in, tokens_out=self.max_output_tokens)
        return await self.hold(self.price.micro_usd(usage))

    async def hold(self, worst_micro_usd: int) -> Reservation:
        """As `reserve`, where the worst case is known in money."""
        reservation = await self.budget.admit(worst_micro_usd)
        try:
            self._journal.publish(self._reserved(reservation))
            await self._journal.durable()
        except BaseException:
            self.book(reservation, Booking.REFUSED)  # nothing was sent
            raise
        return reservation

    def book(self, reservation: Reservation, booked: Booking, usage: Usage | None = None) -> None:
        """Close a reservation. More than once changes nothing."""
        actual = None if usage is None else self._cost(usage)
        if booked is Booking.ACTUAL and actual is None:
            booked = Booking.WORST
        if booked is Booking.REFUSED:
            cost = 0 if self.budget.release(reservation) else None
        else:
            cost = self.budget.commit(reservation, actual)
        if cost is None:
            return
        tokens = usage if usage is not None and actual is not None else _UNTOLD
        self.tally.turns += 1
        self.tally.cost_micro_usd += cost
        self.tally.tokens_in += tokens.tokens_in
        self.tally.tokens_out += tokens.tokens_out
        self._journal.publish(
            BudgetCommitted(
                budget=self.budget.name,
                reservation=reservation.number,
                cost_micro_usd=cost,
                booked=booked,
                tokens_in=tokens.tokens_in,
                tokens_out=tokens.tokens_out,
            )
        )

    def _cost(self, usage: Usage) -> int | None:
        """What so many tokens cost; None for numbers that cannot be true."""
        counts = (usage.tokens_in, usage.tokens_out, usage.cache_read, usage.cache_write)
        if self.price is None or min(counts) < 0 or max(counts) > _MOST_TOKENS:
            return None
        try:
            return self.price.micro_usd(usage)
        except ValueError:  # more of it came from a cache than there was, say
            return None

    def _reserved(self, reservation: Reservation) -> BudgetReserved:
        return BudgetReserved(
            budget=self.budget.name,
            reservation=reservation.number,
            worst_micro_usd=reservation.worst_micro_usd,
            spent_micro_usd=reservation.spent_before_micro_usd,
            outstanding_micro_usd=reservation.outstanding_before_micro_usd,
            cap_micro_usd=self.budget.cap_micro_usd,
            model=self._model,
            escalation_id=self._escalation_id,
        )
