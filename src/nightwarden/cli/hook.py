"""`nightwarden hook install|uninstall|doctor`: how messages reach a Claude Code session.

Read next: `nightwarden/steering/claude/hooks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, FAILED
from nightwarden.cli.options import Debug, Json
from nightwarden.cli.output import Output
from nightwarden.cli.places import from_here

if TYPE_CHECKING:
    from nightwarden.steering.claude.hooks import Change

FORMAT: Final = 1

Cwd = Annotated[Path, typer.Option("--cwd", metavar="DIR", help="The project Claude Code runs in.")]
Project = Annotated[
    bool,
    typer.Option(
        "--project", help="In the settings the project shares, instead of settings.local.json."
    ),
]


def install(
    cwd: Cwd = Path(),
    project: Project = False,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Let Claude Code sessions of a project read messages.

    Hooks are added to its settings; whatever else stands there stays.
    """
    from nightwarden.steering.claude import hooks

    change = hooks.install(cwd, shared=project)
    out = Output(as_json=json)
    if json:
        out.data(_as_json(change))
    if change.events:
        out.say(f"hooks at {', '.join(change.events)} are in {from_here(change.path)}")
        if change.backup is not None:
            out.say(f"what was there before is in {from_here(change.backup)}")
        out.say("`nightwarden hook doctor` looks whether messages arrive")
    else:
        out.say(f"the hooks are in {from_here(change.path)} already")
    return COMPLETED


def uninstall(
    cwd: Cwd = Path(),
    project: Project = False,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Take the hooks out again."""
    from nightwarden.steering.claude import hooks

    change = hooks.uninstall(cwd, shared=project)
    out = Output(as_json=json)
    if json:
        out.data(_as_json(change))
    what = (
        f"hooks at {', '.join(change.events)} are gone from" if change.events else "no hook is in"
    )
    out.say(f"{what} {from_here(change.path)}")
    return COMPLETED


def doctor(
    cwd: Cwd = Path(),
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Look whether messages can reach a Claude Code session.

    Exit codes: 0 all is well, 1 something is not.
    """
    from nightwarden.steering.claude.doctor import examine

    found = examine(cwd)
    out = Output(as_json=json)
    if json:
        rows = [{"well": f.well, "what": f.what, "remedy": f.remedy} for f in found]
        out.data({"version": FORMAT, "well": all(f.well for f in found), "findings": rows})
    for finding in found:
        mark = "ok " if finding.well else "!! "
        remedy = f" — {finding.remedy}" if finding.remedy else ""
        out.say(f"{mark} {finding.what}{remedy}", "" if finding.well else "red")
    return COMPLETED if all(finding.well for finding in found) else FAILED


def _as_json(change: Change) -> dict[str, object]:
    return {
        "version": FORMAT,
        "file": str(change.path),
        "events": list(change.events),
        "backup": None if change.backup is None else str(change.backup),
    }


app = typer.Typer(
    help="Let Claude Code sessions read messages.", no_args_is_help=True, rich_markup_mode=None
)
for _command in (install, uninstall, doctor):
    app.command()(_command)
