"""One run's events, looked at once for all its supervisors.

    fact ─▶ Observed ─▶ recent           the last forty, shared
                     └▶ the inboxes of those who have a use for its type

A result that does not say what its tool was given is told by the start of the call, and how
often the same call has come is counted here, where no event is missed.

Read next: `inbox.py`, `coordinator.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from nightwarden.events import Event
from nightwarden.spec.monitors import COST_TYPES, RESULT_TYPES, TOOL_TYPES
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Fact, Observation, Observer, Sink
from nightwarden.steering.repeats import Repeats

RECENT: Final = 40
_MOST_OPEN: Final = 500

_KINDS: Final[dict[type, str]] = {}

Take = Callable[[Observed], None]
Wants = Callable[[Observed], bool]
"""Asked once for all events alike: in type, tool or node, in being a repeat, in the amounts of
money they are over."""

INVOCATIONS: Final = frozenset({"invocation_started", "invocation_succeeded", "invocation_failed"})
ABOUT_ITEMS: Final = INVOCATIONS | {"item_emitted", "node_progress"}
BY_THE_THOUSAND: Final = frozenset(
    {"item_emitted", "invocation_started", "invocation_succeeded", "node_progress"}
)
"""What a run says of every item: among the recent ones it would leave room for nothing else."""


class _Joined(NamedTuple):
    take: Take
    wants: Wants
    ended: Callable[[], None]
    amounts: Callable[[], Iterable[float]]


class Lookout:
    """Takes facts, gives observed events to those who joined. A sink of an observer."""

    def __init__(self) -> None:
        self.recent: deque[Observed] = deque(maxlen=RECENT)
        self._joined: list[_Joined] = []
        self._amounts: list[float] = []
        self._takers: dict[object, tuple[Take, ...]] = {}
        self._unheard: dict[type, set[str]] = {}
        self._open: dict[str, object] = {}
        self._repeats = Repeats()

    def join(
        self,
        take: Take,
        wants: Wants,
        ended: Callable[[], None],
        amounts: Callable[[], Iterable[float]] = tuple,
    ) -> None:
        """Give `take` the events it wants; `ended` when there will be no more."""
        self._joined.append(_Joined(take, wants, ended, amounts))
        self.changed()

    def leave(self, take: Take) -> None:
        """Give it no more."""
        self._joined = [each for each in self._joined if each.take != take]
        self.changed()

    def changed(self) -> None:
        """Somebody wants something else from now on."""
        self._takers.clear()
        self._unheard.clear()
        self._amounts = sorted({amount for each in self._joined for amount in each.amounts()})

    def __call__(self, fact: Fact | None) -> None:
        """Take a fact; None where there will be no more."""
        if fact is None:
            for each in self._joined:
                each.ended()
            return
        made = type(fact)
        if made in self._unheard and fact.node_id in self._unheard[made]:  # type: ignore[union-attr]
            return  # most of what a busy run says ends here
        kind = _KINDS.get(made) or kind_of(fact)
        key: object = kind
        if kind in ABOUT_ITEMS:
            key = (kind, fact.node_id if isinstance(fact, Event) else fact.get("node_id"))
            if self._takers.get(key) == () and kind in BY_THE_THOUSAND:
                if isinstance(fact, Event):
                    self._unheard.setdefault(made, set()).add(fact.node_id)
                return
        seen = self.observe(fact)
        if kind in TOOL_TYPES:
            key = (kind, seen.tool, seen.repeated > 1)
        elif kind in COST_TYPES:
            key = (kind, bisect_left(self._amounts, seen.dollars or 0.0))
        takers = self._takers.get(key)
        if takers is None:
            takers = self._found(key, seen)
        for take in takers:
            take(seen)

    def _found(self, key: object, seen: Observed) -> tuple[Take, ...]:
        found = tuple(each.take for each in self._joined if each.wants(seen))
        if len(self._takers) > _MOST_OPEN:
            self._takers.clear()
        self._takers[key] = found
        return found

    def observe(self, fact: Fact) -> Observed:
        """The fact as supervisors look at it, kept among the recent ones."""
        seen = Observed(fact)
        if seen.type not in BY_THE_THOUSAND:
            self.recent.append(seen)
        if seen.type == "tool_started":
            self._opened(seen)
        elif self._open and seen.type in RESULT_TYPES:
            asked = self._open.pop(str(seen.get("tool_use_id")), None)
            if seen.asked is None:
                seen.asked = asked
        if seen.type in RESULT_TYPES:
            seen.repeated = self._repeats.take(seen)
        return seen

    def _opened(self, seen: Observed) -> None:
        use = seen.get("tool_use_id")
        if isinstance(use, str) and use and seen.asked is not None:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[use] = seen.asked


def kind_of(fact: Fact) -> str:
    """The type of a fact; of events it is looked up once for each class."""
    if isinstance(fact, Event):
        return _KINDS.setdefault(type(fact), str(fact.__struct_config__.tag))
    kind = fact.get("type")
    return kind if isinstance(kind, str) else ""


class Shared:
    """One observation of a run for all its supervisors: an observer, and its own observation.

    Its history has to be one that can be read again.
    """

    def __init__(self, observer: Observer) -> None:
        self.lookout = Lookout()
        self._observer = observer
        self._observation: Observation | None = None
        self._users = 0

    def observe(self, run_id: str, sink: Sink) -> Shared:  # noqa: ARG002  (all share the lookout)
        """Watch, for one more supervisor."""
        if self._observation is None:
            self._observation = self._observer.observe(run_id, self.lookout)
        self._users += 1
        return self

    @property
    def cut(self) -> int:
        """The sequence number at attach."""
        return self._observation.cut if self._observation else 0

    def history(self) -> Iterable[Fact]:
        """What happened before."""
        return self._observation.history() if self._observation else ()

    def release(self) -> None:
        """One supervisor less."""
        self._users -= 1
        if self._users == 0 and self._observation is not None:
            self._observation.release()
