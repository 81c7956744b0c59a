"""Inlining: a subworkflow's nodes take its place, and nothing of it is left but their ids.

    sub: {text: $page, lang: en}      page ─▶ sub.text          sub.words ─▶ row
    inner: inputs.text ─▶ a.text      page ─▶ sub/a.text
           inputs.lang ─▶ a.lang      sub/a has the property lang = en
           outputs: words: $a         sub/a.output ─▶ row

What is wired to an input is wired to every slot the input leads to; a default becomes what
those slots fall back on. A value that is given becomes a property there. Where that says too
little, since a list has others in it, or since the slot takes anything and the value's type
would be forgotten, it becomes a node of its own: `sub/inputs.lang`, a `flow.Value`.

Read next: `ties.py`, `check.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nightwarden.spec.catalog import MISSING, Catalog, InputSlot, NodeType, Role, SlotKind
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.findings import Findings
from nightwarden.spec.generics import VALUE, input_types
from nightwarden.spec.names import ENGINE_OUTPUT
from nightwarden.spec.refs import literal
from nightwarden.spec.subworkflow import Place, run_outputs
from nightwarden.spec.ties import Part
from nightwarden.spec.workflow import (
    INPUTS,
    WITHIN,
    EdgeSpec,
    InputSpec,
    NodeSpec,
    Origin,
    SecretRef,
    Workflow,
    json_value,
)

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
        splice = _Splice(workflow, node, inners[node.id], wires[node.id], catalog, findings)
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


class _Splice:
    """One subworkflow's nodes and edges, as they stand in the outer workflow."""

    def __init__(
        self,
        outer: Workflow,
        node: NodeSpec,
        inner: Workflow,
        wires: Sequence[EdgeSpec],
        catalog: Catalog,
        findings: Findings,
    ) -> None:
        self.nodes: list[NodeSpec] = []
        self.edges: list[EdgeSpec] = []
        self.types: dict[str, NodeType] = {}
        self.excused: set[tuple[str, str]] = set()
        self._outer = outer
        self._node = node
        self._inner = inner
        self._catalog = catalog
        self._findings = findings
        self._inputs = {spec.name: spec for spec in inner.inputs}
        self._declared = input_types(inner)
        self._wires: dict[str, list[EdgeSpec]] = {}
        for wire in wires:
            origin = Origin(outer.file, wire.line, node.id, wire.target_slot)
            self._wires.setdefault(wire.target_slot, []).append(replace(wire, origin=origin))
        self._into: dict[str, list[EdgeSpec]] = defaultdict(list)
        self._properties: dict[str, dict[str, object]] = {}
        self._origins: dict[str, dict[str, Origin]] = {}
        self._loose: set[str] = set()

    def run(self) -> None:
        """Fill `nodes`, `edges`, `types` and `excused`."""
        for node in self._inner.nodes:
            self._properties[node.id] = dict(node.properties)
            self._origins[node.id] = {s: self._within(o) for s, o in node.origins.items()}
            found = self._catalog.find(node.type) or self._inner.types.get(node.id)
            if found is not None:
                self.types[self._name(node.id)] = found
        for edge in self._inner.edges:
            if edge.kind == "data":
                self._into[edge.target].append(edge)
        for edge in self._inner.edges:
            self._edge(edge)
        for node in self._inner.nodes:
            self.nodes.append(
                replace(
                    node,
                    id=self._name(node.id),
                    properties=self._properties[node.id],
                    file=node.file or self._inner.file,
                    origins=self._origins[node.id],
                )
            )

    def part(self) -> Part:
        """What was inlined, for placing it."""
        return Part(
            self._node,
            frozenset(self.types),
            {name: edges[0] for name, edges in self._wires.items()},
            frozenset(self._loose),
        )

    def _name(self, node_id: str) -> str:
        return f"{self._node.id}{WITHIN}{node_id}"

    def _within(self, origin: Origin) -> Origin:
        return replace(origin, node=self._name(origin.node))

    def _edge(self, edge: EdgeSpec) -> None:
        if edge.source != INPUTS:
            self.edges.append(
                replace(
                    edge,
                    source=self._name(edge.source),
                    target=self._name(edge.target),
                    origin=None if edge.origin is None else self._within(edge.origin),
                )
            )
            return
        spec, slot = self._inputs[edge.source_slot], self._slot(edge)
        if slot is not None and slot.accepts_absent:
            self._loose.add(spec.name)
        if spec.name in self._wires:
            self._wired(edge, spec, slot)
        elif spec.name in self._node.properties:
            self._given(edge, spec, slot, self._node.properties[spec.name])
        elif spec.default is not MISSING:
            self._given(edge, spec, slot, spec.default)
        else:
            self.excused.add((self._name(edge.target), edge.target_slot))

    def _slot(self, edge: EdgeSpec) -> InputSlot | None:
        node_type = self._inner.types.get(edge.target)
        return None if node_type is None else node_type.input(edge.target_slot)

    def _wired(self, edge: EdgeSpec, spec: InputSpec, slot: InputSlot | None) -> None:
        target = self._name(edge.target)
        for wire in self._wires[spec.name]:
            self.edges.append(replace(wire, target=target, target_slot=edge.target_slot))
        only_runs = all(wire.source == INPUTS for wire in self._wires[spec.name])
        plain = slot is not None and slot.kind is SlotKind.PLAIN
        if spec.default is not MISSING and plain and not only_runs:
            self._put(edge, spec.default)

    def _given(
        self, edge: EdgeSpec, spec: InputSpec, slot: InputSlot | None, value: object
    ) -> None:
        if slot is None or self._stands_alone(edge, slot, value):
            self._put(edge, value)
        elif isinstance(value, SecretRef):
            self._findings.error(
                "secret-in-value",
                f"{spec.name} is a secret, and {self._name(edge.target)} would make it part of "
                f"a value at {edge.target_slot}",
                "give the secret to an input that leads to slots of its own only",
                line=self._node.line_of(spec.name),
                node=self._node.id,
                slot=spec.name,
            )
            self.excused.add((self._name(edge.target), edge.target_slot))
        else:
            self.edges.append(
                replace(
                    edge,
                    source=self._value_node(spec, value),
                    source_slot=ENGINE_OUTPUT,
                    target=self._name(edge.target),
                    origin=self._origin(spec.name),
                )
            )

    def _stands_alone(self, edge: EdgeSpec, slot: InputSlot, value: object) -> bool:
        """Whether a value can be a property of the slot an edge leads to."""
        node_type = self._inner.types[edge.target]
        edges = [e for e in self._into[edge.target] if e.target_slot == edge.target_slot]
        if len(edges) > 1 or slot.kind is SlotKind.MANY:
            return False
        if node_type.role is Role.LOOP or node_type.join == "any":
            return False  # what a loop begins with, or a merge counts, has to arrive
        if not isinstance(value, SecretRef) and self._others_have_defaults(edge):
            return False  # they count on something that has arrived
        if isinstance(value, SecretRef):
            return True
        raw = self.types[self._name(edge.target)].input(edge.target_slot)
        return raw is not None and _can_be_read_back(value, raw.type)

    def _others_have_defaults(self, edge: EdgeSpec) -> bool:
        """Whether another wired slot of a node may fall back on its default."""
        slots = [
            self._slot(other)
            for other in self._into[edge.target]
            if other.target_slot != edge.target_slot and other.source != INPUTS
        ]
        return any(slot is not None and not slot.required for slot in slots)

    def _put(self, edge: EdgeSpec, value: object) -> None:
        self._properties[edge.target][edge.target_slot] = value
        origin = self._origin(edge.source_slot)
        if origin is not None:
            self._origins[edge.target][edge.target_slot] = origin

    def _origin(self, name: str) -> Origin | None:
        """Where an input is given from outside; None for its own default."""
        if name not in self._node.properties:
            return None
        return Origin(self._outer.file, self._node.line_of(name), self._node.id, name)

    def _value_node(self, spec: InputSpec, value: object) -> str:
        """The node that gives a value of its own, made when it is first needed."""
        node_id = self._name(f"{INPUTS}.{spec.name}")
        if node_id not in self.types:
            found = self._catalog.find(VALUE)
            if found is None:
                message = f"there is no node type {VALUE!r}, which a value given here needs"
                self._findings.error("unknown-type", message, line=self._node.line, node=node_id)
            else:
                self.types[node_id] = found
            origin = self._origin(spec.name)
            self.nodes.append(
                NodeSpec(
                    id=node_id,
                    type=VALUE,
                    properties={"value": value, "of": spec.type},
                    line=self._node.line_of(spec.name),
                    file="" if origin is not None else self._inner.file,
                    origins={} if origin is None else {"value": origin},
                )
            )
        return node_id


def _can_be_read_back(value: object, annotation: Any) -> bool:
    """Whether a slot would make the same of a value's canonical form as of the value itself."""
    checker = Checker(annotation)
    try:
        made = checker.coerce(value)
        text = json.dumps(json_value(value))
        again = checker.coerce(literal(json.loads(text)))
    except (Misfit, ValueError, TypeError):
        return True  # it does not fit anyway, and the slot says so
    return type(made) is type(again) and made == again
