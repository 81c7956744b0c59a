"""Words from other processes to whoever drives a run: `cancel`, `message`.

A word waits in a table until the driver takes it; it is taken once. One that was left while
nobody drove the run is taken by whoever drives it next. What it says is gone from here then: the
driver puts it on record, and knows the secrets that somebody may have typed into it.

Read next: `writing.py` (who takes them), `sqlstore.py` (who leaves them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from nightwarden.store.contract import Command
from nightwarden.store.database import Cursor, Database

_OPEN = "SELECT no, run, kind, body, sent_at FROM commands WHERE taken_at = '' AND run = ?"


def leave_command(cursor: Cursor, run: int, kind: str, body: Mapping[str, object]) -> int:
    """Leave a word for the run; gives its number."""
    found = cursor.one(
        "INSERT INTO commands (run, kind, body, sent_at) VALUES (?, ?, ?, ?) RETURNING no",
        run,
        kind,
        msgspec.json.encode(body).decode(),
        _now(),
    )
    assert found is not None
    cursor.ring(run)
    return int(found[0])


def take_commands(database: Database, runs: Sequence[int]) -> list[tuple[int, Command]]:
    """The words that wait for these runs, with the run each is for; nobody gets them again."""
    with database.reading() as cursor:
        waiting = [run for run in runs if cursor.one(_OPEN, run) is not None]
    taken: list[tuple[int, Command]] = []
    if not waiting:
        return taken
    with database.writing() as cursor:
        for run in waiting:
            for no, _, kind, body, sent_at in list(cursor.rows(f"{_OPEN} ORDER BY no", run)):
                if cursor.do(
                    "UPDATE commands SET taken_at = ?, body = '{}' WHERE no = ? AND taken_at = ''",
                    _now(),
                    no,
                ):
                    content = msgspec.json.decode(body, type=dict[str, object])
                    taken.append(
                        (run, Command(number=no, kind=kind, body=content, sent_at=sent_at))
                    )
    return taken


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
