"""Who pays for what a step asks of a model, and what the steps of a run spent by themselves.

    ctx.model(name) ─▶ Payer (one invocation) ─▶ Models ─▶ the model side
    ctx.spend(usd)  ─▶ Spending (the run)     ─▶ what further model calls may still cost

`Models` is implemented above this layer, and made when the first step asks for a model: a run
that asks none loads nothing of it.

Read next: `context.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from nightwarden.errors import NodeError
from nightwarden.events import Event
from nightwarden.events.words import dollars
from nightwarden.lineage import Lineage
from nightwarden.nodes.models import StepModel

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """One invocation, as far as its model calls go; also their journal.

    `book(micro_usd, model)` puts what a call cost on its account, and says so in the record.
    """

    node_id: str
    lineage: Lineage
    attempt: int
    book: Callable[[int, str], None]
    tell: Callable[[Event], None]
    on_record: Callable[[], Awaitable[None]]

    def publish(self, event: Event) -> None:
        """Add an event to the record, as one of this invocation."""
        self.tell(
            msgspec.structs.replace(
                event, node_id=self.node_id, lineage=self.lineage, attempt=self.attempt
            )
        )

    async def durable(self) -> None:
        """Return once everything published so far would survive a crash."""
        await self.on_record()


class NamedModel(NamedTuple):
    """A model a node will ask, known before the run starts. `embeds`: for vectors. `backend` is
    who works with it."""

    node_id: str
    name: str
    embeds: bool
    backend: str = ""


class Models(Protocol):
    """The models of one run."""

    def of(self, name: str, payer: Payer, max_cost_usd: float | None) -> StepModel:
        """A model, paid for by one invocation. Raises `ModelError` for one that cannot be had."""
        ...

    async def aclose(self) -> None:
        """Close the connections to the providers."""
        ...


class NoModels:
    """For runs that were opened without a model side."""

    def of(self, name: str, payer: Payer, max_cost_usd: float | None) -> StepModel:
        """Raises `NodeError`."""
        del payer, max_cost_usd
        raise NodeError(f"{name} cannot be asked: this run has no models", code="no-model")

    async def aclose(self) -> None:
        """Nothing to close."""


class Spending:
    """What was spent in a run, apart from its model calls since it was opened; thread-safe.

    Those are counted beside it. Money a step books by itself is gone already: where it comes to
    more than the run may spend, `over` says so, once.
    """

    def __init__(self, cap_micro_usd: int | None = None) -> None:
        self._cap = cap_micro_usd
        self._micro_usd = 0
        self._asked = 0
        self._told = False
        self._lock = threading.Lock()

    def add(self, micro_usd: int) -> None:
        """A step spent this, or it was spent before the run was resumed."""
        with self._lock:
            self._micro_usd += micro_usd

    def asked(self, micro_usd: int) -> None:
        """A model call cost this."""
        with self._lock:
            self._asked += micro_usd

    def total(self) -> int:
        """All of it apart from the model calls, in micro-dollars."""
        return self._micro_usd

    def over(self) -> str:
        """That the budget is used up, in words, the first time it is asked then; else empty."""
        with self._lock:
            spent = self._micro_usd + self._asked
            if self._cap is None or spent <= self._cap or self._told:
                return ""
            self._told = True
        return (
            f"the run's budget of {dollars(self._cap)} is used up: {dollars(spent)} are spent; "
            "resume with a larger --max-cost"
        )
