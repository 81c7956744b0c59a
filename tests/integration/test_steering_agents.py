"""A supervisor over a real agent node, both on models on loopback (issue 6)."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from commands import nightwarden, started
from model_server import Call, ModelServer, Request, Say

from nightwarden.errors import StoreError
from nightwarden.store import open_store

FLOW = """
version: 1
name: mended
nodes:
  fix:
    type: agent.Agent
    model: openai-chat:gpt-5
    prompt: Mend it.
    workspace: work
    tools: [shell]
supervisors:
  dog:
    watches: [fix]
    model: anthropic:claude-haiku-4-5
    boundaries: false
    cooldown: 1s
    monitors: ["event_type=tool_called,count=2"]
"""


def worker(request: Request) -> Call | Say:
    """An agent that tries the same until it is told otherwise."""
    if "[supervisor dog] Look at the log." in request.text:
        return Say("I have looked at the log.")
    return Call("shell", {"command": "sleep 0.3; echo red"})


def test_an_agent_reads_what_its_supervisor_says_at_its_next_turn(tmp_path: Path) -> None:
    """steering.md §1, §5: a text in the mailbox, read at a turn boundary."""
    (tmp_path / "work").mkdir()
    (tmp_path / "w.yaml").write_text(FLOW, encoding="utf-8")
    advice = Call("advise", {"intervene": True, "message": "Look at the log."})
    with ModelServer([worker]) as agent, ModelServer([advice]) as dog:
        (tmp_path / "nightwarden.toml").write_text(
            f'[models."openai-chat:gpt-5"]\nbase_url = "{agent.base_url}/v1"\n'
            f'[models."anthropic:claude-haiku-4-5"]\nbase_url = "{dog.base_url}"\n',
            encoding="utf-8",
        )
        env = {"OPENAI_API_KEY": "sk-agent-0123456789", "ANTHROPIC_API_KEY": "sk-dog-0123456789"}
        done = nightwarden("run", "w.yaml", "--run-id", "r1", cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    shown = "What agents say and do is shown to anthropic:claude-haiku-4-5 on your own network"
    assert done.err.count(shown) == 1
    with open_store(tmp_path / ".nightwarden") as store:
        events: list[dict[str, Any]] = [dict(e) for e in store.read("r1")]
    kinds = [e["type"] for e in events]
    assert kinds[-1] == "run_completed"
    fates = [k for k in kinds if k.startswith("user_message_")]
    assert fates[:3] == [
        "user_message_queued",
        "user_message_delivered",
        "user_message_consumed",
    ]
    assert "red" in dog.requests[0].text
    looks = [e for e in events if e["type"] == "steering_evaluated"]
    ended = events[-1]
    spent = sum(e["cost_micro_usd"] for e in events if e["type"].startswith("invocation_succ"))
    assert ended["cost_micro_usd"] == spent > 0
    assert ended["ledger"]["steering_micro_usd"] == sum(e["cost_micro_usd"] for e in looks) > 0


def begun(folder: Path) -> None:
    """Wait until the agent is at work."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(StoreError), open_store(folder / ".nightwarden") as store:
            if any(event["type"] == "tool_called" for event in store.read("r1")):
                return
        time.sleep(0.05)
    raise AssertionError("the agent never begins")


WIRED = """
version: 1
name: wired
inputs: {m: {type: str}}
nodes:
  fix: {type: agent.Agent, model: $inputs.m, prompt: Mend it., workspace: work, tools: [shell]}
"""


def test_one_that_is_attached_asks_the_provider_the_watched_agent_runs_on(tmp_path: Path) -> None:
    """Scenario 80, from another process: the run's record says what its agents run on."""
    (tmp_path / "work").mkdir()
    (tmp_path / "w.yaml").write_text(WIRED, encoding="utf-8")
    advice = Call("advise", {"intervene": True, "message": "Look at the log."})

    def either(request: Request) -> Call | Say:
        return advice if "advise" in request.tools else worker(request)

    with ModelServer([either]) as server:
        env = {
            "ANTHROPIC_API_KEY": "sk-first-0123456789",
            "OPENAI_API_KEY": "sk-agent-0123456789",
            "OPENAI_BASE_URL": f"{server.base_url}/v1",
        }
        options = ("--input", "m=openai-chat:gpt-5", "--run-id", "r1")
        with started("run", "w.yaml", *options, cwd=tmp_path, env=env) as run:
            watch = ("supervise", "--run-id", "r1", "--node", "fix", "--name", "dog")
            monitor = ("--monitor", "event_type=tool_called", "--no-boundaries")
            begun(tmp_path)
            done = nightwarden(*watch, *monitor, cwd=tmp_path, env=env)
            ended = run.end()
    assert (done.code, ended.code) == (0, 0), done.err + ended.err
    assert "is shown to openai-chat:gpt-5-mini on your own network" in done.err
