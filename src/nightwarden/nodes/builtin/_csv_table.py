"""Rows under headings: which are records, which are not, and why.

    Row ─▶ blank? skip ─▶ sum line? ─▶ as many cells as headings? ─▶ do they fit their types?
                              └──────────────┴──────────────────────────┴──▶ Rejected(reason)

Every row that is not blank comes out exactly once, as a record or rejected.

Read next: `_csv_types.py`, `file.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, Final, NamedTuple

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._csv_rows import Row, rows, sniff_delimiter
from nightwarden.nodes.builtin._csv_types import Convert, converter

EXTRA: Final = "extra"
"""Under this heading stand the cells a too long row has beyond the headings, if they are kept."""

_SAMPLE_LINES: Final = 100
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_TOTALS: Final = frozenset(
    {
        *("total", "totals", "grand total", "subtotal", "sub-total", "sum", "sums"),
        *("summe", "summen", "gesamt", "gesamtsumme", "zwischensumme", "endsumme", "insgesamt"),
        *("somme", "total général", "sous-total", "totale", "somma", "suma", "suma total"),
        *("totaal", "razem", "ogółem", "celkem", "итого", "всего", "合計", "合计", "小計", "总计"),
    }
)
_NUMBER: Final = re.compile(r"[\s\d.,'’+\-€$£%()]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a table is to be read; see `file.ReadCsv`."""

    delimiter: str | None = None
    quote: str = '"'
    headings: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    strip: bool = False
    short: str = "reject"
    long: str = "reject"
    totals: str = "reject"
    skip_lines: int = 0


class Rejected(NamedTuple):
    """A row that is no record: where it begins, how it stands there, and why."""

    line: int
    raw: str
    reason: str


Record = dict[str, object]


def records(file: IO[str], form: Form, *, name: str) -> Iterator[Record | Rejected]:
    """Every row of a table. Raises `NodeError` if it has no headings, or not those named."""
    skipped = len(list(islice(file, form.skip_lines)))
    sample = list(islice(file, _SAMPLE_LINES))
    delimiter = form.delimiter
    if sample and (said := _SEPARATOR_LINE.fullmatch(sample[0])):
        delimiter = delimiter or said.group(1)
        del sample[0]
        skipped += 1
    known = len(form.headings) or None
    delimiter = delimiter or sniff_delimiter(sample, quote=form.quote, columns=known)
    found = rows(chain(sample, file), delimiter=delimiter, quote=form.quote)
    numbered = (row._replace(line=row.line + skipped) for row in found if _is_filled(row))
    headings = _headings(form, numbered, name)
    converters = _converters(form, headings, name)
    for row in numbered:
        yield _read(row, headings, converters, form)


def unique(names: Sequence[str]) -> list[str]:
    """Headings that name one column each: `Note`, `Note_2`; an empty one is `column_3`."""
    taken = {name.strip() for name in names}
    found: list[str] = []
    for position, given in enumerate(names, start=1):
        base = name = given.strip() or f"column_{position}"
        number = 2
        while name in found or (name != base and name in taken):
            name, number = f"{base}_{number}", number + 1
        found.append(name)
    return found


def _headings(form: Form, numbered: Iterator[Row], name: str) -> list[str]:
    if form.headings:
        return unique(form.headings)
    first = next(numbered, None)
    if first is None:
        raise NodeError(f"{name} is empty: there is no line with headings", code="csv-empty")
    if first.fault:
        text = f"{name}:{first.line}: the headings cannot be read: {first.fault}"
        raise NodeError(text, code="csv-headings")
    return unique(first.cells)


def _converters(form: Form, headings: Sequence[str], name: str) -> dict[str, Convert]:
    if unknown := [column for column in form.columns if column not in headings]:
        text = f"{name} has no column {', '.join(unknown)}; it has {', '.join(headings)}"
        raise NodeError(text, code="csv-columns")
    return {column: converter(kind) for column, kind in form.columns.items()}


def _read(
    row: Row, headings: Sequence[str], converters: Mapping[str, Convert], form: Form
) -> Record | Rejected:
    def reject(reason: str) -> Rejected:
        return Rejected(row.line, row.raw, reason)

    if row.fault:
        return reject(row.fault)
    cells = [cell.strip() for cell in row.cells] if form.strip else list(row.cells)
    if form.totals == "reject" and _is_total(cells):
        return reject("a sum line, no record")
    size = len(headings)
    while len(cells) > size and not cells[-1].strip():
        cells.pop()  # a delimiter at the end of a line is no cell
    if len(cells) < size and form.short == "reject":
        missing = ", ".join(headings[len(cells) :])
        return reject(f"too short: {len(cells)} cells of {size}, missing {missing}")
    if len(cells) > size and form.long == "reject":
        columns = "1 column" if size == 1 else f"{size} columns"
        return reject(f"too long: {len(cells)} cells for {columns}")
    cells += [""] * (size - len(cells))
    record: Record = dict(zip(headings, cells, strict=False))
    for column, convert in converters.items():
        cell = str(record[column])
        try:
            record[column] = convert(cell)
        except ValueError as error:
            return reject(f"{column}: {cell!r} is {error}")
    if form.long == "keep":
        record[unique([*headings, EXTRA])[-1]] = cells[size:]
    return record


def _is_filled(row: Row) -> bool:
    return bool(row.fault) or any(cell.strip() for cell in row.cells)


def _is_total(cells: Sequence[str]) -> bool:
    """A word for a sum first, and nothing but numbers behind it."""
    first, *rest = [cell.strip() for cell in cells if cell.strip()]
    if first.rstrip(":").casefold() not in _TOTALS:
        return False
    return all(_NUMBER.fullmatch(cell) for cell in rest)
