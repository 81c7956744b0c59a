"""What a model would have decided about the failures that a recorded run stopped at.

    events of a record ─▶ failures ─▶ one question each ─▶ "would have", beside the record

Nothing is changed: no step runs, nothing is written to the record, and an answer is only told.
Failures that were escalated are asked about as they were; of those of an unsupervised run only
what is on record is known, and only the verbs that are certain are offered: a retry where the
step's code is known to be safe to run again, no repair, for the broken value is gone.

Read next: `adjudicator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nightwarden.events.words import dollars, place
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.kernel.allowed import Shape, allowed_actions
from nightwarden.runtime.bounded import bounded
from nightwarden.runtime.bus import utc_now
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.runtime.supervisors.verbs import WORDS
from nightwarden.spec.catalog import NodeType
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, Item, action_of

MOST: Final = 5
"""Failures that are asked about, at most."""

TypeOf = Callable[[str], NodeType | None]
"""The node type of that name, where its code is at hand."""


@dataclass(frozen=True, slots=True)
class Would:
    """One failure, and what would have been decided."""

    escalation: Escalation
    decision: Decision


async def what_if(
    failures: Sequence[Escalation], supervisor: Supervisor, bounds: Bounds
) -> list[Would]:
    """Ask about each failure, one after the other, as a run with these bounds would have.

    The supervisor is closed in the end.
    """
    within = bounded(supervisor, bounds, stamp=utc_now)
    found = []
    try:
        for escalation in failures:  # without a run to look into: the escalation has to do
            found.append(Would(escalation, await within.decide(escalation)))
    finally:
        await within.aclose()
    return found


def failures_of(
    events: Iterable[Mapping[str, Any]], type_of: TypeOf, *, most: int = MOST
) -> list[Escalation]:
    """The failures that stopped a run, as a supervisor would be shown them; the first few."""
    record = _Record()
    for event in events:
        record.take(event)
    return record.failures(type_of)[:most]


def would_text(found: Sequence[Would]) -> str:
    """The answers for people, each marked as what it is."""
    if not found:
        return "What if: no failure in this record was left to stop the run.\n"
    lines = ["What if a model had been asked (nothing of this happened)"]
    for would in found:
        e, d = would.escalation, would.decision
        by = "bounds" if d.decided_by is DecidedBy.BOUNDS else d.model
        asked = f"{by}, {dollars(d.cost_micro_usd)}"
        lines.append(f"  {place(e.node_id, str(e.item))} {e.detail}")
        lines.append(f"    would have: {WORDS[action_of(d.verdict)]} ({d.rationale}) — by {asked}")
    return "\n".join(lines) + "\n"


def would_json(found: Sequence[Would]) -> list[dict[str, object]]:
    """The answers as plain data, each marked as what it is."""
    return [
        {
            "node_id": would.escalation.node_id,
            "item": str(would.escalation.item),
            "detail": would.escalation.detail,
            "allowed": [str(action) for action in would.escalation.allowed_actions],
            "would_have": str(action_of(would.decision.verdict)),
            "verdict": msgspec.to_builtins(would.decision.verdict),
            "decided_by": str(would.decision.decided_by),
            "rationale": would.decision.rationale,
            "model": would.decision.model,
            "cost_usd": round(would.decision.cost_micro_usd / 1_000_000, 6),
        }
        for would in found
    ]


class _Record:
    """What is needed of a record."""

    def __init__(self) -> None:
        self._run_id = ""
        self._types: dict[str, str] = {}
        self._escalations: dict[str, Escalation] = {}
        self._stopped: set[str] = set()
        self._broken: dict[tuple[str, tuple[int, ...]], Mapping[str, Any]] = {}
        self._emitted: dict[tuple[str, tuple[int, ...]], int] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        key = (str(event.get("node_id", "")), tuple(event.get("lineage") or ()))
        match event.get("type"):
            case "run_started":
                self._run_id = str(event.get("run_id", ""))
                nodes = event.get("definition", {}).get("nodes", ())
                self._types = {node["id"]: node["type"] for node in nodes}
            case "supervisor_escalation":
                escalation = msgspec.convert(event["escalation"], Escalation)
                self._escalations[escalation.id] = escalation
            case "supervisor_decision":
                decision = msgspec.convert(event["decision"], Decision)
                if isinstance(decision.verdict, Fail):
                    self._stopped.add(str(event.get("escalation_id")))
                else:
                    self._stopped.discard(str(event.get("escalation_id")))
            case "item_emitted":
                self._emitted[key] = self._emitted.get(key, 0) + 1
            case "invocation_failed":
                self._broken[key] = event
            case "invocation_succeeded":
                self._broken.pop(key, None)

    def failures(self, type_of: TypeOf) -> list[Escalation]:
        """Escalated ones that were answered with *fail*, else those nobody was asked about."""
        asked = [e for e in self._escalations.values() if e.id in self._stopped]
        if self._escalations:
            return asked
        return [
            self._escalation(number, event, type_of)
            for number, event in enumerate(self._broken.values(), start=1)
        ]

    def _escalation(self, number: int, event: Mapping[str, Any], type_of: TypeOf) -> Escalation:
        node_id, lineage = str(event["node_id"]), tuple(event.get("lineage") or ())
        emitted = self._emitted.get((node_id, lineage), 0)
        kind = type_of(self._types.get(node_id, ""))
        retry = _may_retry(event, kind)
        count, _, label = str(event.get("item", "")).partition(" ")
        return Escalation(
            id=EscalationId(f"e{number}"),
            run_id=RunId(self._run_id),
            node_id=NodeId(node_id),
            node_type=self._types.get(node_id, ""),
            lineage=lineage,
            item=Item(number=count, label=label),
            attempt=int(event.get("attempt", 1)),
            retries_left=Bounds().max_retries if retry else 0,
            allowed_actions=allowed_actions(
                _shape(event, kind, emitted), retry=retry, has_candidate=False, checkable=False
            ),
            detail=str(event.get("detail", "")),
            error_type=str(event.get("error_type", "")),
            signature=event.get("signature"),
            cost_micro_usd=int(event.get("cost_micro_usd", 0)),
            created_assets=int(event.get("assets", 0)),
            retry_safe=kind is not None and kind.retry_safe,
            retry_refused="" if kind is not None else "the step's code was not at hand",
            emitted=emitted,
            at=str(event.get("at", "")),
        )


def _shape(event: Mapping[str, Any], kind: NodeType | None, emitted: int) -> Shape:
    if event.get("facts", {}).get("bad_input"):
        return Shape.BAD_INPUT
    if kind is not None and kind.reads:
        return Shape.READER
    return Shape.FANOUT_EMITTED if emitted else Shape.PLAIN


def _may_retry(event: Mapping[str, Any], kind: NodeType | None) -> bool:
    """Whether the step may certainly be run again: its code says so, nothing was spent or made."""
    facts = event.get("facts", {})
    certain = not (facts.get("cut_off") or facts.get("unknown")) and facts.get("cost_known", True)
    spent = event.get("cost_micro_usd") or event.get("assets")
    safe = kind is not None and kind.retry_safe
    return bool((safe or facts.get("idempotent")) and certain and not spent)
