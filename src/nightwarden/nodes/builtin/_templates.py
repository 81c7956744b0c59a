"""`{name}` in a text: checked when a workflow is loaded, filled in strictly.

    {name}  {name.part}  {name:.2f}  {name!r}  {{ }}

Python's format strings, without what reaches further than a template should: no
positions, no indexing, no attributes that are not fields, no widths that fill the memory.

Read next: `text.py`, `_lookup.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._lookup import part
from nightwarden.spec.mentions import Mentions

_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_LONG_NUMBER: Final = re.compile(r"\d{4}")
_CONVERSIONS: Final[Mapping[str, Callable[[object], str]]] = {"s": str, "r": repr, "a": ascii}


class Piece(NamedTuple):
    """Literal text, and the field after it, if there is one."""

    literal: str
    name: str | None
    spec: str
    conversion: str | None


def parse(template: str) -> list[Piece]:
    """The pieces of a template. Raises `ValueError` that says what is wrong with it."""
    try:
        pieces = [
            Piece(literal, name, spec or "", conversion)
            for literal, name, spec, conversion in Formatter().parse(template)
        ]
    except ValueError as error:
        raise ValueError(f"not a template: {error}; write {{{{ and }}}} for braces") from error
    for piece in pieces:
        if piece.name is None:
            continue
        if not _NAME.fullmatch(piece.name):
            raise ValueError(
                f"{{{piece.name}}} is no name: write {{name}} or {{name.part}}, "
                "and {{ }} for braces"
            )
        if "{" in piece.spec or _LONG_NUMBER.search(piece.spec):
            raise ValueError(f"{{{piece.name}:{piece.spec}}}: the format is not allowed here")
        if piece.conversion not in (None, *_CONVERSIONS):
            raise ValueError(f"{{{piece.name}!{piece.conversion}}}: expected !s, !r or !a")
    return pieces


def _checked(template: str) -> str:
    parse(template)
    return template


def _names(template: str) -> set[str]:
    return {p.name.partition(".")[0] for p in parse(template) if p.name is not None}


Template = Annotated[str, AfterValidator(_checked), Mentions(_names)]
"""A text with `{name}` in it; a mistake in it is found when the workflow is loaded."""


def fill(template: str, fields: Mapping[str, object]) -> str:
    """The template with its fields filled in. Raises `NodeError` that names what is missing."""
    try:
        pieces = parse(template)
    except ValueError as error:
        raise NodeError(str(error), code="template") from error
    if missing := sorted(_names(template) - fields.keys()):
        given = ", ".join(sorted(fields)) or "none"
        raise NodeError(
            f"the template names {', '.join(missing)}, but no such input is given; given: {given}",
            code="template",
        )
    return "".join(piece.literal + _filled(piece, fields) for piece in pieces)


def _filled(piece: Piece, fields: Mapping[str, object]) -> str:
    if piece.name is None:
        return ""
    first, *rest = piece.name.split(".")
    value = fields[first]
    try:
        for name in rest:
            value = part(value, name)
        if piece.conversion is not None:
            value = _CONVERSIONS[piece.conversion](value)
        return format(value, piece.spec)
    except (LookupError, ValueError, TypeError) as error:
        text = error.args[0] if error.args else type(error).__name__
        raise NodeError(f"{{{piece.name}}} cannot be filled in: {text}", code="template") from error
