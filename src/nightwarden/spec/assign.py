"""Whether what one slot gives fits what another takes, as far as types can tell.

    True   every value of the source type fits: nothing to check when it arrives
    False  no value of it could: refused when the workflow is loaded
    None   it depends on the value: checked when it arrives

A mistake on the side of True would let a wrong value through, one on the side of False would
refuse a workflow that runs; where in doubt the answer is None. An element type that cannot
fit makes a list not fit, although an empty one would. Nothing is converted on the way: text is
no path, and a boolean is no number; whole numbers are good where a `float` is asked for.

Read next: `checker.py`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from nightwarden.spec.records import is_named_tuple, is_typed_dict, record_fields, typed_dict_keys
from nightwarden.spec.types import JsonShape

_DEEPEST = 16
_UNIONS = (Union, UnionType)
_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
_UNSURE_MODULES = ("decimal", "fractions", "numbers")
_JSON_SCALARS = (str, int, float, bool, NoneType)


def assignable(source: Any, target: Any) -> bool | None:
    """Whether values of type `source` fit a slot of type `target`; None where values decide."""
    try:
        return _assignable(source, target, 0)
    except (NameError, TypeError):  # an annotation that names what is not there
        return None


def _assignable(source: Any, target: Any, depth: int) -> bool | None:
    target, limits = _plain(target)
    if target in (Any, object) and not limits:
        return True
    source, source_limits = _plain(source)
    if depth > _DEEPEST:
        return None
    if any(isinstance(limit, JsonShape) for limit in limits):
        return True if limits == source_limits else _fits_json(source, depth)
    answer = _without_limits(source, target, depth)
    # A constraint on the target can only be met for sure by the very same constraint.
    return None if answer and limits and limits != source_limits else answer


def _without_limits(source: Any, target: Any, depth: int) -> bool | None:
    if isinstance(target, TypeVar):
        return True if target.__bound__ is None and not target.__constraints__ else None
    if source in (Any, object) or isinstance(source, TypeVar):
        return None
    if get_origin(source) in _UNIONS:
        return _each((_assignable(s, target, depth + 1) for s in get_args(source)), agree=True)
    if get_origin(target) in _UNIONS:
        return _some(_assignable(source, t, depth + 1) for t in get_args(target))
    if get_origin(source) is Literal:
        values = get_args(source)
        return _each((_literal_fits(v, target, depth) for v in values), agree=True)
    if get_origin(target) is Literal:
        return _fits_literal(source, get_args(target), depth)
    return _classes(source, target, depth)


def _plain(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type without its wrappers, and the constraints that stood in them."""
    limits: tuple[Any, ...] = ()
    while True:
        origin = get_origin(annotation)
        if annotation is None:
            return NoneType, limits
        if origin is Annotated:
            inner, *more = get_args(annotation)
            limits += tuple(m for m in more if not isinstance(m, str))
            annotation = inner
        elif getattr(origin, "_name", None) in _WRAPPERS:
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation, limits


def _each(answers: Iterable[bool | None], *, agree: bool = False) -> bool | None:
    """True if all are. With `agree`, False only if all are: one of several possible types fits."""
    found = list(answers)
    if all(found):
        return True
    if False in found and not (agree and any(answer is not False for answer in found)):
        return False
    return None


