"""A program that is started by somebody else, and ended by us: at once, with all it started.

    command ─▶ sh notes its own number, and becomes the command ─▶ kill() ends its group

The client of a server of tools waits for it to go by itself; an agent that is cancelled cannot.

Read next: `toolset.py`, `shell.py`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_NOTE: Final = 'echo $$ >"$0" && exec "$@"'


class Leash:
    """One program. Whoever starts it has to make it the first of a group of its own."""

    def __init__(self) -> None:
        self._note: Path | None = None

    def command(self, command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
        """What to start instead of a command."""
        fd, name = tempfile.mkstemp(prefix="nightwarden-", suffix=".pid")
        os.close(fd)
        self._note = Path(name)
        return "/bin/sh", ["-c", _NOTE, str(self._note), command, *arguments]

    def kill(self) -> None:
        """End the program, if it was started, and its group. More than once changes nothing."""
        note, self._note = self._note, None
        if note is None:
            return
        with contextlib.suppress(OSError, ValueError):
            text = note.read_text()
            note.unlink()
            os.killpg(int(text), signal.SIGKILL)
