"""A workflow as text: layer by layer, with what runs once an item set apart by a bar.

The steps of a subworkflow stand together behind a dotted one.

    1  inputs.urls[*]  fan out       ← inputs.urls
       ┌ for each item of inputs.urls[*]
    2  │ page          http.Fetch    url ← inputs.urls[*]
    3  │ row           data.Record   url ← page.url · title ← page.title
    4  table           file.WriteCsv rows ← row[]

Never wider than asked, whatever the names.

Read next: `layout.py`, `svg.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import Missing
from nightwarden.spec.grouping import Group
from nightwarden.spec.layout import (
    Layout,
    lay_out,
    node_text,
    root_text,
    slot_text,
    source_text,
    type_words,
)
from nightwarden.spec.names import FANS, mark_of
from nightwarden.spec.workflow import EdgeSpec, InputSpec, NodeSpec, Workflow, json_value

_NUMBER = 4
_WIDEST_NAME = 26
_WIDEST_TYPE = 20


def graph_text(workflow: Workflow, *, width: int = 80) -> str:
    """The workflow's graph in lines of at most `width` characters (at least 40)."""
    width = max(40, width)
    layout = lay_out(workflow)
    lines = [_head(workflow), ""]
    lines += [f"    {_input(spec)}" for spec in workflow.inputs]
    lines += [""] if workflow.inputs else []
    lines += _node_lines(workflow, layout, width)
    lines += _output_lines(workflow)
    return "\n".join(_cut(line.rstrip(), width) for line in lines).rstrip() + "\n"


def _head(workflow: Workflow) -> str:
    steps = sum(not mark_of(node.id) for node in workflow.nodes)
    roots = sum(t.fans_out for t in workflow.types.values())
    counts = [_count(steps, "step"), _count(roots, "fan-out")]
    return f"{workflow.name}: " + ", ".join(counts)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _input(spec: InputSpec) -> str:
    default = "" if isinstance(spec.default, Missing) else f" = {json_value(spec.default)!r}"
    return f"inputs.{spec.name}: {spec.type}{default}"


def _node_lines(workflow: Workflow, layout: Layout, width: int) -> Iterator[str]:
    rows = _Rows(layout)
    for number, layer in enumerate(layout.layers, start=1):
        rows.layer(layer, (), number)
    longest = max((len(row.bars + row.text) for row in rows.found if row.node), default=0)
    name_width = min(_WIDEST_NAME, longest)
    types = (len(type_words(node)) for node in workflow.nodes)
    type_width = min(_WIDEST_TYPE, max(types, default=0))
    for row in rows.found:
        head = " " * _NUMBER if not row.number else f"{row.number:>{_NUMBER - 2}}  "
        if row.node is None:
            yield head + row.bars + row.text
            continue
        start = f"{head}{row.bars + row.text:<{name_width}}  {row.node.type:<{type_width}}  "
        wires = _wires(row.node.id, workflow, layout)
        yield from _wrapped(start, wires, width, " " * _NUMBER + row.bars)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line to be drawn: of a node, or the head of what belongs together below it."""

    bars: str
    text: str
    number: int = 0
    node: NodeSpec | None = None


class _Rows:
    """The lines of the nodes, top to bottom. A frame is a subworkflow, and how deep it lies."""

    def __init__(self, layout: Layout) -> None:
        self.found: list[_Row] = []
        self._layout = layout
        self._before: Scope = ()

    def layer(self, layer: Sequence[str | Group], frames: Sequence[int], number: int = 0) -> None:
        for unit in sorted(layer, key=self._scope):
            if isinstance(unit, Group):
                self._group(unit, frames, number)
            else:
                self._node(unit, frames, number)
            number = 0

    def _group(self, group: Group, frames: Sequence[int], number: int) -> None:
        scope = self._scope(group)
        self._enter(scope, frames)
        self.found.append(_Row(_bars(scope, frames), f"┌ subworkflow {group.id}", number))
        for layer in group.layers:
            self.layer(layer, (*frames, len(scope)))

    def _node(self, node_id: str, frames: Sequence[int], number: int) -> None:
        scope = self._scope(node_id)
        self._enter(scope, frames)
        node = self._layout.nodes[node_id]
        shown = replace(node, type=type_words(node))
        self.found.append(_Row(_bars(scope, frames), node_text(node_id), number, shown))

    def _enter(self, scope: Scope, frames: Sequence[int]) -> None:
        """Say for what items the following runs, where that is not what it was before."""
        if scope != self._before[: len(scope)]:
            self.found.append(_Row(_bars(scope[:-1], frames), f"┌ {root_text(scope[-1])}"))
        self._before = scope

    def _scope(self, unit: str | Group) -> Scope:
        scopes = self._layout.scopes
        if isinstance(unit, Group):
            return min((scopes.get(i, ()) for i in unit.members()), key=len, default=())
        return scopes.get(unit, ())


def _bars(scope: Scope, frames: Sequence[int]) -> str:
    """A bar for each fan-out, and a dotted one for each subworkflow, outermost first."""
    depths = range(len(scope) + 1)
    bars = ("┆ " * frames.count(depth) + "│ " * (depth < len(scope)) for depth in depths)
    return "".join(bars)


def _wires(node_id: str, workflow: Workflow, layout: Layout) -> list[str]:
    """What is wired to a node, and what it does beside its data."""
    by_slot: dict[str, list[str]] = {}
    for edge in layout.incoming.get(node_id, ()):
        if edge.kind == "data":
            by_slot.setdefault(slot_text(edge), []).append(source_text(edge, workflow))
    only = mark_of(node_id) and "items"
    wires = [
        ("" if slot == only else f"{slot} ") + "← " + ", ".join(sources)
        for slot, sources in by_slot.items()
    ]
    node_type = workflow.types.get(node_id)
    if node_type is not None and node_type.fans_out and mark_of(node_id) != FANS:
        wires.append("fans out")
    controlled = [e for e in workflow.edges if e.kind == "control" and e.source == node_id]
    return wires + _controls(controlled)


def _controls(edges: list[EdgeSpec]) -> list[str]:
    return ["controls → " + ", ".join(edge.target for edge in edges)] if edges else []


def _wrapped(start: str, parts: list[str], width: int, indent: str) -> Iterator[str]:
    """The first line of a node, and further ones where its wires take more room."""
    text = " · ".join(parts)
    if len(start) + len(text) <= width or not text:
        yield start + text
        return
    room = width - len(start)
    if room < 24:
        yield start
        start, room = indent + "  ", width - len(indent) - 2
    wrapped = textwrap.wrap(text, room, break_on_hyphens=False)
    hanging = indent + " " * (len(start) - len(indent))
    yield start + wrapped[0]
    yield from (hanging + line for line in wrapped[1:])


def _output_lines(workflow: Workflow) -> list[str]:
    if workflow.outputs is None:
        return []
    named = [f"    output {name} ← {place}" for name, place in workflow.outputs.items()]
    return ["", *named] if named else []


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
