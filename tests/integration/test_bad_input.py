"""Bad input gets clear lines and the right exit code: the rows of `tests/bad_input.toml`.

Issue 2, Bad input. All rows run in one process, one after the other, each in a directory of
its own; what a process of its own shows is in `test_cli.py`.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import environment

from nightwarden.store import open_store

TABLE = Path(__file__).resolve().parents[1] / "bad_input.toml"
SCRIPT = Path(__file__).with_name("many_commands.py")
ROWS: dict[str, dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
SHARED: Mapping[str, str] = ROWS.pop("files")


def lay_out(row: Mapping[str, Any], folder: Path) -> None:
    """Put a row's files where it runs."""
    texts = {**SHARED, **row.get("files", {})}
    data = {name: bytes.fromhex(digits) for name, digits in row.get("bytes", {}).items()}
    for name, content in {**{n: t.encode() for n, t in texts.items()}, **data}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for run_id, lines in row.get("record", {}).items():
        with open_store(folder / ".nightwarden") as store, store.create(run_id) as run:
            for line in lines.splitlines():
                run.append(line.encode())
    if "sql" in row:
        with closing(sqlite3.connect(folder / ".nightwarden" / "nightwarden.db")) as database:
            database.executescript(row["sql"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Every row's directory, and what its command said."""
    folders, calls, asked = [], [], []
    for number, row in enumerate(ROWS.values()):
        folder = tmp_path_factory.mktemp(f"row{number}-")
        lay_out(row, folder)
        folders.append(folder)
        calls += [call(command, row, folder, {}) for command in row.get("before", ())]
        asked.append(len(calls))
        calls.append(call(row["run"], row, folder, row.get("then", {})))
    done = subprocess.run(
        [sys.executable, SCRIPT],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=110,
        check=True,
    )
    results = json.loads(done.stdout)
    said = [results[number] for number in asked]
    return dict(zip(ROWS, zip(folders, said, strict=True), strict=True))


def call(
    command: str | list[str], row: Mapping[str, Any], folder: Path, files: Mapping[str, str]
) -> dict[str, Any]:
    """What the script is told of one command."""
    return {
        "cwd": str(folder),
        "arguments": command.split() if isinstance(command, str) else command,
        "env": row.get("env", {}),
        "stdin": row.get("stdin", ""),
        "files": files,
    }


@pytest.mark.parametrize("name", ROWS)
def test_bad_input_gets_its_line_and_its_exit_code(
    name: str, told: dict[str, tuple[Path, dict[str, Any]]]
) -> None:
    row, (folder, said) = ROWS[name], told[name]
    stream = row.get("on", "out" if row["run"][:8] == "validate" else "err")
    lines = [line for line in said[stream].splitlines() if line.strip()]
    assert said["code"] == row["exit"], said
    assert len(lines) == row.get("lines", 1), said
    rest = said[stream].replace(f"{folder}/", "")
    for part in row["says"]:
        assert part in rest, said
        rest = rest[rest.index(part) + len(part) :]
    assert "Traceback" not in said["out"] + said["err"]
    assert "\x1b" not in said["out"] + said["err"]
    if not {".nightwarden/nightwarden.db"} & row.get("files", {}).keys() and "sql" not in row:
        with open_store(folder / ".nightwarden") as store:
            recorded = store.run_ids()
        assert bool(recorded) == row.get("ran", False), "what ran, and what did not"


def test_every_row_says_what_has_to_be_said() -> None:
    for name, row in ROWS.items():
        assert {"run", "says", "exit"} <= row.keys(), name
        known = {"run", "says", "exit", "lines", "files", "bytes", "env", "stdin", "ran", "on"}
        known |= {"record", "before", "then", "sql"}
        assert row.keys() <= known, name


def test_a_single_row_says_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    row = ROWS["several mistakes are told at once"]
    lay_out(row, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "nightwarden", *row["run"].split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 4)
