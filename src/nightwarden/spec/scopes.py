"""Static analysis: under which fan-outs every node and slot lies.

A node's scope follows from what reaches it:

    plain, Many   the scope of the edge
    Collect       the scope of the edge without its innermost root: one list a parent
    Stream        likewise, and all of them alike: the node lies right above what it reads

The longest of these is the node's scope; each of the others must be a prefix of it, and
is then broadcast. What a fan-out streams lies one root deeper: the fan-out itself.

    urls ─()─▶ urls[*] ─(urls[*])─▶ fetch ─(urls[*])─▶ table.rows  Collect ─▶ table ()

Computed once, when a workflow is loaded. Read next: `kernel/plan.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightwarden.errors import Problem
from nightwarden.lineage import Scope
from nightwarden.spec import scope_problems as wrong
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.loops import loop_problems
from nightwarden.spec.where import (
    control_root,
    controllers,
    edge_scope,
    is_feedback,
    slot_streams,
)
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow


@dataclass(frozen=True, slots=True)
class Analysis:
    """What static analysis found. `order` is topological, file order where free.

    Nodes that could not be placed (in a cycle, of unknown type) are in neither.
    """

    scopes: Mapping[str, Scope]
    order: tuple[str, ...]
    problems: tuple[Problem, ...]


def analyse(workflow: Workflow) -> Analysis:
    """Place every node; report cycles and inputs that cannot be joined."""
    order, problems = _topological(workflow)
    scopes: dict[str, Scope] = {}
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data" and not is_feedback(edge, workflow):
            incoming[edge.target].append(edge)
    specs = {node.id: node for node in workflow.nodes}
    placed = []
    for node_id in order:
        edges = incoming[node_id]
        control = controllers(workflow, node_id)
        sources = [e.source for e in edges if e.source != INPUTS] + control
        if node_id not in workflow.types or any(s not in scopes for s in sources):
            continue
        scope = _place(specs[node_id], edges, workflow, scopes, problems)
        if control:
            scope = _controlled(specs[node_id], scope, control, workflow, scopes, problems)
        scopes[node_id] = scope
        placed.append(node_id)
    problems += loop_problems(workflow, scopes)
    return Analysis(scopes, tuple(placed), tuple(problems))


def _controlled(
    node: NodeSpec,
    data: Scope,
    control: Sequence[str],
    workflow: Workflow,
    scopes: Mapping[str, Scope],
    problems: list[Problem],
) -> Scope:
    """A controlled node runs once a control event; its data inputs are broadcast to them."""
    above = scopes[control[0]]
    for other in control[1:]:
        if scopes[other] != above:
            problems.append(
                wrong.unequal_controllers(node, control[0], above, other, scopes[other], workflow)
            )
    if workflow.types[node.id].reads:
        problems.append(wrong.controlled_reader(node, workflow))
    if above[: len(data)] != data:
        problems.append(wrong.controlled_too_deep(node, data, above, workflow))
    return (*above, control_root(node.id))


def _place(
    node: NodeSpec,
    edges: Sequence[EdgeSpec],
    workflow: Workflow,
    scopes: Mapping[str, Scope],
    problems: list[Problem],
) -> Scope:
    longest: tuple[Scope, EdgeSpec | None] = ((), None)
    contributions: list[tuple[Scope, EdgeSpec]] = []
    collected: dict[str, Scope] = {}
    read: Scope | None = None
    node_type = workflow.types[node.id]
    for edge in edges:
        slot = node_type.input(edge.target_slot)
        if slot is None:
            continue
        scope = edge_scope(edge, workflow, scopes)
        if slot.kind in (SlotKind.COLLECT, SlotKind.STREAM):
            if not scope:
                problems.append(wrong.nothing_to_collect(node, edge, slot.kind, workflow))
                continue
            before = collected.setdefault(edge.target_slot, scope)
            if before != scope:
                problems.append(wrong.unequal_edges(node, edge, before, scope, workflow))
                continue
            scope = scope[:-1]
        if slot.kind is SlotKind.STREAM:
            if read is not None and read != scope:
                problems.append(wrong.unequal_streams(node, edge, read, scope, workflow))
                continue
            read = scope
        contributions.append((scope, edge))
        if len(scope) > len(longest[0]) or longest[1] is None:
            longest = (scope, edge)
    for scope, edge in contributions:
        if longest[0][: len(scope)] != scope:
            problems.append(wrong.not_prefixes(node, longest, (scope, edge), workflow))
    if read is not None and len(longest[0]) > len(read):
        problems.append(wrong.reader_too_deep(node, longest, read, workflow))
        return read
    return longest[0]


def _topological(workflow: Workflow) -> tuple[list[str], list[Problem]]:
    """Node ids in an order in which sources come first (Kahn), and a problem a cycle."""
    ids = [node.id for node in workflow.nodes]
    known = set(ids)
    after: dict[str, list[str]] = defaultdict(list)
    waiting = dict.fromkeys(ids, 0)
    pairs = {
        (e.source, e.target)
        for e in workflow.edges
        if e.source in known and not is_feedback(e, workflow)
    }
    for source, target in sorted(pairs):
        if target in known:
            after[source].append(target)
            waiting[target] += 1
    ready = [i for i in ids if waiting[i] == 0]
    order: list[str] = []
    while ready:
        current = ready.pop(0)
        order.append(current)
        for target in after[current]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    left = {i for i in ids if waiting[i] > 0}
    return order, [wrong.cycle(cycle, workflow) for cycle in _cycles(left, after)]


def _cycles(left: set[str], after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """A shortest circle for each knot among the nodes that no order could place.

    A node that only hangs below a circle is in no knot.
    """
    cycles: list[list[str]] = []
    told: set[str] = set()
    for start in sorted(left):
        if start not in told and (cycle := _way_back(start, after)):
            cycles.append(cycle)
            told |= {i for i in left if _leads(start, i, after) and _leads(i, start, after)}
    return cycles


def _way_back(start: str, after: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from a node to itself, without its end; empty if there is none."""
    came_from: dict[str, str] = {}
    ahead = [start]
    for current in ahead:
        for target in after.get(current, ()):
            if target == start:
                path = [current]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if target not in came_from:
                came_from[target] = current
                ahead.append(target)
    return []


def _leads(source: str, target: str, after: Mapping[str, Sequence[str]]) -> bool:
    seen, ahead = {source}, [source]
    for current in ahead:
        if current == target:
            return True
        fresh = [t for t in after.get(current, ()) if t not in seen]
        seen.update(fresh)
        ahead += fresh
    return False


__all__ = [
    "Analysis",
    "analyse",
    "control_root",
    "controllers",
    "edge_scope",
    "is_feedback",
    "slot_streams",
]
