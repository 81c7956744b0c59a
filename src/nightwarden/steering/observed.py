"""An event as supervisors look at it: made once, shared by all that watch the run.

    fact ─Lookout─▶ Observed ─▶ the supervisors that have a use for its type

What costs something (the line of text, which call it was, whether it may have changed anything)
is worked out when it is first asked for, and kept.

Read next: `monitors.py`, `lookout.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from nightwarden.events import Event
from nightwarden.events.plain import plain
from nightwarden.events.render import render
from nightwarden.spec.monitors import COST_TYPES

WHOLE: Final = 20_000
"""Characters of an event monitors look at."""
SHOWN: Final = 2_000
"""Characters of an event a supervisor is shown."""

_DOLLARS: Final = ("cost_usd", "usd", "cost", "dollars")
_UNKNOWN: Final = float("nan")
_PASSING: Final = ("seq", "at", "v")


class Observed:
    """One event. `branch` is where in the run it happened: a node, or a node for one item.

    `asked` is what a tool was given, also where only the start of the call tells it. `repeated`
    is how often this call has had this outcome; 0 where nobody counts.
    """

    __slots__ = (
        "_branch",
        "_dollars",
        "_evidence",
        "_folded",
        "_found",
        "_line",
        "_tool",
        "asked",
        "event",
        "node_id",
        "repeated",
        "seq",
        "type",
    )

    def __init__(self, event: Event | Mapping[str, Any]) -> None:
        self.event = event
        self._line: str | None = None
        self._folded: str | None = None
        self._tool: str | None = None
        self._branch: str | None = None
        self._evidence: str | None = None
        self._dollars: float | None = _UNKNOWN
        self._found: dict[re.Pattern[str], bool] | None = None
        self.repeated = 0
        if isinstance(event, Event):
            self.type: str = event.__struct_config__.tag  # type: ignore[assignment]
            self.seq = event.seq
            self.node_id = event.node_id
            self.asked: Any = getattr(event, "input", None)
        else:
            kind, seq, node = event.get("type"), event.get("seq"), event.get("node_id")
            self.type = kind if isinstance(kind, str) else ""
            self.seq = seq if isinstance(seq, int) else 0
            self.node_id = node if isinstance(node, str) else ""
            self.asked = event.get("input")

    def get(self, name: str) -> Any:
        """A field of the event; None where it has none."""
        if isinstance(self.event, Event):
            return getattr(self.event, name, None)
        return self.event.get(name)

    @property
    def branch(self) -> str:
        """The node, and the item of it."""
        if self._branch is None:
            lineage = self.get("lineage")
            self._branch = f"{self.node_id}{list(lineage)}" if lineage else self.node_id
        return self._branch

    @property
    def named_branch(self) -> str:
        """The branch where the event itself names one: its events replace each other."""
        for name in ("branch", "branch_id"):
            found = self.get(name)
            if isinstance(found, str) and found:
                return found
        return ""

    @property
    def at(self) -> str:
        """When it happened, as the event says."""
        found = self.get("at")
        return found if isinstance(found, str) else ""

    @property
    def line(self) -> str:
        """The event in one line, as long as monitors look at it."""
        if self._line is None:
            self._line = render(self.event, WHOLE)
        return self._line

    @property
    def folded(self) -> str:
        """The line without regard to case."""
        if self._folded is None:
            self._folded = self.line.casefold()
        return self._folded

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether the line has this in it; looked for once, however many ask."""
        if self._found is None:
            self._found = {}
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = pattern.search(self.line) is not None
        return found

    @property
    def shown(self) -> str:
        """The line as a supervisor is shown it, with its number."""
        line = self.line
        return f"#{self.seq} {line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}"

    @property
    def tool(self) -> str:
        """The tool of a tool event, without regard to case; empty where none is named."""
        if self._tool is None:
            names = (self.get("tool"), self.get("tool_name"))
            self._tool = next((n.casefold() for n in names if isinstance(n, str) and n), "")
        return self._tool

    @property
    def dollars(self) -> float | None:
        """What has been spent, where the event tells it in dollars."""
        if self._dollars is _UNKNOWN:
            self._dollars = self._spent()
        return self._dollars

    def _spent(self) -> float | None:
        if self.type not in COST_TYPES:
            return None
        dimension = self.get("dimension")
        if dimension and str(dimension).casefold() not in _DOLLARS:
            return None
        for name in ("used", "used_usd", "cost_usd"):
            found = self.get(name)
            if isinstance(found, (int, float)) and not isinstance(found, bool):
                return float(found)
        micro = self.get("cost_micro_usd")
        return micro / 1_000_000 if isinstance(micro, int) and micro else None

    def identity(self) -> str:
        """Equal for one event that comes twice, whatever number it comes under.

        Empty where the event does not say when it was: then nothing tells it from another.
        """
        return f"{self.at} {self.evidence()}" if self.at else ""

    def evidence(self) -> str:
        """Equal for events that say the same, whenever they say it."""
        if self._evidence is None:
            self._evidence = _digest(self._content(_PASSING))
        return self._evidence

    def _content(self, without: tuple[str, ...]) -> object:
        found = plain(self.event)
        assert isinstance(found, dict)
        return sorted((k, v) for k, v in found.items() if k not in without)


def _digest(content: object) -> str:
    return hashlib.blake2b(repr(content).encode("utf-8", "replace"), digest_size=8).hexdigest()
