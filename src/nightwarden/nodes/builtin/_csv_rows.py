"""A CSV file as rows with their line numbers, whatever stands in it.

    lines ─▶ records (quoted line ends, doubled quotes) ─▶ Row(line, raw, cells, fault)

A record that cannot be read is one faulty row. A quote that is never closed would swallow
the rest of the file: after `MOST_LINES` lines, or at its end, its first line is given up and
reading goes on behind it.

Read next: `_csv_table.py`.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from nightwarden.nodes.builtin._files import undecoded

MOST_LINES: Final = 1_000
"""A record of more lines than this is taken for a quote that was never closed."""
DELIMITERS: Final = ",;\t|"
"""Those that are looked for."""
_LONGEST_FIELD: Final = 10_000_000


_Evenness = tuple[float, int]


class Row(NamedTuple):
    """A record: `line` is where it begins (from 1), `fault` why its cells cannot be trusted."""

    line: int
    raw: str
    cells: Sequence[str]
    fault: str = ""


class _UnclosedError(Exception):
    """A record has grown longer than any record is."""


class _Lines:
    """Lines one can give back; remembers those of the record being read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._returned: deque[str] = deque()
        self.taken: list[str] = []
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= MOST_LINES:
            raise _UnclosedError
        line = self._returned.popleft() if self._returned else next(self._lines)
        self.taken.append(line)
        self.number += 1
        return line

    def start_record(self) -> int:
        """Forget the last record; the number of the line the next one begins on."""
        self.taken.clear()
        return self.number + 1

    def keep_first(self) -> str:
        """Give back all lines of the record but its first."""
        first, *rest = self.taken
        self._returned.extendleft(reversed(rest))
        self.number -= len(rest)
        return first


def rows(lines: Iterable[str], *, delimiter: str, quote: str) -> Iterator[Row]:
    """Every record of the lines, blank lines too (as rows without cells)."""
    csv.field_size_limit(_LONGEST_FIELD)  # the module's own limit is one for the process
    source = _Lines(lines)
    reader = _reader(source, delimiter, quote)
    while True:
        line = source.start_record()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (_UnclosedError, csv.Error) as error:
            unclosed = isinstance(error, _UnclosedError) or "unexpected end" in str(error)
            raw = source.keep_first() if unclosed else "".join(source.taken)
            fault = "a quote that is never closed" if unclosed else str(error)
            yield Row(line, raw.rstrip("\r\n"), (), fault)
            # A reader that raised still holds half a record.
            reader = _reader(source, delimiter, quote)
            continue
        raw = "".join(source.taken).rstrip("\r\n")
        yield Row(line, raw, cells, undecoded(raw))


def sniff_delimiter(sample: Sequence[str], *, quote: str, columns: int | None = None) -> str:
    """The delimiter under which most rows have as many cells as the first one, more than one.

    `columns` is how many there are to be, where that is known. A comma where no delimiter fits:
    the file has one column. The first row decides since decimal commas make even rows, too.
    """
    found = {d: _evenness(sample, d, quote, columns) for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda delimiter: found[delimiter])
    return best if found[best] > (0, 0) else ","


def _evenness(sample: Sequence[str], delimiter: str, quote: str, columns: int | None) -> _Evenness:
    """The share of rows that have the expected size, and that size."""
    read = rows(sample, delimiter=delimiter, quote=quote)
    sizes = [len(row.cells) for row in read if row.cells and not row.fault]
    if not sizes:
        return 0, 0
    expected = columns or sizes[0]
    return (sizes.count(expected) / len(sizes), expected) if expected > 1 else (0, 0)


def _reader(source: _Lines, delimiter: str, quote: str) -> Iterator[list[str]]:
    return csv.reader(
        source,
        delimiter=delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        strict=True,
    )
