"""Cutting a value down to a record of known size: mask first, cut after.

    value ──▶ tree of masked texts, bounded in nodes, depth and characters ──▶ JSON-safe result

The tree keeps more than the record may hold; the result is drawn from it under tighter and
tighter caps until it fits. Each cut says how much was left out. Cycles, bytes, odd objects and
huge keys are bounded like anything else; nothing here raises on account of a value.

Read next: `redaction.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from nightwarden.masking.anatomy import Atom, AtomValue, Items, Pairs, Text, anatomy_of, key_text
from nightwarden.masking.marks import FIELD, cut_of
from nightwarden.masking.sensitive import (
    hidden_pair,
    hide_named,
    holds_the_value,
    is_sensitive,
    telling_pair,
    worth_hiding,
)

Json = AtomValue | str | list["Json"] | dict[str, "Json"]
Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a value a record keeps: `supervision.md` §4. A container at `depth` is cut."""

    string_chars: int = 2_000
    elements: int = 100
    depth: int = 6
    record_bytes: int = 16_000
    key_chars: int = 200


DEFAULT: Final = Limits()

_MOST_NODES: Final = 5_000
_WINDOW_CHARS: Final = 32_768
_MARGIN_CHARS: Final = 4_096
_ALWAYS_KEPT_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class _Text:
    kept: str
    total: int


@dataclass(frozen=True, slots=True)
class _Items:
    kept: list[_Node]
    total: int


@dataclass(frozen=True, slots=True)
class _Pairs:
    kept: list[tuple[_Text, _Node]]
    total: int


_Node = AtomValue | _Text | _Items | _Pairs | str


def bounded(value: object, mask: Mask, limits: Limits = DEFAULT, *, longest: int = 0) -> Json:
    """`value` masked and cut. `longest`: the longest secret, in characters."""
    tree = _Builder(mask, limits, window=_WINDOW_CHARS + 64 * longest).node(value, 0)
    whole = 0
    for chars, elements in _tighter(limits):
        result = _draw(tree, chars, elements, min(limits.key_chars, chars))
        size = _size(result)
        if size <= limits.record_bytes:
            return result
        whole = max(whole, size)
    return cut_of(whole, "bytes")


def _tighter(limits: Limits) -> Iterable[tuple[int, int]]:
    chars, elements = limits.string_chars, limits.elements
    while chars >= 16:
        yield chars, elements
        chars, elements = chars // 2, max(1, elements * 2 // 3)


def _size(result: Json) -> int:
    # With escapes: the record fits also where it is written in ASCII.
    return len(json.dumps(result))


