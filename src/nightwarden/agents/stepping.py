"""Models for steps: what `ctx.model` gives, and what is checked before a run begins.

    ctx.model(name) ─▶ resolved: known, allowed, priced, keyed ─▶ AskedModel
    generate · stream · embed ─▶ library loaded (first time, in a thread) ─▶ purse ─▶ provider

One client a model and run. Importing this loads no library of a model provider.
Read next: `purse.py`, `turns.py`.
"""

from __future__ import annotations

import asyncio
import importlib
import math
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from nightwarden.agents.claude.starting import check_backend
from nightwarden.agents.models import Model, resolve
from nightwarden.agents.prices import BOTH_WAYS
from nightwarden.agents.purse import SharedBudget, StepPurse, Till
from nightwarden.errors import ModelError, NodeError
from nightwarden.nodes.models import MAX_TOKENS, Reply
from nightwarden.nodes.working import CLAUDE_CODE, Desk, Task, Work
from nightwarden.runtime.paying import NamedModel, Payer
from nightwarden.settings import Settings, load_settings

if TYPE_CHECKING:
    from nightwarden.agents.meter import Meter, Tally
    from nightwarden.agents.patient import Sleep
    from nightwarden.agents.turns import Question

ONE_WAY: Final = ("input",)
"""How tokens go where vectors come back."""

Protect = Callable[[str, str], None]
"""Masks a value, by name, in everything the run says from here on."""


def ways_of(named: NamedModel) -> tuple[str, ...]:
    """How tokens go between a step and its model."""
    return ONE_WAY if named.embeds else BOTH_WAYS


class StepModels:
    """The models of one run; implements `runtime.paying.Models`.

    `cap_micro_usd` is the run's budget, `outside` what was spent of it otherwise, `spent_before`
    what a node had spent before the run was resumed. `protect` masks the keys that are used.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        environ: Mapping[str, str] = os.environ,
        cap_micro_usd: int | None = None,
        outside: Callable[[], int] = int,
        spent_before: Mapping[str, int] | None = None,
        last_reservation: int = 0,
        protect: Protect | None = None,
        sleep: Sleep | None = None,
    ) -> None:
        self._settings = load_settings(environ=environ) if settings is None else settings
        self._environ = environ
        before = spent_before or {}
        run = SharedBudget(cap_micro_usd, outside=outside, last_reservation=last_reservation)
        self.till = Till(run, lambda node_id: before.get(node_id, 0))
        self.sleep = sleep
        self._protect = protect or _unmasked
        self._resolved: dict[tuple[str, tuple[str, ...]], Model] = {}
        self._built: dict[tuple[str, bool], Any] = {}
        self._building = asyncio.Lock()

    def resolve(self, name: str, ways: tuple[str, ...] = BOTH_WAYS) -> Model:
        """The model of that name. Raises `ModelError` for one that cannot be had."""
        found = self._resolved.get((name, ways))
        if found is None:
            found = resolve(name, self._settings, environ=self._environ, ways=ways)
            self._resolved[name, ways] = found
        return found

    def of(self, name: str, payer: Payer, max_cost_usd: float | None) -> AskedModel:
        """A model, paid for by one invocation. Raises `NodeError` for a limit that is none."""
        if max_cost_usd is not None and not 0 <= max_cost_usd < math.inf:
            raise NodeError(
                f"max_cost_usd is {max_cost_usd!r}, but has to be dollars, 0 or more",
                code="bad-cost",
            )
        cap = None if max_cost_usd is None else round(max_cost_usd * 1_000_000)
        own = None if cap is None else self.till.step(payer.node_id, cap)
        return AskedModel(self, name, payer, own)

    def check(self, named: Iterable[NamedModel]) -> None:
        """Raise `ModelError` for the first of these models that cannot be had."""
        for each in named:
            try:
                model = self.resolve(each.name, ways_of(each))
                if each.backend == CLAUDE_CODE:
                    check_backend(model)
            except ModelError as error:
                raise ModelError(f"{each.node_id}: {error}") from error

    async def built(self, model: Model, *, embeds: bool = False) -> Any:
        """The provider's client for a model; the library is loaded with the first."""
        self.use_key(model)
        key = (model.name, embeds)
        async with self._building:  # one client, however many calls begin at once
            if key not in self._built:
                made = await asyncio.to_thread(_build, model, embeds=embeds)
                self._built[key] = await made.__aenter__()
        return self._built[key]

    async def aclose(self) -> None:
        """Close the connections to the providers."""
        built, self._built = self._built, {}
        for client in built.values():
            await client.__aexit__(None, None, None)

    def use_key(self, model: Model) -> None:
        """Only what is used has to be masked."""
        for name, value in model.secrets.items():
            self._protect(name, value)


