"""Monitors as they are written: which events wake a steering supervisor.

    event_type=tool_error,tool_name=Bash               every failing Bash call
    event_type=assistant_text,text_contains=impossible the agent's own words
    event_type=tool_error,count=3,within=5m            three of them within five minutes
    repeat=3            the same call with the same outcome, nothing changed in between
    idle_for=10m        silence                        cost_gt=8     more than eight dollars

All that is set must hold. Segments are split at commas, each at its first `=`, so that a value
may hold `=` but no comma. One grammar for the workflow file, the command line and the
supervisor's own wishes; matching is `steering/monitors.py`.

Read next: `supervisors.py`, `patterns.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from nightwarden.spec.durations import duration_s, duration_text
from nightwarden.spec.findings import nearest, suggestion
from nightwarden.spec.patterns import is_runaway

EVENT_TYPES: Final = frozenset(
    {
        "run_started",
        "run_resumed",
        "run_paused",
        "run_stopping",
        "run_completed",
        "run_failed",
        "run_cancelled",
        "run_suspended",
        "node_started",
        "node_progress",
        "node_finished",
        "log",
        "record_rejected",
        "window_widened",
        "invocation_started",
        "invocation_succeeded",
        "invocation_failed",
        "invocation_pruned",
        "invocation_spent",
        "invocation_suspended",
        "item_emitted",
        "input_pushed",
        "input_closed",
        "asset_written",
        "control_sent",
        "stream_closed",
        "supervisor_escalation",
        "supervisor_deciding",
        "supervisor_decision",
        "supervisor_outcome",
        "budget_reserved",
        "budget_committed",
        "llm_step_finished",
        "assistant_text",
        "tool_started",
        "tool_called",
        "tool_error",
        "usage_progress",
        "budget_warning",
        "budget_exceeded",
        "user_prompt",
        "session_stopped",
        "session_ended",
    }
)
"""The types of events.md, and what a Claude Code session says besides."""

NEVER_MATCHED: Final = ("user_message_", "steering_")
"""What supervisors do themselves: an intervention must not wake its author."""

COST_TYPES: Final = frozenset({"budget_warning", "usage_progress"})
TOOL_TYPES: Final = frozenset({"tool_started", "tool_called", "tool_error"})
RESULT_TYPES: Final = frozenset({"tool_called", "tool_error"})

LONGEST: Final = 500
"""Characters a monitor may have."""


class BadMonitor(ValueError):
    """A monitor that cannot be used; `remedy` says what to write."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(message)


class Monitor(msgspec.Struct, frozen=True, kw_only=True):
    """One pattern. Empty texts and None are wildcards; `within_s` and `idle_for_s` in seconds."""

    event_type: str = ""
    node_id: str = ""
    tool_name: str = ""
    text_contains: str = ""
    matches: str = ""
    cost_gt: float | None = None
    count: int | None = None
    within_s: float | None = None
    repeat: int | None = None
    idle_for_s: float | None = None

    def text(self) -> str:
        """The monitor as it is written, keys in their order: two that are equal read equally."""
        found = ((key, _written(self, key)) for key in KEYS)
        return ",".join(f"{key}={value}" for key, value in found if value)

    def remarks(self) -> tuple[str, ...]:
        """What its author should know although it can be used."""
        return tuple(_remarks(self))


def parse_monitor(written: object) -> Monitor:
    """A monitor from its text, or from a mapping of its keys. Raises `BadMonitor`."""
    if isinstance(written, Monitor):
        return written
    if isinstance(written, str):
        return _checked(_segments(written))
    if isinstance(written, Mapping):
        pairs = [(str(k), v) for k, v in written.items() if v is not None and v != ""]
        return _checked(pairs)
    raise BadMonitor(f"a monitor is text, not {type(written).__name__}", _EXAMPLE)


_EXAMPLE: Final = "as in event_type=tool_error,tool_name=Bash"


def _segments(text: str) -> list[tuple[str, object]]:
    if len(text) > LONGEST:
        raise BadMonitor(f"it has {len(text)} characters, at most {LONGEST} are read")
    pairs: list[tuple[str, object]] = []
    for segment in text.split(","):
        if not segment.strip():
            continue
        key, sign, value = segment.partition("=")
        if not sign:
            raise BadMonitor(f"{segment.strip()!r} has no '='", _no_sign(key.strip()))
        if not value.strip():
            raise BadMonitor(f"{key.strip()} has no value", _EXAMPLE)
        pairs.append((key.strip(), value.strip()))
    return pairs


def _no_sign(word: str) -> str:
    return f"write {word}=…" if word in KEYS else "a value cannot hold a comma: write two monitors"


