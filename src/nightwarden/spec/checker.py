"""Checking values against one slot type.

    problems         of a value that arrives: is it one?            strict, no copies, fast
    coerce           of a property: what can be made of it?         lax, once, when loading
    strict_problems  of a repair: is it exactly that, to the end?   plain data, nothing forgiven

A boolean is no number. A whole number is good where a `float` is asked for. A type that
says nothing (`Any`), or that nobody can check, lets everything arrive, but no repair.

Read next: `adapt.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

from nightwarden.spec.adapt import arrival_adapter, building_adapter, describable
from nightwarden.spec.records import is_typed_dict
from nightwarden.spec.types import type_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_HALF = re.compile("[\ud800-\udfff]")
_MOST = 20
_DEEPEST = 100
_EXACT: Mapping[object, frozenset[type]] = {
    str: frozenset((str,)),
    bool: frozenset((bool,)),
    int: frozenset((int,)),
    float: frozenset((float, int)),
    bytes: frozenset((bytes,)),
    NoneType: frozenset((NoneType,)),
    None: frozenset((NoneType,)),
    dict: frozenset((dict,)),
    list: frozenset((list,)),
    tuple: frozenset((tuple,)),
}
_KINDS = {
    str: "text",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    NoneType: "nothing (null)",
    list: "a list",
    dict: "a mapping",
}
_OF_ITS_KIND = frozenset(
    (
        *("greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"),
        *("finite_number", "literal_error", "enum"),
    )
)
"""What is wrong with a value is not what it is, but which one."""
_PLAIN_WORDS = (
    ("a valid string", "text"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid list", "a list"),
    ("a valid array", "a list"),
    ("a valid dictionary", "a mapping"),
    ("an object", "a mapping"),
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    (", unable to interpret input", ""),
    (", got a number with a fractional part", ""),
    (" valid ", " "),
)


class Misfit(ValueError):
    """A value nothing of the wanted type can be made of; `problems` says why, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class Checker:
    """A compiled check for one type. Adapters are made on first use: making one costs 0.1 ms."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.anything = annotation in (Any, object) or isinstance(annotation, TypeVar)
        self.exact = _exact_classes(annotation)

    def fits(self, value: object) -> bool:
        """Whether `value` is of the type."""
        return self.anything or type(value) in self.exact or self._is_one(value)

    def problems(self, value: object) -> list[str]:
        """What is wrong with a value that arrives; empty when it fits."""
        if self.anything or type(value) in self.exact:
            return []
        return self._look_closer(value)

    def strict_problems(self, value: object) -> list[str]:
        """What is wrong with a repair: no conversions, unknown keys, NaN; empty when it fits.

        Plain JSON data is held against the type as JSON, so text is good for a path and a
        list for a tuple. Any other value has to be an instance.
        """
        infinite = _not_json(value, "", 0)
        if not infinite:
            return self._as_json(value)[0]
        faults = [line for line, is_fault in infinite if is_fault]
        return (faults or self.problems(value))[:_MOST]

    def revive(self, value: object) -> object:
        """The value of the declared type that accepted plain data stands for. Raises `Misfit`."""
        if _not_json(value, "", 0):
            return value
        problems, made = self._as_json(value)
        if problems:
            raise Misfit(problems)
        return made

    def dumped(self, value: object) -> object:
        """A value of the type as plain data. Raises what its serializer raises."""
        assert self._building is not None
        return self._building.dump_python(value, mode="json", warnings="error")

    def coerce(self, value: object) -> Any:
        """The property value made of what the file says, as in `"5"` for an `int`.

        Raises `Misfit`.
        """
        if self.anything or (type(value) in self.exact and self.exact <= _UNCHANGED):
            return value
        if self._building is None:
            return self._unchanged(value)
        try:
            return self._building.validate_python(value, strict=True, extra="forbid")
        except Exception:  # next, forgivingly; that one tells what is wrong
            return self._forgiving(value)

    def schema(self) -> dict[str, Any]:
        """The type as JSON Schema; `{}` where it has none. Never raises."""
        if self._building is None:
            return {}
        try:
            return self._building.json_schema()
        except Exception:  # see `adapt._build`
            return {}

    @cached_property
    def checkable(self) -> bool:
        """Whether a repair can be checked: the type says something, and data can be of it."""
        return describable(self.annotation)

    @cached_property
    def _arrival(self) -> TypeAdapter[Any] | None:
        return arrival_adapter(self.annotation)

    @cached_property
    def _building(self) -> TypeAdapter[Any] | None:
        return building_adapter(self.annotation)

    def _is_one(self, value: object) -> bool:
        """The short answer, which costs half of what the reasons cost."""
        if self._arrival is None:
            return True
        try:
            return self._arrival.validator.isinstance_python(value, strict=True)
        except Exception:  # a validator of the author's own
            return not self._look_closer(value)

    def _look_closer(self, value: object) -> list[str]:
        if self._arrival is None:
            return []
        return _problems_of(lambda a: a.validate_python(value, strict=True), self._arrival, self)[0]

    def _as_json(self, value: object) -> tuple[list[str], object]:
        if not self.checkable or self._building is None:
            return [f"{type_text(self.annotation)} is a type nothing can be held against"], None
        text = json.dumps(value)
        return _problems_of(
            lambda a: a.validate_json(text, strict=True, extra="forbid"), self._building, self
        )

    def _forgiving(self, value: object) -> object:
        assert self._building is not None
        problems, made = _problems_of(
            lambda a: a.validate_python(value, extra="forbid"), self._building, self
        )
        if not problems and isinstance(value, bool) and type(made) in (int, float):
            problems = [f"expected {type_text(self.annotation)}, got a boolean"]
        if problems:
            raise Misfit(problems)
        return made

    def _unchanged(self, value: object) -> object:
        cls = get_origin(self.annotation) or self.annotation
        if isinstance(cls, type) and not isinstance(value, cls):
            raise Misfit([f"expected {type_text(self.annotation)}, got {_kind(value)}"])
        return value


_UNCHANGED = frozenset((str, bool, int, NoneType))


def _exact_classes(annotation: Any) -> frozenset[type]:
    """Classes whose exact instances need no second look."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return frozenset().union(*(_exact_classes(a) for a in arguments))
    if origin in (list, dict):
        loose = arguments[-1] in (Any, object) and arguments[0] in (Any, object, arguments[-1])
        return _EXACT[origin] if loose else frozenset()
    if origin is not None or is_typed_dict(annotation):
        return frozenset()
    try:
        return _EXACT.get(annotation, frozenset())
    except TypeError:  # an annotation that cannot be hashed
        return frozenset()


