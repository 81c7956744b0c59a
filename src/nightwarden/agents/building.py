"""From a resolved model to one that can be asked: the provider's client, metered and patient.

    PatientModel ─▶ MeteredModel ─▶ the provider's model (never repeats on its own)

There is no provider code of our own: protocols, streams and errors are the model library's.

Imports the model library, which takes seconds: import this in a thread, when it is needed.
Read next: `metering.py`, `patient.py`.
"""

from __future__ import annotations

from typing import assert_never

from pydantic_ai.models import Model as ProviderModel

from nightwarden.agents.metering import Meter, MeteredModel
from nightwarden.agents.models import Model
from nightwarden.agents.patient import PatientModel, Sleep
from nightwarden.agents.providers import Protocol


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
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import (  # noqa: PLC0415
        OpenAICompatibleProvider,
    )

    name = model.provider.name
    if name in ("openai", "openai-chat"):
        ours = OpenAIProvider(api_key=model.key, base_url=model.base_url)
        if model.provider.protocol is Protocol.OPENAI_RESPONSES:
            return OpenAIResponsesModel(model.id, provider=ours)
        return OpenAIChatModel(model.id, provider=ours)
    other = OpenAICompatibleProvider(name, base_url=model.base_url, api_key=model.key or None)
    return OpenAIChatModel(model.id, provider=other)
