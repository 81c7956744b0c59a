"""agent.*: a model that works on a task with tools, in a folder of files, for minutes or hours.

    agent.Agent ─▶ text         what it did; the files it changed lie in `workspace`
    agent.Judge ─▶ passed, …    what it found, in a form edges can branch on

Both read what people and supervisors leave for them at every turn. Neither is ever run again by
itself: it has spent money, and changed what it was let near.

Read next: `../working.py`; what runs them is the model side, `nightwarden/agents/laboring.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from pydantic import AfterValidator, Field

from nightwarden.errors import NodeError
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import node
from nightwarden.nodes.io import outputs
from nightwarden.nodes.models import BackendName, ModelName
from nightwarden.nodes.working import McpServer, Task, Tool, Work, WorkLimits
from nightwarden.spec.json_schema import JsonSchema

Turns = Annotated[int, Field(ge=1)]
Dollars = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]
Characters = Annotated[int, Field(ge=200)]
Tokens = Annotated[int, Field(ge=1)]

_SERVER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_OWN_FIELDS: Final = {"passed": "boolean", "reason": "string", "verdict": "string"}
"""What every judgement has, and of which type."""


def _fit_for_judging(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose fields can stand beside those of every judgement. Raises `ValueError`."""
    own = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(own, Mapping):
        raise ValueError("it has to be that of an object, with `properties`")
    for name, wanted in _OWN_FIELDS.items():
        given = own.get(name)
        if given is not None and (not isinstance(given, Mapping) or given.get("type") != wanted):
            raise ValueError(f"`{name}` is a {wanted} in every judgement; take another name")
    if not set(schema.get("required", ())) <= set(own):
        raise ValueError("`required` names a property that is not there")
    return schema


def _each_reachable(servers: dict[str, McpServer]) -> dict[str, McpServer]:
    """Servers that say where they are. Raises `ValueError`."""
    for name, server in servers.items():
        if not _SERVER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} names tools: use a few letters, digits and _")
        if bool(server.get("url")) == bool(server.get("command")):
            raise ValueError(f"{name}: give a url, or a command that starts the server")
        if server.get("url") and not server["url"].startswith(("http://", "https://")):
            raise ValueError(f"{name}: {server['url']!r} is no web address; write http://HOST/…")
    return servers


JudgeSchema = Annotated[JsonSchema, AfterValidator(_fit_for_judging)]
McpServers = Annotated[dict[str, McpServer], AfterValidator(_each_reachable)]

_HANDS: Final[list[Tool]] = ["shell", "read", "write", "edit", "list", "search"]
_EYES: Final[list[Tool]] = ["read", "list", "search"]


@outputs
@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says it did, and what that took."""

    text: str
    turns: int
    cost_usd: float


@outputs
@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge found. `verdict` is a word; `answer` holds all fields that were asked for."""

    passed: bool
    verdict: str
    reason: str
    answer: dict[str, Any]
    turns: int
    cost_usd: float


@node(type="agent.Agent", concurrency=1)
async def agent(
    prompt: str,
    model: ModelName,
    ctx: Context,
    *,
    backend: BackendName = "native",
    workspace: Path = Path("."),
    instructions: str = "",
    context: Any = None,
    tools: list[Tool] = _HANDS,
    mcp: McpServers = {},  # noqa: B006  (never changed; a slot's default is a value)
    env: dict[str, str] = {},  # noqa: B006
    max_turns: Turns = 50,
    max_cost_usd: Dollars = 1.0,
    timeout_s: Seconds = 3600.0,
    command_timeout_s: Seconds = 120.0,
    max_output_chars: Characters = 20_000,
    max_tokens: Tokens = 8192,
) -> Report:
    """Let a model work on a task with tools, until it says that it is done.

    File tools stay inside `workspace`, which is made if it is not there. `shell` is no file tool:
    leave it out of `tools` for a model that must not reach further. `context` is added to the
    prompt: what an earlier step found, say. `mcp` names servers with more tools: a `url`, or a
    `command` with `args`; `env` is what commands find besides a bare environment.

    `backend: claude_code` has Claude Code do the work, with its own tools of the same kinds, under
    the same limits; it needs the extra `claude`, and a model of Anthropic's.

    One works at a time, unless `run: {concurrency: …}` says that items have folders of their own.

    `max_turns`, `timeout_s` and `max_cost_usd` (for all of this node's work in a run) end it, as
    a failure with the code `max-turns`, `timeout` or `model:budget`. A command may take
    `command_timeout_s`. What a tool puts out, and the result, have `max_output_chars` at most; an
    answer of the model has `max_tokens`.
    """
    task = Task(
        prompt=_with_context(prompt, context),
        model=model,
        workspace=ctx.workdir / workspace,
        limits=WorkLimits(
            max_turns=max_turns,
            max_cost_usd=max_cost_usd,
            timeout_s=timeout_s,
            max_output_chars=max_output_chars,
            max_tokens=max_tokens,
            command_timeout_s=command_timeout_s,
        ),
        instructions=instructions,
        tools=_each_once(tools),
        mcp=mcp,
        env=env,
        backend=backend,
    )
    work = await _work(ctx, task)
    return Report(work.text, work.turns, work.cost_micro_usd / 1_000_000)


