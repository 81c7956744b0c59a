"""From what was raised to lines and an exit code; from a status to an exit code.

    0 completed    1 failed    2 usage, or a workflow that cannot run    3 suspended
    4 completed under supervision, with --strict-exit    130 cancelled

Whoever is to act reads one clear line; a traceback is shown with --debug only.

Read next: `main.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

COMPLETED: Final = 0
FAILED: Final = 1
USAGE: Final = 2
SUSPENDED: Final = 3
SUPERVISED: Final = 4
CANCELLED: Final = 130

EXITS: Final[Mapping[str, int]] = {
    "completed": COMPLETED,
    "failed": FAILED,
    "suspended": SUSPENDED,
    "cancelled": CANCELLED,
}
"""The exit code of a run by its status."""

NAME: Final = "nightwarden"

_PARSERS: Final = re.compile(r"Input should be a valid (integer|number)(, unable to parse .*)?")
_NUMBERS: Final = {"integer": "whole number", "number": "number"}


class Usage(Exception):
    """The command line does not say what can be done; the message names what to write instead."""


class LostRun(Exception):
    """A run that had begun could not be carried to its end; the message says why."""


def explained(error: BaseException) -> tuple[list[str], int]:
    """The lines that tell of an error, and the exit code."""
    from nightwarden.errors import NightwardenError, SpecError
    from nightwarden.settings import BadSettings

    match error:
        case KeyboardInterrupt():
            return [f"{NAME}: cancelled"], CANCELLED
        case SpecError():
            return [str(problem) for problem in error.problems], USAGE
        case BadSettings():
            return [f"{NAME}: {problem}" for problem in error.problems], USAGE
        case LostRun():
            return _named(str(error)), FAILED
        case Usage() | NightwardenError():
            return _named(str(error)), USAGE
        case OSError():
            return _named(_system(error)), USAGE
        case MemoryError():
            return [f"{NAME}: there is not enough memory"], FAILED
    if type(error).__name__ == "NoArgsIsHelpError":  # a group of commands, and none was named
        return str(error).splitlines(), USAGE
    said = _usage(error)
    if said:
        return _named(said), USAGE
    return [f"{NAME}: a fault of ours: {_fault(error)}; run it again with --debug"], FAILED


def _named(message: str) -> list[str]:
    return [f"{NAME}: {line}" for line in message.splitlines() if line.strip()]


def _system(error: OSError) -> str:
    why = error.strerror or str(error) or type(error).__name__
    if isinstance(error, IsADirectoryError):
        why = "it is a folder, and a file is wanted: name one in it"
    return f"{error.filename}: {why}" if error.filename else why


def _usage(error: BaseException) -> str:
    """What the command line parser has to say; empty for an error that is not its own."""
    told = getattr(error, "format_message", None)
    if told is None:
        return ""
    message = str(told()).strip().rstrip(".")
    message = _PARSERS.sub(lambda found: f"a {_NUMBERS[found[1]]} is expected", message)
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "") or NAME
    return f"{message[:1].lower()}{message[1:]} (see {path} --help)"


def _fault(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    except Exception:
        return type(error).__name__
