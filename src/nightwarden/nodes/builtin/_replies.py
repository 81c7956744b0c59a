"""Reading what a model replied: strictly, but for two habits that hide no content.

    ```json … ```     a fence around the whole reply is taken off, of whatever length or sign
    [1, 2, ]          a comma with nothing after it is left out

Anything else that is no JSON, or does not fit what was asked for, is a failure that carries the
reply as it came: what it may have meant is a decision, and decisions are a supervisor's.

Read next: `llm.py`, `_json_strict.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from nightwarden.errors import RecoverableError
from nightwarden.nodes.builtin._json_strict import load
from nightwarden.nodes.models import Reply
from nightwarden.spec.json_schema import problems_of

_SHORTEST_FENCE: Final = 3
_TEXT_OR_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def whole_text(reply: Reply, model: str, max_tokens: int) -> str:
    """The text of a complete reply. Raises `RecoverableError` for one that is not, or is empty."""
    if not reply.complete:
        raise RecoverableError(
            f"{model}: the reply was cut off at {max_tokens:,} tokens; max_tokens may be larger",
            candidate_output=reply.text,
            code="reply:cut-off",
        )
    if not reply.text.strip():
        raise RecoverableError(f"{model}: the reply is empty", code="reply:empty")
    return reply.text


def json_of(text: str, schema: Mapping[str, object]) -> JsonValue:
    """The value a reply holds. Raises `RecoverableError` (`reply:…`) for one that does not fit."""
    value, refusal = load(text)
    if refusal is not None:
        value, still = load(without_habits(text))
        if still is not None:
            raise RecoverableError(
                f"the reply is no JSON: {refusal.text}",
                candidate_output=text,
                code=f"reply:{refusal.code}",
            )
    problems = problems_of(value, schema)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise RecoverableError(
            f"the reply does not fit the schema: {problems[0]}{more}",
            candidate_output=text,
            code="reply:misfit",
        )
    return value  # type: ignore[return-value]  # what the decoder makes is JSON


def without_habits(text: str) -> str:
    """A reply without a fence around all of it, and without commas that have nothing after them."""
    return _TEXT_OR_COMMA.sub(_no_comma_after_a_value, _unfenced(text))


def _unfenced(text: str) -> str:
    """What stands in a code fence around all of a text; the text where there is none."""
    head, line_end, rest = text.strip().partition("\n")
    sign = head[:1]
    length = len(head) - len(head.lstrip(sign)) if sign in ("`", "~") else 0
    if length < _SHORTEST_FENCE or not line_end or "`" in head[length:]:
        return text
    inner = rest.rstrip(sign)
    return inner if len(rest) - len(inner) >= length else text


def _no_comma_after_a_value(found: re.Match[str]) -> str:
    """A text as it is; nothing for a comma, unless nothing stands before it either."""
    if found[0] != ",":
        return found[0]
    at = found.start() - 1
    while at >= 0 and found.string[at].isspace():
        at -= 1
    return "" if at >= 0 and found.string[at] not in "[{,:" else ","
