"""A real PostgreSQL server for tests: its own data, its own socket, gone afterwards.

The server refuses to run as root, so a superuser's test run starts it as another user. What is
missing is installed where that may be done; CI must have it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

UNPRIVILEGED = ("postgres", "nobody")


class NoServer(Exception):
    """No PostgreSQL server can be had here; says why."""


@contextlib.contextmanager
def running_server() -> Iterator[Path]:
    """Start a server; gives the folder of its socket. Raises `NoServer`."""
    programs = _programs() or _installed()
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="nw-pg-"))
    try:
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        else:
            folder.chmod(0o700)
        with _started(programs, folder, user):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(programs: Path, folder: Path, user: str | None) -> Iterator[None]:
    """The server as our own child, so that nobody else has to notice its end."""
    data, log = folder / "data", folder / "log"
    initdb = [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8"]
    with log.open("wb") as output:
        made = _begun([*initdb, "--no-sync", "--locale=C"], folder, user, output)
        if made.wait(120):
            raise NoServer(f"initdb ended with {made.returncode}: {_said(log)}")
        settings = ["listen_addresses=", "fsync=off", "max_connections=60"]
        options = [part for setting in settings for part in ("-c", setting)]
        server = _begun(
            [programs / "postgres", "-D", data, "-k", folder, *options], folder, user, output
        )
    try:
        _wait_until_ready(programs, folder, server, log)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nobody needs what is in it
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_ready(
    programs: Path, folder: Path, server: subprocess.Popen[bytes], log: Path
) -> None:
    asks = [str(programs / "pg_isready"), "-q", "-h", str(folder)]
    end = time.monotonic() + 60
    while subprocess.run(asks, check=False).returncode:
        if server.poll() is not None or time.monotonic() > end:
            raise NoServer(f"the server does not start: {_said(log)}")
        time.sleep(0.05)


def _begun(
    command: list[object], folder: Path, user: str | None, output: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        user=user,
        group=None if user is None else pwd.getpwnam(user).pw_gid,
        extra_groups=None if user is None else [],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def _said(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def _user() -> str | None:
    if os.getuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise NoServer(f"root may not run it, and none of {', '.join(UNPRIVILEGED)} exists")


def _programs() -> Path | None:
    """Where the server's programs are; Debian keeps them out of the PATH."""
    named = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    for folder in [*([Path(named).resolve().parent] if named else []), *folders]:
        if all((folder / name).is_file() for name in ("initdb", "postgres", "pg_isready")):
            return folder
    return None


def _version(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


def _installed() -> Path:
    if os.getuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", "postgresql"]):
            subprocess.run(
                ["apt-get", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=600,
                check=False,
            )
    found = _programs()
    if found is None:
        raise NoServer("no server is installed; on Debian or Ubuntu: apt-get install postgresql")
    return found
