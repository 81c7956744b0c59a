"""From `provider:name` to a model that may be asked, or to one clear line why not.

    name ─▶ known provider? ─▶ allowed? ─▶ address ─▶ price ─▶ key ─▶ Model

Everything that can be wrong is found here, before a run starts and without loading a provider's
library. A model on a server of one's own is free, which is a price; a model of a provider
without a price in the catalogue or the settings is refused: nobody could hold it to a budget.

Keys come from the environment, else from the keyring where one is installed (service
`nightwarden`, the variable's name as the user). Read next: `prices.py`, `building.py`.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from nightwarden.agents.prices import BOTH_WAYS, FREE, Fixed, Price, catalogued
from nightwarden.agents.providers import PROVIDERS, Provider, is_own_server
from nightwarden.errors import ModelError
from nightwarden.settings import ModelEntry, Settings

KEYRING_SERVICE: Final = "nightwarden"

FindKey = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that may be asked. `name` is `provider:id`, `id` the provider's own name for it.

    `key` is empty where none is needed; it is never shown. Without a price it is never asked;
    `resolve` refuses such a model.
    """

    name: str
    id: str
    provider: Provider
    base_url: str
    price: Price | None
    key_name: str = ""
    key: str = field(default="", repr=False)

    @property
    def secrets(self) -> Mapping[str, str]:
        """What of it nobody may see, by name: its key, and a password in its address."""
        password = urlsplit(self.base_url).password
        found = {self.key_name: self.key, "base_url": password or ""}
        return {name: value for name, value in found.items() if value}

    @property
    def host(self) -> str:
        """Where what is asked is sent."""
        return urlsplit(self.base_url).hostname or self.base_url

    @property
    def at_home(self) -> bool:
        """Whether nothing leaves the own network."""
        return is_own_server(self.base_url)

    @property
    def whereabouts(self) -> str:
        """Where that is, as people are told."""
        return "on your own network" if self.at_home else f"at {self.host}"


def resolve(
    name: str,
    settings: Settings,
    *,
    environ: Mapping[str, str] = os.environ,
    keyring: FindKey | None = None,
    ways: Sequence[str] = BOTH_WAYS,
) -> Model:
    """The model a name stands for. Raises `ModelError` with what is wrong and what to do.

    `ways` are those in which tokens go: a model that makes vectors has no price for answers.
    `keyring` finds a key by its variable's name; by default the installed keyring, if any.
    """
    prefix, model_id = _split(name)
    provider = _provider(name, prefix)
    _check_allowed(name, settings.allowed_models)
    entry = _entry(name, settings.models)
    base_url = _base_url(name, provider, entry, environ)
    price = _price(name, model_id, provider, entry, base_url, ways)
    key_name, key = _key(name, provider, base_url, environ, keyring or installed_keyring)
    return Model(
        name=name,
        id=model_id,
        provider=provider,
        base_url=base_url,
        price=price,
        key_name=key_name,
        key=key,
    )


def resolve_set(
    key: str,
    name: str,
    settings: Settings,
    *,
    environ: Mapping[str, str] = os.environ,
    keyring: FindKey | None = None,
) -> Model:
    """The model a setting names; what is wrong with it is said of the setting."""
    try:
        return resolve(name, settings, environ=environ, keyring=keyring)
    except ModelError as error:
        raise ModelError(f"{key}: {error}") from error


def is_allowed(name: str, patterns: tuple[str, ...] | None) -> bool:
    """Whether the workspace lets this model be asked; without a list, every one is."""
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def installed_keyring(name: str) -> str | None:
    """The key of that name in the keyring, if one is installed and can be opened."""
    if importlib.util.find_spec("keyring") is None:
        return None
    try:
        import keyring  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

        return keyring.get_password(KEYRING_SERVICE, name)  # type: ignore[no-any-return,unused-ignore]
    except Exception:
        return None  # a keyring that cannot be opened has no key


