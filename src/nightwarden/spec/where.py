"""Under which fan-outs what an edge carries lies.

Read next: `scopes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import FEEDBACK, NodeType, Role
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow


def slot_streams(node_type: NodeType, slot: str) -> bool:
    """Whether values of this output slot or projection come one a frame."""
    projection = node_type.projections.get(slot)
    found = node_type.outputs.get(projection.slot if projection else slot)
    return found is not None and found.stream


def control_root(node_id: str) -> str:
    """The name of the root a controlled node makes of its control events."""
    return f"{node_id}()"


def controllers(workflow: Workflow, node_id: str) -> list[str]:
    """The nodes that control this one, each once, in edge order."""
    found = [e.source for e in workflow.edges if e.kind == "control" and e.target == node_id]
    return list(dict.fromkeys(found))


def edge_scope(edge: EdgeSpec, workflow: Workflow, scopes: Mapping[str, Scope]) -> Scope:
    """The scope of what an edge carries."""
    if edge.source == INPUTS:
        return ()
    scope = scopes[edge.source]
    if slot_streams(workflow.types[edge.source], edge.source_slot):
        return (*scope, edge.source)
    return scope


def is_feedback(edge: EdgeSpec, workflow: Workflow) -> bool:
    """Whether an edge leads from a loop's body back into the loop."""
    target = workflow.types.get(edge.target)
    return target is not None and target.role is Role.LOOP and edge.target_slot in FEEDBACK
