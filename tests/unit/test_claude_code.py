"""Claude Code as an agent, as far as it needs neither the program nor its SDK.

steering.md §5.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_runs import KEY

from nightwarden.agents.claude.bounding import (
    IMAGE_TOKENS,
    StreamedUsage,
    masked,
    most_tokens,
    usage_of,
    worst_micro_usd,
)
from nightwarden.agents.claude.saying import (
    Answered,
    Called,
    Ended,
    Late,
    Retrying,
    Said,
    Saying,
    Step,
)
from nightwarden.agents.claude.starting import command_of, environment_of, may_use
from nightwarden.agents.meter import UNSEEN_TOKENS
from nightwarden.agents.models import Model, resolve
from nightwarden.agents.prices import Usage, catalogued
from nightwarden.agents.stepping import StepModels
from nightwarden.errors import ModelError
from nightwarden.nodes.working import Task, WorkLimits
from nightwarden.runtime.paying import NamedModel
from nightwarden.settings import Settings

MODEL = "anthropic:claude-sonnet-5"
ENVIRON = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}


# -- what it says --


def part(block: dict[str, Any], message_id: str = "m1", **more: Any) -> dict[str, Any]:
    """A line with one part of an answer."""
    return {"type": "assistant", "message": {"id": message_id, "content": [block]}, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(use_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": name, "input": {}}


def result(use_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use_id, "content": content, **more}
    return {"type": "user", "message": {"content": [block]}}


STOP = {"type": "stream_event", "event": {"type": "message_stop"}, "parent_tool_use_id": None}


def said(*lines: dict[str, Any]) -> list[Said]:
    saying = Saying()
    return [each for line in lines for each in saying.hear(line)]


def test_an_answer_in_several_lines_is_one_step_when_it_is_whole() -> None:
    lines = [part(text("a")), part(use("t1")), part(use("t2"))]
    assert said(*lines) == []
    assert said(*lines, STOP) == [Step("a", (Called("t1", "Bash", {}), Called("t2", "Bash", {})))]


@pytest.mark.parametrize(
    "line", [part(text("b"), "m2"), result("t1"), {"type": "result", "subtype": "success"}]
)
def test_what_follows_an_answer_makes_it_whole_where_nothing_says_so(line: Any) -> None:
    found = said(part(use("t1")), line)
    assert found[0] == Step("", (Called("t1", "Bash", {}),))
    assert sum(isinstance(each, Step) for each in found) == 1


def test_a_tool_that_comes_after_its_answer_is_no_second_step() -> None:
    found = said(part(text("a")), STOP, part(use("t1")), STOP)
    assert found == [Step("a", ()), Late(Called("t1", "Bash", {}))]


def test_tools_answer_in_text() -> None:
    image = [text("one"), {"type": "image"}, text("two")]
    assert said(result("t1", image), result("t2", "no", is_error=True)) == [
        Answered("t1", "one\n(image, which cannot be shown)\ntwo", failed=False),
        Answered("t2", "no", failed=True),
    ]


def test_what_sub_agents_and_the_program_itself_say_is_no_step() -> None:
    own = {"type": "assistant", "message": {"model": "<synthetic>", "content": [text("402")]}}
    assert said(part(text("a"), parent_tool_use_id="t9"), STOP, own, STOP) == []


def test_an_end_says_why() -> None:
    assert said(
        {"type": "result", "subtype": "success", "result": "Done.", "structured_output": {"a": 1}},
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 402},
        {"type": "system", "subtype": "api_retry", "error_status": 401},
    ) == [
        Ended(text="Done.", answer={"a": 1}, subtype="success"),
        Ended(failed=True, subtype="success", status=402),
        Retrying(401),
    ]


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "content", "id", "event", "subtype"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(["type", "message", "event"]), JSON), max_size=5))
def test_lines_of_unknown_kinds_say_nothing_wrong(lines: list[dict[str, Any]]) -> None:
    said(*lines)


# -- what it may cost --


def test_the_worst_case_is_that_everything_is_written_to_a_cache() -> None:
    """$3 in, $3.75 into the cache, $15 out for a million tokens."""
    price = catalogued("anthropic", "claude-sonnet-4-5")
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": []}
    tokens = 2_000 + UNSEEN_TOKENS
    assert worst_micro_usd(price, body, 2_000) == tokens * 375 // 100 + 100 * 15


def test_an_image_has_a_bound_of_its_own() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    inside = {"type": "tool_result", "content": [image]}
    body = {"max_tokens": 1, "messages": [{"content": [image, inside]}]}
    assert most_tokens(body, 10) == (10 + 2 * IMAGE_TOKENS + UNSEEN_TOKENS, 1)


@pytest.mark.parametrize("longest", [None, "5", -1, True])
def test_an_answer_without_a_bound_is_refused(longest: Any) -> None:
    with pytest.raises(ModelError, match="how long its answer may be"):
        most_tokens({"max_tokens": longest}, 10)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": 0, "output_tokens": 1},
        {"input_tokens": "5", "output_tokens": 1},
        {"input_tokens": 5},
        {"input_tokens": 5, "output_tokens": -1},
        {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": -9},
    ],
)
def test_usage_that_cannot_be_booked_is_none(usage: Any) -> None:
    assert usage_of(usage) is None


@given(st.lists(st.integers(1, 40), max_size=20))
def test_usage_is_read_however_a_stream_is_cut(cuts: list[int]) -> None:
    stream = (
        b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,'
        b'"output_tokens":1}}}\n\nevent: ping\ndata: {"type": "ping"}\n\ndata: {broken\n\n'
        b'data: {"type":"message_delta","usage":{"output_tokens":9,"input_tokens":null}}\n\n'
        b'data: {"type":"message_stop"}\n\n'
    )
    usage = StreamedUsage()
    for cut in cuts:
        usage.feed(stream[:cut])
        stream = stream[cut:]
    assert usage.usage is None or not stream.strip()
    usage.feed(stream)
    assert usage.whole
    assert usage.usage == Usage(tokens_in=7, tokens_out=9)


def test_what_is_said_is_masked_and_what_is_signed_is_not() -> None:
    body = {
        "model": "s3cret",
        "system": [{"type": "text", "text": "s3cret"}],
        "messages": [
            {"content": [{"type": "thinking", "thinking": "s3cret", "signature": "x"}]},
            {"content": [{"type": "tool_use", "input": {"type": "image", "a": ["s3cret"]}}]},
        ],
    }
    found = masked(body, lambda words: words.replace("s3cret", "••••"))
    assert found["model"] == "s3cret"
    assert found["system"] == [{"type": "text", "text": "••••"}]
    assert found["messages"][0] == body["messages"][0]
    assert found["messages"][1]["content"][0]["input"] == {"type": "image", "a": ["••••"]}


# -- how it is started --


def task(**fields: Any) -> Task:
    limits = WorkLimits(
        max_turns=7,
        max_cost_usd=1.0,
        timeout_s=60,
        max_output_chars=500,
        max_tokens=900,
        command_timeout_s=2.5,
    )
    known = {"prompt": "Do it.", "model": MODEL, "workspace": Path("/ws"), "limits": limits}
    return Task(**{**known, **fields})


def model() -> Model:
    return resolve(MODEL, Settings(), environ=ENVIRON, keyring=lambda name: None)


def test_its_environment_holds_no_key_but_the_proxys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "CLAUDECODE", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "foreign")
    given = task(env={"MODE": "quick", "ANTHROPIC_BASE_URL": "http://elsewhere"})
    found = environment_of(given, model(), folder=Path("/f"), url="http://127.0.0.1:9", key="k")
    assert "foreign" not in found.values()
    assert (found["ANTHROPIC_BASE_URL"], found["ANTHROPIC_API_KEY"]) == ("http://127.0.0.1:9", "k")
    assert (found["MODE"], found["CLAUDE_CONFIG_DIR"]) == ("quick", "/f")
    assert found["DISABLE_TELEMETRY"] == found["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert (found["BASH_MAX_TIMEOUT_MS"], found["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == ("2500", "900")


def test_it_is_given_the_tools_of_the_task_and_none_of_the_users_settings(tmp_path: Path) -> None:
    server = {"url": "http://h/", "headers": {"Authorization": "Bearer t0ken"}}
    given = task(tools=("read", "list"), mcp={"docs": server})
    command = command_of(Path("/bin/claude"), given, model(), tmp_path)
    assert command[command.index("--tools") + 1] == "Read,Glob"
    assert {"--setting-sources=", "--strict-mcp-config", "--no-session-persistence"} <= set(command)
    assert "t0ken" not in str(command), "a list of processes shows it to everybody"
    assert "t0ken" in (tmp_path / "mcp.json").read_text()


@pytest.mark.parametrize(
    ("tool", "may"),
    [
        ("Bash", True),
        ("WebFetch", False),
        ("Read", False),
        ("mcp__docs__find", True),
        ("mcp__other__x", False),
    ],
)
def test_it_may_do_what_the_task_gives_it(tool: str, may: bool) -> None:
    given = task(tools=("shell", "read"), mcp={"docs": {"url": "http://h/"}})
    assert may_use(given, tool) is may


def check(name: str) -> None:
    models = StepModels(settings=Settings(), environ=ENVIRON)
    models.check([NamedModel("implement", name, False, "claude_code")])


def test_a_missing_sdk_is_said_before_the_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if "claude" in name else find(name)
    )
    with pytest.raises(ModelError, match=r"implement: .*pip install 'nightwarden\[claude\]'"):
        check(MODEL)


def test_a_model_of_another_provider_is_refused_before_the_run_begins() -> None:
    with pytest.raises(ModelError, match="openai:gpt-5 cannot work in Claude Code: take an anth"):
        check("openai:gpt-5")
