"""A worker process as its executor holds it: started, killed, buried.

It is started by itself, from nothing (no fork: this process has threads), in a process group of
its own: Ctrl-C in the terminal is not for it, and killing the group ends what a step has started
as well. Its leash does the same where this process is killed. It is waited for only after it was
killed or has ended, under the lock that killing takes: its number cannot have been given to
somebody else.

Read next: `attending.py`, `worker.py`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from typing import Final

from nightwarden.leash import Leash
from nightwarden.runtime.executors.wire import Bye, Channel, Message

FAREWELL_S: Final = 2.0
"""How long an idle process may take to end before it is killed."""

_LOOK_EVERY_MS: Final = 500
"""How often to look whether a silent process is alive: a child of its own may hold the line."""

_BOOT: Final = (
    "import sys, json; start = json.loads(sys.argv[1]); sys.path[:] = start['path']; "
    "sys.argv[:] = start['argv']; from nightwarden.runtime.executors.worker import main; "
    "main(start['fd'], start['levels'])"
)


class Child:
    """One process from start to burial. Raises `OSError` if it cannot be started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buried = ""
        self._leash = Leash()
        ours, theirs = multiprocessing.Pipe()
        try:
            self._process = _started(theirs.fileno(), self._leash)
        except BaseException:
            self._leash.kill()
            ours.close()
            raise
        finally:
            theirs.close()
        self.channel = Channel(ours)
        self._poller = select.poll()
        self._poller.register(ours.fileno(), select.POLLIN)

    def receive(self) -> tuple[Message, bytes]:
        """The next message. Raises `EOFError` or `OSError` when the process is gone."""
        while not self._poller.poll(_LOOK_EVERY_MS):
            if self.ended and not self._poller.poll(0):
                raise EOFError
        return self.channel.receive()

    @property
    def ended(self) -> bool:
        """Whether the process is over; it stays unreaped, so that its number is not given away."""
        if self._buried:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, flags) is not None
        except ChildProcessError:
            return True

    def kill(self) -> None:
        """End the process and its group, now; from any thread."""
        with self._lock:
            self._kill()

    def bury(self) -> str:
        """Make sure that process and group are gone; how the process ended, in words."""
        with self._lock:
            if not self._buried:
                self._kill()
                self._buried = _how(self._process.wait())
                self.channel.close()
            return self._buried

    def dismiss(self) -> None:
        """Let the process end by itself, but not for ever."""
        with contextlib.suppress(OSError, EOFError):
            self.channel.send(Bye())
            while self._poller.poll(FAREWELL_S * 1000):
                self.channel.receive()
        self.bury()

    def _kill(self) -> None:
        if not self._buried and self._process.returncode is None:
            self._leash.kill()
            # Should its mark have been tidied away. Some systems refuse to signal what has ended.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _started(fd: int, leash: Leash) -> subprocess.Popen[bytes]:
    start = {"path": [str(p) for p in sys.path], "argv": sys.argv, "fd": fd, "levels": _levels()}
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return subprocess.Popen(
        leash.command(sys.executable, [*flags, "-c", _BOOT, json.dumps(start)]),
        stdin=subprocess.DEVNULL,
        pass_fds=(fd,),
        process_group=0,
    )


def _levels() -> dict[str, int]:
    """The level of every logger that has one of its own, by name; the root's name is empty."""
    known = logging.Logger.manager.loggerDict
    own = {n: x.level for n, x in list(known.items()) if isinstance(x, logging.Logger) and x.level}
    return {"": logging.getLogger().level, **own}


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (for want of memory, perhaps)" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"
