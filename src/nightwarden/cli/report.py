"""`nightwarden report RUN`: what became of a recorded run, as text, JSON or one HTML file.

Read next: `show.py`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.graph import put
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output, is_terminal

if TYPE_CHECKING:
    from nightwarden.report import RunReport

_WIDTH = 100


class Runs(Protocol):
    """What is asked of a store to read a run from it."""

    def run_ids(self) -> list[str]:
        """All runs."""
        ...

    def find(self, run_id: str) -> str:
        """The run that is meant."""
        ...

    def read(self, run_id: str) -> Iterable[Mapping[str, Any]]:
        """Its events."""
        ...

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The first and the last of them."""
        ...


def report(
    run: RunArgument,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write it as one HTML file that needs nothing else."
        ),
    ] = None,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Tell what became of a recorded run.

    What is missing and why, every decision, the accounts, the costs. Works for runs that
    failed, that were cut off, and that still go on.
    """
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        found = read_report(place, run)

    from nightwarden.report import report_html, report_json, report_text

    if html is not None:
        put(html, report_html(found))
        out.note(f"the report of {found.run_id} is in {html}")
    if json:
        out.data(report_json(found))
    elif html is None:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH
        out.text(report_text(found, width=width))
    return COMPLETED


def read_report(runs: Runs, run: str) -> RunReport:
    """The report of a recorded run. Raises `StoreError`."""
    from nightwarden.report import fold_report

    run_id = runs.find(run)
    found = fold_report(runs.read(run_id), record=_record(runs, run_id), **_standing(runs, run_id))
    found.run_id = found.run_id or run_id  # a record that was cut off before its first line ended
    return found


def _record(runs: Runs, run_id: str) -> str:
    """Where the record lies: its own file, or the store all runs are in."""
    path = getattr(runs, "events_path", None)
    return str(path(run_id)) if path is not None else str(getattr(runs, "place", ""))


def _standing(runs: Runs, run_id: str) -> dict[str, str]:
    """Whether a run without an end goes on, where the store knows whether its owner lives."""
    entry = getattr(runs, "entry", None)
    status = entry(run_id).status if entry is not None else ""
    return {"unended": status} if status in ("running", "interrupted") else {}
