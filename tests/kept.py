"""What runs have recorded, for tests that look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nightwarden.store import open_store


def lines_of(place: str | Path, run_id: str = "last") -> list[bytes]:
    """The events of a run as recorded, one a line."""
    with open_store(place) as store:
        return list(store.lines(run_id))


def events_of(place: str | Path, run_id: str = "last") -> list[dict[str, Any]]:
    """The events of a run."""
    return [json.loads(line) for line in lines_of(place, run_id)]


def everything_in(place: Path) -> bytes:
    """Every byte of every file in a place: the database with its log, blobs, assets."""
    return b"\n".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
