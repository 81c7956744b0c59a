"""`nightwarden cancel RUN`: end a run from outside, also that of another process.

    word ─▶ store ─▶ whoever drives the run takes it, and stops

Read next: `message.py`, `nightwarden/store/commanding.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, FAILED, Usage
from nightwarden.cli.options import Debug, Quiet, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.cli.runs import state_of

if TYPE_CHECKING:
    from nightwarden.store.contract import Store as RunStore

_LOOK_S: Final = 0.05


def cancel(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")
    ] = "",
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Cancel a run, also that of another process.

    Comes back when whoever drives the run has taken the word; the run then ends by itself.
    """
    out = Output(quiet=quiet)
    with runs_in(store, out) as place:
        entry = place.entry(run)
        if entry.status == "cancelled":
            out.say(f"run {entry.run_id} is cancelled already: nobody drives it")
            return COMPLETED
        told = state_of(entry)
        if not entry.owner_alive:
            raise Usage(f"run {entry.run_id} does not run, so it need not be cancelled: {told}")
        number = place.send(entry.run_id, "cancel", {"reason": reason} if reason else {})
        if not _waited(place, entry.run_id, number):
            told = state_of(place.entry(entry.run_id))
            out.error(f"run {entry.run_id} was over before it could be cancelled: {told}")
            return FAILED
        out.say(
            f"run {entry.run_id} is told to stop; see its end with "
            f"`nightwarden events {entry.run_id} --follow`"
        )
    return COMPLETED


def _waited(place: RunStore, run_id: str, number: int) -> bool:
    """Wait until a word is taken; False if nobody is left to take it, and it is withdrawn."""
    while not place.taken(run_id, number):
        if not place.entry(run_id).owner_alive:
            return not place.withdraw(run_id, number)
        time.sleep(_LOOK_S)
    return True
