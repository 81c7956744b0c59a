"""The money for what steps ask of models: the run's budget, and the step's own, as one purse.

    admit(worst) ─▶ fits in both? ─▶ held in both
          │ not now, but once calls under way are booked ─▶ wait, and look again
          └ never ─▶ OutOfMoney (the run's)   ModelTrouble-like NodeError (the step's own)

Most calls cost far less than their worst case, so that a call which does not fit beside others
waits for them instead of ending the run. Nothing is held while it waits. Streams are not waited
for: one may be paused until whoever waits here has gone on.

Read next: `budget.py`, `stepping.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from nightwarden.agents.budget import BudgetRefused, Reservation, TurnBudget, usd
from nightwarden.errors import NodeError, OutOfMoney
from nightwarden.runtime.paying import Payer

BUDGET: Final = "run"
"""Whose money it is, in the record."""


class SharedBudget(TurnBudget):
    """A budget several calls draw on at once; knows which of them end by themselves."""

    def __init__(
        self,
        cap_micro_usd: int | None,
        *,
        name: str = BUDGET,
        outside: Callable[[], int] = int,
        last_reservation: int = 0,
    ) -> None:
        super().__init__(cap_micro_usd, name=name, outside=outside)
        self._last = last_reservation
        self._streams: dict[int, int] = {}

    def keep(self, reservation: Reservation) -> None:
        """The reservation is a stream's: it may be held for as long as others wait."""
        self._streams[reservation.number] = reservation.worst_micro_usd

    def fits_later(self, worst_micro_usd: int) -> bool:
        """Whether it fits once every call under way that is no stream has cost nothing."""
        cap, taken = self.cap_micro_usd, self.gone_micro_usd + sum(self._streams.values())
        return cap is None or self._fits(cap, taken, worst_micro_usd)

    def _close(self, reservation: Reservation) -> bool:
        self._streams.pop(reservation.number, None)
        return super()._close(reservation)


class Till:
    """The budgets of one run: its own, and one for each step that has a limit of its own."""

    def __init__(self, run: SharedBudget, spent: Callable[[str], int]) -> None:
        self.run = run
        self._spent = spent
        self._steps: dict[str, SharedBudget] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def step(self, node_id: str, cap_micro_usd: int) -> SharedBudget:
        """What a step may spend in the run; what it spent before a resume counts."""
        budget = self._steps.get(node_id)
        if budget is None:
            before = self._spent(node_id)
            budget = SharedBudget(cap_micro_usd, name=node_id, outside=lambda: before)
            self._steps[node_id] = budget
        budget.cap_micro_usd = cap_micro_usd
        return budget

    async def change(self) -> None:
        """Return once a call under way is booked."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def changed(self) -> None:
        """A call was booked: whoever waits looks again, in order."""
        woken, self._waiting = self._waiting, []
        for waiting in woken:
            if not waiting.done():
                waiting.set_result(None)


class StepPurse:
    """What one call of a step is paid from; books it on the invocation's account."""

    def __init__(
        self, till: Till, payer: Payer, *, model: str, own: SharedBudget | None, stream: bool
    ) -> None:
        self._till = till
        self._payer = payer
        self._model = model
        self._own = own
        self._stream = stream
        self._pairs: dict[int, Reservation | None] = {}

    @property
    def name(self) -> str:
        """The run's money."""
        return self._till.run.name

    @property
    def cap_micro_usd(self) -> int | None:
        """The run's cap."""
        return self._till.run.cap_micro_usd

    async def admit(self, worst_micro_usd: int) -> Reservation:
        """Hold the worst case of a call in both budgets. Raises `OutOfMoney`, `NodeError`."""
        while True:
            try:
                return self._reserve(worst_micro_usd)
            except BudgetRefused as refused:
                self._refuse(worst_micro_usd, refused)
            await self._till.change()

    def commit(self, reservation: Reservation, actual_micro_usd: int | None) -> int | None:
        """Book a call in both budgets and on the account."""
        cost = self._till.run.commit(reservation, actual_micro_usd)
        if cost is None:
            return None
        own = self._pairs.pop(reservation.number, None)
        if own is not None and self._own is not None:
            self._own.commit(own, cost)
        self._payer.book(cost, self._model)
        self._till.changed()
        return cost

    def release(self, reservation: Reservation) -> bool:
        """Give the reservation back to both budgets."""
        if not self._till.run.release(reservation):
            return False
        own = self._pairs.pop(reservation.number, None)
        if own is not None and self._own is not None:
            self._own.release(own)
        self._till.changed()
        return True

    def _reserve(self, worst_micro_usd: int) -> Reservation:
        own = None if self._own is None else self._own.reserve(worst_micro_usd)
        try:
            held = self._till.run.reserve(worst_micro_usd)
        except BudgetRefused:
            if own is not None and self._own is not None:
                self._own.release(own)
            raise
        self._pairs[held.number] = own
        if self._stream:
            self._till.run.keep(held)
            if own is not None and self._own is not None:
                self._own.keep(own)
        return held

    def _refuse(self, worst_micro_usd: int, refused: BudgetRefused) -> None:
        """Raise if it will never fit."""
        own, run = self._own, self._till.run
        if own is not None and not own.fits_later(worst_micro_usd):
            words = _too_dear("max_cost_usd of", own, refused)
            raise NodeError(words, code="model:budget") from None
        if not run.fits_later(worst_micro_usd):
            words = _too_dear("the run's budget of", run, refused)
            raise OutOfMoney(
                f"{words}; resume with a larger --max-cost", code="model:run-budget"
            ) from None


def _too_dear(whose: str, budget: SharedBudget, refused: BudgetRefused) -> str:
    if budget.cap_micro_usd == 0:
        return f"{whose} $0.00 allows no model call"
    return (
        f"{whose} {usd(budget.cap_micro_usd or 0)} does not cover the next model call: it may cost "
        f"{usd(refused.worst_micro_usd)}, {usd(budget.gone_micro_usd)} are spent"
    )
