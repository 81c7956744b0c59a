"""What any value is made of, without ever raising: an atom, text, items or pairs.

    None True 3 2.5              Atom       can stand in a record as it is
    "x" b"x" Path Decimal obj    Text       what can be read of it
    [1] (1,) {1}                 Items
    {"a": 1} dataclass Struct    Pairs      field name → value

An object whose attributes, `str` or `repr` raise becomes the text `<its type>`: anything at all is
caught around such code. Nothing is awaited here, so no cancellation can be swallowed.

Read next: `bounding.py`, `redaction.py`.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

AtomValue = None | bool | int | float


@dataclass(frozen=True, slots=True)
class Atom:
    """A value that JSON has: no text in it, nothing inside."""

    value: AtomValue


@dataclass(frozen=True, slots=True)
class Text:
    """What can be read of a value. `note` says what it stood for where it was not text."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list or the like."""

    items: Iterable[object]
    count: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A mapping or a record, field by field."""

    pairs: Iterable[tuple[object, object]]
    count: int


Anatomy = Atom | Text | Items | Pairs

_LARGEST_INT = 2**63
_PRINTABLE = frozenset({"datetime", "decimal", "fractions", "ipaddress", "uuid", "zoneinfo"})
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def anatomy_of(value: object) -> Anatomy:
    """What `value` is made of; looks one level deep and never raises."""
    kind = type(value)
    if kind is str:
        return Text(value)  # type: ignore[arg-type]
    if kind is dict:
        return Pairs(value.items(), len(value))  # type: ignore[attr-defined, arg-type]
    if kind is list:
        return Items(value, len(value))  # type: ignore[arg-type]
    try:
        return _atom(value) or _container(value) or Text(text_of(value))
    except BaseException:
        # A property or a `__len__` of the author's may raise anything at all.
        return Text(f"<{type_name(value)}>")


def _atom(value: object) -> Anatomy | None:
    if value is None or value is True or value is False:
        return Atom(value)
    if isinstance(value, enum.Enum):
        return anatomy_of(value.value) if not isinstance(value.value, enum.Enum) else None
    if isinstance(value, str):
        return Text(str.__str__(value))
    if isinstance(value, int):
        number = int.__index__(value)
        return Atom(number) if abs(number) < _LARGEST_INT else Text(_long_int(number))
    if isinstance(value, float):
        number_ = float.__float__(value)
        return Atom(number_) if math.isfinite(number_) else Text(float.__repr__(number_))
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    return None


def _long_int(number: int) -> str:
    # Python refuses to print very long integers in decimal.
    return str(number) if number.bit_length() < 10_000 else hex(number)


def _bytes(data: bytes) -> Text:
    note = f"{len(data):,} bytes"
    try:
        return Text(data.decode(), note)
    except UnicodeDecodeError:
        # One character a byte: whatever stands in it in ASCII can still be found.
        return Text(data.decode("latin-1"), f"{note}, not text")


def _container(value: object) -> Anatomy | None:
    if isinstance(value, Mapping):
        return Pairs(value.items(), len(value))
    kind = type(value)
    names = _field_names(value, kind)
    if names is not None:
        pairs = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        return Pairs(pairs, len(pairs))
    if isinstance(value, list | tuple | set | frozenset | deque):
        return Items(value, len(value))
    if hasattr(kind, "model_fields") and hasattr(kind, "__pydantic_core_schema__"):
        fields = {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
        return Pairs(fields.items(), len(fields))
    return None


def _field_names(value: object, kind: type) -> list[str] | None:
    if isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
        return list(names) if names is not None else None
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    struct = getattr(kind, "__struct_fields__", None)
    if isinstance(struct, tuple):
        return list(struct)
    attrs = getattr(kind, "__attrs_attrs__", None)
    return [attribute.name for attribute in attrs] if isinstance(attrs, tuple) else None


def text_of(value: object) -> str:
    """What can be read of an odd object: a path, a date, an error, else its `repr`."""
    try:
        if isinstance(value, BaseException):
            return f"{type_name(value)}: {message_of(value)}"
        as_path = getattr(type(value), "__fspath__", None)
        if as_path is not None:
            path = as_path(value)
            return path if isinstance(path, str) else bytes(path).decode("utf-8", "replace")
        text = str(value) if type(value).__module__ in _PRINTABLE else repr(value)
        return _ADDRESS.sub("", str.__str__(text))
    except BaseException:
        return f"<{type_name(value)}>"


def message_of(error: BaseException) -> str:
    """`str(error)`, or a word on why it cannot be had."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return "(its message cannot be read)"


def key_text(key: object) -> str:
    """A mapping's key as text: JSON has no other keys."""
    anatomy = anatomy_of(key)
    if isinstance(anatomy, Text):
        return anatomy.text
    return json.dumps(anatomy.value) if isinstance(anatomy, Atom) else text_of(key)


def type_name(value: object) -> str:
    """The name of the value's type, at most 80 characters."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str.__str__(name)[:80]
