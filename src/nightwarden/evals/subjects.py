"""Who is evaluated, and the evaluation: every case, one after the other, within a sum of money.

    model      asked through real sockets, on a real loop; costs money
    answers    what was recorded of a model, on virtual time
    baseline   a few lines of code, on virtual time

Nothing of the model side is imported unless a model is named.

Read next: `scoring.py`, `telling.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from nightwarden.errors import RunError
from nightwarden.evals.answers import Recorded, read_answers
from nightwarden.evals.baselines import BASELINES
from nightwarden.evals.case import Case
from nightwarden.evals.playing import played
from nightwarden.evals.scoring import Score, score
from nightwarden.events.words import dollars
from nightwarden.runtime.supervision import Supervisor
from nightwarden.spec.findings import suggestion

if TYPE_CHECKING:
    from nightwarden.agents.models import Model
    from nightwarden.settings import Settings

OpenFor = Callable[[Case, int], Supervisor]
"""A supervisor for one case, that may spend so many micro-dollars."""


@dataclass(slots=True)
class Subject:
    """Who is evaluated. `unanswered` names the failures a record had no answer for, by case."""

    name: str
    open_for: OpenFor
    waits: bool = False
    unanswered: list[str] = field(default_factory=list)


class MoneyGone(RunError):
    """The evaluation has cost what it may, before all cases were played."""


def baseline(name: str) -> Subject:
    """A baseline by its name. Raises `RunError` for a name there is none of."""
    make = BASELINES.get(name)
    if make is None:
        raise RunError(
            f"there is no baseline {name!r}; {suggestion(name, BASELINES, what='baselines')}"
        )
    return Subject(f"baseline:{name}", lambda _case, _left: make())


def recorded(name: str) -> Subject:
    """The answers of a file, or `reference`. Raises `BadAnswers`, and `OSError`."""
    known = read_answers(name)
    title = f"answers:{name} ({known.answered_by})"
    return Subject(title, lambda case, _left: Recorded(known.cases.get(case.name, ())))


def model(name: str, settings: Settings | None = None) -> Subject:
    """A model; without a name, the workspace's. Raises `ModelError` with what is wrong with it."""
    from nightwarden.agents.opening import supervising_model  # noqa: PLC0415  (only if named)

    chosen = supervising_model(name, settings)
    return Subject(chosen.name, partial(_adjudicator, chosen), waits=True)


def evaluate(
    subject: Subject, cases: Iterable[Case], *, max_cost_micro_usd: int
) -> Iterator[Score]:
    """Play the cases and score them, as they come. Raises `MoneyGone` at a case too many."""
    spent = 0
    for case in cases:
        left = max_cost_micro_usd - spent
        supervisor = subject.open_for(case, left)
        found = score(case, played(case, supervisor, waits=subject.waits))
        spent += found.cost_micro_usd
        if subject.waits and left < case.bounds.cost_cap_micro_usd and (why := _unpaid(found)):
            raise MoneyGone(
                f"the evaluation has cost {dollars(spent)} of {dollars(max_cost_micro_usd)}, and "
                f"{case.name} ({why}) and what follows are not scored; allow more with --max-cost"
            )
        if isinstance(supervisor, Recorded):
            subject.unanswered += [f"{case.name} ({step})" for step in supervisor.missing]
        yield found


def _unpaid(found: Score) -> str:
    """Why a model was not asked, or gave no answer, at no cost; empty where none was."""
    lost = [a.decision for a in found.decisions if a.by_bounds and not a.decision.cost_micro_usd]
    return next((decision.rationale for decision in lost if decision.model), "")


def _adjudicator(chosen: Model, case: Case, left: int) -> Supervisor:
    from nightwarden.agents.adjudicator import Adjudicator  # noqa: PLC0415  (only if named)

    return Adjudicator(chosen, cap_micro_usd=max(0, min(case.bounds.cost_cap_micro_usd, left)))
