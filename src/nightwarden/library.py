"""The library's way to a workflow: from a file, or built in Python.

Each workflow gets a registry of its own, so that two of them may use the same name for
different steps.

Read next: `session.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from nightwarden.errors import Problem, RunError, SpecError
from nightwarden.kernel.marks import contains_mark
from nightwarden.nodes.registry import Registry
from nightwarden.spec import build
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.load import examine as examine_text
from nightwarden.spec.load import load as load_text
from nightwarden.spec.load import python_files
from nightwarden.spec.workflow import Workflow


def load(
    path: str | Path,
    *,
    nodes: Iterable[object] = (),
    trust: bool = False,
    registry: Registry | None = None,
) -> Workflow:
    """Load a workflow file (YAML or JSON).

    `nodes` are decorated functions, or Python files with some. Python files the workflow itself
    names are imported only with `trust`. Raises `SpecError` with every problem at once,
    `RunError` for a file that asks to be trusted.
    """
    path = Path(path)
    text, known = _prepared(path, nodes, trust, registry)
    loaded = load_text(text, catalog=known, file=str(path), name=path.stem, read_text=_reader(path))
    return replace(loaded, catalog=known)


def examine(
    path: str | Path,
    *,
    nodes: Iterable[object] = (),
    trust: bool = False,
    registry: Registry | None = None,
) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """Like `load`, but returns all errors and warnings; the workflow is None if it cannot run.

    Raises `SpecError` for a file that cannot be read at all, `RunError` for one that asks to be
    trusted.
    """
    path = Path(path)
    text, known = _prepared(path, nodes, trust, registry)
    found, problems = examine_text(
        text, catalog=known, file=str(path), name=path.stem, read_text=_reader(path)
    )
    return (None if found is None else replace(found, catalog=known)), problems


def recorded(
    definition: Mapping[str, object],
    inputs: Mapping[str, object],
    *,
    nodes: Iterable[object] = (),
    trust: bool = False,
) -> tuple[Workflow, dict[str, object]]:
    """The workflow and the inputs of a recorded run, as its first event holds them.

    `nodes` stand in for the Python files the workflow asks for; with `trust` they are looked for
    where the process runs. Raises `RunError` for what was masked and is no value any more.
    """
    for name, value in inputs.items():
        if contains_mark(value):
            raise RunError(
                f"input {name} of the recorded run was masked, so the run cannot be repeated; "
                "run the workflow again with `nightwarden run`"
            )
    if contains_mark(definition):
        raise RunError("the recorded definition was masked, so the run cannot be repeated")
    given, asked = list(nodes), definition.get("python")
    if isinstance(asked, list) and asked and not given:
        names = ", ".join(str(name) for name in asked)
        if not trust:
            raise RunError(
                f"the recorded run used code from {names}: name the files with --nodes, "
                "or allow those that lie here with --trust"
            )
        given = [Path(str(name)) for name in asked]
    known = _enrolled(Registry(), given)
    try:
        loaded = load_text(json.dumps(definition), catalog=known, format="json")
    except SpecError as error:
        # It is no file, and has no lines anybody knows.
        raise SpecError([replace(p, file="", line=None) for p in error.problems]) from error
    return replace(loaded, catalog=known), dict(inputs)


def _prepared(
    path: Path, nodes: Iterable[object], trust: bool, registry: Registry | None
) -> tuple[str, Registry]:
    """The text of a workflow file, and a registry with the code it may use."""
    text = read_workflow(path)
    known = _enrolled(registry or Registry(), nodes)
    asked = python_files(text, file=str(path))
    if asked and not trust:
        names = ", ".join(asked)
        raise RunError(
            f"{path} wants to run code from {names}: "
            "look at it, then allow it (trust=True or --trust)"
        )
    for name in asked:
        known.load_file(path.parent / name)
    return text, known


def _enrolled(registry: Registry, nodes: Iterable[object]) -> Registry:
    """The registry with decorated functions, and those in Python files, added."""
    for item in nodes:
        if isinstance(item, (str, Path)):
            registry.load_file(Path(item))
        else:
            registry.add(item)
    return registry


def _reader(path: Path) -> ReadText:
    """Reads files a workflow names, which lie beside it."""
    return lambda name: (path.parent / name).read_text(encoding="utf-8")


def workflow(
    name: str, *, registry: Registry | None = None, description: str = ""
) -> build.Builder:
    """Begin a workflow in Python; see `nightwarden.spec.build`."""
    return build.workflow(name, catalog=registry or Registry(), description=description)


def read_workflow(path: Path) -> str:
    """The text of a workflow file. Raises `SpecError` for one that cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        problem = Problem(
            file=str(path),
            rule="unreadable",
            message=f"the file cannot be read: {error.strerror or error}",
            remedy="check the path",
        )
    except UnicodeDecodeError as error:
        problem = Problem(
            file=str(path),
            rule="encoding",
            message=f"the file is not UTF-8 text (byte {error.start})",
            remedy="save it as UTF-8",
        )
    raise SpecError([problem])
