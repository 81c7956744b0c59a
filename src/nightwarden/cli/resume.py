"""`nightwarden resume RUN`: go on with a recorded run; exactly what is missing runs.

What may not simply be run again is listed before anything starts, with the ways on. Supervision
and bounds are those the run had, unless others are given.

Read next: `run.py`, `supervising.py`, `nightwarden/resuming.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import (
    Debug,
    DecisionTimeout,
    Inputs,
    Json,
    MaxCost,
    MaxDecisions,
    MaxRetries,
    Nodes,
    Quiet,
    RunArgument,
    Store,
    StrictExit,
    Supervise,
    SupervisorCostCap,
    SupervisorModel,
    Supervisors,
    Trust,
    budget_of,
    opened,
    settings_for,
)
from nightwarden.cli.output import Output
from nightwarden.cli.supervising import Limits, switched

if TYPE_CHECKING:
    from nightwarden.session import Session
    from nightwarden.store.contract import RunEntry

FORMAT = 1
_OFFERED = 3


def resume(
    run: RunArgument,
    redo: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NODE[ITEM]",
            help="Do this again, with all that follows from it. Repeatable.",
        ),
    ] = None,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            "--retry",
            metavar="NODE[ITEM]",
            help="Run this again at your own risk: it may happen twice. Repeatable.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Take a changed workflow: what has changed, and what lies below it, is done "
            "again.",
        ),
    ] = False,
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="An input that held a secret, and is not on record. Repeatable.",
        ),
    ] = None,
    inputs: Inputs = None,
    nodes: Nodes = None,
    trust: Trust = False,
    supervise: Supervise = None,
    supervisor_model: SupervisorModel = None,
    max_decisions: MaxDecisions = None,
    max_retries: MaxRetries = None,
    decision_timeout: DecisionTimeout = None,
    supervisor_cost_cap: SupervisorCostCap = None,
    supervisors: Supervisors = None,
    max_cost: MaxCost = None,
    keep_going: Annotated[
        bool | None,
        typer.Option(
            "--keep-going/--no-keep-going",
            help="After a failure, go on with what does not depend on it [as the run had it].",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    store: Store = None,
    strict_exit: StrictExit = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Go on with a run that did not complete.

    Whether it crashed, failed, was stopped, cancelled or suspended: what it had done stands, and
    what is missing runs. Supervision and bounds are those the run had.

    Exit codes are those of run; 0 if nothing is left to do.
    """
    out = Output(quiet=quiet, as_json=json)
    settings = settings_for(out)
    limits = Limits(
        supervisor_model=supervisor_model,
        max_decisions=max_decisions,
        max_retries=max_retries,
        decision_timeout=decision_timeout,
        supervisor_cost_cap=supervisor_cost_cap,
    )
    limits.check()
    budget = budget_of(max_cost)
    if supervisor_model is not None and supervise is None:
        raise Usage("--supervisor-model names a model for --supervise agent: add that as well")

    from nightwarden.cli.asking import tell_of_steering, tell_of_steps, tell_once, with_the_model
    from nightwarden.cli.inputs import read_inputs
    from nightwarden.cli.keeping import let_go
    from nightwarden.cli.run import engine_options
    from nightwarden.cli.running import Stage, finish
    from nightwarden.resuming import INHERIT, NothingLeft, resume_session

    mode = with_the_model(supervise, supervisor_model, settings) if supervise else INHERIT
    stage = Stage()
    with opened(store, settings) as place:
        try:
            session = resume_session(
                place,
                run,
                supervise=mode,
                bounds=limits.chosen(),
                supervisors=switched(supervisors),
                keep_going=keep_going,
                max_cost_micro_usd=budget,
                inputs=lambda workflow: read_inputs(workflow, input or (), inputs),
                nodes=nodes or (),
                trust=trust or settings.run_trust,
                force=force,
                redo=redo or (),
                retry=retry or (),
                aside=stage.aside,
                **engine_options(settings),
            )
        except NothingLeft as told:
            return _nothing_left(place.entry(run), str(told), out)
        limits.check_use(session.supervisor)
        for line in _risks(session):
            out.note(line, "yellow")
        tell_once(session.supervisor, settings, out, place.folder)
        tell_of_steps(session, settings, out, place.folder)
        tell_of_steering(session, settings, out, place.folder)
        code = finish(session, out, stage, strict=strict_exit, store=store)
        let_go(place, settings, out)
    return code


def _nothing_left(entry: RunEntry, told: str, out: Output) -> int:
    if out.as_json:
        known = {"status": entry.status, "supervised": entry.supervised, "reason": told}
        out.data({"version": FORMAT, "run_id": entry.run_id, **known, "headline": entry.headline})
    out.say(told)
    return COMPLETED


def _risks(session: Session) -> Iterator[str]:
    """What may not simply be run again, and the ways on."""
    risks = session.at_risk
    if not risks:
        return
    one = len(risks) == 1
    them = "it" if one else "them"
    calls = "1 call of a step" if one else f"{len(risks):,} calls of steps"
    does = "asks the supervisor about" if session.supervisor else "goes on without"
    yield f"{calls} may not simply be run again, so the run {does} {them}:"
    width = max(len(str(risk)) for risk in risks)
    for risk in risks:
        yield f"   {risk!s:<{width}}  {risk.why}"
    yield from _ways_on([str(risk) for risk in risks], supervised=bool(session.supervisor))


def _ways_on(names: Sequence[str], *, supervised: bool) -> Iterator[str]:
    options = " ".join(
        f"--retry '{name}'" if "[" in name else f"--retry {name}" for name in names[:_OFFERED]
    )
    more = " …" if len(names) > _OFFERED else ""
    yield f"   once it is known to do no harm: {options}{more}, at your own risk"
    if not supervised:
        yield "   to have it decided one by one: --supervise MODE"
    yield "   for good: retry_safe=True where a step is defined, if it may run twice"
