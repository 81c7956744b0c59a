"""Options that several commands share, and what they come to together with the settings.

Read next: `run.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightwarden.cli.failing import Usage
from nightwarden.cli.output import Output

if TYPE_CHECKING:
    from nightwarden.settings import Settings
    from nightwarden.store.jsonl import RunFolder

File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow: YAML or JSON.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or 'last'.")
]
Nodes = Annotated[
    list[Path] | None,
    typer.Option("--nodes", metavar="FILE.py", help="A Python file with steps. Repeatable."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import the Python files the workflow itself names.")
]
Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Where runs are recorded [default: .nightwarden]."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON; what people read goes to stderr.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]


def settings_for(out: Output) -> Settings:
    """The settings of file and environment; remarks about them are printed."""
    from nightwarden.settings import load_settings

    settings = load_settings()
    for remark in settings.remarks:
        out.note(remark, "yellow")
    return settings


def store_of(store: Path | None, settings: Settings) -> Path:
    """Where runs are recorded: the option, else the setting."""
    return store if store is not None else Path(settings.store_url)


def runs_in(store: Path | None, out: Output) -> RunFolder:
    """The recorded runs, for commands that only read."""
    from nightwarden.store.jsonl import RunFolder

    return RunFolder(store_of(store, settings_for(out)))


def not_negative(option: str, value: float | None) -> None:
    """Raise `Usage` for a bound below zero, or for none that can be counted with."""
    if value is not None and not 0 <= value < float("inf"):
        raise Usage(f"{option} is {value:g}, but has to be 0 or more; 0 means none")
