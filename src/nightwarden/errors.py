"""What can go wrong, by who must act.

    SpecError         the author of the workflow: every problem at once
    NodeError         the author of a step; RecoverableError carries a repairable value
    RunError          whoever started the run
    SupervisionError  nobody: it never propagates, the decision becomes *fail*
    ModelError        whoever set up the model
    StoreError        whoever owns the disk
    KernelBug         us; it carries the story of the lineage

`Suspended` is no failure: a step asked for the run to pause.

Every message names the thing, what was expected and found, and the next step.

Read next: `ids.py`, `verdict.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class NightwardenError(Exception):
    """Base of all errors a caller may want to catch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a workflow file: where, which rule, and what to do.

    `severity` is `"error"` or `"warning"`; `line` is 1-based, None where unknown.
    """

    message: str
    rule: str
    remedy: str = ""
    file: str = ""
    line: int | None = None
    node: str = ""
    slot: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "")
        what = ".".join(part for part in (self.node, self.slot) if part)
        head = ": ".join(part for part in (place, what) if part)
        text = f"{head}: {self.message}" if head else self.message
        remedy = f" — {self.remedy}" if self.remedy else ""
        return f"{text} [{self.rule}]{remedy}"


class SpecError(NightwardenError):
    """A workflow that cannot run; `problems` holds all that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class NodeError(NightwardenError):
    """A step failed for a reason it can name.

    `code` is a stable, categorical word (`"no-main"`); with it, like failures can share one answer.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        self.code = code
        super().__init__(message)


class RecoverableError(NodeError):
    """A step failed but holds something repairable: `candidate_output` is the broken value.

    Without a candidate nothing can be repaired, only retried, skipped or stopped.
    """

    def __init__(
        self, message: str, *, candidate_output: object = None, code: str | None = None
    ) -> None:
        self.candidate_output = candidate_output
        super().__init__(message, code=code)


class OutOfMoney(NodeError):
    """The run's budget does not cover what a step was about to ask of a model: the run stops.

    Nobody is asked what to do about it; a larger budget is for whoever resumes the run.
    """


class RunError(NightwardenError):
    """A run could not be started or continued."""


class SupervisionError(NightwardenError):
    """A supervisor could not answer; it never leaves the runtime."""


class ModelError(NightwardenError):
    """A model is missing, unpriced, not allowed, or did not answer."""


class StoreError(NightwardenError):
    """The record could not be written or read."""


class Suspended(NightwardenError):
    """A step asks for the run to pause; no failure. `state` is kept for whoever resumes."""

    def __init__(self, reason: str, *, state: object = None) -> None:
        self.reason = reason
        self.state = state
        super().__init__(reason)


class KernelBug(AssertionError):
    """A law of the engine does not hold: our fault. `story` tells how it came about."""

    def __init__(self, message: str, *, story: Sequence[str] = ()) -> None:
        self.story = tuple(story)
        super().__init__("\n  ".join([message, *self.story]))
