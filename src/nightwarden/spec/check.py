"""Everything that can be known to be wrong with a workflow before it runs.

One check for all doors: YAML, JSON, an editor's file and Python get the same verdicts in the
same words. It also finishes the workflow: type variables are bound, property values become
values of the declared types.

Read next: `edges.py`, `advice.py`, `scopes.py`.
"""

from __future__ import annotations

import json
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from nightwarden.errors import Problem
from nightwarden.spec.advice import advise
from nightwarden.spec.assign import assignable
from nightwarden.spec.catalog import Catalog, InputSlot, NodeType, SlotKind
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.draft import Draft
from nightwarden.spec.edges import check_edges
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.generics import specialise
from nightwarden.spec.names import mark_of
from nightwarden.spec.nodefile import CODE_ONLY, NODE_KEYS, code_only
from nightwarden.spec.scopes import analyse, controllers
from nightwarden.spec.sugar import desugar
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import (
    INPUTS,
    EdgeSpec,
    NodeSpec,
    SecretRef,
    Workflow,
    json_value,
)

Slots = Set[tuple[str, str]]
"""Slots of nodes, as (node, slot)."""


def assemble(draft: Draft, catalog: Catalog, findings: Findings) -> Workflow:
    """The finished workflow of a draft. What is wrong with it is among the findings."""
    workflow, excused = desugar(draft, catalog, findings)
    lines = {f"{INPUTS}.{i.spec.name}": i.line for i in draft.inputs}
    lines |= {f"outputs.{o.name}": o.line for o in draft.outputs or ()}
    return _settled(workflow, findings, excused, lines)


def check(workflow: Workflow, catalog: Catalog | None = None) -> tuple[Problem, ...]:
    """Everything wrong with a workflow, warnings included, by line.

    With a catalog, the types of its nodes are looked up anew.
    """
    findings = Findings(workflow.file)
    if catalog is not None:
        found = {node.id: catalog.find(node.type) for node in workflow.nodes}
        types = {node_id: t for node_id, t in found.items() if t is not None}
        workflow = replace(workflow, types=types)
    for node in workflow.nodes:
        if node.id not in workflow.types:
            message = f"there is no node type {node.type!r}"
            findings.error("unknown-type", message, line=node.line, node=node.id)
    _settled(workflow, findings, frozenset(), {})
    return findings.report()


def _settled(
    workflow: Workflow, findings: Findings, excused: Slots, lines: Mapping[str, int | None]
) -> Workflow:
    workflow = replace(workflow, types=specialise(workflow))
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data":
            incoming[edge.target].append(edge)
    nodes = []
    for node in workflow.nodes:
        node_type = workflow.types.get(node.id)
        if node_type is not None:
            node_check = _NodeCheck(node, node_type, incoming[node.id], findings)
            node = replace(node, properties=node_check.properties())  # noqa: PLW2901
            if not controllers(workflow, node.id):  # whose events may set what it needs
                node_check.missing(excused)
            node_check.label()
        nodes.append(node)
    workflow = replace(workflow, nodes=tuple(nodes))
    analysis = analyse(workflow)
    check_edges(workflow, analysis, findings)
    findings.extend(analysis.problems)
    _check_outputs(workflow, findings, lines)
    if not findings.failed:
        advise(workflow, analysis, findings, lines)
    findings.charge(_owners(workflow))
    return workflow


