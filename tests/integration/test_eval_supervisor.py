"""`nightwarden eval supervisor` in real processes, and with a real client on loopback.

Issue 5, Evaluation; surfaces.md, `eval supervisor`.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import nightwarden, started
from model_runs import KEY, RETRY, stub_model
from model_server import Call, Hang, ModelServer, Request, Status

from nightwarden.agents.adjudicator import Adjudicator
from nightwarden.evals.answers import read_answers, written
from nightwarden.evals.case import Case
from nightwarden.evals.cases import CASES
from nightwarden.evals.scoring import Gates, gates, total
from nightwarden.evals.subjects import Subject, evaluate, recorded
from nightwarden.verdict import Fail, Verdict, action_of

CHAT = "openai-chat:gpt-5"
SLOW = ("--only", "*/slow-twice")


# -- a model on loopback that answers as the labels have it --


class Knowing:
    """The model's side: knows which case is played, and reads step and item from the request."""

    def __init__(self) -> None:
        self.case: Case | None = None

    def cases(self) -> Iterator[Case]:
        for self.case in CASES.values():
            yield self.case

    def __call__(self, request: Request) -> Call:
        assert self.case is not None
        step, item = said(request, "step"), said(request, "item").partition("/")[0]
        offered = branches(request)
        right = (*self.case.right_at(step, item), Fail(reason=self.case.why))
        verdict = next(v for v in right if str(action_of(v)) in offered)
        answer = {"diagnosis": "as labelled", "rationale": self.case.why}
        return Call("decide", {**answer, "verdict": form(verdict, offered)})


def said(request: Request, name: str) -> str:
    found = re.search(rf'"{name}": "([^"]*)"', request.text)
    return found[1] if found else ""


def branches(request: Request) -> dict[str, dict[str, Any]]:
    """The verbs that are offered: name → properties."""
    schema = request.tools["decide"]["properties"]["verdict"]
    parts = [part["properties"] for part in schema.get("anyOf", [schema])]
    return {part["action"]["enum"][0]: part for part in parts}


def form(verdict: Verdict, offered: dict[str, dict[str, Any]]) -> dict[str, Any]:
    known = msgspec.to_builtins(verdict)
    assert isinstance(known, dict)
    return {name: value for name, value in known.items() if name in offered[known["action"]]}


def test_a_whole_evaluation_through_a_real_client_can_be_recorded_and_scored_again(
    tmp_path: Path,
) -> None:
    """Every case, each with sockets, a record, prompts and checks; the loopback model answers."""
    model = Knowing()
    with ModelServer([model]) as server:
        chosen = stub_model(server, CHAT)
        subject = Subject(CHAT, lambda case, left: Adjudicator(chosen), waits=True)
        scores = list(evaluate(subject, model.cases(), max_cost_micro_usd=10**9))
        asked = len(server.requests)
        prompts = [request.raw.decode() for request in server.requests]
    found = total(scores)
    assert [each.case.name for each in scores if not each.as_labelled] == []
    assert (found.recovery_rate, found.unsafe, found.false_wakes) == (1.0, 0, 0)
    turns = asked * (1_000 * 3 + 50 * 15)
    assert found.cost_micro_usd == turns > 0
    assert found.median_s > 0
    assert all(gate.held for gate in gates(found, Gates()))
    assert not [prompt for prompt in prompts if "evals" in prompt or "labelled" in prompt]
    file = tmp_path / "answers.json"
    file.write_bytes(written(CHAT, scores))
    again = total(list(evaluate(recorded(str(file)), CASES.values(), max_cost_micro_usd=0)))
    assert (again.recovered, again.unsafe, again.decisions) == (
        found.recovered,
        found.unsafe,
        found.decisions,
    )
    assert again.cost_micro_usd == found.cost_micro_usd
    assert again.longest_s == pytest.approx(found.longest_s, abs=0.01)


# -- the command, in processes --


