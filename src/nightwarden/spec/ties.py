"""Where the nodes of an inlined subworkflow lie: at least where the subworkflow lies.

Inlined, each node follows what is wired to it. That is not enough for some:

    it follows nothing          it would run once for the whole run, whatever branch was taken
    it follows a broadcast      it would run once, where its subworkflow runs once an item
    it falls back on a default  nothing of its own says that the subworkflow takes place

Such a node gets *ties*: edges from what is wired to the subworkflow, into slots that carry no
value. It then joins as the subworkflow itself would, were it a node: it needs what is wired to
an input without a default, and can do without one that some node inside accepts as ABSENT. A
merge node that follows anything has no ties, since one of them would be enough for it: what it
follows has them.

Read next: `inline.py`, `scopes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwarden.lineage import Scope
from nightwarden.spec import scope_problems as wrong
from nightwarden.spec.catalog import TIES, NodeType, tie_name, tie_slot
from nightwarden.spec.findings import Findings
from nightwarden.spec.scopes import analyse, controllers, edge_scope, is_feedback
from nightwarden.spec.workflow import INPUTS, EdgeSpec, NodeSpec, Workflow


@dataclass(frozen=True, slots=True)
class Part:
    """An inlined subworkflow: as it was drawn, its nodes, and the edges that led into it.

    `optional` names the inputs with a default, `loose` those some node inside accepts as ABSENT.
    """

    node: NodeSpec
    members: frozenset[str]
    wires: Mapping[str, EdgeSpec]
    optional: frozenset[str]
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
    tied_ = {edge.target for edge in edges if edge.target_slot in TIES}
    for node_id in tied_ & found.keys():
        slots = [e.target_slot for e in edges if e.target == node_id and e.kind == "data"]
        ties = {name: tie_slot(name) for name in slots if name in TIES}
        node_type = found[node_id]
        join = "all" if len(ties) == len(slots) else node_type.join  # it needs all its ties
        found[node_id] = replace(node_type, inputs={**node_type.inputs, **ties}, join=join)
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
                if node.id in self._part.members and not self._merges(node.id):
                    for name in self._needed(node):
                        yield self._tie(node, name)

    def _merges(self, node_id: str) -> bool:
        edges = self._incoming[node_id]
        merge = self._workflow.types[node_id].join == "any"
        return merge and any(edge.target_slot not in TIES for edge in edges)

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
        part = self._part
        optional, loose = name in part.optional, name in part.loose
        slot = tie_name(part.node.id, name, optional=optional, loose=loose)
        return replace(self._wires[name][0], target=node.id, target_slot=slot)


def _source(edge: EdgeSpec) -> tuple[str, str]:
    return edge.source, edge.source_slot
