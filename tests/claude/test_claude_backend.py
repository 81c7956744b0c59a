"""Agents and judges worked by the real Claude Code, against a provider on loopback.

It needs `claude-agent-sdk`, some hundred MB: `make test-claude` installs it. Without it, nothing
here is tested, and the reason says so.

steering.md §5.  row: T5-EVENTS, T5-MAILBOX, T5-LIMITS, T5-JUDGE
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_kit import Box, with_box
from claude_runs import KEY, Bench, marked
from model_server import Call, Calls, Hang, ModelServer, Say, Status
from processes import is_gone

import nightwarden as nw
from nightwarden.events import Event
from nightwarden.events.render import render
from nightwarden.store.opening import open_store

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("claude_agent_sdk") is None,
    reason="!! Claude Code is NOT tested: no claude-agent-sdk here; `make test-claude` installs it",
)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A folder with settings of its own, and a key in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("FOREIGN_SECRET", "fs-4711-4711")
    (tmp_path / "ws").mkdir()
    return Bench(tmp_path)


def test_claude_code_works_with_tools_until_it_says_that_it_is_done(bench: Bench) -> None:
    """steering.md §5: backend `claude_code`; the same events as native."""
    a = str(bench.folder / "ws/a.txt")
    ran = bench.run(
        [
            Call("Write", {"file_path": a, "content": "one\n"}),
            Calls([("Bash", {"command": "wc -l < a.txt"}), ("Bash", {"command": "exit 2"})]),
            Say("a.txt is written"),
        ]
    )
    assert ran.result.outputs["work.text"] == "a.txt is written", ran.result.reason
    assert ran.result.outputs["work.turns"] == 3
    assert (bench.folder / "ws/a.txt").read_text() == "one\n"
    family = ("user_prompt", "llm_step_finished", "assistant_text", "tool_started")
    family += ("tool_called", "tool_error")
    assert ran.types(*family) == [
        "user_prompt",
        "llm_step_finished",
        "tool_started",
        "tool_called",
        "llm_step_finished",
        "tool_started",
        "tool_started",
        "tool_called",
        "tool_error",
        "llm_step_finished",
        "assistant_text",
    ]
    assert ran.told("tool_error", "assistant_text") == [
        'work Bash failed: Exit code 2 {"command": "exit 2"}',
        "work says: a.txt is written",
    ]
    assert marked(bench.folder) == []


def test_a_step_is_told_once_with_what_it_cost(bench: Bench) -> None:
    """Usage of one answer is counted once, however many lines tell of it."""
    ran = bench.run([Calls([("Glob", {"pattern": "*"}), ("Glob", {"pattern": "*.x"})]), Say("Ok.")])
    steps = [e for e in ran.events if e.__struct_config__.tag == "llm_step_finished"]
    assert [(s.step, s.tool_calls, s.input_tokens, s.output_tokens) for s in steps] == [
        (1, 2, 1_000, 50),
        (2, 0, 1_000, 50),
    ]
    assert [s.cost_micro_usd for s in steps] == [3_750, 3_750]
    assert ran.result.outputs["work.cost_usd"] == 0.0075
    assert ran.result.costs["total_micro_usd"] == 7_500


# -- what it may reach --


def test_files_outside_the_workspace_are_out_of_reach(bench: Bench) -> None:
    outside = bench.folder / "outside.txt"
    outside.write_text("far")
    ws = bench.folder / "ws"
    (ws / "link.txt").symlink_to(outside)
    (ws / "in").symlink_to(bench.folder)
    ran = bench.run(
        [
            Calls(
                [
                    ("Read", {"file_path": str(outside)}),
                    ("Read", {"file_path": str(ws / "link.txt")}),
                    ("Write", {"file_path": str(ws / "in/new.txt"), "content": "x"}),
                    ("Write", {"file_path": str(bench.folder / "new.txt"), "content": "x"}),
                    ("Glob", {"pattern": "*.txt", "path": str(bench.folder)}),
                    ("Grep", {"pattern": "far", "path": str(outside)}),
                ]
            ),
            Say("Ok."),
        ],
        tools=["read", "write", "list", "search"],
    )
    assert len(ran.told("tool_error")) == 6
    assert all("not allowed: what lies in the workspace" in line for line in ran.told("tool_error"))
    assert not (bench.folder / "new.txt").exists()
    assert set(ran.requests[0].tools) == {"Read", "Write", "Glob", "Grep"}


def test_it_finds_no_keys_and_its_words_reach_no_record_with_secrets_in_them(bench: Bench) -> None:
    """Nothing of the environment but what programs need; the provider's key stays with us."""
    (bench.folder / "ws/config.ini").write_text("key = hunter2-hunter2\n")
    config = str(bench.folder / "ws/config.ini")
    ran = bench.run(
        [
            Calls([("Bash", {"command": "env"}), ("Read", {"file_path": config})]),
            Say("It is hunter2-hunter2."),
        ],
        options={"secrets": {"PARTNER": "hunter2-hunter2"}, "store": bench.folder / "store"},
        env="$env",
        more={"env": {"type": "data.Record", "PARTNER": "$secrets.PARTNER"}},
    )
    assert ran.result.status == "completed", ran.result.reason
    said = "\n".join(render(event) for event in ran.events)
    sent = ran.requests[1].text
    for text in (said, sent):
        assert "hunter2-hunter2" not in text
        assert "fs-4711" not in text
        assert KEY not in text
    assert "key = ••••(PARTNER)" in sent
    assert {r.headers["x-api-key"] for r in ran.requests} == {KEY}
    assert not list(bench.folder.rglob(".claude*")), "nothing of its own is left"


