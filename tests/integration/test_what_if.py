"""`report RUN --what-if`: what a model would have decided; nothing is changed (issue 5)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import Done, nightwarden
from model_runs import KEY, answer
from model_server import Hang, ModelServer, Status

CHAT = "openai-chat:gpt-5"
STOP = answer("fail", reason="The page is gone.")
FILES = {
    "steps.py": """
import nightwarden as nw

@nw.node(type="t.Read", retry_safe=True)
def read(name: str) -> str:
    if name == "bee":
        raise TimeoutError("no answer from bee")
    return name
""",
    "w.yaml": """
name: w
inputs: {names: "list[str]"}
nodes:
  - {id: read, type: t.Read, properties: {name: "$inputs.names[*]"}}
""",
    "stop.yaml": "- when: {node: read}\n  answer: stop\n",
    "skip.yaml": "- when: {node: read}\n  answer: skip\n",
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def ran(here: Path, *more: str) -> None:
    words = ("run", "w.yaml", "--nodes", "steps.py", "--inputs", "in.json", "--run-id", "one")
    (here / "in.json").write_text('{"names": ["ant", "bee"]}', encoding="utf-8")
    nightwarden(*words, *more, cwd=here)


def asked(
    here: Path, server: ModelServer, *more: str, env: Mapping[str, str] | None = None
) -> Done:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1", **(env or {})}
    words = ("report", "one", "--what-if", "--supervisor-model", CHAT)
    return nightwarden(*words, *more, cwd=here, env=env)


def contents(here: Path) -> Mapping[str, bytes]:
    return {
        str(path.relative_to(here)): path.read_bytes()
        for path in sorted(here.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_failed_run_is_asked_about_and_the_answer_is_marked_as_what_it_is(here: Path) -> None:
    ran(here)
    before = nightwarden("events", "one", "--json", cwd=here).out
    with ModelServer([STOP]) as server:
        done = asked(here, server)
        (request,) = server.requests
    assert done.code == 0
    assert "What if a model had been asked (nothing of this happened)" in done.out
    assert "would have: stop (It is so.) — by openai-chat:gpt-5, $0.001750" in done.out
    assert "are sent to openai-chat:gpt-5" in done.err
    assert "no answer from bee" in request.text
    assert '"item": "2' in request.text
    assert nightwarden("events", "one", "--json", cwd=here).out == before


def test_only_verbs_that_are_certain_are_offered_for_a_run_nobody_watched(here: Path) -> None:
    """The code of the step is not loaded for a report: whether it may run again is not known."""
    ran(here)
    with ModelServer([answer("retry"), STOP]) as server:
        asked(here, server)
        branches = server.requests[0].tools["decide"]["properties"]["verdict"]["anyOf"]
        assert [b["properties"]["action"]["enum"] for b in branches] == [["skip"], ["fail"]]
        assert len(server.requests) == 2


def test_a_failure_that_was_escalated_is_asked_about_as_it_was(here: Path) -> None:
    ran(here, "--supervise", "scripted:stop.yaml")
    with ModelServer([answer("retry")]) as server:
        done = asked(here, server, "--json")
    (would,) = json.loads(done.out)["what_if"]
    assert would["would_have"] == "retry"
    assert would["allowed"] == ["retry", "skip", "fail"]
    assert (would["node_id"], would["model"], would["cost_usd"]) == ("read", CHAT, 0.00175)


@pytest.mark.parametrize("mode", [("--supervise", "scripted:skip.yaml"), None])
def test_a_run_that_nothing_stopped_asks_nobody(here: Path, mode: tuple[str, ...] | None) -> None:
    if mode is None:
        steps = here / "steps.py"
        steps.write_text(steps.read_text().replace('"bee"', '"nobody"'), encoding="utf-8")
    ran(here, *(mode or ()))
    with ModelServer([STOP]) as server:
        done = asked(here, server)
        assert server.requests == []
    assert done.code == 0
    assert "no failure in this record was left to stop the run" in done.out
    assert "are sent to" not in done.err


def test_a_model_that_cannot_be_asked_is_said_and_nothing_else(here: Path) -> None:
    ran(here)
    done = nightwarden("report", "one", "--what-if", cwd=here)
    assert done.code == 2
    assert "needs to know which" in done.err
    words = ("report", "one", "--supervisor-model", CHAT)
    assert nightwarden(*words, cwd=here).code == 2


def test_a_provider_that_says_nothing_is_waited_for_as_long_as_a_decision_may_take(
    here: Path,
) -> None:
    """issue 5, Bad input: nothing hangs beyond its limit."""
    ran(here)
    (here / "nightwarden.toml").write_text("supervisor.decision_timeout_s = 3\n", encoding="utf-8")
    with ModelServer([Hang()]) as server:
        done = asked(here, server)
    assert done.code == 0
    assert "would have: stop (no decision within 3 s) — by bounds" in done.out


def test_the_cost_cap_holds_for_all_questions_together(here: Path) -> None:
    ran(here, "--keep-going", "--input", 'names=["bee", "bee", "bee"]')
    env = {"NIGHTWARDEN_SUPERVISOR_COST_CAP_USD": "0.04"}
    with ModelServer([dataclasses.replace(STOP, usage=(1_000, 2_000))]) as server:  # $0.02125
        done = asked(here, server, "--json", env=env)
        assert len(server.requests) == 1
    by = [would["decided_by"] for would in json.loads(done.out)["what_if"]]
    assert by == ["agent", "bounds", "bounds"]


def test_a_provider_that_cannot_answer_is_an_answer_of_the_bounds(here: Path) -> None:
    ran(here)
    with ModelServer([Status(401, {"error": {"message": "no"}})]) as server:
        done = asked(here, server, "--json")
    found: list[dict[str, Any]] = json.loads(done.out)["what_if"]
    assert found[0]["decided_by"] == "bounds"
    assert "does not accept the key" in found[0]["rationale"]
