"""A recorded run in front of a supervisor, on the run's own time: when would it have woken?

    events of a record ─▶ Trigger, `now` = each event's own time ─▶ what followed, and why not

Nobody is asked and nothing waits: an hour of a run takes as long as reading it. Evaluations
return after `thinking_s` with what `advise` says, by default with silence.

Pure. Read next: `trigger.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nightwarden.events import Event
from nightwarden.spec.monitors import parse_monitor
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.lookout import Lookout
from nightwarden.steering.observed import Observed
from nightwarden.steering.policies import applied
from nightwarden.steering.ports import Advice
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import Act, Closed, Deferred, Silent, Wake

Advise = Callable[[Wake], Advice | None]
"""The answer to a wake; None for an evaluation that fails."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that would have followed, in seconds since the first event.

    `seq` is the event it followed; 0 where it followed the passing of time.
    """

    at_s: float
    act: Act
    seq: int = 0


@dataclass(slots=True)
class Rehearsal:
    """What would have happened."""

    moments: list[Moment] = field(default_factory=list)
    messages: list[tuple[float, str]] = field(default_factory=list)
    events: int = 0

    @property
    def wakes(self) -> list[Wake]:
        """Every look it would have taken."""
        return [m.act for m in self.moments if isinstance(m.act, Wake)]

    @property
    def silences(self) -> list[Moment]:
        """Every monitor that held without a look, and every look put off."""
        return [m for m in self.moments if isinstance(m.act, (Silent, Deferred))]


def silence(_wake: Wake) -> Advice:
    """The advice of somebody who has nothing to say."""
    return Advice(intervene=False)


def rehearse(
    events: Iterable[Event | Mapping[str, Any]],
    spec: SupervisorSpec,
    *,
    advise: Advise = silence,
    thinking_s: float = 2.0,
) -> Rehearsal:
    """Lead the events of a record past a supervisor."""
    return _Stage(applied(spec), advise, thinking_s).play(events)


class _Stage:
    def __init__(self, spec: SupervisorSpec, advise: Advise, thinking_s: float) -> None:
        self._trigger = Trigger(spec, explain=True)
        self._advise = advise
        self._thinking_s = thinking_s
        self._answer_due: float | None = None
        self._wake: Wake | None = None
        self._now = 0.0
        self._found = Rehearsal()

    def play(self, events: Iterable[Event | Mapping[str, Any]]) -> Rehearsal:
        self._follow(self._trigger.begin(0.0), 0)
        for at, seen in timed(map(Lookout().observe, events)):
            self._pass_until(at)
            self._now = at
            self._found.events += 1
            self._follow(self._trigger.see(seen, at), seen.seq)
            if self._trigger.closed:
                break
        else:
            self._pass_until(self._now + self._thinking_s)
        return self._found

    def _pass_until(self, end: float) -> None:
        """Everything that is due before the next event."""
        while True:
            answer, due = self._answer_due, self._trigger.deadline()
            times = [at for at in (answer, due) if at is not None]
            if not times or min(times) > end:
                return
            self._now = max(self._now, min(times))
            if answer is not None and answer <= self._now:
                self._answered()
            else:
                self._follow(self._trigger.due(self._now), 0)

    def _answered(self) -> None:
        wake, self._wake, self._answer_due = self._wake, None, None
        assert wake is not None
        advice = self._advise(wake)
        if advice is None:
            self._follow(self._trigger.failed(self._now, "no answer"), 0)
            return
        if advice.intervene and advice.message.strip():
            self._found.messages.append((self._now, advice.message.strip()))
        watch = [parse_monitor(written) for written in advice.watch]
        self._follow(self._trigger.returned(self._now, done=advice.done, watch=watch), 0)

    def _follow(self, acts: Iterable[Act], seq: int) -> None:
        for act in acts:
            self._found.moments.append(Moment(self._now, act, seq))
            if isinstance(act, Wake):
                self._wake = act
                self._answer_due = self._now + self._thinking_s
            elif isinstance(act, Closed):
                self._answer_due = None


def timed(events: Iterable[Observed]) -> Iterator[tuple[float, Observed]]:
    """Events with their seconds since the first; a clock that was set back stands still."""
    start: float | None = None
    now = 0.0
    for seen in events:
        at = _seconds(seen.at)
        if at is not None:
            start = at if start is None else start
            now = max(now, at - start)
        yield now, seen


def _seconds(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
