"""Answers written down beforehand: demonstrations, tests, nightly jobs with known troubles.

Rules are tried in order and the first that matches answers. A rule holds one answer for good,
or several that are used up one by one; then it matches no more. Where none matches the answer
is *fail*. Rules that were never needed are named afterwards: they are often misspelt.

Read next: `rulefile.py`, which reads rules from a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nightwarden.lineage import Lineage, show
from nightwarden.runtime.answers import stopped_because
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, Verdict


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A verdict and why; without a reason the record says that it was scripted."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to answer when. A condition that is None always holds.

    `item` is the item as people name it: its 1-based number (`"4"`, `"3.1"`) or its label.
    `lineage` is the same thing as records hold it, 0-based. With `repeats` the (one) answer
    holds for good, without it the answers are used up one by one.
    """

    answers: tuple[ScriptedAnswer, ...]
    repeats: bool = True
    node: str | None = None
    item: str | None = None
    lineage: Lineage | None = None
    signature: str | None = None
    attempt: int | None = None
    error_type: str | None = None
    line: int | None = None

    def matches(self, escalation: Escalation) -> bool:
        """Whether every condition holds."""
        wanted = (self.node, self.lineage, self.signature, self.attempt, self.error_type)
        found = (
            escalation.node_id,
            escalation.lineage,
            escalation.signature,
            escalation.attempt,
            escalation.error_type,
        )
        equal = all(want is None or want == is_ for want, is_ in zip(wanted, found, strict=True))
        return equal and (self.item is None or _names(self.item, escalation))

    def __str__(self) -> str:
        """`line 12 (node fetch, item 4)`."""
        item = self.item if self.lineage is None else show(self.lineage)
        conditions = {
            "node": self.node,
            "item": item,
            "signature": self.signature,
            "attempt": self.attempt,
            "error_type": self.error_type,
        }
        said = ", ".join(f"{key} {value}" for key, value in conditions.items() if value is not None)
        place = f"line {self.line} " if self.line is not None else ""
        return f"{place}({said or 'any failure'})"


class Scripted(SupervisorBase):
    """Answers from rules; counts as an agent."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._given = [0] * len(self.rules)

    async def decide(self, escalation: Escalation) -> Decision:
        """The next answer of the first rule that matches and has one left, else *fail*."""
        for index, rule in enumerate(self.rules):
            left = rule.repeats or self._given[index] < len(rule.answers)
            if left and rule.answers and rule.matches(escalation):
                answer = rule.answers[0 if rule.repeats else self._given[index]]
                self._given[index] += 1
                return _decision(escalation, answer)
        what = f"{_place(escalation)}: {escalation.error_type}, attempt {escalation.attempt}"
        verdict = Fail(reason=stopped_because("no scripted answer", escalation))
        return _decision(escalation, ScriptedAnswer(verdict, f"no scripted answer for {what}"))

    def unused(self) -> tuple[str, ...]:
        """Rules that were never needed, and answers left over, one readable line each."""
        lines = []
        for rule, given in zip(self.rules, self._given, strict=True):
            left = len(rule.answers) - given
            if given == 0:
                lines.append(f"{rule}: never needed")
            elif not rule.repeats and left > 0:
                lines.append(f"{rule}: {left} of {len(rule.answers)} answers left over")
        return tuple(lines)


def _decision(escalation: Escalation, answer: ScriptedAnswer) -> Decision:
    verdict, reason = answer.verdict, answer.reason
    if isinstance(verdict, Fail):
        reason = reason or verdict.reason
        verdict = Fail(reason=verdict.reason or reason, apply_to=verdict.apply_to)
    return Decision(
        verdict=verdict,
        decided_by=DecidedBy.AGENT,
        rationale=reason or "scripted answer",
        escalation_id=escalation.id,
    )


def _place(escalation: Escalation) -> str:
    item = str(escalation.item) or show(escalation.lineage)
    return f"{escalation.node_id} [{item}]" if item else escalation.node_id


def _names(text: str, escalation: Escalation) -> bool:
    """Whether the text is the item's label or its number.

    Where labels are numbers themselves, only the label counts: `"4"` would else be two items.
    """
    label = escalation.item.label
    if text == label:
        return True
    return not _is_number(label) and text == show(escalation.lineage) != ""


def _is_number(label: str) -> bool:
    return label.replace(".", "").isdigit()
