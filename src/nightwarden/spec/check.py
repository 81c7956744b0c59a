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