def test_settings_of_the_project_do_not_count(bench: Bench) -> None:
    """What lies in a folder that is worked in runs no hooks and gives no leave."""
    settings = bench.folder / "ws/.claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(
        '{"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}'
    )
    ran = bench.run([Call("Glob", {"pattern": "*"}), Say("Ok.")])
    assert ran.result.status == "completed", ran.result.reason
    assert not (bench.folder / "ws/hooked").exists()


def test_a_task_that_looks_like_a_command_is_a_task(bench: Bench) -> None:
    ran = bench.run([Say("Ok.")], prompt="/clear @/etc/passwd")
    assert ran.result.outputs["work.text"] == "Ok."
    assert "/clear @/etc/passwd" in ran.requests[0].text
    assert "root:" not in ran.requests[0].text


# -- messages --


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Box:
    """The mailbox of every step."""
    return with_box(monkeypatch)


@pytest.mark.parametrize(
    "call",
    [
        Call("Bash", {"command": "echo hi"}),
        Call("Bash", {"command": "exit 3"}),
        Call("Read", {"file_path": "/etc/passwd"}),
        Call("Bash", {"wrong": 1}),
        Call("Fly", {"to": "Rome"}),
    ],
    ids=["done", "failed", "not allowed", "wrong input", "no such tool"],
)
def test_a_message_is_in_the_very_next_request_however_the_tool_ended(
    bench: Bench, box: Box, call: Call
) -> None:
    """steering.md §1, §5: drained at every turn boundary; consumed when the next step is seen."""

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            box.waiting.append("[supervisor watchdog] Look at b.txt too.")

    ran = bench.run([call, Say("Done.")], hear=hear)
    assert ran.result.status == "completed", ran.result.reason
    assert ["Look at b.txt" in r.text for r in ran.requests] == [False, True]
    assert box.stepped_after == [0, 1]


def test_a_message_that_comes_with_the_last_answer_is_a_further_turn(
    bench: Bench, box: Box
) -> None:
    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "assistant_text" and not box.taken:
            box.waiting.append("Not yet: run the tests.")

    ran = bench.run([Say("Done."), Say("The tests pass.")], hear=hear)
    assert ran.result.outputs["work.text"] == "The tests pass."
    assert "Not yet: run the tests." in ran.requests[1].text
    assert box.stepped_after == [0, 1]


def test_nothing_is_taken_from_the_mailbox_that_no_turn_is_left_to_read(
    bench: Bench, box: Box
) -> None:
    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "assistant_text":
            box.waiting.append("One more thing.")

    ran = bench.run([Say("Done.")], hear=hear, max_turns=1)
    assert ran.result.outputs["work.text"] == "Done."
    assert box.taken == []


def test_what_another_process_leaves_is_followed_to_its_end(bench: Bench) -> None:
    """Through the record, as `nightwarden message` does it; the tool waits until it is queued."""
    os.mkfifo(bench.folder / "ws/gate")
    store = bench.folder / "store"

    def leave(run_id: str) -> None:
        with open_store(store) as place:
            place.send(run_id, "message", {"text": "Mind the gap.", "node": "work"})

    def hear(event: Event, session: nw.Session) -> None:
        loop = asyncio.get_running_loop()
        tag = event.__struct_config__.tag
        if tag == "tool_started":
            loop.run_in_executor(None, leave, session.run_id)
        if tag == "user_message_queued":
            loop.run_in_executor(None, (bench.folder / "ws/gate").write_text, "open")

    ran = bench.run(
        [Call("Bash", {"command": "cat gate"}), Say("Minded.")],
        hear=hear,
        options={"store": store},
    )
    assert ran.result.status == "completed", ran.result.reason
    assert ["Mind the gap." in request.text for request in ran.requests] == [False, True]
    family = ("user_message_queued", "user_message_delivered", "user_message_consumed")
    assert ran.types(*family, "user_message_expired") == list(family)


