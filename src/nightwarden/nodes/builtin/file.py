"""file.*: reading files a record at a time, and writing them whole or not at all.

Readers stream, and never raise for one bad record: it comes out on slot `rejected` as
`{line, raw, reason}`, and is counted in the report even where that slot is not wired.
Writers write under a temporary name first: a failure leaves the old file as it was.

Running a writer again would put the same file in place; but by then others may have
taken the first one up, so writers are not declared safe to retry.

Read next: `_files.py`, `_csv_table.py`, `_writing.py`.
"""

from __future__ import annotations

import glob as globbing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from nightwarden.nodes.builtin._csv_table import Form, Rejected, records
from nightwarden.nodes.builtin._csv_types import ColumnType
from nightwarden.nodes.builtin._files import (
    AUTO,
    FileError,
    explained,
    locate,
    open_text,
    readable,
    replacing,
    sniff,
    undecoded,
)
from nightwarden.nodes.builtin._writing import as_csv, as_json, as_text
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import node
from nightwarden.nodes.io import ABSENT, Absent, Collect, outputs

_OneSign = Annotated[str, Field(min_length=1, max_length=1)]


@outputs
class LineFrame(NamedTuple):
    """A line without its end, or what is wrong with it: `{line, raw, reason}`."""

    record: str | Absent = ABSENT
    rejected: dict[str, object] | Absent = ABSENT


@outputs
class RowFrame(NamedTuple):
    """A record by headings, or what is wrong with a row: `{line, raw, reason}`."""

    record: dict[str, object] | Absent = ABSENT
    rejected: dict[str, object] | Absent = ABSENT


@node(retry_safe=True, pure=True, label="{path}")
def read_text(path: Path, ctx: Context, *, encoding: str = AUTO) -> str:
    """Read a text file. Line ends become `\\n`.

    `encoding: auto` takes UTF-8, UTF-16 and UTF-32 by their mark, else Windows-1252, and says so.
    What cannot be decoded becomes U+FFFD, with a warning.
    """
    where = locate(path, ctx)
    with explained(where, "read"):
        found = sniff(where, encoding)
        with open_text(where, found) as file:
            text = file.read()
    if found.note:
        ctx.log.warning(found.note)
    if fault := undecoded(text):
        ctx.log.warning(f"{where}: {fault}; such bytes were replaced")
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


@node(retry_safe=True, pure=True, label="{path}")
def read_lines(
    path: Path, ctx: Context, *, encoding: str = AUTO, blank: Literal["skip", "keep"] = "skip"
) -> Iterator[LineFrame]:
    """Read a text file line by line and fan out. Blank lines are skipped unless kept.

    A line that does not decode comes out on `rejected`. For `encoding` see `file.ReadText`.
    """
    where = locate(path, ctx)
    with explained(where, "read"):
        found = sniff(where, encoding)
        if found.note:
            ctx.log.warning(found.note)
        with open_text(where, found) as file:
            for number, ended in enumerate(file, start=1):
                line = ended.removesuffix("\n")
                if fault := undecoded(line):
                    yield LineFrame(rejected=_report(Rejected(number, line, fault), ctx))
                elif blank == "keep" or line.strip():
                    yield LineFrame(record=line)


