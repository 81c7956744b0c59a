"""What the trigger of a supervisor remembers, and what follows from what it is told.

Plain data: recorded, moved to another process's clock, and restored.

Read next: `trigger.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from nightwarden.steering.monitors import Match, Tallies
from nightwarden.steering.observed import Observed


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to look: a turn boundary, a monitor that held, a silence.

    `line` is the event as the supervisor is shown it, kept though it leaves the recent ones.
    """

    kind: str
    monitor: str = ""
    line: str = ""
    seq: int = 0
    node: str = ""
    identity: str = ""
    evidence: str = ""

    @staticmethod
    def of(seen: Observed, match: Match | None, identity: str) -> Cause:
        """The reason an event is; without a match, as a turn boundary."""
        if match is None:
            return Cause(kind="boundary", line=seen.shown, seq=seen.seq, node=seen.node_id)
        return Cause(
            kind="registered" if match.registered else "seeded",
            monitor=match.monitor,
            line=seen.shown,
            seq=seen.seq,
            node=seen.node_id,
            identity=identity,
            evidence=seen.evidence(),
        )

    def text(self) -> str:
        """The reason in words."""
        if self.kind == "boundary":
            return "a turn ended" + (f": {self.line}" if self.line else "")
        return f"{self.monitor} held" + (f": {self.line}" if self.line else "")


class TriggerState(msgspec.Struct):
    """All of it. Times are seconds on the clock of whoever calls; None where nothing is set.

    `cut` is the last event that is history, `active` branch → node in the order of starts.
    `pending` are triggers put off, `pending_due` until when (None: until a watched node starts),
    `urgent` whether a registered monitor is among them. `window` is the turn boundary that waits
    for quiet. `judged` are the events completed looks were about.
    """

    cut: int = 0
    last_seq: int = 0
    active: dict[str, str] = {}
    registered: list[str] = []
    done: bool = False
    completed: int = 0
    failures: int = 0
    parkings: int = 0
    parked_until: float | None = None
    exhausted_said: bool = False
    returned_at: float | None = None
    window_opened: float | None = None
    window_until: float | None = None
    window: Cause | None = None
    pending: list[Cause] = []
    pending_due: float | None = None
    urgent: bool = False
    evaluating: list[Cause] = []
    judged: list[str] = []
    evidence: str = ""
    repeated: int = 0
    spent_micro_usd: int = 0
    tallies: Tallies = msgspec.field(default_factory=Tallies)

    def moved(self, by: float) -> TriggerState:
        """The same on a clock that shows `by` seconds more."""
        copy = msgspec.json.decode(msgspec.json.encode(self), type=TriggerState)
        for name in _TIMES:
            at = getattr(copy, name)
            setattr(copy, name, None if at is None else at + by)
        tallies = copy.tallies
        tallies.alive = {key: at + by for key, at in tallies.alive.items()}
        tallies.times = {key: [at + by for at in times] for key, times in tallies.times.items()}
        return copy


_TIMES = ("parked_until", "returned_at", "window_opened", "window_until", "pending_due")


# -- what follows --


@dataclass(frozen=True, slots=True)
class Armed:
    """A watched node is active, `node` the last to start."""

    node: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Evaluate now. `node` is who a message is for; a `probe` is the one attempt after parking."""

    causes: tuple[Cause, ...]
    node: str
    number: int
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Deferred:
    """A trigger waits: for `wait_s`, or (None) for an event."""

    cause: Cause
    wait_s: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Parked:
    """Evaluations keep failing."""

    failures: int
    detail: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing is left to spend; said once."""

    limit: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """It rests."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The run is over."""


@dataclass(frozen=True, slots=True)
class Silent:
    """A monitor held and nothing follows, with the reason; only where it was asked for."""

    why: str
    monitor: str
    line: str


Act = Armed | Wake | Deferred | Parked | Exhausted | Done | Closed | Silent
