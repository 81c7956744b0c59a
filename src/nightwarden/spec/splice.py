"""One subworkflow's nodes and edges, as they stand in the outer workflow.

What is wired to an input is wired to every slot the input leads to; a default becomes what
those slots fall back on. A value that is given becomes a property there, or, where that says
too little, a node of its own:

    beside a slot with a default, in a merge    a value counts there only if it comes
    a list over several edges                   it has its place among the others
    a slot that takes anything                  its type would be forgotten

Read next: `ties.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nightwarden.spec.catalog import MISSING, Catalog, InputSlot, NodeType, Role, SlotKind
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.findings import Findings
from nightwarden.spec.generics import VALUE
from nightwarden.spec.names import ENGINE_OUTPUT
from nightwarden.spec.refs import literal
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


class Splice:
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
            frozenset(n for n, spec in self._inputs.items() if spec.default is not MISSING),
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
        always_there = all(wire.source == INPUTS for wire in self._wires[spec.name])
        default = MISSING if always_there else spec.default
        single = slot is not None and self._is_single(edge, slot)
        falls_back = single and default is not MISSING
        if self._merges_inputs_only(edge.target) or (
            falls_back and not self._can_fall_back(edge, default)
        ):
            self._through_a_node(edge, spec, default)
            return
        target = self._name(edge.target)
        for wire in self._wires[spec.name]:
            self.edges.append(replace(wire, target=target, target_slot=edge.target_slot))
        if falls_back:
            self._put(edge, default)

    def _can_fall_back(self, edge: EdgeSpec, default: object) -> bool:
        return self._inner.types[edge.target].role is Role.NONE and self._keeps(edge, default)

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
            self._through_a_node(edge, spec, value)

    def _merges_inputs_only(self, node_id: str) -> bool:
        """Whether a merge node follows nothing that could say where it lies."""
        sources = {edge.source for edge in self._into[node_id]}
        return self._inner.types[node_id].join == "any" and sources == {INPUTS}

    def _through_a_node(self, edge: EdgeSpec, spec: InputSpec, value: object) -> None:
        """Lead an input through a node of its own; `value` is given, or what it falls back on."""
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
        if self._inner.types[edge.target].join == "any" or not self._is_single(edge, slot):
            return False
        if isinstance(value, SecretRef):
            return True
        return not self._others_have_defaults(edge) and self._keeps(edge, value)

    def _is_single(self, edge: EdgeSpec, slot: InputSlot) -> bool:
        """Whether nothing else leads into a slot, or could."""
        edges = [e for e in self._into[edge.target] if e.target_slot == edge.target_slot]
        return len(edges) == 1 and slot.kind is SlotKind.PLAIN

    def _keeps(self, edge: EdgeSpec, value: object) -> bool:
        """Whether a slot would make the same of a value once it has been written down."""
        slot = self.types[self._name(edge.target)].input(edge.target_slot)
        return slot is not None and _can_be_read_back(value, slot.type)

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
        if all(node.id != node_id for node in self.nodes):
            found = self._catalog.find(VALUE)
            if found is None:
                message = f"there is no node type {VALUE!r}, which a value given here needs"
                self._findings.error("unknown-type", message, line=self._node.line, node=node_id)
            else:
                self.types[node_id] = found
            origin = self._origin(spec.name)
            given = {} if value is MISSING else {"value": value}
            wires = self._wires.get(spec.name, ())
            self.edges += [replace(w, target=node_id, target_slot="value") for w in wires]
            self.nodes.append(
                NodeSpec(
                    id=node_id,
                    type=VALUE,
                    properties={**given, "of": spec.type},
                    line=None if origin is None else origin.line,
                    file=self._inner.file if origin is None else "",
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
