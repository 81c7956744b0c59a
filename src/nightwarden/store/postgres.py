"""The store in PostgreSQL: the same tables, in a schema of their own, `nightwarden`.

Events go in with COPY. Readers and drivers LISTEN: every commit notifies the run's channel with
its last number, so nobody polls. Leases go by the server's clock, which all machines share.

A connection that breaks is an `Unready`: the writer tries again, and finds out from the run's last
number whether its commit had got through.

Read next: `migrating.py`, `sqlstore.py`.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import conninfo

from nightwarden.errors import StoreError
from nightwarden.store.chain import Row
from nightwarden.store.contract import Lock, Unready
from nightwarden.store.database import Cursor, Watch, key_of
from nightwarden.store.migrating import steps_from

_CONNECT_TIMEOUT_S: Final = "10"
_MIGRATING: Final = 0x4E570001
_BLOBS: Final = 0x4E570002
_ALONE: Final = 0x4E570003
_MAIL: Final = "nightwarden_mail"

_AGAIN: Final = {"40001", "40P01", "55P03"}  # serialisation, deadlock, lock not available
_WAYS: Final = {
    "53100": "has no room: its disk is full; free space there and resume the run",
    "25006": "takes no writes: it is a standby or read-only; name the primary server",
    "3D000": "does not exist on its server: create it with `createdb`",
    "42501": "may not be used like that by this user: it needs the right to CREATE in the database",
}

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresDatabase:
    """Implements `database.Database` for one PostgreSQL database; connects at once."""

    locking = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            why = str(error).split('"', 1)[0].strip()  # what follows quotes the URL
            raise StoreError(
                "the store's URL is no PostgreSQL URL: expected postgresql://user@host:port/name "
                f"({why})"
            ) from error
        self._place = _shown(parts)
        self._settings = {"connect_timeout": _CONNECT_TIMEOUT_S, **parts}
        self._pool: list[Connection] = []
        try:
            with self._connected() as connection:
                self._migrate(connection)
        except StoreError:
            self.close()
            raise

    @property
    def place(self) -> str:
        """Server and database; never the password."""
        return self._place

    def exists(self) -> bool:
        """Its tables are made when it is opened."""
        return True

    @contextlib.contextmanager
    def reading(self) -> Iterator[Cursor]:
        """Reads, each of one moment."""
        with self._connected() as connection, connection.cursor() as cursor:
            yield _PostgresCursor(cursor)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Cursor]:
        """A transaction that writes."""
        with (
            self._connected() as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            yield _PostgresCursor(cursor)

    def watch(self, run: int | None) -> Watch:
        """News of a run; with None, of commands."""
        return _PostgresWatch(self, _MAIL if run is None else _channel(run))

    def alone(self, run: int, what: str, file: Path) -> Lock | None:  # noqa: ARG002
        """By the server: a lock of a connection that is kept open for it."""
        key = zlib.crc32(f"{run} {what}".encode()) - 2**31
        with self.explained():
            connection = self.open()
            asked = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (_ALONE, key))
            if asked.fetchone() == (True,):
                return connection
            connection.close()
            return None

    def tidy(self) -> None:
        """Nothing to do: the server vacuums by itself."""

    def close(self) -> None:
        """Close every connection."""
        while self._pool:
            self._pool.pop().close()

    # -- connections --

    def open(self) -> Connection:
        """A new connection. Raises `Unready` if nothing answers."""
        connection = psycopg.connect(**self._settings, autocommit=True)  # type: ignore[arg-type]
        try:
            connection.execute("SET search_path TO nightwarden")
            # What a commit is worth is not the server's default to decide.
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
        except psycopg.Error:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn psycopg's errors into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self._error(error) from error

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self.explained():
            try:
                connection = self._pool.pop()
            except IndexError:
                connection = self.open()
            try:
                yield connection
            finally:
                self._give(connection)

    def _give(self, connection: Connection) -> None:
        if connection.closed:
            self.close()  # the server went away: the others are of no use either
        elif connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
            self._pool.append(connection)
        else:
            connection.close()

    def _error(self, error: psycopg.Error) -> StoreError:
        state, said = error.sqlstate, str(error).strip().split("\n", 1)[0]
        way = _WAYS.get(state or "")
        if way is not None:
            return StoreError(f"{self._place} {way} ({said})")
        if state is not None and state.startswith("28"):
            return StoreError(f"{self._place} refuses the user or password ({said})")
        if state in _AGAIN:
            return Unready(f"{self._place} is locked by another program; try again ({said})")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return Unready(
                f"{self._place} cannot be reached: is the server running, and host and port right? "
                f"({said})"
            )
        return StoreError(f"{self._place} failed ({said})")

    # -- its form --

    def _migrate(self, connection: Connection) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            # Several processes may open an empty database at once.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            found = cursor.execute("SELECT to_regclass('nightwarden.form')").fetchone()
            if found is None or found[0] is None:
                cursor.execute("CREATE SCHEMA IF NOT EXISTS nightwarden")
                cursor.execute("CREATE TABLE form AS SELECT 0 AS number")
            row = cursor.execute("SELECT number FROM form").fetchone()
            for step in steps_from(row[0] if row else 0, "postgres", self._place):
                for statement in step.statements():
                    cursor.execute(statement.encode())
                cursor.execute("UPDATE form SET number = %s", (step.number,))


class _PostgresCursor:
    """Implements `database.Cursor`."""

    def __init__(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    def do(self, sql: str, *values: object) -> int:
        """Change something; gives the number of rows changed."""
        return self._run(sql, values).rowcount

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """What is found, row by row."""
        return iter(self._run(sql, values).fetchall())

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row."""
        return self._run(sql, values).fetchone()

    def put_events(self, run: int, rows: Sequence[Row]) -> None:
        """Add events with one COPY."""
        with self._cursor.copy(
            "COPY events (id, hash, body) FROM STDIN WITH (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["int8", "bytea", "bytea"])
            for seq, digest, line in rows:
                copy.write_row((key_of(run, seq), digest, line))

    def now(self) -> float:
        """The server's clock."""
        row = self.one("SELECT extract(epoch FROM clock_timestamp())::float8")
        assert row is not None
        return float(row[0])

    def guard_blobs(self) -> None:
        """Wait for the one lock that changes of references need."""
        self.one("SELECT pg_advisory_xact_lock(?)", _BLOBS)

    def tell(self, run: int, seq: int) -> None:
        """Notify the run's channel."""
        self.one("SELECT pg_notify(?, ?)", _channel(run), str(seq))

    def ring(self, run: int) -> None:
        """Notify whoever drives it."""
        self.one("SELECT pg_notify(?, ?)", _MAIL, str(run))

    def _run(self, sql: str, values: Sequence[object]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._cursor.execute(sql.replace("?", "%s").encode(), values)


class _PostgresWatch:
    """Implements `database.Watch` with LISTEN; a broken connection is made anew and is news."""

    def __init__(self, database: PostgresDatabase, channel: str) -> None:
        self._database, self._channel = database, channel
        self._connection: Connection | None = None
        self._listen()

    def changed(self) -> bool:
        """Whether a notification came since the last call."""
        return self.wait(0.0)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a notification."""
        connection = self._connection
        if connection is None or connection.closed:
            self._listen()
            return True
        with self._database.explained():
            news = connection.notifies(timeout=timeout_s, stop_after=1 if timeout_s else None)
            return len(list(news)) > 0

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _listen(self) -> None:
        with self._database.explained():
            self._connection = self._database.open()
            self._connection.execute(f"LISTEN {self._channel}".encode())


def _channel(run: int) -> str:
    return f"nightwarden_{run}"


def _shown(parts: dict[str, Any]) -> str:
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{host}{port}/{parts.get('dbname') or parts.get('user') or ''}"
