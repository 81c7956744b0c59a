"""A workflow as a node: what it looks like from outside.

    inputs of the inner workflow    are slots: declared type, default
    its run outputs, by name        are output slots: `$sub.name`, or `$sub` where there is one

From outside it is checked like any node; then it is inlined, and no such node is left.

Read next: `inline.py`, `nested.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from nightwarden.spec.catalog import InputSlot, NodeType, OutputSlot, Projection
from nightwarden.spec.generics import input_types
from nightwarden.spec.workflow import Workflow

SUBWORKFLOW: Final = "flow.Subworkflow"
FILE: Final = "workflow"
"""The slot of a subworkflow that names its file."""

Place = tuple[str, str]
"""A node and one of its output slots."""


def signature(inner: Workflow) -> NodeType:
    """The node type a workflow is, from outside."""
    types = input_types(inner)
    places = run_outputs(inner)
    return NodeType(
        name=SUBWORKFLOW,
        inputs={
            spec.name: InputSlot(
                name=spec.name,
                type=types[spec.name],
                default=spec.default,
                doc=spec.description,
            )
            for spec in inner.inputs
        },
        outputs={
            name: OutputSlot(name=name, type=_type_of(place, inner))
            for name, place in places.items()
        },
        projections=dict(_projections(places, inner)),
        doc=inner.description,
    )


def run_outputs(workflow: Workflow) -> dict[str, Place]:
    """The outputs of a workflow by name: those it names, else all slots nothing is wired to.

    Such a slot is called like its node, or `node.slot` where the node has several of them.
    """
    if workflow.outputs is not None:
        named = {name: text.rpartition(".") for name, text in workflow.outputs.items()}
        return {name: (node, slot) for name, (node, _, slot) in named.items()}
    open_slots = list(_unconnected(workflow))
    counts = Counter(node for node, _ in open_slots)
    return {
        node if counts[node] == 1 else f"{node}.{slot}": (node, slot) for node, slot in open_slots
    }


def _unconnected(workflow: Workflow) -> Iterator[Place]:
    used: set[Place] = set()
    for edge in workflow.edges:
        if edge.kind == "data" and edge.source in workflow.types:
            used.add((edge.source, base_slot(workflow.types[edge.source], edge.source_slot)))
    for node in workflow.nodes:
        if node.id in workflow.types:
            for slot in workflow.types[node.id].outputs:
                if (node.id, slot) not in used:
                    yield node.id, slot


def base_slot(node_type: NodeType, slot: str) -> str:
    """The output slot a name stands for: itself, or the one it is a field of."""
    projection = node_type.projections.get(slot)
    return slot if projection is None or slot in node_type.outputs else projection.slot


def _type_of(place: Place, inner: Workflow) -> Any:
    node_type = inner.types[place[0]]
    found = node_type.outputs.get(place[1]) or node_type.projections.get(place[1])
    return Any if found is None else found.type


def _projections(places: Mapping[str, Place], inner: Workflow) -> Iterator[tuple[str, Projection]]:
    """The fields of what the only output puts out."""
    if len(places) == 1:
        ((output, (node, slot)),) = places.items()
        for name, projection in inner.types[node].projections.items():
            if projection.slot == slot and name != output:
                yield name, replace(projection, slot=output)
