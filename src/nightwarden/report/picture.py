"""The graph of a recorded run, drawn from its record alone: no step's code is looked up.

Slots and fan-outs of steps that are not built in are inferred from what the record says: from
the edges of the definition, and from how many fan-outs each node lay under.

Read next: `spec/svg.py`, `spec/badges.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from nightwarden.events.words import list_of, mapping_of
from nightwarden.report.standing import NodeState
from nightwarden.spec.catalog import FEEDBACK, InputSlot, NodeType, OutputSlot, Role, SlotKind
from nightwarden.spec.names import CLOSES, FANS
from nightwarden.spec.scopes import analyse
from nightwarden.spec.svg import graph_svg
from nightwarden.spec.workflow import INPUTS, EdgeSpec, InputSpec, NodeSpec, Workflow

Plain = Mapping[str, Any]

MOST_NODES: Final = 200
"""A graph of more nodes is no picture any more."""

_ROLES: Final = {"flow.Zip": Role.ZIP, "flow.Cross": Role.CROSS, "flow.Loop": Role.LOOP}
_COLLECTS: Final = ("flow.Collect",)


def picture(definition: Plain, states: Iterable[NodeState]) -> str:
    """The graph as SVG with states and badges; empty where there is nothing to draw."""
    by_id = {state.node: state for state in states}
    workflow = drawn(definition, by_id)
    if not 0 < len(workflow.nodes) <= MOST_NODES:
        return ""
    return graph_svg(
        workflow,
        states={node.id: by_id[node.id].state for node in workflow.nodes},
        badges={node.id: by_id[node.id].badges for node in workflow.nodes},
    )


def innermost_roots(definition: Plain, states: Mapping[str, NodeState]) -> dict[str, str]:
    """The fan-out each node's items are items of; the run's own scope is left out."""
    scopes = analyse(drawn(definition, states)).scopes
    return {node: scope[-1] for node, scope in scopes.items() if scope}


def drawn(definition: Plain, states: Mapping[str, NodeState]) -> Workflow:
    """A workflow of the recorded shape: good for drawing, not for running."""
    nodes = tuple(
        NodeSpec(id=str(node.get("id")), type=str(node.get("type") or ""))
        for node in map(mapping_of, list_of(definition.get("nodes")))
        if node.get("id") and str(node.get("id")) in states
    )
    known = {node.id for node in nodes} | {INPUTS}
    edges = tuple(
        edge
        for edge in map(_edge, list_of(definition.get("edges")))
        if edge.source in known and edge.target in known
    )
    inputs = tuple(
        InputSpec(name=str(given.get("name")), type=str(given.get("type") or "json"))
        for given in map(mapping_of, list_of(definition.get("inputs")))
        if given.get("name")
    )
    named = {spec.name for spec in inputs}
    edges = tuple(e for e in edges if e.source != INPUTS or e.source_slot in named)
    return Workflow(
        name=str(definition.get("name") or "workflow"),
        nodes=nodes,
        edges=edges,
        inputs=inputs,
        types={node.id: _type(node, edges, states) for node in nodes},
    )


def _edge(given: object) -> EdgeSpec:
    edge = mapping_of(given)
    return EdgeSpec(
        source=str(edge.get("source") or ""),
        source_slot=str(edge.get("source_slot") or ""),
        target=str(edge.get("target") or ""),
        target_slot=str(edge.get("target_slot") or ""),
        kind="control" if edge.get("kind") == "control" else "data",
    )


def _type(node: NodeSpec, edges: Iterable[EdgeSpec], states: Mapping[str, NodeState]) -> NodeType:
    into = [e for e in edges if e.target == node.id and e.kind == "data"]
    slots = {e.source_slot for e in edges if e.source == node.id and e.kind == "data"}
    role = _ROLES.get(node.type, Role.NONE)
    fans_out = states[node.id].fans_out or node.id.endswith(FANS) or bool(role)
    outputs = slots or {"output"}
    return NodeType(
        name=node.type,
        inputs={e.target_slot: _slot(e, node, states) for e in into},
        outputs={s: OutputSlot(name=s, type=object, stream=fans_out) for s in sorted(outputs)},
        fans_out=fans_out,
        role=role,
    )


def _slot(edge: EdgeSpec, node: NodeSpec, states: Mapping[str, NodeState]) -> InputSlot:
    kind = SlotKind.COLLECT if _gathers(edge, node, states) else SlotKind.PLAIN
    return InputSlot(name=edge.target_slot, type=object, kind=kind)


def _gathers(edge: EdgeSpec, node: NodeSpec, states: Mapping[str, NodeState]) -> bool:
    """Whether what an edge carries lies under one fan-out more than the node it leads to."""
    if node.id.endswith(CLOSES) or node.type in _COLLECTS:
        return True
    if edge.source == INPUTS or (node.type in _ROLES and edge.target_slot in FEEDBACK):
        return False
    source, depth = states[edge.source], states[node.id].depth
    if source.depth is None or depth is None:
        return False
    fans = source.fans_out or edge.source.endswith(FANS)
    return source.depth + fans > depth
