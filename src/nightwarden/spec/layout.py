"""Where the nodes of a workflow stand in a drawing: layers, and an order in each.

A node's layer is the longest way to it from a source; within a layer, file order holds.

Read next: `draw.py`, `routes.py`, `svg.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightwarden.lineage import Scope
from nightwarden.spec.names import FANS, mark_of
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing's plan. `layers` hold node ids; nodes in a circle stand in the last one."""

    layers: Sequence[Sequence[str]]
    scopes: Mapping[str, Scope]
    nodes: Mapping[str, NodeSpec]
    incoming: Mapping[str, Sequence[EdgeSpec]]


def lay_out(workflow: Workflow) -> Layout:
    """Plan the drawing of a workflow, whether it is valid or not."""
    analysis = analyse(workflow)
    nodes = {node.id: node for node in workflow.nodes}
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.target in nodes:
            incoming[edge.target].append(edge)
    depth: dict[str, int] = {}
    for node_id in analysis.order:
        sources = [depth[e.source] + 1 for e in incoming[node_id] if e.source in depth]
        depth[node_id] = max(sources, default=0)
    last = max(depth.values(), default=-1) + 1
    layers: list[list[str]] = [[] for _ in range(last + 1)]
    for node_id in [*analysis.order, *(i for i in nodes if i not in depth)]:
        layers[depth.get(node_id, last)].append(node_id)
    return Layout([layer for layer in layers if layer], analysis.scopes, nodes, incoming)


def source_text(edge: EdgeSpec, workflow: Workflow) -> str:
    """What an edge carries, as a workflow file would write it, without the dollar."""
    text = node_text(edge.source)
    if not mark_of(edge.source):
        node_type = workflow.types.get(edge.source)
        only = node_type is not None and list(node_type.outputs) == [edge.source_slot]
        text = (
            edge.source if only and edge.source != INPUTS else f"{edge.source}.{edge.source_slot}"
        )
    target = workflow.types.get(edge.target)
    slot = None
    if target is not None and not mark_of(edge.target):
        slot = target.input(edge.target_slot)
    return text + ("[]" if slot is not None and slot.kind == "collect" else "")


def node_text(node_id: str) -> str:
    """A node's name in a drawing: `inputs.urls[*]` and `row[]` for engine nodes."""
    if not mark_of(node_id):
        return node_id
    marks = node_id[node_id.index("[") :]
    return node_id.removesuffix(marks).removesuffix(".output") + marks


def type_words(node: NodeSpec) -> str:
    """What a node does, in its second line: its type, or words for an engine node."""
    mark = mark_of(node.id)
    if not mark:
        return node.type
    return "fan out" if mark == FANS else "collect"
