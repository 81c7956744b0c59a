"""Supervisors that need no model, so that a model's number means something.

    stop    stops every run: no harm, nothing recovered
    rules   what a careful person writes down without seeing the failure: retry what looks
            passing, stop for keys, keep what a stream put out, unwrap a value that is only
            wrapped, skip an item the step itself found wanting

Both are asked like a model is, and bounded like one.

Read next: `answers.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from nightwarden.runtime.supervision import RunReader, Supervisor, SupervisorBase
from nightwarden.verdict import (
    Action,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

_PASSING: Final = re.compile(r"timeout|connect|errno:\d+|http:(408|429|5\d\d)")
_KEYS: Final = ("http:401", "http:403", "http:402")
_FENCE: Final = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)


class AlwaysStop(SupervisorBase):
    """Stops, whatever failed."""

    async def decide(self, escalation: Escalation) -> Decision:
        """*Fail*."""
        return _decision(escalation, Fail(reason=escalation.detail), "the rule is to stop")


class RuleSet(SupervisorBase):
    """A few rules over signature, allowed verbs and the broken value; no word is read."""

    def __init__(self) -> None:
        self._reader: RunReader | None = None

    def attach(self, reader: RunReader) -> None:
        """A repair is checked before it is answered."""
        self._reader = reader

    async def decide(self, escalation: Escalation) -> Decision:
        """The first rule that fits."""
        verdict, why = self._rule(escalation)
        return _decision(escalation, verdict, why)

    def _rule(self, e: Escalation) -> tuple[Verdict, str]:
        allowed, signature = e.allowed_actions, e.signature or ""
        if signature in _KEYS:
            return Fail(reason=e.detail), "a key or a right is missing: more calls do not help"
        if Action.RETRY in allowed and _PASSING.fullmatch(signature):
            return Retry(), "it may pass by itself"
        if Action.SUBSTITUTE in allowed and (outputs := self._unwrapped(e)):
            return Substitute(outputs), "the value was right but for what it was wrapped in"
        if Action.END_STREAM in allowed:
            return EndStream(), "what it has put out is kept"
        if Action.SKIP in allowed and e.lineage and signature.startswith("node:"):
            return Skip(), "the step itself finds the item wanting"
        return Fail(reason=e.detail), "no rule fits"

    def _unwrapped(self, e: Escalation) -> Mapping[str, object] | None:
        """The value in a code fence, if that is all that was wrong with it."""
        text, slots = e.candidate_output, tuple(e.declared_outputs)
        match = _FENCE.fullmatch(text) if isinstance(text, str) else None
        if match is None or len(slots) != 1 or self._reader is None:
            return None
        try:
            outputs = {slots[0]: json.loads(match[1])}
        except ValueError:
            return None
        return None if self._reader.check(e.id, outputs) else outputs


BASELINES: Final[Mapping[str, Callable[[], Supervisor]]] = {"stop": AlwaysStop, "rules": RuleSet}
"""The baselines by name."""


def _decision(escalation: Escalation, verdict: Verdict, why: str) -> Decision:
    return Decision(verdict=verdict, rationale=why, escalation_id=escalation.id)
