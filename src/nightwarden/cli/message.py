"""`nightwarden message RUN TEXT`: say something to the agents of a run, from outside.

Read next: `cancel.py`, `nightwarden/store/commanding.py`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nightwarden.cli.failing import COMPLETED, FAILED, NAME, Usage
from nightwarden.cli.options import Debug, Quiet, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.cli.runs import state_of

if TYPE_CHECKING:
    from nightwarden.store.contract import RunEntry
    from nightwarden.store.contract import Store as RunStore


_LOOK_FOR_S: Final = 3.0
_LOOK_S: Final = 0.05
"""Whoever drives the run puts a message on record in some hundredths of a second."""


def message(
    run: RunArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say.")],
    node: Annotated[
        str | None,
        typer.Option(
            "--node", metavar="ID", help="For this node only [default: the first to ask]."
        ),
    ] = None,
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Leave a message for the agents of a run.

    They read it at their next turn.
    """
    out = Output(quiet=quiet)
    if not text.strip():
        raise Usage("the message is empty: say something")
    with runs_in(store, out) as place:
        entry = place.entry(run)
        if entry.status not in ("running", "interrupted"):
            raise Usage(f"run {entry.run_id} is over, and reads no messages: {state_of(entry)}")
        _check_node(_readers(place, entry), entry, node)
        last = max((int(event["seq"]) for event in place.ends(entry.run_id)), default=0)
        body = {"text": text, "message_id": f"msg-{uuid.uuid4().hex[:16]}"}
        place.send(entry.run_id, "message", body if node is None else {**body, "node": node})
        refused = _refused(place, entry, body["message_id"], last) if entry.owner_alive else ""
        if refused:
            out.error(f"{NAME}: nobody in run {entry.run_id} will read this: {refused}")
            return FAILED
        when = "" if entry.owner_alive else "; nobody drives the run now, so it waits for a resume"
        out.say(f"the message is left for run {entry.run_id}{when}")
    return COMPLETED


def _refused(place: RunStore, entry: RunEntry, message_id: str, last: int) -> str:
    """Why a message was not taken up by a run that goes on; empty where it was, or may yet be."""
    from nightwarden.events.run import ENDS

    until = time.monotonic() + _LOOK_FOR_S
    while time.monotonic() < until:
        fates = [
            event
            for event in place.read(entry.run_id, last)
            if event.get("message_id") == message_id or event.get("type") in ENDS
        ]
        for event in fates:
            if event["type"] == "user_message_expired":
                return str(event.get("reason"))
        if any(event["type"] in ENDS for event in fates):
            return "" if len(fates) > 1 else "it has ended"
        if fates:
            return ""
        time.sleep(_LOOK_S)
    return ""


def _readers(place: RunStore, entry: RunEntry) -> list[str]:
    """The nodes of a run that read messages."""
    from nightwarden.spec.supervisors import reads_messages

    start: Any = next(iter(place.ends(entry.run_id)), {})
    nodes = start.get("definition", {}).get("nodes", ())
    return [str(node["id"]) for node in nodes if reads_messages(str(node["type"]))]


def _check_node(readers: Sequence[str], entry: RunEntry, node: str | None) -> None:
    """Raise `Usage` where nobody would read the message."""
    if not readers:
        raise Usage(
            f"{entry.workflow or 'the workflow'} has no agents, so nobody in run {entry.run_id} "
            f"reads messages; `nightwarden cancel {entry.run_id}` ends it"
        )
    if node is not None and node not in readers:
        raise Usage(f"--node {node}: it reads no messages; those that do are {', '.join(readers)}")
