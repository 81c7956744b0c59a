"""What SQLite says, in words that name the file and the remedy.

Read next: `sqlite.py`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nightwarden.errors import StoreError
from nightwarden.store.contract import Unready

_NETWORK: Final = ("nfs", "cifs", "smb", "sshfs", "afs", "ceph", "gluster", "9p", "davfs", "lustre")

_WAYS: Final = {
    sqlite3.SQLITE_FULL: "has no room: the disk is full; free space and resume the run",
    sqlite3.SQLITE_READONLY: (
        "cannot be written: file or folder is read-only; make it writable, or name another place "
        "with --store"
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened: the folder is missing, read-only or no folder; make it writable, or "
        "name another place with --store"
    ),
    sqlite3.SQLITE_PERM: "may not be opened by this user; change its owner or its permissions",
    sqlite3.SQLITE_AUTH: "may not be opened by this user; change its owner or its permissions",
    sqlite3.SQLITE_NOTADB: "is no SQLite database; name another place with --store",
    sqlite3.SQLITE_CORRUPT: (
        "is damaged; put it aside with its -wal file, export the runs that still read "
        "(`nightwarden runs export`), or recover the rest with `sqlite3 FILE .recover`"
    ),
    sqlite3.SQLITE_IOERR: (
        "could not be read or written (disk full, quota or faulty disk?); free space or name "
        "another place with --store"
    ),
}
_BUSY: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`; `Unready` where trying again may help."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    except OSError as error:
        raise StoreError(
            f"{path} cannot be used: {error.strerror or error}; name another place with --store"
        ) from error


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The error in our words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest is detail of the same kind
    hint = network_hint(path)
    if code in _BUSY:
        return Unready(
            f"{path} is locked by another program; close what has it open (a database browser, "
            f"a backup) and try again{hint}"
        )
    way = _WAYS.get(code, "failed")
    return StoreError(f"{path} {way} ({error}){hint}")


def network_hint(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """A remark if the file lies on a network file system, where SQLite cannot be relied on."""
    kind = _kind_of_mount(path.absolute(), mounts)
    if not any(kind == name or kind.startswith((name, f"fuse.{name}")) for name in _NETWORK):
        return ""
    return (
        f"; it lies on a network file system ({kind}), which SQLite cannot rely on: use a local "
        "folder, or PostgreSQL for several machines"
    )


def _kind_of_mount(path: Path, mounts: Path) -> str:
    best, kind = "", ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if len(point) >= len(best) and path.is_relative_to(point):
            best, kind = point, fields[2]
    return kind
