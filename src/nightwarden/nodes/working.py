"""What a step asks for when it lets a model work with tools, and what it gets back.

    Task ─▶ `ctx.work(task)` ─▶ Work        the run does it; nothing here knows how

Read next: `context.py`, `builtin/agent.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from typing_extensions import TypedDict

from nightwarden.errors import NodeError
from nightwarden.events import Event

if TYPE_CHECKING:
    from nightwarden.nodes.context import Mailbox

Tool = Literal["shell", "read", "write", "edit", "list", "search", "fetch"]
"""A tool an agent may be given."""


Backend = Literal["native", "claude_code"]
"""Who works: our own agent, or Claude Code."""

CLAUDE_CODE: Final = "claude_code"


class LimitReached(NodeError):
    """An agent had to end before it was done."""


class McpServer(TypedDict, total=False):
    """Where further tools come from: a `url`, or a `command` that speaks on its own pipes."""

    url: str
    headers: dict[str, str]
    command: str
    args: list[str]
    env: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLimits:
    """What a piece of work may take."""

    max_turns: int
    max_cost_usd: float
    timeout_s: float
    max_output_chars: int
    max_tokens: int
    command_timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A piece of work for a model.

    `prompt` is the task, `instructions` what holds for all of it. File tools stay inside
    `workspace`. With a `schema` (JSON Schema of an object) the work ends in an answer of that
    form, else in a text.
    """

    prompt: str
    model: str
    workspace: Path
    limits: WorkLimits
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    mcp: Mapping[str, McpServer] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, object] | None = None
    backend: Backend = "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What came of it: the last text, or the answer in the form that was asked for."""

    text: str = ""
    answer: Mapping[str, object] = field(default_factory=dict)
    turns: int = 0
    cost_micro_usd: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Desk(Protocol):
    """The engine as a piece of work sees it: who writes to it, and how it is heard."""

    @property
    def mailbox(self) -> Mailbox:
        """What was left for it."""
        ...

    def tell(self, event: Event) -> None:
        """Say what happens, as this invocation; masked and cut on the way."""
        ...

    def mask(self, text: str) -> str:
        """A text without secrets, uncut."""
        ...
