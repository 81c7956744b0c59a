"""One SQLite file, opened: made for its owner, known as ours, in its newest form, with a WAL.

    nothing there ─▶ made, 0600 ─▶ ours? ─▶ migrated ─▶ synced at every commit
    read-only     ─▶ as it is; as it lies where nothing is in the WAL

Reading needs no right to write: where the folder is read-only, the file is opened as it lies.

Read next: `migrating.py`, `sqlite_errors.py`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nightwarden.errors import StoreError
from nightwarden.store.migrating import steps_from
from nightwarden.store.sqlite_errors import explained

APPLICATION_ID: Final = 0x4E576462
"""`NWdb`: tells our files from other programs'."""

_SMALLEST: Final = 512
"""Bytes of the smallest page: a file below that is none of SQLite's, but is taken for empty."""

_CHECKPOINT_PAGES: Final = 4096


class SqliteFile:
    """Where connections to one file come from. `as_it_lies`: they may not outlast a reading."""

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self.as_it_lies = False
        self._busy_timeout_s = busy_timeout_s
        self._ready = False

    def exists(self) -> bool:
        """Whether there is a file with something in it."""
        with explained(self.path):
            try:
                return self.path.stat().st_size > 0
            except (FileNotFoundError, NotADirectoryError):
                return False

    def open(self, *, create: bool) -> sqlite3.Connection:
        """A connection. Raises `StoreError` for no file, another program's, or a newer form."""
        if create and not self._ready:
            _make_file(self.path)
        elif not self.exists():
            raise StoreError(f"no run is recorded in {self.path}; --store names another place")
        connection = self._connect()
        try:
            _check_ours(connection, self.path)
            if not self._ready:
                self._migrate(connection)
                self._ready = True
            connection.execute("PRAGMA synchronous = FULL")
            # What was taken out of a page is not left lying in it.
            connection.execute("PRAGMA secure_delete = FAST")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> sqlite3.Connection:
        """Writable if it can be; else read-only; else as it lies, if nothing is in the WAL."""
        uri = f"file:{quote(str(self.path.absolute()))}"
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            return self._connected(f"{uri}?mode=rw")
        wal = self.path.with_name(self.path.name + "-wal")
        self.as_it_lies = not wal.exists() or wal.stat().st_size == 0
        return self._connected(f"{uri}?mode=ro" + ("&immutable=1" if self.as_it_lies else ""))

    def _connected(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if not steps_from(_version(connection), "sqlite", str(self.path)):
            return
        if _version(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._into_wal(connection)
        connection.execute("BEGIN IMMEDIATE")
        with _rolled_back(connection):
            # Another process may have been quicker.
            for step in steps_from(_version(connection), "sqlite", str(self.path)):
                for statement in step.statements():
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {step.number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")

    def _into_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL. SQLite does not wait for others here, so we do."""
        end = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                break
        if mode != "wal":
            raise StoreError(
                f"{self.path} cannot keep a write-ahead log (it stays in mode {mode}): the file "
                "system has no shared memory; use a local folder"
            )


def _make_file(path: Path) -> None:
    """The file, for its owner only; SQLite gives the files beside it the same rights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if 0 < path.stat().st_size < _SMALLEST:  # SQLite would write over it
            raise StoreError(
                f"{path} is no SQLite database; name another place with --store"
            ) from None


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    # In this order: whoever makes the database at this moment commits both at once, and a
    # mark read before that would not belong to the tables seen after it.
    used = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    ours = connection.execute("PRAGMA application_id").fetchone()[0]
    if used and ours != APPLICATION_ID:
        raise StoreError(f"{path} is another program's database; name another place with --store")


@contextlib.contextmanager
def _rolled_back(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
