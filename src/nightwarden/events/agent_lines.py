"""The lines of what agents do and say, for `render.py`.

    implement says: I run the tests.
    implement Bash {"command": "ls"} → p.py
    implement Bash failed: 1 failed, 4 passed {"command": "pytest -q"}

What an agent says and is told stands whole: monitors look for words in it.

Read next: `render.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from nightwarden.events.words import count, text

Plain = Mapping[str, Any]


def _node(event: Plain) -> str:
    return text(event.get("node_id")) or "agent"


def _tool(event: Plain) -> str:
    name = event.get("tool") or event.get("tool_name")
    return name if isinstance(name, str) else "a tool"


def said(value: object) -> str:
    """What a tool was given, or gave, as text; JSON where it is none."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError):
        return text(value)


def _called(event: Plain) -> str:
    given, output = said(event.get("input")), said(event.get("output"))
    return f"{_node(event)} {_tool(event)} {given}".rstrip() + (f" → {output}" if output else "")


def _tool_failed(event: Plain) -> str:
    what = said(event.get("error")) or said(event.get("output"))
    return f"{_node(event)} {_tool(event)} failed: {what} {said(event.get('input'))}".rstrip()


def _spent(event: Plain) -> str:
    used, tokens = event.get("used"), event.get("tokens")
    return f"{_node(event)} has used {f'{tokens} tokens' if used is None else _dollars(used)}"


def _dollars(amount: object) -> str:
    """Cents, and what is below them where there is something."""
    text = f"{amount:.6f}" if isinstance(amount, (int, float)) else str(amount)
    whole, _, part = text.partition(".")
    return f"${whole}.{part.rstrip('0').ljust(2, '0')}"


def _budget(words: str) -> Callable[[Plain], str]:
    def line(event: Plain) -> str:
        where = f"{event.get('dimension')}: {event.get('used')} of {event.get('limit')}"
        return f"{_node(event)} {words}: {where}"

    return line


def _step(event: Plain) -> str:
    reply = event.get("text") or event.get("response_text")
    tools = event.get("tool_calls")
    asked = f", {count(tools, 'tool call')}" if isinstance(tools, int) and tools else ""
    return f"{_node(event)} took a step{asked}" + (f": {reply}" if reply else "")


AGENT_LINES: Final[Mapping[str, Callable[[Plain], str]]] = {
    "llm_step_finished": _step,
    "assistant_text": lambda e: f"{_node(e)} says: {e.get('text')}",
    "user_prompt": lambda e: f"{_node(e)} is told: {e.get('text')}",
    "tool_started": lambda e: f"{_node(e)} calls {_tool(e)} {said(e.get('input'))}".rstrip(),
    "tool_called": _called,
    "tool_error": _tool_failed,
    "usage_progress": _spent,
    "budget_warning": _budget("comes near its budget"),
    "budget_exceeded": _budget("is over its budget"),
    "session_stopped": lambda e: f"{_node(e)} stopped",
    "session_ended": lambda e: f"the session ended {e.get('reason') or ''}".rstrip(),
}
