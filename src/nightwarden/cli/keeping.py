"""`nightwarden runs delete | export | import | prune`: what is done with whole runs.

Read next: `runs.py`, `nightwarden/store/retention.py`, `nightwarden/store/archive.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import (
    Debug,
    Quiet,
    RunArgument,
    Store,
    opened,
    runs_in,
    settings_for,
)
from nightwarden.cli.output import Output
from nightwarden.events.words import count

if TYPE_CHECKING:
    from nightwarden.settings import Settings
    from nightwarden.store.contract import Store as RunStore


def delete(
    ctx: typer.Context,
    run: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of ids, or 'last'.")
    ],
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Delete runs with everything only they refer to. There is no way back."""
    out = Output(quiet=quiet)
    with runs_in(store or ctx.obj, out) as place:
        chosen = [place.entry(name) for name in run]  # all of them are there before one goes
        for entry in {entry.run_id: entry for entry in chosen}.values():
            place.delete(entry.run_id)
            out.say(f"deleted run {entry.run_id} ({count(entry.events, 'event')})")
    return COMPLETED


def export(
    ctx: typer.Context,
    run: RunArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, such as run.zip.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if there is one.")
    ] = False,
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Put a run into one file.

    With its large values and its files, for another place or for good.
    """
    out = Output(quiet=quiet)
    if file.is_dir():
        raise Usage(f"{file} is a folder: name a file in it, such as {file / 'run.zip'}")
    if file.exists() and not overwrite:
        raise Usage(f"{file} exists: name another file, or replace it with --overwrite")
    with runs_in(store or ctx.obj, out) as place:
        entry = place.entry(run)
        place.export_run(entry.run_id, file)
        going = " as far as it has come" if entry.owner_alive else ""
        out.say(f"put run {entry.run_id} into {file}{going}")
    return COMPLETED


def take_in(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `runs export` wrote.")],
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Take in an exported run, if every hash in it is right."""
    out = Output(quiet=quiet)
    with runs_in(store or ctx.obj, out) as place:
        entry = place.entry(place.import_run(file))
        out.say(f"took in run {entry.run_id} of {entry.workflow} ({count(entry.events, 'event')})")
    return COMPLETED


def prune(
    ctx: typer.Context,
    keep_days: Annotated[
        float | None,
        typer.Option("--keep-days", metavar="N", min=0, help="Keep what ended in the last N days."),
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option("--keep-last", metavar="N", min=0, help="Keep the last N runs.")
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option("--unfinished", help="Also runs that could be resumed: failed, cut off, …"),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which runs would go.")
    ] = False,
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Delete old runs.

    How much is kept say the options, else the settings store.keep_days and store.keep_last. Runs
    that could be resumed stay, unless told otherwise.
    """
    from nightwarden.store.retention import expired
    from nightwarden.store.retention import prune as prune_runs

    out = Output(quiet=quiet)
    settings = settings_for(out)
    if keep_days is None and keep_last is None:
        keep_days, keep_last = settings.store_keep_days, settings.store_keep_last
    if keep_days is None and keep_last is None:
        raise Usage(
            "how much is to be kept? say --keep-days N or --keep-last N, or set store.keep_days "
            "in nightwarden.toml"
        )
    now = datetime.now(UTC)
    with opened(store or ctx.obj, settings) as place:
        find = partial(expired, place.runs()) if dry_run else partial(prune_runs, place)
        gone = find(now, keep_days=keep_days, keep_last=keep_last, unfinished=unfinished)
    for run_id in gone:
        out.say(f"{'would delete' if dry_run else 'deleted'} run {run_id}")
    if not gone:
        out.say("no run has to go")
    return COMPLETED


def let_go(place: RunStore, settings: Settings, out: Output) -> None:
    """After a run: delete what the settings no longer keep."""
    keep_days, keep_last = settings.store_keep_days, settings.store_keep_last
    if keep_days is None and keep_last is None:
        return
    from nightwarden.errors import StoreError
    from nightwarden.store.retention import prune as prune_runs

    try:
        gone = prune_runs(place, datetime.now(UTC), keep_days=keep_days, keep_last=keep_last)
    except StoreError as error:  # the run itself is done
        out.note(f"old runs were not deleted: {error}", "yellow")
        return
    if gone:
        out.note(
            f"   {count(len(gone), 'old run')} deleted (store.keep_days, store.keep_last)", "dim"
        )
