"""Options that several commands share, and what they come to together with the settings.

Read next: `run.py`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightwarden.cli.completing import run_ids
from nightwarden.cli.failing import Usage
from nightwarden.cli.output import Output

if TYPE_CHECKING:
    from nightwarden.settings import Settings
    from nightwarden.store.sqlstore import SqlStore

File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow: YAML or JSON.")]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id, the beginning of one, or 'last'.",
        autocompletion=run_ids,
    ),
]
Nodes = Annotated[
    list[Path] | None,
    typer.Option("--nodes", metavar="FILE.py", help="A Python file with steps. Repeatable."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import the Python files the workflow itself names.")
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where runs are recorded: a folder, sqlite:FILE or postgresql://… "
        "[default: .nightwarden].",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON; what people read goes to stderr.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]

# -- what `run` and `debug` share --

Input = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="An input of the workflow; NAME=@FILE reads one. Repeatable.",
    ),
]
Inputs = Annotated[
    Path | None, typer.Option("--inputs", metavar="FILE.json", help="A JSON object with inputs.")
]
Supervise = Annotated[
    str | None,
    typer.Option(
        "--supervise",
        metavar="[MODE]",
        help="Who decides when a step fails: agent[:MODEL], scripted:FILE, operator, "
        "replay:RUN, shadow[:MODE], the name of an installed supervisor, or off. Without MODE: "
        "agent, a model.",
    ),
]
SupervisorModel = Annotated[
    str | None,
    typer.Option(
        "--supervisor-model",
        metavar="ID",
        help="The model that decides, as provider:name, such as ollama:llama3.2.",
    ),
]
MaxDecisions = Annotated[
    int | None,
    typer.Option("--max-decisions", metavar="N", help="Decisions the run may take [10]."),
]
MaxRetries = Annotated[
    int | None,
    typer.Option("--max-retries", metavar="N", help="Retries of a step for one item [2]."),
]
DecisionTimeout = Annotated[
    float | None,
    typer.Option(
        "--decision-timeout",
        metavar="S",
        help="Seconds a decision may take [60; 600 where a person is asked].",
    ),
]
SupervisorCostCap = Annotated[
    float | None,
    typer.Option(
        "--supervisor-cost-cap", metavar="USD", help="What deciding may cost, in dollars [0.50]."
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="What the run's steps may spend, in dollars; a model call it does not cover stops "
        "the run, and so do steps that have spent more by themselves.",
    ),
]
Supervisors = Annotated[
    str | None,
    typer.Option(
        "--supervisors",
        metavar="on|off",
        help="Whether the supervisors the workflow declares watch its agents [on].",
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="After a failure, go on with what does not depend on it."),
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach", help="Run in a process of its own that outlives this terminal, and say its id."
    ),
]
RunIdOption = Annotated[
    str | None, typer.Option("--run-id", metavar="ID", help="The id of the run, a new one.")
]
StrictExit = Annotated[
    bool, typer.Option("--strict-exit", help="Exit with 4 when the run had to be supervised.")
]


def budget_of(max_cost: float | None, setting: float | None = None) -> int | None:
    """A run's budget in micro-dollars: the option, else the setting. Raises `Usage`."""
    if max_cost is not None and not 0 <= max_cost < float("inf"):
        raise Usage(
            f"--max-cost is {max_cost:g}, but has to be dollars, 0 or more; 0 allows no model call"
        )
    dollars = setting if max_cost is None else max_cost
    return None if dollars is None else round(dollars * 1_000_000)


def settings_for(out: Output) -> Settings:
    """The settings of file and environment; remarks about them are printed."""
    from nightwarden.settings import load_settings

    settings = load_settings()
    for remark in settings.remarks:
        out.note(remark, "yellow")
    return settings


def store_of(store: str | None, settings: Settings) -> str:
    """Where runs are recorded: the option, else the setting."""
    return store if store is not None else settings.store_url


def same_store(store: str | None) -> str:
    """What a command that is shown needs to find the same runs; nothing where none was named.

    An address may hold a password, which is never printed.
    """
    if store is None:
        return ""
    scheme, colon, _ = store.partition("://")
    return f" --store {scheme}://…" if colon else f" --store {shlex.quote(store)}"


def runs_in(store: str | None, out: Output) -> SqlStore:
    """The recorded runs, for commands that read, or leave a word for a run; to be closed."""
    return opened(store, settings_for(out))


def opened(store: str | None, settings: Settings) -> SqlStore:
    """The store of the option, else of the settings; to be closed."""
    from nightwarden.store.opening import open_store

    return open_store(store_of(store, settings), blobs=settings.store_blobs)
