"""Supervisors attached from another process, with a model on loopback (issue 6)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attached_runs import (
    ADVICE,
    MODEL,
    PATIENCE_S,
    RED,
    SILENCE,
    begin,
    has,
    record,
    settled,
    until,
)
from commands import nightwarden, started
from model_server import Hang, ModelServer, Say

from nightwarden.steering.claude import drain
from nightwarden.steering.claude.sessions import project_key


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([ADVICE, SILENCE]) as made:
        yield made


@pytest.fixture
def silent() -> Iterator[ModelServer]:
    with ModelServer([SILENCE]) as made:
        yield made


def test_a_supervisor_of_another_process_says_a_word_a_running_agent_reads(
    tmp_path: Path, server: ModelServer
) -> None:
    """surfaces.md: `supervise --run-id` attaches from another process, and ends with the run."""
    env = settled(tmp_path, server.base_url)
    run = begin(tmp_path, env)
    done = nightwarden(
        "supervise",
        "--run-id",
        "r1",
        "--node",
        "fix",
        "--name",
        "cat",
        *RED,
        "--system",
        "Be brief.",
        cwd=tmp_path,
        env=env,
    )
    ended = run.end()
    assert (done.code, ended.code) == (0, 0), done.err + ended.err
    events = record(tmp_path)
    (queued,) = [e for e in events if e["type"] == "user_message_queued"]
    assert (queued["author"], queued["node_id"]) == ("cat", "fix")
    assert queued["text"] == "[supervisor cat] Look at the log."
    kinds = [e["type"] for e in events]
    assert kinds[-1] == "run_completed"
    assert "user_message_consumed" in kinds
    evaluated = next(e for e in events if e["type"] == "steering_evaluated")
    assert (evaluated["outcome"], evaluated["model"]) == ("intervened", MODEL)
    assert evaluated["cost_micro_usd"] == 1000 * 3 + 50 * 15
    assert events[-1]["cost_micro_usd"] == 0
    assert "Be brief." in server.requests[0].text
    assert "turn" in server.requests[0].text
    assert "── run r1 is over: 1 look" in done.out + done.err


def test_ctrl_c_lets_go_and_leaves_the_run_as_it_is(tmp_path: Path, server: ModelServer) -> None:
    """Scenario 78."""
    env = settled(tmp_path, server.base_url)
    run = begin(tmp_path, env)
    watch = started("supervise", "--run-id", "r1", "--no-boundaries", cwd=tmp_path, env=env)
    until(lambda: has(tmp_path, "steering_armed"), "the supervisor to be armed")
    watch.send(signal.SIGINT)
    done = watch.end()
    assert done.code == 0, done.err
    assert "let go of run r1, which goes on" in done.out + done.err
    assert nightwarden("message", "r1", "That will do.", cwd=tmp_path).code == 0
    ended = run.end()
    assert ended.code == 0, ended.err
    assert record(tmp_path)[-1]["type"] == "run_completed"
    assert server.requests == []


def test_a_declared_supervisor_asks_its_model_in_a_real_run(
    tmp_path: Path, server: ModelServer
) -> None:
    env = settled(tmp_path, server.base_url)
    done = nightwarden(
        "run", "dog.yaml", "--nodes", "steps.py", "--run-id", "r1", cwd=tmp_path, env=env
    )
    assert done.code == 0, done.err
    assert "[supervisor dog] Look at the log." in done.err
    evaluated = [e for e in record(tmp_path) if e["type"] == "steering_evaluated"]
    assert evaluated[0]["cost_micro_usd"] == 3750
    assert "steering  $0.0" in done.out
    assert "steering, dog: $0.0" in nightwarden("report", "r1", cwd=tmp_path).out
    assert "steering " in nightwarden("costs", cwd=tmp_path).out
    costs = json.loads(nightwarden("report", "r1", "--json", cwd=tmp_path).out)["costs"]
    assert (costs["total_usd"], list(costs["steering_usd"])) == (0, ["dog"])
    assert "sk-test-0123456789" not in json.dumps(record(tmp_path))


@pytest.mark.parametrize("turn", [Say("All is well, I think."), Hang()])
def test_a_model_that_hangs_or_answers_prose_does_not_hold_a_run_up(
    tmp_path: Path, turn: Any
) -> None:
    """Issue 6, bad input."""
    with ModelServer([turn]) as server:
        env = settled(tmp_path, server.base_url)
        run = begin(tmp_path, env, "dog.yaml")
        until(lambda: server.requests, "the model to be asked")
        assert nightwarden("message", "r1", "Done.", cwd=tmp_path).code == 0
        ended = run.end()
    assert ended.code == 0, ended.err
    events = record(tmp_path)
    assert events[-1]["type"] == "run_completed"
    assert [e["outcome"] for e in events if e["type"] == "steering_evaluated"] in (
        ["failed"],
        ["failed", "failed"],
        ["failed", "failed", "failed"],
    )


def test_a_second_supervisor_of_one_name_is_refused(tmp_path: Path, silent: ModelServer) -> None:
    """Issue 6, bad input: two supervisors of one name."""
    env = settled(tmp_path, silent.base_url)
    run = begin(tmp_path, env, "dog.yaml")
    watch = started("supervise", "--run-id", "r1", "--no-boundaries", cwd=tmp_path, env=env)
    until(
        lambda: (
            "steering_armed"
            in str([e for e in record(tmp_path) if e.get("supervisor") == "supervisor"])
        ),
        "it to be armed",
    )
    twice = nightwarden("supervise", "--run-id", "r1", cwd=tmp_path, env=env)
    own = nightwarden("supervise", "--run-id", "r1", "--name", "dog", cwd=tmp_path, env=env)
    gone = nightwarden("supervise", "--run-id", "r1", "--node", "fxi", cwd=tmp_path, env=env)
    nightwarden("cancel", "r1", cwd=tmp_path)
    run.end()
    assert watch.end().code == 0
    assert (twice.code, own.code, gone.code) == (2, 2, 2)
    assert "watches this run already; give this one another --name" in twice.err
    assert "run r1 has a supervisor 'dog' of its own" in own.err
    assert "--node fxi: run r1 has no such node; did you mean 'fix'?" in gone.err
    over = nightwarden("supervise", "--run-id", "r1", cwd=tmp_path, env=env)
    assert over.code == 2
    assert "run r1 does not run, so there is nothing to watch" in over.err


def test_a_killed_run_is_resumed_with_its_supervisor_where_it_stood(
    tmp_path: Path, silent: ModelServer
) -> None:
    """steering.md §2: all of it survives a restart, and a kill."""
    env = settled(tmp_path, silent.base_url)

    def looks() -> list[int]:
        return [e["number"] for e in record(tmp_path) if e["type"] == "steering_evaluated"]

    with begin(tmp_path, env, "dog.yaml") as run:
        until(lambda: len(looks()) >= 2, "two looks")
        run.send(signal.SIGKILL)
        run.end()
    before = len(looks())
    with started("resume", "r1", "--nodes", "steps.py", cwd=tmp_path, env=env) as again:
        until(lambda: len(looks()) > before, "another look")
        assert nightwarden("message", "r1", "Done.", cwd=tmp_path).code == 0
        assert again.end().code == 0
    assert looks() == list(range(1, len(looks()) + 1))
    events = record(tmp_path)
    assert events[-1]["ledger"]["steering_micro_usd"] == sum(
        e["cost_micro_usd"] for e in events if e["type"] == "steering_evaluated"
    )


TWO = """
version: 1
name: two
nodes:
  short: {type: t.Agent, turns: 1}
  fix: {type: t.Agent}
