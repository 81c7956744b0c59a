"""What a supervisor is to the runtime: a protocol of three methods; and what it may read.

A supervisor sees an `Escalation` and answers with a `Decision`. It may be slow, wrong,
or deaf; `Bounded` wraps every one of them, and the kernel checks every verdict.

Read next: `supervisors/`, `bounded.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from nightwarden.errors import RunError
from nightwarden.events.base import Event
from nightwarden.events.budget import BudgetState
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value that was asked for, masked and uncut; or why it is not given."""

    value: object = None
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What is known around a failed step; everything masked.

    `purpose` is what the step is for, in its author's words. `consumers` names the steps that
    use its outputs. `like` tells of earlier failures of this step with the same signature, one
    line each: the item, what was answered by whom, and why. `decisions_left` is None where
    there is no limit.
    """

    purpose: str = ""
    consumers: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    decisions_left: int | None = None


@runtime_checkable
class RunEvidence(RunReader, Protocol):
    """What a supervisor that investigates may read, besides; and where it writes what it spends.

    An `escalation_id` is always that of an escalation handed to this supervisor.
    """

    def brief(self, escalation_id: str) -> Brief:
        """What is known around the failed step."""
        ...

    def output(self, escalation_id: str, node_id: str) -> Found:
        """What a step put out that the failing item itself descends from: `{slot: value}`.

        Refused for a step that is not upstream of the failed one, for one that has put out
        nothing on this item's way, and where values are not kept. Of a fan-out, only the frame
        the item came from; of a list that is fanned out, only its element. Never a sibling's.
        """
        ...

    def candidate(self, escalation_id: str) -> object:
        """The broken value the step handed over."""
        ...

    def patched(
        self, escalation_id: str, patch: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Sequence[str]]:
        """The outputs a JSON Patch (RFC 6902) makes of the raw broken value, and what is wrong.

        The patch is applied to `patching.repairable(…)`: an object with every declared slot.
        Problems are masked. The outputs are for a `Substitute` and for nothing else: they may
        hold what is masked everywhere else. With problems they are empty.
        """
        ...

    def budget(self) -> BudgetState:
        """What was spent on deciding before this process, from the record."""
        ...

    def protect(self, name: str, value: str) -> None:
        """Mask `value` as `name` in everything the run says from here on.

        Masking costs a little with every value: call it when something is about to use the value.
        """
        ...

    def publish(self, event: Event) -> None:
        """Add an event to the run's record."""
        ...

    async def durable(self) -> None:
        """Return once everything published so far would survive a crash."""
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
    """Limits that mean *fail*. Zero is legal and means none; None leaves the mode's default.

    Raises `RunError` for what is no limit: nobody would be held by it.
    """

    max_decisions: int = 10
    max_retries: int = 2
    decision_timeout_s: float | None = None
    cost_cap_micro_usd: int = 500_000
    max_retry_delay_s: float = 300.0

    def __post_init__(self) -> None:
        for name in ("max_decisions", "max_retries", "cost_cap_micro_usd"):
            _check(name, getattr(self, name), int, "a whole number")
        if self.decision_timeout_s is not None:
            _check("decision_timeout_s", self.decision_timeout_s, (int, float), "seconds")
        _check("max_retry_delay_s", self.max_retry_delay_s, (int, float), "seconds")


def _check(name: str, value: object, kind: type | tuple[type, ...], what: str) -> None:
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or not 0 <= value < float("inf"):  # type: ignore[operator]
        raise RunError(f"{name} is {value!r}, but has to be {what}, 0 or more; 0 means none")


class SupervisorBase:
    """The two methods most supervisors have no use for."""

    human: bool = False
    """Whether a person answers: the default decision timeout is 600 s instead of 60 s."""

    def attach(self, reader: RunReader) -> None:
        """Keep nothing of the run."""

    async def aclose(self) -> None:
        """Nothing to close."""