class AskedModel:
    """A model as one invocation asks it; implements `nodes.models.StepModel`."""

    def __init__(
        self, models: StepModels, name: str, payer: Payer, own: SharedBudget | None
    ) -> None:
        self.name = name
        self._models = models
        self._payer = payer
        self._own = own

    async def generate(
        self,
        prompt: str,
        *,
        instructions: str = "",
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
    ) -> Reply:
        """One answer, as a whole."""
        metered = await self._metered(max_tokens, stream=False)
        from nightwarden.agents.turns import ask  # noqa: PLC0415  (loaded by now)

        return await ask(
            metered, self.name, _question(prompt, instructions, max_tokens, temperature)
        )

    async def stream(
        self,
        prompt: str,
        *,
        instructions: str = "",
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
    ) -> AsyncGenerator[Reply]:
        """One answer in pieces as they come; the last one is empty."""
        metered = await self._metered(max_tokens, stream=True)
        from nightwarden.agents.turns import stream  # noqa: PLC0415  (loaded by now)

        question = _question(prompt, instructions, max_tokens, temperature)
        async with aclosing(stream(metered, self.name, question)) as pieces:
            async for piece in pieces:
                yield piece

    async def embed(
        self, texts: Sequence[str], *, dimensions: int | None = None
    ) -> list[list[float]]:
        """A vector for each text."""
        if not texts:
            return []
        model = self._models.resolve(self.name, ONE_WAY)
        built = await self._models.built(model, embeds=True)
        from nightwarden.agents.turns import embed  # noqa: PLC0415  (loaded by now)

        return await embed(
            built.model,
            self.name,
            texts,
            dimensions=dimensions,
            meter=self._meter(model, max_tokens=0, stream=False),
            sleep=self._models.sleep,
        )

    async def work(self, task: Task, desk: Desk) -> Work:
        """A piece of work with tools, turn after turn, on one meter."""
        if task.backend == CLAUDE_CODE:
            return await self._claude_code(task, desk)
        model = self._models.resolve(self.name)
        built = await self._models.built(model)
        await asyncio.to_thread(importlib.import_module, "nightwarden.agents.laboring")
        from nightwarden.agents.building import metered  # noqa: PLC0415  (loaded by now)
        from nightwarden.agents.laboring import labor  # noqa: PLC0415

        meter = self._meter(model, max_tokens=task.limits.max_tokens, stream=False)
        asked = metered(built, meter, sleep=self._models.sleep)
        return await labor(asked, task, desk, meter.tally, self._own)

    async def _claude_code(self, task: Task, desk: Desk) -> Work:
        """As `work`, by another worker; whatever models it asks, all of it is one account."""
        model = self._models.resolve(self.name)
        check_backend(model)
        await asyncio.to_thread(importlib.import_module, "nightwarden.agents.claude.working")
        from nightwarden.agents.claude.proxy import Payable  # noqa: PLC0415  (loaded by now)
        from nightwarden.agents.claude.working import labor  # noqa: PLC0415
        from nightwarden.agents.meter import Tally  # noqa: PLC0415

        tally = Tally()

        def payable(name: str) -> Payable:
            asked = model if name == model.id else self._models.resolve(f"anthropic:{name}")
            self._models.use_key(asked)
            most = task.limits.max_tokens
            return Payable(asked, self._meter(asked, max_tokens=most, stream=False, tally=tally))

        return await labor(model, task, desk, tally=tally, budget=self._own, payable=payable)

    async def _metered(self, max_tokens: int, *, stream: bool) -> Any:
        model = self._models.resolve(self.name)
        built = await self._models.built(model)
        from nightwarden.agents.building import metered  # noqa: PLC0415  (loaded by now)

        meter = self._meter(model, max_tokens=max_tokens, stream=stream)
        return metered(built, meter, sleep=self._models.sleep)

    def _meter(
        self, model: Model, *, max_tokens: int, stream: bool, tally: Tally | None = None
    ) -> Meter:
        from nightwarden.agents.meter import Meter  # noqa: PLC0415  (loaded by now)

        purse = StepPurse(
            self._models.till, self._payer, model=model.name, own=self._own, stream=stream
        )
        return Meter(
            purse,
            model.price,
            model=model.name,
            journal=self._payer,
            max_output_tokens=max_tokens,
            tally=tally,
        )


def _unmasked(name: str, value: str) -> None:
    """For calls nothing is recorded of."""


def _question(
    prompt: str, instructions: str, max_tokens: int, temperature: float | None
) -> Question:
    from nightwarden.agents.turns import Question  # noqa: PLC0415  (loaded by now)

    return Question(
        prompt=prompt,
        instructions=instructions,
        max_tokens=max_tokens,
        temperature=temperature,
    )


def _build(model: Model, *, embeds: bool) -> Any:
    """The provider's client; loads the model library, seconds the first time."""
    importlib.import_module("nightwarden.agents.turns")
    building = importlib.import_module("nightwarden.agents.building")
    return building.build_embedder(model) if embeds else building.build(model)
