"""From a resolved model to one that can be asked: the provider's client, metered and patient.

    PatientModel ─▶ MeteredModel ─▶ the provider's model (never repeats on its own)

There is no provider code of our own: protocols, streams and errors are the model library's.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `metering.py`, `patient.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from pydantic_ai.embeddings.base import EmbeddingModel
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.providers import Provider as ProviderClient

from nightwarden.agents.meter import Meter
from nightwarden.agents.metering import MeteredModel
from nightwarden.agents.models import Model
from nightwarden.agents.patient import PatientModel, Sleep
from nightwarden.agents.providers import Protocol
from nightwarden.errors import ModelError

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def build(model: Model) -> ProviderModel:
    """The provider's model, as the library makes it. Unmetered: for `metered` only."""
    match model.provider.protocol:
        case Protocol.ANTHROPIC:
            return _anthropic(model)
        case Protocol.GOOGLE:
            return _google(model)
        case Protocol.OPENAI_RESPONSES | Protocol.OPENAI_CHAT:
            return _openai(model)
        case _:
            assert_never(model.provider.protocol)


def metered(built: ProviderModel, meter: Meter, *, sleep: Sleep | None = None) -> ProviderModel:
    """The model as it may be used: every request within its budget, busy providers waited out."""
    inner = MeteredModel(built, meter)
    return PatientModel(inner) if sleep is None else PatientModel(inner, sleep=sleep)


def _anthropic(model: Model) -> ProviderModel:
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  (heavy)
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    provider = AnthropicProvider(api_key=model.key, base_url=model.base_url)
    return AnthropicModel(model.id, provider=provider)


def _google(model: Model) -> ProviderModel:
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415  (heavy)
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

    provider = GoogleProvider(api_key=model.key, base_url=model.base_url)
    return GoogleModel(model.id, provider=provider)


def _openai(model: Model) -> ProviderModel:
    from pydantic_ai.models.openai import (  # noqa: PLC0415  (heavy)
        OpenAIChatModel,
        OpenAIResponsesModel,
    )

    provider = _openai_provider(model)
    if model.provider.protocol is Protocol.OPENAI_RESPONSES:
        return OpenAIResponsesModel(model.id, provider=provider)
    return OpenAIChatModel(model.id, provider=provider)


def _openai_provider(model: Model) -> ProviderClient[AsyncOpenAI]:
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  (heavy)
    from pydantic_ai.providers.openai_compatible import (  # noqa: PLC0415
        OpenAICompatibleProvider,
    )

    name = model.provider.name
    if name in ("openai", "openai-chat"):
        return OpenAIProvider(api_key=model.key, base_url=model.base_url)
    return OpenAICompatibleProvider(name, base_url=model.base_url, api_key=model.key or None)


class Embedder:
    """A model that makes vectors, and its connection, which is to be entered and left."""

    def __init__(self, model: EmbeddingModel, provider: ProviderClient[Any]) -> None:
        self.model = model
        self._provider = provider

    async def __aenter__(self) -> Embedder:
        await self._provider.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._provider.__aexit__(None, None, None)


def build_embedder(model: Model) -> Embedder:
    """The provider's model for vectors. Unmetered. Raises `ModelError` where there is none."""
    match model.provider.protocol:
        case Protocol.ANTHROPIC:
            raise ModelError(f"{model.name}: {model.provider.name} has no models that make vectors")
        case Protocol.GOOGLE:
            from pydantic_ai.embeddings.google import GoogleEmbeddingModel  # noqa: PLC0415
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

            google = GoogleProvider(api_key=model.key, base_url=model.base_url)
            return Embedder(GoogleEmbeddingModel(model.id, provider=google), google)
        case Protocol.OPENAI_RESPONSES | Protocol.OPENAI_CHAT:
            from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel  # noqa: PLC0415

            provider = _openai_provider(model)
            provider.client.max_retries = 0  # each try is reserved for
            return Embedder(OpenAIEmbeddingModel(model.id, provider=provider), provider)
        case _:
            assert_never(model.provider.protocol)
