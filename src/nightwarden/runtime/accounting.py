"""What one invocation has spent and made.

The account travels with the invocation's execution by a context variable, so that two
invocations ending in reverse order keep their own costs; `asyncio` tasks and the engine's
worker threads inherit it. It also hangs on the `Context`, for threads a step starts itself.

Read next: `context.py`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from contextvars import ContextVar

import msgspec

from nightwarden.errors import NodeError

MICRO = 1_000_000


class Account(msgspec.Struct):
    """The cost and the assets of one attempt. Money in micro-dollars; thread-safe.

    `booked` is what of the cost is in the run's books already.
    """

    cost_micro_usd: int = 0
    booked_micro_usd: int = 0
    cost_known: bool = True
    assets: tuple[Mapping[str, object], ...] = ()

    def spend(self, usd: float) -> None:
        """Book money in dollars. Raises `NodeError` for what is no amount: the cost is unknown."""
        if not isinstance(usd, (int, float)) or not math.isfinite(usd) or usd < 0:
            self.cost_known = False
            raise NodeError(f"{usd!r} is no amount of dollars", code="bad-cost")
        with _LOCK:
            # Rounded up: a cost is never booked as less than it was.
            self.cost_micro_usd += math.ceil(round(usd * MICRO, 3))

    def book(self, micro_usd: int) -> None:
        """Book an amount that is known to be one."""
        with _LOCK:
            self.cost_micro_usd += micro_usd

    def made(self, asset: Mapping[str, object]) -> None:
        """Count an asset."""
        with _LOCK:
            self.assets = (*self.assets, asset)


_LOCK = threading.Lock()

current: ContextVar[Account] = ContextVar("nightwarden_account")
"""The account of the invocation that is running."""
