"""Reading the files of subworkflows, however deep, each once.

    sub:
      type: flow.Subworkflow
      workflow: parts/inner.yaml     beside the file that names it
      text: $page                    an input of inner.yaml

This layer opens no files: who loads hands in an opener, which decides what may be opened. What
is wrong with an inner file is reported with its name and lines, together with everything else.

Read next: `subworkflow.py`, `load.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nightwarden.spec.draft import Draft, DraftNode
from nightwarden.spec.findings import Findings
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.refs import Given
from nightwarden.spec.subworkflow import FILE, SUBWORKFLOW
from nightwarden.spec.workflow import Workflow

DEEPEST: Final = 16
"""How many workflows may lie within one another."""


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow file as text. `file` stands in messages; one file has one `key`.

    `read_text` opens what its inputs name, `open` the workflows it names, both relative to it.
    """

    text: str
    file: str = ""
    name: str = ""
    key: str = ""
    read_text: ReadText | None = None
    open: OpenWorkflow | None = None


OpenWorkflow = Callable[[str], Source]
"""Opens a workflow named in another one. Raises `CannotOpen`, `OSError` or `UnicodeError`."""


class CannotOpen(Exception):
    """A workflow file that may not be opened, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(message)


Load = Callable[[Source, Findings], Workflow | None]
"""Loads one file, and reports what is wrong with it."""


class Nest:
    """The files of one load: those being read, outermost first, and those that have been."""

    def __init__(self, outermost: Source, load: Load) -> None:
        self._chain: list[Source] = [outermost]
        self._load = load
        self._loaded: dict[str, Workflow | None] = {}

    def fill(self, draft: Draft, findings: Findings) -> None:
        """Give each subworkflow of a draft the workflow it stands for."""
        for node in draft.nodes:
            if node.type == SUBWORKFLOW:
                self._fill(node, findings)

    def _fill(self, node: DraftNode, findings: Findings) -> None:
        unread = FILE in node.unread
        node.unread.discard(FILE)
        written = node.written.pop(FILE, None)
        name = written.value if isinstance(written, Given) else None
        if isinstance(name, str) and name:
            source = self._open(name, node, findings)
            if source is not None:
                node.inner = self._inner(source, findings)
                node.folder = name.rpartition("/")[0]
        elif written is None and not unread:
            message = f"{FILE} needs the name of a workflow file"
            _wrong(findings, node, "missing-slot", message, "as in workflow: inner.yaml")
        elif not unread:
            message = f"{FILE} has to name a file that is known before anything runs"
            _wrong(findings, node, "bad-value", message, "as in workflow: inner.yaml")

    def _open(self, name: str, node: DraftNode, findings: Findings) -> Source | None:
        opener = self._chain[-1].open
        if opener is None:
            message, remedy = f"{name} cannot be read here", "load the workflow from a file"
            _wrong(findings, node, "subworkflow-file", message, remedy)
            return None
        try:
            source = opener(name)
        except CannotOpen as error:
            _wrong(findings, node, "subworkflow-file", str(error), error.remedy)
            return None
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            _wrong(
                findings,
                node,
                "subworkflow-file",
                f"{name} cannot be read ({reason})",
                "check the name; it is meant from where this workflow lies",
            )
            return None
        return source if self._may_enter(source, node, findings) else None

    def _may_enter(self, source: Source, node: DraftNode, findings: Findings) -> bool:
        known = [other.key for other in self._chain]
        if source.key in known:
            around = _chain_text([*self._chain[known.index(source.key) :], source])
            message = f"the workflow would contain itself: {around}"
            remedy = "repeat steps with flow.Loop, or over items with [*]"
            _wrong(findings, node, "recursion", message, remedy)
            return False
        if len(self._chain) > DEEPEST:
            message = f"workflows lie more than {DEEPEST} deep within one another"
            _wrong(findings, node, "too-deep", message, _chain_text([*self._chain, source]))
            return False
        return True

    def _inner(self, source: Source, findings: Findings) -> Workflow | None:
        if source.key not in self._loaded:
            own = Findings(source.file)
            self._chain.append(source)
            found = self._load(source, own)
            self._chain.pop()
            findings.extend(own.report())
            self._loaded[source.key] = None if own.failed else found
        return self._loaded[source.key]


def _chain_text(sources: Sequence[Source]) -> str:
    return " → ".join(source.file or source.name for source in sources)


def _wrong(findings: Findings, node: DraftNode, rule: str, message: str, remedy: str) -> None:
    line = node.line_of(FILE)
    findings.error(rule, message, remedy, line=line, node=node.id, slot=FILE)
