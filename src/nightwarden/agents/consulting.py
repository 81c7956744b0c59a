"""Asking a model one question at a time, for an answer of one form, out of a purse of its own.

    ask(instructions, question, schema) ─▶ library loaded (first time, in a thread)
                                           └─▶ a few turns, each reserved ─▶ Consulted

For whoever watches a run rather than decides in it: nothing of it is charged to the run. What
goes wrong is a reason in one line; what it cost is told, whatever came of it.

Importing this loads no library of a model provider. Read next: `asking.py`, `budget.py`.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nightwarden.agents.budget import BudgetRefused, TurnBudget
from nightwarden.agents.models import Model
from nightwarden.errors import ModelError, SupervisionError
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.answers import describe

if TYPE_CHECKING:
    from nightwarden.agents.meter import Meter
    from nightwarden.agents.patient import Sleep

Protect = Callable[[str, str], None]
"""Takes a secret's name and value, to be masked from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consulted:
    """What came of one question: an answer of the form that was asked for, or why there is none.

    Money in micro-dollars: what was spent since the last question was told of.
    """

    answer: Mapping[str, Any] | None = None
    why: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro_usd: int = 0


class Consultant:
    """A model that is asked now and then. `protect` is told of its key before the first question.

    `limit_s` is how long one question may take; `sleep` waits for a busy provider.
    """

    def __init__(
        self,
        model: Model,
        budget: TurnBudget,
        *,
        limit_s: float,
        max_output_tokens: int = 2000,
        protect: Protect = lambda _name, _value: None,
        sleep: Sleep | None = None,
    ) -> None:
        self.model = model
        self.budget = budget
        self._limit_s = limit_s
        self._max_output_tokens = max_output_tokens
        self._protect = protect
        self._sleep = sleep
        self._built: Any = None
        self._building = asyncio.Lock()
        self._told_micro_usd = budget.spent_micro_usd
        self._secrets = SecretRegistry()
        for name, value in model.secrets.items():
            self._secrets.register(name, value)

    async def ask(
        self, instructions: str, question: str, schema: Mapping[str, Any], *, name: str
    ) -> Consulted:
        """One question. Raises nothing but its own cancellation; `name` is the answer's."""
        for key_name, value in self.model.secrets.items():
            self._protect(key_name, value)
        meter: Meter | None = None
        try:
            async with asyncio.timeout(self._limit_s):
                meter = await self._meter()
                answer = await self._asked(meter, instructions, question, schema, name)
        except TimeoutError:
            return self._told(meter, why=f"no answer within {self._limit_s:g} s")
        except (ModelError, SupervisionError) as error:
            why = str(error) if isinstance(error, BudgetRefused) else describe(error)
            return self._told(meter, why=why)
        except Exception as error:  # whatever a provider's library raises
            return self._told(meter, why=f"asking broke off: {describe(error)}")
        return self._told(meter, answer=answer)

    def untold_micro_usd(self) -> int:
        """What a question that was cut off has cost, at worst; told only once."""
        gone = self.budget.spent_micro_usd + self.budget.outstanding_micro_usd
        untold, self._told_micro_usd = max(gone - self._told_micro_usd, 0), gone
        return untold

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        built, self._built = self._built, None
        if built is not None:
            await built.__aexit__(None, None, None)

    async def _meter(self) -> Meter:
        await asyncio.to_thread(_load)
        from nightwarden.agents.meter import Meter  # noqa: PLC0415  (loaded by now)

        return Meter(
            self.budget,
            self.model.price,
            model=self.model.name,
            max_output_tokens=self._max_output_tokens,
        )

    async def _asked(
        self, meter: Meter, instructions: str, question: str, schema: Mapping[str, Any], name: str
    ) -> Mapping[str, Any]:
        from nightwarden.agents.asking import put  # noqa: PLC0415  (loaded)
        from nightwarden.agents.building import build, metered  # noqa: PLC0415  (loaded)

        async with self._building:
            if self._built is None:
                built = await asyncio.to_thread(build, self.model)
                self._built = await built.__aenter__()
        model = metered(self._built, meter, sleep=self._sleep)
        return await put(model, instructions, question, schema, name=name)

    def _told(
        self, meter: Meter | None, *, answer: Mapping[str, Any] | None = None, why: str = ""
    ) -> Consulted:
        spent = self.budget.spent_micro_usd
        cost, self._told_micro_usd = max(spent - self._told_micro_usd, 0), spent
        return Consulted(
            answer=answer,
            why=self._secrets.mask_text(f"{self.model.name}: {why}") if why else "",
            tokens_in=meter.tally.tokens_in if meter else 0,
            tokens_out=meter.tally.tokens_out if meter else 0,
            cost_micro_usd=cost,
        )


def _load() -> None:
    """Load the model library; seconds the first time, nothing after that."""
    for name in ("building", "asking"):
        importlib.import_module(f"nightwarden.agents.{name}")
