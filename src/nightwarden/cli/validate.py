"""`nightwarden validate FILE`: everything that is wrong with a workflow, before anything runs.

Read next: `graph.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, USAGE
from nightwarden.cli.options import Debug, File, Json, Nodes, Trust, settings_for
from nightwarden.cli.output import Output
from nightwarden.events.words import count

if TYPE_CHECKING:
    from nightwarden.errors import Problem
    from nightwarden.spec.workflow import Workflow

FORMAT: Final = 1


def validate(
    file: File,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    json: Json = False,
    nodes: Nodes = None,
    trust: Trust = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Check a workflow without running it.

    Every mistake is reported at once, each with its place and what to do.

    Exit codes: 0 it can run, 2 it cannot.
    """
    out = Output(as_json=json)
    settings = settings_for(out)

    from nightwarden.library import examine
    from nightwarden.spec.findings import strictly

    workflow, problems = _examined(
        lambda: examine(file, nodes=nodes or (), trust=trust or settings.run_trust)
    )
    problems = strictly(problems) if strict else problems
    errors = sum(problem.severity == "error" for problem in problems)
    if json:
        out.data(_as_json(file, problems, errors))
    for problem in problems:
        mark = "" if problem.severity == "error" else "warning: "
        out.say(f"{mark}{problem}", "red" if problem.severity == "error" else "yellow")
    out.say(_verdict(file, workflow, errors, len(problems) - errors))
    return USAGE if errors else COMPLETED


def _examined(
    examine: Callable[[], tuple[Workflow | None, tuple[Problem, ...]]],
) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """A file that cannot be read at all is a problem like any other."""
    from nightwarden.errors import SpecError

    try:
        return examine()
    except SpecError as error:
        return None, error.problems


def _verdict(file: Path, workflow: Workflow | None, errors: int, warnings: int) -> str:
    warned = f", {count(warnings, 'warning')}" if warnings else ""
    if errors or workflow is None:
        return f"{file}: {count(errors, 'error')}{warned}"
    from nightwarden.spec.names import mark_of

    steps = sum(not mark_of(node.id) for node in workflow.nodes)
    return f"{file}: {workflow.name} can run, {count(steps, 'step')}{warned}"


def _as_json(file: Path, problems: Sequence[Problem], errors: int) -> dict[str, object]:
    return {
        "version": FORMAT,
        "file": str(file),
        "valid": not errors,
        "problems": [asdict(problem) for problem in problems],
    }
