"""The rules for loops: what leads back into one, and what may not lead from its end into it.

Read next: `scopes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightwarden.errors import Problem
from nightwarden.lineage import Scope
from nightwarden.spec import scope_problems as wrong
from nightwarden.spec.catalog import Role, SlotKind
from nightwarden.spec.where import edge_scope, is_feedback, slot_streams
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow


def loop_problems(workflow: Workflow, scopes: Mapping[str, Scope]) -> list[Problem]:
    """What is wrong with the ways back into loops, and with the ways out of them."""
    problems = []
    loops = [n for n in workflow.nodes if n.id in scopes and workflow.types[n.id].role is Role.LOOP]
    data = [e for e in workflow.edges if e.kind == "data" and not is_feedback(e, workflow)]
    # What a loop ends with hangs on what is fed back into it, as on any other input.
    arrows = [(e.source, e.target) for e in data]
    arrows += [
        (back.source, out.target)
        for node in loops
        for back in workflow.edges_into(node.id)
        if is_feedback(back, workflow)
        for out in _outward(node, data, workflow, scopes)
    ]
    for node in loops:
        feedback = [e for e in workflow.edges_into(node.id) if is_feedback(e, workflow)]
        inside = (*scopes[node.id], node.id)
        for edge in feedback:
            if edge.source == INPUTS or edge.source in scopes:
                scope = edge_scope(edge, workflow, scopes)
                if scope != inside:
                    problems.append(wrong.bad_feedback(node, edge, scope, inside, workflow))
        outward = _outward(node, data, workflow, scopes)
        problems += _exits_into_body(node, feedback, outward, arrows, workflow)
    return problems


def _outward(
    node: NodeSpec, data: Sequence[EdgeSpec], workflow: Workflow, scopes: Mapping[str, Scope]
) -> list[EdgeSpec]:
    """The edges that carry something only when a loop has ended."""
    inside = (*scopes[node.id], node.id)
    return [
        e
        for e in data
        if e.source in scopes
        and e.target in scopes
        and (
            (e.source == node.id and not slot_streams(workflow.types[node.id], e.source_slot))
            or (edge_scope(e, workflow, scopes) == inside and _gathers(e, workflow))
        )
    ]


def _exits_into_body(
    node: NodeSpec,
    feedback: Sequence[EdgeSpec],
    outward: Sequence[EdgeSpec],
    arrows: Sequence[tuple[str, str]],
    workflow: Workflow,
) -> list[Problem]:
    """Edges that carry what a loop ends with back into its own body: it would wait for itself."""
    body = _reach({e.source for e in feedback}, [(target, source) for source, target in arrows])
    return [
        wrong.problem(
            wrong.place_of(workflow.node(e.target), e, workflow),
            rule="loop-exit-into-body",
            message=f"this is known only when the loop {node.id} has ended, "
            "yet the loop's next iteration depends on it",
            remedy=f"use it after the loop, or feed the body from {node.id}.value",
        )
        for e in outward
        if _reach({e.target}, arrows) & body
    ]


def _reach(start: set[str], arrows: Sequence[tuple[str, str]]) -> set[str]:
    found, ahead = set(start), list(start)
    while ahead:
        current = ahead.pop()
        for source, target in arrows:
            if source == current and target not in found:
                found.add(target)
                ahead.append(target)
    return found


def _gathers(edge: EdgeSpec, workflow: Workflow) -> bool:
    slot = workflow.types[edge.target].input(edge.target_slot)
    return slot is not None and slot.kind in (SlotKind.COLLECT, SlotKind.STREAM)
