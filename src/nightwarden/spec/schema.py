"""A JSON Schema of the workflow file, for editors that complete and check while one types.

It knows the node types of a catalog: which there are, what slots each has, what may stand at
them. It is a help, not the judge: what refers to what, scopes and most of the rules only
loading knows (`check.py`).

Read next: `shape.py`, `nodefile.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightwarden.spec.catalog import Catalog, InputSlot, NodeType, SlotKind
from nightwarden.spec.checker import Checker
from nightwarden.spec.supervisors import POLICIES
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import VERSION

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ID = "^[A-Za-z_][A-Za-z0-9_-]*$"
_REFERENCE: dict[str, Any] = {
    "type": "string",
    "pattern": r"^\$[A-Za-z_][A-Za-z0-9_-]*(\.[^.\[\]\s]+)?(\[\*?\])*$",
    "description": "$node, $node.slot, $inputs.NAME or $secrets.NAME; then [*] or []",
}
_RUN: dict[str, Any] = {
    "type": "object",
    "description": "How the step is run.",
    "properties": {
        "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds."},
        "concurrency": {"type": "integer", "minimum": 1, "description": "How many at a time."},
    },
    "additionalProperties": False,
}
_INPUT: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "description": "Its type: str, int, list[str], path, int? …"},
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "str, int, list[str], path, int? …"},
                "default": {"description": "Makes the input optional."},
                "description": {"type": "string"},
                "items": {"description": 'A list, or "@file" with an item a line.'},
            },
            "additionalProperties": False,
        },
    ]
}


def workflow_schema(catalog: Catalog) -> dict[str, Any]:
    """The schema of workflow files whose node types come from `catalog`."""
    found = ((name, catalog.find(name)) for name in catalog.names())
    types = {name: node_type for name, node_type in found if node_type is not None}
    definitions: dict[str, Any] = {"reference": _REFERENCE, "run": _RUN, "input": _INPUT}
    definitions["node"] = _node(types)
    for name, node_type in types.items():
        definitions[f"node:{name}"] = _node_type(name, node_type, definitions)
    return {
        "$schema": _DIALECT,
        "title": "Nightwarden workflow",
        "type": "object",
        "properties": _top_level(),
        "required": ["nodes"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _top_level() -> dict[str, Any]:
    named = {"type": "object"}
    listed = {
        "type": "array",
        "items": {
            "allOf": [{"$ref": "#/$defs/node"}],
            "properties": {"id": {"type": "string"}},
            "required": ["id"],
        },
    }
    return {
        "version": {"const": VERSION},
        "name": {"type": "string", "minLength": 1},
        "description": {"type": "string"},
        "inputs": {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": {"pattern": _ID},
                    "additionalProperties": {"$ref": "#/$defs/input"},
                },
                {"type": "array", "items": {"type": "object", "required": ["name"]}},
            ]
        },
        "outputs": {"type": ["object", "array"], "description": "Names and $node.slot."},
        "python": {"type": "array", "items": {"type": "string"}},
        "nodes": {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": {"pattern": _ID},
                    "additionalProperties": {"$ref": "#/$defs/node"},
                },
                listed,
            ]
        },
        "edges": {"type": "array", "items": _edge()},
        "supervisors": {**named, "additionalProperties": _supervisor()},
        "prompts": {**named, "additionalProperties": {"type": "string"}},
        "settings": named,
    }


def _supervisor() -> dict[str, Any]:
    """A steering supervisor; what is wrong with one is a warning, so nothing is forbidden here."""
    text, texts = {"type": "string"}, {"type": ["array", "string"], "items": {"type": "string"}}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {
            "watches": {**texts, "description": "Agent or judge nodes; none: the whole run."},
            "model": {**text, "description": "The model that thinks, as provider:name."},
            "system": {**text, "description": "The policy: a name from prompts."},
            "policy": {"enum": list(POLICIES), "description": "A policy that is shipped."},
            "cooldown": {"type": ["string", "number"], "description": "As in 45s."},
            "max_evals": {"type": "integer", "minimum": 1},
            "monitors": {**texts, "description": "As in event_type=tool_error,tool_name=Bash."},
            "boundaries": {"type": "boolean", "description": "Whether ends of turns wake it."},
            "cost_cap_usd": {"type": "number", "minimum": 0},
        },
    }


def _edge() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "source": text,
            "source_slot": text,
            "target": text,
            "target_slot": text,
            "kind": {"enum": ["data", "control"]},
        },
        "required": ["source", "target"],
        "additionalProperties": False,
    }


def _node(types: Mapping[str, NodeType]) -> dict[str, Any]:
    """A node: its type is one of those there are, and says which slots it has."""
    return {
        "type": "object",
        "properties": {"type": {"enum": list(types)}},
        "required": ["type"],
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/node:{name}"},
            }
            for name in types
        ],
    }


def _node_type(name: str, node_type: NodeType, definitions: dict[str, Any]) -> dict[str, Any]:
    several = node_type.join == "any"
    slots = {
        slot.name: _slot(f"{name}.{slot.name}", slot, definitions, several=several)
        for slot in node_type.inputs.values()
    }
    extra: object = False
    if node_type.extra is not None:
        extra = _slot(f"{name}.*", node_type.extra, definitions, several=several)
    own = {
        "id": {"type": "string"},
        "type": {"const": name, "description": node_type.doc},
        "label": {"type": "string", "description": "How an item is called, as in {url}."},
        "run": {"$ref": "#/$defs/run"},
        "controls": {"type": ["string", "array"]},
        "ui": {"type": "object"},
        "properties": {"type": "object", "properties": slots, "additionalProperties": extra},
    }
    return {"properties": {**slots, **own}, "additionalProperties": extra}


def _slot(
    place: str, slot: InputSlot, definitions: dict[str, Any], *, several: bool
) -> dict[str, Any]:
    """What may stand at a slot: a value of its type, or what is wired to it."""
    reference = {"$ref": "#/$defs/reference"}
    accepted: list[dict[str, Any]] = [reference]
    if several or slot.kind is not SlotKind.PLAIN:
        accepted.append({"type": "array", "items": reference})
    if slot.kind in (SlotKind.PLAIN, SlotKind.MANY):
        annotation: Any = list[slot.type] if slot.kind is SlotKind.MANY else slot.type  # type: ignore[name-defined]
        accepted.append(_hoisted(Checker(annotation).schema(), place, definitions))
    words = [slot.doc, f"Takes {type_text(slot.type)}."]
    return {"anyOf": accepted, "description": " ".join(word for word in words if word)}


def _hoisted(schema: dict[str, Any], place: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A type's schema with its own definitions moved to the top, under names of their own."""
    inner = schema.pop("$defs", {})
    for name, definition in inner.items():
        definitions[f"{place}:{name}"] = _renamed(definition, place)
    moved: dict[str, Any] = _renamed(schema, place)
    return moved


def _renamed(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        return {
            key: f"#/$defs/{place}:{part.removeprefix('#/$defs/')}"
            if key == "$ref" and isinstance(part, str)
            else _renamed(part, place)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_renamed(part, place) for part in value]
    return value
