"""From `--supervise MODE` to a supervisor.

    off               failures stop the run
    agent[:MODEL]     a model; without a name, the one the settings name
    scripted:FILE     answers from a file
    operator          a person at the terminal
    replay:RUN        the answers of a recorded run
    shadow[:MODE]     what MODE would have answered is recorded; failures stop the run
    NAME[:ARGUMENT]   a supervisor of an installed package

A mode that cannot be had is a `RunError` before the run starts, with the reason: a run that
asked for supervision never starts without it.

Read next: `scripted.py`, `operator.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TextIO, TypeVar

from nightwarden.errors import RunError
from nightwarden.runtime.supervision import Supervisor
from nightwarden.runtime.supervisors.failclosed import FailClosed
from nightwarden.runtime.supervisors.installed import installed_names, installed_supervisor
from nightwarden.runtime.supervisors.operator import Operator
from nightwarden.runtime.supervisors.replay import Replay, pairs_from_events
from nightwarden.runtime.supervisors.scripted import Scripted
from nightwarden.runtime.supervisors.shadow import Shadow
from nightwarden.runtime.supervisors.verbs import suggestion

MODES: Final = ("off", "agent", "operator", "replay", "scripted", "shadow")
AGENT: Final = "agent"

_T = TypeVar("_T")
ReadText = Callable[[str], str]
ReadRun = Callable[[str], Iterable[Mapping[str, object]]]
Aside = Callable[[], AbstractContextManager[object]]
MakeAgent = Callable[[str], Supervisor]
"""From a model's name, empty for the workspace's own, to the supervisor that asks it."""


def no_agent(model: str) -> Supervisor:
    """Where nothing of the model side is at hand. Raises `RunError`."""
    del model
    raise RunError("supervision by a model cannot be had here; use scripted:FILE or operator")


def make_supervisor(
    mode: str,
    *,
    read_text: ReadText,
    read_run: ReadRun,
    source: TextIO | None = None,
    sink: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
    aside: Aside = nullcontext,
    make_agent: MakeAgent = no_agent,
) -> Supervisor:
    """The supervisor a mode names.

    `make_agent` makes the one that asks a model; it raises what is wrong with the model.
    `read_text` reads a file by its name, `read_run` the events of a recorded run. The operator
    is asked on `sink` and read from `source` (default: standard error and input). Raises
    `RunError` when the mode cannot be had, `SpecError` with all that is wrong with a file.
    """
    name, _, argument = mode.strip().partition(":")
    match name:
        case "off":
            _no_argument(mode, argument)
            return FailClosed()
        case "agent":
            return make_agent(argument)
        case "operator":
            _no_argument(mode, argument)
            return _operator(source or sys.stdin, sink or sys.stderr, environ, aside)
        case "scripted":
            return _scripted(_needed(mode, argument, "scripted:FILE"), read_text)
        case "replay":
            return _replay(_needed(mode, argument, "replay:RUN"), read_run)
        case "shadow":
            inner = argument or AGENT
            if inner.partition(":")[0] in ("off", "shadow"):
                raise RunError(f"{mode!r}: nothing to watch; name a mode that answers")
            watched = make_supervisor(
                inner,
                read_text=read_text,
                read_run=read_run,
                source=source,
                sink=sink,
                environ=environ,
                aside=aside,
                make_agent=make_agent,
            )
            return Shadow(watched)
    found = installed_supervisor(name, argument)
    if found is None:
        known = (*MODES, *installed_names())
        raise RunError(f"unknown mode of supervision {mode!r}: {suggestion(name, known)}")
    return found


def model_in(mode: str | None) -> str | None:
    """The model a mode asks: its name, empty where none is named, None where none is asked."""
    name, _, argument = (mode or "").strip().partition(":")
    if name == "shadow":  # of nothing that answers by itself: `make_supervisor` says so
        name, _, argument = (argument or AGENT).partition(":")
    return argument if name == AGENT else None


def with_model(mode: str, model: str) -> str:
    """The mode with the model it asks written out."""
    shadow = "shadow:" if mode.strip().startswith("shadow") else ""
    return f"{shadow}{AGENT}:{model}"


def _scripted(file: str, read_text: ReadText) -> Supervisor:
    # Only who scripts pays for the YAML parser.
    from nightwarden.runtime.supervisors.rulefile import read_rules  # noqa: PLC0415

    return Scripted(read_rules(_read(read_text, file), file=file))


def _replay(run: str, read_run: ReadRun) -> Supervisor:
    # What a record holds may only be read, and found broken, while it is gone through.
    return Replay(_read(lambda name: pairs_from_events(read_run(name)), run))


def _operator(
    source: TextIO | None, sink: TextIO | None, environ: Mapping[str, str], aside: Aside
) -> Supervisor:
    if source is None or sink is None or source.closed or sink.closed:
        raise RunError("operator: there is no terminal to ask on; use scripted:FILE or replay:RUN")
    editor = environ.get("VISUAL") or environ.get("EDITOR") or ""
    return Operator(source, sink, editor=editor, aside=aside)


def _read(reader: Callable[[str], _T], name: str) -> _T:
    try:
        return reader(name)
    except OSError as error:
        raise RunError(f"cannot read {name!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"cannot read {name!r}: it is not UTF-8 text") from error
    except ValueError as error:
        raise RunError(f"cannot read {name!r}: {error}") from error


def _needed(mode: str, argument: str, form: str) -> str:
    if not argument:
        raise RunError(f"{mode!r} names nothing to answer from; write {form}")
    return argument


def _no_argument(mode: str, argument: str) -> None:
    if argument:
        name = mode.partition(":")[0]
        raise RunError(f"{mode!r}: {name} takes nothing after it; write just {name}")
