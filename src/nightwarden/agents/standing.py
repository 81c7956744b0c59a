"""How an agent stands against its limits, and when that is worth an event.

    usage_progress    when dollars (or tokens, where it is free) have grown by a good part
    budget_warning    once, at four fifths of a limit
    budget_exceeded   once, when a limit ends the work

A limit that ends the work ends it in the same way whoever does it.

Read next: `laboring.py`, `claude/working.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from nightwarden.agents.budget import TurnBudget
from nightwarden.errors import NodeError
from nightwarden.events import Event
from nightwarden.events.agent import BudgetExceeded, BudgetWarning, UsageProgress
from nightwarden.nodes.working import LimitReached, WorkLimits

if TYPE_CHECKING:
    from nightwarden.agents.meter import Tally

COST: Final = "cost_usd"
TURNS: Final = "turns"
SECONDS: Final = "seconds"

WARN_AT: Final = 0.8
_MICRO: Final = 1_000_000
_GROWTH_MICRO_USD: Final = 50_000
_GROWTH_TOKENS: Final = 5_000
_MONEY: Final = ("model:budget", "model:run-budget")


class Standing:
    """The account of one piece of work. `budget` is what it is paid from."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        limits: WorkLimits,
        tally: Tally,
        budget: TurnBudget | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._limits = limits
        self._tally = tally
        self._budget = budget
        self._clock = clock
        self._began = clock()
        self._turns = 0
        self._told_micro_usd = 0
        self._told_tokens = 0
        self._warned: set[str] = set()

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Hold the work to its time, and tell which limit has ended it. Raises `LimitReached`."""
        try:
            async with asyncio.timeout(self._limits.timeout_s) as clock:
                yield
        except TimeoutError:
            if not clock.expired():
                raise  # somebody else's
            self.exceeded(SECONDS)
            limit = f"{self._limits.timeout_s:g} s"
            raise LimitReached(f"timeout after {limit}", code="timeout") from None
        except LimitReached:
            self.exceeded(TURNS)
            raise
        except NodeError as error:
            if error.code in _MONEY:
                self.exceeded(COST)
            raise

    def step(self, turns: int) -> None:
        """A turn is over."""
        self._turns = turns
        self._progress()
        for dimension, (used, limit) in self._dimensions().items():
            if dimension not in self._warned and used and used >= WARN_AT * limit:
                self._warned.add(dimension)
                self._tell(BudgetWarning(dimension=dimension, used=used, limit=limit))

    def exceeded(self, dimension: str) -> None:
        """This limit ends the work."""
        used, limit = self._dimensions().get(dimension, (0.0, 0.0))
        self._tell(BudgetExceeded(dimension=dimension, used=used, limit=limit))

    def _dimensions(self) -> dict[str, tuple[float, float]]:
        found: dict[str, tuple[float, float]] = {
            TURNS: (self._turns, self._limits.max_turns),
            SECONDS: (round(self._clock() - self._began, 3), self._limits.timeout_s),
        }
        budget = self._budget
        if budget is not None and budget.cap_micro_usd is not None:
            found[COST] = (budget.gone_micro_usd / _MICRO, budget.cap_micro_usd / _MICRO)
        return found

    def _progress(self) -> None:
        spent = self._tally.cost_micro_usd
        tokens = self._tally.tokens_in + self._tally.tokens_out
        if spent:
            grown = spent - self._told_micro_usd
            tell = grown >= _GROWTH_MICRO_USD and spent * 5 >= self._told_micro_usd * 6
        else:
            grown = tokens - self._told_tokens
            tell = grown >= _GROWTH_TOKENS and tokens * 4 >= self._told_tokens * 5
        if tell:
            self._told_micro_usd, self._told_tokens = spent, tokens
            used = spent / _MICRO if spent else None
            self._tell(UsageProgress(tokens=tokens, used=used))


def not_done(limits: WorkLimits) -> LimitReached:
    """There is no turn left, and the work is not done."""
    said = f"not done after {limits.max_turns} turns; raise max_turns, or ask for less"
    return LimitReached(said, code="max-turns")


def too_long(result: str, limits: WorkLimits) -> str:
    """What to say of a result that is too long; empty where it is not."""
    most = limits.max_output_chars
    if len(result) <= most:
        return ""
    return f"your result has {len(result)} characters; {most} are the most: cut it"
