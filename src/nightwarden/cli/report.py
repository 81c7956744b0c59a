"""`nightwarden report RUN`: what became of a recorded run.

Read next: `show.py`.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output, is_terminal

if TYPE_CHECKING:
    from nightwarden.report import RunReport
    from nightwarden.store.jsonl import RunFolder

_WIDTH = 100


def report(
    run: RunArgument,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Tell what became of a recorded run.

    What is missing and why, every decision, the accounts, the costs. Works for runs that
    failed, that were cut off, and that still go on.
    """
    out = Output(as_json=json)
    found = read_report(runs_in(store, out), run)

    from nightwarden.report import report_json, report_text

    if json:
        out.data(report_json(found))
        return COMPLETED
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH
    out.text(report_text(found, width=width))
    return COMPLETED


def read_report(folder: RunFolder, run: str) -> RunReport:
    """The report of a recorded run. Raises `StoreError`."""
    from nightwarden.report import fold_report

    run_id = folder.find(run)
    found = fold_report(folder.read(run_id), record=str(folder.events_path(run_id)))
    found.run_id = found.run_id or run_id  # a record that was cut off before its first line ended
    return found
