"""Where the nodes of a workflow stand in a drawing: layers, and an order in each.

A node's layer is the longest way to it from a source; within a layer, file order holds.

Read next: `grouping.py`, `draw.py`, `routes.py`, `svg.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import TIES
from nightwarden.spec.grouping import Layers, columns, grouped
from nightwarden.spec.names import FANS, mark_of
from nightwarden.spec.scopes import analyse, control_root
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow

CONTROLLED: Final = control_root("")


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing's plan. `layers` hold node ids, and subworkflows as groups of them; `columns` ids
    only. Nodes in a circle stand in the last one."""

    layers: Layers
    columns: Sequence[Sequence[str]]
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
    circular = [node_id for node_id in nodes if node_id not in set(analysis.order)]
    layers = [*grouped(analysis.order, incoming), *([circular] if circular else [])]
    return Layout(layers, columns(layers), analysis.scopes, nodes, incoming)


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


def slot_text(edge: EdgeSpec) -> str:
    """The slot an edge leads to; a tie says what the node goes with."""
    return "with" if edge.target_slot in TIES else edge.target_slot


def root_text(root: str) -> str:
    """How often something below a root runs: for each item of a fan-out, or control event."""
    if root.endswith(CONTROLLED):
        return f"for each event that controls {root.removesuffix(CONTROLLED)}"
    return f"for each item of {node_text(root)}"


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