def _problems_of(ask: Any, adapter: TypeAdapter[Any], checker: Checker) -> tuple[list[str], Any]:
    from pydantic import ValidationError  # noqa: PLC0415  (loaded when used)

    try:
        return [], ask(adapter)
    except ValidationError as error:
        return _lines(error, checker.annotation), None
    except Exception as error:  # a validator of the author's own, a value that cannot be shown
        return [f"could not be checked: {type(error).__name__}"], None


def _lines(error: ValidationError, annotation: Any) -> list[str]:
    found = error.errors(include_url=False, include_context=False)
    if get_origin(annotation) in (Union, UnionType) and len(found) > 1:
        return [f"expected {type_text(annotation)}, got {_kind(found[0]['input'])}"]
    lines = [_line(e["type"], e["loc"], e["msg"], e["input"]) for e in found]
    unique = list(dict.fromkeys(lines))
    hidden = len(unique) - _MOST
    return unique[:_MOST] + ([f"and {hidden} more"] if hidden > 0 else [])


def _line(kind: str, loc: tuple[int | str, ...], message: str, value: object) -> str:
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc).lstrip(".")
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return f"{place} is missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place} is not known"
    said = message.removeprefix("Value error, ").removeprefix("Input should be ")
    for pydantics, ours in _PLAIN_WORDS:
        said = said.replace(pydantics, ours)
    if message.startswith("Input should be "):
        said = f"expected {said}" + ("" if kind in _OF_ITS_KIND else f", got {_kind(value)}")
    return f"{place}: {said}" if place else said


def _kind(value: object) -> str:
    """What a value is, in words; never the value itself, which may be secret or huge."""
    return _KINDS.get(type(value)) or type(value).__name__


def _not_json(value: object, place: str, depth: int) -> list[tuple[str, bool]]:
    """Where a value is not JSON data: a line each, and whether that is a fault in any case."""
    if type(value) is str and _HALF.search(value):
        return [(f"{place or 'the text'} holds half of a surrogate pair", True)]
    if value is None or type(value) in (str, bool, int):
        return []
    if isinstance(value, float) and not math.isfinite(value):
        return [(f"{place or 'the value'} is not a finite number", True)]
    if type(value) is float:
        return []
    if depth > _DEEPEST:
        return [(f"{place} is nested too deep", True)]
    found: list[tuple[str, bool]] = []
    if isinstance(value, dict):
        for key, part in value.items():
            found += [] if isinstance(key, str) else [(f"{place}: a key is no text", False)]
            found += _not_json(part, f"{place}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, (list, tuple)):
        found += [] if type(value) is list else [(f"{place} is no plain list", False)]
        for i, part in enumerate(value):
            found += _not_json(part, f"{place}[{i}]", depth + 1)
    else:
        found.append((f"{place} is a {type(value).__name__}", False))
    return found
