"""Telling items apart and putting them in order, by themselves or by a field.

    b a b ─▶ Dedupe ─▶ b a
    b c a ─▶ Sort ─▶ a b c

Two values are the same if Python says so, but true is not 1, and NaN is itself. What cannot be
hashed (a record, a list) counts by its content, as JSON with sorted keys.

Read next: `_streams.py`, `flow.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from decimal import Decimal
from pathlib import PurePath
from reprlib import Repr
from typing import Any, Final, TypeVar

import msgspec

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._streams import AtLeastOne, settled
from nightwarden.nodes.io import Collect, Stream

T = TypeVar("T")

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_MOST_NAMES: Final = 12
_NAN: Final = object()
_BOOLEAN: Final = object()
_CONTENT: Final = object()


@settled("flow.Dedupe")
async def dedupe(
    items: Stream[T], *, key: str | None = None, remember: AtLeastOne | None = None
) -> AsyncIterator[T]:
    """Let each value pass once: the first item that has it, in order.

    With `key`, items are the same that have the same value in that field. Numbers that are equal
    are the same (1 and 1.0), true is not 1; records and lists count by their content. Every value
    seen is kept in memory, unless `remember` says how many: then only those seen last are known,
    and a value that comes back after that many others passes again.
    """
    known: dict[Hashable, None] = {}
    async for item in items:
        mark = identity(item if key is None else field_of(item, key), item)
        if mark in known:
            if remember is not None:
                del known[mark]  # to be seen last again
                known[mark] = None
            continue
        known[mark] = None
        if remember is not None and len(known) > remember:
            del known[next(iter(known))]
        yield item


@settled("flow.Sort", inline=True)
def sort(items: Collect[T], *, key: str | None = None, descending: bool = False) -> Iterator[T]:
    """Put items in order and fan them out again, lowest first unless `descending`.

    With `key`, the value of that field decides. Items that rank alike keep their order. Waits for
    all items. Values that have no order among each other (text and numbers, nothing, NaN) fail the
    step (code `no-order`), and two of the items are named.
    """
    numbers = items.indices
    keys: list[Any] = [item if key is None else field_of(item, key) for item in items]
    for position, value in enumerate(keys):
        if _is_nan(value):  # it compares with everything, and would scramble the rest
            raise NodeError(
                f"{_item(items, numbers, position)} has no place in an order: {_by(key)} is NaN; "
                "filter it out before",
                code="no-order",
            )
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
    except Exception as error:  # a comparison is the values' own code
        raise _no_order(items, numbers, keys, key) from error
    for position in order:
        yield items[position]


# -- the same or not --


def identity(value: object, item: object) -> Hashable:
    """What two values have in common exactly if they count as the same.

    Raises `NodeError` (code `no-identity`) for a value that can be neither hashed nor written as
    JSON; `item` is what it belongs to.
    """
    if isinstance(value, bool):
        return (_BOOLEAN, value)
    if _is_nan(value):
        return _NAN
    try:
        hash(value)
    except TypeError:
        return _content(value, item)
    return value


def _is_nan(value: object) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and math.isnan(value)


def _content(value: object, item: object) -> Hashable:
    """A short digest of the value as JSON; a full text would keep large records in memory."""
    try:
        plain = msgspec.to_builtins(value, enc_hook=_plain, str_keys=True, order="sorted")
        text = json.dumps(plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise NodeError(
            f"{_SHORT.repr(item)} cannot be told from others: a {type(value).__name__} is neither "
            f"hashable nor JSON ({error}); name a field with key:",
            code="no-identity",
        ) from error
    return (_CONTENT, hashlib.blake2b(text.encode(), digest_size=16).digest())


def _plain(value: object) -> object:
    """What msgspec does not know: models of pydantic, paths, containers of other kinds."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping) or hasattr(type(value), "__pydantic_fields__"):
        return dict(value)  # type: ignore[call-overload]
    if isinstance(value, (Sequence, AnySet)) and not isinstance(value, str):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def field_of(item: object, key: str) -> object:
    """The value of a field. Raises `NodeError` (code `no-field`) naming those there are."""
    if isinstance(item, Mapping):
        if key in item:
            return item[key]
        names: Sequence[str] = [str(name) for name in item]
    else:
        try:
            return getattr(item, key)
        except AttributeError:
            names = _names(item)
    has = f"it has {', '.join(names[:_MOST_NAMES])}" if names else "it has no fields"
    raise NodeError(f"{_SHORT.repr(item)} has no field {key!r}; {has}", code="no-field")


def _names(item: Any) -> Sequence[str]:
    kind = type(item)
    for place in ("__struct_fields__", "__dataclass_fields__", "_fields", "__pydantic_fields__"):
        if hasattr(kind, place):
            return list(getattr(kind, place))
    return [name for name in getattr(item, "__dict__", ()) if not name.startswith("_")]


# -- before or after --


class _Clash(Exception):
    """Two keys that cannot be compared, by position."""


class _Ranked:
    """A key that says which other key it cannot be compared with."""

    __slots__ = ("key", "position")

    def __init__(self, key: Any, position: int) -> None:
        self.key = key
        self.position = position

    def __lt__(self, other: _Ranked) -> bool:
        try:
            return bool(self.key < other.key)
        except Exception as error:
            raise _Clash(*sorted((self.position, other.position))) from error


def _no_order(
    items: Sequence[object], numbers: Sequence[int], keys: Sequence[object], key: str | None
) -> NodeError:
    """The error that names the first two items the sort stumbles over."""
    try:
        sorted(_Ranked(value, position) for position, value in enumerate(keys))
    except _Clash as clash:
        one, other = clash.args
    else:  # their order changes from one comparison to the next
        one, other = 0, len(keys) - 1
    return NodeError(
        f"{_item(items, numbers, one)} and {_item(items, numbers, other)} have no order: "
        f"{_by(key)} is {_kind(keys[one])} in one and {_kind(keys[other])} in the other; "
        "give a key: all items have alike, or filter the others out before",
        code="no-order",
    )


def _item(items: Sequence[object], numbers: Sequence[int], position: int) -> str:
    return f"item {numbers[position] + 1} ({_SHORT.repr(items[position])})"


def _by(key: str | None) -> str:
    return "the value" if key is None else key


def _kind(value: object) -> str:
    return "nothing" if value is None else f"of type {type(value).__name__}"