# -- limits --


def test_turns_are_limited(bench: Bench) -> None:
    ran = bench.run([Call("Glob", {"pattern": "*"})], max_turns=5)
    assert "not done after 5 turns" in ran.result.reason
    assert len(ran.requests) == 5
    assert ran.told("budget_warning", "budget_exceeded") == [
        "work comes near its budget: turns: 4 of 5",
        "work is over its budget: turns: 5 of 5",
    ]


def test_turns_are_limited_over_messages_too(bench: Bench, box: Box) -> None:
    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "assistant_text":
            box.waiting.append("Go on.")

    look = Call("Glob", {"pattern": "*"})
    ran = bench.run([look, Say("Done."), look, look, look, look], hear=hear, max_turns=4)
    assert "not done after 4 turns" in ran.result.reason
    assert len(ran.requests) == 4


def test_money_is_limited_before_it_is_spent(bench: Bench) -> None:
    """A request the purse does not cover is answered 402 by us, and never sent."""
    look = Call("Glob", {"pattern": "*"}, usage=(50_000, 400))
    ran = bench.run([look], max_cost_usd=0.58, max_tokens=1_000)
    assert "max_cost_usd of $0.58 does not cover the next model call" in ran.result.reason
    assert 0 < ran.result.costs["total_micro_usd"] <= 580_000
    assert ran.result.costs["total_micro_usd"] == 156_000 * len(ran.requests)
    assert ran.types("budget_exceeded") == ["budget_exceeded"]
    assert "budget_warning" in ran.types("budget_warning")
    assert ran.told("usage_progress")


def test_the_runs_own_budget_holds_as_well(bench: Bench) -> None:
    """supervision.md §6: `--max-cost` is one purse for all that a run asks of models."""
    ran = bench.run([Say("Done.")], options={"max_cost_micro_usd": 10_000})
    assert ran.requests == []
    assert "the run's budget of $0.01 does not cover the next model call" in ran.result.reason


def test_no_money_is_no_turn(bench: Bench) -> None:
    ran = bench.run([Say("Done.")], max_cost_usd=0)
    assert ran.requests == []
    assert "$0.00 allows no model call" in ran.result.reason


def test_time_is_limited_and_the_request_is_closed(bench: Bench) -> None:
    ran = bench.run([Hang()], timeout_s=3)
    assert ran.result.reason.endswith("timeout after 3 s")
    assert ran.types("budget_exceeded") == ["budget_exceeded"]
    assert marked(bench.folder) == []


def test_a_result_that_is_too_long_is_asked_for_again(bench: Bench) -> None:
    ran = bench.run([Say("x" * 201), Say("short")], max_output_chars=200)
    assert ran.result.outputs["work.text"] == "short", ran.result.reason
    assert "your result has 201 characters; 200 are the most" in ran.requests[1].text


def test_a_key_the_provider_does_not_accept_is_said_to_be_one(bench: Bench) -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": "bad"}}
    ran = bench.run([Status(401, error)])
    assert "the provider does not accept the key" in ran.result.reason
    assert ran.result.costs["total_micro_usd"] == 0


# -- the end --


@pytest.mark.parametrize("command", ["cat begun; tail -f a.txt", "cat begun; setsid tail -f a.txt"])
def test_cancelling_the_run_leaves_no_process(bench: Bench, command: str) -> None:
    os.mkfifo(bench.folder / "ws/begun")
    (bench.folder / "ws/a.txt").write_text("x")

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            loop = asyncio.get_running_loop()
            begun = loop.run_in_executor(None, (bench.folder / "ws/begun").write_text, "go")
            begun.add_done_callback(lambda _: session.cancel("enough"))

    ran = bench.run([Call("Bash", {"command": command})], hear=hear)
    assert ran.result.status == "cancelled"
    assert marked(bench.folder) == []


