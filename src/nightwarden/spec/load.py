"""Loading a workflow file: text in, one validated `Workflow` out, or everything wrong with it.

    text ─▶ Document ─▶ Draft ─▶ Workflow
            lines       sugar    names, edges, types, scopes

No paths and no registry: who loads has read the text, and hands in where node types are
looked up. Files the workflow names (`python:`, `items: "@…"`, subworkflows) are the caller's to
open.

Read next: `document.py`, `shape.py`, `nested.py`, `sugar.py`, `check.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nightwarden.errors import Problem
from nightwarden.spec.catalog import Catalog
from nightwarden.spec.check import assemble
from nightwarden.spec.document import read_document
from nightwarden.spec.editor import is_editor_file, read_editor_file
from nightwarden.spec.findings import Findings
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.nested import Nest, OpenWorkflow, Source
from nightwarden.spec.shape import read_shape
from nightwarden.spec.subworkflow import FILE, SUBWORKFLOW
from nightwarden.spec.workflow import Workflow


def load(
    text: str,
    *,
    catalog: Catalog,
    file: str = "",
    name: str = "",
    format: str | None = None,
    read_text: ReadText | None = None,
    open: OpenWorkflow | None = None,
    key: str = "",
) -> Workflow:
    """The workflow a text describes. Raises `SpecError` with every error at once.

    `file` stands in messages, `name` is used where the text gives none. `format` is `"yaml"`,
    `"json"`, or None to tell by the file's name and text. `read_text` opens files named in
    `items: "@…"`, `open` the workflows of subworkflows; `key` is the one of this file (`Source`).
    """
    findings = Findings(file)
    source = Source(text, file, name, key or file, read_text, open)
    workflow = _Loading(source, catalog).read(source, findings, format)
    findings.raise_errors()
    assert workflow is not None, "what cannot be read has a finding that says so"
    return workflow


def examine(
    text: str,
    *,
    catalog: Catalog,
    file: str = "",
    name: str = "",
    format: str | None = None,
    read_text: ReadText | None = None,
    open: OpenWorkflow | None = None,
    key: str = "",
) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """Like `load`, but never raises: the workflow if it can run, and all errors and warnings."""
    findings = Findings(file)
    source = Source(text, file, name, key or file, read_text, open)
    workflow = _Loading(source, catalog).read(source, findings, format)
    return None if findings.failed else workflow, findings.report()


@dataclass(frozen=True, slots=True)
class Named:
    """The files a workflow asks for: Python files, and workflows it has as nodes."""

    python: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()


def named_files(text: str, *, file: str = "", format: str | None = None) -> Named:
    """The files a workflow names, to be allowed and opened before it is loaded.

    Empty for a text that cannot be read: loading it says why.
    """
    document = read_document(text, Findings(file), format)
    data = None if document is None else document.data
    if not isinstance(data, Mapping):
        return Named()
    value = data.get("python")
    listed = [value] if isinstance(value, str) else value
    python = listed if isinstance(listed, list) else []
    return Named(_names(python), _names(_workflows_in(data.get("nodes"))))


def python_files(text: str, *, file: str = "", format: str | None = None) -> tuple[str, ...]:
    """The Python files a workflow itself asks for; see `named_files`."""
    return named_files(text, file=file, format=format).python


def _names(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for v in values if isinstance(v, str) and v))


def _workflows_in(nodes: object) -> Iterator[object]:
    """What the subworkflows among the nodes name, wherever it stands in each form of a file."""
    found = nodes.values() if isinstance(nodes, Mapping) else nodes
    for node in found if isinstance(found, Iterable) else ():
        if isinstance(node, Mapping):
            data = node.get("data")
            parts = [p for p in (node, data) if isinstance(p, Mapping)]
            if any(part.get("type") == SUBWORKFLOW for part in parts):
                parts += [p for p in (p.get("properties") for p in parts) if isinstance(p, Mapping)]
                yield from (part.get(FILE) for part in parts)


class _Loading:
    """One load, and what all its files share."""

    def __init__(self, outermost: Source, catalog: Catalog) -> None:
        self._catalog = catalog
        self._nest = Nest(outermost, self.read)

    def read(
        self, source: Source, findings: Findings, format: str | None = None
    ) -> Workflow | None:
        """Load one file."""
        document = read_document(source.text, findings, format)
        if document is None:
            return None
        name, read_text = source.name, source.read_text
        if is_editor_file(document.data):
            catalog = self._catalog
            draft = read_editor_file(document, findings, catalog, name=name, read_text=read_text)
        else:
            draft = read_shape(document, findings, name=name, read_text=read_text)
        if draft is None:
            return None
        self._nest.fill(draft, findings)
        return assemble(draft, self._catalog, findings)
