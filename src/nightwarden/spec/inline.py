"""Inlining: a subworkflow's nodes take its place, and nothing of it is left but their ids.

    sub: {text: $page, lang: en}      page ─▶ sub.text          sub.words ─▶ row
    inner: inputs.text ─▶ a.text      page ─▶ sub/a.text
           inputs.lang ─▶ a.lang      sub/a has the property lang = en
           outputs: words: $a         sub/a.output ─▶ row

Read next: `splice.py`, `ties.py`, `check.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from nightwarden.spec.catalog import Catalog
from nightwarden.spec.findings import Findings
from nightwarden.spec.splice import Splice
from nightwarden.spec.subworkflow import Place, run_outputs
from nightwarden.spec.ties import Part
from nightwarden.spec.workflow import WITHIN, EdgeSpec, NodeSpec, Workflow

MOST_NODES: Final = 10_000
"""How many nodes a workflow may have once its subworkflows are inlined."""


@dataclass(slots=True)
class Inlined:
    """A workflow without subworkflows. `excused` are slots that lack what was reported outside."""

    workflow: Workflow
    parts: list[Part] = field(default_factory=list)
    excused: set[tuple[str, str]] = field(default_factory=set)


def inline(
    workflow: Workflow, inners: Mapping[str, Workflow], catalog: Catalog, findings: Findings
) -> Inlined:
    """Put the nodes of each inner workflow, by node id, in the place of the node."""
    if not _fits(workflow, inners, findings):
        return Inlined(replace(workflow, nodes=(), edges=(), outputs=None))
    places = {
        (node_id, name): (f"{node_id}{WITHIN}{place[0]}", place[1])
        for node_id, inner in inners.items()
        for name, place in _outputs_and_fields(inner).items()
    }
    found = Inlined(workflow)
    wires = _wires(workflow, inners, places, found.excused)
    nodes: list[NodeSpec] = []
    edges: list[EdgeSpec] = []
    types = {n: t for n, t in workflow.types.items() if n not in inners}
    for node in workflow.nodes:
        if node.id not in inners:
            nodes.append(node)
            edges += wires[node.id]
            continue
        splice = Splice(workflow, node, inners[node.id], wires[node.id], catalog, findings)
        splice.run()
        nodes += splice.nodes
        edges += splice.edges
        types |= splice.types
        found.parts.append(splice.part())
        found.excused |= splice.excused
    found.workflow = replace(
        workflow,
        nodes=tuple(nodes),
        edges=tuple(edges),
        types=types,
        outputs=_outputs(workflow, places),
    )
    return found


def _fits(workflow: Workflow, inners: Mapping[str, Workflow], findings: Findings) -> bool:
    number = len(workflow.nodes) + sum(len(inner.nodes) for inner in inners.values())
    if number > MOST_NODES:
        findings.error(
            "too-large",
            f"with its subworkflows the workflow has {number:,} nodes; at most {MOST_NODES:,} "
            "can be inlined",
            "fan out over items instead of repeating steps",
        )
    return number <= MOST_NODES


def _outputs_and_fields(inner: Workflow) -> dict[str, Place]:
    """Where each output of an inner workflow comes from; fields of the only one included."""
    places = run_outputs(inner)
    fields: dict[str, Place] = {}
    if len(places) == 1:
        ((node, slot),) = places.values()
        projections = inner.types[node].projections
        fields = {name: (node, name) for name, p in projections.items() if p.slot == slot}
    return {**fields, **places}


def _wires(
    workflow: Workflow,
    inners: Mapping[str, Workflow],
    places: Mapping[Place, Place],
    excused: set[tuple[str, str]],
) -> Mapping[str, list[EdgeSpec]]:
    """The edges of the workflow by target; those from a subworkflow begin at a node inside."""
    found: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        source = (edge.source, edge.source_slot)
        if edge.source not in inners:
            found[edge.target].append(edge)
        elif source in places:
            node, slot = places[source]
            found[edge.target].append(replace(edge, source=node, source_slot=slot))
        else:
            excused.add((edge.target, edge.target_slot))
    return found


def _outputs(workflow: Workflow, places: Mapping[Place, Place]) -> Mapping[str, str] | None:
    """The run's outputs by name, as from outside: slots that stay inside are none of them."""
    named = run_outputs(workflow).items()
    found = {name: ".".join(places.get(place, place)) for name, place in named}
    return found or workflow.outputs
