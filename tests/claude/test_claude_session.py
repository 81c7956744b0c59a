"""A real Claude Code session that nobody here launched, in an empty home, on a model server.

steering.md §7, §6 (`supervise --claude-session`); issue 6: an injected message is seen to arrive at
PostToolUse and at Stop. Needs the program that comes with `claude-agent-sdk`: `make test-claude`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import Call, ModelServer, Request, Say

from nightwarden.agents.claude.starting import found_program
from nightwarden.steering.claude.box import SessionBox
from nightwarden.steering.mailbox import State
from nightwarden.steering.ports import Words

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from attached_runs import ADVICE, SILENCE, settled
from commands import nightwarden, started

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("claude_agent_sdk") is None,
    reason="!! Claude Code is NOT tested: no claude-agent-sdk here; `make test-claude` installs it",
)


class Session:
    """A project with our hooks, and a session in it."""

    def __init__(self, home: Path) -> None:
        self.project = home / "shop"
        self.project.mkdir()
        self.id = str(uuid.uuid4())
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"}
        self.box = SessionBox(self.id, root=home / ".nightwarden/claude")
        installed = nightwarden("hook", "install", cwd=self.project, env=self.env)
        assert installed.code == 0, installed.err

    def begin(self, server: ModelServer) -> subprocess.Popen[str]:
        quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")
        quiet += ("DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
        given = {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": "sk-ant-dummy-000"}
        command = [str(found_program()), "-p", "Mend it.", "--session-id", self.id]
        command += ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
        return subprocess.Popen(
            command,
            cwd=self.project,
            env={**self.env, **given, **dict.fromkeys(quiet, "1")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def say(self, number: int, text: str) -> None:
        words = Words(
            message_id=f"m{number}", run_id=self.id, node_id="", author="operator", text=text
        )
        self.box.enqueue(words)

    def states(self) -> dict[str, State]:
        return {message.message_id: message.state for message in self.box.messages()}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def ended(process: subprocess.Popen[str]) -> str:
    """All it said, when it is over."""
    with process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


def test_a_message_arrives_after_a_tool_and_another_where_it_would_stop(session: Session) -> None:
    """steering.md §7: the text is in the very next request, at either boundary."""
    states: list[dict[str, State]] = []

    def turn(say: Callable[[], None], answer: Any) -> Callable[[Request], Any]:
        def taken(request: Request) -> Any:
            say()
            states.append(session.states())
            return answer

        return taken

    script = [
        turn(lambda: session.say(1, "Mind the gap."), Call("Bash", {"command": "echo hi"})),
        turn(lambda: session.say(2, "Not yet: run the tests."), Say("Done.")),
        turn(lambda: None, Say("The tests pass.")),
    ]
    with ModelServer(script) as server:
        said = ended(session.begin(server))
        texts = [request.text for request in server.requests]
    assert "The tests pass." in said
    assert ["Mind the gap." in text for text in texts] == [False, True, True]
    assert ["Not yet: run the tests." in text for text in texts] == [False, False, True]
    assert "PostToolUse:Bash hook additional context: " in texts[1]
    assert "Stop hook feedback" in texts[2]
    assert states == [
        {"m1": State.QUEUED},
        {"m1": State.DELIVERED, "m2": State.QUEUED},
        {"m1": State.DELIVERED, "m2": State.DELIVERED},
    ]


def test_a_message_arrives_after_a_tool_that_failed(session: Session) -> None:
    def first(request: Request) -> Any:
        session.say(1, "Mind the gap.")
        return Call("Bash", {"command": "exit 3"})

    with ModelServer([first, Say("Done.")]) as server:
        ended(session.begin(server))
        assert ["Mind the gap." in r.text for r in server.requests] == [False, True]
    assert session.states() == {"m1": State.DELIVERED}


def test_a_supervisor_watches_a_session_and_its_word_is_taken_up(session: Session) -> None:
    """steering.md §6, §7: read from the transcript, heard through the hooks, consumed when the
    session has gone on."""
    for name in ("gate1", "gate2"):
        os.mkfifo(session.project / name)
    script = [
        Call("Bash", {"command": "cat gate1"}, say="I begin."),
        Call("Bash", {"command": "cat gate2"}, say="This is impossible."),
        Call("Bash", {"command": "echo on"}, say="I look at the log."),
        Say("Done."),
    ]
    stuck = ("--monitor", "event_type=assistant_text,text_contains=impossible", "--no-boundaries")
    with ModelServer(script) as server, ModelServer([ADVICE, SILENCE]) as thinking:
        env = {**session.env, **settled(session.project, thinking.base_url)}
        process = session.begin(server)
        gate = (session.project / "gate1").open("w")  # once the session is there
        watching = ("supervise", "--claude-session", session.id, *stuck)
        with gate, started(*watching, cwd=session.project, env=env) as watch:
            watch.wait_for_out("watches the whole run")
            gate.close()
            watch.wait_for_out("says a word")
            (session.project / "gate2").write_text("go")
            ended(process)
            watch.wait_for_out("is over")
            done = watch.end()
        texts = [request.text for request in server.requests]
    assert done.code == 0, done.err
    word = "[supervisor supervisor] Look at the log."
    assert [word in text for text in texts] == [False, False, True, True]
    assert "I begin." in thinking.requests[0].text
    assert list(session.states().values()) == [State.CONSUMED]
