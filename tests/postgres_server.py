"""A real PostgreSQL server for tests: its own data, its own socket, gone afterwards.

The server refuses to run as root, so a superuser's test run starts it as another user. What is
missing is installed where that may be done; CI must have it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

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
    data, log = folder / "data", folder / "log"
    initdb = ["initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync"]
    _call([programs / initdb[0], *initdb[1:], "--locale=C"], folder, user)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
    control = [programs / "pg_ctl", "-D", data, "-l", log, "-w"]
    try:
        _call([*control, "-o", options, "start"], folder, user)
    except NoServer as error:
        text = log.read_text(errors="replace") if log.exists() else ""
        raise NoServer(f"{error}\n{text[-2000:]}") from error
    try:
        yield
    finally:
        _call([*control, "-m", "immediate", "stop"], folder, user)


def _call(command: list[object], folder: Path, user: str | None) -> None:
    found = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        user=user,
        group=None if user is None else pwd.getpwnam(user).pw_gid,
        extra_groups=None if user is None else [],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        # A server that inherits a pipe keeps it open, and whoever reads it waiting.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    if found.returncode:
        raise NoServer(f"{command[0]} ended with {found.returncode}")


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
        if all((folder / name).is_file() for name in ("initdb", "postgres", "pg_ctl")):
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
