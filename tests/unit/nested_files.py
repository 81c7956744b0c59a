"""Workflow files that name one another, without a disk."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from spec_nodes import CATALOG

from nightwarden.errors import Problem
from nightwarden.spec.load import examine, load
from nightwarden.spec.nested import Source
from nightwarden.spec.workflow import Workflow

Files = Mapping[str, str]
INNER = """
name: inner
inputs:
  text: str
  times: {type: int, default: 2}
nodes:
  loud: {type: t.Shout, text: $inputs.text, times: $inputs.times}
  row: {type: t.Row, said: $loud, times: $inputs.times}
outputs: {loud: $loud, row: $row}
"""


def opener(files: Files, file: str) -> Callable[[str], Source]:
    """Opens what `file` names, beside it."""

    def open_file(name: str) -> Source:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return Source(files[path], path, path, path, None, opener(files, path))

    return open_file


def nested(outer: str, file: str = "outer.yaml", **inner: str) -> Workflow:
    """The workflow of `outer`, whose subworkflows are called `NAME.yaml`."""
    files = {f"{name}.yaml": text for name, text in inner.items()} | {file: outer}
    return load(outer, catalog=CATALOG, file=file, name="outer", open=opener(files, file))


def problems(files: Files, file: str = "outer.yaml") -> tuple[Problem, ...]:
    """Everything wrong with a file and those it names."""
    return examine(files[file], catalog=CATALOG, file=file, open=opener(files, file))[1]


def wires(workflow: Workflow) -> list[str]:
    """The data edges of a workflow, as `source.slot > target.slot`."""
    return [
        f"{e.source}.{e.source_slot} > {e.target}.{e.target_slot}"
        for e in workflow.edges
        if e.kind == "data"
    ]