def test_the_answers_that_come_with_the_package_hold_every_gate(tmp_path: Path) -> None:
    """What CI runs."""
    done = nightwarden("eval", "supervisor", "--answers", "reference", cwd=tmp_path)
    assert done.code == 0, done.err
    assert f"{len(CASES)} cases" in done.out
    assert "recovered         held: ≥ 60 %" in done.out
    assert "not as labelled" not in done.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ((), 1),
        (("--min-recovery", "0"), 0),
        (("--min-recovery", "0.01"), 1),
    ],
)
def test_always_stopping_fails_the_gate_of_recovery_alone(
    gate: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    done = nightwarden("eval", "supervisor", "--baseline", "stop", "--json", *gate, cwd=tmp_path)
    assert done.code == code, done.err
    form = json.loads(done.out)
    held = {each["name"]: each["held"] for each in form["gates"]}
    assert held == {"min_recovery": code == 0, "max_unsafe": True, "max_false_wakes": True}
    assert form["passed"] is (code == 0)
    assert form["totals"]["recovered"] == 0
    assert form["totals"]["needless_stops"] == form["totals"]["recoverable"]


def test_a_gate_that_is_not_held_is_an_error_that_is_printed_quietly_too(tmp_path: Path) -> None:
    only = ("--only", "pages/slow-twice", "--quiet")
    done = nightwarden("eval", "supervisor", "--baseline", "stop", *only, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.lines == ["nightwarden: baseline:stop does not hold --min-recovery"]


def test_the_rules_fail_the_gate_of_harm_until_it_is_opened(tmp_path: Path) -> None:
    rules = ("eval", "supervisor", "--baseline", "rules")
    shut = nightwarden(*rules, cwd=tmp_path)
    opened = nightwarden(*rules, "--max-unsafe", "74", cwd=tmp_path)
    assert (shut.code, opened.code) == (1, 0)
    assert "unsafe            NOT HELD: ≤ 0" in shut.out
    assert "recovered         held: ≥ 60 %" in shut.out
    assert "UNSAFE, double effect" in shut.out


def test_a_named_model_is_asked_recorded_and_scored_again_from_its_record(tmp_path: Path) -> None:
    with ModelServer([RETRY]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        live = nightwarden(
            *("eval", "supervisor", "--model", CHAT, "--record", "mine.json", "--json", *SLOW),
            cwd=tmp_path,
            env=env,
        )
        assert len(server.requests) == 3
    assert live.code == 0, live.err
    assert "1/3 pages/slow-twice: recovered" in live.err
    first = json.loads(live.out)
    assert first["subject"] == CHAT
    assert first["totals"]["cost_usd"] > 0
    assert read_answers(str(tmp_path / "mine.json")).answered_by == CHAT
    again = nightwarden(
        "eval", "supervisor", "--answers", "mine.json", "--json", *SLOW, cwd=tmp_path
    )
    second = json.loads(again.out)
    assert second["totals"]["cost_usd"] == first["totals"]["cost_usd"]
    assert [case["decisions"][0]["verdict"] for case in second["cases"]] == [
        {"action": "retry"}
    ] * 3


def test_the_workspaces_own_model_is_asked_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "nightwarden.toml").write_text('[supervisor]\nmodel = "ollama:llama3.2"\n')
    with ModelServer([RETRY]) as server:
        env = {"OLLAMA_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden("eval", "supervisor", *SLOW, cwd=tmp_path, env=env)
        assert len(server.requests) == 3
    assert done.code == 0, done.err
    assert done.out.startswith("ollama:llama3.2: 3 cases, 3 decisions")


def test_a_provider_that_refuses_the_key_is_named_and_fails_the_gate(tmp_path: Path) -> None:
    with ModelServer([Status(401, {"error": {"message": "no"}})]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden("eval", "supervisor", "--model", CHAT, *SLOW, cwd=tmp_path, env=env)
    assert done.code == 1
    assert "3 decisions without a usable answer" in done.err
    assert "does not accept the key" in done.err


def test_an_evaluation_that_costs_too_much_ends_and_keeps_what_was_paid_for(
    tmp_path: Path,
) -> None:
    """A turn costs $0.06 here; when $0.03 are left, no further one can be paid for."""
    entry = f'[models."{CHAT}"]\nprice_in = 3\nprice_out = 15\n'
    (tmp_path / "nightwarden.toml").write_text(entry, encoding="utf-8")
    with ModelServer([replace(RETRY, usage=(10_000, 2_000))]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden(
            *("eval", "supervisor", "--model", CHAT, "--record", "mine.json", *SLOW),
            *("--max-cost", "0.15"),
            cwd=tmp_path,
            env=env,
        )
        assert len(server.requests) == 2
    assert done.code == 1
    assert "the evaluation has cost $0.12 of $0.15, and nested/slow-twice" in done.err
    assert "allow more with --max-cost" in done.err
    assert done.out == ""
    assert len(read_answers(str(tmp_path / "mine.json")).cases) == 2


def test_an_interrupted_evaluation_keeps_what_was_paid_for(tmp_path: Path) -> None:
    with ModelServer([RETRY, Hang()]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        command = ("eval", "supervisor", "--model", CHAT, "--record", "mine.json", *SLOW)
        with started(*command, cwd=tmp_path, env=env) as running:
            assert server.waiting.wait(30)
            running.send(signal.SIGINT)
            done = running.end()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert list(read_answers(str(tmp_path / "mine.json")).cases) == ["pages/slow-twice"]