def _checked(pairs: Sequence[tuple[str, object]]) -> Monitor:
    fields: dict[str, object] = {}
    for key, value in pairs:
        if key not in KEYS:
            raise BadMonitor(f"there is no key {key!r}", suggestion(key, KEYS, what="keys"))
        field, read = KEYS[key]
        if field in fields:
            raise BadMonitor(f"{key} is there twice", "write two monitors")
        try:
            fields[field] = read(value)
        except ValueError as error:
            raise BadMonitor(f"{key} is {value!r}, but has to be {error}") from error
    if not fields:
        raise BadMonitor("it is empty, and an empty monitor never matches", _EXAMPLE)
    monitor = Monitor(**fields)  # type: ignore[arg-type]
    _must_make_sense(monitor)
    return monitor


def _must_make_sense(monitor: Monitor) -> None:
    selective = any(
        (monitor.event_type, monitor.node_id, monitor.tool_name, monitor.text_contains)
    ) or bool(monitor.matches or monitor.cost_gt is not None or monitor.repeat)
    if monitor.within_s is not None and monitor.count is None:
        raise BadMonitor("within needs a count", "as in count=3,within=5m")
    if monitor.count is not None and not selective:
        raise BadMonitor("count needs something to count", "as in event_type=tool_error,count=3")
    if monitor.idle_for_s is not None and (monitor.count or monitor.repeat or monitor.cost_gt):
        raise BadMonitor("idle_for waits for silence, in which nothing can be counted")
    if monitor.event_type.startswith(NEVER_MATCHED):
        raise BadMonitor(
            f"{monitor.event_type} never matches: supervisors do not wake themselves",
            "watch what the agent does about it",
        )
    _must_fit(monitor)


def _must_fit(monitor: Monitor) -> None:
    """Refuse keys no event of the pinned type can satisfy."""
    kind = monitor.event_type
    if not kind:
        return
    needs = (
        ("cost_gt", monitor.cost_gt, COST_TYPES),
        ("tool_name", monitor.tool_name, TOOL_TYPES),
        ("repeat", monitor.repeat, RESULT_TYPES),
    )
    for key, value, types in needs:
        if value and kind in EVENT_TYPES and kind not in types:
            raise BadMonitor(
                f"no {kind} has a {key}", f"{key} goes with {', '.join(sorted(types))}"
            )


def _remarks(monitor: Monitor) -> list[str]:
    found: list[str] = []
    kind = monitor.event_type
    if kind and kind not in EVENT_TYPES:
        near = nearest(kind, EVENT_TYPES)
        found.append(f"no event has type {kind!r}" + (f"; did you mean {near!r}?" if near else ""))
    if (monitor.text_contains or monitor.matches) and not kind:
        found.append(
            "text without an event_type is looked for in everything, tool output included; "
            "pin it, as in event_type=assistant_text"
        )
    return found


# -- what each key takes --


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text")
    return value.strip()


def _pattern(value: object) -> str:
    text = _text(value)
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression: {error}") from error
    if is_runaway(text):
        raise ValueError("without a repetition inside a repetition, which can take for ever")
    return text


def _dollars(value: object) -> float:
    number = _number(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError("an amount of dollars above 0")
    return number


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("a number")  # noqa: TRY004  (one kind of error for all that does not fit)
    try:
        return float(value)
    except ValueError as error:
        raise ValueError("a number") from error


def _at_least(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = _number(value)
        if not math.isfinite(number) or number != int(number) or not least <= number <= 10_000:
            raise ValueError(f"a whole number from {least} to 10000")
        return int(number)

    return read


def _duration(value: object) -> float:
    found = duration_s(value)
    if found is None or found <= 0:
        raise ValueError("a duration above 0, as in 90s, 5m or 1h")
    return found


KEYS: Final[Mapping[str, tuple[str, Callable[[object], object]]]] = {
    "event_type": ("event_type", _text),
    "node_id": ("node_id", _text),
    "tool_name": ("tool_name", _text),
    "text_contains": ("text_contains", _text),
    "matches": ("matches", _pattern),
    "cost_gt": ("cost_gt", _dollars),
    "count": ("count", _at_least(1)),
    "within": ("within_s", _duration),
    "repeat": ("repeat", _at_least(2)),
    "idle_for": ("idle_for_s", _duration),
}


def _written(monitor: Monitor, key: str) -> str:
    value = getattr(monitor, KEYS[key][0])
    if value is None or value == "":
        return ""
    if key in ("within", "idle_for"):
        return duration_text(value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)