class _NodeCheck:
    """What can be said about one node alone."""

    def __init__(
        self,
        node: NodeSpec,
        node_type: NodeType,
        edges: Sequence[EdgeSpec],
        findings: Findings,
    ) -> None:
        self._node = node
        self._type = node_type
        self._wired = {edge.target_slot: edge for edge in edges}
        self._findings = findings

    def properties(self) -> dict[str, object]:
        """The values at the node's slots, made what the slots ask for; others left as they are."""
        return {slot: self._property(slot, v) for slot, v in self._node.properties.items()}

    def missing(self, excused: Slots) -> None:
        """Report slots that need a value and have none."""
        for slot in self._type.inputs.values():
            given = slot.name in self._node.properties or slot.name in self._wired
            if slot.required and not given and (self._node.id, slot.name) not in excused:
                self._error(
                    "missing-slot",
                    f"{slot.name} needs a value",
                    _how_to_give(slot),
                    slot.name,
                )

    def label(self) -> None:
        """Report a label that names what the node does not take."""
        if self._node.label is None or self._type.extra is not None:
            return
        try:
            fields = [f for _, f, _, _ in string.Formatter().parse(self._node.label)]
        except ValueError as error:
            remedy = "write {slot} for a value, {{ and }} for braces"
            self._error("bad-label", f"the label cannot be read: {error}", remedy)
            return
        for field in fields:
            name = None if field is None else field.partition(".")[0].partition("[")[0]
            if name is not None and name not in self._type.inputs:
                remedy = suggestion(name, self._type.inputs, what="slots")
                self._error("bad-label", f"the label names {name!r}, which is no slot", remedy)

    def _error(self, rule: str, message: str, remedy: str = "", slot: str = "") -> None:
        edge = self._wired.get(slot)
        line = edge.line if edge is not None and edge.line else self._node.line_of(slot)
        self._findings.error(rule, message, remedy, line=line, node=self._node.id, slot=slot)

    def _property(self, name: str, value: object) -> object:
        slot = self._type.input(name)
        if slot is None:
            self._unknown(name)
            return value
        if name in self._wired:
            remedy = "remove the value, or the edge"
            self._error("wired-and-given", f"{name} is wired and has a value", remedy, name)
        if slot.kind in (SlotKind.COLLECT, SlotKind.STREAM):
            message = f"{name} takes the items of a fan-out, not a value"
            self._error("needs-edge", message, _how_to_give(slot), name)
            return value
        return self._coerced(slot, value)

    def _coerced(self, slot: InputSlot, value: object) -> object:
        annotation: Any = list[slot.type] if slot.kind is SlotKind.MANY else slot.type  # type: ignore[name-defined]
        takes = f"{slot.name} takes {type_text(annotation)}"
        if isinstance(value, SecretRef):
            if assignable(str, annotation) is False:
                remedy = "give the secret to a slot that takes text"
                self._error("property-type", f"{takes}, but a secret is text", remedy, slot.name)
            return value
        try:
            made = Checker(annotation).coerce(value)
        except Misfit as error:
            remedy = _how_to_mend(value, annotation)
            said = str(error).removeprefix(f"expected {type_text(annotation)}, ")
            joined = f"{takes}, {said}" if said != str(error) else f"{takes}: {said}"
            self._error("property-type", joined, remedy, slot.name)
            return value
        if not _can_be_written(made):
            remedy = "give it through a run input or a step of its own"
            message = f"{slot.name} has a value that JSON cannot hold"
            self._error("property-type", message, remedy, slot.name)
        return made

    def _unknown(self, name: str) -> None:
        if name in CODE_ONLY:
            message, remedy = code_only(name)
            self._error("code-only", message, remedy, name)
            return
        remedy = suggestion(name, [*self._type.inputs, *NODE_KEYS], what="slots")
        self._error("unknown-slot", f"{self._type.name} has no slot {name!r}", remedy, name)


def _how_to_give(slot: InputSlot) -> str:
    if slot.kind is SlotKind.COLLECT:
        return f"wire it: {slot.name}: $node[]"
    if slot.kind is SlotKind.STREAM:
        return f"wire it: {slot.name}: $node"
    return f"give it a value ({type_text(slot.type)}) or wire it: {slot.name}: $node"


def _how_to_mend(value: object, annotation: Any) -> str:
    if value is None:
        return "remove the line to leave it out, or write a value"
    if isinstance(value, (bool, int, float)) and assignable(str, annotation) is True:
        return f'put it in quotes: "{json.dumps(value)}"'
    if assignable(list[type(value)], annotation) is True:  # type: ignore[misc]
        return "put it in a list: [ … ]"
    return ""


def _can_be_written(value: object) -> bool:
    """Whether a property has a canonical form: files are no place for live objects."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415

    if value is None or isinstance(value, (str, bool, int)):
        return True
    try:
        to_jsonable_python(value)
        json.dumps(json_value(value), allow_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False
    return True


def _check_outputs(workflow: Workflow, findings: Findings, lines: Mapping[str, int | None]) -> None:
    for name, place in (workflow.outputs or {}).items():
        node_id, _, slot = place.rpartition(".")
        node_type = workflow.types.get(node_id)
        if node_type is None:
            continue
        known = [*node_type.outputs, *node_type.projections]
        if slot not in known:
            findings.error(
                "unknown-output",
                f"output {name!r}: {node_id} puts out no {slot!r}",
                suggestion(slot, known, what="slots"),
                line=lines.get(f"outputs.{name}"),
            )


def _owners(workflow: Workflow) -> Mapping[str, tuple[str, str]]:
    """For each engine node, the author's node and slot that first asked for it."""
    leads_to: dict[str, tuple[str, str]] = {}
    for edge in workflow.edges:
        if mark_of(edge.source):
            leads_to.setdefault(edge.source, (edge.target, edge.target_slot))
    found: dict[str, tuple[str, str]] = {}
    for node_id, first in leads_to.items():
        target = first
        while target[0] in leads_to:
            target = leads_to[target[0]]
        found[node_id] = target
    return found
