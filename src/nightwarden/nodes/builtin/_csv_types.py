"""Cells to values: the types an author names for columns. Nothing is guessed.

    str  int  float  decimal  decimal-comma  bool  date  datetime  date:%d.%m.%Y  datetime:…
    with `?` at the end an empty cell is None

`decimal-comma` reads `1.234,50`, `decimal` reads `1,234.50`: groups of three must be whole,
so that neither takes the other's numbers for its own. Blanks around a value do not fit.

Read next: `_csv_rows.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator

Convert = Callable[[str], object]

_GROUPED: Final = r"[+-]?(?:\d{1,3}(?:[%s]\d{3})+|\d+)(?:[%s]\d+)?"
_BLANK_GROUPS: Final = "'’\u00a0\u202f "
_COMMA: Final = re.compile(_GROUPED % (re.escape("." + _BLANK_GROUPS), ","))
_POINT: Final = re.compile(_GROUPED % (re.escape("," + _BLANK_GROUPS), "."))
_INTEGER: Final = re.compile(r"[+-]?\d{1,1000}")
_FLOAT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_DIGITS: Final = re.compile(r"[^\d+-]")
_TRUE: Final = frozenset({"true", "yes", "1", "y", "t", "on"})
_FALSE: Final = frozenset({"false", "no", "0", "n", "f", "off"})


def _integer(cell: str) -> int:
    if not _INTEGER.fullmatch(cell):
        raise ValueError("no whole number")
    return int(cell)


def _float(cell: str) -> float:
    if not _FLOAT.fullmatch(cell):
        raise ValueError("no number")
    return float(cell)


def _decimal(cell: str) -> Decimal:
    return _grouped(cell, _POINT, ".")


def _decimal_comma(cell: str) -> Decimal:
    return _grouped(cell, _COMMA, ",")


def _grouped(cell: str, shape: re.Pattern[str], point: str) -> Decimal:
    if not shape.fullmatch(cell):
        raise ValueError(f"no number with a decimal {'comma' if point == ',' else 'point'}")
    whole, _, fraction = cell.partition(point)
    digits = _NOT_DIGITS.sub("", whole)
    return Decimal(f"{digits}.{fraction}" if fraction else digits)


def _bool(cell: str) -> bool:
    word = cell.casefold()
    if word not in _TRUE | _FALSE:
        raise ValueError("neither true nor false")
    return word in _TRUE


def _date(form: str | None) -> Convert:
    def convert(cell: str) -> date:
        try:
            return (
                date.fromisoformat(cell) if form is None else datetime.strptime(cell, form).date()
            )
        except ValueError as error:
            raise ValueError(f"no date like {form or '2026-03-31'}") from error

    return convert


def _datetime(form: str | None) -> Convert:
    def convert(cell: str) -> datetime:
        try:
            return datetime.fromisoformat(cell) if form is None else datetime.strptime(cell, form)
        except ValueError as error:
            raise ValueError(f"no date and time like {form or '2026-03-31T18:30:00'}") from error

    return convert


_PLAIN: Final[Mapping[str, Convert]] = {
    "str": str,
    "int": _integer,
    "float": _float,
    "decimal": _decimal,
    "decimal-comma": _decimal_comma,
    "bool": _bool,
}
_TIMES: Final[Mapping[str, Callable[[str | None], Convert]]] = {
    "date": _date,
    "datetime": _datetime,
}


def converter(kind: str) -> Convert:
    """The function for a column type. It raises `ValueError` that says what a cell is not."""
    name, _, form = kind.removesuffix("?").partition(":")
    if name in _TIMES:
        convert = _TIMES[name](form or None)
    elif name in _PLAIN and not form:
        convert = _PLAIN[name]
    else:
        known = ", ".join((*_PLAIN, *_TIMES, "date:%d.%m.%Y"))
        raise ValueError(f"unknown column type {kind!r}; there are {known}, each also with ?")
    return _or_none(convert) if kind.endswith("?") else _filled(convert)


def _or_none(convert: Convert) -> Convert:
    return lambda cell: convert(cell) if cell else None


def _filled(convert: Convert) -> Convert:
    if convert is str:
        return convert

    def checked(cell: str) -> object:
        if not cell:
            raise ValueError("empty")
        return convert(cell)

    return checked


def _checked(kind: str) -> str:
    converter(kind)
    return kind


ColumnType = Annotated[str, AfterValidator(_checked)]
"""A column type as written in a workflow; a wrong one is found when the workflow is loaded."""
