"""The store over a database: implements `contract.Store` once, for SQLite and PostgreSQL.

Reads go in pages, each a short transaction: a slow reader never holds the writer up, and the
record only grows, so pages fit together.

Read next: `writing.py`, `holding.py`, `archive.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nightwarden.errors import StoreError
from nightwarden.store.archive import export_run, import_run
from nightwarden.store.chain import Row, first_hash, verified
from nightwarden.store.commanding import leave_command
from nightwarden.store.contract import Blobs, Command, RunEntry, Verified
from nightwarden.store.database import Cursor, Database, key_of, seq_of
from nightwarden.store.facts import facts_in
from nightwarden.store.following import RunTail, decoded, follow_tail
from nightwarden.store.holding import (
    busy,
    find_lease,
    free_to_take,
    lease_of,
    put_lease,
    take_lease,
)
from nightwarden.store.journal import put_facts, put_references
from nightwarden.store.leases import BEAT_S, Life, Place, here, judge
from nightwarden.store.naming import meant
from nightwarden.store.writing import GroupWriter, RunWriter

_PAGE: Final = 1000
_ENTRY: Final = (
    "SELECT r.id, r.workflow, r.status, r.supervised, r.started_at, r.ended_at, r.headline, "
    "r.last_seq, l.owner, l.place, l.beats, l.beat_at, l.ttl_s "
    "FROM runs r LEFT JOIN leases l ON l.run = r.no "
)

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
        self._writer = GroupWriter(database, blobs, patience_s=patience_s, beat_s=beat_s)

    @property
    def place(self) -> str:
        """Where runs are kept, for people."""
        return self.database.place

    @property
    def blobs(self) -> Blobs:
        """Large values."""
        return self._blobs

    # -- driving --

    def create(self, run_id: str, *, on_command: OnCommand | None = None) -> RunWriter:
        """Open a new run. Raises `StoreError` if its id is taken."""
        head, owner = first_hash(run_id), uuid.uuid4().hex
        with self.database.writing() as cursor:
            run = self._new_run(cursor, run_id, head)
            if run is None:
                raise StoreError(
                    f"run {run_id} exists in {self.place}: a run is recorded once; choose another "
                    "id, or resume it"
                )
            put_lease(cursor, run, owner, self._me)
        return self._opened(run_id, run, owner, 0, head, on_command)

    def reopen(self, run_id: str, *, on_command: OnCommand | None = None) -> RunWriter:
        """Drive a recorded run again. Raises `RunBusy` while its owner lives."""
        run_id, run = self._numbered(run_id)
        owner = uuid.uuid4().hex
        dead = free_to_take(self.database, run_id, run, self._me)
        with self.database.writing() as cursor:
            found = cursor.one(
                f"SELECT last_seq, head FROM runs WHERE no = ?{self.database.locking}", run
            )
            if found is None:
                raise StoreError(f"run {run_id} was deleted from {self.place} just now")
            take_lease(cursor, run_id, run, dead=dead, owner=owner, me=self._me)
            _mark_opened(cursor, run)
        return self._opened(run_id, run, owner, int(found[0]), bytes(found[1]), on_command)

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

    def _new_run(self, cursor: Cursor, run_id: str, head: bytes) -> int | None:
        row = cursor.one(
            "INSERT INTO runs (id, head) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING no",
            run_id,
            head,
        )
        if row is None:
            return None
        _mark_opened(cursor, int(row[0]))
        return int(row[0])

    # -- the list of runs --

    def run_ids(self) -> list[str]:
        """All runs, the one that was opened last at the end."""
        if not self.database.exists():
            return []
        with self.database.reading() as cursor:
            return [row[0] for row in cursor.rows("SELECT id FROM runs ORDER BY opened, no")]

    def runs(self) -> list[RunEntry]:
        """The list of runs, in the same order."""
        if not self.database.exists():
            return []
        with self.database.reading() as cursor:
            rows = list(cursor.rows(f"{_ENTRY} ORDER BY r.opened, r.no"))
            now = cursor.now()
        return [self._entry(row, now) for row in rows]

    def find(self, run_id: str) -> str:
        """The run that is meant: an id, the beginning of one, or `last`."""
        return self._numbered(run_id)[0]

    def entry(self, run_id: str) -> RunEntry:
        """One run of the list."""
        run_id, run = self._numbered(run_id)
        with self.database.reading() as cursor:
            row, now = cursor.one(f"{_ENTRY} WHERE r.no = ?", run), cursor.now()
        if row is None:
            raise StoreError(f"run {run_id} was deleted from {self.place} just now")
        return self._entry(row, now)

    def _entry(self, row: tuple[Any, ...], now: float) -> RunEntry:
        run_id, workflow, status, supervised, started_at, ended_at, headline, events = row[:8]
        lease = None if row[8] is None else lease_of(row[8:])
        alive = lease is not None and judge(lease, now, self._me) is Life.ALIVE
        return RunEntry(
            run_id=run_id,
            workflow=workflow,
            status=status or ("running" if alive else "interrupted"),
            supervised=bool(supervised),
            started_at=started_at,
            ended_at=ended_at,
            headline=headline,
            events=events,
            owner="" if lease is None else str(lease.place),
            owner_alive=alive,
        )

    def _numbered(self, run_id: str) -> tuple[str, int]:
        """The run that is meant, with its number here. Most often its id is given in full."""
        if self.database.exists():
            with self.database.reading() as cursor:
                row = cursor.one("SELECT no FROM runs WHERE id = ?", run_id)
                if row is None:
                    run_id = meant(run_id, self.run_ids(), self.place)
                    row = cursor.one("SELECT no FROM runs WHERE id = ?", run_id)
            if row is not None:
                return run_id, int(row[0])
        return meant(run_id, (), self.place), 0

    # -- reading --

    def read(self, run_id: str, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """The events after a number, as plain mappings."""
        run_id, run = self._numbered(run_id)
        for number, _, line in self._rows(run, after):
            yield decoded(run_id, number, line)

    def lines(self, run_id: str, after: int = 0) -> Iterator[bytes]:
        """The same, as recorded."""
        for _, _, line in self._rows(self._numbered(run_id)[1], after):
            yield line

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The first and the last event, without what lies between."""
        run_id, run = self._numbered(run_id)
        with self.database.reading() as cursor:
            found = cursor.one("SELECT last_seq FROM runs WHERE no = ?", run)
            last = 0 if found is None else int(found[0])
            wanted = [key_of(run, seq) for seq in sorted({1, last}) if seq <= last]
            rows = [cursor.one("SELECT id, body FROM events WHERE id = ?", key) for key in wanted]
        for row in rows:
            if row is not None:
                yield decoded(run_id, seq_of(row[0]), bytes(row[1]))

    def tail(self, run_id: str, after: int = 0) -> RunTail:
        """Read on while the run is written."""
        _, run = self._numbered(run_id)
        return RunTail(lambda seq: self._page_or_raise(run, seq), self.database.watch(run), after)

    def follow(
        self, run_id: str, after: int = 0, *, stop: Callable[[], bool] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """As `read`, and on until the run's end, until its owner dies, or until `stop()`."""
        run_id = self.find(run_id)
        return follow_tail(
            self.tail(run_id, after),
            run_id=run_id,
            is_over=lambda: not self.entry(run_id).owner_alive,
            stop=stop,
        )

    def verify(self, run_id: str) -> Verified:
        """Whether the record is whole."""
        run_id, run = self._numbered(run_id)
        with self.database.reading() as cursor:
            # In one statement, for the run may be growing.
            found = cursor.one(
                "SELECT last_seq, head, (SELECT max(id) FROM events WHERE id > ? AND id < ?) "
                "FROM runs WHERE no = ?",
                key_of(run, 0),
                key_of(run + 1, 0),
                run,
            )
        if found is None:
            raise StoreError(f"run {run_id} was deleted from {self.place} just now")
        last_seq, head, last_key = found
        until = max(int(last_seq), 0 if last_key is None else seq_of(last_key))
        rows = (row for row in self._rows(run, 0) if row[0] <= until)
        return verified(run_id, rows, int(last_seq), bytes(head))

    def _rows(self, run: int, after: int) -> Iterator[Row]:
        while True:
            page, problem = self._page(run, after)
            yield from page
            if problem is not None:
                raise problem
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def _page_or_raise(self, run: int, after: int) -> list[Row]:
        page, problem = self._page(run, after)
        if problem is not None and not page:
            raise problem
        return page

    def _page(self, run: int, after: int) -> tuple[list[Row], StoreError | None]:
        """Some events, and what kept us from reading on: what can be read is read."""
        page: list[Row] = []
        try:
            with self.database.reading() as cursor:
                for key, digest, body in cursor.rows(
                    "SELECT id, hash, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
                    key_of(run, after),
                    key_of(run + 1, 0),
                    _PAGE,
                ):
                    page.append((seq_of(key), bytes(digest), bytes(body)))
        except StoreError as error:
            return page, error
        return page, None

    # -- words to a run --

    def send(self, run_id: str, kind: str, body: Mapping[str, object] | None = None) -> int:
        """Leave a word for whoever drives the run, now or next; gives its number."""
        _, run = self._numbered(run_id)
        with self.database.writing() as cursor:
            return leave_command(cursor, run, kind, body or {})

    def taken(self, run_id: str, number: int) -> bool:
        """Whether the driver has taken that word."""
        _, run = self._numbered(run_id)
        with self.database.reading() as cursor:
            found = cursor.one(
                "SELECT taken_at FROM commands WHERE run = ? AND no = ?", run, number
            )
        return found is not None and found[0] != ""

    def withdraw(self, run_id: str, number: int) -> bool:
        """Take a word back; False if it is too late."""
        _, run = self._numbered(run_id)
        with self.database.writing() as cursor:
            return bool(
                cursor.do(
                    "DELETE FROM commands WHERE run = ? AND no = ? AND taken_at = ''", run, number
                )
            )

    # -- keeping, moving, removing --

    def files(self, run_id: str) -> Path:
        """The folder for a run's own files."""
        return self._folder / "runs" / run_id

    def references(self, run_id: str) -> dict[str, int]:
        """The blobs a run refers to, with their sizes in bytes."""
        _, run = self._numbered(run_id)
        with self.database.reading() as cursor:
            return dict(
                cursor.rows("SELECT digest, size FROM run_blobs WHERE run = ? ORDER BY digest", run)
            )

    def delete(self, run_id: str) -> None:
        """Remove a run with everything only it refers to."""
        run_id, run = self._numbered(run_id)
        with self.database.writing() as cursor:
            cursor.one(f"SELECT no FROM runs WHERE no = ?{self.database.locking}", run)
            held = find_lease(cursor, run, self._me)
            if held is not None and held.life is Life.ALIVE:
                raise busy(run_id, held)
            cursor.guard_blobs()
            cursor.do(
                "INSERT INTO doomed_blobs (digest) SELECT digest FROM run_blobs WHERE run = ? "
                "ON CONFLICT DO NOTHING",
                run,
            )
            for table in ("leases", "commands", "run_blobs"):
                cursor.do(f"DELETE FROM {table} WHERE run = ?", run)
            cursor.do(
                "DELETE FROM events WHERE id > ? AND id < ?", key_of(run, 0), key_of(run + 1, 0)
            )
            cursor.do("DELETE FROM runs WHERE no = ?", run)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.files(run_id))
        self.sweep()

    def sweep(self) -> None:
        """Remove blobs of deleted runs that no other run refers to; also after a crash."""
        with self.database.writing() as cursor:
            cursor.guard_blobs()
            for (digest,) in list(cursor.rows("SELECT digest FROM doomed_blobs")):
                if cursor.one("SELECT 1 FROM run_blobs WHERE digest = ? LIMIT 1", digest) is None:
                    self._blobs.remove(digest)
                cursor.do("DELETE FROM doomed_blobs WHERE digest = ?", digest)
        self.database.tidy()

    def export_run(self, run_id: str, path: Path) -> None:
        """Put a run with its blobs and files into one file."""
        export_run(self, self.find(run_id), path)

    def import_run(self, path: Path) -> str:
        """Take in what `export_run` made, if every hash is right; gives the run's id."""
        return import_run(self, path)

    @contextlib.contextmanager
    def taking_in(self, run_id: str) -> Iterator[Callable[[list[Row]], None] | None]:
        """Add a whole run, or nothing: gives where its events go, None if it is here already."""
        with self.database.writing() as cursor:
            run = self._new_run(cursor, run_id, first_hash(run_id))
            if run is None:
                yield None
                return

            def put(rows: list[Row]) -> None:
                seq, head, _ = rows[-1]
                cursor.put_events(run, rows)
                cursor.do("UPDATE runs SET last_seq = ?, head = ? WHERE no = ?", seq, head, run)
                put_facts(cursor, run, facts_in(line for _, _, line in rows))

            yield put

    def close(self) -> None:
        """End the writer's thread and close every connection."""
        self._writer.close()
        self.database.close()


def _mark_opened(cursor: Cursor, run: int) -> None:
    cursor.do(
        "UPDATE runs SET opened = (SELECT max(opened) FROM runs) + 1 WHERE no = ?", run
    )
