"""The tools a model is offered, watched: every call is told, cut, masked, and never breaks a run.

    the model's call ─▶ tool_started ─▶ the tool ─┬▶ tool_called
                                                  └▶ tool_error, and the reason as the answer

Tools of servers that speak MCP go the same way as our own; theirs are named `server_tool`.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `tools.py`, `laboring.py`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset

from nightwarden.agents.shell import clean_environment
from nightwarden.agents.tools import Tools, shortened
from nightwarden.agents.workspace import ToolProblem
from nightwarden.errors import NodeError
from nightwarden.events.agent import ToolCalled, ToolStarted
from nightwarden.events.agent import ToolFailed as ToolFailedEvent
from nightwarden.leash import Leash
from nightwarden.nodes.working import Desk, McpServer, Task

Toolset = AbstractToolset[None]


def toolsets(task: Task, tools: Tools, desk: Desk) -> list[Toolset]:
    """All tools of a piece of work. Raises `NodeError` for a server that is described wrongly."""
    own = [
        Tool(function, name=name, takes_ctx=False, sequential=True, strict=False)
        for name, function in tools.functions.items()
    ]
    most = task.limits.max_output_chars
    offered: list[Toolset] = [Watched(FunctionToolset(own), desk, most)] if own else []
    for name, server in task.mcp.items():
        leash = Leash() if server.get("command") else None
        reached = _server(name, server, task, leash)
        offered.append(Watched(reached, desk, most, f"mcp.{name}", leash))
    return offered


@dataclass
class Watched(WrapperToolset[None]):
    """Tools whose calls are told."""

    desk: Desk
    max_chars: int
    name: str = ""
    leash: Leash | None = None

    async def __aenter__(self) -> Self:
        """Reach the server, if it is one. Raises `NodeError` where it cannot be reached."""
        try:
            return await super().__aenter__()
        except Exception as error:
            why = " ".join(str(error).split())[:300]
            raise NodeError(f"{self.name}: the server cannot be used: {why}", code="mcp") from error

    async def __aexit__(self, *args: Any) -> bool | None:
        """Let go of the server; one that we started is ended."""
        if self.leash is not None:
            self.leash.kill()
        return await super().__aexit__(*args)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> Any:
        """Call it; what goes wrong in it is an answer like any other."""
        use = ctx.tool_call_id or ""
        self.desk.tell(ToolStarted(tool=name, tool_use_id=use, input=tool_args))
        began = time.monotonic()
        try:
            found = await self._called(name, tool_args, ctx, tool)
        except (ToolProblem, ModelRetry, ToolFailed) as error:
            why = self._shown(str(getattr(error, "message", error)))
            failed = ToolFailedEvent(tool=name, tool_use_id=use, input=tool_args, error=why)
            failed.duration_s = time.monotonic() - began
            self.desk.tell(failed)
            return f"failed: {why}"
        text = self._shown(as_text(found))
        called = ToolCalled(tool=name, tool_use_id=use, input=tool_args, output=text)
        called.duration_s = time.monotonic() - began
        self.desk.tell(called)
        return text

    async def _called(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> Any:
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except (ToolProblem, ModelRetry, ToolFailed):
            raise
        except Exception as error:
            if not self.name:
                raise  # a fault of ours
            # Whatever goes wrong at a server, the agent may find another way.
            raise ToolProblem(f"{self.name}: {type(error).__name__}: {error}") from error

    def _shown(self, text: str) -> str:
        # Masked as a whole, then cut: a secret must not be cut in two.
        return shortened(self.desk.mask(text), self.max_chars)


def as_text(found: object) -> str:
    """What a tool gave, as text: only of text does the length bound what reading it costs."""
    if isinstance(found, str):
        return found
    if isinstance(found, (list, tuple)):
        return "\n".join(as_text(part) for part in found)
    if isinstance(found, Mapping):
        return msgspec.json.encode(found, enc_hook=str).decode()
    if hasattr(found, "media_type"):
        return f"({found.media_type}, which cannot be shown)"
    return str(found)


def _server(name: str, server: McpServer, task: Task, leash: Leash | None) -> Toolset:
    from fastmcp.client.transports import StdioTransport  # noqa: PLC0415  (heavy)
    from pydantic_ai.mcp import MCPToolset  # noqa: PLC0415  (heavy)

    url, command = server.get("url", ""), server.get("command", "")
    if bool(url) == bool(command):
        raise NodeError(
            f"mcp.{name}: give a url, or a command that starts the server", code="bad-mcp"
        )
    if url:
        return MCPToolset[None](url, headers=server.get("headers") or None).prefixed(name)
    env = clean_environment(more=server.get("env"))
    if shutil.which(command, path=env.get("PATH")) is None:
        raise NodeError(f"mcp.{name}: there is no command {command!r}", code="bad-mcp")
    assert leash is not None
    command, *arguments = leash.command(command, server.get("args", ()))
    transport = StdioTransport(
        command=command,
        args=arguments,
        env=env,
        cwd=str(task.workspace),
        keep_alive=False,
        log_file=Path(os.devnull),  # what it has to say to people is not for whoever runs this
    )
    return MCPToolset[None](transport).prefixed(name)
