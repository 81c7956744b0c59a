"""A workflow as its author put it down: names not yet looked up, sugar still in it.

Every door leads here, so that the same mistake gets the same words at each of them:

    people's YAML  (shape.py) ──┐
    canonical JSON (shape.py) ──┤
    editor's file  (editor.py) ─┼──▶ Draft ──▶ sugar.py ──▶ check.py ──▶ Workflow
    Python         (build.py) ──┘

Read next: `sugar.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwarden.spec.refs import Reference, Written
from nightwarden.spec.workflow import InputSpec, RunOptions, Workflow


@dataclass(slots=True)
class DraftNode:
    """A node. `written` says what stands at each of its slots, `lines` where.

    `unread` are slots at which something stands that could not be read, and was reported.
    `listed` nodes stand in a list, as in the canonical form, and may come from a subworkflow.
    `inner` is the workflow a `flow.Subworkflow` stands for, `folder` where its file lies.
    """

    id: str
    type: str
    written: dict[str, Written] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    label: str | None = None
    run: RunOptions = field(default_factory=RunOptions)
    controls: tuple[str, ...] = ()
    ui: Mapping[str, object] | None = None
    line: int | None = None
    unread: set[str] = field(default_factory=set)
    listed: bool = False
    inner: Workflow | None = None
    folder: str = ""

    def line_of(self, slot: str) -> int | None:
        """The line of a slot, or of the node where the slot has none."""
        return self.lines.get(slot, self.line)


@dataclass(slots=True)
class DraftEdge:
    """An edge written out. A slot is empty where it was left out."""

    source: str
    source_slot: str
    target: str
    target_slot: str
    kind: str = "data"
    line: int | None = None


@dataclass(slots=True)
class DraftOutput:
    """A run output the author chose."""

    name: str
    reference: Reference
    line: int | None = None


@dataclass(slots=True)
class DraftInput:
    """A run input, its default already checked against its type."""

    spec: InputSpec
    line: int | None = None


@dataclass(slots=True)
class Draft:
    """Everything a file says. `outputs` is None where it says nothing about them.

    `supervisor_lines` are those of `supervisors.NAME` and `supervisors.NAME.KEY`.
    """

    name: str = ""
    description: str = ""
    inputs: list[DraftInput] = field(default_factory=list)
    nodes: list[DraftNode] = field(default_factory=list)
    edges: list[DraftEdge] = field(default_factory=list)
    outputs: list[DraftOutput] | None = None
    python: tuple[str, ...] = ()
    supervisors: Mapping[str, object] = field(default_factory=dict)
    prompts: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    supervisor_lines: Mapping[str, int | None] = field(default_factory=dict)
    file: str = ""
