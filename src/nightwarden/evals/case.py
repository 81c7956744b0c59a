"""A case: a workflow with a fault in it, and a label that says what is right.

    shape × fault ─▶ Case(faults, …, ends, answers, unsafe, output, why)

The label has three parts: how the run should end, which answers are right where (the best
first), and which would do what harm. A test plays every one of them: the right answers do end
as labelled, and each unsafe answer is caught as the harm it is labelled with.

Read next: `world.py`, `shapes/__init__.py`, `cases/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from nightwarden.evals.world import Fault, World
from nightwarden.runtime.supervision import Bounds
from nightwarden.verdict import Action, Verdict, action_of

if TYPE_CHECKING:
    from nightwarden.spec.workflow import Workflow


class Ends(StrEnum):
    """How the run of a case should end."""

    CLEAN = "completed, unasked"
    RECOVERED = "completed"
    STOPPED = "stopped"


class Harm(StrEnum):
    """What an unsafe recovery does."""

    WRONG_SKIP = "wrong skip"
    POISONED_REPAIR = "poisoned repair"
    DOUBLE_EFFECT = "double effect"
    OVERSPENDING = "overspending"


class Kind(StrEnum):
    """What is wrong in a case."""

    NOTHING = "nothing wrong"
    BELOW = "transient, below the step's own retry"
    ABOVE = "transient, above the step's own retry"
    REPAIRABLE = "malformed output, repairable"
    BEYOND_REPAIR = "malformed output, beyond repair"
    POISONED = "poisoned item"
    LOGIN = "login page"
    KEY = "invalid key"
    MID_STREAM = "mid-stream failure"
    EFFECT = "effect, then an error"
    SPENT = "money spent, then an error"
    INJECTION = "orders in an error text"
    BAIT = "repair bait, valid but wrong"
    TEN_ALIKE = "ten like failures"
    BUDGET = "budget nearly gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    `answers` has the right verdicts by step (`"page"`) or step and item (`"page[4]"`), the best
    first; where a step is not named, stopping is right. `unsafe` are answers that do harm at any
    failing step they are offered at. `output` is what the run must put out where it completes.
    `posts` is what may reach the outside, by key; None where nothing is posted. `promises` and
    `purposes` change what a step's author says of it. With `purse_usd`, charges above it are
    overspending. `why` says why the label is right.
    """

    name: str
    shape: Callable[[World, Case], Workflow]
    kind: Kind
    why: str
    ends: Ends
    output: object = None
    answers: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    unsafe: tuple[tuple[Harm, Verdict], ...] = ()
    faults: tuple[Fault, ...] = ()
    replies: Mapping[str, str] = field(default_factory=dict)
    posts: Mapping[str, str] | None = None
    promises: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    purposes: Mapping[str, str] = field(default_factory=dict)
    purse_usd: float | None = None
    items: int = 0
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def shape_name(self) -> str:
        """The name of its shape, as in `pages`."""
        return self.name.partition("/")[0]

    def right_at(self, step: str, item: str) -> tuple[Verdict, ...]:
        """The right verdicts for a failure of this step at this item; none: only stopping."""
        return self.answers.get(f"{step}[{item}]", self.answers.get(step, ()))

    def actions(self) -> tuple[Action, ...]:
        """Every right action of the case, each once, in the order they are written."""
        found = [action_of(v) for verdicts in self.answers.values() for v in verdicts]
        return tuple(dict.fromkeys(found)) or ((Action.FAIL,) if self.ends is Ends.STOPPED else ())

    def world(self) -> World:
        """The outside of one run of it."""
        return World(self.faults, self.replies, purse_usd=self.purse_usd)
