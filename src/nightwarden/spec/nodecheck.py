"""What can be said about one node alone: the values at its slots, what is missing, its label.

Values become values of the declared types here, once, for all doors.

Read next: `checker.py`, `check.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any

from nightwarden.spec.assign import assignable
from nightwarden.spec.catalog import InputSlot, NodeType, SlotKind
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.findings import Findings, nearest, suggestion
from nightwarden.spec.mentions import in_label, mentioned
from nightwarden.spec.nodefile import CODE_ONLY, NODE_KEYS, code_only
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import WITHIN, EdgeSpec, NodeSpec, SecretRef, json_value

Slots = Set[tuple[str, str]]
"""Slots of nodes, as (node, slot)."""


class NodeCheck:
    """What can be said about one node alone."""

    def __init__(
        self,
        node: NodeSpec,
        node_type: NodeType,
        edges: Sequence[EdgeSpec],
        findings: Findings,
    ) -> None:
        self._node = node
        self._type = node_type
        self._wired = {edge.target_slot: edge for edge in edges}
        self._findings = findings

    def properties(self) -> dict[str, object]:
        """The values at the node's slots, made what the slots ask for; others left as they are."""
        return {slot: self._property(slot, v) for slot, v in self._node.properties.items()}

    def missing(self, excused: Slots) -> None:
        """Report slots that need a value and have none."""
        for slot in self._type.inputs.values():
            given = slot.name in self._node.properties or slot.name in self._wired
            if slot.required and not given and (self._node.id, slot.name) not in excused:
                self._error(
                    "missing-slot",
                    f"{slot.name} needs a value",
                    _how_to_give(slot),
                    slot.name,
                )

    def mentions(self, excused: Slots) -> None:
        """Report texts that name an input the node does not have, as an expression may."""
        known = self._known() | {slot for node, slot in excused if node == self._node.id}
        for slot in self._type.inputs.values():
            text = self._node.properties.get(slot.name)
            for name in sorted(mentioned(slot.type, text) - known):
                near = nearest(name, known - {slot.name})
                remedy = f"did you mean {near!r}?" if near else f"give it here: {name}: $node"
                message = f"{slot.name} names {name!r}, and no such input is given"
                self._error("unknown-name", message, remedy, slot.name)

    def label(self) -> None:
        """Report a label that names what the node does not take."""
        if self._node.label is None:
            return
        try:
            names = in_label(self._node.label)
        except ValueError as error:
            remedy = "write {slot} for a value, {{ and }} for braces"
            self._error("bad-label", f"the label cannot be read: {error}", remedy)
            return
        for name in sorted(names - self._known()):
            remedy = suggestion(name, self._known(), what="slots")
            self._error("bad-label", f"the label names {name!r}, which is no slot", remedy)

    def _known(self) -> Set[str]:
        """The inputs there are: those of the type, and further ones that are wired or given."""
        return {*self._type.inputs, *self._wired, *self._node.properties}

    def _error(self, rule: str, message: str, remedy: str = "", slot: str = "") -> None:
        edge = self._wired.get(slot)
        line = edge.line if edge is not None and edge.line else self._node.line_of(slot)
        self._findings.error(rule, message, remedy, line=line, node=self._node.id, slot=slot)

    def _property(self, name: str, value: object) -> object:
        slot = self._type.input(name)
        if slot is None:
            self._unknown(name)
            return value
        if name in self._wired and WITHIN not in self._node.id:
            remedy = "remove the value, or the edge"
            self._error("wired-and-given", f"{name} is wired and has a value", remedy, name)
        if slot.kind in (SlotKind.COLLECT, SlotKind.STREAM):
            message = f"{name} takes the items of a fan-out, not a value"
            self._error("needs-edge", message, _how_to_give(slot), name)
            return value
        return self._coerced(slot, value)

    def _coerced(self, slot: InputSlot, value: object) -> object:
        annotation: Any = list[slot.type] if slot.kind is SlotKind.MANY else slot.type  # type: ignore[name-defined]
        takes = f"{slot.name} takes {type_text(annotation)}"
        if isinstance(value, SecretRef):
            if assignable(str, annotation) is False:
                remedy = "give the secret to a slot that takes text"
                self._error("property-type", f"{takes}, but a secret is text", remedy, slot.name)
            return value
        try:
            made = Checker(annotation).coerce(value)
        except Misfit as error:
            remedy = _how_to_mend(value, annotation)
            said = str(error).removeprefix(f"expected {type_text(annotation)}, ")
            joined = f"{takes}, {said}" if said != str(error) else f"{takes}: {said}"
            self._error("property-type", joined, remedy, slot.name)
            return value
        if not _can_be_written(made):
            remedy = "give it through a run input or a step of its own"
            message = f"{slot.name} has a value that JSON cannot hold"
            self._error("property-type", message, remedy, slot.name)
        return made

    def _unknown(self, name: str) -> None:
        if name in CODE_ONLY:
            message, remedy = code_only(name)
            self._error("code-only", message, remedy, name)
            return
        remedy = suggestion(name, [*self._type.inputs, *NODE_KEYS], what="slots")
        self._error("unknown-slot", f"{self._type.name} has no slot {name!r}", remedy, name)


def _how_to_give(slot: InputSlot) -> str:
    if slot.kind is SlotKind.COLLECT:
        return f"wire it: {slot.name}: $node[]"
    if slot.kind is SlotKind.STREAM:
        return f"wire it: {slot.name}: $node"
    return f"give it a value ({type_text(slot.type)}) or wire it: {slot.name}: $node"


def _how_to_mend(value: object, annotation: Any) -> str:
    if value is None:
        return "remove the line to leave it out, or write a value"
    if isinstance(value, (bool, int, float)) and assignable(str, annotation) is True:
        return f'put it in quotes: "{json.dumps(value)}"'
    if assignable(list[type(value)], annotation) is True:  # type: ignore[misc]
        return "put it in a list: [ … ]"
    return ""


def _can_be_written(value: object) -> bool:
    """Whether a property has a canonical form: files are no place for live objects."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415

    if value is None or isinstance(value, (str, bool, int)):
        return True
    try:
        to_jsonable_python(value)
        json.dumps(json_value(value), allow_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False
    return True
