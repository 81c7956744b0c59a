"""A report for programs: versioned, money as dollars, items by number and label.

Read next: `comparing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from nightwarden.events.words import list_of, usd
from nightwarden.lineage import show
from nightwarden.report.folding import RunReport
from nightwarden.report.spending import days_json, models_json
from nightwarden.report.standing import NodeState
from nightwarden.report.steering import steering_json
from nightwarden.report.timeline import Timeline

FORMAT: Final = 1
"""Fields may be added to a version; none changes its meaning or goes."""


def report_json(report: RunReport) -> dict[str, object]:
    """Plain data; what `report --json` prints."""
    return {
        "version": FORMAT,
        "run_id": report.run_id,
        "workflow": report.workflow,
        "status": report.status,
        "supervised": report.supervised,
        "reason": report.reason,
        "headline": report.headline,
        "supervisor": report.supervisor or None,
        "resumed": report.resumed,
        "started_at": report.started_at,
        "ended_at": report.ended_at if report.ended else None,
        "duration_s": report.duration_s,
        "inputs": dict(report.inputs),
        "large_inputs": dict(report.large_inputs),
        "outputs": dict(report.outputs),
        "missing": [asdict(item) for item in report.missing],
        "interventions": [
            {
                "id": found.id,
                "node": found.escalation.get("node_id"),
                "item": show(tuple(list_of(found.escalation.get("lineage")))),
                "escalation": dict(found.escalation),
                "decision": dict(found.decision) or None,
                "outcome": dict(found.outcome) or None,
                "afterwards": report.afterwards.get(found.id),
                "cost_usd": usd(found.decision.get("cost_micro_usd")),
            }
            for found in report.interventions
        ],
        "steering": steering_json(report.steering),
        "failures": [asdict(failure) for failure in report.failures],
        "rejected": dict(report.rejected),
        "rejects": [
            {
                "node": event.get("node_id"),
                "line": event.get("line"),
                "reason": event.get("reason"),
                "raw": event.get("raw"),
            }
            for event in report.rejects
        ],
        "warnings": list(report.warnings),
        "widened": dict(report.widened),
        "ledger": {
            "roots": [dict(root) for root in report.roots],
            "nodes": [dict(node) for node in report.nodes],
        },
        "costs": {
            "nodes_usd": {node: usd(amount) for node, amount in report.costs.items()},
            "total_usd": usd(report.cost_micro_usd),
            "supervisor_usd": usd(report.supervisor_cost_micro_usd),
            **_steering(report.money.steering),
            "models": models_json(report.money),
            "days": days_json(report.money),
        },
        "nodes": [_node(state) for state in report.states],
        "timeline": _timeline(report.timeline),
        "bounds": dict(report.bounds),
        "versions": dict(report.versions),
        "definition_hash": report.definition_hash,
        "record": report.record,
    }


def _node(state: NodeState) -> dict[str, object]:
    return {
        "node": state.node,
        "type": state.type,
        "state": state.state,
        "counts": {name: n for name, n in state.counts.items() if n},
        "decisions": {name: n for name, n in state.badges.items() if n},
        "cost_usd": usd(state.cost_micro_usd),
    }


def _timeline(timeline: Timeline) -> dict[str, object]:
    """Seconds at work; `busy_s` holds, by node, the work done in each span of `width_s`."""
    return {
        "length_s": round(timeline.length_s, 3),
        "width_s": timeline.width_s,
        "busy_s": timeline.busy,
        "drives": [asdict(drive) for drive in timeline.drives],
        "decisions": [{**asdict(mark), "lineage": list(mark.lineage)} for mark in timeline.marks],
    }


def _steering(spent: Mapping[str, int]) -> dict[str, object]:
    """What watching agents cost, by supervisor; nothing where it cost nothing."""
    return {"steering_usd": {name: usd(n) for name, n in spent.items()}} if spent else {}
