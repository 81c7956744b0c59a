"""Money for model turns, in whole micro-dollars: the worst case is reserved, the truth is booked.

    reserve(worst) ── fits? ──▶ Reservation ──▶ commit(actual)   what the provider said
          │ no                              ├─▶ commit(None)     nobody knows: the worst case
          ▼                                 └─▶ release()        the provider refused the turn
       BudgetRefused

The law: spent + outstanding ≤ cap, after every call, as long as no provider charges more than
the worst case. A turn that would break it is refused; one that exactly fits is admitted. A free
turn fits under any cap but zero: a cap of zero means no turn at all.

Reservations are independent of each other: closing one leaves the others held, and closing one
twice, or one of another budget, changes nothing. Not safe from several threads at once; a
budget belongs to one event loop.

Read next: `metering.py`, which reserves for every request of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nightwarden.errors import ModelError
from nightwarden.events.base import Event
from nightwarden.events.budget import BudgetState


class Journal(Protocol):
    """Where reservations are written down before the turn they are for."""

    def publish(self, event: Event) -> None:
        """Add an event to the record, in order."""
        ...

    async def durable(self) -> None:
        """Return once everything published so far would survive a crash."""
        ...


class Purse(Protocol):
    """What a turn is paid from: one budget, or several as one."""

    @property
    def name(self) -> str:
        """Whose money it is, in the record."""
        ...

    @property
    def cap_micro_usd(self) -> int | None:
        """The most that may be spent; None for no limit."""
        ...

    async def admit(self, worst_micro_usd: int) -> Reservation:
        """Hold the worst case of a turn, once it fits. Raises where it never will."""
        ...

    def commit(self, reservation: Reservation, actual_micro_usd: int | None) -> int | None:
        """Book a turn; what was booked, None for a reservation that is not open here."""
        ...

    def release(self, reservation: Reservation) -> bool:
        """Give a reservation back."""
        ...


class NoJournal:
    """For turns of which no record is kept."""

    def publish(self, event: Event) -> None:
        """Keep nothing."""

    async def durable(self) -> None:
        """Nothing to wait for."""


class BudgetRefused(ModelError):
    """A turn was not admitted: its worst case does not fit under the cap any more."""

    def __init__(self, worst_micro_usd: int, spent_micro_usd: int, held: int, cap: int) -> None:
        self.worst_micro_usd = worst_micro_usd
        self.cap_micro_usd = cap
        waiting = f", {usd(held)} are held by turns under way" if held else ""
        self.figures = (
            f"the next turn may cost {usd(worst_micro_usd)}, {usd(spent_micro_usd)} are "
            f"spent{waiting}"
        )
        if cap == 0:
            super().__init__("a cost cap of $0.00 allows no model turn")
            return
        super().__init__(f"cost cap of {usd(cap)} reached: {self.figures}")


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """A turn that was admitted; `number` counts from 1 in its budget."""

    number: int
    worst_micro_usd: int
    spent_before_micro_usd: int
    outstanding_before_micro_usd: int


class TurnBudget:
    """One cap, and what was booked and is held under it. `name` is whose money it is.

    Without a cap (None) nothing is refused, and everything is counted. `outside` is what else was
    spent of the same money, not by model turns.
    """

    def __init__(
        self,
        cap_micro_usd: int | None,
        *,
        name: str = "supervisor",
        outside: Callable[[], int] = int,
    ) -> None:
        if cap_micro_usd is not None and cap_micro_usd < 0:
            raise ValueError(f"a cap is 0 or more, not {cap_micro_usd}")
        self.name = name
        self.cap_micro_usd = cap_micro_usd
        self._outside = outside
        self.spent_micro_usd = 0
        self._open: dict[int, Reservation] = {}
        self._last = 0

    @property
    def outstanding_micro_usd(self) -> int:
        """What turns under way may still cost."""
        return sum(held.worst_micro_usd for held in self._open.values())

    @property
    def gone_micro_usd(self) -> int:
        """What was spent by turns and otherwise."""
        return self.spent_micro_usd + self._outside()

    @property
    def left_micro_usd(self) -> int | None:
        """What a further turn may cost at most; never negative; None without a cap."""
        if self.cap_micro_usd is None:
            return None
        return max(self.cap_micro_usd - self.gone_micro_usd - self.outstanding_micro_usd, 0)

    def covers(self, micro_usd: int) -> bool:
        """Whether this much may be held or spent at the same time."""
        cap = self.cap_micro_usd
        return cap is None or (cap > 0 and self.gone_micro_usd + micro_usd <= cap)

    async def admit(self, worst_micro_usd: int) -> Reservation:
        """As `reserve`."""
        return self.reserve(worst_micro_usd)

    def reserve(self, worst_micro_usd: int) -> Reservation:
        """Hold the worst case of a turn. Raises `BudgetRefused` when it does not fit."""
        if worst_micro_usd < 0:
            raise ValueError(f"a worst case is 0 or more, not {worst_micro_usd}")
        held, gone, cap = self.outstanding_micro_usd, self.gone_micro_usd, self.cap_micro_usd
        if cap is not None and not self._fits(cap, gone + held, worst_micro_usd):
            raise BudgetRefused(worst_micro_usd, gone, held, cap)
        self._last += 1
        reservation = Reservation(self._last, worst_micro_usd, gone, held)
        self._open[reservation.number] = reservation
        return reservation

    def commit(self, reservation: Reservation, actual_micro_usd: int | None) -> int | None:
        """Book a turn at what it cost, or at its worst where that is not known.

        Returns what was booked; None when the reservation is not open here. A provider that
        charges more than the worst case is believed: the truth is booked, and what follows is
        refused.
        """
        if not self._close(reservation):
            return None
        known = actual_micro_usd is not None and actual_micro_usd >= 0
        cost = actual_micro_usd if known else reservation.worst_micro_usd
        assert cost is not None
        self.spent_micro_usd += cost
        return cost

    def release(self, reservation: Reservation) -> bool:
        """Give a reservation back: the provider refused the turn. False when it is not open."""
        return self._close(reservation)

    def state(self) -> BudgetState:
        """What a resume needs."""
        return BudgetState(
            spent_micro_usd=self.spent_micro_usd,
            open={number: held.worst_micro_usd for number, held in self._open.items()},
            last_reservation=self._last,
        )

    def restore(self, state: BudgetState) -> None:
        """Carry on from what was recorded; reservations left open count at their worst."""
        self.spent_micro_usd = state.at_worst_micro_usd
        self._last = max(self._last, state.last_reservation)

    def _fits(self, cap: int, taken: int, worst_micro_usd: int) -> bool:
        """A turn that is free fits under any cap but zero."""
        return cap > 0 and (not worst_micro_usd or taken + worst_micro_usd <= cap)

    def _close(self, reservation: Reservation) -> bool:
        if self._open.get(reservation.number) is not reservation:
            return False
        del self._open[reservation.number]
        return True


def usd(micro_usd: int) -> str:
    """An amount as people read it: `$0.50`, `$0.000021`."""
    text = f"{micro_usd / 1_000_000:.6f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"${whole}.{part.ljust(2, '0')}"
