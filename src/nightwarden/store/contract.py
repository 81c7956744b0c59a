"""What a store keeps, and what is promised to whoever writes or reads a run.

    create / reopen ─▶ OpenRun: append … barrier … close       one driver a run (lease)
    read · tail · follow · verify · runs                        any process, while it is written
    send ─▶ the driver's `on_command`                           cancel and message from elsewhere

What `barrier` has returned for is never lost; what was appended after it may be, from the end
only. Events are bytes as `events.encode` made them, numbered from 1 without gaps.

Every method may raise `StoreError`. Read next: `sqlstore.py`, `writing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nightwarden.errors import StoreError


class RunBusy(StoreError):
    """Another process drives the run."""


class LeaseLost(StoreError):
    """Another process has taken the run over; nothing more of ours is recorded."""


class Unready(StoreError):
    """The database is locked or cannot be reached; the same call may go through later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One line of the list of runs.

    `status` is the run's own, or `running` / `interrupted` by whether its owner lives. `owner`
    says who drives it, in words; empty if nobody does. Times are UTC as events carry them.
    """

    run_id: str
    workflow: str
    status: str
    supervised: bool
    started_at: str
    ended_at: str
    headline: str
    events: int
    owner: str
    owner_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A word from another process to a run: `kind` is `cancel`, `message` or `steering`."""

    number: int
    kind: str
    body: Mapping[str, Any]
    sent_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Whether a record is whole. `head` is the last good event's hash: note it elsewhere."""

    run_id: str
    events: int
    head: str
    first_bad: int | None = None
    problem: str = ""

    @property
    def whole(self) -> bool:
        """Nothing was changed, removed or added."""
        return self.first_bad is None


class OpenRun(Protocol):
    """A run being driven here. Satisfies the runtime's `Log`."""

    run_id: str
    last_seq: int
    """The number of the last event that was there when the run was opened."""

    def append(self, line: bytes) -> None:
        """Add one encoded event; returns at once. Raises what broke the record, if it is."""
        ...

    def keep(self, data: bytes, source: Path | None = None) -> str:
        """Keep bytes as a blob, durable no later than the events after it; gives its digest.

        `source` is a file that holds just these, and need not be copied where it can be shared.
        """
        ...

    def barrier(self) -> None:
        """Return once everything appended so far is durable."""
        ...

    def when_durable(self, call: Callable[[StoreError | None], None]) -> None:
        """As `barrier`, without waiting: `call` comes from the writer's thread."""
        ...

    def close(self) -> None:
        """Write what is left and let go of the run."""
        ...


class Tail(Protocol):
    """Reads a run as it grows, from one open connection."""

    def read(self, timeout_s: float) -> Sequence[bytes]:
        """The events not read yet, in order; waits for one, and gives none at the timeout."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Blobs(Protocol):
    """Bytes by their SHA-256, written whole or not at all."""

    @property
    def place(self) -> str:
        """Where they are, for people."""
        ...

    def put(self, digest: str, data: bytes, source: Path | None = None) -> None:
        """Keep `data`; durable on return. Keeping the same again changes nothing."""
        ...

    def give(self, digest: str, path: Path) -> bool:
        """Make `path` another name of what was kept, without a copy; False where that cannot be."""
        ...

    def get(self, digest: str) -> bytes:
        """What was kept, checked against its digest."""
        ...

    def has(self, digest: str) -> bool:
        """Whether it is here."""
        ...

    def remove(self, digest: str) -> None:
        """Let go of it, if it is here."""
        ...


class Lock(Protocol):
    """Held until it is closed, or its process is over."""

    def close(self) -> None:
        """Let go."""
        ...


class Store(Protocol):
    """All runs of one place. Safe to use from several threads; close it at the end.

    `run_id` may be the beginning of an id, or `last`, wherever a run has to exist.
    """

    @property
    def place(self) -> str:
        """Where runs are kept, for people; without a password."""
        ...

    @property
    def blobs(self) -> Blobs:
        """Large values."""
        ...

    def create(
        self, run_id: str, *, on_command: Callable[[Command], None] | None = None
    ) -> OpenRun:
        """Open a new run and its record. `on_command` is called from the writer's thread."""
        ...

    def reopen(
        self, run_id: str, *, on_command: Callable[[Command], None] | None = None
    ) -> OpenRun:
        """Drive a recorded run again. Raises `RunBusy` while its owner lives."""
        ...

    def run_ids(self) -> list[str]:
        """All runs, the one that was opened last at the end."""
        ...

    def runs(self) -> list[RunEntry]:
        """The list of runs, in the same order."""
        ...

    def find(self, run_id: str) -> str:
        """The run that is meant: an id, the beginning of one, or `last`."""
        ...

    def entry(self, run_id: str) -> RunEntry:
        """One run of the list."""
        ...

    def read(self, run_id: str, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """The events after a number, as plain mappings."""
        ...

    def lines(self, run_id: str, after: int = 0) -> Iterator[bytes]:
        """The same, as recorded."""
        ...

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The first and the last event, without what lies between."""
        ...

    def tail(self, run_id: str, after: int = 0) -> Tail:
        """Read on while the run is written, here or by another process."""
        ...

    def follow(
        self, run_id: str, after: int = 0, *, stop: Callable[[], bool] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """As `read`, and on until the run's end, until its owner dies, or until `stop()`."""
        ...

    def verify(self, run_id: str) -> Verified:
        """Whether the record is whole."""
        ...

    def send(self, run_id: str, kind: str, body: Mapping[str, object] | None = None) -> int:
        """Leave a word for whoever drives the run, now or next; gives its number."""
        ...

    def taken(self, run_id: str, number: int) -> bool:
        """Whether the driver has taken that word."""
        ...

    def withdraw(self, run_id: str, number: int) -> bool:
        """Take a word back; False if it is too late."""
        ...

    def files(self, run_id: str) -> Path:
        """The folder for a run's own files (assets); goes with the run when it is deleted."""
        ...

    def alone(self, run_id: str, what: str) -> Lock | None:
        """Be the only one who does `what` (a file name) to a run, until the lock is closed or the
        process is over; None where somebody is already."""
        ...

    def delete(self, run_id: str) -> None:
        """Remove a run with everything only it refers to. Raises `RunBusy` while it is driven."""
        ...

    def export_run(self, run_id: str, path: Path) -> None:
        """Put a run with its blobs and files into one file."""
        ...

    def import_run(self, path: Path) -> str:
        """Take in what `export_run` made, if every hash is right; gives the run's id."""
        ...

    def close(self) -> None:
        """End the writer's thread and close every connection."""
        ...
