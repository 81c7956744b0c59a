"""Events of agents: what a model at work says, does and spends, turn by turn.

    user_prompt ─▶ llm_step_finished (assistant_text) ─▶ tool_started ─▶ tool_called | tool_error
                     └─▶ usage_progress, budget_warning, budget_exceeded

Supervisors look at them, and monitors match them; texts are masked and cut before they get here.

Read next: `agent_lines.py`, `steering.py`.
"""

from __future__ import annotations

from nightwarden.events.base import Event


class UserPrompt(Event, tag="user_prompt"):
    """An agent is given its task. Messages that reach it later have events of their own."""

    text: str
    """the task"""


class LlmStepFinished(Event, tag="llm_step_finished"):
    """The model answered: one turn is over."""

    step: int
    """which turn it is, from 1"""
    text: str = ""
    """what the model said"""
    tool_calls: int = 0
    """how many tools it asks for"""
    model: str = ""
    """which model, as `provider:name`"""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


class AssistantText(Event, tag="assistant_text"):
    """What the agent said in a turn."""

    text: str
    """the agent's own words"""


class ToolEvent(Event, kw_only=True):
    """What all events of tools tell: which tool, which call, what it was given."""

    tool: str
    tool_use_id: str = ""
    input: object = None


class ToolStarted(ToolEvent, tag="tool_started"):
    """The agent calls a tool."""


class ToolCalled(ToolEvent, tag="tool_called"):
    """A tool has answered."""

    output: str = ""
    """what it answered"""
    duration_s: float = 0.0


class ToolFailed(ToolEvent, tag="tool_error"):
    """A tool could not do what it was asked for; the agent reads why."""

    error: str = ""
    """why, in the words the agent reads"""
    duration_s: float = 0.0


class UsageProgress(Event, tag="usage_progress"):
    """What the agent has spent so far; told when it has grown by a good part, not at each turn."""

    tokens: int
    """tokens so far, in and out"""
    used: float | None = None
    """dollars so far; null where the model has no price"""


class BudgetLimit(Event, kw_only=True):
    """What both events of limits tell."""

    dimension: str
    """`cost_usd`, `turns` or `seconds`"""
    used: float
    """how much of it is used, in the unit of the dimension"""
    limit: float
    """how much of it there is"""


class BudgetWarning(BudgetLimit, tag="budget_warning"):
    """Four fifths of a limit are used; told once for each."""


class BudgetExceeded(BudgetLimit, tag="budget_exceeded"):
    """A limit is reached: the agent has to end here, and its step fails."""
