"""When a run was at work, in little memory however long it was: busy seconds a node and moment.

    drives    |── started ──────── crash|  |── resumed ────── end|      nights between are left out
    a node         ▂▅▇▇▇▇▅▂               ▂▇▇▅                          `bins`, all of one width
    marks             ⛨    ⛨                                            decisions, in place

Times are seconds at work since the start: what lies between an end and a resume does not count.
The width of the bins doubles whenever there are too many of them. A clock that jumps back
stands still here.

Read next: `html_timeline.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from nightwarden.events.words import list_of, mapping_of

Plain = Mapping[str, Any]

MOST_BINS: Final = 240
_FIRST_WIDTH_S: Final = 1 / 64
_LONGEST_DRIVE_S: Final = 10 * 365 * 86400.0
"""A clock that jumps ahead further than this is not believed."""


@dataclass(slots=True)
class Drive:
    """One process at work on the run: from its start or resume to its end, or the last event."""

    started_at: str
    from_s: float
    to_s: float
    ended_at: str = ""
    supervisor: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A decision, at the moment it was applied."""

    at_s: float
    at: str
    node: str
    lineage: tuple[int, ...]
    action: str
    escalation: str


@dataclass(slots=True)
class Timeline:
    """What `TimelineFold` gives. `busy` holds, by node, seconds of work a bin of `width_s`."""

    length_s: float = 0.0
    width_s: float = _FIRST_WIDTH_S
    busy: dict[str, list[float]] = field(default_factory=dict)
    drives: list[Drive] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


class TimelineFold:
    """Takes a run's events in order."""

    def __init__(self) -> None:
        self._width = _FIRST_WIDTH_S
        self._busy: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._levels: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._drives: list[Drive] = []
        self._marks: list[Mark] = []
        self._origin = 0.0

    def take(self, event: Plain) -> None:
        """Fold one event in."""
        kind, at = event.get("type"), str(event.get("at") or "")
        if kind in ("run_started", "run_resumed"):
            self._begin(event, at)
        now = self._now(at)
        match kind:
            case "invocation_succeeded" | "invocation_failed":
                took = event.get("duration_s")
                self._span(str(event.get("node_id", "")), now, took)
            case "supervisor_decision":
                self._mark(event, now, at)

    def close(self) -> Timeline:
        """The timeline so far."""
        length = self._drives[-1].to_s if self._drives else 0.0
        bins = int(length / self._width) + 1
        for node in list(self._levels):
            self._settle(node)
        busy = {
            node: [round(found.get(i, 0.0), 6) for i in range(bins)]
            for node, found in self._busy.items()
        }
        return Timeline(length, self._width, busy, list(self._drives), list(self._marks))

    def _begin(self, event: Plain, at: str) -> None:
        before = self._drives[-1].to_s if self._drives else 0.0
        self._origin = _seconds(at) or 0.0
        supervisor = str(event.get("supervisor") or "")
        self._drives.append(Drive(at, before, before, at, supervisor))

    def _now(self, at: str) -> float:
        """The moment of an event in seconds at work; never earlier than the one before."""
        if not self._drives:
            self._begin({}, at)
        drive, told = self._drives[-1], _seconds(at)
        if told is not None and 0 <= told - self._origin < _LONGEST_DRIVE_S:
            drive.to_s = max(drive.to_s, drive.from_s + told - self._origin)
            drive.ended_at = at
        while drive.to_s / self._width >= MOST_BINS:
            self._double()
        return drive.to_s

    def _span(self, node: str, end: float, took: object) -> None:
        """An invocation that has just ended."""
        known = isinstance(took, (int, float)) and not isinstance(took, bool) and took > 0
        length = min(float(took), end - self._drives[-1].from_s) if known else 0.0  # type: ignore[arg-type]
        start = max(0.0, end - length)
        first, last = int(start / self._width), int(end / self._width)
        busy = self._busy[node]
        if first == last:
            busy[first] += end - start
            return
        busy[first] += (first + 1) * self._width - start
        busy[last] += end - last * self._width
        # Whole bins between are kept as where a level begins and ends: however long, two entries.
        self._levels[node][first + 1] += 1
        self._levels[node][last] -= 1

    def _settle(self, node: str) -> None:
        """Turn the levels of a node into busy seconds."""
        levels, level = self._levels.pop(node), 0
        for i in range(min(levels, default=0), max(levels, default=0)):
            level += levels.get(i, 0)
            if level:
                self._busy[node][i] += level * self._width

    def _double(self) -> None:
        for node in list(self._levels):
            self._settle(node)
        self._width *= 2
        for node, busy in self._busy.items():
            halved: dict[int, float] = defaultdict(float)
            for i, amount in busy.items():
                halved[i // 2] += amount
            self._busy[node] = halved

    def _mark(self, event: Plain, now: float, at: str) -> None:
        verdict = mapping_of(mapping_of(event.get("decision")).get("verdict"))
        self._marks.append(
            Mark(
                now,
                at,
                str(event.get("node_id", "")),
                _lineage(event),
                str(verdict.get("action", "")),
                str(event.get("escalation_id", "")),
            )
        )


def _lineage(event: Plain) -> tuple[int, ...]:
    found: Sequence[Any] = list_of(event.get("lineage"))
    return tuple(i for i in found if isinstance(i, int))


def _seconds(at: str) -> float | None:
    """Seconds of the epoch, None for what is no time."""
    try:
        return datetime.fromisoformat(at).timestamp() if at else None
    except (ValueError, OverflowError, OSError):
        return None
