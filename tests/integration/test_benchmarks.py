"""The benchmarks measure something that is right; how fast it is, no test says (house.md §4)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

ROWS = {
    "G1": 7,
    "G2": 2,
    "G3": 1,
    "G4": 3,
    "G5": 2,
    "G6": 2,
    "G8": 4,
    "G9": 2,
    "G10": 4,
    "G11": 3,
}
"""How many numbers each goal of performance.md comes to."""

SUMS = {
    # 0 … 49, each made greater by as many steps as it went through
    "fanout": 1225 + 3 * 50,
    "generated": 1225 + 3 * 50,
    "changed-records": 1225 + 3 * 50,
    "rewritten-records": 1225 + 3 * 50,
    "waiting": 1225 + 3 * 50,
    "stream": 1225 + 3 * 50,
    "stages": 1225 + 3 * 50,
    "join": 2 * (1225 + 2 * 50),
    "chain": 1225 + 100 * 50,
}


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def measured(goal: str) -> dict[str, Any]:
    done = python("engine.py", "--quick", "--json", "--only", goal)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("goal", ROWS)
def test_each_goal_comes_to_its_numbers(goal: str) -> None:
    report = measured(goal)
    assert report["version"] == 1
    assert report["quick"] is True
    assert report["broken"] == []
    assert report["machine"].keys() == {"date", "cpu", "cores", "python", "system", "load"}
    rows = report["rows"]
    assert [row["goal"] for row in rows] == [goal] * ROWS[goal]
    for row in rows:
        assert row["low"] <= row["measured"] <= row["high"]
        assert row["what"]
        assert row["unit"]
        assert row["met"] in (True, False) if row["at_most"] is not None else row["met"] is None


def test_all_goals_of_this_part_are_measured() -> None:
    done = python("engine.py", "--only", "G99")
    assert done.returncode == 2
    assert f"known are {', '.join(ROWS)}" in done.stderr


@pytest.mark.parametrize("workload", ["fanout", "join", "stream", "chain", "waiting"])
def test_the_reference_computes_what_it_should(workload: str) -> None:
    reply = json.loads(python("reference.py", workload, "50").stdout)
    assert reply["sum"] == SUMS[workload]
    assert reply["right"] is True


@pytest.mark.parametrize("workload", SUMS)
def test_the_engine_computes_the_same(workload: str) -> None:
    reply = json.loads(python("subject.py", workload, "50", "--times", "2").stdout)
    assert reply["sum"] == SUMS[workload]
    assert reply["right"] is True
    assert len(reply["seconds"]) == 2


@pytest.mark.parametrize("declared", ["default", "retry"])
def test_however_steps_are_declared_the_result_is_the_same(declared: str) -> None:
    reply = json.loads(python("subject.py", "changed-records", "50", "--declared", declared).stdout)
    assert reply["sum"] == SUMS["changed-records"]


def test_a_run_with_a_supervisor_that_is_not_needed_never_asks_it() -> None:
    reply = json.loads(python("trouble.py", "clean", "50", "--times", "1").stdout)
    assert (reply["asked"], reply["right"]) == (0, True)


def test_seven_of_two_hundred_that_fail_are_skipped_and_named() -> None:
    """performance.md, G10."""
    reply = json.loads(python("trouble.py", "skipped", "200", "--times", "1").stdout)
    assert (reply["kept"], reply["itemised"], reply["right"]) == (193, 7, True)


def test_a_measurement_that_cannot_be_taken_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    """A copy of the benchmarks whose reference is broken."""
    for script in BENCHMARKS.glob("*.py"):
        text = script.read_text(encoding="utf-8")
        if script.name == "reference.py":
            text = text.replace("sums += kept[0]", "sums += kept[0] + 1")
        (tmp_path / script.name).write_text(text, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "engine.py"), "--quick", "--json", "--only", "G4,G9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert [row["goal"] for row in report["rows"]] == ["G9", "G9"]
    (line,) = report["broken"]
    assert line.startswith("G4: chain: python")
    assert "came to a wrong result" in line


def test_results_go_into_a_document_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- results -->\nold\n<!-- end of results -->\nbelow\n")
    done = python("engine.py", "--quick", "--only", "G9", "--into", str(page))
    assert done.returncode == 0, done.stderr
    lines = page.read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[1], lines[-2], lines[-1]) == (
        "above",
        "<!-- results -->",
        "<!-- end of results -->",
        "below",
    )
    assert "old" not in lines
    assert sum(line.startswith("| G9 |") for line in lines) == 2


def test_a_document_without_marks_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to replace\n")
    done = python("engine.py", "--into", str(page))
    assert done.returncode == 2
    assert "it needs <!-- results -->" in done.stderr
    assert page.read_text() == "nothing to replace\n"


def test_what_a_model_that_decides_costs_is_measured_against_a_loopback_provider() -> None:
    """The runs ask once for each failure, and go on; else there would be no numbers."""
    done = python("supervisor.py", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["version"] == 1
    rows = {row["name"]: row for row in report["rows"]}
    assert len(rows) == len(report["rows"]) == 8
    assert all(0 < row["low"] <= row["value"] <= row["high"] for row in rows.values())
    first = rows["anthropic: failure to first request"]
    assert first["unit"] == "s"
