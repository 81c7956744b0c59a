"""`nightwarden new NAME`: a workflow and its steps, small, complete, and ready to run.

Nothing that is there already is overwritten: both files are written, or neither.

Read next: `run.py`, `debug.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import Debug
from nightwarden.cli.output import Output
from nightwarden.cli.places import explained_commands, from_here, program

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")

WORKFLOW: Final = """\
# Greets everyone on a list, and puts the greetings into one text.
version: 1
name: "@NAME@"
python: [@MODULE@.py]

inputs:
  names:
    type: list[str]
    default: [Ada, Grace, Edsger]
    description: Whom to greet

nodes:
  # [*] fans the list out: this step runs once for each name.
  greeting:
    type: @MODULE@.Greet
    name: $inputs.names[*]

  # [] collects: this step runs once, with all greetings in the order of the names.
  letter:
    type: @MODULE@.Letter
    greetings: $greeting[]
"""
STEPS: Final = '''\
"""The steps of @NAME@.yaml. A step is a typed function: parameters in, return value out."""

from __future__ import annotations

from nightwarden import Collect, NodeError, node


@node(retry_safe=True, label="{name}")
def greet(name: str, word: str = "Hello") -> str:
    """Greet one person."""
    if not name.strip():
        raise NodeError("there is no name to greet", code="no-name")
    return f"{word}, {name}!"


@node(retry_safe=True)
def letter(greetings: Collect[str]) -> str:
    """Put the greetings into one text."""
    return " ".join(greetings)
'''


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What to call it: letters, digits, - and _.")
    ],
    dir: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where the files go; made if need be.")
    ] = Path(),
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Begin a workflow: a file with two steps wired up, and the code of the steps.

    Nothing is overwritten.
    """
    if not _NAME.fullmatch(name):
        raise Usage(
            f"{name!r} cannot be a workflow's name: use up to 60 letters, digits, '-' and '_', "
            "beginning with a letter"
        )
    module = f"{name.replace('-', '_')}_nodes"
    workflow, steps = dir / f"{name}.yaml", dir / f"{module}.py"
    texts = {workflow: WORKFLOW, steps: STEPS}
    dir.mkdir(parents=True, exist_ok=True)
    write_new(
        {
            path: text.replace("@NAME@", name).replace("@MODULE@", module)
            for path, text in texts.items()
        }
    )
    out = Output()
    for line in (f"wrote {from_here(workflow)}", f"wrote {from_here(steps)}", "", "Next"):
        out.say(line)
    for line in explained_commands(_next(_typed(workflow), _typed(steps), f"{module}.Greet")):
        out.say(line)
    return COMPLETED


def write_new(texts: Mapping[Path, str]) -> None:
    """Write files that are not there yet, all or none. Raises `Usage` for one that is."""
    there = [path for path in texts if path.exists() or path.is_symlink()]
    if there:
        raise _taken(there)
    made: list[Path] = []
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except BaseException as error:
        for path in made:
            path.unlink(missing_ok=True)
        if isinstance(error, FileExistsError):  # somebody was faster
            raise _taken([Path(error.filename)]) from error
        raise


def _taken(paths: Sequence[Path]) -> Usage:
    names = " and ".join(from_here(path) for path in paths)
    return Usage(f"{names}: there already, and nothing was written; choose another name or --dir")


def _next(workflow: str, steps: str, step: str) -> Mapping[str, str]:
    """Commands that work as they stand."""
    typed = program()
    return {
        f"{typed} run {workflow} --trust": "run it; --trust allows the Python file it names",
        f"{typed} debug {workflow} --trust": "see what every step takes and gives",
        f"{typed} validate {workflow} --trust": "check it without running it",
        f"{typed} graph {workflow} --trust": "what is wired to what",
        f"{typed} nodes {step} --nodes {steps}": "what a step takes, and what it promises",
    }


def _typed(path: Path) -> str:
    """A path as it is typed in a shell; never to be taken for an option."""
    shown = from_here(path)
    return shlex.quote(f"./{shown}" if shown.startswith("-") else shown)
