"""Events in, one `RunReport` out; nothing is read that the events do not say.

    events ──┬─▶ the head: who ran what, how it ended        a resume opens the end again
             ├─▶ Interventions      what was decided
             ├─▶ StandingFold       how each node stands
             ├─▶ CostFold           what it cost
             ├─▶ TimelineFold       when it was at work
             └─▶ Steering           who watched its agents, and what was said to them

A record may hold several ends: a resumed run goes on behind the last one. The last end counts,
and only if nothing follows it; a failure that a later attempt made good is told as such. Values
that steps put out are passed over: a report of a large run stays small.

Read next: `text.py`, `html.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nightwarden.events.interventions import Intervention, Interventions
from nightwarden.events.run import ENDS
from nightwarden.events.words import item_text, list_of, mapping_of, place, text
from nightwarden.report.costing import CostFold, Costs, whole
from nightwarden.report.missing import (
    Failure,
    Missing,
    failure_of,
    of_failures,
    of_interventions,
    of_ledger,
)
from nightwarden.report.picture import innermost_roots
from nightwarden.report.standing import NodeState, StandingFold
from nightwarden.report.steering import Steering
from nightwarden.report.timeline import Timeline, TimelineFold

Plain = Mapping[str, Any]

NO_END: Final = "unfinished"
"""The status of a record without an end, where nobody knows whether its process lives."""

MOST_REJECTED: Final = 1_000
"""Rejected records are counted without end, and shown up to so many."""


@dataclass(slots=True, kw_only=True)
class RunReport:
    """What a record says. Money in micro-dollars, times in seconds.

    `status` is the run's, or `running`, `interrupted`, `unfinished` while the record has no end.
    `missing` names every item that is not in the result. `failures` are those nobody was asked
    about. `afterwards` says, by escalation, what a resumed run came to there. `rejected` counts
    unusable records by node, `rejects` holds the first of them. `roots` and `nodes` are the
    ledger's accounts as recorded.
    """

    run_id: str = ""
    workflow: str = ""
    status: str = NO_END
    ended: bool = False
    reason: str = ""
    supervised: bool = False
    supervisor: str = ""
    headline: str = ""
    started_at: str = ""
    ended_at: str = ""
    duration_s: float = 0.0
    resumed: int = 0
    cost_micro_usd: int = 0
    supervisor_cost_micro_usd: int = 0
    definition: Plain = field(default_factory=dict)
    definition_hash: str = ""
    inputs: Plain = field(default_factory=dict)
    large_inputs: Plain = field(default_factory=dict)
    versions: Plain = field(default_factory=dict)
    bounds: Plain = field(default_factory=dict)
    outputs: Plain = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    interventions: list[Intervention] = field(default_factory=list)
    afterwards: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    widened: dict[str, int] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    rejects: list[Plain] = field(default_factory=list)
    costs: Counter[str] = field(default_factory=Counter)
    money: Costs = field(default_factory=Costs)
    roots: Sequence[Plain] = ()
    nodes: Sequence[Plain] = ()
    states: Sequence[NodeState] = ()
    timeline: Timeline = field(default_factory=Timeline)
    steering: Steering = field(default_factory=Steering)
    record: str = ""

    @property
    def took_s(self) -> float:
        """How long it was at work, over all its processes."""
        return max(self.duration_s, self.timeline.length_s)


def fold_report(events: Iterable[Plain], *, record: str = "", unended: str = NO_END) -> RunReport:
    """The report of one run's events, in their order; `record` is where they lie.

    `unended` is the status of a record without an end: `running` or `interrupted`, if known.
    """
    fold = _Fold(RunReport(record=record, status=unended), unended)
    for event in events:
        fold.take(event)
    return fold.close()


_Place = tuple[object, tuple[Any, ...]]


class _Fold:
    def __init__(self, report: RunReport, unended: str) -> None:
        self._report = report
        self._unended = unended
        self._interventions = Interventions()
        self._standing, self._money, self._timeline = StandingFold(), CostFold(), TimelineFold()
        self._failures: dict[_Place, tuple[object, Failure]] = {}
        self._broken: dict[_Place, str] = {}
        self._run: Plain = {}

    def take(self, event: Plain) -> None:
        closed = self._interventions.take(event)
        for fold in (self._standing, self._money, self._timeline, self._report.steering):
            fold.take(event)
        if closed is not None and closed.became in ("stopped", "never_ran", "retry_never_ran"):
            self._broken[_place(closed.escalation)] = closed.id
        self._read(event)
        self._report.ended_at = str(event.get("at") or self._report.ended_at)

    def close(self) -> RunReport:
        report = self._report
        report.interventions = list(self._interventions.all.values())
        asked = {
            (_place(found.escalation), found.escalation.get("attempt"))
            for found in report.interventions
        }
        report.failures = [
            failure
            for at, (attempt, failure) in self._failures.items()
            if (at, attempt) not in asked
        ]
        if not report.ended:
            report.supervised = bool(report.interventions)
        report.states = self._standing.close(
            report.interventions,
            report.roots,
            report.nodes,
            status=report.status,
            made_good=report.afterwards,
        )
        report.missing = self._missing(report)
        report.timeline = self._timeline.close()
        report.money = self._money.close()
        report.costs = report.money.by_node()
        report.cost_micro_usd = report.money.steps_micro_usd
        report.supervisor_cost_micro_usd = report.money.supervisor_micro_usd
        for state in report.states:
            state.cost_micro_usd = report.costs[state.node]
        report.costs.pop("", None)
        return report

    def _missing(self, report: RunReport) -> list[Missing]:
        roots = innermost_roots(report.definition, {state.node: state for state in report.states})
        unasked = {(f.node, f.item): f.detail for f in report.failures}
        missing = list(of_ledger(report.roots, self._run, unasked))
        undone = [i for i in report.interventions if i.id not in report.afterwards]
        missing += of_interventions(undone, missing, roots, ended=report.ended)
        if report.status != "completed":
            missing += of_failures(report.failures, missing, roots)
        return missing

    def _read(self, event: Plain) -> None:
        report = self._report
        match event.get("type"):
            case "run_started":
                self._start(event)
            case "run_resumed":
                self._resume(event)
            case "supervisor_escalation":
                escalation = mapping_of(event.get("escalation"))
                self._made_good(escalation, f"asked again, {text(escalation.get('id'))}")
            case "invocation_succeeded" if self._failures or self._broken:
                self._made_good(event, "succeeded")
                self._failures.pop(_place(event), None)
            case "invocation_failed":
                self._made_good(event, "failed again")
                failure = failure_of(event, _where(event))
                self._failures[_place(event)] = (event.get("attempt"), failure)
            case "log" if event.get("level") != "info":
                report.warnings.append(text(f"{_where(event)}: {event.get('message')}"))
            case "window_widened":
                report.widened[str(event.get("node_id"))] = int(event.get("window") or 0)
            case "record_rejected":
                report.rejected[str(event.get("node_id"))] += 1
                if len(report.rejects) < MOST_REJECTED:
                    report.rejects.append(event)
            case kind if kind in ENDS:
                self._end(event)

    def _start(self, event: Plain) -> None:
        report = self._report
        report.run_id = str(event.get("run_id", ""))
        report.workflow = str(event.get("workflow", ""))
        report.supervisor = str(event.get("supervisor") or "")
        report.started_at = str(event.get("at", ""))
        report.definition = mapping_of(event.get("definition"))
        report.definition_hash = str(event.get("definition_hash", ""))
        report.inputs = mapping_of(event.get("inputs"))
        report.large_inputs = mapping_of(event.get("blobs"))
        report.versions = mapping_of(event.get("versions"))
        report.bounds = mapping_of(event.get("bounds"))

    def _resume(self, event: Plain) -> None:
        """The end that was there is none any more; what it said is said anew by the next one."""
        report = self._report
        report.resumed += 1
        report.status, report.ended = self._unended, False
        report.reason = report.headline = ""
        report.outputs, report.roots, report.nodes, self._run = {}, (), (), {}
        report.supervisor = str(event.get("supervisor") or "")
        report.definition_hash = str(event.get("definition_hash") or report.definition_hash)
        for name in ("definition", "inputs", "bounds", "versions"):
            if mapping_of(event.get(name)):
                setattr(report, name, mapping_of(event.get(name)))
        report.large_inputs = {**report.large_inputs, **mapping_of(event.get("blobs"))}

    def _made_good(self, event: Plain, how: str) -> None:
        """A later attempt at what had failed: in a resumed run, or by a retry."""
        before = self._broken.pop(_place(event), "")
        if before and self._report.resumed:
            self._report.afterwards[before] = f"the run was resumed: {how}"

    def _end(self, event: Plain) -> None:
        report, ledger = self._report, mapping_of(event.get("ledger"))
        report.status = str(event.get("type", "")).removeprefix("run_")
        report.ended = True
        report.reason = str(event.get("reason", ""))
        report.supervised = bool(event.get("supervised"))
        report.headline = str(ledger.get("headline", ""))
        report.duration_s = float(event.get("duration_s") or 0.0)
        report.outputs = mapping_of(event.get("outputs"))
        # Where an earlier process counted some, the end may know of its own only.
        told = Counter({k: whole(v) for k, v in mapping_of(ledger.get("rejected")).items()})
        report.rejected |= told
        report.roots = [mapping_of(root) for root in list_of(ledger.get("roots"))]
        report.nodes = [mapping_of(node) for node in list_of(ledger.get("nodes"))]
        self._run = mapping_of(ledger.get("run"))


def _where(event: Plain) -> str:
    item = str(event.get("item") or item_text(None, list_of(event.get("lineage"))))
    return text(place(str(event.get("node_id", "")), item))


def _place(record: Plain) -> _Place:
    return record.get("node_id"), tuple(list_of(record.get("lineage")))
