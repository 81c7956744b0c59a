"""`nightwarden verify RUN`: whether a record is whole, its large values included.

Read next: `nightwarden/store/chain.py`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from nightwarden.cli.failing import COMPLETED, FAILED
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.events.words import count

if TYPE_CHECKING:
    from nightwarden.store.sqlstore import SqlStore

FORMAT: Final = 1


def verify(
    run: RunArgument,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Check whether the record of a run is whole.

    Every event is checked against the hashes, every large value against its name. Note the last
    hash elsewhere: who can change the database can change its hashes too.

    Exit codes: 0 it is whole, 1 it is not.
    """
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        found = place.verify(run)
        bad = _bad_blobs(place, found.run_id)
    whole = found.whole and not bad
    if json:
        told = {**asdict(found), "whole": whole, "bad_blobs": bad}
        out.data({"version": FORMAT, **told})
    if whole:
        out.say(f"run {found.run_id} is whole: {count(found.events, 'event')}, hash {found.head}")
        return COMPLETED
    if not found.whole:
        out.error(
            f"run {found.run_id} is not whole: {found.problem}; its first "
            f"{count(found.events, 'event')} are as they were written (hash {found.head})"
        )
    for digest, why in bad.items():
        out.error(f"run {found.run_id} is not whole: value {digest[:12]}: {why}")
    return FAILED


def _bad_blobs(place: SqlStore, run_id: str) -> dict[str, str]:
    """The large values that are missing or damaged, and what is wrong with them."""
    from nightwarden.errors import StoreError

    found = {}
    for digest in place.references(run_id):
        try:
            place.blobs.get(digest)
        except StoreError as error:
            found[digest] = str(error)
    return found
