"""Any value as JSON can hold it, whatever it is; nothing a step puts out may break a record.

    Path  "out.csv"      datetime  "2026-11-30T…"    dataclass  {"field": …}
    b"…"  text or hex    NaN  as text                 an odd object  its repr, or <its type>

Never raises. Stands in a record, and in `--json`; what is to be hidden is hidden before.

Read next: `codec.py`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Set
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

import msgspec

DEEPEST: Final = 100
_LONGEST_INT: Final = 10_000
"""In bits. Python refuses to print very long integers in decimal."""
_CYCLE: Final = "<the value it stands in>"


def plain(value: object) -> object:
    """The value in None, bool, int, float, str, list and dict with text keys."""
    return _plain(value, ())


def odd_text(value: object) -> str:
    """What can be read of a value JSON has no form for."""
    try:
        return _odd(value)
    except BaseException:  # whatever the author's own code does when it is looked at
        return f"<{type(value).__name__}>"


def _plain(value: object, inside: tuple[int, ...]) -> object:
    if value is None or value is True or value is False:
        return value
    try:
        if isinstance(value, str):
            return clean(str.__str__(value))
        if isinstance(value, Enum):
            return _plain(value.value, (*inside, id(value)))
        if isinstance(value, int):
            number = int.__index__(value)
            return number if number.bit_length() < _LONGEST_INT else hex(number)
        if isinstance(value, float):
            return float.__float__(value) if math.isfinite(value) else float.__repr__(value)
        return _container(value, inside)
    except BaseException:
        return f"<{type(value).__name__}>"


def _container(value: object, inside: tuple[int, ...]) -> object:
    if id(value) in inside or len(inside) > DEEPEST:
        return _CYCLE
    within = (*inside, id(value))
    pairs = _pairs(value)
    if pairs is not None:
        return {_key(key): _plain(part, within) for key, part in pairs}
    if isinstance(value, (list, tuple, Set)):
        return [_plain(part, within) for part in value]
    return odd_text(value)


def _pairs(value: object) -> Iterable[tuple[object, object]] | None:
    """The fields of a record or mapping, None for everything else."""
    if isinstance(value, Mapping):
        return value.items()
    names: Iterable[str] | None = None
    tag: list[tuple[object, object]] = []
    if isinstance(value, msgspec.Struct):
        names, config = value.__struct_fields__, value.__struct_config__
        tag = [(config.tag_field, config.tag)] if config.tag_field else []
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", None)
    else:
        names = getattr(type(value), "__pydantic_fields__", None)
    if names is None:
        return None
    return [*tag, *((name, getattr(value, name)) for name in names if hasattr(value, name))]


def _key(key: object) -> str:
    return key if type(key) is str and key.isascii() else clean(str(_plain(key, ())))


def _odd(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.hex()
    if isinstance(value, (date, time)):
        return value.isoformat()
    as_path = getattr(type(value), "__fspath__", None)
    if as_path is not None:
        return clean(str(as_path(value)))
    return clean(str(value) if isinstance(value, (Decimal, UUID)) else repr(value))


def clean(text: str) -> str:
    """The text without what UTF-8 cannot say: a byte that did not decode is spelled out."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
