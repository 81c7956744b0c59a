"""The store in one SQLite file: WAL, so that readers and the writer do not wait for each other.

Every commit is synced (`synchronous = FULL`); the writer makes few of them. Many rows go in with
one statement, because each statement lets go of the interpreter's lock and has to win it back from
a busy event loop. Readers poll `PRAGMA data_version`, which costs microseconds, 5 to 50 ms apart.

Reading needs no right to write: where the folder is read-only, the file is opened as it lies.

Read next: `sqlite_errors.py`, `sqlstore.py`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from nightwarden.errors import StoreError
from nightwarden.store.alone import lock_file
from nightwarden.store.chain import Row
from nightwarden.store.contract import Lock
from nightwarden.store.database import Cursor, Watch, key_of
from nightwarden.store.migrating import steps_from
from nightwarden.store.sqlite_errors import explained

APPLICATION_ID: Final = 0x4E576462
"""`NWdb`: tells our files from other programs'."""

_SMALLEST: Final = 512
"""Bytes of the smallest page: a file below that is none of SQLite's, but is taken for empty."""

_CHUNKS: Final = (512, 64, 8, 1)
_CHECKPOINT_PAGES: Final = 4096
_INSERTS: Final = {
    count: "INSERT INTO events (id, hash, body) VALUES " + ", ".join(["(?, ?, ?)"] * count)
    for count in _CHUNKS
}
_POLLS_S: Final = (0.005, 0.05)


class SqliteDatabase:
    """Implements `database.Database` for one file. `wall` is the clock of its leases."""

    locking = ""  # a writing transaction has the whole file to itself

    def __init__(
        self, path: Path, *, busy_timeout_s: float = 10.0, wall: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._wall = wall
        self._writes = threading.Lock()
        self._pool: list[sqlite3.Connection] = []
        self._ready = self._as_it_lies = False

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether there is a file with something in it."""
        with explained(self.path):
            try:
                return self.path.stat().st_size > 0
            except (FileNotFoundError, NotADirectoryError):
                return False

    @contextlib.contextmanager
    def reading(self) -> Iterator[Cursor]:
        """A transaction that only reads; the file has to be there."""
        with explained(self.path):
            connection = self._take(create=False)
            try:
                connection.execute("BEGIN")
                yield _SqliteCursor(connection, self._wall)
            finally:
                self._give(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Cursor]:
        """A transaction that writes; makes the file if there is none."""
        with explained(self.path), self._writes:
            connection = self._take(create=True)
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield _SqliteCursor(connection, self._wall)
                connection.execute("COMMIT")
            finally:
                self._give(connection)

    def watch(self, run: int | None) -> Watch:  # noqa: ARG002  (a file has news of all runs)
        """News of the file."""
        with explained(self.path):
            return _SqliteWatch(self._open(create=False), self.path)

    def alone(self, run: int, what: str, file: Path) -> Lock | None:  # noqa: ARG002
        """By a file: all who use the database are on this machine."""
        return lock_file(file)

    def tidy(self) -> None:
        """Give free pages back to the file system."""
        with explained(self.path), self._writes:
            connection = self._take(create=True)
            try:
                # `execute` would stop after the first page, since no column comes back.
                connection.executescript("PRAGMA incremental_vacuum")
            finally:
                self._give(connection)

    def close(self) -> None:
        """Close every connection; the last one of all puts the WAL into the file."""
        while self._pool:
            self._pool.pop().close()

    # -- connections --

    def _take(self, *, create: bool) -> sqlite3.Connection:
        try:
            return self._pool.pop()
        except IndexError:
            return self._open(create=create)

    def _give(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if connection.in_transaction or self._as_it_lies:
            connection.close()
        else:
            self._pool.append(connection)

    def _open(self, *, create: bool) -> sqlite3.Connection:
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
        self._as_it_lies = not wal.exists() or wal.stat().st_size == 0
        return self._connected(f"{uri}?mode=ro" + ("&immutable=1" if self._as_it_lies else ""))

    def _connected(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if not steps_from(_version(connection), "sqlite", self.place):
            return
        if _version(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._into_wal(connection)
        connection.execute("BEGIN IMMEDIATE")
        with _rolled_back(connection):
            # Another process may have been quicker.
            for step in steps_from(_version(connection), "sqlite", self.place):
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


class _SqliteCursor:
    """Implements `database.Cursor`."""

    def __init__(self, connection: sqlite3.Connection, wall: Callable[[], float]) -> None:
        self._connection = connection
        self._wall = wall

    def do(self, sql: str, *values: object) -> int:
        """Change something; gives the number of rows changed."""
        return self._connection.execute(sql, values).rowcount

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """What is found, row by row."""
        return self._connection.execute(sql, values)

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row."""
        rows = self._connection.execute(sql, values).fetchall()
        return rows[0] if rows else None

    def put_events(self, run: int, rows: Sequence[Row]) -> None:
        """Add events, as many as one statement takes at a time."""
        start, before = 0, key_of(run, 0)
        for size in _CHUNKS:
            while len(rows) - start >= size:
                flat: list[object] = []
                for seq, digest, line in rows[start : start + size]:
                    flat += (before + seq, digest, line)
                self._connection.execute(_INSERTS[size], flat)
                start += size

    def now(self) -> float:
        """The machine's clock: one file, one machine."""
        return self._wall()

    def guard_blobs(self) -> None:
        """Nothing to do: a writing transaction is alone."""

    def tell(self, run: int, seq: int) -> None:
        """Nothing to do: readers see that the file changed."""

    def ring(self, run: int) -> None:
        """Nothing to do: the driver sees that the file changed."""


class _SqliteWatch:
    """Implements `database.Watch` with `PRAGMA data_version` on a connection of its own."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._seen = self._version()

    def changed(self) -> bool:
        """Whether another connection committed since the last call."""
        now = self._version()
        before, self._seen = self._seen, now
        return now != before

    def wait(self, timeout_s: float) -> bool:
        """Look every 5 ms at first, then less and less often, every 50 ms at last."""
        end = time.monotonic() + timeout_s
        pause, longest = _POLLS_S
        while not self.changed():
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, longest)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _version(self) -> int:
        with explained(self._path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


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
