"""Checking what is wired to what: slots that are there, how many edges, types that fit.

Read next: `assign.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Any, get_args, get_origin

from nightwarden.spec.assign import assignable
from nightwarden.spec.catalog import InputSlot, NodeType, SlotKind
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.generics import input_types, source_type
from nightwarden.spec.names import FANS, mark_of
from nightwarden.spec.records import record_fields
from nightwarden.spec.scopes import Analysis, edge_scope
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow


def check_edges(
    workflow: Workflow,
    analysis: Analysis,
    findings: Findings,
    *,
    around: Container[str] | None = None,
) -> None:
    """Report every edge that cannot carry what it should.

    With `around`, only those into these nodes, and those from them that leave no slot.
    """
    checker = _Edges(workflow, analysis, findings)
    by_slot: dict[tuple[str, str], list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data":
            by_slot[edge.target, edge.target_slot].append(edge)
    for (target, _), edges in by_slot.items():
        if around is None or target in around:
            checker.into_slot(edges)
        else:
            checker.leave([edge for edge in edges if edge.source in around])


class _Edges:
    def __init__(self, workflow: Workflow, analysis: Analysis, findings: Findings) -> None:
        self._workflow = workflow
        self._analysis = analysis
        self._findings = findings
        self._inputs = input_types(workflow)

    def into_slot(self, edges: Sequence[EdgeSpec]) -> None:
        """Check all edges that lead into one slot."""
        known = [edge for edge in edges if self._leaves_a_slot(edge)]
        node_type = self._workflow.types.get(edges[0].target)
        if node_type is None:
            return
        slot = node_type.input(edges[0].target_slot)
        if slot is None:
            self._no_such_slot(edges[0], node_type)
            return
        if len(edges) > 1 and slot.kind is SlotKind.PLAIN and node_type.join != "any":
            self._error(
                edges[1],
                "several-edges",
                f"{len(edges)} edges lead into {slot.name}, which takes one value",
                "put branches together with flow.Merge, or values into a row with data.Record",
            )
        for edge in known:
            self._type(edge, slot)

    def leave(self, edges: Sequence[EdgeSpec]) -> None:
        """Check only that edges begin at a slot."""
        for edge in edges:
            self._leaves_a_slot(edge)

    def _error(self, edge: EdgeSpec, rule: str, message: str, remedy: str) -> None:
        self._findings.error(
            rule, message, remedy, line=edge.line, node=edge.target, slot=edge.target_slot
        )

    def _no_such_slot(self, edge: EdgeSpec, node_type: NodeType) -> None:
        self._error(
            edge,
            "unknown-slot",
            f"{node_type.name} has no slot {edge.target_slot!r}",
            suggestion(edge.target_slot, node_type.inputs, what="slots"),
        )

    def _leaves_a_slot(self, edge: EdgeSpec) -> bool:
        node_type = self._workflow.types.get(edge.source)
        if edge.source == INPUTS or node_type is None:
            return True
        known = [*node_type.outputs, *node_type.projections]
        if edge.source_slot in known:
            return True
        gives = ", ".join(type_text(slot.type) for slot in node_type.outputs.values())
        self._error(
            edge,
            "unknown-output",
            f"{edge.source} ({gives}) puts out no {edge.source_slot!r}",
            suggestion(edge.source_slot, known, what="slots"),
        )
        return False

    def _type(self, edge: EdgeSpec, slot: InputSlot) -> None:
        given = source_type(edge, self._workflow.types, self._inputs)
        if assignable(given, slot.type) is not False:
            return
        shown = _shown(edge)
        if mark_of(edge.target) == FANS:
            message = f"[*] fans out a list, but {shown} is {type_text(given)}"
            remedy = "leave [*] out, or wire a list"
        else:
            message = (
                f"{slot.name} takes {type_text(slot.type)}, but {shown} gives {type_text(given)}"
            )
            remedy = self._mend(edge, given, slot.type)
        self._error(edge, "edge-type", message, remedy)

    def _mend(self, edge: EdgeSpec, given: Any, wanted: Any) -> str:
        """What would make the edge fit, if it is something simple."""
        python = self._workflow.file.endswith(".py")
        written = ("" if python else "$") + _shown(edge).removesuffix(".output")
        below = edge.source != INPUTS and edge.source in self._analysis.scopes
        items = below and bool(edge_scope(edge, self._workflow, self._analysis.scopes))
        if items and assignable(list[given], wanted) is not False:
            return f"gather the items first: {written}{'.collect()' if python else '[]'}"
        one = get_args(given)[0] if get_origin(given) is list and not mark_of(edge.source) else None
        if one is not None and assignable(one, wanted) is not False:
            return f"fan the list out: {written}{'.each()' if python else '[*]'}"
        fitting = [n for n, t in record_fields(given).items() if assignable(t, wanted)]
        if fitting:
            return "wire one of its fields: " + ", ".join(f"{written}.{n}" for n in fitting)
        if edge.source == INPUTS and assignable(wanted, given) is not True:
            return f'declare the input as type: "{type_text(wanted)}"'
        return "wire a slot that fits, or convert the value with a step in between"


def _shown(edge: EdgeSpec) -> str:
    """The source of an edge as its author wrote it: `row[]`, `inputs.urls[*]`, `page.url`."""
    source = edge.source
    if not mark_of(source):
        return f"{source}.{edge.source_slot}"
    marks = source[source.index("[") :]
    return source.removesuffix(marks).removesuffix(".output") + marks
