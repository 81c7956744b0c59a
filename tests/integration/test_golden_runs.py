"""Runs that earlier versions recorded are read, verified, reported and resumed for ever."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from case_runs import Asked

from nightwarden.report import fold_report, report_json
from nightwarden.resuming import resume_session
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.session import run_session
from nightwarden.store import open_store
from nightwarden.verdict import Skip

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def night() -> ModuleType:
    spec = importlib.util.spec_from_file_location("night", GOLDEN / "night.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "run-0001", tmp_path / "kept")
    return tmp_path / "kept"


def test_a_recorded_run_is_whole_and_told(place: Path) -> None:
    with open_store(place) as store:
        assert store.verify("night-1").whole
        entry = store.entry("night-1")
        assert (entry.workflow, entry.status, entry.owner_alive) == ("night", "interrupted", False)
        told = report_json(fold_report(store.read("night-1")))
    decided = [found["decision"]["decided_by"] for found in told["interventions"]]
    assert sorted(decided) == ["agent", "agent", "sticky"]


def test_a_recorded_run_is_resumed(place: Path, night: ModuleType, tmp_path: Path) -> None:
    asked = Asked([Rule(answers=(ScriptedAnswer(Skip(), "nobody knows whether it is out"),))])
    with open_store(place) as store:
        session = resume_session(
            store, "night-1", workflow=night.workflow(), supervise=asked, workdir=tmp_path
        )
        assert [str(risk) for risk in session.at_risk] == ["publish[5.2]"]
        result = run_session(session)
        assert store.verify("night-1").whole
    assert result.status == "completed"
    assert [e.signature for e in asked.escalations] == ["node:interrupted"]
    assert list(result.outputs["rows"]) == [
        ["published a.0", "published a.1"],
        ["published torn.0", "published torn.1"],
        ["published c.0"],
        ["published d.0", "published d.1"],
    ]
    assert result.headline.startswith("completed (supervised): 4/6 items, 2 skipped")
