"""`nightwarden costs`: what the recorded runs cost, by run, node, model and day.

Runs whose end says that they cost nothing are counted, and not read.

Read next: `report.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import Debug, Json, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.cli.report import Runs
from nightwarden.events.words import mapping_of

if TYPE_CHECKING:
    from nightwarden.report import Spending


def costs(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Only these runs [default: all]."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="WHAT", help="Only by run, node, model or day. Repeatable."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="YYYY-MM-DD", help="Only runs started on that day or later."
        ),
    ] = None,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Show what recorded runs cost.

    By run, node, model and day; what deciding cost stands apart. Money a model turn had
    reserved when it was cut off counts in full.
    """
    from nightwarden.report import spending_json, spending_text
    from nightwarden.report.spending import BY

    wanted = tuple(by or BY)
    for name in wanted:
        if name not in BY:
            raise Usage(f"--by {name}: costs are told by {', '.join(BY[:-1])} or {BY[-1]}")
    first = _day(since)
    out = Output(as_json=json)
    with runs_in(store, out) as place:
        chosen = [place.find(run) for run in runs] if runs else place.run_ids()
        spending = spent(place, list(dict.fromkeys(chosen)), first, out)
    if json:
        out.data(spending_json(spending))
    else:
        out.text(spending_text(spending, wanted))
    return COMPLETED


def spent(runs: Runs, chosen: Sequence[str], since: str, out: Output) -> Spending:
    """What the chosen runs cost together; a record that cannot be read is named and left out."""
    from nightwarden.errors import StoreError
    from nightwarden.report import Spending, fold_costs

    spending = Spending()
    for run_id in chosen:
        try:
            ends = list(runs.ends(run_id))
            start = ends[0] if ends else {}
            if since and str(start.get("at") or "")[:10] < since:
                continue
            events: Iterable[Mapping[str, Any]] = ends if is_free(ends) else runs.read(run_id)
            costs = fold_costs(events)
        except StoreError as error:  # one broken record must not hide the others
            out.note(str(error), "yellow")
            continue
        workflow, at = str(start.get("workflow") or ""), str(start.get("at") or "")
        spending.add(run_id, workflow, at, costs)
    return spending


def is_free(ends: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the end of a run says that nothing was spent."""
    from nightwarden.events.run import ENDS

    last = ends[-1] if ends else {}
    told = (last.get("cost_micro_usd"), last.get("supervisor_cost_micro_usd"))
    steered = mapping_of(last.get("ledger")).get("steering_micro_usd")
    return last.get("type") in ENDS and not any(told) and not steered


def _day(since: str | None) -> str:
    try:
        return "" if since is None else date.fromisoformat(since).isoformat()
    except ValueError:
        raise Usage(f"--since {since}: write a day as 2026-01-31") from None
