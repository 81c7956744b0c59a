"""What a run came to, folded at its end: the result, and the event that closes the record.

Read next: `result.py`, `headline.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightwarden.events import (
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunSuspended,
)
from nightwarden.events.words import place
from nightwarden.headline import headline, missing_outputs, other_roots
from nightwarden.ids import RunId
from nightwarden.kernel.effects import Ended, Status
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.plan import Plan
from nightwarden.lineage import show
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.result import RunResult, fold_ledger, fold_outputs
from nightwarden.runtime.deciding import Deciding, summary
from nightwarden.runtime.failing import Failure
from nightwarden.runtime.narrating import cause_text, telling
from nightwarden.runtime.recorded import as_recorded
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.services import RunServices
from nightwarden.verdict import DecidedBy, Fail, Item

_TERMINAL: Mapping[Status, type[RunEnded]] = {
    Status.COMPLETED: RunCompleted,
    Status.FAILED: RunFailed,
    Status.CANCELLED: RunCancelled,
    Status.SUSPENDED: RunSuspended,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The parts of a run that has ended. Money in micro-dollars."""

    run_id: RunId
    plan: Plan
    ended: Ended
    machine: Machine
    services: RunServices
    recorder: Recorder
    deciding: Deciding
    supervisor_cost: int
    steering_cost: int = 0
    duration_s: float
    record: str
    resumed: bool


def result_of(run: Finished) -> RunResult:
    """The result of the run."""
    ended, machine, recorder = run.ended, run.machine, run.recorder
    recorder.settle()
    report = machine.report()
    found = run.deciding.interventions
    interventions = tuple(found[n] for n in sorted(found))
    gaps = missing_outputs(machine.captures(), run.plan, machine.explain, interventions)
    reason = _reason(ended, recorder, run.deciding, run.plan) or "; ".join(
        gap.sentence for gap in gaps
    )
    rejects = run.services.rejects
    outputs = fold_outputs(
        machine.captures(),
        _output_names(run.plan),
        [node.id for node in run.plan.nodes],
        lambda causes: [cause_text(cause) for cause in telling(machine.explain(causes))],
    )
    if run.resumed:
        outputs = {name: as_recorded(value) for name, value in outputs.items()}
    return RunResult(
        run_id=run.run_id,
        status=ended.status,
        supervised=bool(interventions),
        reason=reason,
        outputs=outputs,
        interventions=interventions,
        ledger=fold_ledger(report, machine.cause, found, run.services.mask),
        costs={
            "nodes_micro_usd": dict(recorder.costs),
            "total_micro_usd": sum(recorder.costs.values()),
            "supervisor_micro_usd": run.supervisor_cost,
            **({"steering_micro_usd": run.steering_cost} if run.steering_cost else {}),
        },
        rejected={node: n for node, n in rejects.items() if n},
        duration_s=round(run.duration_s, 6),
        headline=headline(
            ended.status,
            _pauses(ended, recorder.suspensions) or reason,
            report,
            interventions,
            gaps=gaps,
            supervisor_cost_micro_usd=run.supervisor_cost,
            rejected=sum(rejects.values()),
        ),
        other_roots=other_roots(report),
        record=run.record,
        suspended=tuple(recorder.suspensions),
    )


def terminal_event(status: Status, result: RunResult, registry: SecretRegistry) -> RunEnded:
    """The last event of the record."""
    outputs = {name: _summary_of(value, registry) for name, value in result.outputs.items()}
    event = _TERMINAL[status](
        reason=result.reason,
        ledger={
            **result.ledger,
            "headline": result.headline,
            "other_roots": result.other_roots,
            "rejected": result.rejected,
            **{k: n for k, n in result.costs.items() if k == "steering_micro_usd"},
        },
        cost_micro_usd=result.costs["total_micro_usd"],
        supervisor_cost_micro_usd=result.costs["supervisor_micro_usd"],
        supervised=result.supervised,
        duration_s=result.duration_s,
        outputs=outputs,
    )
    if isinstance(event, RunSuspended):
        event.suspended = result.suspended
    return event


def _output_names(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """What each captured slot is called: as the author named it, perhaps twice, else by node."""
    chosen: dict[str, list[str]] = {}
    for name, ref in (plan.workflow.outputs or {}).items():
        chosen.setdefault(ref, []).append(name)
    pairs = [(plan.nodes[e.source].id, e.source_slot) for e in plan.captures]
    ids = [node_id for node_id, _ in pairs]
    return {
        (node_id, slot): chosen.get(f"{node_id}.{slot}")
        or [node_id if ids.count(node_id) == 1 else f"{node_id}.{slot}"]
        for node_id, slot in pairs
    }


def _reason(ended: Ended, recorder: Recorder, deciding: Deciding, plan: Plan) -> str:
    """One sentence: the words of whoever stopped the run, or the engine's own."""
    if ended.status is not Status.FAILED:
        return ended.reason
    stopped = [
        i
        for number, i in deciding.interventions.items()
        if number not in deciding.recalled
        and i.decision is not None
        and isinstance(i.decision.verdict, Fail)
    ]
    if not stopped:
        failure = recorder.failures.first
        return ended.reason or ("a step failed" if failure is None else _failure_text(failure))
    first = stopped[0]
    assert first.decision is not None
    bounded = first.decision.decided_by in (DecidedBy.BOUNDS, DecidedBy.KERNEL)
    if bounded and not ended.reason.startswith("stopped: "):
        return f"stopped: {ended.reason}; {summary(first.escalation)}"
    if ended.reason:
        return ended.reason
    # The run went on after its failures: named is the earliest by step and item, not by time.
    order = {node.id: node.order for node in plan.nodes}
    found = [i.escalation for i in stopped]
    return summary(min(found, key=lambda e: (order[e.node_id], e.lineage)))


def _pauses(ended: Ended, found: Sequence[Mapping[str, Any]]) -> str:
    """Who asked for the pause a run ended with, and why: the first of them."""
    if ended.status is not Status.SUSPENDED or not found:
        return ""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{place(first['node'], show(first['lineage']))}: {first['reason']}{more}"


def _failure_text(failure: Failure) -> str:
    """Where and what, in one line."""
    item = Item(failure.number, failure.total, failure.label)
    return f"{place(failure.node_id, str(item))}: {failure.detail}"


def _summary_of(value: object, registry: SecretRegistry) -> object:
    """An output as the record's last line shows it: lists as counts, the rest masked and cut."""
    if isinstance(value, list) and len(value) > 20:
        return {"items": len(value)}
    return registry.redact(value)
