"""Supervisors of installed packages: `--supervise NAME[:ARGUMENT]` for names of theirs.

    [project.entry-points."nightwarden.supervisors"]
    ours = "ours.deciding:supervisor"     # (argument: str) -> Supervisor

They are looked for where a mode is named that is none of the engine's own.

Read next: `modes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nightwarden.errors import RunError
from nightwarden.plugins import SUPERVISORS_GROUP
from nightwarden.runtime.supervision import Supervisor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed_names() -> Sequence[str]:
    """What installed supervisors are called, in order."""
    return sorted(point.name for point in _points())


def installed_supervisor(name: str, argument: str) -> Supervisor | None:
    """The installed supervisor of that name; None if there is none.

    Raises `RunError` for one that cannot be loaded or made, with what went wrong.
    """
    for point in _points():
        if point.name == name:
            return _made(point, argument)
    return None


def _made(point: EntryPoint, argument: str) -> Supervisor:
    try:
        made = point.load()(argument)
    except RunError:
        raise
    except Exception as error:  # code of others must not end in a traceback
        raise RunError(
            f"supervisor {point.name} ({point.value}) cannot be had: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Supervisor):
        raise RunError(
            f"supervisor {point.name} ({point.value}) gives {type(made).__name__}, "
            "which cannot be asked: a supervisor has decide, attach and aclose"
        )
    return made


def _points() -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415  (12 ms that most runs never need)

    return tuple(entry_points(group=SUPERVISORS_GROUP))
