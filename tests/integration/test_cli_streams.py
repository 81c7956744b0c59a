"""Standard output is for the result, and a terminal that is closed stops a run (surfaces.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMAND, PATIENCE_S, environment, nightwarden
from kept import events_of

STEPS = """
import asyncio
import subprocess
import sys

from nightwarden import Context, node

print("imported")


@node(type="t.Loud", retry_safe=True)
def loud(ctx: Context) -> str:
    print("printed by the step", flush=True)
    subprocess.run([sys.executable, "-c", "print('printed by its child')"], check=True)
    ctx.log.warning("%d of %s", 1, "two")
    return "said"


@node(type="t.Apart", retry_safe=True, executor="process")
def apart(ctx: Context) -> str:
    print("printed in a process of its own")
    ctx.log.warning("%d apart from %s", 1, "two")
    return "said"


@node(type="t.Wait")
async def wait() -> int:
    print("begun", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)
    return 1
"""
# What ignores a signal hands that on; a test may itself run under `nohup`.
BEFORE = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.{}); os.execv({!r}, {!r})"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    return tmp_path


def a_file(place: Path, step: str) -> str:
    text = f"name: t\npython: [steps.py]\nnodes: {{a: {{type: {step}}}}}\n"
    (place / "w.yaml").write_text(text, encoding="utf-8")
    return "w.yaml"


@pytest.mark.parametrize(
    ("step", "printed"),
    [
        ("t.Loud", ["printed by the step", "printed by its child"]),
        ("t.Apart", ["printed in a process of its own"]),
    ],
)
def test_what_a_step_prints_stays_out_of_the_json(
    place: Path, step: str, printed: list[str]
) -> None:
    done = nightwarden("run", a_file(place, step), "--trust", "--json", cwd=place)
    assert json.loads(done.out)["outputs"] == {"a": "said"}
    assert done.code == 0
    assert {"imported", *printed} <= set(done.lines)


def test_what_a_step_file_prints_stays_out_of_the_json(place: Path) -> None:
    done = nightwarden("nodes", "t.Loud", "--nodes", "steps.py", "--json", cwd=place)
    assert json.loads(done.out)["nodes"][0]["type"] == "t.Loud"
    assert done.lines == ["imported"]


def test_without_json_a_step_prints_to_standard_output(place: Path) -> None:
    done = nightwarden("run", a_file(place, "t.Loud"), "--trust", cwd=place)
    assert done.out.splitlines()[:3] == ["imported", "printed by the step", "printed by its child"]


@pytest.mark.parametrize(
    ("step", "line"),
    [("t.Loud", "a warning: 1 of two"), ("t.Apart", "a warning: 1 apart from two")],
)
def test_a_log_line_takes_values_as_logging_does(place: Path, step: str, line: str) -> None:
    done = nightwarden("run", a_file(place, step), "--trust", cwd=place)
    assert line in done.lines


def started(place: Path, on_hangup: str) -> subprocess.Popen[bytes]:
    command = [*COMMAND, "run", a_file(place, "t.Wait"), "--trust", "--run-id", "r"]
    process = subprocess.Popen(
        [sys.executable, "-c", BEFORE.format(on_hangup, command[0], command)],
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"begun\n"
    return process


def test_a_closed_terminal_stops_a_run_cleanly(place: Path) -> None:
    with started(place, "SIG_DFL") as process:
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert out.decode().splitlines()[1] == "── cancelled: SIGHUP"
    assert err.decode().startswith("SIGHUP: stopping…")
    assert events_of(place / ".nightwarden", "r")[-1]["type"] == "run_cancelled"


def test_a_run_that_is_to_outlive_its_terminal_does(place: Path) -> None:
    """`nohup` has the signal ignored, and that is left so."""
    with started(place, "SIG_IGN") as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert out.decode().splitlines()[1] == "── cancelled: SIGTERM"


def test_a_group_without_a_command_shows_what_there_is(tmp_path: Path) -> None:
    done = nightwarden("hook", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.lines[0] == "Usage: nightwarden hook [OPTIONS] COMMAND [ARGS]..."
    assert any(line.startswith("  install ") for line in done.lines)


@pytest.mark.parametrize(
    ("option", "expected"), [("--max-cost", "a number"), ("--max-decisions", "a whole number")]
)
def test_an_option_that_wants_a_number_says_so(tmp_path: Path, option: str, expected: str) -> None:
    done = nightwarden("run", "w.yaml", option, "many", cwd=tmp_path)
    said = f"invalid value for '{option}': {expected} is expected (see nightwarden run --help)"
    assert (done.code, done.lines) == (2, [f"nightwarden: {said}"])
