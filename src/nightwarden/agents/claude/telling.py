"""What Claude Code does, as the events of agents: the same ones, in the same order, as our own.

    Step ─▶ llm_step_finished, assistant_text, tool_started …   Answered ─▶ tool_called, tool_error

A step costs what was booked since the one before: usage is counted where it is paid, once. The tool
a judge answers by is told only where it is refused.

Read next: `saying.py`, `working.py`.
"""

from __future__ import annotations

import time

from nightwarden.agents.claude.saying import ANSWER, Answered, Called, Late, Said, Step
from nightwarden.agents.meter import Tally
from nightwarden.agents.standing import Standing
from nightwarden.agents.tools import shortened
from nightwarden.events.agent import (
    AssistantText,
    LlmStepFinished,
    ToolCalled,
    ToolFailed,
    ToolStarted,
)
from nightwarden.nodes.working import Desk, Task


class Telling:
    """The account of one piece of work; `tally` counts what was paid for it."""

    def __init__(self, task: Task, desk: Desk, tally: Tally, standing: Standing) -> None:
        self.turns = 0
        self.answering = False
        """The last answer is the judge's, as far as is known."""
        self._task = task
        self._desk = desk
        self._tally = tally
        self._standing = standing
        self._told = Tally()
        self._begun: dict[str, tuple[Called, float]] = {}

    def take(self, said: Said) -> None:
        """Tell it, if there is something to tell."""
        match said:
            case Step():
                self._step(said)
            case Late():
                self._started(said.call)
            case Answered():
                self._answered(said)

    def _step(self, step: Step) -> None:
        self.turns += 1
        self._desk.mailbox.stepped()
        self._desk.tell(self._finished(step))
        if step.text:
            self._desk.tell(AssistantText(text=step.text))
        self._standing.step(self.turns)
        self.answering = any(call.tool == ANSWER for call in step.calls)
        for call in step.calls:
            self._started(call)

    def _finished(self, step: Step) -> LlmStepFinished:
        now, before = self._tally, self._told
        self._told = Tally(now.turns, now.cost_micro_usd, now.tokens_in, now.tokens_out)
        return LlmStepFinished(
            step=self.turns,
            text=step.text,
            tool_calls=len(step.calls),
            model=self._task.model,
            input_tokens=now.tokens_in - before.tokens_in,
            output_tokens=now.tokens_out - before.tokens_out,
            cost_micro_usd=now.cost_micro_usd - before.cost_micro_usd,
        )

    def _started(self, call: Called) -> None:
        self._begun[call.use_id] = (call, time.monotonic())
        if call.tool != ANSWER:
            tool, use_id = call.tool, call.use_id
            self._desk.tell(ToolStarted(tool=tool, tool_use_id=use_id, input=call.input))

    def _answered(self, said: Answered) -> None:
        begun = self._begun.pop(said.use_id, None)
        if begun is None:
            return
        call, at = begun
        self.answering &= not (said.failed and call.tool == ANSWER)
        text = shortened(self._desk.mask(said.text), self._task.limits.max_output_chars)
        event: ToolCalled | ToolFailed
        if said.failed:
            event = ToolFailed(
                tool=call.tool, tool_use_id=call.use_id, input=call.input, error=text
            )
        elif call.tool != ANSWER:
            event = ToolCalled(
                tool=call.tool, tool_use_id=call.use_id, input=call.input, output=text
            )
        else:
            return
        event.duration_s = time.monotonic() - at
        self._desk.tell(event)
