"""file.ReadCsv: every row is a record or rejected, and nothing is guessed."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from fake_context import FakeContext
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._csv_rows import MOST_LINES, rows, sniff_delimiter
from nightwarden.nodes.builtin._csv_table import unique
from nightwarden.nodes.builtin._csv_types import ColumnType, converter
from nightwarden.nodes.builtin._writing import as_csv
from nightwarden.nodes.builtin.file import read_csv
from nightwarden.nodes.io import ABSENT

TYPED = {"Datum": "date:%d.%m.%Y", "Betrag": "decimal-comma"}


def read_all(path: Path, ctx: FakeContext | None = None, **options):
    frames = list(read_csv(path, ctx or FakeContext(), **options))
    records = [frame.record for frame in frames if frame.record is not ABSENT]
    rejected = [frame.rejected for frame in frames if frame.rejected is not ABSENT]
    return records, rejected


@pytest.fixture
def orders(samples: Path) -> Path:
    return samples / "orders_eu.csv"


@pytest.fixture
def expected(samples: Path) -> dict:
    return json.loads((samples / "expected.json").read_text("utf-8"))["orders_eu.csv"]


@pytest.fixture
def table(tmp_path: Path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "table.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_the_sample_table_with_types_has_the_rows_that_fit_as_they_are(
    orders: Path, expected: dict
) -> None:
    records, rejected = read_all(orders, columns=TYPED)
    assert len(records) == expected["fit_as_they_are"]
    reasons = {row["raw"].split(";")[0].strip(): row["reason"] for row in rejected}
    assert reasons == {
        "04.03.2026": "too short: 4 cells of 5, missing Note_2",
        "05.03.2026": "too long: 6 cells for 5 columns",
        "06.03.2026": "Datum: ' 06.03.2026 ' is no date like %d.%m.%Y",
        "Summe": "a sum line, no record",
    }


def test_one_more_row_fits_once_blanks_are_cut(orders: Path, expected: dict) -> None:
    records, rejected = read_all(orders, columns=TYPED, strip=True)
    assert len(records) == expected["fit_as_they_are"] + expected["fit_once_blanks_are_cut"]
    first = [row["raw"].split(";")[0] for row in rejected]
    assert first == expected["too_short"] + expected["too_long"] + expected["not_a_row"]


def test_without_types_every_row_of_the_right_size_is_a_record_of_texts(
    orders: Path, expected: dict
) -> None:
    """kernel.md §4: types are not guessed unless `columns:` says so; headings become Note_2."""
    records, rejected = read_all(orders)
    assert [record["Datum"] for record in records] == ["02.03.2026", "03.03.2026", " 06.03.2026 "]
    assert len(records) + len(rejected) == expected["rows"] + len(expected["not_a_row"])
    assert list(records[0]) == ["Datum", "Kunde", "Betrag", "Note", "Note_2"]
    assert records[0]["Note"] == "Lieferung\r\nMontag"
    assert records[1]["Kunde"] == "Probe; Söhne"
    assert records[1]["Note"] == 'sagt "eilig"'


def test_a_careful_author_gets_the_sum_of_all_five(orders: Path, expected: dict) -> None:
    records, rejected = read_all(orders, columns=TYPED, strip=True, short="fill", long="keep")
    assert len(records) == expected["rows"]
    assert sum(r["Betrag"] for r in records) * 100 == expected["sum_cents_of_all_five"]
    assert [row["raw"] for row in rejected] == ["Summe;;1.001.321,00;;"]
    assert [r["extra"] for r in records] == [[], [], [], ["zuviel"], []]
    assert records[2]["Note_2"] == ""
    assert records[0]["Datum"] == date(2026, 3, 2)


def test_rejected_rows_name_their_line_and_are_counted(orders: Path) -> None:
    """kernel.md §4: `{line, raw, reason}` on slot `rejected`; rejected counts are reported."""
    ctx = FakeContext()
    _, rejected = read_all(orders, ctx)
    assert [row["line"] for row in rejected] == [6, 7, 9]
    assert [line for line, _, _ in ctx.rejections] == [6, 7, 9]
    assert [tuple(row.values()) for row in rejected] == ctx.rejections


def test_a_sum_line_is_a_record_only_if_its_author_says_so(orders: Path) -> None:
    records, _ = read_all(orders, totals="keep")
    assert records[-1]["Datum"] == "Summe"


@pytest.mark.parametrize(
    ("row", "is_total"),
    [
        ("Total;;5", True),
        ("TOTAL: ; ;5,00 €", True),
        (";Zwischensumme;;", True),
        ("合計;3;(5)", True),
        ("Total;Paris;5", False),
        ("Total Energies;;5", False),
        ("Sum of parts;;5", False),
    ],
)
def test_a_sum_line_is_a_word_for_it_and_else_only_numbers(table, row: str, is_total: bool) -> None:
    records, rejected = read_all(table(f"a;b;c\n{row}\n"))
    assert (len(records), len(rejected)) == ((0, 1) if is_total else (1, 0))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(table, delimiter: str) -> None:
    lines = [["name", "price, net" if delimiter != "," else "price"], ["a", "1"], ["b", "2"]]
    records, _ = read_all(table("\n".join(delimiter.join(line) for line in lines)))
    assert [record["name"] for record in records] == ["a", "b"]


def test_decimal_commas_do_not_pass_for_delimiters() -> None:
    sample = ["a;b\n"] + [f"x{n};{n},50\n" for n in range(5)] + ["short\n", "shorter\n"]
    assert sniff_delimiter(sample, quote='"') == ";"


def test_a_table_of_one_column_needs_no_delimiter(table) -> None:
    assert read_all(table("name\nAda\nBob, too\n"), delimiter=";")[0] == [
        {"name": "Ada"},
        {"name": "Bob, too"},
    ]
    assert read_all(table("name\nAda\n"))[0] == [{"name": "Ada"}]


def test_a_delimiter_and_quote_can_be_given(table) -> None:
    assert read_all(table("a^b\n'x^y'^2\n"), delimiter="^", quote="'")[0] == [
        {"a": "x^y", "b": "2"}
    ]
    assert read_all(table('a,b\n"x,2\n'), quote="")[0] == [{"a": '"x', "b": "2"}]


def test_a_line_that_says_which_delimiter_it_is_believed(table) -> None:
    assert read_all(table("sep=|\na|b\n1;2|3\n"))[0] == [{"a": "1;2", "b": "3"}]


def test_lines_before_the_headings_can_be_skipped_and_still_count(table) -> None:
    records, rejected = read_all(table("Export\n2026\na,b\n1,2\n3\n"), skip_lines=2)
    assert records == [{"a": "1", "b": "2"}]
    assert rejected[0]["line"] == 5


def test_a_file_without_headings_takes_those_it_is_given(table) -> None:
    assert read_all(table("1;2\n3;4\n"), headings=["a", "b"])[0] == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": "4"},
    ]


def test_blank_rows_are_skipped(table) -> None:
    assert read_all(table("a,b\n\n , \n,\n1,2\n\n")) == ([{"a": "1", "b": "2"}], [])


def test_a_delimiter_at_the_end_of_each_line_is_no_cell(table) -> None:
    assert read_all(table("a,b\n1,2,\n3,4,,\n")) == (
        [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
        [],
    )


@pytest.mark.parametrize(
    ("given", "unique_names"),
    [
        (["Note", "Note", "Note"], ["Note", "Note_2", "Note_3"]),
        (["Note", "Note", "Note_2"], ["Note", "Note_3", "Note_2"]),
        ([" a ", "", ""], ["a", "column_2", "column_3"]),
        (["column_2", ""], ["column_2", "column_2_2"]),
    ],
)
def test_each_heading_names_one_column(given: list[str], unique_names: list[str]) -> None:
    assert unique(given) == unique_names


def test_a_quote_that_is_never_closed_costs_its_own_line_only(table) -> None:
    records, rejected = read_all(table('a,b\n1,2\n3,"x\n5,6\n7,8\n'))
    assert [record["a"] for record in records] == ["1", "5", "7"]
    assert rejected == [{"line": 3, "raw": '3,"x', "reason": "a quote that is never closed"}]


def test_a_stray_quote_in_a_long_file_does_not_swallow_it(table) -> None:
    count = MOST_LINES * 2
    lines = ["a,b", '0,"x', *(f"{n},y" for n in range(count))]
    records, rejected = read_all(table("\n".join(lines)))
    assert len(records) == count
    assert [row["line"] for row in rejected] == [2]


def test_text_behind_a_closing_quote_is_rejected(table) -> None:
    records, rejected = read_all(table('a,b\n"x"y,2\n3,4\n'))
    assert records == [{"a": "3", "b": "4"}]
    assert rejected[0]["raw"] == '"x"y,2'


def test_line_numbers_count_lines_not_records(table) -> None:
    _, rejected = read_all(table('a,b\n"1\n\n2",3\nshort\n'))
    assert rejected[0]["line"] == 5


def test_a_row_that_does_not_decode_is_rejected_by_itself(table) -> None:
    good = "é,ü,ö\n" * 3
    records, rejected = read_all(table(b"a,b,c\n" + good.encode() + b"1,\xff,3\n" + good.encode()))
    assert len(records) == 6
    assert rejected == [
        {"line": 5, "raw": "1,\\xff,3", "reason": "not in the file's encoding: byte 0xff"}
    ]


def test_a_long_raw_row_is_cut_with_a_mark(table) -> None:
    _, rejected = read_all(table("a,b\n" + "x" * 5000 + "\n"))
    assert rejected[0]["raw"] == "x" * 1000 + "… (+4000 characters)"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_the_encoding_is_found(table, encoding: str) -> None:
    ctx = FakeContext()
    records, _ = read_all(table("Größe;Straße\n1;Kö\n".encode(encoding)), ctx)
    assert records == [{"Größe": "1", "Straße": "Kö"}]
    assert len(ctx.log.warnings) == (encoding == "cp1252")


def test_an_encoding_can_be_given(table) -> None:
    path = table("имя;x\nда;1\n".encode("cp1251"))
    assert read_all(path, encoding="cp1251")[0] == [{"имя": "да", "x": "1"}]
    assert read_all(table(b"\xef\xbb\xbfa;b\n1;2\n"), encoding="utf-8")[0] == [{"a": "1", "b": "2"}]


def test_columns_that_do_not_exist_are_an_error_that_names_those_that_do(table) -> None:
    with pytest.raises(NodeError, match="has no column c; it has a, b") as caught:
        read_all(table("a,b\n1,2\n"), columns={"c": "int"})
    assert caught.value.code == "csv-columns"


def test_a_file_without_headings_is_an_error_and_one_without_rows_is_empty(table) -> None:
    with pytest.raises(NodeError, match="no line with headings") as caught:
        read_all(table("\n\n"))
    assert caught.value.code == "csv-empty"
    assert read_all(table("a,b\n")) == ([], [])


def test_a_heading_that_cannot_be_read_is_an_error(table) -> None:
    with pytest.raises(NodeError, match=":1: the headings cannot be read"):
        read_all(table('a,"b\n1,2\n'), delimiter=",")


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        ("str", "", ""),
        ("str?", "", None),
        ("int", "-12", -12),
        ("int?", "", None),
        ("float", "1e3", 1000.0),
        ("decimal", "1,234.50", Decimal("1234.50")),
        ("decimal", "-0.5", Decimal("-0.5")),
        ("decimal-comma", "1.000.000,00", Decimal("1000000.00")),
        ("decimal-comma", "-20,00", Decimal("-20.00")),
        ("decimal-comma", "7,5", Decimal("7.5")),
        ("decimal-comma", "1 234,5", Decimal("1234.5")),
        ("decimal-comma", "1’234", Decimal("1234")),
        ("bool", "Yes", True),
        ("bool", "0", False),
        ("date", "2026-03-31", date(2026, 3, 31)),
        ("date:%d.%m.%Y", "31.03.2026", date(2026, 3, 31)),
        ("datetime", "2026-03-31T18:30", datetime(2026, 3, 31, 18, 30)),
        ("datetime:%d.%m.%y %H:%M", "31.03.26 18:30", datetime(2026, 3, 31, 18, 30)),
    ],
)
def test_cells_become_values_of_the_type_their_column_has(
    kind: str, cell: str, value: object
) -> None:
    found = converter(kind)(cell)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", ""),
        ("int", "1.0"),
        ("int", " 1"),
        ("int", "1_000"),
        ("float", "nan"),
        ("float", "1,5"),
        ("decimal", "1.234,50"),
        ("decimal", "7,5"),
        ("decimal", "12,34,567"),
        ("decimal-comma", "1,234.50"),
        ("decimal-comma", "7.5"),
        ("decimal-comma", "1.00.000"),
        ("decimal-comma", "NaN"),
        ("bool", "maybe"),
        ("date", "31.03.2026"),
        ("date:%d.%m.%Y", "31.02.2026"),
        ("datetime", "soon"),
    ],
)
def test_a_cell_that_does_not_fit_is_never_bent(kind: str, cell: str) -> None:
    with pytest.raises(ValueError):
        converter(kind)(cell)


@pytest.mark.parametrize("kind", ["number", "", "int:%d", "decimal,", "dates"])
def test_an_unknown_column_type_is_found_when_the_workflow_is_loaded(kind: str) -> None:
    with pytest.raises(ValidationError, match="unknown column type"):
        TypeAdapter(ColumnType).validate_python(kind)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=8))
def test_what_is_written_is_what_is_read(found: list[list[str]]) -> None:
    written = b"".join(as_csv([{"a": a, "b": b} for a, b in found], ["a", "b"], ",", bom=False))
    lines = _lines(written.decode())
    read = [list(row.cells) for row in rows(lines, delimiter=",", quote='"') if row.cells]
    assert read == [["a", "b"], *found]


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


@given(st.text(max_size=200))
def test_every_line_of_any_text_belongs_to_one_row(text: str) -> None:
    lines = _lines(text)
    found = list(rows(lines, delimiter=",", quote='"'))
    raw = "".join(row.raw for row in found)
    assert raw.replace("\r", "").replace("\n", "") == text.replace("\r", "").replace("\n", "")
    assert [row.line for row in found] == sorted(row.line for row in found)
