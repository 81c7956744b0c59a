"""One decision is one conversation with a model: it may look things up, then it answers once.

    question ─▶ model ⇄ get_run_state, read_node_output
                  └─▶ decide(answer) ─▶ form, verb, repair right? ─no─▶ said, and asked again
                                               └─ yes ─▶ the verdict

At most six turns; a repair that does not fit comes back three times at most. Every turn goes
through the meter. Whatever goes wrong with the model is a reason in one line, never a verdict.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `answering.py`, `metering.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from pydantic_ai import Agent, ModelRetry, StructuredDict, Tool, ToolOutput, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.models import Model as ProviderModel

from nightwarden.agents.answering import (
    answer_schema,
    needs_patch,
    one_line,
    problems_of,
    verdict_of,
)
from nightwarden.agents.evidence import Evidence, facts
from nightwarden.agents.fencing import Fence
from nightwarden.agents.prompt import instructions, question, rejected
from nightwarden.agents.trouble import reason
from nightwarden.errors import SupervisionError
from nightwarden.runtime.supervision import RunEvidence
from nightwarden.verdict import Action, Escalation, Substitute, Verdict

MAX_TURNS: Final = 6
MAX_REPAIRS: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model decided, and why."""

    verdict: Verdict
    rationale: str


class NoAnswer(SupervisionError):
    """The model came to no answer that can be used; the message says why, in one line."""


class Conversation:
    """One conversation about one failure."""

    def __init__(
        self,
        escalation: Escalation,
        reader: RunEvidence,
        fence: Fence,
        *,
        max_turns: int = MAX_TURNS,
        max_repairs: int = MAX_REPAIRS,
    ) -> None:
        self.evidence = Evidence(escalation, reader, fence)
        self.repairs_rejected = 0
        self._escalation = escalation
        self._reader = reader
        self._fence = fence
        self._max_turns = max_turns
        self._max_repairs = max_repairs
        self._schema = answer_schema(escalation)

    async def hold(self, model: ProviderModel) -> Answer:
        """Ask, until there is an answer. Raises `NoAnswer`, and what the meter raises."""
        agent = self._agent(model)
        told = facts(self._escalation, self._reader.brief(self._escalation.id))
        try:
            result = await agent.run(
                question(told, self._fence),
                usage_limits=UsageLimits(request_limit=self._max_turns),
            )
        except (AgentRunError, UserError) as error:
            raise NoAnswer(self._reason(error)) from error
        return result.output

    def _agent(self, model: ProviderModel) -> Agent[object, Answer]:
        async def decide(answer: Any) -> Answer:
            return await self._accept(answer)

        # The schema as it is, not one made from a type: it reaches the provider verbatim.
        decide.__annotations__ = {"answer": StructuredDict(self._schema)}
        output: ToolOutput[Answer] = ToolOutput(
            decide, name="decide", description="Give your answer, once.", strict=False
        )
        return Agent(
            model,
            name="supervisor",
            instructions=instructions(
                self._escalation,
                self._fence,
                turns=self._max_turns,
                patching=needs_patch(self._escalation),
            ),
            output_type=output,
            tools=[
                Tool(self.evidence.get_run_state, takes_ctx=False, strict=False),
                Tool(self.evidence.read_node_output, takes_ctx=False, strict=False),
            ],
            # Texts, wrong calls and wrong answers count apart; the turns bound them all.
            retries={"tools": self._max_turns, "output": self._max_turns},
        )

    async def _accept(self, answer: Mapping[str, Any]) -> Answer:
        problems = problems_of(answer, self._schema)
        if problems and self._is_repair(answer):
            self._reject(problems)
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise ModelRetry(
                f"This answer cannot be taken:\n{self._fence.around('problems', listed)}"
            )
        verdict = verdict_of(answer["verdict"])
        if verdict is None:
            verdict = self._repair(answer["verdict"])
        return Answer(verdict, one_line(answer["rationale"]))

    def _repair(self, verdict: Mapping[str, Any]) -> Verdict:
        """The repair, if the run would take it."""
        if "patch" in verdict:
            outputs, problems = self._reader.patched(self._escalation.id, verdict["patch"])
        else:
            outputs = verdict["outputs"]
            problems = self._reader.check(self._escalation.id, outputs)
        if problems:
            self._reject(problems)
        return Substitute(outputs)

    def _is_repair(self, answer: Mapping[str, Any]) -> bool:
        """Whether a repair was meant, and may be: its form is part of what has to fit."""
        verdict = answer.get("verdict")
        meant = verdict.get("action") if isinstance(verdict, Mapping) else None
        return meant == Action.SUBSTITUTE and meant in self._escalation.allowed_actions

    def _reject(self, problems: Sequence[str]) -> NoReturn:
        """Say what is wrong with a repair. Raises `ModelRetry`, the last time `NoAnswer`."""
        self.repairs_rejected += 1
        left = self._max_repairs - self.repairs_rejected
        if left <= 0:
            raise NoAnswer(f"{self._max_repairs} repairs did not fit, the last: {problems[0]}")
        raise ModelRetry(rejected(problems, self._fence, left=left))

    def _reason(self, error: Exception) -> str:
        """Why there is no answer, in words of ours; the provider's own where they help."""
        if isinstance(error, UsageLimitExceeded):
            return f"no answer that can be used within {self._max_turns} turns"
        return reason(error)
