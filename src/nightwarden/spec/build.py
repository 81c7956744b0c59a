"""Building a workflow in Python: the same graph, the same checks, the same canonical form.

    with workflow("summarise-pages", catalog=…) as w:
        urls = w.input("urls", list[str])
        page = w.add(fetch, id="page", url=urls.each())
        w.add(write_csv, id="table", rows=page.collect(), path="out.csv")
    w.build()

What `w.add` returns stands for what the node puts out. A value given to a slot is a value: a
text that begins with a dollar is no reference here. Leaving the `with` block checks the whole
and raises `SpecError` with every mistake, each with the line of the call that made it.

Read next: `handles.py`, `draft.py`, `check.py`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from nightwarden.spec.catalog import MISSING, Catalog
from nightwarden.spec.check import assemble
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.draft import Draft, DraftInput, DraftNode, DraftOutput
from nightwarden.spec.enrolled import Enrolled
from nightwarden.spec.findings import Findings
from nightwarden.spec.handles import Handle, written
from nightwarden.spec.inputs import normal_type
from nightwarden.spec.limits import concurrency_problem, timeout_problem
from nightwarden.spec.refs import Reference, is_id
from nightwarden.spec.subworkflow import SUBWORKFLOW
from nightwarden.spec.types import type_text
from nightwarden.spec.workflow import INPUTS, InputSpec, RunOptions, SecretRef, Workflow

_DEFINITION = "__nightwarden_node__"


def workflow(
    name: str,
    *,
    catalog: Catalog | None = None,
    description: str = "",
    python: Sequence[str] = (),
    supervisors: Mapping[str, object] | None = None,
    prompts: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    file: str = "",
) -> Builder:
    """Begin a workflow. Node types given by name, and `each()`, are looked up in `catalog`.

    `python` are the files its canonical form asks for, as in a workflow file. `file` stands in
    messages: the caller's own where it is left out.
    """
    draft = Draft(
        name=name,
        description=description,
        python=tuple(python),
        supervisors=supervisors or {},
        prompts=prompts or {},
        settings=settings or {},
        file=file or sys._getframe(1).f_code.co_filename,
    )
    return Builder(draft, catalog)


class Builder:
    """A workflow in the making; see `workflow`."""

    def __init__(self, draft: Draft, catalog: Catalog | None) -> None:
        self._draft = draft
        self._types = Enrolled(catalog)
        self._catalog = catalog
        self._findings = Findings(draft.file)
        self._built: Workflow | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.build()

    def input(
        self, name: str, type: object = "json", *, default: object = MISSING, description: str = ""
    ) -> Handle:
        """Declare a run input. `type` is text as in a file, or the annotation it stands for."""
        line = sys._getframe(1).f_lineno
        annotation, text = self._input_type(name, type, line)
        if not is_id(name):
            self._error("bad-id", f"an input cannot be called {name!r}", line=line)
        if any(known.spec.name == name for known in self._draft.inputs):
            self._error("duplicate-id", f"there are two inputs {name!r}", line=line)
        if default is not MISSING:
            default = self._default(name, default, annotation, line)
        spec = InputSpec(name=name, type=text, default=default, description=description)
        self._draft.inputs.append(DraftInput(spec, line))
        self._built = None
        return Handle(Reference(INPUTS, name), self)

    def add(
        self,
        node: object,
        *,
        id: str | None = None,
        label: str | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
        controls: Sequence[Handle | str] = (),
        properties: Mapping[str, object] | None = None,
        **slots: object,
    ) -> Handle:
        """Add a node: a decorated function or class, the name of a node type, or a workflow.

        A workflow is inlined: its inputs are the node's slots, its outputs what it puts out.
        `slots` are wired with handles, or given values; `properties` serves slots whose names
        collide with a parameter here. `controls` are the nodes it may send control events to.
        Without an `id`, the function's name is taken.
        """
        line = sys._getframe(1).f_lineno
        inner = node.build() if isinstance(node, Builder) else node
        inner = inner if isinstance(inner, Workflow) else None
        type_name = self._type_name(node, line) if inner is None else self._take(inner, line)
        drafted = DraftNode(
            id=id if id is not None else self._free_id(inner.name if inner else type_name),
            type=type_name,
            inner=inner,
            folder=inner.file.replace("\\", "/").rpartition("/")[0] if inner else "",
            label=label,
            run=self._options(id or type_name, timeout, concurrency, line),
            controls=tuple(c if isinstance(c, str) else c.reference.source for c in controls),
            line=line,
        )
        for slot, value in {**slots, **(properties or {})}.items():
            self._put(drafted, slot, value)
        self._draft.nodes.append(drafted)
        self._built = None
        return Handle(Reference(drafted.id, ""), self)

    def feed(self, node: Handle, **slots: object) -> None:
        """Wire further slots of a node that was added before what feeds them: a loop's way back."""
        for drafted in self._draft.nodes:
            if drafted.id == node.reference.source:
                for slot, value in slots.items():
                    self._put(drafted, slot, value)
        self._built = None

    def secret(self, name: str) -> SecretRef:
        """A secret for a slot: looked up at each invocation, never part of the workflow."""
        return SecretRef(name)

    def output(self, name: str, handle: Handle) -> None:
        """Name a run output. Without any, all slots nothing is wired to are outputs."""
        line = sys._getframe(1).f_lineno
        if handle.reference.source == INPUTS or handle.reference.fans:
            remedy = "name the output of a node"
            self._error(
                "bad-output", f"{handle.reference} is nothing a step puts out", remedy, line
            )
            return
        self._draft.outputs = self._draft.outputs or []
        self._draft.outputs.append(DraftOutput(name, handle.reference, line))
        self._built = None

    def build(self) -> Workflow:
        """The finished workflow. Raises `SpecError` with everything that is wrong."""
        if self._built is None:
            findings = Findings(self._draft.file)
            findings.extend(self._findings.report())
            built = assemble(self._draft, self._types, findings)
            findings.raise_errors()
            self._built = replace(built, catalog=self._catalog)
        return self._built

    def _error(
        self,
        rule: str,
        message: str,
        remedy: str = "",
        line: int | None = None,
        node: str = "",
        slot: str = "",
    ) -> None:
        self._findings.error(rule, message, remedy, line=line, node=node, slot=slot)

    def _input_type(self, name: str, given: object, line: int) -> tuple[Any, str]:
        text = given if isinstance(given, str) else type_text(given)
        try:
            return normal_type(text)
        except ValueError as error:
            self._error("input-type", f"input {name!r}: {error}", line=line)
            return Any, "json"

    def _default(self, name: str, value: object, annotation: Any, line: int) -> object:
        try:
            return Checker(annotation).coerce(value)
        except Misfit as error:
            message = f"the default of input {name!r} is no {type_text(annotation)}: {error}"
            self._error("input-default", message, line=line)
            return MISSING

    def _type_name(self, node: object, line: int) -> str:
        if node == SUBWORKFLOW:
            message, remedy = "a subworkflow is given as a workflow", "as in w.add(load(path), …)"
            self._error("missing-workflow", message, remedy, line)
        if isinstance(node, str):
            return node
        found = getattr(node, _DEFINITION, None)
        if found is None or found.target is not node:
            name = getattr(node, "__name__", repr(node))
            self._error("unknown-type", f"{name} is no node", "decorate it with @node", line)
            return ""
        if not self._types.take(node, found.type):
            self._error(
                "type-name-clash",
                f"two different nodes are called {found.type.name!r}",
                "give one of them another name: @node(type=…)",
                line,
            )
        return str(found.type.name)

    def _take(self, inner: Workflow, line: int) -> str:
        """Know the node types of a workflow that becomes a node."""
        for name in self._types.adopt(inner):
            self._error(
                "type-name-clash",
                f"{name!r} is one node in workflow {inner.name!r}, and another one here",
                "give one of them another name: @node(type=…)",
                line,
            )
        return SUBWORKFLOW

    def _free_id(self, name: str) -> str:
        tail = re.sub(r"[^A-Za-z0-9_-]+", "_", name.rpartition(".")[2])
        base = "".join("_" + c.lower() if c.isupper() else c for c in tail).strip("_") or "node"
        base = base if is_id(base) else f"node_{base}"
        taken = {node.id for node in self._draft.nodes}
        names = (base, *(f"{base}_{i}" for i in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)

    def _options(
        self, node: str, timeout: float | None, concurrency: int | None, line: int
    ) -> RunOptions:
        for problem in (timeout_problem(timeout), concurrency_problem(concurrency)):
            if problem:
                self._error("run-options", problem, line=line, node=node)
                return RunOptions()
        return RunOptions(
            timeout_s=None if timeout is None else float(timeout), concurrency=concurrency
        )

    def _put(self, node: DraftNode, slot: str, value: object) -> None:
        try:
            node.written[slot] = written(value, self)
        except ValueError as error:
            node.unread.add(slot)
            self._error("bad-reference", str(error), "", node.line, node.id, slot)
