"""What is read of runs: the list, and events by the page.

Each page is a short transaction: a slow reader never holds the writer up, and since a record only
grows, pages fit together. What can be read of a damaged record is read before the error comes.

Read next: `sqlstore.py`, `following.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nightwarden.errors import StoreError
from nightwarden.store.chain import Row, verified
from nightwarden.store.contract import RunEntry, Verified
from nightwarden.store.database import Cursor, Database, key_of, seq_of
from nightwarden.store.holding import lease_of
from nightwarden.store.leases import Life, Place, judge
from nightwarden.store.naming import meant

_PAGE: Final = 1000
_ENTRY: Final = (
    "SELECT r.id, r.workflow, r.status, r.supervised, r.started_at, r.ended_at, r.headline, "
    "r.last_seq, l.owner, l.place, l.beats, l.beat_at, l.ttl_s "
    "FROM runs r LEFT JOIN leases l ON l.run = r.no "
)


class Reading:
    """Reads a database, as the process `me`."""

    def __init__(self, database: Database, me: Place) -> None:
        self._database, self._me = database, me

    # -- the list of runs --

    def run_ids(self) -> list[str]:
        """All runs, the one that was opened last at the end."""
        if not self._database.exists():
            return []
        with self._database.reading() as cursor:
            return [row[0] for row in cursor.rows("SELECT id FROM runs ORDER BY opened, no")]

    def numbered(self, run_id: str) -> tuple[str, int]:
        """The run that is meant, with its number here."""
        found = self._number(run_id)  # most often the id is given in full
        if found is None:
            run_id = meant(run_id, self.run_ids(), self._database.place)
            found = self._number(run_id)
        if found is None:
            raise self.gone(run_id)
        return run_id, found

    def _number(self, run_id: str) -> int | None:
        if not self._database.exists():
            return None
        with self._database.reading() as cursor:
            row = cursor.one("SELECT no FROM runs WHERE id = ?", run_id)
        return None if row is None else int(row[0])

    def entries(self) -> list[RunEntry]:
        """The list of runs."""
        if not self._database.exists():
            return []
        with self._database.reading() as cursor:
            rows = list(cursor.rows(f"{_ENTRY} ORDER BY r.opened, r.no"))
            now = cursor.now()
        return [self._entry(row, now) for row in rows]

    def entry(self, run_id: str) -> RunEntry:
        """One line of it."""
        return self.entry_of(*self.numbered(run_id))

    def entry_of(self, run_id: str, run: int) -> RunEntry:
        """The same of a run that was found before. Raises `StoreError` if it has been deleted."""
        with self._database.reading() as cursor:
            row, now = cursor.one(f"{_ENTRY} WHERE r.no = ?", run), cursor.now()
        if row is None:
            raise self.gone(run_id)
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

    def gone(self, run_id: str) -> StoreError:
        """The run was there a moment ago."""
        return StoreError(f"run {run_id} was deleted from {self._database.place} just now")

    # -- events --

    def rows(self, run: int, after: int = 0) -> Iterator[Row]:
        """The events of a run after a number."""
        while True:
            page, problem = self._page(run, after)
            yield from page
            if problem is not None:
                raise problem
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def page(self, run: int, after: int) -> list[Row]:
        """Some events; raises only where none can be read."""
        page, problem = self._page(run, after)
        if problem is not None and not page:
            raise problem
        return page

    def _page(self, run: int, after: int) -> tuple[list[Row], StoreError | None]:
        page: list[Row] = []
        try:
            with self._database.reading() as cursor:
                for key, digest, body in cursor.rows(
                    "SELECT id, hash, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
                    key_of(run, after),
                    key_of(run + 1, 0),
                    _PAGE,
                ):
                    place = self._database.place
                    page.append((seq_of(key), intact(digest, place), intact(body, place)))
        except StoreError as error:
            return page, error
        return page, None

    def ends(self, run: int) -> list[tuple[int, bytes]]:
        """The first and the last event with their numbers."""
        with self._database.reading() as cursor:
            last_seq = _last_seq(cursor, run)
            keys = [key_of(run, seq) for seq in sorted({1, last_seq}) if 0 < seq <= last_seq]
            found = [cursor.one("SELECT id, body FROM events WHERE id = ?", key) for key in keys]
        place = self._database.place
        return [(seq_of(row[0]), intact(row[1], place)) for row in found if row is not None]

    def verify(self, run_id: str) -> Verified:
        """Check a record against its hashes."""
        run_id, run = self.numbered(run_id)
        with self._database.reading() as cursor:
            found = cursor.one(  # in one statement, for the run may be growing
                "SELECT last_seq, head, (SELECT max(id) FROM events WHERE id > ? AND id < ?) "
                "FROM runs WHERE no = ?",
                key_of(run, 0),
                key_of(run + 1, 0),
                run,
            )
        if found is None:
            raise self.gone(run_id)
        last_key, head = found[2], intact(found[1], self._database.place)
        last_seq = int(found[0])
        until = max(last_seq, 0 if last_key is None else seq_of(last_key))
        rows = (row for row in self.rows(run) if row[0] <= until)
        return verified(run_id, rows, last_seq, head)


def intact(value: bytes | None, place: str) -> bytes:
    """Bytes that are never NULL, unless what they stood in is damaged. Raises `StoreError`."""
    if value is None:
        raise StoreError(
            f"{place} is damaged: a part of it has no content any more; put it aside, and export "
            "the runs that still read (`nightwarden runs export`)"
        )
    return bytes(value)


def _last_seq(cursor: Cursor, run: int) -> int:
    found = cursor.one("SELECT last_seq FROM runs WHERE no = ?", run)
    return 0 if found is None else int(found[0])
