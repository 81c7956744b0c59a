"""Values to the bytes of a file, piece by piece; nothing is opened here.

What a format cannot say is a `NodeError` that names the row, or the place in the value;
it is never written as something else.

Read next: `file.py`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Final, Literal
from uuid import UUID

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._lookup import field_names

_DEEPEST: Final = 200
_WriteRow = Callable[[Sequence[str]], object]


def as_text(text: str, encoding: str) -> Iterator[bytes]:
    """A text in an encoding. Raises `NodeError` for a sign the encoding does not have."""
    try:
        yield text.encode(encoding)
    except LookupError as error:
        raise NodeError(f"unknown encoding {encoding!r}", code="encoding") from error
    except UnicodeEncodeError as error:
        sign, at = text[error.start], error.start
        raise NodeError(
            f"{encoding} has no sign for {sign!r} (character {at + 1}); utf-8 has all",
            code="encoding",
        ) from error


def as_json(value: object, indent: int) -> Iterator[bytes]:
    """A value as a JSON text with a line end, in UTF-8."""
    plain = to_json(value, "value")
    text = json.dumps(plain, indent=indent or None, ensure_ascii=False, allow_nan=False)
    yield from as_text(text + "\n", "utf-8")


def to_json(value: object, place: str, depth: int = 0) -> object:
    """The value in JSON's own types; `place` names it in the error about what has none."""
    if depth > _DEEPEST:
        raise NodeError(f"{place[:80]}… is nested too deeply, or in itself", code="not-json")
    match value:
        case None | bool() | str():
            return value
        case Enum():
            return to_json(value.value, place, depth + 1)
        case int():
            return value
        case float():
            if value - value != 0:
                raise NodeError(f"{place} is {value}, which JSON cannot say", code="not-json")
            return value
        case date() | time():
            return value.isoformat()
        case Decimal() | PurePath() | UUID():
            return str(value)
        case Mapping():
            return {
                _key(key, place): to_json(item, f"{place}.{key}", depth + 1)
                for key, item in value.items()
            }
    if names := field_names(value):
        return {n: to_json(getattr(value, n), f"{place}.{n}", depth + 1) for n in names}
    if isinstance(value, Set):
        value = sorted(value, key=str)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [to_json(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise NodeError(
        f"{place} is {type(value).__name__}, which JSON has no form for", code="not-json"
    )


def as_csv(
    rows: Sequence[object], columns: Sequence[str], delimiter: str, *, bom: bool
) -> Iterator[bytes]:
    """Rows under headings, lines ended by `\\n`, in UTF-8. Errors name the row by its number."""
    records = [_record(row, number) for number, row in enumerate(rows, start=1)]
    names = list(columns) or list(dict.fromkeys(str(key) for row in records for key in row))
    if bom:
        yield codecs.BOM_UTF8
    if not names:
        return
    sheet = _Sheet(delimiter)
    yield sheet.line(names, "the headings")
    for number, row in enumerate(records, start=1):
        place = f"row {number}"
        yield sheet.line([_cell(row.get(name), f"{place}, {name}") for name in names], place)


class _Sheet:
    """Makes one line at a time."""

    def __init__(self, delimiter: str) -> None:
        self._text = io.StringIO()
        self._usual = self._writer(delimiter, csv.QUOTE_MINIMAL)
        self._quoted = self._writer(delimiter, csv.QUOTE_ALL)

    def _writer(self, delimiter: str, quoting: Literal[0, 1]) -> _WriteRow:
        form = csv.writer(self._text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        return form.writerow

    def line(self, cells: Sequence[str], place: str) -> bytes:
        # The module does not quote a bare \r, and readers take it for a line end.
        write = self._quoted if any("\r" in cell for cell in cells) else self._usual
        self._text.seek(0)
        self._text.truncate()
        write(cells)
        try:
            return self._text.getvalue().encode()
        except UnicodeEncodeError as error:
            raise NodeError(
                f"{place}: a text that is not valid Unicode", code="encoding"
            ) from error


def _record(row: object, number: int) -> Mapping[object, object]:
    if isinstance(row, Mapping):
        return row
    shown = repr(row)[:60] if isinstance(row, (str, int, float)) else type(row).__name__
    raise NodeError(
        f"row {number} is {shown}, not a record of named values; data.Record makes one",
        code="not-a-row",
    )


def _cell(value: object, place: str) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
    plain = to_json(value, place)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _key(key: object, place: str) -> str:
    plain = to_json(key, f"a key in {place}")
    if plain is None or isinstance(plain, (dict, list, bool)):
        raise NodeError(f"{place} has a key that is no text: {key!r}", code="not-json")
    return str(plain)
