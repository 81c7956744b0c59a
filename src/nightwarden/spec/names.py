"""Looking up what a draft names: nodes, their types, their slots, the run's inputs.

What is not there is reported once, with what was probably meant; the slot it stood at is then
excused from being reported as empty.

Read next: `sugar.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nightwarden.spec.catalog import Catalog, NodeType
from nightwarden.spec.draft import DraftNode
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.generics import VALUE
from nightwarden.spec.refs import Reference, is_id
from nightwarden.spec.subworkflow import SUBWORKFLOW, signature
from nightwarden.spec.workflow import INPUTS, SECRETS, WITHIN, RunOptions, Workflow

FOR_EACH = "flow.ForEach"
COLLECT = "flow.Collect"
FANS = "[*]"
CLOSES = "[]"
ENGINE_TYPES = {FANS: FOR_EACH, CLOSES: COLLECT}
ENGINE_OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reference stands, for messages and edges."""

    node: str
    slot: str
    line: int | None


def mark_of(node_id: str) -> str:
    """`[*]` or `[]` for an engine node made here, empty for a node of the author's."""
    return next((mark for mark in (FANS, CLOSES) if node_id.endswith(mark)), "")


class Names:
    """The names of one draft. `ids` and `types` fill up as nodes are admitted."""

    def __init__(self, inputs: Iterable[str], catalog: Catalog, findings: Findings) -> None:
        self.ids: dict[str, DraftNode] = {}
        self.types: dict[str, NodeType] = {}
        self.excused: set[tuple[str, str]] = set()
        self._inputs = list(inputs)
        self._catalog = catalog
        self._findings = findings

    def admit(self, node: DraftNode) -> None:
        """Take a node in: its id must be good and its own, its type known."""
        if not _good_id(node):
            self._findings.error(
                "bad-id",
                f"a node cannot be called {node.id!r}",
                f"{INPUTS} and {SECRETS} are taken"
                if node.id in (INPUTS, SECRETS)
                else "use letters, digits, _ and -, beginning with a letter or _",
                line=node.line,
                node=node.id,
            )
        if node.id in self.ids:
            first = self.ids[node.id].line
            self._findings.error(
                "duplicate-id",
                f"there are two nodes {node.id!r}" + (f" (line {first})" if first else ""),
                "rename one of them",
                line=node.line,
                node=node.id,
            )
            return
        self.ids[node.id] = node
        if node.type == SUBWORKFLOW:
            self._admit_workflow(node)
        else:
            self.look_up(node.id, node.type, node.line)

    def _admit_workflow(self, node: DraftNode) -> None:
        """A workflow as a node; where there is none, that has been said."""
        own = {"a label": node.label, "run options": node.run != RunOptions()}
        for what in (name for name, given in own.items() if given):
            self._findings.error(
                "not-as-a-whole",
                f"{node.id} is a subworkflow, which has no {what.split()[-1]} as a whole",
                f"give {what} to its steps, in its own file",
                line=node.line,
                node=node.id,
            )
        if node.inner is not None:
            self.types[node.id] = signature(node.inner)
            self._warn_of_ignored(node, node.inner)

    def _warn_of_ignored(self, node: DraftNode, inner: Workflow) -> None:
        parts = {"prompts": inner.prompts, "settings": inner.settings}
        parts["supervisors"] = inner.supervisors
        ignored = [name for name, given in parts.items() if given]
        if ignored:
            self._findings.warn(
                "ignored-key",
                f"{', '.join(ignored)} of workflow {inner.name!r} count for nothing here",
                "what holds for a whole run stands in the outermost workflow",
                line=node.line,
                node=node.id,
            )

    def look_up(self, node_id: str, type_name: str, line: int | None) -> None:
        """Find a node's type; one that is not there is reported."""
        if not type_name:
            return
        found = self._catalog.find(type_name)
        if found is not None:
            self.types[node_id] = found
            return
        self._findings.error(
            "unknown-type",
            f"there is no node type {type_name!r}",
            _type_suggestion(type_name, self._catalog),
            line=line,
            node=node_id,
        )

    def source(self, reference: Reference, place: Place) -> tuple[str, str] | None:
        """Node and slot a reference names; None, and a finding, where there is no such thing."""
        if reference.source == INPUTS:
            return self._run_input(reference, place)
        if reference.source not in self.ids:
            self.error(
                place,
                "unknown-node",
                f"{reference} names a node that is not there",
                suggestion(reference.source, self.ids, what="nodes"),
            )
            return None
        slot = reference.slot or self._only_output(reference.source, place)
        return None if slot is None else (reference.source, slot)

    def _run_input(self, reference: Reference, place: Place) -> tuple[str, str] | None:
        if reference.slot in self._inputs:
            return INPUTS, reference.slot
        remedy = suggestion(reference.slot, self._inputs, what="inputs")
        if not self._inputs:
            remedy = f"declare it: inputs: {{{reference.slot}: str}}"
        self.error(place, "unknown-input", f"there is no input {reference.slot!r}", remedy)
        return None

    def _only_output(self, node_id: str, place: Place) -> str | None:
        """The slot meant where none is named; `output` where the node's type is not known."""
        node_type = self.types.get(node_id)
        if node_type is None:
            return ENGINE_OUTPUT
        if len(node_type.outputs) == 1:
            return next(iter(node_type.outputs))
        named = ", ".join(f"${node_id}.{name}" for name in node_type.outputs)
        self.error(
            place,
            "which-slot",
            f"{node_id} has {len(node_type.outputs)} output slots, and ${node_id} names none",
            f"write one of {named}" if named else "wire another node",
        )
        return None

    def only_input(self, node_id: str) -> str:
        """The input of a node that has just one; empty for any other."""
        node_type = self.types.get(node_id)
        if node_type is None or len(node_type.inputs) != 1:
            return ""
        return next(iter(node_type.inputs))

    def error(self, place: Place, rule: str, message: str, remedy: str) -> None:
        """Report a reference, and excuse its slot from being reported as empty."""
        self.excused.add((place.node, place.slot))
        self._findings.error(
            rule, message, remedy, line=place.line, node=place.node, slot=place.slot
        )


def _good_id(node: DraftNode) -> bool:
    """Whether an id may stand: a plain one, or in a canonical form one that was made there."""
    mark = mark_of(node.id)
    if mark:
        return node.type == ENGINE_TYPES[mark]
    *outer, own = node.id.split(WITHIN) if node.listed else [node.id]
    if outer and node.type == VALUE:
        own = own.removeprefix(f"{INPUTS}.")
    return all(is_id(part) and part not in (INPUTS, SECRETS) for part in (*outer, own))


def _type_suggestion(name: str, catalog: Catalog) -> str:
    names = catalog.names()
    tail = name.rpartition(".")[2].casefold()
    same = [known for known in names if known.rpartition(".")[2].casefold() == tail]
    if same:
        return f"did you mean {same[0]!r}?"
    remedy = suggestion(name, names, what="node types")
    own = (
        "; steps of your own are functions with @node above them, in files under python: or --nodes"
    )
    return remedy + ("" if remedy.startswith("did you mean") else own)
