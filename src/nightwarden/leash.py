"""Programs that end when we do, however we end: with all they started, at once.

    command ─▶ sh leaves a mark with its own number, and becomes the command
                 │ kill(): the folder of the mark is taken away, its group is killed
                 └ we are gone: a guard that reads a pipe of ours does the same with every mark

A process that is killed with SIGKILL tidies nothing up, so somebody else has to: one guard a
process, a shell of a few lines that waits for the other end of its input to close. A mark is left
before the program begins, in a folder that is renamed before marks are read; one that comes too
late finds no folder, and its program never begins. So none slips through between.

What leaves its group (`setsid`) is held only where the program was given a mark in its environment,
which everything it starts inherits, and the system shows environments (`/proc`).

Read next: `agents/shell.py`, `agents/toolset.py`, `runtime/executors/child.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_MARK: Final = ': >"$0/$$" && exec "$@"'
_GUARD: Final = """\
trap '' INT TERM HUP QUIT
while read -r _; do :; done
mv "$0" "$0.gone" || exit
for mark in "$0.gone"/*/*; do kill -s KILL -- "-${mark##*/}"; done
for sought in "$0.gone"/*/sought "$0.gone"/*/sought; do  # twice: one may just be starting another
    for one in $(grep -lsFf "$sought" /proc/[0-9]*/environ); do
        one=${one#/proc/}; kill -s KILL "${one%/environ}"
    done
done
rm -rf "$0.gone"
"""
_SHELL: Final = "/bin/sh"
_TIDYING_S: Final = 2.0
_SOUGHT: Final = "sought"
_ROUNDS: Final = 5


class Leash:
    """One program. Whoever starts it has to make it the first of a group of its own.

    `sought` is a variable, as `NAME=value`, that it is started with: long, and its own.
    """

    def __init__(self, sought: str = "") -> None:
        self._sought = sought
        self._marks: Path | None = None

    def command(self, command: str, arguments: Sequence[str]) -> list[str]:
        """What to start instead of a command. Raises `OSError` where no folder can be made."""
        self._marks = Path(tempfile.mkdtemp(dir=guarded()))
        if self._sought:
            (self._marks / _SOUGHT).write_text(self._sought)
        return [_SHELL, "-c", _MARK, str(self._marks), command, *arguments]

    def kill(self) -> None:
        """End the program, if it was started, and its group. More than once changes nothing."""
        marks, self._marks = self._marks, None
        if marks is None:
            return
        gone = marks.with_name(f"{marks.name}.gone")
        with contextlib.suppress(OSError):
            marks.rename(gone)
            for mark in gone.iterdir():
                with contextlib.suppress(OSError, ValueError):
                    os.killpg(int(mark.name), signal.SIGKILL)
        if self._sought:
            kill_bearing(self._sought)
        shutil.rmtree(gone, ignore_errors=True)


def kill_bearing(sought: str, processes: Path = Path("/proc")) -> int:
    """Kill what has this variable in its environment; how many there were. Looks again until none
    is left, for what is killed may just have started another. Does nothing without `/proc`."""
    killed = 0
    for _ in range(_ROUNDS):
        found = [pid for pid in _pids(processes) if sought.encode() in _variables(processes, pid)]
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
        killed += len(found)
    return killed


def _pids(processes: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(processes) if name.isdigit()]
    except OSError:
        return []


def _variables(processes: Path, pid: int) -> list[bytes]:
    """Empty for what is gone, is somebody else's, or has ended and waits to be noticed."""
    try:
        return (processes / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class _Guard:
    """The process that ends ours after us."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nightwarden-"))
        self._process = subprocess.Popen(
            [_SHELL, "-c", _GUARD, str(self.folder)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def watches(self) -> bool:
        """Whether it can still do its work: some systems tidy up what is old in `/tmp`."""
        return self._process.poll() is None and self.folder.is_dir()

    def forget(self) -> None:
        """Close our end without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        """Let it kill what is left, and go."""
        self.forget()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TIDYING_S)


_guards: Final[list[_Guard]] = []
_lock = threading.Lock()


def guarded() -> Path:
    """The folder a guard of this process looks into. It is removed when this process is gone,
    with all that is in it."""
    with _lock:
        if not _guards or not _guards[-1].watches:
            _guards.append(_Guard())
        return _guards[-1].folder


def _end_all() -> None:
    for guard in _guards:
        guard.end()


def _new_process() -> None:
    """A fork must not keep the guards of its parent from noticing that it is gone."""
    global _lock  # noqa: PLW0603  (another thread may have held it)
    _lock = threading.Lock()
    for guard in _guards:
        guard.forget()
    _guards.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_new_process)
