"""An escalation as a person reads it: every field, one line each, cut to the screen.

Read next: `operator.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from nightwarden.events.words import visible
from nightwarden.verdict import Action, Escalation

_WIDTH: Final = 200
_MOST_LINES: Final = 20
_EFFECTS: Final[Mapping[Action, str]] = {
    Action.RETRY: "run the step again as it was",
    Action.SUBSTITUTE: "go on with a value you give",
    Action.SKIP: "give it up; the report names it",
    Action.END_STREAM: "skip the rest of this step",
    Action.FAIL: "end the run here",
}


def card(escalation: Escalation) -> Iterator[str]:
    """What failed, and what is known of it."""
    e = escalation
    item = f" [{e.item}]" if str(e.item) else ""
    yield _line(f"⛨ {e.node_id}{item} failed: {e.detail}")
    safe = "safe to repeat" if e.retry_safe else "not known to be safe to repeat"
    yield _field("step", f"{e.node_type}, attempt {e.attempt}, {_retries(e)}, {safe}")
    yield _field("error", e.error_type + (f" ({e.signature})" if e.signature else ""))
    yield _field("so far", _effects(e))
    if e.caused_by:
        yield _field("because of", f"what was decided on {', '.join(e.caused_by)}")
    yield from _table("input", e.inputs)
    if e.has_candidate:
        yield _field("value", _shown(e.candidate_output))
    yield from _table("output", e.declared_outputs)
    yield _field("record", f"{e.id} of run {e.run_id}, {e.at}".rstrip(", "))


def effect_of(action: Action, escalation: Escalation) -> str:
    """What a verb does, in a few words."""
    if action is Action.END_STREAM:
        return f"{_EFFECTS[action]}, keep the {escalation.emitted} it had produced"
    return _EFFECTS[action]


def _retries(escalation: Escalation) -> str:
    left = escalation.retries_left
    return f"{left} {'retry' if left == 1 else 'retries'} left"


def _effects(escalation: Escalation) -> str:
    assets, emitted = escalation.created_assets, escalation.emitted
    return (
        f"spent ${escalation.cost_micro_usd / 1_000_000:.6f}, "
        f"{assets} {'file' if assets == 1 else 'files'} made, "
        f"{emitted} {'item' if emitted == 1 else 'items'} produced"
    )


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    for number, (slot, value) in enumerate(values.items()):
        if number == _MOST_LINES:
            yield _field(name, f"… and {len(values) - _MOST_LINES} more")
            return
        yield _field(name, f"{slot} = {_shown(value)}")


def _shown(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except Exception:  # keys or nesting JSON does not know; a record of other code
        return f"({type(value).__name__}, cannot be shown)"


def _field(name: str, text: str) -> str:
    return _line(f"   {name:<10} {text}")


def _line(text: str) -> str:
    shown = visible(text)
    over = len(shown) - _WIDTH
    return shown if over <= 0 else f"{shown[:_WIDTH]}… ({over:,} more)"
