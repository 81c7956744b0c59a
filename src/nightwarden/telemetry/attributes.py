"""What a span says of an event: ids, counts, costs, tokens, times; never a value.

    nightwarden.node.id  nightwarden.lineage (0-based)  nightwarden.item (as people count)
    nightwarden.attempt  nightwarden.cost_usd  gen_ai.… (as OpenTelemetry names what models do)

Read next: `spans.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from nightwarden.events import Event
from nightwarden.lineage import Lineage, show

Place = tuple[str, Lineage, int]
"""Node, lineage, attempt: one invocation."""

Attributes = Mapping[str, Any]
"""As OpenTelemetry takes them: texts, numbers, truth values, and sequences of these."""

MS: Final = 1_000_000
"""A millisecond in nanoseconds."""

_USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "tokens_in": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
}


def named(**values: Any) -> dict[str, Any]:
    """What is set, as attributes of ours: `node__id` is `nightwarden.node.id`."""
    return {
        f"nightwarden.{name.replace('__', '.')}": value
        for name, value in values.items()
        if value not in (None, "", ())
    }


def place_of(event: Event) -> Place:
    """The invocation an event is about."""
    return event.node_id, event.lineage, event.attempt


def where(event: Event, node_type: str) -> dict[str, Any]:
    """Node, item and attempt: the lineage as in the record, the item as people count."""
    return named(
        node__id=event.node_id,
        node__type=node_type,
        lineage=event.lineage,
        item=show(event.lineage),
        attempt=event.attempt or None,
    )


def spent(cost_micro_usd: int, assets: int) -> dict[str, Any]:
    """What an attempt cost and how many files it made, where it did."""
    return named(cost_usd=dollars(cost_micro_usd), assets=assets or None)


def usage(event: Event) -> dict[str, Any]:
    """What a model took in and put out, in tokens, and why it stopped."""
    found: dict[str, Any] = {
        key: int(field(event, name)) for name, key in _USAGE.items() if field(event, name)
    }
    finish = field(event, "finish_reason")
    return {**found, **({"gen_ai.response.finish_reasons": (str(finish),)} if finish else {})}


def field(event: Event, name: str) -> Any:
    """A field that not every event of this type need have; None without it."""
    return getattr(event, name, None)


def dollars(micro: int | None) -> float | None:
    """Micro-dollars in dollars; None for nothing."""
    return micro / 1_000_000 if micro else None


def ns(at: str) -> int:
    """A time of an event in nanoseconds; 0 where it has none."""
    return round(datetime.fromisoformat(at).timestamp() * 1000) * MS if at else 0


def length(seconds: float) -> int:
    """A duration in nanoseconds, as exact as the times of events are."""
    return round(seconds * 1000) * MS
