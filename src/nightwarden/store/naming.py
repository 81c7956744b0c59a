"""Which run is meant: an id, the beginning of one, or `last`.

Read next: `sqlstore.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightwarden.errors import StoreError


def meant(run_id: str, known: Sequence[str], place: str) -> str:
    """The one of `known` (the latest last) that is meant. Raises `StoreError`."""
    if not known:
        raise StoreError(f"no run is recorded in {place}; --store names another place")
    if run_id == "last":
        return known[-1]
    if run_id in known:
        return run_id
    matches = [known_id for known_id in known if run_id and known_id.startswith(run_id)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise StoreError(f"no run {run_id!r} in {place}; `nightwarden runs` lists them")
    raise StoreError(f"{run_id!r} could be any of {', '.join(matches[:5])}; write more of it")
