"""What the kernel says, in the words of the reference.

    trace, causes, inputs ──▶ settlements by edge, closings, plain values

Read next: `comparing.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nightwarden.kernel import causes as kernel
from nightwarden.kernel.effects import USE_DEFAULT, Status
from nightwarden.kernel.ledger import Report
from nightwarden.kernel.plan import EdgeKind, EdgePlan, OutPlan, Plan
from nightwarden.kernel.state import Gathered
from nightwarden.lineage import Lineage
from nightwarden.spec.workflow import INPUTS
from reference.words import (
    ABSENT,
    CONTROL,
    DEFAULT,
    Absent,
    Cause,
    Causes,
    Choices,
    Closing,
    Escalated,
    Invocation,
    Kind,
    Listed,
    Settlement,
    Slot,
    Value,
    part,
)


@dataclass(slots=True)
class Run:
    """What the kernel did. `edges` go by their place in the workflow, `captures` by slot;
    `outcomes` counts decisions (negative numbers) and outcomes of every escalation."""

    plan: Plan
    status: Status | None = None
    reason: str = ""
    invocations: list[Invocation] = field(default_factory=list)
    escalations: list[Escalated] = field(default_factory=list)
    edges: dict[int, dict[Lineage, Settlement]] = field(default_factory=dict)
    captures: dict[Slot, dict[Lineage, Settlement]] = field(default_factory=dict)
    closings: dict[tuple[str, Lineage], Closing] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    outcomes: Counter[int] = field(default_factory=Counter)
    pending: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    widened: int = 0
    interrupted: bool = False
    report: Report | None = None
    causes: list[Cause] = field(default_factory=list)


class Translator:
    """Knows the causes of one run by number."""

    def __init__(self, table: kernel.CauseTable) -> None:
        self._table = table

    def cause(self, number: int) -> Cause:
        """A cause."""
        found = self._table[number]
        return Cause(found.node_id, found.lineage, found.slot)

    def all_causes(self) -> list[Cause]:
        """Every cause so far, by number."""
        return [self.cause(c.number) for c in self._table._causes]

    def by_escalation(self, numbers: Sequence[int]) -> Causes:
        """The causes that these escalations brought about."""
        return frozenset(
            self.cause(c.number) for c in self._table._causes if c.escalation in numbers
        )

    def settlement(self, settled: object) -> Settlement:
        """A settlement."""
        if isinstance(settled, kernel.Absent):
            return self.absent(settled)
        if isinstance(settled, kernel.Carried):
            return Value(self.plain(settled.value), self._causes(settled.causes))
        return Value(self.plain(settled))

    def absent(self, settled: kernel.Absent) -> Absent:
        """An absence."""
        return Absent(Kind(settled.kind), self._causes(settled.causes))

    def plain(self, value: object) -> object:
        """An input."""
        if value is USE_DEFAULT:
            return DEFAULT
        if isinstance(value, kernel.Absent):
            return ABSENT
        if isinstance(value, Gathered):
            losses = tuple((i, self._causes(c)) for i, c in value.losses)
            ended = self._causes(value.ended)
            return Listed(tuple(value.values), tuple(value.indices), losses, ended)
        if isinstance(value, dict):
            return tuple(sorted(value.items()))  # what a control event says
        return tuple(value) if isinstance(value, list) else value

    def _causes(self, numbers: kernel.CauseSet) -> Causes:
        return frozenset(map(self.cause, numbers))


def tell_trace(trace: Sequence[tuple[object, ...]], run: Run, words: Translator) -> None:
    """Add what a trace says to a run; nothing may settle or close twice."""
    names = edge_names(run.plan)
    for entry in trace:
        match entry:
            case ("settle", int(edge), tuple(lineage), settled):
                _settle(run, names[edge], lineage, words.settlement(settled))
            case ("close", int(root), tuple(parent), int(n), cause):
                key = (run.plan.roots[root].name, parent)
                assert key not in run.closings, f"{key} closes twice"
                absent = words.absent(cause) if isinstance(cause, kernel.Absent) else None
                run.closings[key] = Closing(n, absent)
            case _:
                raise AssertionError(f"unknown trace entry {entry}")


def _settle(run: Run, name: int | Slot, lineage: Lineage, settled: Settlement) -> None:
    found: dict[Lineage, Settlement]
    if isinstance(name, int):
        found = run.edges.setdefault(name, {})
    else:
        found = run.captures.setdefault(name, {})
    assert lineage not in found, f"edge {name} settles twice for {lineage}"
    found[lineage] = settled


def aligned(outs: Sequence[OutPlan], values: Mapping[str, object]) -> tuple[object, ...]:
    """Values in the order of a node's slots, fields of them where fields are wired."""
    found: list[object] = []
    for out in outs:
        value = values.get(out.base, ABSENT)
        if value is ABSENT:
            found.append(kernel.NOT_TAKEN)
        else:
            found.append(part(value, out.name) if out.projected else value)
    return tuple(found)


def edge_names(plan: Plan) -> dict[int, int | Slot]:
    """Every edge of a plan by its place in the workflow, or by the slot it captures.

    The edge by which a node is given its control events goes by that node's own `CONTROL`.
    """
    places: dict[Slot, list[int]] = {}
    for place, spec in enumerate(plan.workflow.edges):
        if spec.kind == "data":
            places.setdefault((spec.source, spec.source_slot), []).append(place)
    outs = [(n.id, out) for n in plan.nodes for out in (*n.outs, *n.ends)]
    outs += [(INPUTS, out) for out in plan.inputs.values()]
    names: dict[int, int | Slot] = {
        root.control.index: (plan.nodes[root.node].id, CONTROL)
        for root in plan.roots
        if root.control is not None
    }
    for node_id, out in outs:
        wired = iter(places.get((node_id, out.name), ()))
        for edge in out.edges:
            names[edge.index] = _name(edge, node_id, out) or next(wired)
        assert next(wired, None) is None, f"an edge of {node_id}.{out.name} is not in the plan"
    return names


def _name(edge: EdgePlan, node_id: str, out: OutPlan) -> Slot | None:
    return (node_id, out.name) if edge.kind is EdgeKind.CAPTURE else None
