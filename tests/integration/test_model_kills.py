"""`kill -9` while a request to a model is out, then `resume`; and what needs no model any more."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import Done, nightwarden, started
from model_runs import KEY, RETRY, answer
from model_server import Hang, ModelServer, Say

from nightwarden.store.opening import open_store

MODEL = "openai-chat:gpt-5"
ENV = {"OPENAI_API_KEY": KEY}
STEPS = """
import nightwarden as nw

@nw.node(type="t.Flaky", retry_safe=True)
def flaky(x: int) -> int:
    raise TimeoutError("the server did not answer")

@nw.node(type="t.Check", retry_safe=True)
def check(text: str) -> str:
    import pathlib
    if pathlib.Path("broken").exists():
        raise ValueError("not today")
    return text
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def asking(here: Path, server: ModelServer, nodes: Mapping[str, object]) -> None:
    """A workflow in a workspace whose models are asked at this server."""
    (here / "nightwarden.toml").write_text(
        f'[models."openai*"]\nbase_url = "{server.base_url}/v1"\nprice_in = 3\nprice_out = 15\n'
    )
    (here / "w.json").write_text(json.dumps({"version": 1, "name": "w", "nodes": nodes}))


def killed_in_a_call(here: Path, server: ModelServer, *options: str) -> None:
    """Run the workflow until the provider has a request it does not answer; then kill -9."""
    run = ("run", "w.json", "--nodes", "steps.py", *options)
    with started(*run, cwd=here, env=ENV) as command:
        assert server.waiting.wait(30), "the model was never asked"
        command.send(signal.SIGKILL)
        command.end()


def resumed(here: Path, *options: str, env: Mapping[str, str] = ENV) -> Done:
    return nightwarden("resume", "last", "--nodes", "steps.py", *options, cwd=here, env=env)


def events(here: Path, kind: str = "") -> list[Mapping[str, Any]]:
    with open_store(here / ".nightwarden") as store:
        found = list(store.read(store.find("last")))
    return [event for event in found if not kind or event["type"] == kind]


def assert_whole(here: Path) -> None:
    done = nightwarden("verify", "last", cwd=here)
    assert (done.code, "is whole" in done.out) == (0, True), done.err


ASK = {"ask": {"type": "llm.Generate", "prompt": "Greet.", "model": MODEL}}


def test_a_step_killed_in_a_model_call_is_not_asked_again_by_itself(here: Path) -> None:
    """kernel.md §3: a cost nobody knows is not zero; its outcome is a decision to take."""
    with ModelServer([Hang(), Say("Hello.")]) as server:
        asking(here, server, ASK)
        killed_in_a_call(here, server)
        (reserved,) = events(here, "budget_reserved")
        assert reserved["worst_micro_usd"] > 0
        assert not events(here, "budget_committed")
        done = resumed(here)
        assert len(server.requests) == 1
    assert done.code == 1
    assert "may not simply be run again" in done.err
    assert "--retry ask" in done.err
    assert_whole(here)


def test_a_step_killed_in_a_model_call_is_asked_again_at_ones_own_risk(here: Path) -> None:
    """supervision.md §6: what it may have cost counts at its worst case."""
    with ModelServer([Hang(), Say("Hello.")]) as server:
        asking(here, server, ASK)
        killed_in_a_call(here, server, "--max-cost", "1")
        worst = events(here, "budget_reserved")[0]["worst_micro_usd"]
        done = resumed(here, "--retry", "ask", "--json")
        assert len(server.requests) == 2
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["outputs"] == {"ask": "Hello."}
    assert told["costs"]["nodes_micro_usd"] == {"ask": worst + 1_000 * 3 + 50 * 15}
    assert_whole(here)


def test_the_budget_of_a_run_holds_over_a_kill(here: Path) -> None:
    """The worst case of the lost call is spent: a second one does not fit any more."""
    with ModelServer([Hang(), Say("Hello.")]) as server:
        asking(here, server, ASK)
        killed_in_a_call(here, server, "--max-cost", "0.05")
        worst = events(here, "budget_reserved")[0]["worst_micro_usd"]
        assert 25_000 < worst <= 50_000
        done = resumed(here, "--retry", "ask")
        assert len(server.requests) == 1
        assert (done.code, "budget" in done.out + done.err) == (1, True)
        more = resumed(here, "--max-cost", "0.10")
        assert (more.code, len(server.requests)) == (0, 2), more.err
    assert_whole(here)


