"""What stands between the run and any supervisor: counts, time, memory, and distrust.

    sticky? ──▶ decisions left? ──▶ count, ask, wait ──▶ usable? ──▶ remember
       │no cost      │no               │too late, raised    │no
       ▼             ▼                 ▼                    ▼
    that answer    fail, by bounds   fail, by bounds      fail, by bounds or kernel

A supervisor may be slow, wrong, or deaf. Whatever it does, a decision comes back in time,
and what it cost is kept. Whether the verdict is allowed is the kernel's to say, not ours.

Escalations are fed one at a time. Cancelling `decide` aborts the supervisor; nothing is then
recorded as its answer, but what it spent was spent.

Read next: `patience.py`, `sticky.py`, `supervisors/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

import msgspec

from nightwarden.runtime.answers import Raised, cost_of, describe, failed, flaw_of, settle
from nightwarden.runtime.patience import GRACE_S, Patience, TooLate
from nightwarden.runtime.sticky import StickyAnswers, StickySkip
from nightwarden.runtime.supervision import Bounds, RunReader, Supervisor
from nightwarden.runtime.supervisors.failclosed import default_fail
from nightwarden.verdict import Decision, Escalation, action_of

MODEL_TIMEOUT_S: Final = 60.0
HUMAN_TIMEOUT_S: Final = 600.0


class BoundsState(msgspec.Struct, frozen=True, kw_only=True):
    """What a resume carries on: plain data, for the record."""

    decisions_used: int = 0
    spent_micro_usd: int = 0
    skips: tuple[StickySkip, ...] = ()


@runtime_checkable
class Remembers(Protocol):
    """A supervisor that itself knows some answers for nothing, before it is asked."""

    def sticky(self, escalation: Escalation) -> Decision | None:
        """The answer that costs nothing and counts for nothing, or None."""
        ...


class Bounded:
    """A supervisor inside its bounds; itself a supervisor.

    `now` is seconds on any steady clock (default: the loop's own), `stamp` the current time in
    UTC as records write it. `attach_error` and `close_error` say what the supervisor raised
    there; neither ends a run. `late_cost_micro_usd` is what answers cost that came too late to
    be part of any decision; it is included in `spent_micro_usd`.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        bounds: Bounds,
        *,
        stamp: Callable[[], str],
        now: Callable[[], float] | None = None,
    ) -> None:
        self.supervisor = supervisor
        self.bounds = bounds
        self.attach_error: str | None = None
        self.close_error: str | None = None
        self.decisions_used = 0
        self.spent_micro_usd = 0
        self.late_cost_micro_usd = 0
        self._stamp = stamp
        self._clock = now
        self._memory = StickyAnswers()
        self._patience = Patience(self._book_late)

    @property
    def asks(self) -> bool:
        """False where the answer is always the default one, so that no queue is needed."""
        return bool(getattr(self.supervisor, "asks", True))

    @property
    def human(self) -> bool:
        """Whether a person answers."""
        return bool(getattr(self.supervisor, "human", False))

    @property
    def timeout_s(self) -> float:
        """How long one decision may take."""
        if self.bounds.decision_timeout_s is not None:
            return self.bounds.decision_timeout_s
        return HUMAN_TIMEOUT_S if self.human else MODEL_TIMEOUT_S

    @property
    def abandoned(self) -> frozenset[asyncio.Task[object]]:
        """Tasks of supervisors deaf to cancellation; nobody should wait for them."""
        return self._patience.abandoned

    def sticky(self, escalation: Escalation) -> Decision | None:
        """The answer that already holds for this failure: free, uncounted, always allowed."""
        found = self._memory.find(escalation) or self._known(escalation)
        return None if found is None else self._stamped(escalation, found, self._stamp(), 0.0)

    async def decide(self, escalation: Escalation) -> Decision:
        """A decision, whatever the supervisor does. Only cancellation comes out of here."""
        remembered = self.sticky(escalation)
        if remembered is not None:
            return remembered
        started_at = self._stamp()
        if not self.asks:
            decision = default_fail(escalation, "no supervisor")
            return self._stamped(escalation, decision, started_at, 0.0)
        if refusal := self._refusal():
            return self._stamped(escalation, failed(escalation, refusal), started_at, 0.0)
        self.decisions_used += 1
        began = self._now()
        decision = await self._ask(escalation)
        self.spent_micro_usd += decision.cost_micro_usd
        decision = self._stamped(escalation, decision, started_at, self._now() - began)
        self._memory.remember(escalation, decision)
        return decision

    def state(self) -> BoundsState:
        """What a resume needs: counts, money, and the skips that stick. Sticky fails do not."""
        return BoundsState(
            decisions_used=self.decisions_used,
            spent_micro_usd=self.spent_micro_usd,
            skips=self._memory.skips(),
        )

    def restore(self, state: BoundsState) -> None:
        """Carry on from a recorded state."""
        self.decisions_used = state.decisions_used
        self.spent_micro_usd = state.spent_micro_usd
        self._memory.restore(state.skips)

    def attach(self, reader: RunReader) -> None:
        """Hand the run to the supervisor. What it raises is noted, and the run goes on."""
        try:
            self.supervisor.attach(reader)
        except (Exception, SystemExit) as error:
            self.attach_error = describe(error)

    async def aclose(self) -> None:
        """Close the supervisor. One that will not close is noted, and left behind."""
        closed = await self._patience.wait(self.supervisor.aclose, GRACE_S, name="close")
        if isinstance(closed, TooLate):
            self.close_error = f"did not close within {GRACE_S:g} s"
        elif isinstance(closed, Raised):
            self.close_error = closed.why

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def _refusal(self) -> str:
        """Why nobody is asked any more; empty while there is something left."""
        most = self.bounds.max_decisions
        if most <= 0:
            return "no decisions are allowed"
        if self.decisions_used >= most:
            return f"{most} {'decision' if most == 1 else 'decisions'} used up"
        return "no time to decide is allowed" if self.timeout_s <= 0 else ""

    async def _ask(self, escalation: Escalation) -> Decision:
        """Wait for the supervisor, no longer than it may take."""
        answer = await self._patience.wait(
            lambda: self.supervisor.decide(escalation),
            self.timeout_s,
            name=f"decide {escalation.id}",
        )
        if isinstance(answer, TooLate):
            why = f"no decision within {self.timeout_s:g} s"
            return failed(escalation, why, answer=answer.answer)
        return settle(escalation, answer, human=self.human)

    def _book_late(self, answer: object) -> None:
        self.late_cost_micro_usd += cost_of(answer)
        self.spent_micro_usd += cost_of(answer)

    def _known(self, escalation: Escalation) -> Decision | None:
        """What the supervisor itself remembers, where that is usable and allowed here."""
        if not isinstance(self.supervisor, Remembers):
            return None
        try:
            found = self.supervisor.sticky(escalation)
        except Exception:
            return None  # It is asked properly next, and may fail there, on the record.
        if found is None or flaw_of(found) is not None:
            return None
        return found if action_of(found.verdict) in escalation.allowed_actions else None

    def _stamped(
        self, escalation: Escalation, decision: Decision, started_at: str, duration_s: float
    ) -> Decision:
        return msgspec.structs.replace(
            decision,
            escalation_id=escalation.id,
            started_at=started_at,
            duration_s=max(duration_s, 0.0),
            delay_s=None,  # the kernel's to choose
        )


def bounded(
    supervisor: Supervisor,
    bounds: Bounds,
    *,
    stamp: Callable[[], str],
    now: Callable[[], float] | None = None,
) -> Bounded:
    """The supervisor inside these bounds; one that already has its own keeps them."""
    if isinstance(supervisor, Bounded):
        return supervisor
    return Bounded(supervisor, bounds, stamp=stamp, now=now)
