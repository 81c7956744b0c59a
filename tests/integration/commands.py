"""Running the command line as people do: in a pipe, on a terminal, and interrupted.

nightwarden("run", "w.yaml", cwd=…)       one process, its output in pipes
on_terminal("run", "w.yaml", cwd=…)       the same on a pseudo-terminal, and answers to it
started("run", "w.yaml", cwd=…)           left running, to be sent signals
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PATIENCE_S = 60.0  # only reached when a test fails
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
# Only keys typed at a process's own terminal become signals.
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
COMMAND = (sys.executable, "-m", "nightwarden")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard error."""
        return self.err.splitlines()


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's, without what would set something."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NIGHTWARDEN_", "COLUMNS"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}


def nightwarden(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    stdout: int | IO[bytes] = subprocess.PIPE,
    before: Sequence[str] = (),
) -> Done:
    """Run a command to its end. `before` is put before it, such as a shell's limits."""
    done = subprocess.run(
        [*before, *COMMAND, *arguments],
        cwd=cwd,
        env=environment(env),
        input=stdin.encode(),
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    return Done(done.returncode, (done.stdout or b"").decode(), done.stderr.decode())


def started(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Running:
    """Start a command in a process group of its own."""
    return Running(
        subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    )


class Running:
    """A command that goes on, and is killed at the end of its `with` block if it still does."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def wait_for(self, part: str) -> None:
        """Until standard error has a line with this in it; what came before is dropped."""
        assert self._process.stderr is not None
        _wait_in(self._process.stderr, part)

    def wait_for_out(self, part: str) -> None:
        """The same of standard output."""
        assert self._process.stdout is not None
        _wait_in(self._process.stdout, part)

    def send(self, number: int) -> None:
        """Send a signal to the process alone."""
        self._process.send_signal(number)

    def end(self) -> Done:
        """Wait for the end."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return Done(self._process.returncode, out.decode(), err.decode())


def until_one_has_ended(*commands: Running) -> None:
    """Wait for whichever of them ends first."""
    with contextlib.ExitStack() as stack:
        waiting = [os.pidfd_open(command.pid) for command in commands]
        for number in waiting:
            stack.callback(os.close, number)
        assert select.select(waiting, [], [], PATIENCE_S)[0], "none of them ends"


def _wait_in(stream: IO[bytes], part: str) -> None:
    seen = b""
    while line := stream.readline():
        seen += line
        if part in line.decode():
            return
    raise AssertionError(f"{part!r} never came, but {seen.decode()}")


@dataclass(frozen=True)
class Shown:
    """What a terminal was sent: as it was (`raw`), and without control sequences (`text`)."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        return _CONTROL.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in re.split(r"[\r\n]+", self.text)]


def on_terminal(
    *arguments: str,
    cwd: Path,
    answers: Sequence[tuple[str, str]] = (),
    env: Mapping[str, str] | None = None,
    columns: int = 120,
) -> Shown:
    """Run a command on a terminal. `answers`: once this is shown, that is typed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *COMMAND, *arguments],
        cwd=cwd,
        env=environment({"TERM": "xterm-256color", **(env or {})}),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    waiting, seen, answered = list(answers), b"", 0
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if not select.select([master], [], [], 1.0)[0]:
            continue
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        seen += chunk
        if waiting and waiting[0][0].encode() in seen[answered:]:
            answered = len(seen)
            os.write(master, waiting.pop(0)[1].encode())
    os.close(master)
    process.kill() if time.monotonic() >= end else process.wait()
    assert not waiting, f"never asked: {waiting}; shown: {seen.decode()}"
    return Shown(process.wait(), seen.decode())
