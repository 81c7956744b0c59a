"""An evaluator that asks a model: one look, one question, within a purse of its own.

    Snapshot ─▶ instructions, question (fenced) ─▶ Consultant ─▶ Advice, and what it cost

Nothing of it is charged to the run that is watched. Whatever goes wrong is an answer without
advice. Loads no library of a model provider before the first look.

Read next: `prompt.py`, `agents/consulting.py`, `choosing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.consulting import Consultant, Consulted, Protect
from nightwarden.agents.fencing import Fence
from nightwarden.agents.models import Model
from nightwarden.settings import Settings, load_settings
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.spec.workflow import Workflow
from nightwarden.steering.choosing import choose, running_on
from nightwarden.steering.ports import Answer, Snapshot, advice_of
from nightwarden.steering.prompt import advice_schema, instructions, question
from nightwarden.steering.thinking import EVALUATION_S

ASKING_S: Final = EVALUATION_S - 1.0
"""A look that takes its whole time still tells what it cost."""
MAX_OUTPUT_TOKENS: Final = 2000
_ANSWER: Final = "advise"


class ModelEvaluator:
    """Implements `ports.Evaluator`. One for each supervisor, for as long as it watches."""

    def __init__(self, consultant: Consultant) -> None:
        self._consultant = consultant
        self._model = consultant.model.name
        self._schema = advice_schema()

    async def evaluate(self, snapshot: Snapshot) -> Answer:
        """Look once."""
        fence = Fence()
        found = await self._consultant.ask(
            instructions(snapshot.policy, fence),
            question(snapshot, fence),
            self._schema,
            name=_ANSWER,
        )
        return self._answer(found)

    def untold_micro_usd(self) -> int:
        """What a look that was cut off has cost, at worst; told only once."""
        return self._consultant.untold_micro_usd()

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._consultant.aclose()

    def _answer(self, found: Consulted) -> Answer:
        advice, why = None, found.why
        if found.answer is not None:
            try:
                advice = advice_of(found.answer)
            except ValueError as error:
                why = f"{self._model}: {error}"
        return Answer(
            advice=advice,
            detail=why,
            model=self._model,
            input_tokens=found.tokens_in,
            output_tokens=found.tokens_out,
            cost_micro_usd=found.cost_micro_usd,
        )


def evaluator_for(
    spec: SupervisorSpec,
    model: Model,
    *,
    spent_micro_usd: int = 0,
    protect: Protect = lambda _name, _value: None,
) -> ModelEvaluator:
    """The evaluator of a supervisor. `spent_micro_usd` is what it has spent before."""
    cap = None if spec.cost_cap_usd is None else round(spec.cost_cap_usd * 1_000_000)
    budget = TurnBudget(cap, name=f"steering {spec.name}".strip())
    budget.spent_micro_usd = spent_micro_usd
    consultant = Consultant(
        model,
        budget,
        limit_s=ASKING_S,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        protect=protect,
    )
    return ModelEvaluator(consultant)


def evaluators_of(
    workflow: Workflow,
    spent: Mapping[str, int],
    *,
    inputs: Mapping[str, object],
    protect: Protect,
    settings: Settings | None = None,
) -> Callable[[SupervisorSpec], ModelEvaluator]:
    """What makes the evaluators of a workflow's supervisors. It raises `ModelError`.

    Without settings, those of the working directory and the environment hold.
    """

    def make(spec: SupervisorSpec) -> ModelEvaluator:
        known = load_settings() if settings is None else settings
        model = choose(spec, known, running_on(workflow, spec, inputs), inputs=inputs)
        return evaluator_for(spec, model, spent_micro_usd=spent.get(spec.name, 0), protect=protect)

    return make
