"""Everything that can be known to be wrong with a workflow before it runs.

One check for all doors: YAML, JSON, an editor's file and Python get the same verdicts in the
same words. It also finishes the workflow: subworkflows are inlined, type variables are bound,
property values become values of the declared types.

    Draft ─▶ desugar ─▶ subworkflows ─▶ inline, tie ─▶ every node, edge, scope ─▶ Workflow
                        as nodes

Read next: `nodecheck.py`, `edges.py`, `inline.py`, `advice.py`, `scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, field, replace

from nightwarden.errors import Problem
from nightwarden.spec.advice import advise
from nightwarden.spec.catalog import Catalog
from nightwarden.spec.draft import Draft
from nightwarden.spec.edges import check_edges
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.generics import specialise
from nightwarden.spec.inline import inline
from nightwarden.spec.names import mark_of
from nightwarden.spec.nodecheck import NodeCheck, Slots
from nightwarden.spec.scopes import analyse, controllers
from nightwarden.spec.sugar import desugar
from nightwarden.spec.supervisors import read_supervisors
from nightwarden.spec.ties import tied
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Origin, Workflow

Lines = Mapping[str, int | None]
"""The lines of `inputs.NAME`, `outputs.NAME` and `supervisors.NAME`."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What was reported before, so that it is not said twice.

    `excused` slots lack what was left out; `about` are slots something is wrong with already.
    `used` are run inputs that lead into a subworkflow.
    """

    excused: Slots = frozenset()
    about: Slots = frozenset()
    used: Set[str] = field(default_factory=frozenset)


def assemble(draft: Draft, catalog: Catalog, findings: Findings) -> Workflow:
    """The finished workflow of a draft. What is wrong with it is among the findings."""
    workflow, excused = desugar(draft, catalog, findings)
    lines = {f"{INPUTS}.{i.spec.name}": i.line for i in draft.inputs}
    lines |= {f"outputs.{o.name}": o.line for o in draft.outputs or ()}
    lines |= draft.supervisor_lines
    nodes = {node.id: node for node in reversed(draft.nodes)}  # of two, the first is meant
    inners = {i: node.inner for i, node in nodes.items() if node.inner is not None}
    said = _Said(excused)
    if inners:
        workflow, said = _inlined(workflow, inners, catalog, findings, said, lines)
    return _settled(workflow, findings, said, lines)


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
    _settled(workflow, findings, _Said(), {})
    return findings.report()


def _inlined(
    workflow: Workflow,
    inners: Mapping[str, Workflow],
    catalog: Catalog,
    findings: Findings,
    said: _Said,
    lines: Lines,
) -> tuple[Workflow, _Said]:
    """Check subworkflows from outside, as the nodes they look like, and inline them."""
    found = Findings(findings.file)
    workflow = replace(workflow, types=specialise(workflow))
    incoming = _incoming(workflow)
    nodes = []
    for node in workflow.nodes:
        if node.id in inners:
            checks = NodeCheck(node, workflow.types[node.id], incoming[node.id], found)
            node = replace(node, properties=checks.properties())  # noqa: PLW2901
            checks.missing(said.excused)
        nodes.append(node)
    workflow = replace(workflow, nodes=tuple(nodes))
    check_edges(workflow, analyse(workflow), found, around=inners)
    _check_outputs(workflow, found, lines, inners)
    inlined = inline(workflow, inners, catalog, found)
    workflow = tied(inlined.workflow, inlined.parts, found)
    problems = found.report()
    findings.extend(problems)
    wires = [e for e in workflow.edges if e.source == INPUTS]
    wires += [wire for part in inlined.parts for wire in part.wires.values()]
    return workflow, _Said(
        excused=said.excused | inlined.excused,
        about={(problem.node, problem.slot) for problem in problems},
        used={edge.source_slot for edge in wires if edge.source == INPUTS},
    )


def _settled(workflow: Workflow, findings: Findings, said: _Said, lines: Lines) -> Workflow:
    found = Findings(findings.file)
    workflow = replace(workflow, types=specialise(workflow))
    incoming = _incoming(workflow)
    nodes = []
    for node in workflow.nodes:
        node_type = workflow.types.get(node.id)
        if node_type is not None:
            checks = NodeCheck(node, node_type, incoming[node.id], found)
            node = replace(node, properties=checks.properties())  # noqa: PLW2901
            if not controllers(workflow, node.id):  # whose events may set what it needs
                checks.missing(said.excused)
                checks.mentions(said.excused)
            checks.label()
        nodes.append(node)
    workflow = replace(workflow, nodes=tuple(nodes))
    analysis = analyse(workflow)
    check_edges(workflow, analysis, found)
    found.extend(analysis.problems)
    _check_outputs(workflow, found, lines)
    read_supervisors(workflow, found, lines)
    if not findings.failed and not found.failed:
        advise(workflow, analysis, found, lines, said.used)
    _put_in_place(workflow, found, said)
    findings.extend(found.report())
    findings.charge(_owners(workflow))
    return workflow


def _incoming(workflow: Workflow) -> Mapping[str, list[EdgeSpec]]:
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data":
            incoming[edge.target].append(edge)
    return incoming


def _put_in_place(workflow: Workflow, found: Findings, said: _Said) -> None:
    """Say of each problem where its author can mend it.

    What goes wrong at a slot inside a subworkflow because of what was given from outside is to be
    mended outside; anything else about a node inside, in the subworkflow's own file.
    """
    drawn: dict[tuple[str, str, int | None], Origin] = {}
    for edge in workflow.edges:
        if edge.origin is not None:
            drawn[edge.target, edge.target_slot, edge.line] = edge.origin
    nodes = {node.id: node for node in workflow.nodes}

    def outside(problem: Problem) -> Problem | None:
        node = nodes.get(problem.node)
        origin = drawn.get((problem.node, problem.slot, problem.line))
        if origin is None and node is not None:
            origin = node.origins.get(problem.slot)
        if origin is None:
            return problem
        moved = replace(
            problem, file=origin.file, line=origin.line, node=origin.node, slot=origin.slot
        )
        return None if (origin.node, origin.slot) in said.about else moved

    def inside(problem: Problem) -> Problem:
        node = nodes.get(problem.node)
        return problem if node is None or not node.file else replace(problem, file=node.file)

    found.relocate(outside)
    found.relocate(inside)
    found.charge(_owners(workflow))


def _check_outputs(
    workflow: Workflow, findings: Findings, lines: Lines, only: Container[str] | None = None
) -> None:
    """Report run outputs no node puts out; with `only`, those of these nodes."""
    for name, place in (workflow.outputs or {}).items():
        node_id, _, slot = place.rpartition(".")
        node_type = workflow.types.get(node_id)
        if node_type is None or (only is not None and node_id not in only):
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
            drawn = edge.origin
            place = (drawn.node, drawn.slot) if drawn else (edge.target, edge.target_slot)
            leads_to.setdefault(edge.source, place)
    found: dict[str, tuple[str, str]] = {}
    for node_id, first in leads_to.items():
        target = first
        while target[0] in leads_to:
            target = leads_to[target[0]]
        found[node_id] = target
    return found
