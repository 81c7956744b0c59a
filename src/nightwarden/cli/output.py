"""What a command prints, and where: results to stdout, remarks and errors to stderr.

    say     the result, for people           stdout; stderr with --json; nothing with --quiet
    note    what happens on the way          stderr; nothing with --quiet
    error   what went wrong                  stderr, always
    data    the result, for programs         stdout

With --json standard output is kept for the data: what a step or its file prints goes to stderr.
A reader that has gone (`| head`) is no error: what is left to print is dropped, and the exit
code stays what it would have been. A stream that cannot be written, on a full disk, is one:
`lost` says so. Every line is made harmless first.

Read next: `failing.py`, `watching.py`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Callable
from typing import ClassVar, Final, TextIO

from nightwarden.events.words import visible

_STDOUT: Final = 1
_STDERR: Final = 2
COLOURS: Final = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "blue": "34"}


class Output:
    """The two streams of one command.

    `above` prints a line over what is drawn on the terminal. `unread` says that whoever read
    standard output has gone. `lost` says, for the whole process,
    why standard output could not be written; empty while it could. `kept` is standard output
    itself, for the whole process, once it is for data only.
    """

    lost: ClassVar[str] = ""
    kept: ClassVar[TextIO | None] = None

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.above: Callable[[str], None] | None = None
        self.unread = False
        if as_json and Output.kept is None:
            Output.kept = _keep_stdout()

    def say(self, line: str = "", colour: str = "") -> None:
        """A line of the result."""
        if not self.quiet:
            stream = sys.stderr if self.as_json else sys.stdout
            self._write(stream, painted(visible(line), colour, stream) + "\n")

    def note(self, line: str, colour: str = "") -> None:
        """A line on the way."""
        if not self.quiet:
            self._side(painted(visible(line), colour, sys.stderr))

    def note_at_once(self, line: str) -> bool:
        """A line on the way, from a signal handler; False where it has to wait its turn."""
        if self.above is not None:
            return False
        if not self.quiet:
            with contextlib.suppress(OSError):
                os.write(_STDERR, f"{visible(line)}\n".encode())
        return True

    def error(self, line: str) -> None:
        """A line about what went wrong."""
        self._side(painted(visible(line), "red", sys.stderr))

    def text(self, text: str) -> None:
        """Several lines of the result, already harmless."""
        if not self.quiet:
            self._write(sys.stderr if self.as_json else sys.stdout, text)

    def data(self, value: object) -> None:
        """The result as JSON."""
        text = json.dumps(value, indent=2, ensure_ascii=_ascii_only())
        self._write(Output.kept or sys.stdout, f"{text}\n")

    def data_line(self, value: object) -> None:
        """One of many results, as JSON in a line."""
        text = json.dumps(value, ensure_ascii=_ascii_only())
        self._write(Output.kept or sys.stdout, f"{text}\n")

    @property
    def draws(self) -> bool:
        """Whether bars may be drawn on stderr."""
        return not self.quiet and is_terminal(sys.stderr)

    def _side(self, line: str) -> None:
        if self.above is not None:
            self.above(line)
        else:
            self._write(sys.stderr, line + "\n")

    def _write(self, stream: TextIO | None, text: str) -> None:
        if stream is None:  # the process was started without it
            return
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            self.unread = self.unread or _is_result(stream)
            silence(stream)
        except (OSError, ValueError) as error:
            if _is_result(stream):
                Output.lost = getattr(error, "strerror", None) or str(error)
                self.unread = True
            silence(stream)


def _keep_stdout() -> TextIO | None:
    """Standard output where only data reaches it: steps, and what they start, print to stderr."""
    try:
        if sys.stdout.fileno() != _STDOUT:
            return None
        kept = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    except (AttributeError, OSError, ValueError):  # it is closed, or no file
        return None
    aside = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else _STDERR
    os.dup2(aside, _STDOUT)
    return open(kept, "w", encoding=sys.stdout.encoding, errors="backslashreplace")


def _is_result(stream: TextIO) -> bool:
    """Whether the result goes to this stream."""
    return stream is (Output.kept or sys.stdout)


def _ascii_only() -> bool:
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return encoding.replace("-", "") != "utf8"


def painted(line: str, colour: str, stream: TextIO | None) -> str:
    """The line in a colour, where the stream is a terminal that shows some."""
    if colour not in COLOURS or not is_terminal(stream):
        return line
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    return f"\x1b[{COLOURS[colour]}m{line}\x1b[0m"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is there, open, and a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def prepare_streams() -> None:
    """What an encoding lacks is spelled out instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            with contextlib.suppress(ValueError, OSError):
                reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Send everything still to come for this stream nowhere, its buffer included."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def close_streams() -> str:
    """Flush both streams; why stdout could not be written, or an empty text."""
    for stream in (Output.kept, sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except BrokenPipeError:
            silence(stream)
        except (OSError, ValueError) as error:
            if _is_result(stream):
                Output.lost = getattr(error, "strerror", None) or str(error)
            silence(stream)
    return Output.lost
