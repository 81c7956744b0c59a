"""The library's way to a workflow: from a file, or built in Python.

Each workflow gets a registry of its own, so that two of them may use the same name for
different steps.

Read next: `session.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nightwarden.errors import Problem, RunError, SpecError
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


def _prepared(
    path: Path, nodes: Iterable[object], trust: bool, registry: Registry | None
) -> tuple[str, Registry]:
    """The text of a workflow file, and a registry with the code it may use."""
    text = read_workflow(path)
    known = registry or Registry()
    for item in nodes:
        if isinstance(item, (str, Path)):
            known.load_file(Path(item))
        else:
            known.add(item)
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
