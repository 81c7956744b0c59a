"""The seam under the store: what it needs of a database, and no more.

SQL is written once, with `?` for values; an engine says how transactions, event rows, news and
time are had there. Reads see one moment; writes follow one another.

Read next: `sqlite.py`, `postgres.py`, `sqlstore.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from nightwarden.store.chain import Row
from nightwarden.store.contract import Lock

RUN_SHIFT: Final = 40
"""An event's key is its run's number shifted by this, plus its own: one index, no second one."""


def key_of(run: int, seq: int) -> int:
    """The key of an event."""
    return (run << RUN_SHIFT) + seq


def seq_of(key: int) -> int:
    """An event's number in its run."""
    return key & ((1 << RUN_SHIFT) - 1)


class Cursor(Protocol):
    """Statements inside one transaction."""

    def do(self, sql: str, *values: object) -> int:
        """Change something; gives the number of rows changed."""
        ...

    def rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """What is found, row by row: an error in the middle comes after what is readable."""
        ...

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row."""
        ...

    def put_events(self, run: int, rows: Sequence[Row]) -> None:
        """Add events, many at once."""
        ...

    def now(self) -> float:
        """The time in seconds, by the one clock that all who use this database share."""
        ...

    def guard_blobs(self) -> None:
        """Until this transaction ends nobody else adds or removes references to blobs."""
        ...

    def tell(self, run: int, seq: int) -> None:
        """Whoever watches the run learns of its last event when this transaction is through."""
        ...

    def ring(self, run: int) -> None:
        """The run's driver learns that there is a command for it."""
        ...


class Watch(Protocol):
    """News of one run, or of commands to any run; a false alarm is allowed, a miss is not."""

    def changed(self) -> bool:
        """Whether there may be news since the last call; never waits."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for news; False at the timeout."""
        ...

    def close(self) -> None:
        """Let go of its connection."""
        ...


class Database(Protocol):
    """One place where runs are kept."""

    @property
    def place(self) -> str:
        """Where it is, for people; without a password."""
        ...

    @property
    def locking(self) -> str:
        """What a SELECT ends with that locks its row until the transaction ends."""
        ...

    def exists(self) -> bool:
        """Whether anything was ever written there."""
        ...

    def reading(self) -> AbstractContextManager[Cursor]:
        """A transaction that only reads."""
        ...

    def writing(self) -> AbstractContextManager[Cursor]:
        """A transaction that writes: durable when it has ended without an error."""
        ...

    def watch(self, run: int | None) -> Watch:
        """News of a run; with None, of commands."""
        ...

    def alone(self, run: int, what: str, file: Path) -> Lock | None:
        """Be the only one who does this to a run, for all who use this database; None where
        somebody is already. `file` is what to lock where the database has no locks of its own."""
        ...

    def tidy(self) -> None:
        """Give space back after something was deleted."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
