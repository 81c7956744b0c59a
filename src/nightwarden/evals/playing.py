"""A case is played: a real run by the real engine, with its supervisor; what was seen of it.

On virtual time a minute of deciding costs nothing. A model is reached through real sockets, so
its runs have a real loop, and a store of their own: what a model may look up is read from there.

Read next: `scoring.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nightwarden.evals.case import Case
from nightwarden.lineage import show
from nightwarden.result import RunResult
from nightwarden.runtime.supervision import Supervisor
from nightwarden.session import Session, run_session
from nightwarden.testing.executor import InlineExecutor
from nightwarden.testing.runs import play
from nightwarden.verdict import (
    DecidedBy,
    Decision,
    Escalation,
    Intervention,
    OutcomeKind,
    Substitute,
    Verdict,
)

SEED = 1
"""Runs of a case differ in what was decided and in nothing else."""

_APPLIED = (OutcomeKind.REPAIR_ACCEPTED, OutcomeKind.SKIPPED, OutcomeKind.ENDED_EARLY)


@dataclass(frozen=True, slots=True)
class Asked:
    """One failure, what was answered, and whether that was then done.

    `answered` is the supervisor's own verdict, also where it was refused. A sticky answer was
    given for an earlier failure and is none of its own.
    """

    escalation: Escalation
    decision: Decision
    applied: bool

    @property
    def step(self) -> str:
        """The step that failed."""
        return self.escalation.node_id

    @property
    def item(self) -> str:
        """The item it failed for, 1-based; empty at the run's own scope."""
        return show(self.escalation.lineage)

    @property
    def answered(self) -> Verdict:
        """What the supervisor said."""
        return self.decision.asked_for or self.decision.verdict

    @property
    def refused(self) -> bool:
        """Whether it was not allowed."""
        return self.decision.asked_for is not None

    @property
    def own(self) -> bool:
        """Whether it was asked about: not what a stopping run closed, nor what stuck before."""
        return self.decision.decided_by not in (DecidedBy.STICKY, DecidedBy.DEFAULT)

    @property
    def by_bounds(self) -> bool:
        """Whether there was no answer, or none that could be used."""
        return self.decision.decided_by is DecidedBy.BOUNDS

    @property
    def repaired(self) -> bool:
        """Whether a value was put in the place of another."""
        return self.applied and isinstance(self.decision.verdict, Substitute)

    @property
    def gave_up(self) -> bool:
        """Whether an item, or the rest of a stream, was given up."""
        return self.applied and not self.repaired


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a case after its run; money in micro-dollars."""

    completed: bool
    reason: str
    output: object
    posts: tuple[tuple[str, str], ...]
    charged_micro_usd: int
    purse_micro_usd: int | None
    asked: tuple[Asked, ...]


def played(case: Case, supervisor: Supervisor, *, waits: bool = False) -> Seen:
    """Play a case; with `waits` on a real loop, for a supervisor that needs one."""
    world = case.world()
    with tempfile.TemporaryDirectory(prefix="nightwarden-eval-") as folder:
        session = Session(
            case.shape(world, case),
            supervise=supervisor,
            bounds=case.bounds,
            executor=InlineExecutor(),
            seed=SEED,
            workdir=Path(folder),
            store=Path(folder) / "record" if waits else None,
        )
        result = run_session(session) if waits else play(session).result
    return Seen(
        completed=result.ok,
        reason=result.reason,
        output=_output(result),
        posts=tuple(world.posts),
        charged_micro_usd=world.charged_micro_usd,
        purse_micro_usd=world.purse_micro_usd,
        asked=_asked(result.interventions),
    )


def _output(result: RunResult) -> object:
    """The one thing a case puts out; None where it is not there."""
    value = result.outputs.get("result")
    return None if isinstance(value, dict) and "absent" in value else value


def _asked(interventions: Sequence[Intervention]) -> tuple[Asked, ...]:
    found = []
    for each in interventions:
        if each.decision is not None:
            kind = None if each.outcome is None else each.outcome.kind
            found.append(Asked(each.escalation, each.decision, kind in _APPLIED))
    return tuple(found)
