"""`nightwarden run FILE`: run a workflow, supervised if asked for.

A flag wins over the environment, that over `nightwarden.toml`, that over the default. Bounds
of supervision without supervision are a mistake, and said to be one.

Read next: `running.py`, `inputs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from nightwarden.cli.failing import Usage
from nightwarden.cli.options import (
    Debug,
    DecisionTimeout,
    File,
    Input,
    Inputs,
    Json,
    KeepGoing,
    MaxDecisions,
    MaxRetries,
    Nodes,
    Quiet,
    RunIdOption,
    Store,
    StrictExit,
    Supervise,
    SupervisorCostCap,
    Trust,
    not_negative,
    settings_for,
    store_of,
)
from nightwarden.cli.output import Output

if TYPE_CHECKING:
    from nightwarden import Bounds
    from nightwarden.cli.tracing import Tracer
    from nightwarden.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the options of a run come to. None where an option was not given."""

    file: Path
    input: Sequence[str]
    inputs: Path | None
    nodes: Sequence[Path]
    trust: bool
    supervise: str | None
    max_decisions: int | None
    max_retries: int | None
    decision_timeout: float | None
    supervisor_cost_cap: float | None
    keep_going: bool
    store: Path | None
    run_id: str | None
    strict_exit: bool


def run(
    file: File,
    input: Input = None,
    inputs: Inputs = None,
    nodes: Nodes = None,
    trust: Trust = False,
    supervise: Supervise = None,
    max_decisions: MaxDecisions = None,
    max_retries: MaxRetries = None,
    decision_timeout: DecisionTimeout = None,
    supervisor_cost_cap: SupervisorCostCap = None,
    keep_going: KeepGoing = False,
    json: Json = False,
    quiet: Quiet = False,
    store: Store = None,
    run_id: RunIdOption = None,
    strict_exit: StrictExit = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Run a workflow.

    Exit codes: 0 completed, 1 failed, 2 usage or a workflow that cannot run, 3 suspended,
    130 cancelled.
    """
    wanted = Wanted(
        file=file,
        input=input or (),
        inputs=inputs,
        nodes=nodes or (),
        trust=trust,
        supervise=supervise,
        max_decisions=max_decisions,
        max_retries=max_retries,
        decision_timeout=decision_timeout,
        supervisor_cost_cap=supervisor_cost_cap,
        keep_going=keep_going,
        store=store,
        run_id=run_id,
        strict_exit=strict_exit,
    )
    return perform(wanted, Output(quiet=quiet, as_json=json))


def perform(wanted: Wanted, out: Output, tracer: Tracer | None = None) -> int:
    """Run what is wanted, and return the exit code; with a tracer, show each step's values."""
    settings = settings_for(out)
    mode = wanted.supervise if wanted.supervise is not None else settings.supervisor_mode
    given: dict[str, float | None] = {
        "--max-decisions": wanted.max_decisions,
        "--max-retries": wanted.max_retries,
        "--decision-timeout": wanted.decision_timeout,
        "--supervisor-cost-cap": wanted.supervisor_cost_cap,
    }
    _check_bounds(given, mode)

    from nightwarden.cli.inputs import read_inputs
    from nightwarden.cli.running import Stage, carry_out, conclude, exit_code
    from nightwarden.library import load
    from nightwarden.session import Session

    workflow = load(wanted.file, nodes=wanted.nodes, trust=wanted.trust or settings.run_trust)
    stage = Stage()
    session = Session(
        workflow,
        read_inputs(workflow, wanted.input, wanted.inputs),
        supervise=mode,
        bounds=bounds_of(
            settings,
            wanted.max_decisions,
            wanted.max_retries,
            wanted.decision_timeout,
            wanted.supervisor_cost_cap,
        ),
        store=store_of(wanted.store, settings),
        run_id=wanted.run_id,
        keep_going=wanted.keep_going,
        aside=stage.aside if tracer is None else tracer.around(stage.aside),
        watch=tracer,
        **engine_options(settings),
    )
    result = carry_out(session, out, stage)
    if out.as_json:
        out.data(result.to_json(session.masked_outputs(result)))
    conclude(session, result, out)
    return exit_code(result, strict=wanted.strict_exit)


def _check_bounds(given: Mapping[str, float | None], mode: str | None) -> None:
    for option, value in given.items():
        not_negative(option, value)
        if value is not None and mode in (None, "off"):
            raise Usage(
                f"{option} bounds a supervisor, and none was asked for; "
                "add --supervise MODE, or leave it out"
            )


def bounds_of(
    settings: Settings,
    max_decisions: int | None = None,
    max_retries: int | None = None,
    decision_timeout_s: float | None = None,
    cost_cap_usd: float | None = None,
) -> Bounds:
    """The bounds of a run: an option, else the setting, else the engine's default."""
    from nightwarden import Bounds

    cap_usd = settings.supervisor_cost_cap_usd if cost_cap_usd is None else cost_cap_usd
    chosen = {
        "max_decisions": _first(max_decisions, settings.supervisor_max_decisions),
        "max_retries": _first(max_retries, settings.supervisor_max_retries),
        "decision_timeout_s": _first(decision_timeout_s, settings.supervisor_decision_timeout_s),
        "cost_cap_micro_usd": None if cap_usd is None else round(cap_usd * 1_000_000),
        "max_retry_delay_s": settings.run_max_retry_delay_s,
    }
    return Bounds(**{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]


def _first(option: float | None, setting: float | None) -> float | None:
    return setting if option is None else option


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