def test_a_supervisor_killed_in_a_call_has_spent_its_worst_case(here: Path) -> None:
    """supervision.md §5: money spent survives a resume, §6: at the worst case."""
    supervise = ("--supervise", "agent", "--supervisor-model", MODEL)
    stop = answer("fail", reason="The server is gone.")
    with ModelServer([Hang(), stop]) as server:
        asking(here, server, {"flaky": {"type": "t.Flaky", "x": 1}})
        killed_in_a_call(here, server, *supervise)
        worst = events(here, "budget_reserved")[0]["worst_micro_usd"]
        done = resumed(here)
        assert len(server.requests) == 2
    assert done.code == 1
    assert "The server is gone" in done.out + done.err
    (decided,) = events(here, "supervisor_decision")
    assert decided["spent_micro_usd"] == worst + 1_000 * 3 + 50 * 15
    assert_whole(here)


def test_the_cap_of_a_supervisor_holds_over_a_kill(here: Path) -> None:
    supervise = ("--supervise", "agent", "--supervisor-model", MODEL)
    with ModelServer([Hang(), RETRY]) as server:
        asking(here, server, {"flaky": {"type": "t.Flaky", "x": 1}})
        killed_in_a_call(here, server, *supervise, "--supervisor-cost-cap", "0.06")
        done = resumed(here)
        assert len(server.requests) == 1
    assert done.code == 1
    assert "the server did not answer" in done.out + done.err  # the original error is kept
    (decided,) = events(here, "supervisor_decision")
    assert decided["decision"]["decided_by"] == "bounds"
    assert_whole(here)


def test_an_agent_killed_in_a_turn_is_not_begun_again_by_itself(here: Path) -> None:
    """An agent has effects: what it did is not known."""
    with ModelServer([Hang(), Say("Done.")]) as server:
        asking(here, server, {"work": {"type": "agent.Agent", "prompt": "Look.", "model": MODEL}})
        killed_in_a_call(here, server)
        worst = events(here, "budget_reserved")[0]["worst_micro_usd"]
        done = resumed(here)
        assert (done.code, len(server.requests)) == (1, 1)
        assert "may not simply be run again" in done.err
        again = resumed(here, "--retry", "work", "--json")
        assert len(server.requests) == 2
    assert again.code == 0, again.err
    assert json.loads(again.out)["costs"]["nodes_micro_usd"]["work"] == worst + 3_750
    assert_whole(here)


# -- models that are not needed any more --

TWO = {
    "ask": {"type": "llm.Generate", "prompt": "Greet.", "model": MODEL},
    "check": {"type": "t.Check", "text": "$ask"},
}


def test_a_run_whose_model_steps_are_done_is_resumed_without_the_key(here: Path) -> None:
    (here / "broken").touch()
    with ModelServer([Say("Hello.")]) as server:
        asking(here, server, TWO)
        first = nightwarden("run", "w.json", "--nodes", "steps.py", cwd=here, env=ENV)
        assert first.code == 1
        (here / "broken").unlink()
        done = resumed(here, "--json", env={"OPENAI_API_KEY": ""})
        assert len(server.requests) == 1
    assert done.code == 0, done.err
    assert json.loads(done.out)["outputs"] == {"check": "Hello."}


def test_a_model_step_that_is_to_be_done_again_needs_the_key(here: Path) -> None:
    (here / "broken").touch()
    with ModelServer([Say("Hello.")]) as server:
        asking(here, server, TWO)
        nightwarden("run", "w.json", "--nodes", "steps.py", cwd=here, env=ENV)
        done = resumed(here, "--from", "ask", env={"OPENAI_API_KEY": ""})
        assert len(server.requests) == 1
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.err


# -- what is said beforehand --


def test_what_steps_send_to_which_model_is_said_once(here: Path) -> None:
    """Issue 5: the sentence about what is sent is for steps as well; a word for each model."""
    with ModelServer([Say("Hello.")]) as server:
        asking(here, server, TWO)
        run = ("run", "w.json", "--nodes", "steps.py")
        first = nightwarden(*run, cwd=here, env=ENV)
        again = nightwarden(*run, cwd=here, env=ENV)
    assert (first.code, again.code) == (0, 0)
    sentence = f"What goes in at ask is sent to {MODEL} on your own network."
    assert first.lines.count(sentence) == 1
    assert sentence not in again.err


def test_nothing_is_said_of_models_where_quiet_was_asked_for(here: Path) -> None:
    with ModelServer([Say("Hello.")]) as server:
        asking(here, server, TWO)
        done = nightwarden("run", "w.json", "--nodes", "steps.py", "-q", cwd=here, env=ENV)
    assert (done.code, done.err) == (0, "")
