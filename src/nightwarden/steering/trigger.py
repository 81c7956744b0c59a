"""When a supervisor looks: pure, with the time as a number.

    event ─▶ who is active ─▶ a monitor holds? ──registered──▶ look now
                                  │  └──────seeded──────────▶ now, or when the cooldown ends
                                  └ a turn boundary? ───────▶ after 3 s of quiet, or when …

Rules (steering.md §2): armed only while a watched node is active. What comes inside the
cooldown, which begins when an evaluation returns, is put off to its end and never dropped; if
the node ends first, to its next start. Everything waiting goes into one look together. Failed
evaluations are free and what they looked at waits again; three in a row park the supervisor, and
one probe after ten minutes decides. History up to `cut` rebuilds the state and wakes nobody.

`see` takes an event, `due` the passing of time, `returned` and `failed` the end of a look; each
gives what follows. `deadline` says when to call `due` at the latest.

Read next: `agenda.py`, `activity.py`, `wakes.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from nightwarden.spec.monitors import Monitor, parse_monitor
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.activity import ENDS, STARTS, TERMINAL, Activity
from nightwarden.steering.agenda import Agenda
from nightwarden.steering.lookout import INVOCATIONS, RECENT
from nightwarden.steering.monitors import Match, Watchlist
from nightwarden.steering.observed import Observed
from nightwarden.steering.wakes import (
    Act,
    Armed,
    Cause,
    Closed,
    Done,
    Silent,
    TriggerState,
    Wake,
)

BOUNDARIES: Final = frozenset(
    {"llm_step_finished", "assistant_text", "node_started", "node_finished", "run_paused"}
)
_OWN: Final = ("user_message_", "steering_")

_LIFE, _MATCH, _BOUNDARY = 1, 2, 4
"""What an event may be of use for: who is active, a monitor, the end of a turn."""

_NOTHING: Final[Sequence[Act]] = ()
_DONE: Final = "it is done, and a declared monitor does not revive it"


class Trigger:
    """The wake logic of one supervisor.

    `recent` are the last events of the run where somebody else keeps them. `explain` adds
    `Silent` acts: why nothing followed.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        *,
        cut: int = 0,
        state: TriggerState | None = None,
        recent: deque[Observed] | None = None,
        explain: bool = False,
    ) -> None:
        self.spec = spec
        self.state = TriggerState(cut=cut) if state is None else state
        self._keeps_recent = recent is None
        self.recent: deque[Observed] = deque(maxlen=RECENT) if recent is None else recent
        self.closed = False
        self.watchlist = Watchlist(
            spec.monitors,
            [parse_monitor(text) for text in self.state.registered],
            self.state.tallies,
        )
        self.activity = Activity(spec.watches, self.state.active)
        self.agenda = Agenda(spec, self.state)
        self._watches = frozenset(spec.watches)
        self._explain = explain
        self._uses: dict[str, int] = {}
        self._told_armed = False

    # -- what comes in --

    def begin(self, now: float) -> Sequence[Act]:
        """History has been replayed: from here on it counts."""
        self.watchlist.register(map(parse_monitor, self.state.registered))
        self._uses.clear()
        self.agenda.given_up()  # the look that was cut off by the end of a process
        if self.armed:
            self.agenda.again(now)
        return self._arming(now)

    def see(self, seen: Observed, now: float) -> Sequence[Act]:
        """One event, in order. What was seen before by number is ignored."""
        state, seq = self.state, seen.seq
        if seq:
            if seq <= state.last_seq:
                return _NOTHING
            state.last_seq = seq
        if self._keeps_recent:
            self.recent.append(seen)
        use = self._uses.get(seen.type)
        if use is None:
            use = self._use_of(seen.type)
        if not use or self.closed:
            return _NOTHING
        history = 0 < seq <= state.cut
        if use & _LIFE or history:
            return self._consider(seen, now, history=history)
        if self.activity.armed:
            if use & _MATCH:
                matches = self.watchlist.matches(seen, now)
                if matches:
                    return self._weigh(seen, matches, now, use)
            if use & _BOUNDARY and not state.done and not state.exhausted_said:
                node = seen.node_id
                if not self._watches or not node or node in self._watches:
                    self.agenda.turn_ended(seen, now)
        elif self._explain and use & _MATCH:
            return self._why("no watched node is active", self.watchlist.holding(seen))
        return _NOTHING

    def wants(self, seen: Observed) -> bool:
        """Whether such events can have any effect; the answer changes as it registers.

        Who is active is told by the starts and ends of nodes; those of invocations matter where
        the node is watched.
        """
        use = self._use_of(seen.type)
        if use == _LIFE and seen.type in INVOCATIONS:
            return seen.node_id in self._watches
        if use == _MATCH:
            return self.watchlist.may_match_such(seen)
        return bool(use)

    def due(self, now: float) -> Sequence[Act]:
        """Time has passed: what was put off, a boundary after its quiet, a silence."""
        state = self.state
        if self.closed or state.evaluating:
            return _NOTHING
        if state.pending_due is not None and now >= state.pending_due:
            state.pending_due = None
            if self.armed and (state.urgent or not state.done):
                state.done = False
                return self._look([], now, urgent=state.urgent)
        ended = state.window_until is not None and now >= state.window_until
        turn = self.agenda.close_window() if ended else []
        silences = self.watchlist.silent(now) if self.armed else []
        causes = [*turn, *(_silence(match, now) for match in silences)]
        if not causes:
            return _NOTHING
        if any(match.registered for match in silences):
            state.done = False
            return self._look(causes, now, urgent=True)
        if state.done:
            state.pending += turn  # it ended before that was said, and waits for a fresh start
            return self._why(_DONE, silences)
        return self._look(causes, now)

    def deadline(self) -> float | None:
        """When `due` has to be called, None while only an event can change anything."""
        state = self.state
        if self.closed or state.evaluating:
            return None
        times = [state.pending_due, state.window_until]
        if self.armed:
            times.append(self.watchlist.silence_due())
        return min((at for at in times if at is not None), default=None)

    # -- how a look ended --

    def returned(
        self,
        now: float,
        *,
        done: bool = False,
        watch: Iterable[Monitor] = (),
        committed: bool = True,
        cost_micro_usd: int = 0,
    ) -> Sequence[Act]:
        """An evaluation is complete. Without `committed` its evidence may be judged again."""
        self.state.spent_micro_usd += cost_micro_usd
        added = self.watchlist.register(watch, now if self.armed else None)
        if added:
            self.state.registered += added
            self._uses.clear()
        self.state.done = done
        self.agenda.returned(now, committed=committed, armed=self.armed)
        return [Done()] if done else _NOTHING

    def failed(self, now: float, detail: str) -> Sequence[Act]:
        """An evaluation gave no answer: it does not count, and what it looked at waits again."""
        return self.agenda.failed(now, detail, armed=self.armed)

    # -- inside --

    @property
    def armed(self) -> bool:
        """Whether a watched node is active; without a watch list, always."""
        return self.activity.armed and not self.closed

    def _use_of(self, kind: str) -> int:
        found = self._uses.get(kind)
        if found is None:
            found = _LIFE if kind in STARTS or kind in ENDS or kind in TERMINAL else 0
            found |= _BOUNDARY if kind in BOUNDARIES and self.spec.boundaries else 0
            if not kind.startswith(_OWN) and self.watchlist.may_match(kind):
                found |= _MATCH
            self._uses[kind] = found
        return found

    def _consider(self, seen: Observed, now: float, *, history: bool) -> Sequence[Act]:
        """An event of history, or one after which somebody else is active."""
        kind = seen.type
        if kind in TERMINAL:
            return self._close()
        acts: list[Act] = []
        if kind in STARTS and self.activity.started(seen):
            acts += self._fresh_start(now, history=history)
        if not history:
            if self.armed:
                matches = self.watchlist.matches(seen, now)
                acts += self._weigh(seen, matches, now, self._use_of(kind))
            acts += self._settle(now)
        elif self.armed:
            self.watchlist.matches(seen, now)  # counted, and no more
        if kind in ENDS:
            self.activity.ended(seen)
            self._disarmed()
        return acts

    def _fresh_start(self, now: float, *, history: bool) -> Sequence[Act]:
        """A watched node starts: whoever was done looks again, what waited for it is due."""
        self.state.done = False
        if history:
            return _NOTHING
        acts = self._arming(now)
        self.agenda.again(now)
        return acts

    def _arming(self, now: float) -> Sequence[Act]:
        if not self.armed or self._told_armed:
            return _NOTHING
        self._told_armed = True
        self.watchlist.armed(now)
        return [Armed(self.activity.scope())]

    def _disarmed(self) -> None:
        if not self.armed:
            self._told_armed = False
            self.agenda.hold()

    def _weigh(
        self, seen: Observed, matches: Sequence[Match], now: float, use: int
    ) -> Sequence[Act]:
        """What follows from monitors that hold; those about other nodes only if they name them."""
        if self.activity.is_foreign(seen):
            matches = [match for match in matches if match.node_id == seen.node_id]
        if matches:
            return self._matched(seen, matches, now)
        if use & _BOUNDARY:
            self._boundary(seen, now)
        return _NOTHING

    def _matched(self, seen: Observed, found: Sequence[Match], now: float) -> Sequence[Act]:
        identity = seen.identity()
        if identity and identity in self.state.judged:
            return self._why("this very event has been judged", found)
        causes = [Cause.of(seen, match, identity) for match in found]
        if any(match.registered for match in found):
            self.state.done = False
            return self._look(causes, now, urgent=True)
        if self.state.done:
            return self._why(_DONE, found)
        return self._look(causes, now)

    def _boundary(self, seen: Observed, now: float) -> None:
        """The end of a turn of somebody watched."""
        state = self.state
        if state.done or state.exhausted_said or not self.activity.armed:
            return
        if not self.activity.is_foreign(seen):
            self.agenda.turn_ended(seen, now)

    def _settle(self, now: float) -> Sequence[Act]:
        """What waited for a start is due now."""
        state = self.state
        if state.pending_due is not None and now >= state.pending_due and not state.evaluating:
            return self.due(now)
        return _NOTHING

    def freeze(self) -> TriggerState:
        """The state, ready to be recorded."""
        return self.agenda.freeze()

    def _look(self, causes: list[Cause], now: float, *, urgent: bool = False) -> Sequence[Act]:
        """Begin an evaluation, or put it off; every trigger stays in its reason."""
        agenda, state = self.agenda, self.state
        if agenda.is_spent:
            said = state.exhausted_said
            return self._spent(causes) if said else agenda.exhaust()
        start = agenda.start(now, urgent=urgent)
        if state.evaluating or not self.armed or now < start:
            return agenda.put_off(causes, start, now, urgent=urgent, armed=self.armed)
        looked = agenda.begin_look(causes)
        node = self.activity.scope(cause.node for cause in _by_weight(looked))
        probe = state.parked_until is not None
        return [Wake(tuple(looked), node, state.completed + 1, probe)]

    def _spent(self, causes: Sequence[Cause]) -> Sequence[Act]:
        self.agenda.clear()
        if not self._explain:
            return _NOTHING
        return [Silent("its evaluations are spent", c.monitor, c.line) for c in causes]

    def _close(self) -> Sequence[Act]:
        """The run is over: nothing waits any more."""
        self.activity.clear()
        self.agenda.clear()
        self.closed = True
        return [Closed()]

    def _why(self, why: str, matches: Sequence[Match]) -> Sequence[Act]:
        if not self._explain:
            return _NOTHING
        return [Silent(why, match.monitor, "") for match in matches]


def _silence(match: Match, now: float) -> Cause:
    return Cause(kind="silence", monitor=match.monitor, evidence=f"{match.monitor}@{now:.0f}")


def _by_weight(causes: Sequence[Cause]) -> list[Cause]:
    """The newest monitor first, the boundary last: a word is about what woke the supervisor."""
    newest_first = causes[::-1]
    return sorted(newest_first, key=lambda cause: cause.kind == "boundary")