def test_what_it_left_running_ends_with_it(bench: Bench) -> None:
    (bench.folder / "ws/a.txt").write_text("x")
    command = "setsid tail -f a.txt >/dev/null 2>&1 & echo begun"
    ran = bench.run([Call("Bash", {"command": command}), Say("Done.")])
    assert ran.result.status == "completed", ran.result.reason
    assert marked(bench.folder) == []


# -- judges --


def answer(**fields: Any) -> Call:
    """A judge answers."""
    return Call("StructuredOutput", fields)


def test_a_judge_answers_in_its_declared_form(bench: Bench) -> None:
    """steering.md §5: a judge answers in a declared schema, or is asked again."""
    script = [
        Call("Glob", {"pattern": "*"}),
        answer(passed="yes", reason="x"),
        answer(passed=False, reason="two fail", verdict="fix", failing=["a", "b"]),
    ]
    schema = {"properties": {"failing": {"type": "array", "items": {"type": "string"}}}}
    ran = bench.run(script, node="agent.Judge", schema=schema, verdicts=["ship", "fix", "drop"])
    outputs = ran.result.outputs
    assert outputs["work.passed"] is False, ran.result.reason
    assert (outputs["work.verdict"], outputs["work.reason"]) == ("fix", "two fail")
    assert outputs["work.answer"]["failing"] == ["a", "b"]
    assert set(ran.requests[0].tools) == {"Read", "Glob", "Grep", "StructuredOutput"}


def test_a_judge_reads_its_messages_before_its_answer_counts(bench: Bench, box: Box) -> None:
    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "llm_step_finished" and not box.taken:
            box.waiting.append("Look again.")

    answers = [answer(passed=True, reason="fine"), answer(passed=False, reason="broken")]
    ran = bench.run(answers, node="agent.Judge", hear=hear)
    assert ran.result.outputs["work.passed"] is False, ran.result.reason
    assert "Look again." in ran.requests[1].text


# -- servers of tools, and the end of our own process --

MCP = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("numbers")


@server.tool()
def double(number: int) -> int:
    "Twice a number."
    return 2 * number


server.run()
"""


def test_tools_of_a_server_may_be_used_and_the_server_ends_with_the_work(bench: Bench) -> None:
    (bench.folder / "mcp_tools.py").write_text(MCP)
    server = {"command": sys.executable, "args": [str(bench.folder / "mcp_tools.py")]}
    ran = bench.run(
        [Call("mcp__n__double", {"number": 21}), Say("42")], tools=["list"], mcp={"n": server}
    )
    assert ran.result.status == "completed", ran.result.reason
    assert ran.types("tool_called", "tool_error") == ["tool_called"]
    assert "42" in json.dumps(ran.requests[1].body["messages"])
    assert marked(bench.folder) == []


def test_a_server_that_does_not_answer_is_said_before_money_is_spent(bench: Bench) -> None:
    server = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}
    ran = bench.run([Say("42")], mcp={"n": server})
    assert "mcp.n: the server cannot be used: " in ran.result.reason
    assert ran.requests == []


def test_a_server_that_is_not_there_is_said_before_money_is_spent(bench: Bench) -> None:
    ran = bench.run([Say("42")], mcp={"n": {"command": "/no/such"}})
    assert "mcp.n: there is no command '/no/such'" in ran.result.reason
    assert ran.requests == []


def test_it_and_its_commands_end_where_our_process_is_killed(bench: Bench) -> None:
    """As everything an agent runs does: a guard is left, which kills it."""
    os.mkfifo(bench.folder / "ws/begun")
    (bench.folder / "ws/a.txt").write_text("x")
    with ModelServer([Call("Bash", {"command": "cat begun; tail -f a.txt"})]) as server:
        bench.written(server)
        process = subprocess.Popen(
            [sys.executable, "-m", "nightwarden", "run", "w.json", "--trust"],
            cwd=bench.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with process:
            (bench.folder / "ws/begun").write_text("go")
            pids = marked(bench.folder)
            process.kill()
        assert len(pids) >= 2, "the program, and its shell"
        assert [pid for pid in pids if not is_gone(pid, within_s=5.0)] == []


def test_a_program_that_dies_is_a_failure_that_says_so(bench: Bench) -> None:
    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            for pid in marked(bench.folder):
                os.kill(pid, signal.SIGKILL)

    (bench.folder / "ws/a.txt").write_text("x")
    ran = bench.run([Call("Bash", {"command": "tail -f a.txt"})], hear=hear)
    assert "Claude Code ended with code -9" in ran.result.reason
    assert marked(bench.folder) == []
