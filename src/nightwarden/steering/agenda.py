"""What a supervisor has still to look at, when it may, and how much it may look at all.

    a turn boundary ─▶ window, three seconds of quiet ─┐
    a monitor that held ──────────────────────────────▶ a look ─▶ cooldown
                          └ inside it: pending ────────┘

Nothing that waits is dropped: what is pending goes into the next look, whatever that is for. A
failed look waits again, and costs nothing; three in a row park the supervisor.

Read next: `trigger.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.observed import Observed
from nightwarden.steering.wakes import Act, Cause, Deferred, Exhausted, Parked, TriggerState

DEBOUNCE_S: Final = 3.0
MOST_FAILURES: Final = 3
PARKED_S: Final = 600.0
LONGEST_PARKED_S: Final = 3600.0
_MOST_JUDGED: Final = 64
_MOST_TOLD: Final = 20
_MOST_CAUSES: Final = 100


class Agenda:
    """Works on a trigger's state; the time is a number."""

    def __init__(self, spec: SupervisorSpec, state: TriggerState) -> None:
        self._spec = spec
        self._state = state
        self._turn: Observed | None = None

    # -- the end of a turn --

    def turn_ended(self, seen: Observed, now: float) -> None:
        """Look after three seconds of quiet; the window stays open for one cooldown at most."""
        state = self._state
        if state.window_opened is None:
            state.window_opened = now
            state.window_until = now + DEBOUNCE_S
        elif now - state.window_opened < self._spec.cooldown_s:
            state.window_until = now + DEBOUNCE_S
        self._turn = seen

    def close_window(self) -> list[Cause]:
        """The last end of a turn as a reason to look, if there was one."""
        self.freeze()
        state, self._turn = self._state, None
        cause = state.window
        state.window_opened = state.window_until = state.window = None
        return [] if cause is None else [cause]

    def freeze(self) -> TriggerState:
        """The state, ready to be recorded."""
        if self._turn is not None:
            self._state.window = Cause.of(self._turn, None, "")
        return self._state

    # -- when --

    def cooled_at(self, now: float) -> float:
        """When the cooldown ends; `now` where it has."""
        returned = self._state.returned_at
        return now if returned is None else max(now, returned + self._spec.cooldown_s)

    def start(self, now: float, *, urgent: bool) -> float:
        """When a look may begin; only a parking holds up an urgent one."""
        return max(now if urgent else self.cooled_at(now), self._state.parked_until or now)

    def begin_look(self, causes: Iterable[Cause]) -> Sequence[Cause]:
        """Everything that waits, and these: what the look is about."""
        state = self._state
        state.evaluating = _merged([*state.pending, *causes, *self.close_window()])
        state.pending, state.pending_due, state.urgent = [], None, False
        return state.evaluating

    def put_off(
        self, causes: Sequence[Cause], start: float, now: float, *, urgent: bool, armed: bool
    ) -> Sequence[Act]:
        """Keep these for a later look. The first twenty are said; all are in its reason."""
        state = self._state
        tell = causes if len(state.pending) < _MOST_TOLD else ()
        state.pending = _merged([*state.pending, *causes])
        state.urgent = state.urgent or urgent
        if state.evaluating:
            return [Deferred(cause, None, "evaluating") for cause in tell]
        if not armed:
            return [Deferred(cause, None, "ended") for cause in tell]
        state.pending_due = start if state.pending_due is None else min(start, state.pending_due)
        why = "parked" if state.parked_until is not None else "cooldown"
        return [Deferred(cause, start - now, why) for cause in tell]

    def again(self, now: float) -> None:
        """Somebody is active again: what waited for that is due when the cooldown ends."""
        state = self._state
        if state.pending and state.pending_due is None and not state.evaluating:
            state.pending_due = self.start(now, urgent=state.urgent)

    def hold(self) -> None:
        """Nobody is active: what waits, waits for somebody to start."""
        self._state.pending += self.close_window()
        self._state.pending_due = None

    def clear(self) -> None:
        """Nothing waits any more."""
        self._state.pending, self._state.pending_due = [], None
        self.close_window()

    # -- how a look ended --

    def returned(self, now: float, *, committed: bool, armed: bool) -> None:
        """It is complete, and counts."""
        state = self._state
        looked, state.evaluating = state.evaluating, []
        state.failures, state.parkings, state.parked_until = 0, 0, None
        state.completed += 1
        if committed:
            self._commit(looked)
        self._cool(now, armed=armed)

    def failed(self, now: float, detail: str, *, armed: bool) -> Sequence[Act]:
        """It gave no answer: what it was about waits again, and it may be parked."""
        state = self._state
        probe = state.parked_until is not None
        state.failures += 1
        parked = state.failures >= MOST_FAILURES or probe
        wait = min(PARKED_S * 2**state.parkings, LONGEST_PARKED_S) if parked else 0.0
        if parked:
            state.parkings += 1
            state.parked_until = now + wait
        self.given_up()
        self._cool(now, armed=armed)
        return [Parked(state.failures, detail, wait)] if parked else ()

    def given_up(self) -> None:
        """It was cut off: what it was about waits again."""
        state = self._state
        state.pending = [*state.evaluating, *state.pending]
        state.evaluating = []

    def _cool(self, now: float, *, armed: bool) -> None:
        state = self._state
        state.returned_at = now
        state.urgent = state.urgent and bool(state.pending)
        state.pending_due = None
        if armed and (state.urgent or not state.done):
            self.again(now)

    def _commit(self, looked: Sequence[Cause]) -> None:
        state = self._state
        state.judged = [*state.judged, *(c.identity for c in looked if c.identity)][-_MOST_JUDGED:]
        evidence = "+".join(sorted({c.evidence for c in looked if c.evidence}))
        same = bool(evidence) and evidence == state.evidence
        state.repeated = state.repeated + 1 if same else 0
        state.evidence = evidence

    # -- how much --

    @property
    def is_spent(self) -> bool:
        """Whether its evaluations, or its own money, are used up."""
        cap, state = self._spec.cost_cap_usd, self._state
        too_dear = cap is not None and state.spent_micro_usd >= cap * 1_000_000
        return too_dear or state.completed >= self._spec.max_evals

    def exhaust(self) -> Sequence[Act]:
        """Say so, the first time."""
        state = self._state
        self.clear()
        if state.exhausted_said:
            return ()
        state.exhausted_said = True
        dear = state.completed < self._spec.max_evals
        detail = f"${self._spec.cost_cap_usd:g} of its own" if dear else ""
        return [Exhausted(self._spec.max_evals, detail)]


def _merged(causes: Iterable[Cause]) -> list[Cause]:
    """Each trigger once, the last boundary only: it stands for those before it."""
    found: dict[object, Cause] = {}
    for cause in causes:
        key = "boundary" if cause.kind == "boundary" else (cause.monitor, cause.seq, cause.line)
        if key == "boundary":
            found.pop(key, None)
        found.setdefault(key, cause)
    return list(found.values())[:_MOST_CAUSES]
