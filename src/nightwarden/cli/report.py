"""`nightwarden report RUN`: what became of a recorded run, as text, JSON or one HTML file.

Read next: `show.py`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.graph import put
from nightwarden.cli.options import (
    Debug,
    Json,
    RunArgument,
    Store,
    SupervisorModel,
    runs_in,
    settings_for,
)
from nightwarden.cli.output import Output, is_terminal
from nightwarden.events.words import visible

if TYPE_CHECKING:
    from nightwarden.agents.whatif import Would
    from nightwarden.report import RunReport
    from nightwarden.spec.catalog import NodeType

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
    what_if: Annotated[
        bool,
        typer.Option("--what-if", help="Ask a model what it would have decided; changes nothing."),
    ] = False,
    supervisor_model: SupervisorModel = None,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Tell what became of a recorded run.

    What is missing and why, every decision, the accounts, the costs. Works for runs that
    failed, that were cut off, and that still go on.
    """
    if supervisor_model is not None and not what_if:
        raise Usage("--supervisor-model names whom --what-if asks; add it, or leave both out")
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        found = read_report(place, run)
        would = ask_what_if(place, found, supervisor_model, out) if what_if else None

    from nightwarden.report import report_html, report_json, report_text

    if would is not None:
        from nightwarden.agents.whatif import would_json, would_text

    if html is not None:
        put(html, report_html(found))
        out.note(f"the report of {found.run_id} is in {html}")
    if json:
        more = {} if would is None else {"what_if": would_json(would)}
        out.data({**report_json(found), **more})
    elif html is None:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH
        out.text(report_text(found, width=width))
    if would is not None and not json:
        out.text(f"\n{visible_lines(would_text(would))}")
    return COMPLETED


def ask_what_if(runs: Runs, found: RunReport, model: str | None, out: Output) -> Sequence[Would]:
    """What a model would have decided; the run and its record stay as they are."""
    import asyncio

    from nightwarden.agents.opening import asked_model, notice, open_adjudicator
    from nightwarden.agents.whatif import failures_of
    from nightwarden.agents.whatif import what_if as ask
    from nightwarden.cli.supervising import bounds_of
    from nightwarden.nodes.registry import Registry

    settings = settings_for(out)
    named = model or asked_model(found.supervisor or "off") or ""
    bounds = bounds_of(settings)
    supervisor = open_adjudicator(named, bounds, settings)
    known = Registry()

    def type_of(name: str) -> NodeType | None:
        definition = known.definition(name)
        return None if definition is None else definition.type

    failures = failures_of(runs.read(found.run_id), type_of)
    if failures:
        out.note(notice(supervisor.model))
    return asyncio.run(ask(failures, supervisor, bounds))


def visible_lines(text: str) -> str:
    """Several lines, each harmless on any terminal."""
    return "".join(f"{visible(line)}\n" for line in text.splitlines())


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
