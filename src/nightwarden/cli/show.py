"""`nightwarden show RUN`: what happened in a run, a line an event.

Read next: `report.py`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.events.render import render

_QUIET = ("invocation_succeeded", "item_emitted", "invocation_started", "node_progress")


def show(
    run: RunArgument,
    all: Annotated[
        bool, typer.Option("--all", help="Every event, also of what simply went well.")
    ] = False,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Tell what happened in a run, in order.

    One line an event; with --json, the events themselves.
    """
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        events = place.read(run)
        if json:
            out.data(list(events))
            return COMPLETED
        for event in events:
            if all or event.get("type") not in _QUIET:
                at = str(event.get("at", ""))[11:23]
                out.say(f"{at:<12}  {render(event)}")
    return COMPLETED
