"""What one commit of the writer puts down for one run, inside the writer's transaction.

The lease first: who lost it records nothing. Then the run's last number, moved from exactly what
it was; where it stands already at the new one, an earlier try got through and only its answer was
lost. Then events, facts, and the news for readers.

Read next: `writing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightwarden.errors import StoreError
from nightwarden.store.chain import Row
from nightwarden.store.contract import LeaseLost
from nightwarden.store.database import Cursor
from nightwarden.store.facts import Facts, facts_in


@dataclass(frozen=True, slots=True)
class Batch:
    """What a run adds: its events with their hashes, after `last_seq`. May be empty: a beat."""

    run_id: str
    run: int
    owner: str
    last_seq: int
    rows: Sequence[Row] = ()


def write_batch(cursor: Cursor, batch: Batch) -> StoreError | None:
    """Put a batch down; gives why it could not be, with nothing written."""
    held = cursor.do(
        "UPDATE leases SET beats = beats + 1, beat_at = ? WHERE run = ? AND owner = ?",
        cursor.now(),
        batch.run,
        batch.owner,
    )
    if not held:
        return LeaseLost(
            f"run {batch.run_id} was taken over by another process: nothing more of it is "
            "recorded here; `nightwarden runs` says who drives it now"
        )
    if not batch.rows:
        return None
    last_seq, head, _ = batch.rows[-1]
    moved = cursor.do(
        "UPDATE runs SET last_seq = ?, head = ? WHERE no = ? AND last_seq = ?",
        last_seq,
        head,
        batch.run,
        batch.last_seq,
    )
    if not moved:
        return _written_already(cursor, batch, head)
    cursor.put_events(batch.run, batch.rows)
    put_facts(cursor, batch.run, facts_in(line for _, _, line in batch.rows))
    cursor.tell(batch.run, last_seq)
    return None


def put_facts(cursor: Cursor, run: int, facts: Facts) -> None:
    """Change the list of runs."""
    if facts:
        # The names are our own columns, see `facts.py`.
        sets = ", ".join(f"{name} = ?" for name in facts)
        cursor.do(f"UPDATE runs SET {sets} WHERE no = ?", *facts.values(), run)


def put_references(cursor: Cursor, run: int, sizes: dict[str, int]) -> None:
    """Say that a run refers to blobs, before they are put where they lie."""
    cursor.guard_blobs()
    for digest, size in sizes.items():
        cursor.do(
            "INSERT INTO run_blobs (run, digest, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            run,
            digest,
            size,
        )


def _written_already(cursor: Cursor, batch: Batch, head: bytes) -> StoreError | None:
    found = cursor.one("SELECT last_seq, head FROM runs WHERE no = ?", batch.run)
    if found is not None and bytes(found[1]) == head:
        return None
    there = "no such run" if found is None else f"event {found[0]} as its last"
    return StoreError(
        f"run {batch.run_id} has {there} where event {batch.last_seq} was expected: somebody "
        "else wrote to the database; `nightwarden verify` looks the record over"
    )
