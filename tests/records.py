"""Records written by hand: events of a run, in order, with times that a test chooses.

    record = Record("r1", day="2026-03-01")
    record.started(nodes=[…]); record.succeeded("price", 0, cost=250_000, took=0.5)
    fold_report(record.events)

Read next: `unit/test_report_html.py`, `unit/test_costs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any


class Record:
    """The events of one run. Each comes `step_s` after the one before, unless told."""

    def __init__(self, run_id: str = "r1", *, day: str = "2026-03-01", step_s: float = 0.1) -> None:
        self.run_id = run_id
        self.events: list[dict[str, Any]] = []
        self._now = datetime.fromisoformat(f"{day}T10:00:00").replace(tzinfo=UTC)
        self._step = timedelta(seconds=step_s)

    def waits(self, seconds: float) -> None:
        """Let time pass; less than nothing sets the clock back."""
        self._now += timedelta(seconds=seconds)

    def add(self, type: str, node: str = "", *lineage: int, **fields: Any) -> dict[str, Any]:
        """Any event."""
        at = self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": type, "v": 1, "seq": len(self.events) + 1, "at": at, **fields}
        event |= {"node_id": node, "lineage": list(lineage)} if node else {}
        self.events.append(event)
        self._now += self._step
        return event

    def started(
        self,
        nodes: Sequence[tuple[str, str]] = (("items[*]", "flow.ForEach"), ("price", "shop.Price")),
        edges: Sequence[tuple[str, str]] = (("inputs.names", "items[*]"), ("items[*]", "price")),
        **fields: Any,
    ) -> None:
        """The beginning. Edges are pairs of nodes, or `inputs.NAME` and a node."""
        definition = {
            "name": "shop",
            "inputs": [{"name": "names", "type": "list[str]"}],
            "nodes": [{"id": node, "type": kind} for node, kind in nodes],
            "edges": [_edge(source, target) for source, target in edges],
        }
        self.add(
            "run_started",
            **{
                "run_id": self.run_id,
                "workflow": "shop",
                "definition": definition,
                "definition_hash": "ab" * 32,
                "inputs": {"names": ["a", "b"]},
                "supervisor": "agent",
                **fields,
            },
        )

    def succeeded(
        self, node: str, *lineage: int, cost: int = 0, took: float = 0.05, **more: Any
    ) -> None:
        """A step returned."""
        fields = {"attempt": 1, "cost_micro_usd": cost, "duration_s": took, **more}
        self.add("invocation_succeeded", node, *lineage, **fields)

    def failed(
        self, node: str, *lineage: int, cost: int = 0, detail: str = "broke", **more: Any
    ) -> None:
        """A step raised."""
        fields = {"attempt": 1, "cost_micro_usd": cost, "error_type": "NodeError", **more}
        self.add("invocation_failed", node, *lineage, detail=detail, **fields)

    def decided(
        self,
        number: int,
        node: str,
        *lineage: int,
        action: str = "skip",
        became: str = "skipped",
        label: str = "",
        detail: str = "broke",
        reason: str = "of no use",
        by: str = "agent",
        cost: int = 0,
        model: str = "",
        **escalation: Any,
    ) -> None:
        """A whole intervention: escalation, decision, outcome."""
        key = f"e{number}"
        item = {"number": str(lineage[-1] + 1) if lineage else "", "total": None, "label": label}
        asked = {
            "id": key,
            "node_id": node,
            "lineage": list(lineage),
            "attempt": 1,
            "item": item,
            "detail": detail,
            "error_type": "NodeError",
            "allowed_actions": ["retry", "skip", "fail"],
            "retries_left": 2,
            **escalation,
        }
        decision = {
            "verdict": {"action": action},
            "decided_by": by,
            "rationale": reason,
            "cost_micro_usd": cost,
            "model": model,
        }
        self.add("supervisor_escalation", node, *lineage, escalation=asked)
        self.add("supervisor_decision", node, *lineage, escalation_id=key, decision=decision)
        outcome = {"escalation_id": key, "kind": became}
        self.add("supervisor_outcome", node, *lineage, escalation_id=key, outcome=outcome)

    def resumed(self, **fields: Any) -> None:
        """The run goes on."""
        self.add("run_resumed", supervisor="agent", **fields)

    def ended(
        self,
        status: str = "completed",
        *,
        roots: Sequence[Mapping[str, Any]] = (),
        nodes: Sequence[Mapping[str, Any]] = (),
        headline: str = "",
        cost: int = 0,
        supervisor_cost: int = 0,
        **fields: Any,
    ) -> None:
        """A terminal event."""
        ledger = {
            "headline": headline or status,
            "roots": list(roots),
            "nodes": list(nodes),
            "run": {"missing": [], "exits": []},
        }
        told = {"cost_micro_usd": cost, "supervisor_cost_micro_usd": supervisor_cost}
        self.add(f"run_{status}", ledger=ledger, **told, **fields)


def root(node: str, items: int, kept: int, **fields: Any) -> dict[str, Any]:
    """A fan-out's account."""
    exits = [{"name": "end", "delivered": kept, "unrun": items - kept}]
    return {"node": node, "depth": 1, "items": items, "kept": kept, "exits": exits, **fields}


def account(node: str, depth: int, **counts: int) -> dict[str, Any]:
    """A node's account."""
    due = sum(counts.values())
    return {"node_id": node, "depth": depth, "due": due, "started": due, "attempts": due, **counts}


def _edge(source: str, target: str) -> dict[str, str]:
    node, _, slot = (
        source.partition(".") if source.startswith("inputs.") else (source, "", "output")
    )
    return {
        "source": node,
        "source_slot": slot,
        "target": target,
        "target_slot": "items" if target.endswith("[*]") else "value",
        "kind": "data",
    }
