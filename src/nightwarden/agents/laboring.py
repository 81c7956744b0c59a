"""A model at work: turn after turn, with tools, until it is done or a limit is reached.

    task ─▶ ┌ mailbox ─▶ request ─▶ answer ─▶ tools ┐ ─▶ … ─▶ the last text, or the answer
            └───────────────────────────────────────┘

What waits in the mailbox is in the very next request. It is drained before every request and,
where the agent would otherwise end, once more: then the message is a further turn. Money is held
by the model itself (`metering.py`); turns, time and size are held here. Whatever ends the work
early is a failure of the step that says which limit it was.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `toolset.py`, `standing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import jsonschema_rs
from pydantic_ai import Agent, AgentRun, ModelRetry, StructuredDict, ToolOutput, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.output import OutputSpec
from pydantic_graph import End

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.meter import Tally
from nightwarden.agents.rules import instructions
from nightwarden.agents.standing import Standing, not_done, too_long
from nightwarden.agents.tools import Tools
from nightwarden.agents.toolset import toolsets
from nightwarden.agents.trouble import trouble
from nightwarden.events.agent import AssistantText, LlmStepFinished, ToolFailed, UserPrompt
from nightwarden.nodes.working import Desk, Task, Work

ANSWER: Final = "answer"
"""The tool a judge answers by."""

_MOST_PROBLEMS: Final = 5


async def labor(
    model: ProviderModel, task: Task, desk: Desk, tally: Tally, budget: TurnBudget | None
) -> Work:
    """Let the model work. Raises `NodeError`, and what the model's meter raises.

    `tally` counts what the model's turns came to, `budget` is what they are paid from.
    """
    standing = Standing(desk.tell, task.limits, tally, budget)
    try:
        async with standing.limited():
            try:
                return await Labor(task, desk, tally, standing).through(model)
            except UsageLimitExceeded as error:
                raise not_done(task.limits) from error
    except (AgentRunError, UserError) as error:
        raise trouble(task.model, error) from error


class Labor:
    """One piece of work."""

    def __init__(self, task: Task, desk: Desk, tally: Tally, standing: Standing) -> None:
        self._task = task
        self._desk = desk
        self._tally = tally
        self._standing = standing
        self._turns = 0

    async def through(self, model: ProviderModel) -> Work:
        """From the task to its end."""
        prompt = self._desk.mask(self._task.prompt)
        self._desk.tell(UserPrompt(text=prompt))
        limits = UsageLimits(request_limit=self._task.limits.max_turns)
        async with AsyncExitStack() as stack:
            agent = await stack.enter_async_context(self._agent(model))
            run = await stack.enter_async_context(agent.iter(prompt, usage_limits=limits))
            node = run.next_node
            while not isinstance(node, End):
                node = await self._advance(run, node)
            return self._done(node.data.output)

    async def _advance(self, run: AgentRun[None, Any], node: Any) -> Any:
        if Agent.is_model_request_node(node):
            self._deliver(run)
            self._tell_refusals(node.request)
            before = self._tally.cost_micro_usd
            following = await run.next(node)
            self._desk.mailbox.stepped()
            self._tell_step(run, self._tally.cost_micro_usd - before)
            return following
        if Agent.is_call_tools_node(node) and self._would_end(node.model_response):
            self._deliver(run)
        return await run.next(node)

    def _deliver(self, run: AgentRun[None, Any]) -> None:
        """Hand over what waits, as long as there is a turn left to read it in."""
        if self._turns >= self._task.limits.max_turns:
            return
        for note in self._desk.mailbox.take():
            run.enqueue(self._desk.mask(note.text), priority="asap")

    def _would_end(self, response: ModelResponse) -> bool:
        calls = [call.tool_name for call in response.tool_calls]
        return not calls or ANSWER in calls

    def _tell_step(self, run: AgentRun[None, Any], cost_micro_usd: int) -> None:
        self._turns += 1
        response = next(m for m in reversed(run.all_messages()) if isinstance(m, ModelResponse))
        text = (response.text or "").strip()
        self._desk.tell(
            LlmStepFinished(
                step=self._turns,
                text=text,
                tool_calls=len(response.tool_calls),
                model=self._task.model,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                cost_micro_usd=cost_micro_usd,
            )
        )
        if text:
            self._desk.tell(AssistantText(text=text))
        self._standing.step(self._turns)

    def _tell_refusals(self, request: ModelRequest) -> None:
        """Calls that reached no tool: no such tool, or not the arguments it takes."""
        for part in request.parts:
            if isinstance(part, ToolReturnPart) and part.outcome == "retried":
                self._desk.tell(
                    ToolFailed(
                        tool=part.tool_name,
                        tool_use_id=part.tool_call_id,
                        error=self._desk.mask(part.model_response_str()),
                    )
                )

    def _done(self, output: Any) -> Work:
        found: dict[str, Any] = {"answer": output} if self._task.schema else {"text": output}
        return Work(
            turns=self._turns,
            cost_micro_usd=self._tally.cost_micro_usd,
            input_tokens=self._tally.tokens_in,
            output_tokens=self._tally.tokens_out,
            **found,
        )

    # -- the agent --

    def _agent(self, model: ProviderModel) -> Agent[None, Any]:
        task, turns = self._task, self._task.limits.max_turns
        agent: Agent[None, Any] = Agent(
            model,
            name="agent",
            instructions=instructions(task, self._desk.mask, answer_by=ANSWER),
            output_type=self._output(),
            toolsets=toolsets(task, Tools(task), self._desk),
            # Wrong calls and wrong answers count apart; the turns bound them all.
            retries={"tools": turns, "output": turns},
        )
        if task.schema is None:
            agent.output_validator(self._check_size)
        return agent

    def _check_size(self, text: str) -> str:
        if problem := too_long(text, self._task.limits):
            raise ModelRetry(problem)
        return text

    def _output(self) -> OutputSpec[Any]:
        if self._task.schema is None:
            return str
        schema = dict(self._task.schema)
        validator = jsonschema_rs.validator_for(schema)

        async def accept(answer: Any) -> Mapping[str, Any]:
            _refuse([error.message[:300] for error in validator.iter_errors(answer)])
            found: Mapping[str, Any] = answer
            return found

        # The schema as it is, not one made from a type: it reaches the provider verbatim.
        accept.__annotations__ = {"answer": StructuredDict(schema)}
        return ToolOutput(accept, name=ANSWER, description="Give your answer.", strict=False)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems[:_MOST_PROBLEMS])
        raise ModelRetry(f"This answer cannot be taken:\n{listed}")
