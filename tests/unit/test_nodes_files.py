"""file.ReadText, ReadLines, Glob and the writers: whole files, or what was there before."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest
from fake_context import FakeContext

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._files import FileError, replacing
from nightwarden.nodes.builtin.file import (
    glob,
    read_csv,
    read_lines,
    read_text,
    write_csv,
    write_json,
    write_text,
)
from nightwarden.nodes.io import ABSENT, Collect


@pytest.fixture
def ctx(tmp_path: Path) -> FakeContext:
    return FakeContext(workdir=tmp_path)


def put(ctx: FakeContext, name: str, data: bytes) -> Path:
    path = ctx.workdir / name
    path.write_bytes(data)
    return path


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("data", "text", "warned"),
    [
        ("é\r\nü\r".encode(), "é\nü\n", False),
        ("\ufeffé".encode(), "é", False),
        ("é€".encode("utf-16"), "é€", False),
        ("é€".encode("cp1252"), "é€", True),
        (b"plain", "plain", False),
        (b"", "", False),
        ("ééé".encode() + b"\xff", "ééé\ufffd", True),
    ],
)
def test_a_text_file_is_read_in_the_encoding_it_is_in(
    ctx: FakeContext, data: bytes, text: str, warned: bool
) -> None:
    put(ctx, "a.txt", data)
    assert read_text(Path("a.txt"), ctx) == text
    assert bool(ctx.log.warnings) is warned


def test_relative_paths_are_meant_from_the_working_directory_and_tilde_is_home(
    ctx: FakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(ctx.workdir))
    put(ctx, "a.txt", b"x")
    (ctx.workdir / "sub").mkdir()
    assert read_text(Path("sub/../a.txt"), ctx) == "x"
    assert read_text(Path("~/a.txt"), ctx) == "x"
    assert read_text(ctx.workdir / "a.txt", ctx) == "x"


@pytest.mark.parametrize("read", [read_text, read_lines, read_csv])
def test_a_missing_file_is_one_clear_line(ctx: FakeContext, read) -> None:
    with pytest.raises(FileError) as caught:
        list(read(Path("no.txt"), ctx))
    assert str(caught.value) == f"cannot read {ctx.workdir}/no.txt: no such file or directory"
    assert caught.value.errno == 2
    assert isinstance(caught.value, NodeError)


def test_a_directory_or_a_binary_file_is_no_text(ctx: FakeContext) -> None:
    with pytest.raises(FileError, match="is a directory"):
        read_text(Path("."), ctx)
    put(ctx, "a.bin", b"\x00\x01\x02")
    with pytest.raises(FileError, match="holds zero bytes") as caught:
        read_text(Path("a.bin"), ctx)
    assert caught.value.code == "not-text"
    put(ctx, "a.txt", "ab".encode("utf-16-le"))
    assert read_text(Path("a.txt"), ctx, encoding="utf-16-le") == "ab"


@pytest.mark.parametrize("encoding", ["no-such", "hex", ""])
def test_an_unknown_encoding_is_named(ctx: FakeContext, encoding: str) -> None:
    put(ctx, "a.txt", b"x")
    with pytest.raises(FileError, match="unknown encoding"):
        read_text(Path("a.txt"), ctx, encoding=encoding)


def test_lines_come_one_by_one_without_their_ends(ctx: FakeContext) -> None:
    put(ctx, "a.txt", b"one\r\n\n  two  \n\t\nthree")
    frames = list(read_lines(Path("a.txt"), ctx))
    assert [frame.record for frame in frames] == ["one", "  two  ", "three"]
    kept = list(read_lines(Path("a.txt"), ctx, blank="keep"))
    assert [frame.record for frame in kept] == ["one", "", "  two  ", "\t", "three"]


def test_a_line_that_does_not_decode_is_rejected_by_number(ctx: FakeContext) -> None:
    """kernel.md §4: readers never raise for one bad record."""
    put(ctx, "a.txt", "é\né\n".encode() + b"b\xe9d\nlast\n")
    frames = list(read_lines(Path("a.txt"), ctx))
    assert [frame.record for frame in frames] == ["é", "é", ABSENT, "last"]
    reason = "not in the file's encoding: byte 0xe9"
    assert frames[2].rejected == {"line": 3, "raw": "b\\xe9d", "reason": reason}
    assert ctx.rejections == [(3, "b\\xe9d", reason)]


def test_a_reader_that_is_closed_early_closes_its_file(ctx: FakeContext) -> None:
    put(ctx, "a.txt", b"1\n2\n3\n")
    reader = read_lines(Path("a.txt"), ctx)
    next(reader)
    reader.close()  # a file left open is a warning, and warnings are errors


def test_files_are_found_by_pattern_in_order(ctx: FakeContext) -> None:
    (ctx.workdir / "in" / "deep").mkdir(parents=True)
    (ctx.workdir / "in" / "z.csv").mkdir()
    for name in ("in/b.csv", "in/a.csv", "in/.hidden.csv", "in/c.txt", "in/deep/d.csv"):
        put(ctx, name, b"")
    base = ctx.workdir
    assert list(glob("in/*.csv", ctx)) == [base / "in/a.csv", base / "in/b.csv"]
    assert list(glob("**/*.csv", ctx)) == [
        base / f"in/{n}" for n in ("a.csv", "b.csv", "deep/d.csv")
    ]
    assert list(glob(f"{base}/in/c.*", ctx)) == [base / "in/c.txt"]


def test_no_match_is_an_error_unless_the_author_expects_it(ctx: FakeContext) -> None:
    with pytest.raises(FileError, match="no file matches") as caught:
        list(glob("*.csv", ctx))
    assert caught.value.code == "no-match"
    assert list(glob("*.csv", ctx, required=False)) == []


def test_a_writer_makes_directories_and_counts_its_file_as_an_asset(ctx: FakeContext) -> None:
    """kernel.md §4: the shipped `file.Write*` count as assets."""
    path = write_text("hé\r\n", Path("out/deep/a.txt"), ctx)
    assert path == ctx.workdir / "out/deep/a.txt"
    assert path.read_bytes() == "hé\r\n".encode()
    assert ctx.assets.recorded == [path]
    assert names_in(path.parent) == ["a.txt"]


def test_a_writer_replaces_a_file_and_keeps_its_permissions(ctx: FakeContext) -> None:
    path = put(ctx, "a.txt", b"old")
    path.chmod(0o640)
    write_text("new", Path("a.txt"), ctx)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_running_a_writer_again_leaves_the_same_file(ctx: FakeContext) -> None:
    """Replacing is idempotent; writers are still not retry-safe, see the module."""
    first = write_json({"a": 1}, Path("a.json"), ctx).read_bytes()
    assert write_json({"a": 1}, Path("a.json"), ctx).read_bytes() == first
    assert names_in(ctx.workdir) == ["a.json"]


def test_a_symbolic_link_stays_one(ctx: FakeContext) -> None:
    real = put(ctx, "real.txt", b"old")
    (ctx.workdir / "link.txt").symlink_to(real)
    write_text("new", Path("link.txt"), ctx)
    assert (ctx.workdir / "link.txt").is_symlink()
    assert real.read_text() == "new"


def test_what_is_no_ordinary_file_is_never_replaced(ctx: FakeContext) -> None:
    os.mkfifo(ctx.workdir / "pipe")
    (ctx.workdir / "dir").mkdir()
    for name in ("pipe", "dir", "/dev/null"):
        with pytest.raises(FileError, match=r"it is (no ordinary file|a directory)"):
            write_text("x", Path(name), ctx)
    assert stat.S_ISFIFO((ctx.workdir / "pipe").stat().st_mode)
    assert ctx.assets.recorded == []


def test_a_parent_that_is_a_file_is_one_clear_line(ctx: FakeContext) -> None:
    put(ctx, "a", b"")
    with pytest.raises(FileError, match=r"cannot write .*/a/b\.txt: "):
        write_text("x", Path("a/b.txt"), ctx)


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(ctx: FakeContext) -> None:
    path = put(ctx, "a.csv", b"old")
    with pytest.raises(NodeError, match="row 2 is 'no row', not a record"):
        write_csv(Collect([{"a": 1}, "no row"]), Path("a.csv"), ctx)
    with pytest.raises(NodeError, match="row 2, a is object, which JSON has no form for"):
        write_csv(Collect([{"a": 1}, {"a": object()}]), Path("a.csv"), ctx)
    assert path.read_bytes() == b"old"
    assert names_in(ctx.workdir) == ["a.csv"]
    assert ctx.assets.recorded == []


def test_an_interrupt_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def interrupted() -> None:
        with replacing(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from fake_context import FakeContext
from nightwarden.nodes.builtin.file import write_text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_text("x" * 1_000_000, Path("a.txt"), FakeContext(workdir=Path({workdir!r})))
except Exception as error:
    print(type(error).__name__, error.errno, error)
"""


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """Issue 2, bad input: a full disk is one clear line, nothing half-written."""
    (tmp_path / "a.txt").write_bytes(b"old")
    code = FULL_DISK.format(tests=str(Path(__file__).parent.parent), workdir=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"FileError 27 cannot write {tmp_path}/a.txt: file too large\n"
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a.txt"]


def test_columns_are_all_keys_in_the_order_they_first_occur(ctx: FakeContext) -> None:
    rows = Collect([{"b": 1, "a": None}, {"c": "x,y", "b": True}])
    path = write_csv(rows, Path("a.csv"), ctx)
    assert path.read_bytes() == b'b,a,c\n1,,\ntrue,,"x,y"\n'


def test_columns_can_be_chosen(ctx: FakeContext) -> None:
    path = write_csv(
        Collect([{"a": 1, "b": 2}]), Path("a.csv"), ctx, columns=["b", "z"], delimiter=";", bom=True
    )
    assert path.read_bytes() == b"\xef\xbb\xbfb;z\n2;\n"


def test_values_in_cells_are_written_as_people_read_them(ctx: FakeContext) -> None:
    row = {"d": date(2026, 3, 31), "n": Decimal("1.50"), "l": [1, "é"], "p": Path("x"), "f": 0.1}
    path = write_csv(Collect([row]), Path("a.csv"), ctx)
    assert path.read_text("utf-8").splitlines()[1] == '2026-03-31,1.50,"[1, ""é""]",x,0.1'


def test_cells_that_look_like_formulas_are_not_altered(ctx: FakeContext) -> None:
    path = write_csv(Collect([{"a": "=1+1", "b": "-5", "c": "@x"}]), Path("a.csv"), ctx)
    assert path.read_text() == "a,b,c\n=1+1,-5,@x\n"


def test_no_rows_make_an_empty_file_or_one_with_headings(ctx: FakeContext) -> None:
    assert write_csv(Collect(), Path("a.csv"), ctx).read_bytes() == b""
    assert write_csv(Collect(), Path("a.csv"), ctx, columns=["a"]).read_bytes() == b"a\n"


def test_a_row_with_broken_unicode_is_named(ctx: FakeContext) -> None:
    with pytest.raises(NodeError, match="row 1: a text that is not valid Unicode"):
        write_csv(Collect([{"a": "\ud800"}]), Path("a.csv"), ctx)


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Thing:
    pair: Pair
    when: date


def test_records_become_objects_and_dates_text(ctx: FakeContext) -> None:
    value = {"thing": Thing(Pair(1, "é"), date(2026, 1, 2)), "price": Decimal("1.10"), "t": (1, 2)}
    path = write_json(value, Path("a.json"), ctx)
    assert path.read_text("utf-8").startswith('{\n  "thing": {\n    "pair": {\n      "left": 1,')
    assert json.loads(path.read_bytes()) == {
        "thing": {"pair": {"left": 1, "right": "é"}, "when": "2026-01-02"},
        "price": "1.10",
        "t": [1, 2],
    }
    assert write_json([1, {}], Path("b.json"), ctx, indent=0).read_bytes() == b"[1, {}]\n"


def endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [1, float("nan")]}, r"value.a\[1\] is nan"),
        (float("inf"), "value is inf"),
        ({"a": object()}, "value.a is object"),
        ({"a": b"x"}, "value.a is bytes"),
        ({(1, 2): 3}, "has a key that is no text"),
        ({None: 3}, "has a key that is no text"),
        (endless(), "nested too deeply"),
        ("\ud800", "utf-8 has no sign for"),
    ],
)
def test_what_json_cannot_say_is_named_never_written(
    ctx: FakeContext, value: object, words: str
) -> None:
    with pytest.raises(NodeError, match=words):
        write_json(value, Path("a.json"), ctx)
    assert names_in(ctx.workdir) == []


def test_a_text_its_encoding_has_no_sign_for_is_refused(ctx: FakeContext) -> None:
    assert write_text("é", Path("a.txt"), ctx, encoding="latin-1").read_bytes() == b"\xe9"
    with pytest.raises(NodeError, match="latin-1 has no sign for '€'"):
        write_text("€", Path("b.txt"), ctx, encoding="latin-1")
    with pytest.raises(NodeError, match="unknown encoding"):
        write_text("x", Path("b.txt"), ctx, encoding="no-such")
    assert names_in(ctx.workdir) == ["a.txt"]
