"""The ledger of a meaning: what became of every item at every exit of its root.

    n(r, p) = delivered + not_taken + lost + left + failed        at every exit

An exit is an edge (collecting, reading, handing back to a loop, or broadcast into a longer
scope), a node (fanning out, or without outgoing edges) or a stream slot without edges. What
is lost before it reaches a reader stays that loss, whether or not the reader has left.

Read next: `graphs.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nightwarden.lineage import Lineage, Scope
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.scopes import (
    Analysis,
    analyse,
    control_root,
    controllers,
    edge_scope,
    is_feedback,
    slot_streams,
)
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow
from reference.words import Absent, Cause, Choices, Meaning, Settlement, Value

RUN = "run"

Exit = tuple[str, ...]
"""`("edge", number)`, `("node", id)` or `("slot", id, name)`."""

_AT_A_NODE = {
    "succeeded": "delivered",
    "repaired": "delivered",
    "ended early": "delivered",
    "skipped": "lost",
    "cancelled": "failed",
    "failed": "failed",
}


@dataclass(slots=True)
class Accounts:
    """`exits`: root and exit → parent → counts; `charged`: the same → intervention → items;
    `lost`: root → item that is lost at some exit → what it is charged to; `failed`: root →
    items that failed at some exit."""

    exits: dict[tuple[str, Exit], dict[Lineage, Counter[str]]] = field(default_factory=dict)
    charged: dict[tuple[str, Exit], Counter[Cause]] = field(default_factory=dict)
    lost: dict[str, dict[Lineage, Cause]] = field(default_factory=lambda: defaultdict(dict))
    failed: dict[str, set[Lineage]] = field(default_factory=lambda: defaultdict(set))


def edge_number(index: int) -> Exit:
    """The exit of the edge with this place in `Workflow.edges`."""
    return ("edge", str(index))


def exits_of(workflow: Workflow, analysis: Analysis) -> dict[str, list[Exit]]:
    """Where the items of every root end."""
    scopes = analysis.scopes
    found: dict[str, list[Exit]] = {RUN: []}
    found.update({control_root(n): [] for n in analysis.order if controllers(workflow, n)})
    found.update({n: [] for n in analysis.order if workflow.types[n].fans_out})
    for index, edge in enumerate(workflow.edges):
        if edge.kind != "data":
            continue
        slot = workflow.types[edge.target].input(edge.target_slot)
        scope = edge_scope(edge, workflow, scopes)
        assert slot is not None
        gathers = slot.kind in (SlotKind.COLLECT, SlotKind.STREAM) or is_feedback(edge, workflow)
        if gathers or len(scope) < len(scopes[edge.target]):
            found[_innermost(scope)].append(edge_number(index))
    used = {(e.source, _base(workflow, e)) for e in workflow.edges if e.kind == "data"}
    for node_id in analysis.order:
        node_type = workflow.types[node_id]
        terminal = not any(node_id == source for source, _ in used)
        if node_type.fans_out or terminal:
            found[_innermost(scopes[node_id])].append(("node", node_id))
        for name in node_type.outputs:
            if slot_streams(node_type, name) and (node_id, name) not in used:
                found[node_id].append(("slot", node_id, name))
    return found


def accounts(workflow: Workflow, meaning: Meaning) -> Accounts:
    """Count every item at every exit of its root."""
    analysis = analyse(workflow)
    place = {node_id: i for i, node_id in enumerate(analysis.order)}
    result = Accounts()
    for root, exits in exits_of(workflow, analysis).items():
        for way_out in exits:
            parents = result.exits.setdefault((root, way_out), {})
            charged = result.charged.setdefault((root, way_out), Counter())
            for parent, item in _items(meaning, root):
                word, absent = _at_exit(workflow, meaning, way_out, item)
                parents.setdefault(parent, Counter())[word] += 1
                if word == "failed":
                    result.failed[root].add(item)
                if word == "lost":
                    assert absent is not None
                    cause = charge(absent.interventions, place)
                    before = result.lost[root].get(item, cause)
                    result.lost[root][item] = charge((before, cause), place)
                    charged[cause] += 1
    return result


def charge(interventions: Iterable[Cause], place: Mapping[str, int]) -> Cause:
    """The first intervention on the way, in topological order."""
    return min(interventions, key=lambda c: (place[c.node], c.lineage))


def unlawful_cuts(workflow: Workflow, meaning: Meaning, choices: Choices) -> list[str]:
    """Fan-outs that were cut short though somebody would still have taken an item."""
    exits = exits_of(workflow, analyse(workflow))
    found = []
    for node_id, parent in choices.cuts:
        for way_out in exits[node_id]:
            reading = None
            if way_out[0] == "edge":
                edge = workflow.edges[int(way_out[1])]
                reading = meaning.readings.get((edge.target, parent, edge.target_slot))
            if reading is None or reading.ended:
                found.append(f"{node_id} under {parent}: {way_out} has not left")
    return found


def _innermost(scope: Scope) -> str:
    return scope[-1] if scope else RUN


def _base(workflow: Workflow, edge: EdgeSpec) -> str:
    if edge.source == INPUTS:
        return edge.source_slot
    projection = workflow.types[edge.source].projections.get(edge.source_slot)
    return projection.slot if projection else edge.source_slot


def _items(meaning: Meaning, root: str) -> Iterator[tuple[Lineage, Lineage]]:
    if root == RUN:
        yield (), ()
        return
    for (node_id, parent), closing in meaning.closings.items():
        if node_id == root:
            yield from ((parent, (*parent, i)) for i in range(closing.n))


def _at_exit(
    workflow: Workflow, meaning: Meaning, way_out: Exit, item: Lineage
) -> tuple[str, Absent | None]:
    match way_out:
        case ("node", node_id):
            ending = meaning.endings[node_id, item]
            word = _AT_A_NODE.get(ending.word)
            if word is None:
                assert ending.absent is not None
                word = ending.absent.kind.word
            return word, ending.absent
        case ("slot", node_id, name):
            return _own(meaning.slots[node_id, name][item])
        case _:
            edge = workflow.edges[int(way_out[1])]
            return _at_edge(workflow, meaning, edge, item)


def _at_edge(
    workflow: Workflow, meaning: Meaning, edge: EdgeSpec, item: Lineage
) -> tuple[str, Absent | None]:
    settled = meaning.slots[edge.source, edge.source_slot][item]
    reading = meaning.readings.get((edge.target, item[:-1], edge.target_slot)) if item else None
    if reading is not None and isinstance(settled, Value):
        into = [e for e in workflow.edges_into(edge.target) if e.target_slot == edge.target_slot]
        place = (item[-1], next(k for k, e in enumerate(into) if e is edge))
        if reading.places.index(place) >= reading.passed:
            return reading.rest, reading.cause
    return _own(settled)


def _own(settled: Settlement) -> tuple[str, Absent | None]:
    if isinstance(settled, Absent):
        return settled.kind.word, settled
    return "delivered", None
