"""`nightwarden runs`: the recorded runs, the latest last.

Read next: `keeping.py` (delete, export, import, prune), `show.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Final

import typer

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.options import Debug, Json, Store, runs_in
from nightwarden.cli.output import Output, is_terminal
from nightwarden.events.words import cut

if TYPE_CHECKING:
    from nightwarden.store.contract import RunEntry

FORMAT: Final = 1
_HEADINGS: Final = ("RUN", "WORKFLOW", "STARTED", "EVENTS", "STATE")


def runs(
    ctx: typer.Context,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """List the recorded runs, the latest last; delete, export, import or prune some."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = store
        return COMPLETED
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        found = place.runs()
        if json:
            out.data({"version": FORMAT, "runs": [asdict(entry) for entry in found]})
            return COMPLETED
        for line in table(found, headed=is_terminal(sys.stdout)):
            out.say(line)
        if not found:
            out.say(f"no run is recorded in {place.place}")
    return COMPLETED


def table(entries: Sequence[RunEntry], *, headed: bool) -> list[str]:
    """The list, a line a run: id, workflow, when, events, how it stands."""
    rows = [
        (e.run_id, e.workflow or "-", _when(e.started_at), f"{e.events:,}", cut(state_of(e)))
        for e in entries
    ]
    rows = [_HEADINGS, *rows] if headed and rows else rows
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
    return [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  "
        f"{row[3]:>{widths[3]}}  {row[4]}"
        for row in rows
    ]


def state_of(entry: RunEntry) -> str:
    """How a run ended, or whether whoever drives it is still there."""
    if entry.headline:
        return entry.headline
    if entry.status == "running":
        return f"running: {entry.owner}"
    if entry.status == "interrupted":
        return f"interrupted: nobody drives it any more (nightwarden resume {entry.run_id})"
    return entry.status


def _when(at: str) -> str:
    """A time of the record as this machine's clock shows it, to the minute."""
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return "-"
