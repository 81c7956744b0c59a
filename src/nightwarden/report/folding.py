"""Events in, one `RunReport` out; nothing is read that the events do not say.

Values that steps put out are passed over: a report of a large run stays small.

Read next: `text.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nightwarden.events.interventions import Intervention, Interventions
from nightwarden.events.words import item_text, list_of, mapping_of, text
from nightwarden.lineage import show

Plain = Mapping[str, Any]

NO_END: Final = "unfinished"
"""The status of a record without an end."""

_ENDS: Final = ("run_completed", "run_failed", "run_cancelled", "run_suspended")
MOST_REJECTED: Final = 1_000
"""Rejected records are counted without end, and shown up to so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One item that is not in the result: which, where and why it was lost, and by which decision.

    `root` is the fan-out it is an item of, empty for the run itself. `kind` is `lost` or `failed`.
    """

    root: str
    item: str
    label: str
    node: str
    kind: str
    reason: str
    escalation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt nobody was asked about."""

    place: str
    detail: str
    error_type: str
    signature: str
    attempt: int


@dataclass(slots=True, kw_only=True)
class RunReport:
    """What a record says. Money in micro-dollars, times in seconds.

    `missing` names every lost item. `failures` are those nobody was asked about. `rejected`
    counts unusable records by node, `rejects` holds the first of them. `roots` and `nodes` are
    the ledger's accounts as recorded.
    """

    run_id: str = ""
    workflow: str = ""
    status: str = NO_END
    reason: str = ""
    supervised: bool = False
    supervisor: str = ""
    headline: str = ""
    started_at: str = ""
    ended_at: str = ""
    duration_s: float = 0.0
    cost_micro_usd: int = 0
    supervisor_cost_micro_usd: int = 0
    definition: Plain = field(default_factory=dict)
    definition_hash: str = ""
    inputs: Plain = field(default_factory=dict)
    versions: Plain = field(default_factory=dict)
    bounds: Plain = field(default_factory=dict)
    outputs: Plain = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    interventions: list[Intervention] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    widened: dict[str, int] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    rejects: list[Plain] = field(default_factory=list)
    costs: Counter[str] = field(default_factory=Counter)
    roots: Sequence[Plain] = ()
    nodes: Sequence[Plain] = ()
    record: str = ""

    @property
    def ended(self) -> bool:
        """Whether the record has its end."""
        return self.status != NO_END


def fold_report(events: Iterable[Plain], *, record: str = "") -> RunReport:
    """The report of one run's events, in their order; `record` is where they lie."""
    report = RunReport(record=record)
    interventions = Interventions()
    failures: dict[tuple[object, ...], Failure] = {}
    for event in events:
        interventions.take(event)
        _take(event, report, failures)
        report.ended_at = str(event.get("at") or report.ended_at)
    report.interventions = list(interventions.all.values())
    asked = {_key(found.escalation) for found in report.interventions}
    report.failures = [failure for key, failure in failures.items() if key not in asked]
    if not report.ended:
        report.missing = list(_given_up(report.interventions))
        report.supervised = bool(report.interventions)
    return report


def _take(event: Plain, report: RunReport, failures: dict[tuple[object, ...], Failure]) -> None:
    match event.get("type"):
        case "run_started":
            _start(event, report)
        case "invocation_succeeded":
            _book(event, report)
        case "invocation_failed":
            _book(event, report)
            failures[_key(event)] = _failure(event)
        case "log" if event.get("level") != "info":
            report.warnings.append(text(f"{_where(event)}: {event.get('message')}"))
        case "window_widened":
            report.widened[str(event.get("node_id"))] = int(event.get("window") or 0)
        case "record_rejected":
            report.rejected[str(event.get("node_id"))] += 1
            if len(report.rejects) < MOST_REJECTED:
                report.rejects.append(event)
        case kind if kind in _ENDS:
            _end(event, report)


def _start(event: Plain, report: RunReport) -> None:
    report.run_id = str(event.get("run_id", ""))
    report.workflow = str(event.get("workflow", ""))
    report.supervisor = str(event.get("supervisor") or "")
    report.started_at = str(event.get("at", ""))
    report.definition = mapping_of(event.get("definition"))
    report.definition_hash = str(event.get("definition_hash", ""))
    report.inputs = mapping_of(event.get("inputs"))
    report.versions = mapping_of(event.get("versions"))
    report.bounds = mapping_of(event.get("bounds"))


def _end(event: Plain, report: RunReport) -> None:
    ledger = mapping_of(event.get("ledger"))
    report.status = str(event.get("type", "")).removeprefix("run_")
    report.reason = str(event.get("reason", ""))
    report.supervised = bool(event.get("supervised"))
    report.headline = str(ledger.get("headline", ""))
    report.duration_s = float(event.get("duration_s") or 0.0)
    report.cost_micro_usd = int(event.get("cost_micro_usd") or 0)
    report.supervisor_cost_micro_usd = int(event.get("supervisor_cost_micro_usd") or 0)
    report.outputs = mapping_of(event.get("outputs"))
    report.rejected = Counter(mapping_of(ledger.get("rejected")))
    report.roots = [mapping_of(root) for root in list_of(ledger.get("roots"))]
    report.nodes = [mapping_of(node) for node in list_of(ledger.get("nodes"))]
    report.missing = [
        _missing(item, root) for root in report.roots for item in list_of(root.get("missing"))
    ]
    run = mapping_of(ledger.get("run"))
    report.missing += [_missing(item, {}) for item in list_of(run.get("missing"))]


def _missing(item: object, root: Plain) -> Missing:
    found = mapping_of(item)
    return Missing(
        root=str(root.get("node", "")),
        item=str(found.get("item", "")),
        label=str(found.get("label", "")),
        node=str(found.get("node", "")),
        kind=str(found.get("kind", "")),
        reason=str(found.get("reason", "")),
        escalation=str(found.get("escalation", "")),
    )


def _given_up(interventions: Iterable[Intervention]) -> Iterable[Missing]:
    """What a record without an end already says to be lost."""
    for found in interventions:
        if found.became == "skipped":
            item = mapping_of(found.escalation.get("item"))
            yield Missing(
                root="",
                item=show(tuple(list_of(found.escalation.get("lineage")))),
                label=str(item.get("label", "")),
                node=str(found.escalation.get("node_id", "")),
                kind="lost",
                reason=str(found.decision.get("rationale", "")),
                escalation=found.id,
            )


def _failure(event: Plain) -> Failure:
    return Failure(
        place=_where(event),
        detail=str(event.get("detail", "")),
        error_type=str(event.get("error_type", "")),
        signature=str(event.get("signature") or ""),
        attempt=int(event.get("attempt") or 1),
    )


def _book(event: Plain, report: RunReport) -> None:
    cost = event.get("cost_micro_usd")
    if cost:
        report.costs[str(event.get("node_id"))] += int(cost)


def _where(event: Plain) -> str:
    item = str(event.get("item") or item_text(None, list_of(event.get("lineage"))))
    node = str(event.get("node_id", ""))
    return text(f"{node} [{item}]" if item else node)


def _key(record: Plain) -> tuple[object, ...]:
    """What tells one attempt from every other."""
    return record.get("node_id"), tuple(list_of(record.get("lineage"))), record.get("attempt")
