"""Which events a supervisor's monitors match. Pure: the time is a number.

    by type of event ─▶ the few monitors that can hold ─▶ all their fields ─▶ counted, repeated

A monitor is *seeded* when it was declared, *registered* when the supervisor asked for it while
it ran. What supervisors do themselves (`steering_…`, `user_message_…`) never matches.

Read next: `questions.py`, `trigger.py`. The grammar is `spec/monitors.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nightwarden.spec.monitors import TOOL_TYPES, Monitor
from nightwarden.steering.observed import Observed
from nightwarden.steering.questions import all_of, holds, is_empty, kind_fits, questions, usable

MOST_REGISTERED: Final = 20
"""Monitors a supervisor may register while it runs."""

_NO_MATCH: Final[list[Any]] = []


@dataclass(frozen=True, slots=True)
class Match:
    """A monitor that holds. `registered` ones may break into the cooldown."""

    monitor: str
    registered: bool
    node_id: str = ""


class Tallies(msgspec.Struct):
    """What monitors remember: when counted events came, and the last sign of life."""

    times: dict[str, list[float]] = {}
    alive: dict[str, float] = {}
    """Monitors that wait for silence: since when. Gone once it has fired, until the next event."""


class _Entry:
    """A monitor made ready: found by its `word` alone, its `tool`, or money `over` an amount.

    `rest` is what is to be asked besides; `plain` ones neither count nor wait.
    """

    __slots__ = ("monitor", "over", "plain", "registered", "rest", "text", "tool", "word")

    def __init__(self, monitor: Monitor, registered: bool) -> None:
        self.monitor = monitor
        self.registered = registered
        self.text = monitor.text()
        asked = questions(monitor)
        self.plain = monitor.count is None and not monitor.repeat and monitor.idle_for_s is None
        alone = len(asked) == 1 and not monitor.repeat
        self.word = monitor.text_contains.casefold() if alone else ""
        self.over = usable(monitor.cost_gt) if alone else 0.0
        self.tool = monitor.tool_name.casefold() if not monitor.repeat else ""
        self.rest = all_of(asked[1:] if self.tool else asked, empty=is_empty(monitor))

    def match(self) -> Match:
        return Match(self.text, self.registered, self.monitor.node_id)


class Watchlist:
    """The monitors of one supervisor. `tallies` is its memory, plain data."""

    def __init__(
        self,
        seeded: Iterable[Monitor] = (),
        registered: Iterable[Monitor] = (),
        tallies: Tallies | None = None,
    ) -> None:
        self.tallies = Tallies() if tallies is None else tallies
        self._entries: dict[str, _Entry] = {}
        for monitor in seeded:
            entry = _Entry(monitor, registered=False)
            self._entries.setdefault(entry.text, entry)
        self._plans: dict[str, _Plan] = {}
        self.register(registered)

    def texts(self) -> list[str]:
        """All monitors, the declared ones first."""
        return list(self._entries)

    def registered(self) -> list[str]:
        """Those the supervisor asked for itself."""
        return [text for text, entry in self._entries.items() if entry.registered]

    def register(self, monitors: Iterable[Monitor], since: float | None = None) -> list[str]:
        """Add monitors of the supervisor's own; the new ones. A known one stays what it is.

        Silence is counted from `since`; None where nobody is watched now.
        """
        added = []
        for monitor in monitors:
            text = monitor.text()
            if text and text not in self._entries and len(self.registered()) < MOST_REGISTERED:
                self._entries[text] = _Entry(monitor, registered=True)
                added.append(text)
                if since is not None and monitor.idle_for_s is not None:
                    self.tallies.alive[text] = since
        if added:
            self._plans.clear()
        return added

    def may_match(self, kind: str) -> bool:
        """Whether any monitor has to be asked about events of this type."""
        return self._plan(kind).asks

    def may_match_such(self, seen: Observed) -> bool:
        """The same for events of this one's tool, for calls that have come before like it or
        not, and for money between the same two amounts."""
        plan, kind = self._plan(seen.type), seen.type
        if plan.words or plan.others or (plan.tools and kind not in TOOL_TYPES):
            return True
        return bool(
            seen.tool in plan.tools
            or (plan.repeats and seen.repeated > 1)
            or (plan.costs and any((seen.dollars or 0.0) > over for over, _ in plan.costs))
        )

    def amounts(self) -> Iterable[float]:
        """The amounts of money it asks about."""
        return (usable(entry.monitor.cost_gt) for entry in self._entries.values())

    def matches(self, seen: Observed, now: float) -> list[Match]:
        """The monitors this event satisfies, counts and repeats included."""
        plan = self._plans.get(seen.type)
        if plan is None:
            plan = self._plan(seen.type)
        held: list[_Entry] | None = None
        if plan.words:
            folded = seen.folded
            for word, entry in plan.words:
                if word in folded:
                    held = [*(held or ()), entry]
        if plan.tools:
            for entry in plan.tools.get(seen.tool, ()):
                if entry.rest is None or entry.rest(seen):
                    held = [*(held or ()), entry]
        if plan.costs:
            spent = seen.dollars
            if spent is not None:
                held = [*(held or ()), *(e for over, e in plan.costs if spent > over)]
        if plan.repeats and seen.repeated > 1:
            held = [*(held or ()), *(e for e in plan.repeats if e.rest is None or e.rest(seen))]
        for entry in plan.others:
            if entry.rest is None or entry.rest(seen):
                held = [*(held or ()), entry]
        if not held:
            return _NO_MATCH
        return [e.match() for e in held if e.plain or self._counts(e, now, seen.repeated)]

    def holding(self, seen: Observed) -> list[Match]:
        """The monitors that hold of this event alone; nothing is counted."""
        plain = (entry for entry in self._entries.values() if entry.plain)
        return [entry.match() for entry in plain if holds(entry.monitor, seen)]

    def _counts(self, entry: _Entry, now: float, repeated: int) -> bool:
        if entry.monitor.idle_for_s is not None:
            self.tallies.alive[entry.text] = now
            return False
        return self._enough(entry, now, repeated)

    def _enough(self, entry: _Entry, now: float, repeated: int) -> bool:
        monitor = entry.monitor
        if monitor.repeat is not None and (repeated == 0 or repeated % monitor.repeat):
            return False
        if monitor.count is None:
            return True
        times = self.tallies.times.setdefault(entry.text, [])
        times.append(now)
        if monitor.within_s is not None:
            times[:] = [at for at in times if now - at <= monitor.within_s]
        del times[: -monitor.count]
        if len(times) < monitor.count:
            return False
        times.clear()
        return True

    # -- silence --

    def armed(self, now: float) -> None:
        """Silence is counted from here for every monitor that waits for it."""
        for entry in self._waiting():
            self.tallies.alive[entry.text] = now

    def silence_due(self) -> float | None:
        """When the first monitor that waits for silence will have waited long enough."""
        due = [
            self.tallies.alive[e.text] + e.monitor.idle_for_s
            for e in self._waiting()
            if e.text in self.tallies.alive and e.monitor.idle_for_s is not None
        ]
        return min(due, default=None)

    def silent(self, now: float) -> list[Match]:
        """The monitors whose silence has lasted; each says so once, until something happens."""
        found = []
        for entry in self._waiting():
            since, patience = self.tallies.alive.get(entry.text), entry.monitor.idle_for_s
            if since is not None and patience is not None and now >= since + patience:
                del self.tallies.alive[entry.text]
                found.append(entry.match())
        return found

    def _waiting(self) -> Iterator[_Entry]:
        return (e for e in self._entries.values() if e.monitor.idle_for_s is not None)

    def _plan(self, kind: str) -> _Plan:
        found = self._plans.get(kind)
        if found is None:
            entries = [e for e in self._entries.values() if kind_fits(e.monitor, kind)]
            found = self._plans[kind] = _Plan(entries)
        return found


class _Plan:
    """What to ask about events of one type, so that most are asked about in one step."""

    __slots__ = ("asks", "costs", "others", "repeats", "tools", "words")

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self.asks = bool(entries)
        self.words = tuple((e.word, e) for e in entries if e.word)
        self.costs = tuple((e.over, e) for e in entries if e.over)
        self.repeats = tuple(e for e in entries if e.monitor.repeat is not None)
        rest = [e for e in entries if not e.word and not e.over and e not in self.repeats]
        self.tools: dict[str, tuple[_Entry, ...]] = {}
        for entry in rest:
            if entry.tool:
                self.tools[entry.tool] = (*self.tools.get(entry.tool, ()), entry)
        self.others = tuple(e for e in rest if not e.tool)