"""


def test_a_message_nobody_will_read_is_said_to_be_so(tmp_path: Path) -> None:
    """steering.md §4: never lost without a record."""
    env = settled(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "two.yaml").write_text(TWO, encoding="utf-8")
    run = begin(tmp_path, env, "two.yaml")
    until(lambda: has(tmp_path, "node_finished"), "the short step to end")
    late = nightwarden("message", "r1", "Hello?", "--node", "short", cwd=tmp_path)
    read = nightwarden("message", "r1", "Hello.", "--node", "fix", cwd=tmp_path)
    assert run.end().code == 0
    assert (late.code, late.lines) == (
        1,
        ["nightwarden: nobody in run r1 will read this: the node ended"],
    )
    assert (read.code, read.out) == (0, "the message is left for run r1\n")
    fates = [e["type"] for e in record(tmp_path) if e["type"].startswith("user_message")]
    assert fates == [
        "user_message_queued",
        "user_message_expired",
        "user_message_queued",
        "user_message_delivered",
        "user_message_consumed",
    ]
    shown = nightwarden("events", "r1", cwd=tmp_path).out
    assert "operator to fix: Hello." in shown


# -- a Claude Code session --


class Place:
    """A home in which a Claude Code session is written, by a process that may end."""

    def __init__(self, home: Path) -> None:
        self.project = home / "project"
        self.project.mkdir()
        folder = home / ".claude" / "projects" / project_key(str(self.project))
        folder.mkdir(parents=True)
        self.path = folder / "s1.jsonl"
        self.env = {
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "OPENAI_API_KEY": "sk-test-0123456789",
        }
        self._agent = subprocess.Popen(["sleep", "600"])
        sessions = home / ".claude" / "sessions"
        sessions.mkdir()
        alive = {"sessionId": "s1", "pid": self._agent.pid}
        (sessions / "1.json").write_text(json.dumps(alive), encoding="utf-8")
        self._count = 0
        self.say("I begin.")

    def say(self, text: str) -> None:
        self._count += 1
        message = {"id": f"m{self._count}", "content": [{"type": "text", "text": text}]}
        line = {"type": "assistant", "uuid": f"u{self._count}", "cwd": str(self.project)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "requestId": f"r{self._count}", "message": message}))
            file.write("\n")

    def drained(self) -> dict[str, Any]:
        """What the hook gives the session after a tool."""
        hook = {"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": "/elsewhere"}
        done = subprocess.run(
            [sys.executable, "-I", "-S", drain.__file__],
            input=json.dumps(hook),
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout or "{}")
        return found

    def end(self) -> None:
        self._agent.kill()
        self._agent.wait()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.end()


def test_a_claude_code_session_is_watched_and_hears_a_word(
    place: Place, server: ModelServer
) -> None:
    """steering.md §6: `supervise --claude-session` does the same; scenarios 98 and 99."""
    settled(place.project, server.base_url)
    stuck = ("--monitor", "event_type=assistant_text,text_contains=impossible")
    with started(
        "supervise",
        "--claude-session",
        str(place.project),
        "--node",
        "fix",
        "--no-boundaries",
        *stuck,
        cwd=place.project,
        env=place.env,
    ) as watch:
        watch.wait_for_out("supervisor watches the whole run, 1 monitor")
        place.say("This is impossible.")
        watch.wait_for_out("says a word")
        context = place.drained()["hookSpecificOutput"]["additionalContext"]
        assert "[supervisor supervisor] Look at the log." in context
        place.end()
        done = watch.end()
    assert done.code == 0
    assert "── session s1 is over: 1 look" in done.out
    assert "I begin." in server.requests[0].text


def test_a_session_goes_on_when_its_supervisor_lets_go(place: Place, server: ModelServer) -> None:
    """Scenario 78."""
    settled(place.project, server.base_url)
    arguments = ("supervise", "--claude-session", "s1", "--no-boundaries")
    with started(*arguments, cwd=place.project, env=place.env) as watch:
        watch.wait_for_out("supervisor watches the whole run")
        watch.send(signal.SIGINT)
        done = watch.end()
    assert done.code == 0
    assert "let go of session s1, which goes on" in done.out


def test_a_session_that_is_not_there_is_a_usage_error(place: Place, server: ModelServer) -> None:
    settled(place.project, server.base_url)
    done = nightwarden("supervise", "--claude-session", "s2", cwd=place.project, env=place.env)
    assert done.code == 2
    assert "no session 's2' below" in done.err


@pytest.mark.parametrize(
    "arguments", [(), ("--run-id", "r1", "--claude-session", "s1"), ("--node", "fix")]
)
def test_exactly_one_thing_is_watched(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Scenario 77."""
    done = nightwarden("supervise", *arguments, cwd=tmp_path)
    assert (done.code, done.lines) == (
        2,
        [
            "nightwarden: name what to watch: either --run-id RUN or --claude-session DIR|ID",
        ],
    )
