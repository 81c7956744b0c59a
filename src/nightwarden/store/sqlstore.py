"""The store over a database: implements `contract.Store` once, for SQLite and PostgreSQL.

What it does is next door: driving in `writing.py`, leases in `holding.py`, reading in
`reading.py` and `following.py`, whole runs in `keeping.py` and `archive.py`.

Read next: `writing.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from nightwarden.errors import StoreError
from nightwarden.store.appending import RunWriter
from nightwarden.store.archive import read_archive, write_archive
from nightwarden.store.chain import first_hash
from nightwarden.store.commanding import leave_command
from nightwarden.store.contract import Blobs, Command, Lock, RunEntry, Verified
from nightwarden.store.database import Database
from nightwarden.store.following import RunTail, decoded, follow_tail
from nightwarden.store.holding import free_to_take, put_lease, take_lease
from nightwarden.store.keeping import (
    Intake,
    mark_opened,
    named_in,
    new_run,
    references,
    remove_run,
    sweep,
)
from nightwarden.store.leases import BEAT_S, Place, here
from nightwarden.store.reading import Reading, intact
from nightwarden.store.writing import GroupWriter

OnCommand = Callable[[Command], None]


class SqlStore:
    """All runs of one database. `folder` holds the runs' own files.

    `me` is this process as its leases name it.
    """

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        folder: Path,
        *,
        me: Place | None = None,
        patience_s: float = 30.0,
        beat_s: float = BEAT_S,
    ) -> None:
        self.database = database
        self._blobs = blobs
        self._folder = folder
        self._me = me or here()
        self._reading = Reading(database, self._me)
        self._writer = GroupWriter(database, blobs, patience_s=patience_s, beat_s=beat_s)

    @property
    def place(self) -> str:
        """Where runs are kept, for people."""
        return self.database.place

    @property
    def folder(self) -> Path:
        """Where the runs' own files lie, and what else is kept beside them."""
        return self._folder

    @property
    def blobs(self) -> Blobs:
        """Large values."""
        return self._blobs

    # -- driving --

    def create(self, run_id: str, *, on_command: OnCommand | None = None) -> RunWriter:
        """Open a new run. Raises `StoreError` if its id is taken."""
        owner = uuid.uuid4().hex
        with self.database.writing() as cursor:
            run = new_run(cursor, run_id)
            if run is None:
                raise StoreError(
                    f"run {run_id} exists in {self.place}: a run is recorded once; choose another "
                    "id, or resume it"
                )
            put_lease(cursor, run, owner, self._me)
        return self._opened(run_id, run, owner, 0, first_hash(run_id), on_command)

    def reopen(self, run_id: str, *, on_command: OnCommand | None = None) -> RunWriter:
        """Drive a recorded run again. Raises `RunBusy` while its owner lives."""
        run_id, run = self._reading.numbered(run_id)
        owner = uuid.uuid4().hex
        dead = free_to_take(self.database, run_id, run, self._me)
        with self.database.writing() as cursor:
            found = cursor.one(
                f"SELECT last_seq, head FROM runs WHERE no = ?{self.database.locking}", run
            )
            if found is None:
                raise self._reading.gone(run_id)
            head = intact(found[1], self.place)
            take_lease(cursor, run_id, run, dead=dead, owner=owner, me=self._me)
            mark_opened(cursor, run)
        return self._opened(run_id, run, owner, int(found[0]), head, on_command)

    def _opened(
        self,
        run_id: str,
        run: int,
        owner: str,
        last_seq: int,
        head: bytes,
        on_command: OnCommand | None,
    ) -> RunWriter:
        opened = RunWriter(
            self._writer,
            run_id=run_id,
            run=run,
            owner=owner,
            last_seq=last_seq,
            head=head,
            on_command=on_command,
        )
        self._writer.add(opened)
        return opened

    # -- reading --

    def run_ids(self) -> list[str]:
        """All runs, the one that was opened last at the end."""
        return self._reading.run_ids()

    def runs(self) -> list[RunEntry]:
        """The list of runs, in the same order."""
        return self._reading.entries()

    def find(self, run_id: str) -> str:
        """The run that is meant: an id, the beginning of one, or `last`."""
        return self._reading.numbered(run_id)[0]

    def entry(self, run_id: str) -> RunEntry:
        """One run of the list."""
        return self._reading.entry(run_id)

    def read(self, run_id: str, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """The events after a number, as plain mappings."""
        run_id, run = self._reading.numbered(run_id)
        return (decoded(run_id, seq, line) for seq, _, line in self._reading.rows(run, after))

    def lines(self, run_id: str, after: int = 0) -> Iterator[bytes]:
        """The same, as recorded."""
        _, run = self._reading.numbered(run_id)
        return (line for _, _, line in self._reading.rows(run, after))

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The first and the last event, without what lies between."""
        run_id, run = self._reading.numbered(run_id)
        return (decoded(run_id, seq, line) for seq, line in self._reading.ends(run))

    def tail(self, run_id: str, after: int = 0) -> RunTail:
        """Read on while the run is written."""
        _, run = self._reading.numbered(run_id)
        watch = self.database.watch(run)
        return RunTail(lambda seq: self._reading.page(run, seq), watch, after)

    def follow(
        self, run_id: str, after: int = 0, *, stop: Callable[[], bool] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """As `read`, and on until the run's end, until its owner dies, or until `stop()`."""
        run_id, run = self._reading.numbered(run_id)
        return follow_tail(
            self.tail(run_id, after),
            run_id=run_id,
            is_over=lambda: not self._reading.entry_of(run_id, run).owner_alive,
            stop=stop,
        )

    def verify(self, run_id: str) -> Verified:
        """Whether the record is whole."""
        return self._reading.verify(run_id)

    # -- words to a run --

    def send(self, run_id: str, kind: str, body: Mapping[str, object] | None = None) -> int:
        """Leave a word for whoever drives the run, now or next; gives its number."""
        _, run = self._reading.numbered(run_id)
        with self.database.writing() as cursor:
            return leave_command(cursor, run, kind, body or {})

    def taken(self, run_id: str, number: int) -> bool:
        """Whether the driver has taken that word."""
        _, run = self._reading.numbered(run_id)
        with self.database.reading() as cursor:
            found = cursor.one(
                "SELECT taken_at FROM commands WHERE run = ? AND no = ?", run, number
            )
        return found is not None and found[0] != ""

    def withdraw(self, run_id: str, number: int) -> bool:
        """Take a word back; False if it is too late."""
        _, run = self._reading.numbered(run_id)
        with self.database.writing() as cursor:
            gone = cursor.do(
                "DELETE FROM commands WHERE run = ? AND no = ? AND taken_at = ''", run, number
            )
        return bool(gone)

    # -- whole runs --

    def files(self, run_id: str) -> Path:
        """The folder for a run's own files."""
        return self._folder / "runs" / run_id

    def alone(self, run_id: str, what: str) -> Lock | None:
        """Be the only one who does `what` to a run; None where somebody is already."""
        run_id, run = self._reading.numbered(run_id)
        return self.database.alone(run, what, self.files(run_id) / "alone" / f"{what}.lock")

    def references(self, run_id: str) -> dict[str, int]:
        """The blobs a run's record has, with their sizes in bytes; those that are missing, too."""
        run_id, run = self._reading.numbered(run_id)
        found = references(self.database, run)
        lacking = {digest for digest in found if not self._blobs.has(digest)}
        if lacking:  # some may never have been put, because the disk was full
            lacking -= named_in(self.lines(run_id), lacking)
        return {digest: size for digest, size in found.items() if digest not in lacking}

    def delete(self, run_id: str) -> None:
        """Remove a run with everything only it refers to."""
        run_id, run = self._reading.numbered(run_id)
        remove_run(self.database, run_id, run, self._me)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.files(run_id))
        sweep(self.database, self._blobs)

    def export_run(self, run_id: str, path: Path) -> None:
        """Put a run with its blobs and files into one file."""
        write_archive(self, self.find(run_id), path)

    def import_run(self, path: Path) -> str:
        """Take in what `export_run` made, if every hash is right; gives the run's id."""
        return read_archive(self, path)

    @contextlib.contextmanager
    def taking_in(self, run_id: str) -> Iterator[Intake]:
        """Add a whole run, or nothing of it. Raises `StoreError` if it is here already."""
        with self.database.writing() as cursor:
            run = new_run(cursor, run_id)
            if run is None:
                raise StoreError(
                    f"run {run_id} is in {self.place} already; delete it there first to take this "
                    "one in"
                )
            cursor.guard_blobs()
            yield Intake(cursor, run, self._blobs)

    def close(self) -> None:
        """End the writer's thread and close every connection."""
        self._writer.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