def _some(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    if True in found:
        return True
    return None if None in found else False


def _literal_fits(value: object, target: Any, depth: int) -> bool | None:
    if get_origin(target) is Literal:
        return any(value == v and type(value) is type(v) for v in get_args(target))
    return _assignable(type(value), target, depth + 1)


def _fits_literal(source: Any, values: tuple[object, ...], depth: int) -> bool | None:
    kinds = [_assignable(type(value), source, depth + 1) for value in values]
    return False if not any(kind is not False for kind in kinds) else None


def _fits_json(source: Any, depth: int) -> bool | None:
    """Whether values of a type are always, or never, what JSON can hold."""
    origin, arguments = get_origin(source) or source, get_args(source)
    if origin in _UNIONS:
        return _each((_fits_json(_plain(a)[0], depth + 1) for a in arguments), agree=True)
    if origin is Literal:
        return all(type(value) in _JSON_SCALARS for value in arguments) or None
    if origin in _JSON_SCALARS:
        # A float may be infinite, which JSON cannot say.
        return None if origin is float else True
    if origin is list and arguments:
        return _each([_assignable(arguments[0], Annotated[Any, JsonShape()], depth + 1)])
    if origin is dict and arguments and arguments[0] is str:
        return _each([_assignable(arguments[1], Annotated[Any, JsonShape()], depth + 1)])
    return None


def _classes(source: Any, target: Any, depth: int) -> bool | None:
    source_class, target_class = get_origin(source) or source, get_origin(target) or target
    if not isinstance(source_class, type) or not isinstance(target_class, type):
        return None
    if target_class is object:
        return True
    if source_class is bool and target_class in (int, float, complex):
        return False
    if source_class is int and target_class is bool:
        return False
    if source_class is int and target_class is float:
        return True
    if target_class is type or getattr(target_class, "_is_protocol", False):
        return None if target_class is type else _abstract(source_class, target_class)
    if target_class.__module__ in _UNSURE_MODULES and source_class in (int, float):
        return None
    if is_typed_dict(target_class):
        return _fits_typed_dict(source, target_class, depth)
    if issubclass(source_class, (str, bytes)) and target_class in _ITEMS:
        # A text is a sequence of texts to Python, but hardly what a slot for many means.
        return False if target_class in (abc.Sequence, list, tuple) else None
    if is_named_tuple(source_class) and target_class in _ITEMS[4:]:
        return None  # pydantic takes no NamedTuple for a Sequence
    if not _subclass(source_class, target_class):
        return None if _subclass(target_class, source_class) else False
    return _arguments(source, target, depth)


def _abstract(source_class: type, target_class: type) -> bool | None:
    return True if _subclass(source_class, target_class) else None


def _subclass(one: type, other: type) -> bool:
    try:
        return issubclass(one, other)
    except TypeError:  # a protocol that cannot be asked at run time, a TypedDict
        return False


_ITEMS = (
    list,
    set,
    frozenset,
    tuple,
    abc.Sequence,
    abc.MutableSequence,
    abc.Set,
    abc.MutableSet,
    abc.Collection,
    abc.Iterable,
    abc.Iterator,
    abc.Reversible,
    abc.Container,
)
_PAIRS = (dict, abc.Mapping, abc.MutableMapping)


def _arguments(source: Any, target: Any, depth: int) -> bool | None:
    """For a class that fits: whether its type arguments do."""
    wanted = get_args(target)
    target_class = get_origin(target) or target
    if not wanted:
        return True
    if target_class is tuple:
        return _tuples(source, wanted, depth)
    if target_class in _PAIRS:
        given: tuple[Any, ...] = _pair_types(source)
    elif target_class in _ITEMS:
        given = (_item_type(source),)
    else:
        given = get_args(source)
    if len(given) != len(wanted):
        return None
    answer = _each(_assignable(g, w, depth + 1) for g, w in zip(given, wanted, strict=True))
    known = target_class in _PAIRS or target_class in _ITEMS
    return answer if known or (answer is True and given == wanted) else None


def _item_type(source: Any) -> Any:
    arguments, source_class = get_args(source), get_origin(source) or source
    if source_class is tuple and arguments:
        return Union[tuple(a for a in arguments if a is not Ellipsis)]  # noqa: UP007
    if source_class in _PAIRS:
        return _pair_types(source)[0]
    return arguments[0] if len(arguments) == 1 and source_class in _ITEMS else Any


def _pair_types(source: Any) -> tuple[Any, Any]:
    arguments, source_class = get_args(source), get_origin(source) or source
    if is_typed_dict(source_class):
        values = tuple(hint for hint, _ in typed_dict_keys(source_class).values())
        return str, Union[values] if values else Any  # noqa: UP007
    if source_class in _PAIRS and len(arguments) == 2:
        return arguments[0], arguments[1]
    return Any, Any


def _tuples(source: Any, wanted: tuple[Any, ...], depth: int) -> bool | None:
    given = get_args(source)
    if is_named_tuple(source):
        given = tuple(record_fields(source).values())
    if not given:
        return None
    if wanted[-1] is Ellipsis:
        return _each(_assignable(g, wanted[0], depth + 1) for g in given if g is not Ellipsis)
    if given[-1] is Ellipsis:
        return None
    if len(given) != len(wanted):
        return False
    return _each(_assignable(g, w, depth + 1) for g, w in zip(given, wanted, strict=True))


def _fits_typed_dict(source: Any, target: type, depth: int) -> bool | None:
    source_class = get_origin(source) or source
    if source_class is target:
        return True
    if not is_typed_dict(source_class):
        return None if _subclass(source_class, dict) or _subclass(dict, source_class) else False
    has, wants = typed_dict_keys(source_class), typed_dict_keys(target)
    required = {key for key, (_, needed) in wants.items() if needed}
    promised = {key for key, (_, needed) in has.items() if needed}
    if not required <= set(has):
        return False
    answers = [_assignable(has[k][0], t, depth + 1) for k, (t, _) in wants.items() if k in has]
    return _each([*answers, True if required <= promised else None])
