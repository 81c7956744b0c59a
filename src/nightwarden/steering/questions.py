"""What a monitor asks of one event: its type, its tool, its node, its words, its money.

    tool_name=Bash,text_contains=denied ─▶ [is it Bash?, does it say "denied"?] ─▶ all of them

Counts, repeats and silence are not asked of one event: see `monitors.py`. Texts are compared
without case. Pure.

Read next: `observed.py`. The grammar is `spec/monitors.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from nightwarden.spec.monitors import COST_TYPES, NEVER_MATCHED, RESULT_TYPES, TOOL_TYPES, Monitor
from nightwarden.steering.observed import Observed

Predicate = Callable[[Observed], bool]


def holds(monitor: Monitor, seen: Observed) -> bool:
    """Whether one event satisfies the monitor, counts, repeats and silence left aside."""
    if not kind_fits(monitor, seen.type):
        return False
    asks = all_of(questions(monitor), empty=is_empty(monitor))
    return asks is None or asks(seen)


def kind_fits(monitor: Monitor, kind: str) -> bool:
    """Whether events of a type can satisfy the monitor at all."""
    if kind.startswith(NEVER_MATCHED):
        return False
    if monitor.event_type and monitor.event_type != kind:
        return False
    if monitor.cost_gt is not None and kind not in COST_TYPES:
        return False
    if monitor.repeat is not None and kind not in RESULT_TYPES:
        return False
    return not monitor.tool_name or kind in TOOL_TYPES or monitor.event_type == kind


def questions(monitor: Monitor) -> list[Predicate]:
    """One question a field, the tool first."""
    asked: list[Predicate] = []
    if monitor.tool_name:
        tool = monitor.tool_name.casefold()
        asked.append(lambda seen: seen.tool == tool)
    if monitor.node_id:
        node = monitor.node_id
        asked.append(lambda seen: seen.node_id == node)
    if monitor.text_contains:
        word = monitor.text_contains.casefold()
        asked.append(lambda seen: word in seen.folded)
    if monitor.matches:
        pattern = re.compile(monitor.matches, re.IGNORECASE)
        asked.append(lambda seen: seen.has(pattern))
    if monitor.cost_gt is not None:
        asked.append(_over(monitor.cost_gt))
    return asked


def is_empty(monitor: Monitor) -> bool:
    """Whether there is nothing to hold: such a monitor never matches."""
    asks = monitor.event_type or monitor.repeat or monitor.idle_for_s or questions(monitor)
    return not asks


def usable(threshold: float | None) -> float:
    """The amount money has to be over; 0 for one nothing can be over."""
    return threshold if threshold is not None and 0 < threshold < float("inf") else 0.0


def _over(threshold: float) -> Predicate:
    amount = usable(threshold)

    def over(seen: Observed) -> bool:
        spent = seen.dollars
        return bool(amount) and spent is not None and spent > amount

    return over


def all_of(asked: Sequence[Predicate], *, empty: bool) -> Predicate | None:
    """All of them as one; None where there is nothing to ask."""
    if empty:
        return lambda _seen: False
    if len(asked) < 2:
        return asked[0] if asked else None
    return lambda seen: all(ask(seen) for ask in asked)
