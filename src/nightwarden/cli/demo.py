"""`nightwarden demo`: two hundred real pages, some of them broken, under supervision.

    pages served from here ─▶ examples/pages.yaml ─▶ table
                                 └ failures ─▶ examples/pages.answers.yaml ─▶ decisions

Nothing is fetched from elsewhere, and no key is needed.

Read next: `nightwarden/demo/`, `running.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.options import Debug, Quiet, settings_for
from nightwarden.cli.output import Output
from nightwarden.cli.places import explained_commands, from_here, program

if TYPE_CHECKING:
    from nightwarden.result import RunResult

HOME: Final = Path(".nightwarden")
FOLDER: Final = HOME / "demo"
CACHE: Final = Path(".demo-cache")
LATENCY_S: Final = 0.02


def demo(
    faults: Annotated[
        bool, typer.Option("--faults/--no-faults", help="Break some of the pages, or none.")
    ] = True,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Where table, report and record go [default: .nightwarden/demo].",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Show a real run under supervision.

    200 pages served from this machine become a table. Thirteen of them are broken; the
    decisions are written down beforehand. Takes well under a minute; the first time, the pages
    are rendered.
    """
    out = Output(quiet=quiet)
    settings = settings_for(out)

    from nightwarden.cli.run import engine_options
    from nightwarden.cli.running import carry_out, conclude, exit_code
    from nightwarden.demo import FAULTS, DemoSite, example
    from nightwarden.library import load
    from nightwarden.session import Session

    folder = keep or FOLDER
    store = str(keep / "record") if keep is not None else settings.store_url
    workflow, answers = example("pages.yaml"), example("pages.answers.yaml")
    folder.mkdir(parents=True, exist_ok=True)
    out.say("Serving 200 pages of Python's documentation from this machine …")
    with DemoSite(CACHE, faults=faults, latency_s=LATENCY_S) as site:
        broken = f"{len(FAULTS)} of them are broken on purpose" if faults else "none is broken"
        out.say(f"{site.address}: {broken}")
        out.say(f"Running {from_here(workflow)}, failures answered by {from_here(answers)}")
        out.say()
        session = Session(
            load(workflow),
            {"urls": site.urls, "csv": "pages.csv"},
            supervise=f"scripted:{answers}",
            store=store,
            workdir=folder,
            **engine_options(settings),
        )
        result = carry_out(session, out)
    conclude(session, result, out, store=store if keep is not None else None)
    written = _write_report(folder, store, result)
    for line in _next(folder, written, workflow, store if keep is not None else None, result):
        out.say(line)
    return exit_code(result)


def _write_report(folder: Path, store: str, result: RunResult) -> Path:
    from nightwarden.cli.graph import put
    from nightwarden.cli.report import read_report
    from nightwarden.report import report_text
    from nightwarden.store.opening import open_store

    path = folder / "report.txt"
    with open_store(store) as opened:
        put(path, report_text(read_report(opened, result.run_id)))
    return path


def _next(
    folder: Path, report: Path, workflow: Path, store: str | None, result: RunResult
) -> Iterator[str]:
    """Where things lie, and commands that work as they stand."""
    typed = program()
    at = f" --store {store}" if store is not None else ""
    yield ""
    yield f"The table    {folder / 'pages.csv'}"
    yield f"The report   {report}"
    yield ""
    yield "Next"
    commands = {
        f"{typed} report {result.run_id}{at}": "what is missing, who decided that, and why",
        f"{typed} graph {from_here(workflow)}": "what is wired to what",
        f"{typed} nodes http.Fetch": "what a step takes, and what it promises",
        f"{typed} run {from_here(workflow)} --input urls=@urls.txt": "your own pages, one a line",
        f"{typed} demo --no-faults": "the same with nothing broken",
    }
    yield from explained_commands(commands)
