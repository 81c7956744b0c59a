"""`nightwarden runs`: the recorded runs, oldest first.

Read next: `show.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.options import Debug, Json, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.events.words import cut

if TYPE_CHECKING:
    from nightwarden.report import RunReport

FORMAT: Final = 1


def runs(
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """List the recorded runs, the latest last."""
    from nightwarden.errors import StoreError
    from nightwarden.report import fold_report

    out = Output(as_json=json)
    folder = runs_in(store, out)
    found: list[RunReport] = []
    for run_id in folder.run_ids():
        try:
            found.append(fold_report(folder.ends(run_id)))
        except StoreError as error:  # one broken record must not hide the others
            out.note(str(error), "yellow")
    if json:
        out.data({"version": FORMAT, "runs": [_as_json(report) for report in found]})
        return COMPLETED
    for report in found:
        out.say(f"{report.run_id}  {report.workflow}  {cut(report.headline or report.status)}")
    if not found:
        out.say(f"no run is recorded in {folder.root}")
    return COMPLETED


def _as_json(report: RunReport) -> dict[str, object]:
    return {
        "run_id": report.run_id,
        "workflow": report.workflow,
        "status": report.status,
        "supervised": report.supervised,
        "headline": report.headline,
        "started_at": report.started_at,
        "duration_s": report.duration_s,
    }
