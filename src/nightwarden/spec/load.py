"""Loading a workflow file: text in, one validated `Workflow` out, or everything wrong with it.

    text ─▶ Document ─▶ Draft ─▶ Workflow
            lines       sugar    names, edges, types, scopes

No paths and no registry: who loads has read the text, and hands in where node types are
looked up. Files the workflow names (`python:`, `items: "@…"`) are the caller's to open.

Read next: `document.py`, `shape.py`, `sugar.py`, `check.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.errors import Problem
from nightwarden.spec.catalog import Catalog
from nightwarden.spec.check import assemble
from nightwarden.spec.document import read_document
from nightwarden.spec.editor import is_editor_file, read_editor_file
from nightwarden.spec.findings import Findings
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.shape import read_shape
from nightwarden.spec.workflow import Workflow


def load(
    text: str,
    *,
    catalog: Catalog,
    file: str = "",
    name: str = "",
    format: str | None = None,
    read_text: ReadText | None = None,
) -> Workflow:
    """The workflow a text describes. Raises `SpecError` with every error at once.

    `file` stands in messages, `name` is used where the text gives none. `format` is `"yaml"`,
    `"json"`, or None to tell by the file's name and text. `read_text` opens files named in
    `items: "@…"`.
    """
    findings = Findings(file)
    workflow = _examined(text, findings, catalog, name, format, read_text)
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
) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """Like `load`, but never raises: the workflow if it can run, and all errors and warnings."""
    findings = Findings(file)
    workflow = _examined(text, findings, catalog, name, format, read_text)
    return None if findings.failed else workflow, findings.report()


def python_files(text: str, *, file: str = "", format: str | None = None) -> tuple[str, ...]:
    """The Python files a workflow asks for, to be allowed and imported before it is loaded.

    Empty for a text that cannot be read: loading it says why.
    """
    document = read_document(text, Findings(file), format)
    data = None if document is None else document.data
    value = data.get("python") if isinstance(data, Mapping) else None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        return ()
    return tuple(item for item in listed if isinstance(item, str) and item)


def _examined(
    text: str,
    findings: Findings,
    catalog: Catalog,
    name: str,
    format: str | None,
    read_text: ReadText | None,
) -> Workflow | None:
    document = read_document(text, findings, format)
    if document is None:
        return None
    if is_editor_file(document.data):
        draft = read_editor_file(document, findings, catalog, name=name, read_text=read_text)
    else:
        draft = read_shape(document, findings, name=name, read_text=read_text)
    return None if draft is None else assemble(draft, catalog, findings)
