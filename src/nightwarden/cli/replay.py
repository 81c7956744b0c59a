"""`nightwarden replay RUN`: a recorded run once more, with its recorded decisions.

The steps run again, with all they do; only decisions come from the record. What came out
differently is listed.

Read next: `running.py`, `report.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from nightwarden.cli.failing import CANCELLED, COMPLETED, FAILED, Usage
from nightwarden.cli.options import (
    Debug,
    Json,
    Nodes,
    Quiet,
    RunArgument,
    Store,
    Trust,
    opened,
    settings_for,
)
from nightwarden.cli.output import Output
from nightwarden.cli.report import read_report

if TYPE_CHECKING:
    from nightwarden import Bounds
    from nightwarden.report import RunReport

FORMAT: Final = 1
_NO_LIMIT: Final = 1_000_000_000


def replay(
    run: RunArgument,
    nodes: Nodes = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Repeat a run with its recorded decisions.

    What differs is shown. The steps do what they do again: files are written, pages are
    fetched. A failure the record has no decision for stops the run.

    Exit codes: 0 nothing differs, 1 something does.
    """
    out = Output(quiet=quiet, as_json=json)
    settings = settings_for(out)

    from nightwarden.cli.run import engine_options
    from nightwarden.cli.running import carry_out, conclude
    from nightwarden.library import recorded
    from nightwarden.session import Session

    with opened(store, settings) as place:
        before = read_report(place, run)
        if not before.definition:
            raise Usage(f"the record of {run} has no beginning, so there is nothing to replay")
        workflow, inputs = recorded(
            before.definition, before.inputs, nodes=nodes or (), trust=trust or settings.run_trust
        )
        session = Session(
            workflow,
            inputs,
            supervise=f"replay:{before.run_id}" if before.supervisor else None,
            bounds=_bounds(before.bounds),
            store=place,
            keep_going=bool(before.bounds.get("keep_going")),
            **engine_options(settings),
        )
        result = carry_out(session, out)
        conclude(session, result, out, store=store)
        differs = _tell(before, read_report(place, session.run_id), out)
    if result.status == "cancelled":
        return CANCELLED
    return FAILED if differs else COMPLETED


def _tell(before: RunReport, after: RunReport, out: Output) -> bool:
    """Show the difference; whether there is one."""
    from nightwarden.report import compare, comparison_json, comparison_text, costs_text

    if out.as_json:
        told = {"version": FORMAT, "replayed": before.run_id, "run_id": after.run_id}
        out.data({**told, **comparison_json(before, after)})
    found = compare(before, after)
    if found:
        out.say(f"   differs from {before.run_id}:")
        for line in comparison_text(found):
            out.say(f"     {line}")
    else:
        out.say(f"   same as {before.run_id}: status, decisions, items, outputs, counts")
    costs = costs_text(before, after)
    if costs:
        out.say(f"   costs     {costs}")
    return bool(found)


def _bounds(recorded: Mapping[str, Any]) -> Bounds:
    """The bounds of the recorded run; what was decided there is not limited again here."""
    from nightwarden import Bounds

    default = Bounds()
    return Bounds(
        max_decisions=_NO_LIMIT,
        max_retries=_number(recorded.get("max_retries"), default.max_retries),
        max_retry_delay_s=_number(recorded.get("max_retry_delay_s"), default.max_retry_delay_s),
    )


def _number(value: object, default: Any) -> Any:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default
