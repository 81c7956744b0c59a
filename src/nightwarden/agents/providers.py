"""Whom a model may be asked of: names, addresses, and where their keys lie. Plain data.

    anthropic:…  openai:…  google:…          their own protocols
    openai-chat:…                            OpenAI's older protocol, at OpenAI or a gateway
    groq:… mistral:… deepseek:… xai:… openrouter:… together:… fireworks:…
    ollama:…  vllm:…  lmstudio:…             at home: free, and no key is needed
    compatible:…                             any other server that speaks OpenAI's protocol

Nothing of the providers' libraries is needed to know this. Read next: `models.py`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit


class Protocol(StrEnum):
    """How a provider is spoken to."""

    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OPENAI_RESPONSES = "openai-responses"
    OPENAI_CHAT = "openai-chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider.

    `keys` and `base_urls` are variables of the environment, the first that is set wins.
    `base_url` is where it is found unless told otherwise; empty means its own default for
    providers that have one, and that it has to be told for `compatible`. `prices` is its name in
    the price catalogue. `at_home` means that models cost nothing where the server is our own.
    """

    name: str
    protocol: Protocol
    keys: tuple[str, ...] = ()
    base_urls: tuple[str, ...] = ()
    base_url: str = ""
    prices: str = ""
    at_home: bool = False
    needs_key: bool = True


def _hosted(name: str, key: str, base_url: str, prices: str = "") -> Provider:
    """A provider that speaks OpenAI's older protocol."""
    return Provider(
        name=name,
        protocol=Protocol.OPENAI_CHAT,
        keys=(key,),
        base_urls=(f"{key.removesuffix('_API_KEY')}_BASE_URL",),
        base_url=base_url,
        prices=prices or name,
    )


def _at_home(name: str, base_url: str) -> Provider:
    """A server people run themselves."""
    variable = name.upper()
    return Provider(
        name=name,
        protocol=Protocol.OPENAI_CHAT,
        keys=(f"{variable}_API_KEY",),
        base_urls=(f"{variable}_BASE_URL",),
        base_url=base_url,
        at_home=True,
        needs_key=False,
    )


_OPENAI: Final = Provider(
    name="openai",
    protocol=Protocol.OPENAI_RESPONSES,
    keys=("OPENAI_API_KEY",),
    base_urls=("OPENAI_BASE_URL",),
    base_url="https://api.openai.com/v1",
    prices="openai",
)

_ALL: Final = (
    Provider(
        name="anthropic",
        protocol=Protocol.ANTHROPIC,
        keys=("ANTHROPIC_API_KEY",),
        base_urls=("ANTHROPIC_BASE_URL",),
        base_url="https://api.anthropic.com",
        prices="anthropic",
    ),
    _OPENAI,
    Provider(
        name="openai-chat",
        protocol=Protocol.OPENAI_CHAT,
        keys=_OPENAI.keys,
        base_urls=_OPENAI.base_urls,
        base_url=_OPENAI.base_url,
        prices="openai",
    ),
    Provider(
        name="google",
        protocol=Protocol.GOOGLE,
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        base_urls=("GOOGLE_BASE_URL", "GEMINI_BASE_URL"),
        base_url="https://generativelanguage.googleapis.com",
        prices="google",
    ),
    _hosted("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    _hosted("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    _hosted("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com"),
    _hosted("xai", "XAI_API_KEY", "https://api.x.ai/v1", "x-ai"),
    _hosted("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    _hosted("together", "TOGETHER_API_KEY", "https://api.together.xyz/v1"),
    _hosted("fireworks", "FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1"),
    _at_home("ollama", "http://localhost:11434/v1"),
    _at_home("vllm", "http://localhost:8000/v1"),
    _at_home("lmstudio", "http://localhost:1234/v1"),
    Provider(
        name="compatible",
        protocol=Protocol.OPENAI_CHAT,
        keys=("COMPATIBLE_API_KEY",),
        base_urls=("COMPATIBLE_BASE_URL",),
        needs_key=False,
    ),
)

PROVIDERS: Final = {provider.name: provider for provider in _ALL}
"""Every provider by its name."""


def is_own_server(base_url: str) -> bool:
    """Whether an address is this machine's or in the network around it: loopback, a private or
    link-local address, a bare host name, or a name such as `box.local`."""
    host = (urlsplit(base_url).hostname or "").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return address.is_loopback or address.is_private or address.is_link_local
