"""Which model a supervisor asks; nothing of a provider's library is loaded.

    pin ─▶ NIGHTWARDEN_STEERING_MODEL, steering.model ─▶ the provider the watched nodes run on, if
    its key is here ─▶ the first provider whose key is here ─▶ one clear line why there is none

A pin may be `${NAME}` or `${NAME:-other}`, of the environment, or `$inputs.NAME`; one that comes
to nothing is none. A watched node behind a gateway of one's own asks for a pin: what is said
there must not go to somebody else by itself.

Read next: `evaluating.py`, `agents/models.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightwarden.agents.models import (
    FindKey,
    Model,
    installed_keyring,
    is_allowed,
    resolve,
    resolve_set,
)
from nightwarden.agents.providers import PROVIDERS, Provider
from nightwarden.errors import ModelError
from nightwarden.nodes.working import CLAUDE_CODE
from nightwarden.settings import Settings
from nightwarden.spec.supervisors import SupervisorSpec, reads_messages
from nightwarden.spec.workflow import INPUTS, NodeSpec, Workflow

SMALL: Final[Mapping[str, str]] = {
    "anthropic": "anthropic:claude-haiku-4-5",
    "openai": "openai:gpt-5-mini",
    "openai-chat": "openai-chat:gpt-5-mini",
    "google": "google:gemini-2.5-flash",
    "groq": "groq:llama-3.3-70b-versatile",
    "mistral": "mistral:mistral-small-latest",
    "deepseek": "deepseek:deepseek-chat",
    "xai": "xai:grok-3-mini",
}
"""The model that looks where only the provider is known: a small one."""

_GATEWAYS: Final = frozenset({"compatible", "openrouter", "together", "fireworks"})
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_INPUT: Final = re.compile(r"\$inputs\.(\w+)|\{\{\s*(?:vars|inputs)\.(\w+)\s*\}\}")
_REMEDY: Final = "give the supervisor a model: provider:name, or set steering.model"


@dataclass(frozen=True, slots=True)
class Running:
    """What a watched node runs on: its model, as `provider:name`."""

    node_id: str
    model: str

    @property
    def provider(self) -> Provider | None:
        """Whose model it is, where that is known."""
        return PROVIDERS.get(self.model.partition(":")[0])


def choose(
    spec: SupervisorSpec,
    settings: Settings,
    running: Sequence[Running] = (),
    *,
    inputs: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
    keyring: FindKey | None = None,
) -> Model:
    """The model of a supervisor. Raises `ModelError` where there is none, with what to do."""
    find = keyring or installed_keyring
    named = pinned(spec.model, inputs or {}, environ)
    if named:
        return resolve(named, settings, environ=environ, keyring=find)
    if settings.steering_model:
        set_one = settings.steering_model
        return resolve_set("steering.model", set_one, settings, environ=environ, keyring=find)
    _refuse_gateways(spec, settings, running)
    for name in [*_of_watched(running, environ, find), *_of_anybody(environ, find)]:
        if is_allowed(name, settings.allowed_models):
            return resolve(name, settings, environ=environ, keyring=find)
    raise ModelError(
        f"there is no model for supervisor {spec.name or 'of this run'!r}: no provider whose key "
        f"is in the environment has one that is allowed; {_REMEDY}"
    )


def pinned(pin: str, inputs: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """A pin with its variables filled in; empty where it comes to nothing."""

    def of_environment(match: re.Match[str]) -> str:
        return environ.get(match[1], "").strip() or (match[2] or "")

    def of_inputs(match: re.Match[str]) -> str:
        return str(inputs.get(match[1] or match[2], ""))

    return _INPUT.sub(of_inputs, _VARIABLE.sub(of_environment, pin)).strip()


def running_on(
    workflow: Workflow, spec: SupervisorSpec, inputs: Mapping[str, object] | None = None
) -> list[Running]:
    """What the nodes a supervisor watches run on; all agents where it watches the whole run.

    A model that comes from another step is not known beforehand.
    """
    watched = [
        node
        for node in workflow.nodes
        if (node.id in spec.watches if spec.watches else reads_messages(node.type))
    ]
    wired = {
        edge.target: (inputs or {}).get(edge.source_slot)
        for edge in workflow.edges
        if edge.source == INPUTS and edge.target_slot == "model"
    }
    found = (Running(node.id, _model_of(node, wired.get(node.id))) for node in watched)
    return [each for each in found if each.model]


def _model_of(node: NodeSpec, wired: object) -> str:
    model = node.properties.get("model", wired)
    named = model if isinstance(model, str) else ""
    if node.properties.get("backend") == CLAUDE_CODE and ":" not in named:
        return f"anthropic:{named}" if named else SMALL["anthropic"]
    return named


def _refuse_gateways(spec: SupervisorSpec, settings: Settings, running: Iterable[Running]) -> None:
    for each in running:
        provider, entry = each.provider, settings.models.get(each.model)
        elsewhere = entry is not None and entry.base_url is not None
        if provider is None or provider.name in _GATEWAYS or (elsewhere and provider.needs_key):
            raise ModelError(
                f"{each.node_id} runs on {each.model}, behind a gateway; what it says is sent to "
                f"nobody else by itself: {_REMEDY} (supervisor {spec.name!r})"
            )


def _of_watched(
    running: Iterable[Running], environ: Mapping[str, str], keyring: FindKey
) -> Iterable[str]:
    """A small model of each watched node's provider, else the very model the node runs on."""
    for each in running:
        provider = each.provider
        if provider is not None and _has_key(provider, environ, keyring):
            yield SMALL.get(provider.name, each.model)
            yield each.model


def _of_anybody(environ: Mapping[str, str], keyring: FindKey) -> Iterable[str]:
    for provider in PROVIDERS.values():
        if provider.name in SMALL and _has_key(provider, environ, keyring):
            yield SMALL[provider.name]


def _has_key(provider: Provider, environ: Mapping[str, str], keyring: FindKey) -> bool:
    """Whether a key is here; a login of another program is none."""
    if not provider.needs_key:
        return True
    return any(environ.get(name, "").strip() or keyring(name) for name in provider.keys)
