"""Slot types: how they are written in a file, and how they are shown.

A workflow file writes `str int float bool json path url asset`, `list[T]`, `dict[str, T]` and
`T?`; node authors write Python annotations. `parse_type` turns the first into the second,
`type_text` shows either, and what one prints the other reads back.

`path` and `asset` belong to the node layer, which names them with `name_type`: this layer
knows no files.

Read next: `assign.py` (does a value of this type fit that slot), `checker.py` (does this value).
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from nightwarden.spec.findings import nearest

_DEEPEST = 20
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|[\[\],?])")
_UNIONS = (Union, types.UnionType)


class UrlShape:
    """Marks text that has to be an absolute web address."""

    def __repr__(self) -> str:
        return "url"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415  (pydantic is loaded when used)

        return core_schema.no_info_after_validator_function(_absolute_url, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "format": "uri"}


class JsonShape:
    """Marks any value that JSON can hold."""

    def __repr__(self) -> str:
        return "json"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import JsonValue  # noqa: PLC0415  (pydantic is loaded when used)

        return handler.generate_schema(JsonValue)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {}


Url = Annotated[str, UrlShape()]
Json = Annotated[Any, JsonShape()]

_named: dict[str, object] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "json": Json,
    "url": Url,
}
_ALIASES: Final[Mapping[str, str]] = {
    "any": "json",
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "file": "path",
    "object": "dict",
    "array": "list",
}


def name_type(name: str, annotation: object) -> None:
    """Let workflow files write `name` for a Python type of a layer above this one."""
    _named[name] = annotation


def type_names() -> tuple[str, ...]:
    """What a file may write as a type: the plain names, then the containers."""
    return (*_named, "list[T]", "dict[str, T]", "T?")


def parse_type(text: str) -> Any:
    """The annotation a file's type stands for. Raises `ValueError` that says what is expected."""
    tokens = list(_tokens(text))
    annotation, rest = _parse(tokens, text, 0)
    if rest:
        raise ValueError(f"type {text!r} has {rest[0]!r} after its end")
    return annotation


def _tokens(text: str) -> Iterator[str]:
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(
                f"type {text!r} has {text[position:].strip()[:1]!r}, which no type has; "
                f"types are {', '.join(type_names())}"
            )
        yield found[1]
        position = found.end()


def _parse(tokens: list[str], text: str, depth: int) -> tuple[Any, list[str]]:
    if depth > _DEEPEST:
        raise ValueError(f"a type is nested more than {_DEEPEST} deep")
    if not tokens or not tokens[0][0].isidentifier():
        raise ValueError(f"type {text!r} lacks a name; types are {', '.join(type_names())}")
    annotation, rest = _named_or_container(tokens[0], tokens[1:], text, depth)
    while rest and rest[0] == "?":
        annotation, rest = Union[annotation, None], rest[1:]  # noqa: UP007  (built at run time)
    return annotation, rest


def _named_or_container(name: str, rest: list[str], text: str, depth: int) -> tuple[Any, list[str]]:
    bracket = bool(rest) and rest[0] == "["
    if name == "list":
        element, rest = _arguments(rest, text, depth, 1) if bracket else ([Json], rest)
        return list[element[0]], rest  # type: ignore[valid-type]
    if name == "dict":
        pair, rest = _arguments(rest, text, depth, 2) if bracket else ([str, Json], rest)
        if pair[0] is not str:
            raise ValueError(f"type {text!r}: the keys of a dict are text: dict[str, T]")
        return dict[str, pair[1]], rest  # type: ignore[valid-type]
    if bracket:
        raise ValueError(f"type {text!r}: {name} takes no [ ]; list[T] and dict[str, T] do")
    if name == "any":
        return Json, rest
    if name not in _named:
        near = _ALIASES.get(name) or nearest(name, [*_named, "list", "dict"])
        meant = f"; did you mean {near!r}?" if near else f"; types are {', '.join(type_names())}"
        raise ValueError(f"there is no type {name!r}{meant}")
    return _named[name], rest


def _arguments(rest: list[str], text: str, depth: int, count: int) -> tuple[list[Any], list[str]]:
    found: list[Any] = []
    opening = "["
    for _ in range(count):
        if not rest or rest[0] != opening:
            raise ValueError(f"type {text!r}: write list[T] or dict[str, T]")
        annotation, rest = _parse(rest[1:], text, depth + 1)
        found.append(annotation)
        opening = ","
    if not rest or rest[0] != "]":
        raise ValueError(f"type {text!r}: a ] is missing, or there is one part too many")
    return found, rest[1:]


def type_text(annotation: Any) -> str:
    """A type as people read it; for types of a file, as the file writes it."""
    for name, named in _named.items():
        if annotation is named or (get_origin(annotation) and annotation == named):
            return name
    if annotation in (Any, object):
        return "any"
    if annotation is None or annotation is type(None):
        return "none"
    if annotation is Ellipsis:
        return "…"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in _UNIONS:
        return _union_text(arguments)
    if origin is Literal:
        return " | ".join(repr(value) for value in arguments)
    if origin is not None and arguments:
        inner = ", ".join(type_text(a) for a in arguments if not isinstance(a, list))
        return f"{_class_name(origin)}[{inner}]"
    return _class_name(annotation)


def _union_text(arguments: tuple[Any, ...]) -> str:
    rest = [a for a in arguments if a is not type(None)]
    if len(rest) == len(arguments):
        return " | ".join(type_text(a) for a in rest)
    if len(rest) == 1 and " | " not in type_text(rest[0]):
        return type_text(rest[0]) + "?"
    return " | ".join([*(type_text(a) for a in rest), "none"])


def _class_name(annotation: Any) -> str:
    if isinstance(annotation, TypeVar):
        return annotation.__name__
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__name__", None) or repr(annotation).removeprefix("typing."))


def _absolute_url(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*", text):
        raise ValueError("a web address begins with a scheme, as in https://example.org")
    return text
