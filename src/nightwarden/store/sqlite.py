"""The store in one SQLite file: WAL, so that readers and the writer do not wait for each other.

Every commit is synced (`synchronous = FULL`); the writer makes few of them. Many rows go in with
one statement, because each statement lets go of the interpreter's lock and has to win it back from
a busy event loop. Readers poll `PRAGMA data_version`, which costs microseconds, 5 to 50 ms apart.

Read next: `sqlite_file.py`, `sqlite_errors.py`, `sqlstore.py`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from nightwarden.store.alone import lock_file
from nightwarden.store.chain import Row
from nightwarden.store.contract import Lock
from nightwarden.store.database import Cursor, Watch, key_of
from nightwarden.store.sqlite_errors import explained
from nightwarden.store.sqlite_file import SqliteFile

_CHUNKS: Final = (512, 64, 8, 1)
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
        self._file = SqliteFile(path, busy_timeout_s)
        self._wall = wall
        self._writes = threading.Lock()
        self._pool: list[sqlite3.Connection] = []

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether there is a file with something in it."""
        return self._file.exists()

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
            return _SqliteWatch(self._file.open(create=False), self.path)

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
            return self._file.open(create=create)

    def _give(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if connection.in_transaction or self._file.as_it_lies:
            connection.close()
        else:
            self._pool.append(connection)


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