def _split(name: str) -> tuple[str, str]:
    prefix, colon, model_id = name.partition(":")
    if not colon or not prefix.strip() or not model_id.strip() or name != name.strip():
        raise ModelError(
            f"{name!r} names no model: write provider:name, such as "
            "anthropic:claude-sonnet-4-5 or ollama:llama3.2"
        )
    return prefix, model_id


def _provider(name: str, prefix: str) -> Provider:
    found = PROVIDERS.get(prefix)
    if found is not None:
        return found
    near = difflib.get_close_matches(prefix.lower(), PROVIDERS, n=1, cutoff=0.6)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(PROVIDERS)}"
    raise ModelError(f"{name}: there is no provider {prefix!r}; {meant}")


def _check_allowed(name: str, patterns: tuple[str, ...] | None) -> None:
    if not is_allowed(name, patterns):
        listed = ", ".join(patterns or ()) or "none"
        raise ModelError(
            f"{name} is not allowed here: allowed_models has {listed}; "
            "add it there, or take a model that is allowed"
        )


def _entry(name: str, models: Mapping[str, ModelEntry]) -> ModelEntry:
    """What the settings say of this model: the entry of its name wins over those of patterns."""
    merged = ModelEntry()
    fitting = [models[pattern] for pattern in models if fnmatchcase(name, pattern)]
    for entry in (*([models[name]] if name in models else []), *fitting):
        merged = ModelEntry(
            base_url=entry.base_url if merged.base_url is None else merged.base_url,
            price_in=entry.price_in if merged.price_in is None else merged.price_in,
            price_out=entry.price_out if merged.price_out is None else merged.price_out,
        )
    return merged


def _base_url(name: str, provider: Provider, entry: ModelEntry, environ: Mapping[str, str]) -> str:
    given = {"base_url in nightwarden.toml": entry.base_url or ""}
    given |= {variable: environ.get(variable, "") for variable in provider.base_urls}
    found = ((place, text.strip()) for place, text in given.items() if text.strip())
    place, url = next(found, ("", provider.base_url))
    if not url:
        raise ModelError(
            f"{name}: no address is known; set {provider.base_urls[0]}, "
            f'or base_url under [models."{name}"] in nightwarden.toml'
        )
    if not _is_address(url):
        raise ModelError(
            f"{name}: {place} is {_shown(url)!r}, which is no web address; write http://HOST/…"
        )
    return url


def _is_address(url: str) -> bool:
    """Whether a request could be sent there."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, half an IPv6 address
        return False
    return known and not any(char.isspace() for char in parts.netloc)


def _shown(url: str) -> str:
    """An address without what may be a password in it."""
    return url.rpartition("@")[2]


def _price(
    name: str,
    model_id: str,
    provider: Provider,
    entry: ModelEntry,
    base_url: str,
    ways: Sequence[str],
) -> Price:
    place = f'under [models."{name}"] in nightwarden.toml'
    if (entry.price_in is None) != (entry.price_out is None):
        named, lacking = ("price_in", "price_out")[:: 1 if entry.price_out is None else -1]
        raise ModelError(
            f"{name}: nightwarden.toml has {named} for it and no {lacking}; a price has both"
        )
    if entry.price_in is not None and entry.price_out is not None:
        return Fixed(Decimal(str(entry.price_in)), Decimal(str(entry.price_out)))
    if provider.at_home and is_own_server(base_url):
        return FREE
    found = catalogued(provider.prices, model_id, ways=ways) if provider.prices else None
    if found is None:
        raise ModelError(
            f"{name} has no known price, so that nothing could hold it to a budget; "
            f"set price_in and price_out ($ a million tokens) {place}"
        )
    return found


def _key(
    name: str, provider: Provider, base_url: str, environ: Mapping[str, str], keyring: FindKey
) -> tuple[str, str]:
    """The key and the name it was found under."""
    for variable in provider.keys:
        value = environ.get(variable, "").strip() or (keyring(variable) or "").strip()
        if value:
            return variable, value
    if not provider.needs_key:
        return "", ""
    raise ModelError(
        f"{name} needs a key for {urlsplit(base_url).hostname}: set {' or '.join(provider.keys)} "
        "in the environment"
    )
