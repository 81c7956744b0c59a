"""Reaching into a value by name: what templates and expressions may see of it.

Keys of mappings and public fields of records; never methods, attributes of classes,
or anything that begins with an underscore.

Read next: `_templates.py`, `_expressions.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


def part(value: object, name: str) -> object:
    """The entry or field `name` of a value. Raises `LookupError` that says what there is."""
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise LookupError(f"no {name!r} in it, there is {_listed(value)}")
    names = field_names(value)
    if name in names and not name.startswith("_"):
        return getattr(value, name)
    if names:
        raise LookupError(f"no {name!r} in it, there is {_listed(names)}")
    raise LookupError(f"no {name!r} in it, it is a {type(value).__name__} without parts")


def field_names(value: object) -> tuple[str, ...]:
    """The fields of a record (dataclass, NamedTuple, pydantic model, msgspec struct), else none."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    for attribute in ("_fields", "__struct_fields__", "__pydantic_fields__"):
        names = getattr(kind, attribute, None)
        if isinstance(names, (tuple, Mapping)):
            return tuple(map(str, names))
    return ()


def _listed(names: Mapping[object, object] | tuple[str, ...]) -> str:
    shown = [str(name)[:40] for name in list(names)[:12]]
    return ", ".join(shown) + (" …" if len(names) > len(shown) else "") or "nothing"
