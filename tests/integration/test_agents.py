"""Agents and judges as steps, with the real client against a provider on loopback.

row: T5-EVENTS, T5-MAILBOX, T5-LIMITS, T5-JUDGE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agent_kit
import pytest
from agent_kit import Hear, run_file, with_box
from model_runs import PROTOCOLS
from model_server import Call, Calls, Hang, ModelServer, Request, Say, Status
from processes import is_gone

import nightwarden as nw
from nightwarden.events import Event, decode_lines
from nightwarden.events.render import render
from nightwarden.result import RunResult
from nightwarden.store.opening import open_store

MODEL = "openai-chat:gpt-5"
KEY = "sk-test-0123456789-abcdef"
A_TXT = {"path": "src/a.txt"}


class Ran(agent_kit.Ran):
    """One that asked by the protocol of OpenAI."""

    @property
    def reason(self) -> str:
        """Why the run failed."""
        assert self.result.status == "failed"
        return self.result.reason

    @property
    def answers(self) -> list[str]:
        """What tools answered the model, as the last request holds it."""
        messages = self.requests[-1].body["messages"]
        return [m["content"] for m in messages if m["role"] == "tool"]


@dataclass
class Bench:
    """A folder to run agents in."""

    folder: Path
    sessions: list[nw.Session] = field(default_factory=list)

    def run(
        self,
        script: Sequence[Any],
        *,
        node: str = "agent.Agent",
        hear: Hear = lambda event, session: None,
        options: Mapping[str, Any] | None = None,
        model: str = MODEL,
        more: Mapping[str, Any] | None = None,
        **properties: Any,
    ) -> Ran:
        """Run one node with this script."""
        with ModelServer(script) as server:
            version = "" if model.startswith(("anthropic", "google")) else "/v1"
            (self.folder / "nightwarden.toml").write_text(
                f'[models."{model}"]\nbase_url = "{server.base_url}{version}"\n'
                "price_in = 3\nprice_out = 15\n"
            )
            given = {"type": node, "model": model, "prompt": "Do it.", **properties}
            file = self.folder / "w.json"
            nodes = {"work": given, **(more or {})}
            file.write_text(json.dumps({"version": 1, "name": "w", "nodes": nodes}))
            found = run_file(file, server, folder=self.folder, hear=hear, options=options)
            return Ran(**vars(found))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A folder with settings of its own, and a key in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    (tmp_path / "ws").mkdir()
    return Bench(tmp_path)


def test_an_agent_works_with_tools_until_it_says_that_it_is_done(bench: Bench) -> None:
    """steering.md §5: `agent` runs a model with tools in a workspace directory."""
    ran = bench.run(
        [
            Call("write", {"path": "src/a.txt", "text": "one\ntwo\n"}),
            Calls([("shell", {"command": "wc -l < src/a.txt"}), ("list", {"recursive": True})]),
            Calls([("edit", {**A_TXT, "old": "two", "new": "2"}), ("read", A_TXT)]),
            Call("search", {"pattern": "^o.e$"}),
            Say("a.txt is written"),
        ],
        workspace="ws",
    )
    assert ran.result.outputs["work.text"] == "a.txt is written"
    assert ran.result.outputs["work.turns"] == 5
    assert ran.answers == [
        "src/a.txt written, 8 bytes",
        "2\n",
        "src/\nsrc/a.txt",
        "src/a.txt changed in 1 place",
        "one\n2\n",
        "./src/a.txt:1:one\n",
    ]
    assert (ran.folder / "ws/src/a.txt").read_text() == "one\n2\n"


@pytest.mark.parametrize("model", PROTOCOLS)
def test_an_agent_and_a_judge_work_over_every_protocol(bench: Bench, model: str) -> None:
    script = [Calls([("shell", {"command": "echo hi"}), ("list", {})]), Say("Done.")]
    ran = bench.run(script, model=model)
    assert ran.result.outputs["work.text"] == "Done.", ran.result.reason
    assert "hi\\n" in ran.requests[1].raw.decode()
    ran = bench.run(
        [Call("list", {}), answer(passed=True, reason="fine")], node="agent.Judge", model=model
    )
    assert ran.result.outputs["work.passed"] is True, ran.result.reason


def test_what_an_agent_does_is_told_as_it_does_it(bench: Bench) -> None:
    """steering.md §5: the events of agents."""
    ran = bench.run(
        [Call("shell", {"command": "echo hi"}), Call("shell", {"command": "exit 2"}), Say("Done.")]
    )
    family = ("user_prompt", "llm_step_finished", "assistant_text", "tool_started")
    family += ("tool_called", "tool_error")
    assert ran.types(*family) == [
        "user_prompt",
        "llm_step_finished",
        "tool_started",
        "tool_called",
        "llm_step_finished",
        "tool_started",
        "tool_error",
        "llm_step_finished",
        "assistant_text",
    ]
    assert ran.told("tool_called", "tool_error", "assistant_text") == [
        'work shell {"command": "echo hi"} → hi\\n',
        'work shell failed: exit code 2 {"command": "exit 2"}',
        "work says: Done.",
    ]
    assert {(e.node_id, e.attempt) for e in ran.events if e.__struct_config__.tag in family} == {
        ("work", 1)
    }


def test_what_an_agent_costs_is_the_steps_cost(bench: Bench) -> None:
    """1,000 tokens in and 50 out are $0.00375 a turn."""
    ran = bench.run([Call("list", {}), Say("Done.")])
    assert ran.result.outputs["work.cost_usd"] == 0.0075
    assert ran.result.costs["total_micro_usd"] == 7_500


def test_a_call_no_tool_takes_is_told_and_answered(bench: Bench) -> None:
    ran = bench.run([Call("fly", {"to": "Rome"}), Call("read", {"file": "x"}), Say("Well.")])
    assert ran.result.status == "completed"
    first, second = ran.told("tool_error")
    assert "work fly failed: " in first
    assert "work read failed: " in second
    assert "path" in second


def test_a_model_is_offered_only_the_tools_it_was_given(bench: Bench) -> None:
    ran = bench.run([Say("Done.")], tools=["read", "list", "read"])
    assert list(ran.requests[0].tools) == ["read", "list"]


# -- secrets --


def test_secrets_reach_neither_the_model_nor_the_record(bench: Bench) -> None:
    (bench.folder / "ws/config.ini").write_text("key = hunter2-hunter2\n")
    ran = bench.run(
        [
            Calls([("read", {"path": "config.ini"}), ("shell", {"command": "env"})]),
            Call("write", {"path": "config.ini", "text": "key = ••••(PARTNER)\nmore = 1\n"}),
            Say("The key is hunter2-hunter2."),
        ],
        workspace="ws",
        env="$env",
        more={"env": {"type": "data.Record", "PARTNER": "$secrets.PARTNER"}},
        options={"secrets": {"PARTNER": "hunter2-hunter2"}, "store": bench.folder / "store"},
    )
    sent = "".join(request.text for request in ran.requests)
    said = "\n".join(render(event) for event in ran.events)
    assert "hunter2" not in sent.replace("The key is hunter2-hunter2.", "")
    assert KEY not in sent + said
    assert "hunter2" not in said
    assert "key = ••••(PARTNER)" in ran.answers[0]
    assert "PARTNER=••••(PARTNER)" in ran.answers[1]
    assert "stands for a secret" in ran.answers[2]
    assert (ran.folder / "ws/config.ini").read_text() == "key = hunter2-hunter2\n"


# -- messages --


def test_a_message_is_in_the_very_next_request(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """steering.md §1, §5: the mailbox is drained at every turn boundary."""
    box = with_box(monkeypatch)

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            box.waiting.append("[supervisor watchdog] Look at b.txt too.")

    ran = bench.run([Call("list", {}), Say("Done.")], hear=hear)
    texts = [request.text for request in ran.requests]
    assert ["Look at b.txt" in text for text in texts] == [False, True]
    assert box.taken == ["[supervisor watchdog] Look at b.txt too."]
    assert box.stepped_after == [0, 1]


def test_a_message_that_comes_with_the_last_answer_is_a_further_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = with_box(monkeypatch)

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "assistant_text" and not box.taken:
            box.waiting.append("Not yet: run the tests.")

    ran = bench.run([Say("Done."), Say("The tests pass.")], hear=hear)
    assert ran.result.outputs["work.text"] == "The tests pass."
    assert "Not yet: run the tests." in ran.requests[1].text


def test_a_judge_reads_its_messages_before_its_answer_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = with_box(monkeypatch)

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "llm_step_finished" and not box.taken:
            box.waiting.append("Look again.")

    answers = [answer(passed=True, reason="fine"), answer(passed=False, reason="broken")]
    ran = bench.run(answers, node="agent.Judge", hear=hear)
    assert ran.result.outputs["work.passed"] is False
    assert "Look again." in ran.requests[1].text


def test_nothing_is_taken_from_the_mailbox_that_no_turn_is_left_to_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = with_box(monkeypatch)

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "assistant_text":
            box.waiting.append("One more thing.")

    ran = bench.run([Say("Done.")], hear=hear, max_turns=1)
    assert ran.result.status == "completed"
    assert box.taken == []


def test_what_another_process_leaves_is_read_at_the_next_turn_and_followed_to_its_end(
    bench: Bench,
) -> None:
    """Through the record, as `nightwarden message` does it; the tool waits until it is queued."""
    os.mkfifo(bench.folder / "ws/gate")
    store = bench.folder / "store"

    def hear(event: Event, session: nw.Session) -> None:
        loop = asyncio.get_running_loop()
        tag = event.__struct_config__.tag
        if tag == "tool_started":
            loop.run_in_executor(None, leave, session.run_id)
        if tag == "user_message_queued":
            loop.run_in_executor(None, (bench.folder / "ws/gate").write_text, "open")

    def leave(run_id: str) -> None:
        with open_store(store) as place:
            place.send(run_id, "message", {"text": "Mind the gap.", "node": "work"})

    ran = bench.run(
        [Call("shell", {"command": "cat gate"}), Say("Minded.")],
        workspace="ws",
        hear=hear,
        options={"store": store},
    )
    assert ran.result.status == "completed", ran.result.reason
    assert ["Mind the gap." in request.text for request in ran.requests] == [False, True]
    family = ("tool_called", "user_message_queued", "user_message_delivered")
    assert ran.types(*family, "user_message_consumed", "user_message_expired") == [
        "user_message_queued",
        "tool_called",
        "user_message_delivered",
        "user_message_consumed",
    ]


# -- limits --


def test_turns_are_limited(bench: Bench) -> None:
    """steering.md §5: `max_turns`."""
    ran = bench.run([Call("list", {})], max_turns=5)
    assert len(ran.requests) == 5
    assert "not done after 5 turns" in ran.reason
    assert ran.told("budget_warning", "budget_exceeded") == [
        "work comes near its budget: turns: 4 of 5",
        "work is over its budget: turns: 5 of 5",
    ]


def test_money_is_limited_before_it_is_spent(bench: Bench) -> None:
    """steering.md §5: `max_cost_usd`. A turn whose worst case does not fit is not begun."""
    ran = bench.run(
        [Call("list", {}, usage=(5_000, 400))], max_cost_usd=0.1, max_tokens=1_000, max_turns=50
    )
    assert "max_cost_usd of $0.10 does not cover the next model call" in ran.reason
    assert ran.result.costs["total_micro_usd"] <= 100_000
    assert ran.types("budget_warning", "budget_exceeded")[-1] == "budget_exceeded"
    assert ran.told("usage_progress") == ["work has used $0.063"]


def test_no_money_is_no_turn(bench: Bench) -> None:
    ran = bench.run([Say("Done.")], max_cost_usd=0)
    assert ran.requests == []
    assert "$0.00 allows no model call" in ran.reason


def test_time_is_limited_and_the_request_is_closed(bench: Bench) -> None:
    """steering.md §5: `timeout`."""
    ran = bench.run([Hang()], timeout_s=0.5)
    assert ran.reason.endswith("timeout after 0.5 s")
    assert ran.types("budget_exceeded") == ["budget_exceeded"]


def test_what_a_tool_puts_out_is_cut_in_its_middle(bench: Bench) -> None:
    (bench.folder / "ws/long.txt").write_text("a" * 5_000 + "b" * 5_000)
    ran = bench.run(
        [Call("read", {"path": "long.txt"}), Say("Done.")], workspace="ws", max_output_chars=1_000
    )
    (shown,) = ran.answers
    assert shown == "a" * 500 + "\n… 9,000 characters left out …\n" + "b" * 500


def test_a_result_that_is_too_long_is_asked_for_again(bench: Bench) -> None:
    ran = bench.run([Say("x" * 201), Say("short")], max_output_chars=200)
    assert ran.result.outputs["work.text"] == "short"
    assert "your result has 201 characters; 200 are the most" in ran.requests[1].text


def test_a_command_that_takes_too_long_is_killed_and_the_agent_goes_on(bench: Bench) -> None:
    ran = bench.run(
        [Call("shell", {"command": "echo begun; sleep 60"}), Say("Done.")], command_timeout_s=0.3
    )
    assert ran.answers == ["failed: killed after 0.3 s\nbegun"]


# -- the end --


def test_cancelling_the_run_kills_what_the_agent_runs(bench: Bench) -> None:
    os.mkfifo(bench.folder / "ws/begun")

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            loop = asyncio.get_running_loop()
            begun = loop.run_in_executor(None, (bench.folder / "ws/begun").read_text)
            begun.add_done_callback(lambda _: session.cancel("enough"))

    command = "sleep 60 & echo $! > pid; echo > begun; wait"
    ran = bench.run([Call("shell", {"command": command})], workspace="ws", hear=hear)
    assert ran.result.status == "cancelled"
    assert is_gone(int((bench.folder / "ws/pid").read_text()))


def test_cancelling_the_run_closes_the_request(bench: Bench) -> None:
    with ModelServer([Hang()]) as server:
        (bench.folder / "nightwarden.toml").write_text(
            f'[models."{MODEL}"]\nbase_url = "{server.base_url}/v1"\nprice_in = 3\nprice_out = 15\n'
        )
        with nw.workflow("w") as w:
            w.add("agent.Agent", id="work", model=MODEL, prompt="Do it.")
        session = nw.Session(w.build(), workdir=bench.folder)

        async def cancelled() -> RunResult:
            run = asyncio.ensure_future(session.run())
            await asyncio.to_thread(server.waiting.wait, 8)
            session.cancel("enough")
            return await run

        result = asyncio.run(cancelled())
        assert result.status == "cancelled"
        assert server.closed.wait(5)
    assert result.costs["total_micro_usd"] > 0, "a turn that was cut off is booked at its worst"


def test_an_agent_is_never_offered_to_be_run_again(bench: Bench) -> None:
    """supervision.md §1: a step that spent money is not retried."""
    ran = bench.run([Status(401, {"error": {"message": "bad key"}})], options={"supervise": None})
    assert "the provider does not accept the key" in ran.reason
    (escalation,) = [i.escalation for i in ran.result.interventions] or [None]
    assert escalation is None or "retry" not in escalation.allowed_actions
    assert nw.Registry().find("agent.Agent").retry_safe is False
    assert nw.Registry().find("agent.Judge").retry_safe is False


# -- judges --


def answer(**fields: Any) -> Call:
    """A judge answers."""
    return Call("answer", fields)


def test_a_judge_answers_in_a_declared_form_edges_can_branch_on(bench: Bench) -> None:
    """steering.md §5: a judge answers in a declared schema."""
    script = [
        Call("list", {}),
        answer(passed=False, reason="two fail", verdict="fix", failing=["a", "b"]),
    ]
    schema = {"properties": {"failing": {"type": "array", "items": {"type": "string"}}}}
    ran = bench.run(script, node="agent.Judge", schema=schema, verdicts=["ship", "fix", "drop"])
    outputs = ran.result.outputs
    assert outputs["work.passed"] is False
    assert outputs["work.verdict"] == "fix"
    assert outputs["work.reason"] == "two fail"
    assert outputs["work.answer"]["failing"] == ["a", "b"]
    offered = ran.requests[0].tools["answer"]
    assert offered["properties"]["verdict"]["enum"] == ["ship", "fix", "drop"]
    assert offered["required"] == ["reason", "passed", "verdict", "failing"]


def test_a_judge_whose_answer_does_not_fit_is_asked_again(bench: Bench) -> None:
    script = [
        answer(passed="yes", reason="x"),
        answer(passed=True, reason="fine", verdict="maybe"),
        answer(passed=True, reason="fine"),
    ]
    ran = bench.run(script, node="agent.Judge")
    assert ran.result.outputs["work.verdict"] == "pass"
    assert len(ran.requests) == 3


def test_a_judge_looks_but_does_not_touch(bench: Bench) -> None:
    ran = bench.run([answer(passed=True, reason="fine")], node="agent.Judge")
    assert list(ran.requests[0].tools) == ["read", "list", "search", "answer"]


# -- servers of tools --

MCP = textwrap.dedent(
    """
    import os
    import time
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("numbers")

    @server.tool()
    def double(number: int) -> int:
        "Twice a number."
        return 2 * number

    @server.tool()
    def seen() -> str:
        "What is in the environment."
        return ",".join(sorted(os.environ))

    @server.tool()
    def broken() -> str:
        "Fails."
        raise ValueError("out of order")

    @server.tool()
    def leave() -> str:
        "Ends the server."
        os._exit(3)

    @server.tool()
    def stay(where: str) -> str:
        "Says who it is, and stays."
        with open(where, "w") as file:
            file.write(str(os.getpid()))
        while True:
            time.sleep(1)

    server.run()
    """
)


def test_tools_of_a_server_are_offered_under_its_name_and_told_alike(bench: Bench) -> None:
    """steering.md §5, issue 6: MCP servers."""
    (bench.folder / "mcp_tools.py").write_text(MCP)
    server = {"command": sys.executable, "args": [str(bench.folder / "mcp_tools.py")]}
    ran = bench.run(
        [Call("n_double", {"number": 21}), Calls([("n_seen", {}), ("n_broken", {})]), Say("42")],
        tools=[],
        mcp={"n": {**server, "env": {"MODE": "quick"}}},
    )
    assert ran.result.status == "completed", ran.result.reason
    assert set(ran.requests[0].tools) >= {"n_double", "n_seen", "n_broken"}
    doubled, seen, broken = ran.answers
    assert "42" in doubled
    assert "MODE" in seen
    assert "OPENAI_API_KEY" not in seen
    assert broken.startswith("failed: ")
    assert ran.types("tool_called", "tool_error") == ["tool_called", "tool_called", "tool_error"]


def test_a_server_that_dies_is_a_failed_tool_to_the_agent(bench: Bench) -> None:
    (bench.folder / "mcp_tools.py").write_text(MCP)
    server = {"command": sys.executable, "args": [str(bench.folder / "mcp_tools.py")]}
    ran = bench.run([Call("n_leave", {}), Say("It left.")], tools=[], mcp={"n": server})
    assert ran.result.status == "completed", ran.result.reason
    assert ran.types("tool_called", "tool_error") == ["tool_error"]


def test_cancelling_the_run_ends_the_servers_of_tools(bench: Bench) -> None:
    (bench.folder / "mcp_tools.py").write_text(MCP)
    os.mkfifo(bench.folder / "begun")
    server = {"command": sys.executable, "args": [str(bench.folder / "mcp_tools.py")]}
    seen: list[str] = []

    def hear(event: Event, session: nw.Session) -> None:
        if event.__struct_config__.tag == "tool_started":
            begun = asyncio.get_running_loop().run_in_executor(
                None, (bench.folder / "begun").read_text
            )
            begun.add_done_callback(lambda done: (seen.append(done.result()), session.cancel("x")))

    where = str(bench.folder / "begun")
    ran = bench.run(
        [Call("n_stay", {"where": where})], tools=[], hear=hear, mcp={"n": server}, timeout_s=60
    )
    assert ran.result.status == "cancelled"
    assert is_gone(int(seen[0]))


def test_fetch_gets_pages_and_says_what_it_cannot_get(bench: Bench) -> None:
    def page(request: Request) -> Call:
        return Call("fetch", {"url": f"http://{request.headers['host']}/page"})

    ran = bench.run(
        [
            page,
            Status(200, "<p>Hello</p>", {"content-type": "text/html"}),
            page,
            Status(404, "none"),
            Call("fetch", {"url": "file:///etc/passwd"}),
            Say("Read."),
        ],
        tools=["fetch"],
    )
    hello, missing, file = ran.answers
    assert hello == "<p>Hello</p>"
    assert missing.startswith("failed: ")
    assert "404" in missing
    assert "expected http:// or https://" in file


# -- bad input --

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no prompt": ({"prompt": "  "}, "the prompt is empty"),
    "a workspace that is a file": (
        {"workspace": "nightwarden.toml"},
        "nightwarden.toml: it is a file",
    ),
    "a server that is not there": (
        {"mcp": {"x": {"command": "/no/such"}}},
        "mcp.x: there is no command '/no/such'",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_used_is_said_before_money_is_spent(bench: Bench, what: str) -> None:
    properties, says = BAD[what]
    ran = bench.run([Say("Done.")], **properties)
    assert says in ran.reason
    assert ran.requests == []


def judge(schema: dict[str, Any]) -> dict[str, Any]:
    """A judge with that schema."""
    return {"node": "agent.Judge", "schema": schema}


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"tools": ["shel"]}, "tools"),
        ({"backend": "codex"}, "backend"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_cost_usd": -1}, "max_cost_usd"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"mcp": {"x": {"url": 5}}}, "mcp"),
        ({"mcp": {"x": {}}}, "x: give a url, or a command"),
        ({"mcp": {"x": {"url": "http://h/", "command": "x"}}}, "x: give a url, or a command"),
        ({"mcp": {"x": {"url": "h"}}}, "'h' is no web address"),
        ({"mcp": {"x y": {"url": "http://h/"}}}, "'x y' names tools"),
        (judge({"type": "string"}), "with `properties`"),
        (judge({"properties": {"passed": {"type": "string"}}}), "`passed` is a boolean"),
        (judge({"required": ["x"]}), "a property that is not there"),
        (judge({"properties": {"a": {"type": "strin"}}}), "no JSON Schema"),
    ],
)
def test_a_property_that_does_not_fit_is_found_when_the_workflow_is_loaded(
    bench: Bench, properties: dict[str, Any], says: str
) -> None:
    with pytest.raises(nw.SpecError, match=says):
        bench.run([Say("Done.")], **properties)


def test_the_record_of_an_agent_can_be_read_back(bench: Bench) -> None:
    ran = bench.run([Call("list", {}), Say("Done.")])
    from nightwarden.events import encode

    again = list(decode_lines([encode(event) + b"\n" for event in ran.events]))
    assert [render(event) for event in again] == [render(event) for event in ran.events]
