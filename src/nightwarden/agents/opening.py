"""From a model's name and the workspace's settings to the supervisor that asks it.

Everything that can be wrong is said here, before the run starts, in one line; nothing of a
provider's library is loaded. `notice` is the sentence people are told once: what is sent, to
whom.

Read next: `models.py`, `adjudicator.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from nightwarden.agents.adjudicator import Adjudicator
from nightwarden.agents.models import Model, resolve, resolve_set
from nightwarden.errors import ModelError
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors.modes import model_in, with_model
from nightwarden.settings import Settings, load_settings

__all__ = ["asked_model", "notice", "open_adjudicator", "supervising_model", "with_model"]


def asked_model(mode: str) -> str | None:
    """The model a mode asks: its name, empty where none is named, None where none is asked."""
    return model_in(mode)


def supervising_model(
    name: str,
    settings: Settings | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> Model:
    """The model of that name, or the workspace's where it is empty. Raises `ModelError`.

    Without settings, those of the working directory and the environment hold.
    """
    settings = load_settings(environ=environ) if settings is None else settings
    if name:
        return resolve(name, settings, environ=environ)
    if not settings.supervisor_model:
        raise ModelError(
            "supervision by a model needs to know which: name one with "
            "--supervisor-model provider:name, or set supervisor.model in nightwarden.toml"
        )
    return resolve_set("supervisor.model", settings.supervisor_model, settings, environ=environ)


def open_adjudicator(
    name: str = "", bounds: Bounds | None = None, settings: Settings | None = None
) -> Adjudicator:
    """The supervisor that asks this model, within these bounds. Raises `ModelError`."""
    cap_micro_usd = (bounds or Bounds()).cost_cap_micro_usd
    return Adjudicator(supervising_model(name, settings), cap_micro_usd=cap_micro_usd)


def notice(model: Model) -> str:
    """What is sent to whom, in one sentence."""
    return (
        f"When a step fails, its error and inputs, and what its item comes from, are sent to "
        f"{model.name} {model.whereabouts}, with secrets masked."
    )
