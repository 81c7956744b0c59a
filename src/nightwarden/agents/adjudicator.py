"""The supervisor that asks a model: inside a budget, with few turns, and never with a free hand.

    decide ─▶ library loaded (first time, in a thread) ─▶ one conversation ─▶ Decision

What it answers was checked already: form, verb, and a repair's values. What goes wrong is *fail*
by the bounds, with the reason; what it cost is part of the decision, whatever came of it. A
decision that is cut (cancelled, out of time) closes the request's socket; if money was spent by
then, what comes back is a *fail* that carries the cost, else the cancellation itself.

Importing this loads no library of a model provider. Read next: `conversation.py`.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from nightwarden.agents.budget import BudgetRefused, NoJournal, TurnBudget
from nightwarden.agents.evidence import evidence_for
from nightwarden.agents.fencing import Fence
from nightwarden.agents.models import Model
from nightwarden.errors import ModelError, SupervisionError
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.answers import describe, failed
from nightwarden.runtime.supervision import RunEvidence, RunReader, SupervisorBase
from nightwarden.verdict import Decision, Escalation

if TYPE_CHECKING:
    from nightwarden.agents.conversation import Answer, Conversation
    from nightwarden.agents.meter import Meter, Tally
    from nightwarden.agents.patient import Sleep

BUDGET: Final = "supervisor"
"""Whose money it is, in the record."""


class Adjudicator(SupervisorBase):
    """Asks a model what becomes of each failure; one conversation a decision.

    `cap_micro_usd` bounds what all its decisions cost together. `sleep` is what waits for a busy
    provider.
    """

    def __init__(
        self,
        model: Model,
        *,
        cap_micro_usd: int = 500_000,
        max_output_tokens: int = 2048,
        sleep: Sleep | None = None,
    ) -> None:
        self.model = model
        self.budget = TurnBudget(cap_micro_usd, name=BUDGET)
        self._max_output_tokens = max_output_tokens
        self._sleep = sleep
        self._reader: RunReader | None = None
        self._built: Any = None
        self._building = asyncio.Lock()
        self._secrets = SecretRegistry()
        for name, value in model.secrets.items():
            self._secrets.register(name, value)

    def attach(self, reader: RunReader) -> None:
        """Keep the run at hand; what was spent before a resume counts."""
        self._reader = reader
        if isinstance(reader, RunEvidence):
            self.budget.restore(reader.budget())

    async def decide(self, escalation: Escalation) -> Decision:
        """What the model answers, or *fail* by the bounds with the reason."""
        self._protect_keys()
        meter = await self._meter(escalation)
        talk = self._conversation(escalation)
        try:
            answer = await self._hold(talk, meter)
        except (ModelError, SupervisionError) as error:
            why = str(error) if isinstance(error, BudgetRefused) else describe(error)
            decision = failed(escalation, self._secrets.mask_text(f"{self.model.name}: {why}"))
        except Exception as error:  # whatever a provider's library raises; what it cost is kept
            why = f"{self.model.name}: asking broke off: {describe(error)}"
            decision = failed(escalation, self._secrets.mask_text(why))
        except asyncio.CancelledError:
            if not meter.tally.cost_micro_usd:
                raise
            decision = failed(escalation, f"{self.model.name}: cut off while deciding")
        else:
            decision = _decided(escalation, answer)
        return self._accounted(decision, meter.tally, talk.evidence.digest_hash)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        built, self._built = self._built, None
        if built is not None:
            await built.__aexit__(None, None, None)

    def _protect_keys(self) -> None:
        """Only who asks has a key in use: a run that asks nobody is not slowed by masking it."""
        if isinstance(self._reader, RunEvidence):
            for name, value in self.model.secrets.items():
                self._reader.protect(name, value)

    async def _meter(self, escalation: Escalation) -> Meter:
        await asyncio.to_thread(_load)
        from nightwarden.agents.meter import Meter  # noqa: PLC0415  (loaded by now)

        reader = self._reader
        return Meter(
            self.budget,
            self.model.price,
            model=self.model.name,
            journal=reader if isinstance(reader, RunEvidence) else NoJournal(),
            max_output_tokens=self._max_output_tokens,
            escalation_id=escalation.id,
        )

    def _conversation(self, escalation: Escalation) -> Conversation:
        from nightwarden.agents.conversation import Conversation  # noqa: PLC0415  (loaded)

        return Conversation(escalation, evidence_for(escalation, self._reader), Fence())

    async def _hold(self, talk: Conversation, meter: Meter) -> Answer:
        from nightwarden.agents.building import build, metered  # noqa: PLC0415  (loaded)

        async with self._building:  # one client, however many decisions begin at once
            if self._built is None:
                built = await asyncio.to_thread(build, self.model)
                self._built = await built.__aenter__()
        return await talk.hold(metered(self._built, meter, sleep=self._sleep))

    def _accounted(self, decision: Decision, tally: Tally, digest_hash: str) -> Decision:
        return msgspec.structs.replace(
            decision,
            cost_micro_usd=tally.cost_micro_usd,
            tokens_in=tally.tokens_in,
            tokens_out=tally.tokens_out,
            model=self.model.name,
            digest_hash=digest_hash,
        )


def _load() -> None:
    """Load the model library; seconds the first time, nothing after that."""
    for name in ("building", "conversation"):
        importlib.import_module(f"nightwarden.agents.{name}")


def _decided(escalation: Escalation, answer: Answer) -> Decision:
    return Decision(verdict=answer.verdict, rationale=answer.rationale, escalation_id=escalation.id)
