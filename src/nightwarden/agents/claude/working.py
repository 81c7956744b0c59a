"""Claude Code at work: the events, limits and messages of `../laboring.py`, with another worker.

    task ─▶ ┌ request ─▶ answer ─▶ tools ─▶ mailbox ┐ ─▶ … ─▶ the last text, or the answer
            └───────────────────────────────────────┘

It takes its turns by itself. After the tools of a turn it asks what there is to add (a hook, which
comes however the tools ended), and what waits in the mailbox is in the very next request. Where it
would end, the mailbox is drained once more: then the message is a further turn. Money is held by
the proxy, turns, time and size are held here.

Only `AskedModel.work` imports this, and only this imports the SDK: in a thread, when it is needed.
Read next: `saying.py`, `program.py`, `proxy.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.claude.program import Program
from nightwarden.agents.claude.proxy import Payable, Proxy
from nightwarden.agents.claude.saying import ANSWER, Ended, Retrying, Said, Saying
from nightwarden.agents.claude.starting import (
    RULES,
    SDK,
    command_of,
    environment_of,
    found_program,
    may_use,
)
from nightwarden.agents.claude.telling import Telling
from nightwarden.agents.meter import Tally
from nightwarden.agents.models import Model
from nightwarden.agents.rules import instructions
from nightwarden.agents.standing import Standing, not_done, too_long
from nightwarden.errors import NodeError
from nightwarden.events.agent import UserPrompt
from nightwarden.leash import guarded
from nightwarden.nodes.working import Desk, Task, Work

_INTERRUPT_S: Final = 0.3
_LOOK_AGAIN_S: Final = 0.05
_UNREACHED: Final = ("failed", "needs-auth", "disabled")
_MOST_PROBLEMS: Final = 5
_OUTSIDE: Final = "not allowed: what lies in the workspace, and the tools you were given, are"


async def labor(
    model: Model,
    task: Task,
    desk: Desk,
    *,
    tally: Tally,
    budget: TurnBudget | None,
    payable: Callable[[str], Payable],
) -> Work:
    """Let Claude Code work. Raises `NodeError`, also where a limit ended it.

    `payable` finds what a model the program names is paid from; all of it counts in `tally`.
    """
    sdk = await asyncio.to_thread(importlib.import_module, SDK)
    standing = Standing(desk.tell, task.limits, tally, budget)
    async with standing.limited(), Proxy(payable, desk.mask) as proxy:
        with tempfile.TemporaryDirectory(dir=guarded(), ignore_cleanup_errors=True) as outer:
            folder = Path(outer) / "own"
            folder.mkdir()
            work = _Labor(sdk, model, task, desk, tally, standing, proxy)
            return await work.through(folder)


class _Labor:
    """One piece of work."""

    def __init__(
        self,
        sdk: Any,
        model: Model,
        task: Task,
        desk: Desk,
        tally: Tally,
        standing: Standing,
        proxy: Proxy,
    ) -> None:
        self._sdk = sdk
        self._model = model
        self._task = task
        self._desk = desk
        self._tally = tally
        self._proxy = proxy
        self._saying = Saying()
        self._telling = Telling(task, desk, tally, standing)
        self._ended: Ended | None = None
        self._out_of_turns = False
        self._program: Program

    async def through(self, folder: Path) -> Work:
        """From the task to its end."""
        prompt = self._desk.mask(self._task.prompt)
        self._desk.tell(UserPrompt(text=prompt))
        self._program = self._prepared(folder)
        client = self._sdk.ClaudeSDKClient(self._options(), transport=self._program)
        try:
            try:
                await client.connect()
                await self._reached(client)
                await client.query(prompt)
                return await self._followed(client)
            except (self._sdk.ClaudeSDKError, OSError) as error:
                raise self._trouble(str(error)) from error
        except BaseException:
            await self._interrupted(client)
            raise
        finally:
            await self._program.close()
            with contextlib.suppress(Exception):
                await client.disconnect()

    async def _followed(self, client: Any) -> Work:
        async for _ in client.receive_messages():
            self._catch_up()
            ended, self._ended = self._ended, None
            if ended is None:
                continue
            more = self._more(ended)
            if more is None:
                return self._done(ended)
            await client.query(more)
        self._catch_up()
        raise self._trouble("Claude Code ended before it was done")

    async def _reached(self, client: Any) -> None:
        """Wait for the servers of tools. Raises `NodeError` where one cannot be reached."""
        while self._task.mcp:
            found = (await client.get_mcp_status()).get("mcpServers", ())
            servers = {each.get("name"): each for each in found}
            states = {name: servers.get(name, {}).get("status") for name in self._task.mcp}
            for name, state in states.items():
                if state in _UNREACHED:
                    why = " ".join(str(servers[name].get("error") or state).split())[:300]
                    said = f"mcp.{name}: the server cannot be used: {self._desk.mask(why)}"
                    raise NodeError(said, code="mcp")
            if all(state == "connected" for state in states.values()):
                return
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _interrupted(self, client: Any) -> None:
        """Stop what it does: closes its request, kills its commands."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_INTERRUPT_S):
                await client.interrupt()

    # -- what it says --

    def _catch_up(self) -> None:
        """Tell what it has said by now."""
        heard = self._program.heard
        while heard:
            for said in self._saying.hear(heard.popleft()):
                self._take(said)

    def _take(self, said: Said) -> None:
        match said:
            case Retrying(status=401 | 403):
                raise self._trouble("", said.status)  # it would go on trying for minutes
            case Ended():
                self._ended = said
            case _:
                self._telling.take(said)

    # -- what it is told --

    async def _between(self, given: Any, use_id: Any, context: Any) -> dict[str, Any]:
        """The tools of a turn are over: what is to be added before the next request?"""
        del given, use_id, context
        self._catch_up()
        if self._telling.answering:
            return {}  # it ends here: what waits is a turn of its own
        if self._telling.turns >= self._task.limits.max_turns:
            self._out_of_turns = True
            return {"continue_": False, "stopReason": "no turn is left"}
        notes = self._notes()
        if not notes:
            return {}
        added = {"hookEventName": "PostToolBatch", "additionalContext": notes}
        return {"hookSpecificOutput": added}

    async def _may(self, tool: str, given: Any, context: Any) -> Any:
        """Whether a tool may be used; not asked about files of the workspace."""
        del given, context
        if may_use(self._task, tool):
            return self._sdk.PermissionResultAllow()
        return self._sdk.PermissionResultDeny(message=_OUTSIDE)

    def _notes(self) -> str:
        """What waits in the mailbox, if there is a turn left to read it in."""
        if self._telling.turns >= self._task.limits.max_turns:
            return ""
        return "\n\n".join(self._desk.mask(note.text) for note in self._desk.mailbox.take())

    def _more(self, ended: Ended) -> str | None:
        """What is to be said before the end counts; None where it does. Raises what went wrong."""
        self._check(ended)
        more = self._notes() or self._wanting(ended)
        if more and self._telling.turns >= self._task.limits.max_turns:
            raise not_done(self._task.limits)
        return more or None

    def _check(self, ended: Ended) -> None:
        if self._out_of_turns or ended.subtype == "error_max_turns":
            raise not_done(self._task.limits)
        if ended.failed and not ended.subtype.startswith("error_max_structured"):
            raise self._trouble(ended.text, ended.status)

    def _wanting(self, ended: Ended) -> str:
        """What is wrong with a result; empty where nothing is."""
        if self._task.schema is None:
            return too_long(ended.text, self._task.limits)
        validator = jsonschema_rs.validator_for(dict(self._task.schema))
        problems = [error.message[:300] for error in validator.iter_errors(ended.answer)]
        return _listed(problems[:_MOST_PROBLEMS])

    # -- the end --

    def _done(self, ended: Ended) -> Work:
        answer = ended.answer
        return Work(
            text="" if self._task.schema else ended.text,
            answer=answer if self._task.schema and isinstance(answer, Mapping) else {},
            turns=self._telling.turns,
            cost_micro_usd=self._tally.cost_micro_usd,
            input_tokens=self._tally.tokens_in,
            output_tokens=self._tally.tokens_out,
        )

    def _trouble(self, said: str, status: int | None = None) -> NodeError:
        """Why it could not go on: what was refused here, else what the provider or it says."""
        refused, model = self._proxy.refused, self._task.model
        if isinstance(refused, NodeError):
            return refused
        if refused is not None:
            return NodeError(f"{model}: {refused}", code="model:unbounded")
        status = status or self._proxy.status
        if status in (401, 403):
            return NodeError(
                f"{model}: the provider does not accept the key", code=f"http:{status}"
            )
        if status >= 400:
            words = f"the provider answered with status {status}"
            return NodeError(f"{model}: {words}", code=f"http:{status}")
        brief = " ".join(self._desk.mask(said or self._program.last_words()).split())[:300]
        return NodeError(f"{model}: Claude Code could not go on: {brief}", code="claude")

    # -- how it is started --

    def _prepared(self, folder: Path) -> Program:
        rules = instructions(self._task, self._desk.mask, answer_by=ANSWER)
        (folder / RULES).write_text(rules, encoding="utf-8")
        env = environment_of(
            self._task, self._model, folder=folder, url=self._proxy.url, key=self._proxy.key
        )
        command = command_of(found_program(), self._task, self._model, folder)
        return Program(command, env=env, cwd=self._task.workspace, errors=folder / "errors.txt")

    def _options(self) -> Any:
        return self._sdk.ClaudeAgentOptions(
            can_use_tool=self._may,
            hooks={"PostToolBatch": [self._sdk.HookMatcher(hooks=[self._between])]},
            verbatim_prompts=True,  # no command and no file is read out of what others wrote
            skills=[],
        )


def _listed(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"This answer cannot be taken; give it again through {ANSWER}:\n{listed}"