@node(retry_safe=True, pure=True, label="{path}")
def read_csv(
    path: Path,
    ctx: Context,
    *,
    encoding: str = AUTO,
    delimiter: _OneSign | None = None,
    quote: Annotated[str, Field(max_length=1)] = '"',
    headings: list[str] = [],  # noqa: B006  (never changed; a slot's default is a value)
    columns: dict[str, ColumnType] = {},  # noqa: B006
    strip: bool = False,
    short: Literal["reject", "fill"] = "reject",
    long: Literal["reject", "keep"] = "reject",
    totals: Literal["reject", "keep"] = "reject",
    skip_lines: Annotated[int, Field(ge=0)] = 0,
) -> Iterator[RowFrame]:
    """Read a CSV file row by row and fan out: a record by headings each, all values text.

    `columns` gives types, by heading: `str`, `int`, `float`, `decimal`, `decimal-comma`, `bool`,
    `date`, `datetime`, `date:%d.%m.%Y`; with `?` an empty cell is None. A cell that does not fit
    rejects its row. The delimiter (`,` `;` tab `|`) is found by itself; headings that occur
    twice become `Note`, `Note_2`; `headings` names the columns of a file that has none. Blank rows
    are skipped. `strip` cuts blanks around cells; `short: fill` takes rows with too few cells, the
    missing ones empty; `long: keep` puts cells beyond the headings into a list `extra`. A row that
    begins with a word for a sum and else holds only numbers is a sum line, rejected unless
    `totals: keep`. `skip_lines` passes over lines before the headings. `encoding` as elsewhere.
    """
    form = Form(
        delimiter=delimiter,
        quote=quote,
        headings=headings,
        columns=columns,
        strip=strip,
        short=short,
        long=long,
        totals=totals,
        skip_lines=skip_lines,
    )
    where = locate(path, ctx)
    with explained(where, "read"):
        found = sniff(where, encoding)
        if found.note:
            ctx.log.warning(found.note)
        with open_text(where, found, newline="") as file:
            for row in records(file, form, name=str(where)):
                if isinstance(row, Rejected):
                    yield RowFrame(rejected=_report(row, ctx))
                else:
                    yield RowFrame(record=row)


@node(retry_safe=True, pure=True, label="{pattern}")
def glob(pattern: str, ctx: Context, *, required: bool = True) -> Iterator[Path]:
    """Find files by a pattern (`in/*.csv`, `**/*.txt`) and fan out: their paths, sorted.

    Hidden files match only where the pattern says so. No match fails (code `no-match`) unless
    `required: false`.
    """
    wanted = str(Path(pattern).expanduser())
    found = globbing.glob(wanted, root_dir=ctx.workdir, recursive=True)
    paths = sorted(path for path in (ctx.workdir / name for name in found) if path.is_file())
    if required and not paths:
        raise FileError(f"no file matches {pattern} in {ctx.workdir}", code="no-match")
    yield from paths


@node(retry_safe=False, pure=True, label="{path}")
def write_text(text: str, path: Path, ctx: Context, *, encoding: str = "utf-8") -> Path:
    """Write a text file, in the place of one that is there. Line ends stay as they are."""
    return _write(as_text(text, encoding), path, ctx)


@node(retry_safe=False, pure=True, label="{path}")
def write_json(
    value: object, path: Path, ctx: Context, *, indent: Annotated[int, Field(ge=0)] = 2
) -> Path:
    """Write a value as a JSON file (UTF-8), in the place of one that is there.

    Records become objects; dates, decimals and paths become text. `NaN` and what JSON cannot say
    fail the step (code `not-json`). `indent: 0` writes one line.
    """
    return _write(as_json(value, indent), path, ctx)


@node(retry_safe=False, pure=True, label="{path}")
def write_csv(
    rows: Collect[dict[str, object]],
    path: Path,
    ctx: Context,
    *,
    columns: list[str] = [],  # noqa: B006  (never changed; a slot's default is a value)
    delimiter: _OneSign = ",",
    bom: bool = False,
) -> Path:
    """Write rows as a CSV file (UTF-8), in the place of one that is there.

    Columns are all keys in the order they first occur, or those of `columns`; a row without one
    has an empty cell there. Lists and records within a cell are written as JSON. Cells that begin
    with `=`, `+`, `-`, `@` are written as they are: do not open a file of strangers' data in a
    spreadsheet that runs them. `bom` marks the file as UTF-8 for spreadsheets that ask for it.
    """
    return _write(as_csv(rows, columns, delimiter, bom=bom), path, ctx)


def _write(chunks: Iterator[bytes], path: Path, ctx: Context) -> Path:
    where = locate(path, ctx)
    with replacing(where) as file:
        for chunk in chunks:
            file.write(chunk)
    ctx.assets.record(where)
    return where


def _report(row: Rejected, ctx: Context) -> dict[str, object]:
    raw = readable(row.raw)
    ctx.rejected(row.line, raw, row.reason)
    return {"line": row.line, "raw": raw, "reason": row.reason}