class _Builder:
    """Masks what is worth keeping; stops looking when there is more than any record holds."""

    def __init__(self, mask: Mask, limits: Limits, *, window: int) -> None:
        self._mask = mask
        self._limits = limits
        self._window = window
        self._nodes_left = _MOST_NODES
        self._chars_left = 8 * limits.record_bytes
        self._path: list[object] = []

    def node(self, value: object, depth: int) -> _Node:
        self._nodes_left -= 1
        anatomy = anatomy_of(value)
        if isinstance(anatomy, Atom):
            return self._atom(anatomy.value)
        if isinstance(anatomy, Text):
            return self._text(anatomy)
        if any(value is outer for outer in self._path):
            return cut_of(1, "cycle")
        if depth >= self._limits.depth:
            return cut_of(anatomy.count, "values, too deep") if anatomy.count else _empty(anatomy)
        self._path.append(value)
        node = self._container(anatomy, depth)
        self._path.pop()
        return node

    def _atom(self, value: AtomValue) -> _Node:
        if value is None or isinstance(value, bool):
            return value
        shown = str(value)
        masked = self._mask(shown)
        return value if masked == shown else masked

    def _text(self, anatomy: Text) -> _Text:
        text, limit = anatomy.text, self._limits.string_chars
        if self._chars_left <= 0 and len(text) > _ALWAYS_KEPT_CHARS:
            return _Text("", len(text))
        if anatomy.note.endswith("not text"):
            return _Text(f"<{anatomy.note}>", len(anatomy.note) + 2)
        masked = self._masked(text, limit)
        if anatomy.note:
            head = f"<{anatomy.note}> "
            return _Text((head + masked.kept)[:limit], len(head) + masked.total)
        return masked

    def _masked(self, text: str, limit: int) -> _Text:
        """The first `limit` characters of the masked text, and the length of all of it.

        Of a huge text only a window is read: a secret that straddles its end stands behind what
        is kept, else all is masked.
        """
        needed = limit + _MARGIN_CHARS
        masked, total = self._mask(text[: self._window]), len(text)
        if total <= self._window:
            total = len(masked)
        elif len(masked) - self._window // 2 < needed:
            masked = self._mask(text)
            total = len(masked)
        start = masked[:needed]
        hidden = hide_named(start)
        self._chars_left -= min(total, limit)
        return _Text(hidden[:limit], total - len(start) + len(hidden))

    def _container(self, anatomy: Items | Pairs, depth: int) -> _Node:
        most = max(0, min(self._limits.elements, self._nodes_left))
        try:
            if isinstance(anatomy, Pairs):
                return _Pairs(self._pairs(anatomy, most, depth), anatomy.count)
            return _Items(self._items(anatomy, most, depth), anatomy.count)
        except BaseException:
            # An iterator of the author's may raise anything.
            return cut_of(anatomy.count, "values, unreadable")

    def _pairs(self, anatomy: Pairs, most: int, depth: int) -> list[tuple[_Text, _Node]]:
        pairs: list[tuple[_Text, _Node]] = []
        named = telling_pair(anatomy)
        for key, value in islice(anatomy.pairs, most):
            hide = holds_the_value(key) if named else is_sensitive(key)
            node = FIELD if hide and worth_hiding(value) else self.node(value, depth + 1)
            pairs.append((self._key(key), node))
        return pairs

    def _key(self, key: object) -> _Text:
        text = key_text(key)
        if self._chars_left <= 0 and len(text) > _ALWAYS_KEPT_CHARS:
            return _Text("", len(text))
        return self._masked(text, self._limits.key_chars)

    def _items(self, anatomy: Items, most: int, depth: int) -> list[_Node]:
        items: list[_Node] = []
        for value in islice(anatomy.items, most):
            hidden = hidden_pair(value)
            if hidden is None:
                items.append(self.node(value, depth + 1))
            else:
                items.append(_Items([self.node(hidden, depth + 2), FIELD], 2))
        return items


def _empty(anatomy: Items | Pairs) -> _Node:
    return _Pairs([], 0) if isinstance(anatomy, Pairs) else _Items([], 0)


def _draw(node: _Node, chars: int, elements: int, key_chars: int) -> Json:
    """The tree as JSON has it, under the given caps."""
    if isinstance(node, _Text):
        return _cut(node.kept, node.total, chars)
    if isinstance(node, _Items):
        items = [_draw(item, chars, elements, key_chars) for item in node.kept[:elements]]
        left = node.total - len(items)
        return [*items, cut_of(left, "items")] if left > 0 else items
    if isinstance(node, _Pairs):
        result: dict[str, Json] = {}
        for key, value in node.kept[:elements]:
            name = _free(_cut(key.kept, key.total, key_chars), result)
            result[name] = _draw(value, chars, elements, key_chars)
        left = node.total - len(result)
        if left > 0:
            result[cut_of(left, "fields")] = None
        return result
    return node


def _cut(kept: str, total: int, chars: int) -> str:
    """The text, with its mark at most `chars` long."""
    if total <= chars and len(kept) == total:
        return _sound(kept)
    mark = cut_of(total, "chars")
    start = kept[: max(0, chars - len(mark))]
    return _sound(start) + cut_of(total - len(start), "chars")


def _sound(text: str) -> str:
    """Half surrogates cannot be written; they show as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _free(key: str, taken: dict[str, Json]) -> str:
    """Two keys may look alike once masked; neither may hide the other."""
    if key not in taken:
        return key
    number = 2
    while f"{key} #{number}" in taken:
        number += 1
    return f"{key} #{number}"
