"""`nightwarden events RUN`: what a run says, an event a line, also while it goes on.

Read next: `show.py`, `nightwarden/store/following.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nightwarden.cli.failing import CANCELLED, COMPLETED
from nightwarden.cli.options import Debug, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.cli.runs import state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nightwarden.store.contract import Store as RunStore


def events(
    run: RunArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as the run does, until it ends.")
    ] = False,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="Only the events after number N.")
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="The events themselves, a JSON object a line.")
    ] = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Print the events of a run, one a line.

    With --follow, also those still to come. Ctrl-C ends the following, not the run.
    """
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        run_id = place.find(run)
        try:
            for event in _told(place, run_id, after, out, follow=follow):
                _print(event, out)
        except KeyboardInterrupt:
            out.note(f"no longer following; run {run_id} goes on", "dim")
            return CANCELLED
        entry = place.entry(run_id)
        if follow and entry.status == "interrupted":
            out.note(state_of(entry), "yellow")
    return COMPLETED


def _told(
    place: RunStore, run_id: str, after: int, out: Output, *, follow: bool
) -> Iterator[Mapping[str, Any]]:
    if follow:
        return place.follow(run_id, after, stop=lambda: out.unread)
    return place.read(run_id, after)


def _print(event: Mapping[str, Any], out: Output) -> None:
    if out.as_json:
        out.data_line(event)
        return
    from nightwarden.events.render import render

    at = str(event.get("at", ""))[11:23]
    out.say(f"{event.get('seq', '')!s:>6}  {at:<12}  {render(event)}")
