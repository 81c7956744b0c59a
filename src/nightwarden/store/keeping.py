"""Adding a whole run, removing one, and which blobs go with it.

A blob is referred to before it is put, and removed only while nobody can add references:

    delete   run, events, references go; its digests become doomed        one transaction
    sweep    each doomed digest nobody refers to is removed               the next one

A crash between the two leaves doomed digests, and the next sweep removes them. A crash before
a blob was put leaves a reference to nothing: no event names it, and nothing is missing.

Read next: `archive.py`, `retention.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightwarden.store.chain import Row, first_hash
from nightwarden.store.contract import Blobs
from nightwarden.store.database import Cursor, Database, key_of
from nightwarden.store.facts import facts_in
from nightwarden.store.holding import busy, find_lease
from nightwarden.store.journal import put_facts, put_references
from nightwarden.store.leases import Life, Place


def new_run(cursor: Cursor, run_id: str) -> int | None:
    """Add a run without events; None if its id is taken."""
    row = cursor.one(
        "INSERT INTO runs (id, head) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING no",
        run_id,
        first_hash(run_id),
    )
    if row is None:
        return None
    mark_opened(cursor, int(row[0]))
    return int(row[0])


def mark_opened(cursor: Cursor, run: int) -> None:
    """Make a run the last one that was opened."""
    cursor.do("UPDATE runs SET opened = (SELECT max(opened) FROM runs) + 1 WHERE no = ?", run)


class Intake:
    """A run being added as a whole, inside one transaction."""

    def __init__(self, cursor: Cursor, run: int, blobs: Blobs) -> None:
        self._cursor, self._run, self._blobs = cursor, run, blobs

    def events(self, rows: Sequence[Row]) -> None:
        """Its next events."""
        seq, head, _ = rows[-1]
        self._cursor.put_events(self._run, rows)
        self._cursor.do("UPDATE runs SET last_seq = ?, head = ? WHERE no = ?", seq, head, self._run)
        put_facts(self._cursor, self._run, facts_in(line for _, _, line in rows))

    def blob(self, digest: str, data: bytes) -> None:
        """A blob it refers to."""
        put_references(self._cursor, self._run, {digest: len(data)})
        self._blobs.put(digest, data)


def remove_run(database: Database, run_id: str, run: int, me: Place) -> None:
    """Remove a run from the database. Raises `RunBusy` while its owner lives."""
    with database.writing() as cursor:
        cursor.one(f"SELECT no FROM runs WHERE no = ?{database.locking}", run)
        held = find_lease(cursor, run, me)
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
        cursor.do("DELETE FROM events WHERE id > ? AND id < ?", key_of(run, 0), key_of(run + 1, 0))
        cursor.do("DELETE FROM runs WHERE no = ?", run)


def sweep(database: Database, blobs: Blobs) -> None:
    """Remove blobs of deleted runs that no other run refers to; also after a crash."""
    with database.writing() as cursor:
        cursor.guard_blobs()
        for (digest,) in list(cursor.rows("SELECT digest FROM doomed_blobs")):
            if cursor.one("SELECT 1 FROM run_blobs WHERE digest = ? LIMIT 1", digest) is None:
                blobs.remove(digest)
            cursor.do("DELETE FROM doomed_blobs WHERE digest = ?", digest)
    database.tidy()


def named_in(lines: Iterable[bytes], digests: Iterable[str]) -> set[str]:
    """Which of some blobs events name as what they hold. That a file was begun is no such event."""
    left, found = {digest.encode() for digest in digests}, set[bytes]()
    for line in lines:
        if b'"asset_written"' in line[:40]:
            continue
        found |= {digest for digest in left if digest in line}
        left -= found
        if not left:
            break
    return {digest.decode() for digest in found}


def references(database: Database, run: int) -> dict[str, int]:
    """The blobs a run refers to, with their sizes in bytes."""
    with database.reading() as cursor:
        return dict(
            cursor.rows("SELECT digest, size FROM run_blobs WHERE run = ? ORDER BY digest", run)
        )
