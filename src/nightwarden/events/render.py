"""One line of text for any event: what the command line, prompts and monitors share.

    page [57] failed: timeout after 2 s (StepTimeout)

Takes events as objects and as the plain mappings of a record; a type it does not know still
gets a line. The ⛨ line of an intervention needs all three of its events: see
`interventions.py`.

Read next: `words.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from nightwarden.events.agent_lines import AGENT_LINES
from nightwarden.events.base import Event
from nightwarden.events.budget_lines import BUDGET_LINES
from nightwarden.events.interventions import OUTCOMES, SHIELD, verb
from nightwarden.events.steering_lines import STEERING_LINES
from nightwarden.events.words import (
    WIDTH,
    count,
    cut,
    dollars,
    item_text,
    items_text,
    list_of,
    mapping_of,
    place,
    seconds,
    text,
)
from nightwarden.lineage import show

Plain = Mapping[str, Any]


def render(event: Event | Plain, width: int = WIDTH) -> str:
    """The event in one line, at most `width` characters, harmless on any terminal."""
    plain = as_mapping(event)
    line = _LINES.get(str(plain.get("type")), _other)(plain)
    return cut(text(line), width)


def as_mapping(event: Event | Plain) -> Plain:
    """The event as a plain mapping; values a step put out stay the objects they are."""
    if not isinstance(event, Event):
        return event
    tag = event.__struct_config__.tag
    fields = {name: _plain(getattr(event, name)) for name in event.__struct_fields__}
    return {"type": tag, **fields}


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, enc_hook=_type_name)
    return value


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


# -- one function a type --


def _where(event: Plain, item: object = None) -> str:
    shown = str(item) if item else show(tuple(list_of(event.get("lineage"))))
    return place(str(event.get("node_id", "")), shown)


def _run_started(event: Plain) -> str:
    supervisor = event.get("supervisor")
    how = f"supervised: {supervisor}" if supervisor else "unsupervised"
    return f"run {event.get('run_id')} of {event.get('workflow')} started, {how}"


def _run_resumed(event: Plain) -> str:
    supervisor = event.get("supervisor")
    redo, retry = len(list_of(event.get("redo"))), len(list_of(event.get("retry")))
    again = f", {count(redo, 'step')} done again" if redo else ""
    risked = f", {count(retry, 'step')} retried at its user's risk" if retry else ""
    how = f"supervised: {supervisor}" if supervisor else "unsupervised"
    return f"the run goes on, {how}{again}{risked}"


def _run_stopping(event: Plain) -> str:
    reason = event.get("reason")
    return f"the run is stopping ({event.get('status')})" + (f": {reason}" if reason else "")


def _run_ended(event: Plain) -> str:
    status = str(event.get("type", "")).removeprefix("run_")
    reason = f": {event['reason']}" if event.get("reason") else ""
    headline = mapping_of(event.get("ledger")).get("headline")
    return f"── {headline or status + reason}"


def _log(event: Plain) -> str:
    level = "" if event.get("level") == "info" else f"{event.get('level')}: "
    said = f"{_where(event)} {level}{event.get('message')}"
    return said.removeprefix(" ")  # the run itself says something


def _progress(event: Plain) -> str:
    total = event.get("total")
    return f"{_where(event)} {event.get('done')}" + ("" if total is None else f" of {total}")


def _rejected(event: Plain) -> str:
    line, raw = event.get("line"), cut(text(event.get("raw")), 60)
    return f"{_where(event)} rejected line {line}: {event.get('reason')}: {raw}"


def _started(event: Plain) -> str:
    attempt = event.get("attempt", 0)
    return f"{_where(event)} started" + (f", attempt {attempt}" if attempt > 1 else "")


def _succeeded(event: Plain) -> str:
    cost = event.get("cost_micro_usd")
    spent = f", {dollars(cost)}" if cost else ""
    return f"{_where(event)} succeeded in {seconds(event.get('duration_s'))}{spent}"


def _failed(event: Plain) -> str:
    where = _where(event, event.get("item"))
    return f"{where} failed: {event.get('detail')} ({event.get('error_type')})"


def _asset(event: Plain) -> str:
    asset = mapping_of(event.get("asset"))
    return str(asset.get("name") or asset.get("path") or "a file")


def _pruned(event: Plain) -> str:
    items = items_text(list_of(event.get("lineages")))
    by = event.get("by")
    where = place(str(event.get("node_id", "")), items)
    return f"{where} will not run" + (f": {by}" if by else "")


def _stream_closed(event: Plain) -> str:
    ended = {"early": ", early", "cut": ", cut short", "absent": ", never opened"}
    how = ended.get(str(event.get("mark")), "")
    return f"{_where(event)} ended after {count(event.get('emitted', 0), 'item')}{how}"


def _escalation(event: Plain) -> str:
    escalation = mapping_of(event.get("escalation"))
    where = place(
        str(escalation.get("node_id", "")),
        item_text(escalation.get("item"), list_of(escalation.get("lineage"))),
    )
    actions = list_of(escalation.get("allowed_actions"))
    offered = ", ".join(verb(action) for action in actions)
    return f"{SHIELD} {where} failed: {escalation.get('detail')} — {offered}?"


def _decision(event: Plain) -> str:
    decision = mapping_of(event.get("decision"))
    action = mapping_of(decision.get("verdict")).get("action", "")
    reason = decision.get("rationale")
    why = f": {reason}" if reason else ""
    return f"{SHIELD} {_where(event)} {decision.get('decided_by')} says {verb(action)}{why}"


def _outcome(event: Plain) -> str:
    outcome = mapping_of(event.get("outcome"))
    kind = str(outcome.get("kind", ""))
    kept = outcome.get("kept")
    tail = "" if kept is None else f", kept {kept}"
    return f"{SHIELD} {_where(event)} {OUTCOMES.get(kind, kind)}{tail}"


def _other(event: Plain) -> str:
    return f"{event.get('type') or 'event'} {_where(event)}".strip()


_LINES: Final[Mapping[str, Callable[[Plain], str]]] = {
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "run_stopping": _run_stopping,
    "run_completed": _run_ended,
    "run_failed": _run_ended,
    "run_cancelled": _run_ended,
    "run_suspended": _run_ended,
    "node_started": lambda e: f"{_where(e)} started",
    "node_progress": _progress,
    "node_finished": lambda e: f"{_where(e)} finished",
    "log": _log,
    "record_rejected": _rejected,
    "window_widened": lambda e: (
        f"{_where(e)} may now be {e.get('window')} items ahead: everything waited for it"
    ),
    "invocation_started": _started,
    "invocation_succeeded": _succeeded,
    "invocation_failed": _failed,
    "input_pushed": lambda e: f"an item came in: {', '.join(mapping_of(e.get('inputs')))}",
    "input_closed": lambda e: f"input {e.get('name')} is complete",
    "invocation_suspended": lambda e: f"{_where(e)} asks for a pause: {e.get('reason')}",
    "invocation_spent": lambda e: f"{_where(e)} spent {dollars(e.get('cost_micro_usd'))}",
    "asset_written": lambda e: f"{_where(e)} writes {_asset(e)}",
    "control_sent": lambda e: f"{_where(e)} sent an event to {e.get('target')}",
    "invocation_pruned": _pruned,
    "item_emitted": lambda e: f"{_where(e)} put out an item",
    "stream_closed": _stream_closed,
    "supervisor_escalation": _escalation,
    "supervisor_deciding": lambda e: f"{SHIELD} {_where(e)} being decided",
    "supervisor_decision": _decision,
    "supervisor_outcome": _outcome,
    **AGENT_LINES,
    **BUDGET_LINES,
    **STEERING_LINES,
}
