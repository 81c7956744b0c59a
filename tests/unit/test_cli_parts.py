"""The pure parts of the command line (surfaces.md, Command line; issue 2, Bad input)."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import nightwarden as nw
from nightwarden.cli.failing import EXITS, LostRun, Usage, explained
from nightwarden.cli.inputs import read_inputs
from nightwarden.cli.main import app, with_bare_supervise
from nightwarden.cli.options import same_store
from nightwarden.cli.output import painted
from nightwarden.cli.running import near, output_text
from nightwarden.errors import Problem, RunError, SpecError, StoreError
from nightwarden.settings import BadSettings
from nightwarden.spec.workflow import Workflow


@nw.node(type="t.Take")
def take(
    word: str,
    number: int,
    many: list[str],
    rows: list[dict[str, object]],
    path: Path,
    maybe: str | None,
    anything: object,
) -> None: ...


def helps() -> dict[str, str]:
    """The help of every command, by its name."""
    found, left = {}, [("nightwarden", get_command(app))]
    while left:
        name, command = left.pop()
        with typer.Context(command, info_name=name, max_content_width=500, terminal_width=500) as c:
            found[name] = command.get_help(c)
        left += [(f"{name} {sub}", each) for sub, each in getattr(command, "commands", {}).items()]
    return found


def test_help_says_a_default_once_and_marks_an_argument_once() -> None:
    told = helps()
    lines = [f"{name}: {line}" for name, text in told.items() for line in text.splitlines()]
    assert [line for line in lines if line.count("default:") > 1] == []
    assert [line for line in lines if "[[" in line or "......" in line] == []
    assert "[RUN]..." in told["nightwarden costs"]


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        (None, ""),
        ("kept", " --store kept"),
        ("my runs", " --store 'my runs'"),
        ("sqlite:a.db", " --store sqlite:a.db"),
        ("postgresql://me:hunter2@host/runs", " --store postgresql://…"),
    ],
)
def test_commands_that_are_shown_name_the_same_store(store: str | None, shown: str) -> None:
    assert same_store(store) == shown


@pytest.fixture(scope="module")
def workflow() -> Workflow:
    with nw.workflow("t") as w:
        types = {
            "word": "str",
            "number": "int",
            "many": "list[str]",
            "rows": "list[dict[str, json]]",
            "path": "path",
            "maybe": "str?",
            "anything": "json",
        }
        w.add(take, **{name: w.input(name, text) for name, text in types.items()})
    return w.build()


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("word=7", "7"),
        ("word=", ""),
        ("word=a=b", "a=b"),
        ('word="x"', '"x"'),
        ("word=@@home", "@home"),
        ("maybe=null", "null"),
        ("path=7", "7"),
        ("number=7", 7),
        ("number=seven", "seven"),
        ('many=["a"]', ["a"]),
        ("anything={}", {}),
        ("anything=plain", "plain"),
        (" number = 7", 7),
    ],
)
def test_a_value_is_text_where_text_is_declared_and_else_json(
    workflow: Workflow, pair: str, value: object
) -> None:
    (found,) = read_inputs(workflow, [pair]).values()
    assert found == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("many", "a\n\n b \n", ["a", "b"]),
        ("many", "\ufeffa\r\nb\r\n", ["a", "b"]),
        ("rows", '{"n": 1}\n{"n": 2}\n', [{"n": 1}, {"n": 2}]),
        ("word", "two\nlines\n", "two\nlines\n"),
        ("path", "out.csv\n", "out.csv"),
        ("number", " 7\n", 7),
        ("anything", '["a"]', ["a"]),
    ],
)
def test_an_at_sign_reads_the_file(
    workflow: Workflow, tmp_path: Path, name: str, text: str, value: object
) -> None:
    file = tmp_path / "given.txt"
    file.write_text(text, encoding="utf-8", newline="")
    assert read_inputs(workflow, [f"{name}=@{file}"]) == {name: value}


def test_at_minus_reads_standard_input(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    assert read_inputs(workflow, ["many=@-"]) == {"many": ["a", "b"]}


def test_single_inputs_win_over_those_of_a_file(workflow: Workflow, tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text('{"word": "a", "number": 1}')
    assert read_inputs(workflow, ["number=2"], file) == {"word": "a", "number": 2}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["word"], "--input wants NAME=VALUE, not 'word'"),
        (["=x"], "--input wants NAME=VALUE, not '=x'"),
        (["word=a", "word=b"], "input word is given twice"),
        (["word=@"], "input word: no file is named after the @"),
        (["word=@nope.txt"], "input word: nope.txt cannot be read: No such file"),
        (["word=@."], "input word: . cannot be read: Is a directory"),
    ],
)
def test_an_input_that_cannot_be_read_says_which_and_why(
    workflow: Workflow, pairs: list[str], said: str
) -> None:
    with pytest.raises(Usage, match="^" + said.replace("'", ".").replace("[", r"\[")):
        read_inputs(workflow, pairs)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("run w.yaml --supervise", "run w.yaml --supervise=agent"),
        ("run --supervise w.yaml", "run --supervise=agent w.yaml"),
        ("run --supervise --trust w.yaml", "run --supervise=agent --trust w.yaml"),
        ("run w.yaml --supervise operator", "run w.yaml --supervise operator"),
        ("run w.yaml --supervise robot", "run w.yaml --supervise robot"),
        ("run w.yaml --supervise=off", "run w.yaml --supervise=off"),
        ("run w.yaml", "run w.yaml"),
        ("", ""),
    ],
)
def test_supervise_that_stands_alone_means_a_model(arguments: str, meant: str) -> None:
    """surfaces.md: bare = agent."""
    assert with_bare_supervise(arguments.split()) == meant.split()


def test_exit_codes_are_those_of_the_design() -> None:
    assert EXITS == {"completed": 0, "failed": 1, "suspended": 3, "cancelled": 130}


@pytest.mark.parametrize(
    ("error", "lines", "code"),
    [
        (RunError("one\ntwo"), ["nightwarden: one", "nightwarden: two"], 2),
        (StoreError("full"), ["nightwarden: full"], 2),
        (Usage("no"), ["nightwarden: no"], 2),
        (LostRun("full"), ["nightwarden: full"], 1),
        (BadSettings(["a", "b"]), ["nightwarden: a", "nightwarden: b"], 2),
        (FileNotFoundError(2, "No such file", "x"), ["nightwarden: x: No such file"], 2),
        (KeyboardInterrupt(), ["nightwarden: cancelled"], 130),
        (MemoryError(), ["nightwarden: there is not enough memory"], 1),
        (
            SpecError([Problem(message="m", rule="r", file="f", line=3, node="n", remedy="do")]),
            ["f:3: n: m [r] — do"],
            2,
        ),
        (
            ZeroDivisionError("division\nby zero"),
            [
                "nightwarden: a fault of ours: ZeroDivisionError: division; "
                "run it again with --debug"
            ],
            1,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_becomes_lines_and_an_exit_code(
    error: BaseException, lines: list[str], code: int
) -> None:
    assert explained(error) == (lines, code)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"absent": "lost", "causes": ["a was skipped"]}, "no output: a was skipped"),
        ({"absent": "lost", "causes": []}, "no output: lost"),
        ({"values": [1, 2], "indices": [0, 2], "losses": [{}]}, "2 values, 1 lost"),
        ([1, 2, 3], "a list of 3"),
        ({"a": 1, "b": 2}, "a record of a, b"),
        (True, "true"),
        (None, "nothing"),
        (1.5, "1.5"),
        ("text", "text"),
    ],
)
def test_an_output_is_told_in_one_line(value: object, said: str) -> None:
    assert output_text(value) == said


def test_a_path_is_shown_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert near(str(tmp_path / "a" / "b.csv")) == os.path.join("a", "b.csv")
    assert near("/elsewhere/b.csv") == "/elsewhere/b.csv"
    assert near("any text\n/with lines") == "any text\n/with lines"


def test_colours_are_for_terminals_only() -> None:
    assert painted("x", "red", io.StringIO()) == "x"
    assert painted("x", "red", None) == "x"