@node(type="agent.Judge", concurrency=4)
async def judge(
    prompt: str,
    model: ModelName,
    ctx: Context,
    *,
    schema: JudgeSchema = {},  # noqa: B006  (never changed; a slot's default is a value)
    verdicts: list[str] = [],  # noqa: B006
    backend: BackendName = "native",
    workspace: Path = Path("."),
    instructions: str = "",
    context: Any = None,
    tools: list[Tool] = _EYES,
    mcp: McpServers = {},  # noqa: B006
    env: dict[str, str] = {},  # noqa: B006
    max_turns: Turns = 20,
    max_cost_usd: Dollars = 0.5,
    timeout_s: Seconds = 900.0,
    command_timeout_s: Seconds = 120.0,
    max_output_chars: Characters = 20_000,
    max_tokens: Tokens = 4096,
) -> Judgement:
    """Let a model look, with tools that change nothing, and answer in a declared form.

    Every judgement says whether it `passed`, and for what `reason`. `verdicts` are the words one
    of which is its `verdict`; without them that is `pass` or `fail`. `schema` adds fields: the
    `properties` (and `required`) of a JSON Schema, found in `answer`. Branch on `passed`, or on
    `verdict` through `data.Map`. Everything else is as with `agent.Agent`.
    """
    task = Task(
        prompt=_with_context(prompt, context),
        model=model,
        workspace=ctx.workdir / workspace,
        limits=WorkLimits(
            max_turns=max_turns,
            max_cost_usd=max_cost_usd,
            timeout_s=timeout_s,
            max_output_chars=max_output_chars,
            max_tokens=max_tokens,
            command_timeout_s=command_timeout_s,
        ),
        instructions=instructions,
        tools=_each_once(tools),
        mcp=mcp,
        env=env,
        schema=answer_schema(schema, verdicts),
        backend=backend,
    )
    work = await _work(ctx, task)
    return _judged(work)


def answer_schema(schema: Mapping[str, Any], verdicts: list[str]) -> dict[str, Any]:
    """The whole form of a judgement, from what was declared of it."""
    own = schema.get("properties", {})
    required = schema.get("required", list(own))
    fields: dict[str, Any] = {
        "reason": {"type": "string", "minLength": 1, "description": "What you saw, in short."},
        "passed": {"type": "boolean"},
    }
    if verdicts:
        fields["verdict"] = {"type": "string", "enum": list(dict.fromkeys(verdicts))}
    kept = {k: v for k, v in schema.items() if k not in ("type", "properties", "required")}
    return {
        **kept,
        "type": "object",
        "properties": {**fields, **own},
        "required": list(dict.fromkeys([*fields, *required])),
        "additionalProperties": schema.get("additionalProperties", False),
    }


def _judged(work: Work) -> Judgement:
    answer = dict(work.answer)
    passed = answer["passed"] is True
    return Judgement(
        passed=passed,
        verdict=str(answer.get("verdict") or ("pass" if passed else "fail")),
        reason=str(answer["reason"]),
        answer=answer,
        turns=work.turns,
        cost_usd=work.cost_micro_usd / 1_000_000,
    )


async def _work(ctx: Context, task: Task) -> Work:
    if not task.prompt.strip():
        raise NodeError("the prompt is empty: say what is to be done", code="no-prompt")
    try:
        task.workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if task.workspace.is_file() else error.strerror or error
        raise NodeError(f"workspace {task.workspace}: {why}", code="bad-workspace") from None
    return await ctx.work(task)


def _with_context(prompt: str, context: object) -> str:
    if context is None or context == "":
        return prompt
    text = context if isinstance(context, str) else _as_json(context)
    return f"{prompt}\n\nWhat is known so far:\n{text}"


def _as_json(value: object) -> str:
    encoded = msgspec.json.encode(value, enc_hook=str)
    return msgspec.json.format(encoded, indent=1).decode()


def _each_once(tools: list[Tool]) -> tuple[Tool, ...]:
    return tuple(dict.fromkeys(tools))
