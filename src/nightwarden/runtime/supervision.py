"""What a supervisor is to the runtime: a protocol of three methods.

A supervisor sees an `Escalation` and answers with a `Decision`. It may be slow, wrong,
or deaf; `Bounded` wraps every one of them, and the kernel checks every verdict.

Read next: `supervisors/`, `bounded.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from nightwarden.verdict import Decision, Escalation


class RunReader(Protocol):
    """What a supervisor may read of the run it serves; everything masked."""

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    def state(self) -> Mapping[str, object]:
        """The digest of the run: per node counts, cost, decisions so far."""
        ...

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        """What is wrong with a repair, as readable lines; empty when it would be accepted."""
        ...


@runtime_checkable
class Supervisor(Protocol):
    """Decides what becomes of a failed step. A cancelled `decide` is the abort signal."""

    async def decide(self, escalation: Escalation) -> Decision:
        """Answer one escalation. May raise: the decision then becomes *fail*."""
        ...

    def attach(self, reader: RunReader) -> None:
        """Called once, before the run starts."""
        ...

    async def aclose(self) -> None:
        """Called once, after the run ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits that mean *fail*. Zero is legal and means none; None leaves the mode's default."""

    max_decisions: int = 10
    max_retries: int = 2
    decision_timeout_s: float | None = None
    cost_cap_micro_usd: int = 500_000
    max_retry_delay_s: float = 300.0


class SupervisorBase:
    """The two methods most supervisors have no use for."""

    human: bool = False
    """Whether a person answers: the default decision timeout is 600 s instead of 60 s."""

    def attach(self, reader: RunReader) -> None:
        """Keep nothing of the run."""

    async def aclose(self) -> None:
        """Nothing to close."""
