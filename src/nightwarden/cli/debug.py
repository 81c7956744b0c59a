"""`nightwarden debug FILE`: a run with every invocation's inputs and outputs.

Read next: `tracing.py`, `run.py`.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from nightwarden.cli.failing import Usage
from nightwarden.cli.options import (
    Debug,
    DecisionTimeout,
    File,
    Input,
    Inputs,
    Json,
    KeepGoing,
    MaxCost,
    MaxDecisions,
    MaxRetries,
    Nodes,
    RunIdOption,
    Store,
    StrictExit,
    Supervise,
    SupervisorCostCap,
    SupervisorModel,
    Supervisors,
    Trust,
)
from nightwarden.cli.output import Output
from nightwarden.cli.run import perform
from nightwarden.cli.supervising import Limits
from nightwarden.cli.wanted import Wanted

PERSON: Final = "operator"


def debug(
    file: File,
    break_on_failure: Annotated[
        bool,
        typer.Option("--break-on-failure", help="Ask what to do when a step fails, at once."),
    ] = False,
    input: Input = None,
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
    keep_going: KeepGoing = False,
    json: Json = False,
    store: Store = None,
    run_id: RunIdOption = None,
    strict_exit: StrictExit = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Run a workflow, and show what every step takes and gives.

    Inputs and outputs are printed to standard error as they come, secrets masked and long
    values cut; the rest is as with run. Exit codes are those of run.
    """
    from nightwarden.cli.tracing import Tracer

    if break_on_failure and supervise not in (None, PERSON):
        raise Usage(
            f"--break-on-failure asks you, and --supervise {supervise} asks someone else; "
            "leave one of them out"
        )
    wanted = Wanted(
        file=file,
        input=input or (),
        inputs=inputs,
        nodes=nodes or (),
        trust=trust,
        supervise=PERSON if break_on_failure else supervise,
        limits=Limits(
            supervisor_model=supervisor_model,
            max_decisions=max_decisions,
            max_retries=max_retries,
            decision_timeout=decision_timeout,
            supervisor_cost_cap=supervisor_cost_cap,
        ),
        max_cost=max_cost,
        supervisors=supervisors,
        keep_going=keep_going,
        store=store,
        run_id=run_id,
        strict_exit=strict_exit,
    )
    out = Output(as_json=json)
    return perform(wanted, out, Tracer(out))
