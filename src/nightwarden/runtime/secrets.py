"""Where secrets come from, and that they are masked before anybody has them.

    secret("PARTNER_KEY") ─▶ the given mapping
                             NIGHTWARDEN_SECRET_PARTNER_KEY in the environment
                             PARTNER_KEY in the environment
                          ─▶ registered for masking ─▶ the step

The first source that has the name wins. No file is read: a secret in a file belongs to whoever
starts the process (`set -a; . ./secrets.env`).

Read next: `log_masking.py`, `masking/redaction.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from nightwarden.errors import NodeError
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.masking.secret_forms import SHORT
from nightwarden.spec.workflow import SecretRef

PREFIX: Final = "NIGHTWARDEN_SECRET_"

_NOT_A_VARIABLE = re.compile(r"[^A-Za-z0-9_]")


class SecretResolver:
    """Hands out secrets by name. Safe from any thread: it keeps nothing but the registry."""

    def __init__(
        self,
        registry: SecretRegistry,
        given: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.registry = registry
        self._given = dict(given or {})
        self._environment = os.environ if environment is None else environment

    def secret(self, name: str) -> str:
        """The value of `name`, masked everywhere from here on.

        Raises `NodeError` (code `secret-missing`) when no source has it, or only an empty value.
        """
        value = self._find(name)
        if value is None:
            raise NodeError(self._missing(name), code="secret-missing")
        self.registry.register(name, value)
        return value

    def preload(self, names: Iterable[str]) -> tuple[str, ...]:
        """Register every one of `names` that is set; returns those that are not.

        So is what was given for this run, and what the environment says is a secret: an input may
        hold it that is recorded before any step asks for it. Called when a run is opened, so that
        its very first record is masked; what there is to say about the values then stands in
        `registry.warnings`.
        """
        for name, given in self._given.items():
            if given.strip():
                self.registry.register(name, given)
        for variable, found in self._environment.items():
            # Nobody may need a short one, and it would hide every word like it.
            if variable.startswith(PREFIX) and len(found.strip()) >= SHORT:
                self.registry.register(variable.removeprefix(PREFIX), found)
        missing: list[str] = []
        for name in names:
            value = self._find(name)
            if value is None:
                missing.append(name)
            else:
                self.registry.register(name, value)
        return tuple(missing)

    def _find(self, name: str) -> str | None:
        values = [self._given.get(name), *map(self._environment.get, _variables(name))]
        return next((value for value in values if value and value.strip()), None)

    def _missing(self, name: str) -> str:
        first, *others = _variables(name)
        empty = [v for v in (first, *others) if self._environment.get(v) is not None]
        state = f"is empty in {empty[0]}" if empty else "is not set"
        also = f" (or {others[0]})" if others else ""
        return (
            f"secret {name!r} {state}: set {first}{also} in the environment,"
            " or pass it with secrets={…}"
        )


def secrets_in(value: object) -> Iterator[str]:
    """Every secret a property names, at any depth."""
    ahead = [value]
    while ahead:
        value = ahead.pop()
        if isinstance(value, SecretRef):
            yield value.name
        elif isinstance(value, Mapping):
            ahead += value.values()
        elif isinstance(value, (list, tuple)):
            ahead += value


def with_secrets(value: object, secret: Callable[[str], str]) -> object:
    """A property with the values of the secrets it names in their places."""
    if isinstance(value, SecretRef):
        return secret(value.name)
    if isinstance(value, Mapping):
        return {k: with_secrets(v, secret) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_secrets(v, secret) for v in value]
    return value


def _variables(name: str) -> Iterator[str]:
    """The environment variables that may hold `name`; shells allow letters, digits and `_` only."""
    plain = _NOT_A_VARIABLE.sub("_", name)
    yield from dict.fromkeys((PREFIX + plain, PREFIX + plain.upper(), plain, plain.upper()))
