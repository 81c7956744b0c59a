"""`nightwarden run FILE`: run a workflow, supervised if asked for.

A flag wins over the environment, that over `nightwarden.toml`, that over the default. Bounds
of supervision without supervision are a mistake, and said to be one.

Read next: `running.py`, `inputs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from nightwarden.cli.failing import Usage
from nightwarden.cli.options import (
    Debug,
    File,
    Json,
    Nodes,
    Quiet,
    Store,
    Trust,
    not_negative,
    settings_for,
    store_of,
)
from nightwarden.cli.output import Output

if TYPE_CHECKING:
    from nightwarden import Bounds
    from nightwarden.settings import Settings


def run(
    file: File,
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="An input of the workflow; NAME=@FILE reads one. Repeatable.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE.json", help="A JSON object with inputs."),
    ] = None,
    nodes: Nodes = None,
    trust: Trust = False,
    supervise: Annotated[
        str | None,
        typer.Option(
            "--supervise",
            metavar="[MODE]",
            help="Who decides when a step fails: scripted:FILE, operator, replay:RUN, "
            "shadow:MODE, or off. Without MODE: a model, which this version does not have.",
        ),
    ] = None,
    max_decisions: Annotated[
        int | None,
        typer.Option("--max-decisions", metavar="N", help="Decisions the run may take [10]."),
    ] = None,
    max_retries: Annotated[
        int | None,
        typer.Option("--max-retries", metavar="N", help="Retries of a step for one item [2]."),
    ] = None,
    decision_timeout: Annotated[
        float | None,
        typer.Option(
            "--decision-timeout",
            metavar="S",
            help="Seconds a decision may take [60; 600 where a person is asked].",
        ),
    ] = None,
    supervisor_cost_cap: Annotated[
        float | None,
        typer.Option(
            "--supervisor-cost-cap",
            metavar="USD",
            help="What deciding may cost, in dollars [0.50].",
        ),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="After a failure, go on with what does not depend on it."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    store: Store = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="ID", help="The id of the run, a new one.")
    ] = None,
    strict_exit: Annotated[
        bool, typer.Option("--strict-exit", help="Exit with 4 when the run had to be supervised.")
    ] = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Run a workflow.

    Exit codes: 0 completed, 1 failed, 2 usage or a workflow that cannot run, 3 suspended,
    130 cancelled.
    """
    out = Output(quiet=quiet, as_json=json)
    settings = settings_for(out)
    mode = supervise if supervise is not None else settings.supervisor_mode
    given: dict[str, float | None] = {
        "--max-decisions": max_decisions,
        "--max-retries": max_retries,
        "--decision-timeout": decision_timeout,
        "--supervisor-cost-cap": supervisor_cost_cap,
    }
    _check_bounds(given, mode)

    from nightwarden.cli.inputs import read_inputs
    from nightwarden.cli.running import Stage, carry_out, conclude, exit_code
    from nightwarden.library import load
    from nightwarden.session import Session

    workflow = load(file, nodes=nodes or (), trust=trust or settings.run_trust)
    stage = Stage()
    session = Session(
        workflow,
        read_inputs(workflow, input or (), inputs),
        supervise=mode,
        bounds=bounds_of(
            settings, max_decisions, max_retries, decision_timeout, supervisor_cost_cap
        ),
        store=store_of(store, settings),
        run_id=run_id,
        keep_going=keep_going,
        aside=stage.aside,
        **engine_options(settings),
    )
    result = carry_out(session, out, stage)
    if json:
        out.data(result.to_json(session.masked_outputs(result)))
    conclude(session, result, out)
    return exit_code(result, strict=strict_exit)


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
