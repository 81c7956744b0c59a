"""Texts that mention inputs of their node: `{url}` in a label, names in an expression.

They are held against the inputs when a workflow is loaded: a misspelt name would fail at every
item else. What a label mentions is reached by name only. A workflow file runs no code its user
did not name, so a label sees fields and entries of values, and nothing that begins with `_`.

Read next: `nodecheck.py`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args, get_origin

_FIRST: Final = re.compile(r"[^.\[]*")
_PRIVATE: Final = re.compile(r"[.\[]\s*_")
_LONG_NUMBER: Final = re.compile(r"\d{4}")


@dataclass(frozen=True, slots=True)
class Mentions:
    """Marks a slot whose text mentions inputs of its node: `of` says which."""

    of: Callable[[str], Set[str]]


def mentioned(annotation: object, text: object) -> Set[str]:
    """The inputs that a text at a slot of this type mentions; none where it cannot be read."""
    if get_origin(annotation) is not Annotated or not isinstance(text, str):
        return frozenset()
    marks = [mark for mark in get_args(annotation)[1:] if isinstance(mark, Mentions)]
    try:
        return frozenset[str]().union(*(mark.of(text) for mark in marks))
    except ValueError:  # said where the value is checked
        return frozenset()


def in_label(label: str) -> Set[str]:
    """The inputs a label mentions. Raises `ValueError` for one that cannot be read."""
    fields = [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(label)]
    for name, spec in fields:
        if name is not None:
            _check(name, spec)
    return {_FIRST.match(name)[0] for name, _ in fields if name is not None}  # type: ignore[index]


def fill_label(label: str, values: Mapping[str, object]) -> str:
    """A label with its values. Raises what formatting raises, and `ValueError` like `in_label`."""
    return _Filler().vformat(label, (), values)


class _Filler(string.Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        _check(field_name, "")
        return super().get_field(field_name, args, kwargs)

    def format_field(self, value: Any, format_spec: str) -> Any:
        _check("", format_spec)
        return super().format_field(value, format_spec)


def _check(name: str, spec: str) -> None:
    if _PRIVATE.search(name):
        raise ValueError(f"{{{name}}}: names that begin with _ are not allowed")
    if _LONG_NUMBER.search(spec):
        raise ValueError(f"{{{name}:{spec}}}: such a width is not allowed")
