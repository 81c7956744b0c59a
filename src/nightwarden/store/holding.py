"""Taking and checking leases in the database: who may drive a run.

A take-over is a comparison: the row has to be what it was when its owner was found dead. Of two
processes that find so at once, one gets the run and the other is refused.

Read next: `leases.py` (when an owner is dead).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nightwarden.store.contract import RunBusy
from nightwarden.store.database import Cursor, Database
from nightwarden.store.leases import TTL_S, Lease, Life, Place, judge, stands_still

COLUMNS: Final = "owner, place, beats, beat_at, ttl_s"
_SELECT: Final = f"SELECT {COLUMNS} FROM leases WHERE run = ?"
_place = msgspec.json.Decoder(Place)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as found, and whether its owner lives."""

    lease: Lease
    life: Life

    def __str__(self) -> str:
        return str(self.lease.place)


def lease_of(row: tuple[Any, ...]) -> Lease:
    """A lease from its columns."""
    owner, place, beats, beat_at, ttl_s = row
    return Lease(owner, _place.decode(place), beats, beat_at, ttl_s)


def find_lease(cursor: Cursor, run: int, me: Place) -> Held | None:
    """Who drives a run."""
    row = cursor.one(_SELECT, run)
    if row is None:
        return None
    lease = lease_of(row)
    return Held(lease, judge(lease, cursor.now(), me))


def put_lease(cursor: Cursor, run: int, owner: str, me: Place) -> None:
    """Write a lease for a run that has none."""
    cursor.do(
        f"INSERT INTO leases (run, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        run,
        owner,
        msgspec.json.encode(me).decode(),
        0,
        cursor.now(),
        TTL_S,
    )


def free_to_take(database: Database, run_id: str, run: int, me: Place) -> Lease | None:
    """The dead owner's lease that may be replaced, or None; may watch. Raises `RunBusy`."""
    with database.reading() as cursor:
        held = find_lease(cursor, run, me)
        now = cursor.now()
    if held is None:
        return None
    if held.life is Life.DEAD:
        return held.lease
    if held.life is Life.ALIVE or not stands_still(held.lease, now, lambda: _beats(database, run)):
        raise busy(run_id, held)
    return held.lease


def take_lease(
    cursor: Cursor, run_id: str, run: int, *, dead: Lease | None, owner: str, me: Place
) -> None:
    """Replace exactly the lease that was found dead. Raises `RunBusy` if somebody was quicker."""
    if dead is not None:
        cursor.do(
            "DELETE FROM leases WHERE run = ? AND owner = ? AND beats = ?",
            run,
            dead.owner,
            dead.beats,
        )
    held = find_lease(cursor, run, me)
    if held is not None:
        raise busy(run_id, held)
    put_lease(cursor, run, owner, me)


def busy(run_id: str, held: Held) -> RunBusy:
    """Somebody drives the run."""
    return RunBusy(
        f"run {run_id} is driven by {held}: follow it with `nightwarden events {run_id} --follow`, "
        f"or end it with `nightwarden cancel {run_id}`; if that process is dead, try again in "
        f"{held.lease.ttl_s:.0f} s"
    )


def _beats(database: Database, run: int) -> int | None:
    with database.reading() as cursor:
        row = cursor.one("SELECT beats FROM leases WHERE run = ?", run)
    return None if row is None else int(row[0])
