"""How Claude Code is started: which program, what it may use, and what it finds around it.

    Task ─▶ command ─▶ tools of the task's, the schema, none of the user's own settings
         └▶ environment ─▶ what programs need, the proxy's address and key, nothing that calls home

Its own folder (settings, transcripts) is one that is removed at the end; its key opens the proxy
and nothing else. Nothing here needs the SDK.

Read next: `program.py`, `working.py`.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Final

from nightwarden.agents.models import Model
from nightwarden.agents.providers import Protocol
from nightwarden.agents.shell import clean_environment
from nightwarden.errors import ModelError, NodeError
from nightwarden.nodes.working import Task, Tool

SDK: Final = "claude_agent_sdk"
MISSING: Final = (
    "backend claude_code needs the Claude Agent SDK, some 400 MB: "
    "pip install 'nightwarden[claude]', or take backend: native"
)
RULES: Final = "rules.txt"
"""The file in the program's folder that has our part of the instructions."""

_TOOLS: Final[dict[Tool, str]] = {
    "shell": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "list": "Glob",
    "search": "Grep",
    "fetch": "WebFetch",
}
_ASKED_FOR: Final = frozenset({"Bash", "WebFetch"})
"""What reaches further than the workspace, and may be used where it is given."""
_QUIET: Final = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_AUTOUPDATER",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",  # the work ends with the last answer
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_DISABLE_FAST_MODE",  # it has another price
    "FORCE_PROMPT_CACHING_5M",  # one of an hour has another price
)


def check_backend(model: Model) -> None:
    """Raise `ModelError` where this model cannot work in Claude Code here."""
    if model.provider.protocol is not Protocol.ANTHROPIC:
        raise ModelError(
            f"{model.name} cannot work in Claude Code: take an anthropic: model, or backend: native"
        )
    if importlib.util.find_spec(SDK) is None:
        raise ModelError(MISSING)
    found_program()


def found_program() -> Path:
    """The program: what comes with the SDK, else what is installed. Raises `ModelError`."""
    spec = importlib.util.find_spec(SDK)
    if spec is not None and spec.origin:
        bundled = Path(spec.origin).parent / "_bundled" / "claude"
        if bundled.is_file():
            return bundled
    installed = shutil.which("claude")
    if installed is None:
        raise ModelError(
            "backend claude_code finds no program `claude`: the SDK for this system comes without; "
            "install Claude Code, or take backend: native"
        )
    return Path(installed)


def tool_names(task: Task) -> list[str]:
    """The program's own tools that are given."""
    return [_TOOLS[tool] for tool in task.tools]


def may_use(task: Task, tool: str) -> bool:
    """Whether a call the program asks about is allowed: files of the workspace it does not ask
    about."""
    if tool in _ASKED_FOR:
        return tool in tool_names(task)
    return any(tool.startswith(f"mcp__{name}__") for name in task.mcp)


def command_of(program: Path, task: Task, model: Model, folder: Path) -> list[str]:
    """What is started. Writes into `folder` what must not be read off a list of processes."""
    command = [str(program), "--output-format", "stream-json", "--input-format", "stream-json"]
    command += ["--verbose", "--include-partial-messages", "--no-session-persistence"]
    command += ["--model", model.id, "--max-turns", str(task.limits.max_turns)]
    command += ["--tools", ",".join(tool_names(task)), "--setting-sources="]
    command += ["--permission-mode", "acceptEdits", "--permission-prompt-tool", "stdio"]
    command += ["--append-system-prompt-file", str(folder / RULES), "--strict-mcp-config"]
    if task.mcp:
        servers = folder / "mcp.json"
        servers.write_text(json.dumps({"mcpServers": _servers(task)}))
        command += ["--mcp-config", str(servers)]
    if task.schema is not None:
        command += ["--json-schema", json.dumps(task.schema)]
    return command


def environment_of(task: Task, model: Model, *, folder: Path, url: str, key: str) -> dict[str, str]:
    """What it finds in its environment."""
    limits = task.limits
    command_ms = str(round(limits.command_timeout_s * 1000))
    return {
        **clean_environment(more=task.env),
        **dict.fromkeys(_QUIET, "1"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model.id,  # for its own small questions: a known price
        "CLAUDE_CONFIG_DIR": str(folder),
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(limits.max_tokens),
        "BASH_DEFAULT_TIMEOUT_MS": command_ms,
        "BASH_MAX_TIMEOUT_MS": command_ms,
        "BASH_MAX_OUTPUT_LENGTH": str(limits.max_output_chars),
        "PWD": str(task.workspace),
    }


def _servers(task: Task) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, server in task.mcp.items():
        command = server.get("command", "")
        if server.get("url"):
            headers = server.get("headers", {})
            url = server.get("url")
            found[name] = {"type": "http", "url": url, "headers": headers, "alwaysLoad": True}
            continue
        env = clean_environment(more=server.get("env"))
        if shutil.which(command, path=env.get("PATH")) is None:
            raise NodeError(f"mcp.{name}: there is no command {command!r}", code="bad-mcp")
        found[name] = {
            "type": "stdio",
            "command": command,
            "args": server.get("args", []),
            "env": server.get("env", {}),
            "alwaysLoad": True,
        }
    return found
