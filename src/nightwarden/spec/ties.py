"""Where the nodes of an inlined subworkflow lie: at least where the subworkflow lies.

Inlined, each node follows what is wired to it. That is not enough for some:

    it follows nothing          it would run once for the whole run, whatever branch was taken
    it follows a broadcast      it would run once, where its subworkflow runs once an item
    it falls back on a default  nothing of its own says that the subworkflow takes place

Such a node gets *ties*: edges from what is wired to the subworkflow, into a slot that carries
no value. They settle like any other: what is lost or failed prunes the node, and one of them
must have come. A tie to an input that a node inside can do without (it accepts ABSENT) is loose.

Read next: `inline.py`, `scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwarden.lineage import Scope
from nightwarden.spec import scope_problems as wrong
from nightwarden.spec.catalog import LOOSE_TIE, TIE, TIES, NodeType
from nightwarden.spec.findings import Findings
from nightwarden.spec.scopes import analyse, controllers, edge_scope, is_feedback
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow


@dataclass(frozen=True, slots=True)
class Part:
    """An inlined subworkflow: as it was drawn, its nodes, and the edges that led into it.

    `loose` names the inputs some node inside can do without.
    """

    node: NodeSpec
    members: frozenset[str]
    wires: Mapping[str, EdgeSpec]
    loose: frozenset[str]


def tied(workflow: Workflow, parts: Sequence[Part], findings: Findings) -> Workflow:
    """The workflow with all ties its parts need. Reports a part whose inputs cannot be joined."""
    refused: set[str] = set()
    while True:
        analysis = analyse(workflow)
        placed = [part for part in parts if part.node.id not in refused]
        for part in placed:
            if not _joins(part, workflow, analysis.scopes, findings):
                refused.add(part.node.id)
        ties = [
            tie
            for part in placed
            if part.node.id not in refused
            for tie in _Ties(part, workflow, analysis.scopes).missing()
        ]
        if not ties:
            return workflow
        edges = (*workflow.edges, *ties)
        workflow = replace(workflow, edges=edges, types=with_ties(workflow.types, edges))


def with_ties(types: Mapping[str, NodeType], edges: Sequence[EdgeSpec]) -> dict[str, NodeType]:
    """The node types, those of tied nodes with the slots their ties lead into."""
    found = dict(types)
    for edge in edges:
        node_type = found.get(edge.target)
        if edge.target_slot in TIES and node_type is not None:
            slots = {**node_type.inputs, edge.target_slot: TIES[edge.target_slot]}
            found[edge.target] = replace(node_type, inputs=slots)
    return found


def _joins(part: Part, workflow: Workflow, scopes: Mapping[str, Scope], findings: Findings) -> bool:
    """Whether everything wired to a subworkflow lies in one place, as for any node."""
    found = [(scope, wire) for wire, scope in _placed(part, workflow, scopes).values()]
    longest = max(found, key=lambda pair: len(pair[0]), default=None)
    for scope, wire in found:
        assert longest is not None
        if longest[0][: len(scope)] != scope:
            findings.extend([wrong.not_prefixes(part.node, longest, (scope, wire), workflow)])
            return False
    return True


def _placed(
    part: Part, workflow: Workflow, scopes: Mapping[str, Scope]
) -> dict[str, tuple[EdgeSpec, Scope]]:
    """What is wired to a part and can be absent or come once an item, with its scope."""
    return {
        name: (wire, edge_scope(wire, workflow, scopes))
        for name, wire in part.wires.items()
        if wire.source != INPUTS and wire.source in scopes
    }


class _Ties:
    """The ties one part lacks."""

    def __init__(self, part: Part, workflow: Workflow, scopes: Mapping[str, Scope]) -> None:
        self._part = part
        self._workflow = workflow
        self._scopes = scopes
        self._wires = _placed(part, workflow, scopes)
        self._scope = max((scope for _, scope in self._wires.values()), key=len, default=())
        self._incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
        for edge in workflow.edges:
            inside = edge.kind == "data" and edge.target in part.members
            if inside and not is_feedback(edge, workflow):
                self._incoming[edge.target].append(edge)

    def missing(self) -> Iterator[EdgeSpec]:
        if self._wires:
            for node in self._workflow.nodes:
                if node.id in self._part.members:
                    for name in self._needed(node):
                        yield self._tie(node, name)

    def _follows_a_member(self, node: NodeSpec) -> bool:
        sources = [edge.source for edge in self._incoming[node.id]]
        sources += controllers(self._workflow, node.id)
        return any(source in self._part.members for source in sources)

    def _needed(self, node: NodeSpec) -> Sequence[str]:
        """The inputs a node has to be tied to."""
        edges = self._incoming[node.id]
        followed = {_source(edge) for edge in edges if edge.source != INPUTS}
        others = {n: scope for n, (w, scope) in self._wires.items() if _source(w) not in followed}
        first = [name for name, scope in others.items() if scope == self._scope]
        if self._follows_a_member(node):
            broadcast = [w for w, scope in self._wires.values() if scope != self._scope]
            leans = any(_source(wire) in followed for wire in broadcast)
            return first if leans and self._has_defaults(node, edges) else ()
        scope = self._scopes.get(node.id, self._scope)
        if followed and scope[: len(self._scope)] != self._scope:
            return first
        falls_back = any(edge.target_slot in node.properties for edge in edges)
        return list(others) if falls_back or not followed else ()

    def _has_defaults(self, node: NodeSpec, edges: Sequence[EdgeSpec]) -> bool:
        slots = [self._workflow.types[node.id].input(edge.target_slot) for edge in edges]
        return any(slot is not None and not slot.required for slot in slots)

    def _tie(self, node: NodeSpec, name: str) -> EdgeSpec:
        wire = self._wires[name][0]
        slot = LOOSE_TIE if name in self._part.loose else TIE
        return replace(wire, target=node.id, target_slot=slot)


def _source(edge: EdgeSpec) -> tuple[str, str]:
    return edge.source, edge.source_slot
