"""An intervention, put together from its events, and the one line that tells of it.

    ⛨ fetch [148/200 https://…/p/147] timeout after 10 s → retry (1/2) in 2 s (slow) → ok

Three events make one: escalation, decision, outcome. The line is written when the outcome is
known, from the outcome: what was meant but did not happen is not told as if it had.

Read next: `render.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nightwarden.events.words import WIDTH, cut, item_text, list_of, mapping_of, place, text

SHIELD: Final = "⛨"
VERBS: Final[Mapping[str, str]] = {
    "retry": "retry",
    "substitute": "repair",
    "skip": "skip",
    "end_stream": "skipped the rest of this step",
    "fail": "stop",
}
"""What people call the actions."""

_BECAME: Final[Mapping[str, str]] = {
    "retried_succeeded": "ok",
    "retried_failed_again": "failed again",
    "retry_never_ran": "never ran",
    "repair_accepted": "ok",
    "never_ran": "never ran",
}
OUTCOMES: Final[Mapping[str, str]] = {
    "retried_succeeded": "retried, succeeded",
    "retried_failed_again": "retried, failed again",
    "retry_never_ran": "the retry never ran",
    "repair_accepted": "repaired",
    "skipped": "skipped",
    "ended_early": "ended early",
    "stopped": "the run stopped",
    "never_ran": "never ran",
}
"""What became of a decision, in words."""

_UNNAMED: Final = ("agent", "sticky", "")
_REASON: Final = 60
_LEAST_DETAIL: Final = 24


@dataclass(slots=True)
class Intervention:
    """One failure, what was decided and what became of it; empty mappings where not yet known."""

    escalation: Mapping[str, Any]
    decision: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The escalation's id."""
        return str(self.escalation.get("id", ""))

    @property
    def action(self) -> str:
        """The verdict that was applied: `retry`, `substitute` …, or empty."""
        return str(mapping_of(self.decision.get("verdict")).get("action", ""))

    @property
    def decided_by(self) -> str:
        """Who is credited."""
        return str(self.decision.get("decided_by", ""))

    @property
    def place(self) -> str:
        """Where it happened."""
        lineage = list_of(self.escalation.get("lineage"))
        item = item_text(self.escalation.get("item"), lineage)
        return text(place(str(self.escalation.get("node_id", "")), item))

    @property
    def became(self) -> str:
        """The kind of the outcome, or empty."""
        return str(self.outcome.get("kind", ""))


class Interventions:
    """Takes events in order and puts interventions together; `all` holds them by id."""

    def __init__(self) -> None:
        self.all: dict[str, Intervention] = {}

    def take(self, event: Mapping[str, Any]) -> Intervention | None:
        """The intervention this event closes, None for every other event."""
        match event.get("type"):
            case "supervisor_escalation":
                opened = Intervention(mapping_of(event.get("escalation")))
                self.all[opened.id] = opened
            case "supervisor_decision":
                found = self._find(event)
                found.decision = mapping_of(event.get("decision"))
            case "supervisor_outcome":
                found = self._find(event)
                found.outcome = mapping_of(event.get("outcome"))
                return found
        return None

    def _find(self, event: Mapping[str, Any]) -> Intervention:
        key = str(event.get("escalation_id", ""))
        unknown = {"id": key, "node_id": event.get("node_id"), "lineage": event.get("lineage")}
        return self.all.setdefault(key, Intervention(unknown))


def intervention_line(found: Intervention) -> str:
    """The ⛨ line. Where it would be too long the detail is cut, never what became of it."""
    verdict = verdict_text(found, reason_width=_REASON)
    became = _BECAME.get(found.became, "")
    if found.became == "ended_early" and found.action != "end_stream":
        became = "ended early"
    head, tail = (
        f"{SHIELD} {found.place}",
        "".join(f" → {part}" for part in (verdict, became) if part),
    )
    room = max(WIDTH - len(head) - len(tail) - 1, _LEAST_DETAIL)
    return cut(f"{head} {cut(_detail(found), room)}".rstrip() + tail, WIDTH)


def _detail(found: Intervention) -> str:
    """What went wrong, without the item's name: that stands in front of it already."""
    detail = text(found.escalation.get("detail"))
    label = text(mapping_of(found.escalation.get("item")).get("label"))
    if not label:
        return detail
    if detail.startswith(f"{label} "):
        return detail.removeprefix(f"{label} ").removeprefix("is ")
    return detail.replace(f" for {label}", "", 1)


def verb(action: object) -> str:
    """What people call an action where it is offered."""
    return "end stream" if action == "end_stream" else VERBS.get(str(action), text(action))


def verdict_text(found: Intervention, *, reason_width: int = 1_000) -> str:
    """What was decided and why: `skip (login page) · applies to parse:no-main`."""
    if not found.action:
        return "not decided"
    said = VERBS.get(found.action, text(found.action)) + _details(found)
    reason = cut(text(_reason(found)), reason_width)
    said += f" ({reason})" if reason else ""
    return said + "".join(f" · {note}" for note in _notes(found))


def _reason(found: Intervention) -> object:
    """Why it was decided so: of a refused answer, why it was refused, not why it was given."""
    refusal = mapping_of(found.decision.get("verdict")).get("reason")
    if found.decision.get("asked_for") and found.decided_by in ("kernel", "bounds") and refusal:
        return refusal
    return found.decision.get("rationale")


def _details(found: Intervention) -> str:
    if found.action == "end_stream":
        kept = found.outcome.get("kept")
        kept = found.escalation.get("emitted", 0) if kept is None else kept
        return f", kept the {kept} it had produced"
    if found.action != "retry":
        return ""
    attempt, left = found.escalation.get("attempt"), found.escalation.get("retries_left")
    numbers = ""
    if isinstance(attempt, int) and isinstance(left, int):
        numbers = f" ({attempt}/{attempt - 1 + left})"
    delay = found.decision.get("delay_s")
    wait = f" in {delay:.2g} s" if isinstance(delay, (int, float)) and delay >= 0.05 else ""
    return numbers + wait


def _notes(found: Intervention) -> list[str]:
    decision, signature = found.decision, text(found.escalation.get("signature"))
    notes = []
    if found.decided_by == "sticky":
        notes.append(f"as for all {signature}")
    elif mapping_of(decision.get("verdict")).get("apply_to") == "signature" and signature:
        notes.append(f"applies to {signature}")
    asked = mapping_of(decision.get("asked_for")).get("action")
    if asked and found.decided_by != "default":
        notes.append(f"asked for {verb(asked)}")
    if found.decided_by not in _UNNAMED:
        notes.append(f"by {text(found.decided_by)}")
    return notes
