"""A person at the terminal decides.

Shows the escalation, offers the allowed verbs and no others, and asks why. A repaired value is
checked while the person is still there: what is wrong with it is said, and asked again. The end
of the input (Ctrl-D) is no answer, and then the run fails; so it does when the time is over.

Read next: `terminal.py`, `repairing.py`, `card.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TextIO

from nightwarden.errors import SupervisionError
from nightwarden.events.words import visible
from nightwarden.runtime.answers import stopped_because
from nightwarden.runtime.supervision import RunReader, SupervisorBase
from nightwarden.runtime.supervisors.card import card, effect_of
from nightwarden.runtime.supervisors.repairing import (
    NotTaken,
    draft_of,
    edited,
    outputs_from,
    read_value,
)
from nightwarden.runtime.supervisors.terminal import Terminal
from nightwarden.runtime.supervisors.verbs import WORDS, action_named
from nightwarden.verdict import (
    Action,
    ApplyTo,
    DecidedBy,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

LETTERS: Final[Mapping[str, Action]] = {
    "r": Action.RETRY,
    "p": Action.SUBSTITUTE,
    "s": Action.SKIP,
    "e": Action.END_STREAM,
    "x": Action.FAIL,
}
_YES: Final = ("y", "yes")
_BACK: Final = "back"


class Operator(SupervisorBase):
    """Asks on `sink`, reads answers from `source`.

    `editor` is the command that opens a file. `aside` is entered while a question stands, for
    what else draws on the terminal to step back.
    """

    human = True

    def __init__(
        self,
        source: TextIO,
        sink: TextIO,
        *,
        editor: str = "",
        aside: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._terminal = Terminal(source, sink)
        self._editor = editor
        self._aside = aside
        self._reader: RunReader | None = None

    def attach(self, reader: RunReader) -> None:
        """Keep the run at hand, to check repairs against it."""
        self._reader = reader

    async def decide(self, escalation: Escalation) -> Decision:
        """What the person answers. Raises `SupervisionError` when there is no answer."""
        with self._aside():
            self._terminal.forget_typed_ahead()
            for line in card(escalation):
                self._terminal.say(line)
            try:
                verdict, reason = await self._verdict(escalation)
            except asyncio.CancelledError:
                self._terminal.say("\n   no longer asked: the time is over, or the run is stopping")
                raise
        return Decision(
            verdict=verdict,
            decided_by=DecidedBy.OPERATOR,
            rationale=reason or "the operator gave no reason",
            escalation_id=escalation.id,
        )

    async def _verdict(self, escalation: Escalation) -> tuple[Verdict, str]:
        self._offer(escalation)
        while True:
            match await self._action(escalation):
                case Action.RETRY:
                    return Retry(), await self._reason()
                case Action.END_STREAM:
                    return EndStream(), await self._reason()
                case Action.SKIP:
                    return Skip(apply_to=await self._extent(escalation)), await self._reason()
                case Action.FAIL:
                    return await self._stop(escalation)
                case Action.SUBSTITUTE:
                    outputs = await self._repair(escalation)
                    if outputs is not None:
                        return Substitute(outputs), await self._reason()

    def _offer(self, escalation: Escalation) -> None:
        for letter, action in LETTERS.items():
            if action in escalation.allowed_actions:
                effect = effect_of(action, escalation)
                self._terminal.say(f"   [{letter}] {WORDS[action]:<10} {effect}")

    async def _action(self, escalation: Escalation) -> Action:
        """The verb, by letter or word; asked again until it is one that is offered."""
        offered = [a for a in LETTERS.values() if a in escalation.allowed_actions]
        words = ", ".join(WORDS[action] for action in offered)
        while True:
            word = (await self._line("   answer> ")).lower()
            action = LETTERS.get(word) or action_named(word)
            if action in offered:
                return action
            if word:
                said = "is not offered here" if action else "is no answer"
                self._terminal.say(f"   {visible(word)} {said}; choose one of: {words}")

    async def _stop(self, escalation: Escalation) -> tuple[Verdict, str]:
        reason = await self._reason()
        summary = reason or stopped_because("the operator ended the run", escalation)
        return Fail(reason=summary), reason

    async def _extent(self, escalation: Escalation) -> ApplyTo:
        """Whether all failures like this one are to be skipped; only asked where it can be."""
        if escalation.signature is None:
            return ApplyTo.INVOCATION
        like = visible(f"every {escalation.signature} of {escalation.node_id}")
        answer = await self._line(f"   skip {like} from now on, too? [y/N]> ")
        return ApplyTo.SIGNATURE if answer.lower() in _YES else ApplyTo.INVOCATION

    async def _reason(self) -> str:
        return visible(await self._line("   why?> "))

    async def _repair(self, escalation: Escalation) -> Mapping[str, object] | None:
        """Outputs that pass the run's own check; None when the person chooses another verb."""
        slots = list(escalation.declared_outputs)
        self._explain(slots)
        draft = draft_of(escalation)
        while True:
            given = await self._line("   value> ")
            if given.lower() == _BACK:
                return None
            try:
                draft = await self._value(given, draft)
                outputs = outputs_from(draft, slots)
            except NotTaken as error:
                self._terminal.say(f"   {visible(str(error))}")
                continue
            problems = self._problems(escalation, outputs)
            if not problems:
                return outputs
            for problem in problems:
                self._terminal.say(f"   {visible(problem)}")

    def _explain(self, slots: Sequence[str]) -> None:
        opens = f"Enter opens {self._editor}, " if self._editor else ""
        alone = ", or the value alone" if len(slots) == 1 else ""
        shape = f"an object with {', '.join(slots)}{alone}"
        text = f"{opens}@FILE takes a file, or write JSON: {shape}; {_BACK} chooses again"
        self._terminal.say(f"   {visible(text)}")

    async def _value(self, given: str, draft: str) -> str:
        """The JSON text meant by what was typed; an editor goes on from the last draft."""
        if not given:
            return await edited(self._editor, draft, self._terminal)
        if given.startswith("@"):
            return read_value(given[1:].strip())
        return given

    def _problems(self, escalation: Escalation, outputs: Mapping[str, object]) -> Sequence[str]:
        return [] if self._reader is None else self._reader.check(escalation.id, outputs)

    async def _line(self, prompt: str) -> str:
        line = await self._terminal.ask(prompt)
        if line is None:
            self._terminal.say()
            raise SupervisionError("no answer at the terminal (end of input)")
        return line.strip()
