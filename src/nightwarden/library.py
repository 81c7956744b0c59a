"""The library's way to a workflow: from a file, or built in Python.

Each workflow gets a registry of its own, so that two of them may use the same name for
different steps.

Read next: `session.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from nightwarden.errors import Problem, RunError, SpecError
from nightwarden.masking.marks import contains_mark
from nightwarden.nodes.registry import Registry
from nightwarden.spec import build
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.load import examine as examine_text
from nightwarden.spec.load import load as load_text
from nightwarden.spec.load import named_files
from nightwarden.spec.nested import CannotOpen, OpenWorkflow, Source
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
    loaded = load_text(text, catalog=known, **_around(path))
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
    found, problems = examine_text(text, catalog=known, **_around(path))
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


def asked_python(path: Path) -> list[Path]:
    """The Python files that a workflow file, or one it uses, names itself."""
    text = read_workflow(path)
    names = dict.fromkeys(_python_files(Source(text, **_around(path)), "", set()))
    return [path.parent / name for name in names]


def _prepared(
    path: Path, nodes: Iterable[object], trust: bool, registry: Registry | None
) -> tuple[str, Registry]:
    """The text of a workflow file, and a registry with the code it may use."""
    text = read_workflow(path)
    known = _enrolled(registry or Registry(), nodes)
    asked = dict.fromkeys(_python_files(Source(text, **_around(path)), "", set()))
    if asked and not trust:
        names = ", ".join(asked)
        raise RunError(
            f"{path} wants to run code from {names}: "
            "look at it, then allow it (trust=True or --trust)"
        )
    for name in asked:
        known.load_file(path.parent / name)
    return text, known


def _python_files(source: Source, folder: str, seen: set[str]) -> Iterator[str]:
    """The Python files a workflow asks for, and those its subworkflows do, as seen from outside.

    What cannot be opened is left out here: loading says why.
    """
    seen.add(source.key)
    named = named_files(source.text, file=source.file)
    yield from (folder + name for name in named.python)
    for name in named.workflows:
        try:
            inner = source.open(name) if source.open is not None else None
        except (CannotOpen, OSError, UnicodeError):
            continue
        if inner is not None and inner.key not in seen:
            yield from _python_files(inner, folder + name.removesuffix(Path(name).name), seen)


def _enrolled(registry: Registry, nodes: Iterable[object]) -> Registry:
    """The registry with decorated functions, and those in Python files, added."""
    for item in nodes:
        if isinstance(item, (str, Path)):
            registry.load_file(Path(item))
        else:
            registry.add(item)
    return registry


class _Around(TypedDict):
    """What loading a text is told of the file it stood in; see `spec.nested.Source`."""

    file: str
    name: str
    key: str
    read_text: ReadText
    open: OpenWorkflow


def _around(path: Path, root: Path | None = None) -> _Around:
    """How a workflow is called, and how it reaches the files it names, which lie beside it.

    A subworkflow may lie anywhere below the folder of the outermost workflow (`root`), whatever
    links lead there: who runs a file allows its folder, and no more.
    """
    root = path.parent.resolve() if root is None else root

    def read_text(name: str) -> str:
        return (path.parent / name).read_text(encoding="utf-8")

    def open_workflow(name: str) -> Source:
        found = path.parent / name
        if Path(name).is_absolute() or not _real(found).is_relative_to(root):
            raise CannotOpen(
                f"{name} lies outside the folder of the workflow",
                "put it beside or below the outermost workflow, and name it from this file",
            )
        return Source(found.read_bytes().decode("utf-8-sig"), **_around(found, root))

    return _Around(
        file=str(path),
        name=path.stem,
        key=str(_real(path)),
        read_text=read_text,
        open=open_workflow,
    )


def _real(path: Path) -> Path:
    """Where a path leads. Raises `OSError` for one that can lead nowhere."""
    try:
        return path.resolve()
    except (ValueError, RuntimeError) as error:  # a null character, a circle of links
        raise OSError(str(error)) from error


def workflow(
    name: str,
    *,
    registry: Registry | None = None,
    description: str = "",
    python: Sequence[str] = (),
    supervisors: Mapping[str, object] | None = None,
    prompts: Mapping[str, object] | None = None,
) -> build.Builder:
    """Begin a workflow in Python; see `nightwarden.spec.build`.

    `python` are files with node types, beside the caller's own; they are loaded, and a file
    written from the workflow asks for them. `supervisors` and `prompts` are as in a workflow file.
    Raises `SpecError` for a file that cannot be loaded.
    """
    known = registry if registry is not None else Registry()
    caller = sys._getframe(1).f_code.co_filename
    for file in python:
        known.load_file(Path(caller).parent / file)
    return build.workflow(
        name,
        catalog=known,
        description=description,
        python=python,
        supervisors=supervisors,
        prompts=prompts,
        file=caller,
    )


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
