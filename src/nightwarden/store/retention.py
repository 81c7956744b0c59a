"""How long runs are kept: which have to go, and letting them go.

Only runs that ended go by themselves: one that can be resumed is somebody's unfinished work.

Read next: `keeping.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from nightwarden.store.contract import RunBusy, RunEntry, Store


def expired(
    entries: Sequence[RunEntry],
    now: datetime,
    *,
    keep_days: float | None = None,
    keep_last: int | None = None,
    unfinished: bool = False,
) -> list[str]:
    """The runs to delete, oldest first, of a list in order of opening (the latest last).

    A run goes if it ended more than `keep_days` ago, or if `keep_last` younger ones are kept.
    `unfinished` lets failed, suspended and interrupted ones go too, by their last known time.
    """
    ended = ("completed", "cancelled")
    mine = [e for e in entries if not e.owner_alive and (unfinished or e.status in ended)]
    too_many = (
        {e.run_id for e in mine[: max(0, len(mine) - keep_last)]}
        if keep_last is not None
        else set()
    )
    too_old = set()
    if keep_days is not None:
        before = now - timedelta(days=keep_days)
        too_old = {e.run_id for e in mine if (at := _time(e)) is not None and at < before}
    return [e.run_id for e in mine if e.run_id in too_many | too_old]


def prune(
    store: Store,
    now: datetime,
    *,
    keep_days: float | None = None,
    keep_last: int | None = None,
    unfinished: bool = False,
) -> list[str]:
    """Delete what has expired; gives the runs that are gone. `now` has a time zone."""
    gone = []
    for run_id in expired(
        store.runs(), now, keep_days=keep_days, keep_last=keep_last, unfinished=unfinished
    ):
        try:
            store.delete(run_id)
        except RunBusy:
            continue  # somebody resumed it just now
        gone.append(run_id)
    return gone


def _time(entry: RunEntry) -> datetime | None:
    try:
        return datetime.fromisoformat(entry.ended_at or entry.started_at)
    except ValueError:
        return None
