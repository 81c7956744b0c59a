"""Pydantic adapters for slot types, made when they are first needed.

Two questions want two adapters. Of a value that *arrives*, only what it is counts: pydantic
would accept a dict for a model and hand out a new object, but what travels on is the dict. So
record classes are checked by instance there. Of a value *written down* (a property, a repair)
the question is what can be made of it, and the classes are built.

Nothing here raises: a type pydantic knows nothing of has no adapter.

Read next: `checker.py`.
"""

from __future__ import annotations

import sys
import typing
from collections import abc
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from nightwarden.spec.records import is_record, is_typed_dict, typed_dict_keys

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_UNIONS = (Union, UnionType)
_LAZY = (abc.Iterable, abc.Iterator, abc.Generator, abc.AsyncIterable, abc.AsyncIterator)
_CONTAINERS = (list, dict, tuple, set, frozenset, abc.Sequence, abc.Mapping, abc.Set)


def arrival_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """An adapter that asks what a value is, never what could be made of it."""
    return _build(annotation, instances=True)


def building_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """An adapter that makes values of the type out of plain data."""
    return _build(annotation, instances=False)


def _build(annotation: Any, *, instances: bool) -> TypeAdapter[Any] | None:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415  (loaded when used)
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        written = _rewrite(annotation, instances, ())
        try:
            lenient = ConfigDict(arbitrary_types_allowed=True)
            return TypeAdapter(written, config=lenient)
        except PydanticUserError:  # a type that brings a configuration of its own
            return TypeAdapter(written)
    except Exception:  # an annotation is foreign code, and pydantic has many ways to refuse it
        return None


def _rewrite(annotation: Any, instances: bool, within: tuple[type, ...]) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, TypeVar):
        return Any
    if is_typed_dict(origin or annotation):
        return _modern_typed_dict(origin or annotation, instances, within)
    if instances and _by_instance(origin or annotation):
        return _instance_of(origin or annotation)
    if origin is Annotated:
        inner = _rewrite(arguments[0], instances, within)
        return Annotated[(inner, *annotation.__metadata__)]
    if origin in _UNIONS:
        return Union[tuple(_rewrite(a, instances, within) for a in arguments)]  # noqa: UP007
    if origin in _CONTAINERS:
        inner_types = tuple(
            a if a is Ellipsis else _rewrite(a, instances, within) for a in arguments
        )
        return origin[inner_types if len(inner_types) != 1 else inner_types[0]]
    return annotation


def _by_instance(cls: Any) -> bool:
    return isinstance(cls, type) and (is_record(cls) or cls in _LAZY)


def _instance_of(cls: type) -> Any:
    from pydantic import InstanceOf  # noqa: PLC0415  (loaded when used)

    made: Any = InstanceOf
    return made[cls]


def _modern_typed_dict(cls: Any, instances: bool, within: tuple[type, ...]) -> Any:
    """The same fields as a class pydantic can read: before 3.12 it refuses `typing.TypedDict`."""
    from typing_extensions import TypedDict  # noqa: PLC0415  (loaded when used)

    if cls in within:
        return dict[str, Any]
    if not typing.is_typeddict(cls) or sys.version_info >= (3, 12):
        return cls
    fields: dict[str, Any] = {}
    for name, (hint, needed) in typed_dict_keys(cls).items():
        written = _rewrite(hint, instances, (*within, cls))
        fields[name] = Required[written] if needed else NotRequired[written]
    made: Any = TypedDict
    return made(cls.__name__, fields)


def describable(annotation: Any) -> bool:
    """Whether plain data can be told to fit the type or not, and a value be made of it.

    False for what says nothing (`Any`, `object`, a type variable) and for types with a part
    that only code can make: a callable, an iterator, a class pydantic knows nothing of.
    """
    if _says_nothing(annotation) or _mentions_lazy(annotation):
        return False
    from pydantic import TypeAdapter  # noqa: PLC0415  (loaded when used)

    try:
        TypeAdapter(_rewrite(annotation, False, ())).json_schema()
    except Exception:  # see `_build`
        return False
    return True


def _says_nothing(annotation: Any) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        shaped = any(hasattr(m, "__get_pydantic_core_schema__") for m in annotation.__metadata__)
        return not shaped and _says_nothing(arguments[0])
    if origin in _UNIONS:
        return any(_says_nothing(a) for a in arguments)
    return annotation in (Any, object) or isinstance(annotation, TypeVar)


def _mentions_lazy(annotation: Any) -> bool:
    if (get_origin(annotation) or annotation) in _LAZY:
        return True
    return any(_mentions_lazy(a) for a in get_args(annotation) if not isinstance(a, list))
