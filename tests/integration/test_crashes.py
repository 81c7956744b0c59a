"""Real processes, real files, SIGKILL at seeded moments, inside commits too. (issue 4, Shown by)

Each run is killed again and again and resumed until it ends. What it comes to is what it would
have come to, less what nobody could know: an effect that was under way when its process died.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import environment

VICTIM = Path(__file__).with_name("crash_victim.py")
KILLS = 100


@pytest.fixture(scope="module", params=[1, 2])
def lives(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("crashes")
    done = subprocess.run(
        [sys.executable, str(VICTIM), str(folder), str(KILLS), str(request.param)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=115,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["deaths"] >= KILLS
    return told


def test_every_run_comes_to_its_end_with_a_whole_record(lives: Any) -> None:
    assert lives["alone"]["status"] == "completed"
    # One that was killed after its last event has nothing left to do.
    assert {run["status"] for run in lives["runs"]} <= {"completed", "nothing left"}
    # A busy machine gets through fewer runs between a hundred deaths.
    assert sum(run["status"] == "completed" for run in lives["runs"]) > 1
    assert all(run["whole"] for run in lives["runs"])


def test_no_effect_is_done_twice(lives: Any) -> None:
    for run in lives["runs"]:
        assert {line: n for line, n in Counter(run["effects"]).items() if n > 1} == {}


def test_nothing_is_missing_but_what_the_report_names(lives: Any) -> None:
    """The one unforgivable defect: an item that is missing from the output and from the report."""
    alone = lives["alone"]
    for run in lives["runs"]:
        if run["status"] == "nothing left":
            continue
        missing = {piece for row in alone["outputs"] for piece in row} - {
            piece for row in run["outputs"] for piece in row
        }
        named = set()
        for place in run["at_risk_skipped"]:
            node, _, lineage = place.partition("[")
            numbers = [int(part) for part in lineage.strip("]").split(",")]
            pieces = [numbers[1]] if node == "publish" else range(4)
            named |= {f"published item-{numbers[0]}.{piece}" for piece in pieces}
        assert missing <= named
        if not named:
            assert run["outputs"] == alone["outputs"]
            assert run["ledger"] == alone["ledger"]
            assert len(run["effects"]) == 40
