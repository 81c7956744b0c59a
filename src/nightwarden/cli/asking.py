"""Which model a run asks, and the sentence about it that is printed once.

Everything wrong with the model is said here, before anything starts. What is sent to whom is
said the first time a folder's runs ask a model, and again when it is another model.

Read next: `run.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nightwarden.cli.failing import Usage

if TYPE_CHECKING:
    from nightwarden.agents.models import Model
    from nightwarden.cli.output import Output
    from nightwarden.session import Session
    from nightwarden.settings import Settings

_NAMED: Final = 3
TOLD: Final = "told-models"
"""The file, among the recorded runs, with the models that were told of, and how."""


def with_the_model(mode: str | None, model: str | None, settings: Settings) -> str | None:
    """The mode with the model it asks written out. Raises `Usage` and `ModelError`."""
    if mode in (None, "off"):
        return mode
    from nightwarden.agents.opening import asked_model, supervising_model, with_model

    assert mode is not None
    named = asked_model(mode)
    if named is None:
        if model is not None:
            raise Usage(f"--supervisor-model names a model, and --supervise {mode} asks none")
        return mode
    if named and model and named != model:
        raise Usage(f"--supervise {mode} and --supervisor-model {model} name two models; name one")
    return with_model(mode, supervising_model(named or model or "", settings).name)


def tell_once(mode: str | None, settings: Settings, out: Output, folder: Path) -> None:
    """Say what is sent to which model, unless it was said before in this store's folder."""
    if mode in (None, "", "off") or out.quiet:
        return
    from nightwarden.agents.opening import asked_model, notice, supervising_model

    named = asked_model(mode)
    if not named:
        return
    model = supervising_model(named, settings)
    _once(out, notice(model), model, folder)


def tell_of_steps(session: Session, settings: Settings, out: Output, folder: Path) -> None:
    """Say once what steps send to which models."""
    named = [] if out.quiet else session.models
    if not named:
        return
    from nightwarden.agents.models import resolve
    from nightwarden.agents.stepping import ways_of

    agents = {node.id for node in session.workflow.nodes if node.type.startswith("agent.")}
    for name in dict.fromkeys(each.name for each in named):
        askers = [each for each in named if each.name == name]
        model = resolve(name, settings, ways=ways_of(askers[0]))
        steps = list(dict.fromkeys(each.node_id for each in askers))
        what = "agents" if agents.intersection(steps) else "steps"
        _once(out, _of_steps(model, steps, agents=what == "agents"), model, folder, what)


def _of_steps(model: Model, steps: Sequence[str], *, agents: bool) -> str:
    more = f", and {len(steps) - _NAMED} more" if len(steps) > _NAMED else ""
    who = ", ".join(steps[:_NAMED]) + more
    what = "goes in, and what agents' tools find" if agents else "goes in"
    return f"What {what} at {who} is sent to {model.name} {model.whereabouts}."


def tell_of_steering(session: Session, settings: Settings, out: Output, folder: Path) -> None:
    """Say once to which models declared supervisors show what agents do."""
    if not session.workflow.supervisors or not session.steered(settings.steering_enabled):
        return
    from nightwarden.errors import ModelError
    from nightwarden.spec.supervisors import declared
    from nightwarden.steering.choosing import choose, running_on

    for spec in declared(session.workflow):
        with contextlib.suppress(ModelError):  # the run says so itself, and goes on without
            running = running_on(session.workflow, spec, session.inputs)
            model = choose(spec, settings, running, inputs=session.inputs)
            if not out.quiet:
                shown = f"is shown to {model.name} {model.whereabouts}, masked."
                _once(out, f"What agents say and do {shown}", model, folder, "watches")


def told_in(folder: Path) -> dict[str, str]:
    """The sentences that were printed here, by what they are about, in order."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = (folder / TOLD).read_text(encoding="utf-8").splitlines()
        return {about: sentence for about, _, sentence in (line.partition("\t") for line in lines)}
    return {}


def _once(out: Output, sentence: str, model: Model, folder: Path, what: str = "") -> None:
    """Say it, unless it was said before; from now on it was."""
    about = f"{model.name} {model.host} {what}".strip()
    if about in told_in(folder):
        return
    with contextlib.suppress(OSError):  # what cannot be kept is said again
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / TOLD).open("a", encoding="utf-8") as told:
            told.write(f"{about}\t{sentence}\n")
    out.note(sentence)
