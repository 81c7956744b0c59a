"""One question to a model, and its answer in the form that was asked for.

    question ─▶ model ─▶ answer(…) of the right form? ─no─▶ said, and asked again ─▶ at most
                                     └─ yes ─▶ the answer                            three turns

The form goes to the provider as a tool's parameters, and is checked again here. Every turn goes
through the meter.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `consulting.py`, `metering.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
from pydantic_ai import Agent, ModelRetry, StructuredDict, ToolOutput, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.models import Model as ProviderModel

from nightwarden.agents.trouble import reason
from nightwarden.errors import SupervisionError

MAX_TURNS: Final = 3
_MOST_PROBLEMS: Final = 5


class Unanswered(SupervisionError):
    """The model came to no answer that can be used; the message says why, in one line."""


async def put(
    model: ProviderModel,
    instructions: str,
    question: str,
    schema: Mapping[str, Any],
    *,
    name: str,
    max_turns: int = MAX_TURNS,
) -> Mapping[str, Any]:
    """Ask once. Raises `Unanswered` with one line of why, and what the meter raises."""
    try:
        result = await _agent(model, instructions, schema, name, max_turns).run(
            question, usage_limits=UsageLimits(request_limit=max_turns)
        )
    except UsageLimitExceeded as error:
        raise Unanswered(f"no answer that can be used within {max_turns} turns") from error
    except (AgentRunError, UserError) as error:
        raise Unanswered(reason(error)) from error
    return result.output


def _agent(
    model: ProviderModel, instructions: str, schema: Mapping[str, Any], name: str, turns: int
) -> Agent[object, Mapping[str, Any]]:
    validator = jsonschema_rs.validator_for(dict(schema))

    async def accept(answer: Any) -> Mapping[str, Any]:
        problems = [error.message[:300] for error in validator.iter_errors(answer)]
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems[:_MOST_PROBLEMS])
            raise ModelRetry(f"This answer cannot be taken:\n{listed}")
        found: Mapping[str, Any] = answer
        return found

    # The schema as it is, not one made from a type: it reaches the provider verbatim.
    accept.__annotations__ = {"answer": StructuredDict(dict(schema))}
    output: ToolOutput[Mapping[str, Any]] = ToolOutput(
        accept, name=name, description="Give your answer, once.", strict=False
    )
    return Agent(
        model,
        name="consultant",
        instructions=instructions,
        output_type=output,
        retries={"tools": turns, "output": turns},
    )
