"""`nightwarden run FILE`: run a workflow, supervised if asked for.

A flag wins over the environment, that over `nightwarden.toml`, that over the default.

Read next: `supervising.py`, `running.py`, `inputs.py`, `detaching.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from nightwarden.cli.options import (
    Debug,
    DecisionTimeout,
    Detach,
    File,
    Input,
    Inputs,
    Json,
    KeepGoing,
    MaxCost,
    MaxDecisions,
    MaxRetries,
    Nodes,
    Quiet,
    RunIdOption,
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
from nightwarden.cli.supervising import Limits, bounds_of, switched
from nightwarden.cli.wanted import Wanted

if TYPE_CHECKING:
    from nightwarden.cli.tracing import Tracer
    from nightwarden.settings import Settings


def run(
    file: File,
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
    detach: Detach = False,
    json: Json = False,
    quiet: Quiet = False,
    store: Store = None,
    run_id: RunIdOption = None,
    strict_exit: StrictExit = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Run a workflow.

    Exit codes: 0 completed, 1 failed, 2 usage or a workflow that cannot run, 3 suspended,
    130 cancelled. With --detach: 0 once the run has begun.
    """
    wanted = Wanted(
        file=file,
        input=input or (),
        inputs=inputs,
        nodes=nodes or (),
        trust=trust,
        supervise=supervise,
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
    out = Output(quiet=quiet, as_json=json)
    if detach:
        from nightwarden.cli.detaching import detached

        return detached(wanted, out)
    return perform(wanted, out)


def perform(wanted: Wanted, out: Output, tracer: Tracer | None = None) -> int:
    """Run what is wanted, and return the exit code; with a tracer, show each step's values."""
    settings = settings_for(out)
    mode = wanted.supervise if wanted.supervise is not None else settings.supervisor_mode
    wanted.limits.check()
    wanted.limits.check_use(mode)
    supervisors = switched(wanted.supervisors)
    budget = budget_of(wanted.max_cost, settings.run_max_cost_usd)

    from nightwarden.cli.asking import tell_of_steering, tell_of_steps, tell_once, with_the_model
    from nightwarden.cli.inputs import read_inputs
    from nightwarden.cli.keeping import let_go
    from nightwarden.cli.running import Stage, finish
    from nightwarden.library import load
    from nightwarden.session import Session

    workflow = load(wanted.file, nodes=wanted.nodes, trust=wanted.trust or settings.run_trust)
    mode = with_the_model(mode, wanted.limits.supervisor_model, settings)
    stage = Stage()
    inputs = read_inputs(workflow, wanted.input, wanted.inputs)
    with opened(wanted.store, settings) as place:
        session = Session(
            workflow,
            inputs,
            supervise=mode,
            bounds=bounds_of(settings, wanted.limits),
            store=place,
            run_id=wanted.run_id,
            supervisors=supervisors,
            keep_going=wanted.keep_going,
            max_cost_micro_usd=budget,
            aside=stage.aside if tracer is None else tracer.around(stage.aside),
            watch=tracer,
            **engine_options(settings),
        )
        tell_once(mode, settings, out, place.folder)
        tell_of_steps(session, settings, out, place.folder)
        tell_of_steering(session, settings, out, place.folder)
        code = finish(session, out, stage, strict=wanted.strict_exit, store=wanted.store)
        let_go(place, settings, out)
    return code


class EngineOptions(TypedDict, total=False):
    """What the settings may say about running, as `Session` takes it."""

    stop_grace_s: float
    window: int


def engine_options(settings: Settings) -> EngineOptions:
    """What the settings say about running; nothing where the engine's default holds."""
    found = EngineOptions()
    if settings.run_stop_grace_s is not None:
        found["stop_grace_s"] = settings.run_stop_grace_s
    if settings.run_window is not None:
        found["window"] = settings.run_window
    return found
