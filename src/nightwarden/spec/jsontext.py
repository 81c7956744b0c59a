"""Reading JSON with line numbers, and without its surprises.

The standard library's parser keeps the last of two equal keys, accepts NaN, and forgets where
things stood. This one reports the first two and remembers the third.

Read next: `document.py`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]

from nightwarden.spec.document import DEEPEST, LARGEST, LINES_DEEPEST, Document, Path, doubled
from nightwarden.spec.findings import Findings

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 400


class _Stop(Exception):
    """The text cannot be read further."""

    def __init__(self, message: str, position: int, rule: str = "json-syntax") -> None:
        self.position = position
        self.rule = rule
        super().__init__(message)


def read_json(text: str, findings: Findings) -> Document | None:
    """Parse JSON text; None, and the reason in `findings`, when it is none."""
    reader = _Reader(text, findings)
    try:
        return reader.document()
    except _Stop as stop:
        column = stop.position - text.rfind("\n", 0, stop.position)
        findings.error(
            stop.rule,
            f"{stop} (column {column})",
            "correct the file at this place",
            line=reader.line_at(stop.position),
        )
        return None


class _Reader:
    def __init__(self, text: str, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._breaks = [m.start() for m in re.finditer("\n", text)]
        self._lines: dict[Path, int] = {}
        self._count = 0

    def line_at(self, position: int) -> int:
        return bisect_right(self._breaks, position - 1) + 1

    def document(self) -> Document | None:
        start = self._skip(0)
        if start == len(self._text):
            self._findings.error("empty-file", "the file is empty", "write a workflow into it")
            return None
        value, end = self._value(start, ())
        end = self._skip(end)
        if end < len(self._text):
            raise _Stop("there is more text after the end of the value", end)
        return Document(value, self._lines)

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return position if found is None else found.end()

    def _value(self, at: int, path: Path) -> tuple[object, int]:
        self._count += 1
        if self._count > LARGEST:
            raise _Stop(f"the file has more than {LARGEST:,} values", at, "too-large")
        if len(path) <= LINES_DEEPEST:
            self._lines.setdefault(path, self.line_at(at))
        first = self._text[at : at + 1]
        if first == '"':
            return self._string(at)
        if first in ("{", "["):
            if len(path) >= DEEPEST:
                raise _Stop(f"values are nested more than {DEEPEST} deep", at, "too-deep")
            return self._object(at, path) if first == "{" else self._array(at, path)
        return self._scalar(at)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self._text, at + 1, True)
        except JSONDecodeError as error:
            raise _Stop(error.msg[:1].lower() + error.msg[1:], error.pos) from error
        return str(value), int(end)

    def _scalar(self, at: int) -> tuple[object, int]:
        word = _WORD.match(self._text, at)
        if word is not None and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        number = _NUMBER.match(self._text, at)
        if number is not None:
            return self._number(number, at), number.end()
        if at == len(self._text):
            raise _Stop("the file ends in the middle of a value", at)
        raise _Stop(f"a value cannot begin with {self._text[at]!r}", at)

    def _number(self, found: re.Match[str], at: int) -> int | float:
        if len(found[0]) > _LONGEST_NUMBER:
            raise _Stop("a number is too long", at)
        if found[1] is None and found[2] is None:
            return int(found[0])
        value = float(found[0])
        if not math.isfinite(value):
            raise _Stop("a number is too large", at)
        return value

    def _array(self, at: int, path: Path) -> tuple[list[object], int]:
        items: list[object] = []
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "]":
            return items, at + 1
        while True:
            value, at = self._value(at, (*path, len(items)))
            items.append(value)
            at, ended = self._next(at, "]")
            if ended:
                return items, at

    def _object(self, at: int, path: Path) -> tuple[dict[str, object], int]:
        members: dict[str, object] = {}
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "}":
            return members, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise _Stop("a key in double quotes is expected", at)
            key_at = at
            key, at = self._string(at)
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                raise _Stop(f"a colon is expected after {key!r}", at)
            self._note(key, key_at, members, path)
            value, at = self._value(self._skip(at + 1), (*path, key))
            members.setdefault(key, value)
            at, ended = self._next(at, "}")
            if ended:
                return members, at

    def _note(self, key: str, at: int, members: dict[str, object], path: Path) -> None:
        line = self.line_at(at)
        if key in members:
            first = self._lines.get((*path, key))
            before = f" (first on line {first})" if first else ""
            self._findings.error(
                doubled(path),
                f"the key {key!r} stands twice{before}",
                "remove or rename one of the two",
                line=line,
            )
        elif len(path) < LINES_DEEPEST:
            self._lines[*path, key] = line

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        at = self._skip(at)
        mark = self._text[at : at + 1]
        if mark == closing:
            return at + 1, True
        if mark != ",":
            raise _Stop(f"a comma or {closing} is expected", at)
        at = self._skip(at + 1)
        if self._text[at : at + 1] == closing:
            raise _Stop(f"a comma stands before {closing}, with nothing after it", at)
        return at, False
