"""Record types: classes whose values have declared fields.

Dataclasses, NamedTuples, TypedDicts, pydantic models and msgspec structs. Their fields can be
wired one by one (`$page.url`).

Read next: `types.py`.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, NotRequired, Required, get_args, get_origin

_REQUIREMENTS = (Required, NotRequired)


def record_fields(annotation: Any) -> dict[str, Any]:
    """The public fields of a record type (dataclass, NamedTuple, TypedDict, model, struct).

    Empty for every other type: what has no declared fields cannot be wired by them.
    """
    if not is_record(annotation):
        return {}
    hints = typing.get_type_hints(annotation, include_extras=True)
    return {n: h for n, h in hints.items() if not n.startswith("_") and n != "model_config"}


def is_typed_dict(annotation: object) -> bool:
    """Whether it is a TypedDict class, of `typing` or of `typing_extensions`."""
    return isinstance(annotation, type) and hasattr(annotation, "__required_keys__")


def typed_dict_keys(cls: Any) -> dict[str, tuple[Any, bool]]:
    """The keys of a TypedDict: the type of each, and whether it has to be there.

    `__required_keys__` alone is wrong before 3.14 where annotations are postponed.
    """
    found: dict[str, tuple[Any, bool]] = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        needed = name in cls.__required_keys__
        plain = hint
        while get_origin(plain) in _REQUIREMENTS:
            needed = get_origin(plain) is Required
            plain = get_args(plain)[0]
        found[name] = (plain, needed)
    return found


def is_named_tuple(annotation: object) -> bool:
    """Whether it is a NamedTuple class."""
    return (
        isinstance(annotation, type)
        and issubclass(annotation, tuple)
        and hasattr(annotation, "_fields")
    )


def is_record(annotation: object) -> bool:
    """Whether it is a class whose instances carry declared fields."""
    return isinstance(annotation, type) and (
        dataclasses.is_dataclass(annotation)
        or is_named_tuple(annotation)
        or is_typed_dict(annotation)
        or hasattr(annotation, "__pydantic_fields__")
        or hasattr(annotation, "__struct_fields__")
    )
