"""Events of a money budget: what a model turn may cost at worst, and what it came to.

    budget_reserved ──▶ (the turn) ──▶ budget_committed

`budget_reserved` is durable before the turn begins. A reservation without its commit is a turn
that was cut by a crash: nobody knows what it cost, so `budget_state` counts its worst case.

Read next: `supervision.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from nightwarden.events.base import Event


class Booking(StrEnum):
    """Why a turn was booked at what it was."""

    ACTUAL = "actual"
    """What the provider said it used."""
    WORST = "worst"
    """The worst case: cut off, or the provider did not say."""
    REFUSED = "refused"
    """Nothing: the provider never took the turn on."""


class BudgetReserved(Event, tag="budget_reserved"):
    """A model turn is about to begin and may cost this much at worst.

    `budget` names whose money it is; `reservation` is unique within it. `spent_micro_usd` and
    `outstanding_micro_usd` are what was booked and what was reserved before this one. A cap of
    null is none. What a step asks has the step's `node_id`, `lineage` and `attempt`.
    """

    budget: str
    reservation: int
    worst_micro_usd: int
    spent_micro_usd: int = 0
    outstanding_micro_usd: int = 0
    cap_micro_usd: int | None = 0
    model: str = ""
    escalation_id: str = ""


class BudgetCommitted(Event, tag="budget_committed"):
    """A model turn is over and has been booked."""

    budget: str
    reservation: int
    cost_micro_usd: int
    booked: str = Booking.ACTUAL
    tokens_in: int = 0
    tokens_out: int = 0


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """A budget as its record tells it. `open` maps reservations never committed to their worst."""

    spent_micro_usd: int = 0
    open: Mapping[int, int] = {}
    last_reservation: int = 0

    @property
    def at_worst_micro_usd(self) -> int:
        """What is gone if every open reservation cost all it could."""
        return self.spent_micro_usd + sum(self.open.values())


def budget_state(events: Iterable[Mapping[str, object]], budget: str) -> BudgetState:
    """What a record says of one budget; other events and unreadable numbers are passed over."""
    spent, last = 0, 0
    pending: dict[int, int] = {}
    for event in events:
        kind = event.get("type")
        if kind not in ("budget_reserved", "budget_committed") or event.get("budget") != budget:
            continue
        number = _count(event.get("reservation"))
        last = max(last, number)
        if kind == "budget_reserved":
            pending[number] = _count(event.get("worst_micro_usd"))
        elif pending.pop(number, None) is not None:
            spent += _count(event.get("cost_micro_usd"))
    return BudgetState(spent_micro_usd=spent, open=pending, last_reservation=last)


def _count(value: object) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fits else 0  # type: ignore[return-value]
