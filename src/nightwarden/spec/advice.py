"""What a workflow's author should know although it runs: the warnings of `validate`.

    unused-input      an input nothing is wired to
    cannot-resume     a fan-out that may not run twice: a stopped run cannot go on past it
    not-stored        a value no record can keep, of a step that may not run twice
    holds-all-items   per-item work that waits for something made of all items: they all wait

The last one follows how a fan-out is held back. A root pauses while too many of its items are
outstanding; here every item is, so the engine has to let all of them in.

Read next: `scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.findings import Findings
from nightwarden.spec.scopes import Analysis, edge_scope
from nightwarden.spec.storing import unstored
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow


def advise(
    workflow: Workflow,
    analysis: Analysis,
    findings: Findings,
    lines: Mapping[str, int | None],
    led_inside: Set[str] = frozenset(),
) -> None:
    """Add the warnings for a workflow without errors. `lines` has those of `inputs.NAME`.

    `led_inside` are inputs that lead into a subworkflow, whether or not it uses them. What is
    the matter inside a subworkflow is said where its own file is checked.
    """
    _unused_inputs(workflow, findings, lines, led_inside)
    _cannot_resume(workflow, findings)
    _not_stored(workflow, findings)
    _holds_all_items(workflow, analysis, findings)


def _unused_inputs(
    workflow: Workflow,
    findings: Findings,
    lines: Mapping[str, int | None],
    led_inside: Set[str],
) -> None:
    used = {edge.source_slot for edge in workflow.edges if edge.source == INPUTS} | led_inside
    for spec in workflow.inputs:
        if spec.name not in used:
            findings.warn(
                "unused-input",
                f"nothing is wired to input {spec.name!r}",
                f"remove it, or use it: $inputs.{spec.name}",
                line=lines.get(f"{INPUTS}.{spec.name}"),
            )


def _cannot_resume(workflow: Workflow, findings: Findings) -> None:
    for node in workflow.nodes:
        node_type = workflow.types[node.id]
        # What the engine runs itself it does again with what is on record.
        own = node_type.engine_owned
        may_run_twice = own or node_type.retry_safe or node_type.idempotent_by
        if node_type.fans_out and not may_run_twice and not node.file:
            findings.warn(
                "cannot-resume",
                f"{node_type.name} fans out and does not promise that it may run twice, "
                "so a run that stops inside it cannot be resumed past it",
                "if it is safe, say so in its code: @node(retry_safe=True)",
                line=node.line,
                node=node.id,
            )


def _not_stored(workflow: Workflow, findings: Findings) -> None:
    for node, slot in unstored(workflow):
        if not node.file:
            kind = type_text(workflow.types[node.id].outputs[slot].type)
            findings.warn(
                "not-stored",
                f"no record can keep a {kind}, and {node.type} does not promise that it may run "
                "twice, so a run that stops after it cannot be resumed past it",
                "put out plain data, a dataclass or a model; or if it is safe, say so in its code: "
                "@node(retry_safe=True)",
                line=node.line,
                node=node.id,
                slot=slot,
            )


def _holds_all_items(workflow: Workflow, analysis: Analysis, findings: Findings) -> None:
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data":
            incoming[edge.target].append(edge)
    lines = {node.id: node.line for node in workflow.nodes}
    inside = {node.id for node in workflow.nodes if node.file}
    awaited: dict[str, frozenset[Scope]] = {}
    for node_id in analysis.order:
        slots = {edge: _reach(edge, workflow, analysis) for edge in incoming[node_id]}
        late = {edge: _closings(edge, workflow, analysis, awaited) for edge in slots}
        awaited[node_id] = frozenset[Scope]().union(*late.values())
        for edge, scope in slots.items():
            held = next((e for e in late if e is not edge and scope in late[e] and scope), None)
            if held is not None and (node_id not in inside or _drawn_here(workflow, held, edge)):
                findings.warn(
                    "holds-all-items",
                    f"{held.target_slot} is made of all items of {scope[-1]}, and each of them "
                    f"waits for it at {edge.target_slot}: all are held in memory until then",
                    "this is fine while they fit",
                    line=held.line or lines[node_id],
                    node=node_id,
                    slot=held.target_slot,
                )
                break


def _drawn_here(workflow: Workflow, *edges: EdgeSpec) -> bool:
    """Whether one of these edges leads into a subworkflow of this very file."""
    return any(e.origin is not None and e.origin.file == workflow.file for e in edges)


def _reach(edge: EdgeSpec, workflow: Workflow, analysis: Analysis) -> Scope:
    """The fan-out whose items wait at an edge, until the node's other inputs are there."""
    slot = workflow.types[edge.target].input(edge.target_slot)
    if slot is not None and slot.kind is SlotKind.COLLECT:
        return ()
    return edge_scope(edge, workflow, analysis.scopes)


def _closings(
    edge: EdgeSpec,
    workflow: Workflow,
    analysis: Analysis,
    awaited: Mapping[str, frozenset[Scope]],
) -> frozenset[Scope]:
    """The fan-outs that have to end before anything comes over an edge."""
    slot = workflow.types[edge.target].input(edge.target_slot)
    found = awaited.get(edge.source, frozenset())
    if slot is None or slot.kind not in (SlotKind.COLLECT, SlotKind.STREAM):
        return found
    streams_on = slot.kind is SlotKind.STREAM and workflow.types[edge.target].fans_out
    scope = edge_scope(edge, workflow, analysis.scopes)
    return found if streams_on else found | {scope}
