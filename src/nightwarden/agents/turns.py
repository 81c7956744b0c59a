"""One question of a step to a model: as a whole, as a stream, or for vectors.

Whatever goes wrong is a `ModelTrouble` with a code, or the purse's own refusal. Questions for
answers go through `MeteredModel`; those for vectors reserve here, and wait for a busy provider.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `building.py`, `metering.py`, `trouble.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.embeddings.base import EmbeddingModel
from pydantic_ai.embeddings.result import EmbeddingResult
from pydantic_ai.embeddings.settings import EmbeddingSettings
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.settings import ModelSettings

from nightwarden.agents.meter import Meter
from nightwarden.agents.metering import was_refused
from nightwarden.agents.patient import TRIES, Sleep, wait_before_retry
from nightwarden.agents.prices import Usage
from nightwarden.agents.trouble import ModelTrouble, trouble
from nightwarden.events.budget import Booking
from nightwarden.nodes.models import Reply

UNSEEN_TOKENS: Final = 64
"""What a provider may add to a text it makes a vector of, at most."""

_WRONG: Final = (AgentRunError, ModelAPIError, UserError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked."""

    prompt: str
    instructions: str = ""
    max_tokens: int
    temperature: float | None = None

    def messages(self) -> list[ModelMessage]:
        """The conversation: it begins and ends here."""
        parts = [UserPromptPart(self.prompt)]
        return [ModelRequest(parts=parts, instructions=self.instructions or None)]

    def settings(self) -> ModelSettings:
        """How it is asked."""
        found = ModelSettings(max_tokens=self.max_tokens)
        if self.temperature is not None:
            found["temperature"] = self.temperature
        return found


async def ask(model: ProviderModel, name: str, question: Question) -> Reply:
    """The answer. Raises `ModelTrouble` where there is none, and what the purse raises."""
    settings = question.settings()
    try:
        response = await model_request(model, question.messages(), model_settings=settings)
    except _WRONG as error:
        raise trouble(name, error) from error
    return Reply(response.text or "", _complete(name, response))


async def stream(model: ProviderModel, name: str, question: Question) -> AsyncGenerator[Reply]:
    """The answer in pieces as they come; the last one is empty and says if it is complete."""
    settings = question.settings()
    try:
        async with model_request_stream(
            model, question.messages(), model_settings=settings
        ) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        yield Reply(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                        yield Reply(text)
            response = events.get()
    except _WRONG as error:
        raise trouble(name, error) from error
    yield Reply("", _complete(name, response))


async def embed(
    model: EmbeddingModel,
    name: str,
    texts: Sequence[str],
    *,
    dimensions: int | None,
    meter: Meter,
    sleep: Sleep | None = None,
) -> list[list[float]]:
    """A vector for each text. Raises `ModelTrouble`, and what the purse raises."""
    settings = (
        EmbeddingSettings() if dimensions is None else EmbeddingSettings(dimensions=dimensions)
    )
    failed = 0
    while True:
        try:
            found = await _metered(model, texts, settings, meter)
            break
        except _WRONG as error:
            failed += 1
            wait_s = wait_before_retry(error, failed, 1.0)
            if wait_s is None or failed >= TRIES:
                raise trouble(name, error) from error
        await (sleep or asyncio.sleep)(wait_s)
    if len(found.embeddings) != len(texts):
        raise ModelTrouble(
            f"{name}: {len(texts)} vectors were asked for, {len(found.embeddings)} came",
            code="model:unreadable",
        )
    return [list(vector) for vector in found.embeddings]


async def _metered(
    model: EmbeddingModel, texts: Sequence[str], settings: EmbeddingSettings, meter: Meter
) -> EmbeddingResult:
    """One request, its worst case reserved before: a token is at least a byte."""
    turn = await meter.reserve(sum(len(text.encode()) + UNSEEN_TOKENS for text in texts))
    try:
        found = await model.embed(list(texts), input_type="document", settings=settings)
    except BaseException as error:
        meter.book(turn, Booking.REFUSED if was_refused(error) else Booking.WORST)
        raise
    used = found.usage.input_tokens
    meter.book(turn, Booking.ACTUAL, Usage(tokens_in=used, tokens_out=0) if used > 0 else None)
    return found


def _complete(name: str, response: ModelResponse) -> bool:
    """Whether the answer came to its end, not to its limit. Raises `ModelTrouble` for neither."""
    if response.finish_reason == "content_filter":
        raise ModelTrouble(f"{name}: the provider's filter refused to answer", code="model:refused")
    if response.state != "complete":
        raise ModelTrouble(f"{name}: the answer broke off before its end", code="model:lost")
    return response.finish_reason != "length"
