"""A workflow as text: layer by layer, with what runs once an item set apart by a bar.

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
from collections.abc import Iterator

from nightwarden.spec.catalog import Missing
from nightwarden.spec.layout import Layout, lay_out, node_text, source_text, type_words
from nightwarden.spec.names import FANS, mark_of
from nightwarden.spec.workflow import EdgeSpec, InputSpec, Workflow, json_value

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
    name_width = min(_WIDEST_NAME, max((_name_length(i, layout) for i in layout.nodes), default=0))
    types = (len(type_words(node)) for node in workflow.nodes)
    type_width = min(_WIDEST_TYPE, max(types, default=0))
    scope_before: tuple[str, ...] = ()
    for number, layer in enumerate(layout.layers, start=1):
        for position, node_id in enumerate(sorted(layer, key=lambda i: layout.scopes.get(i, ()))):
            scope = layout.scopes.get(node_id, ())
            if scope != scope_before[: len(scope)]:
                bars = "│ " * (len(scope) - 1)
                yield " " * _NUMBER + f"{bars}┌ for each item of {node_text(scope[-1])}"
            scope_before = scope
            head = f"{number:>{_NUMBER - 2}}  " if position == 0 else " " * _NUMBER
            bars = "│ " * len(scope)
            name = bars + node_text(node_id)
            type_name = type_words(layout.nodes[node_id])
            start = f"{head}{name:<{name_width}}  {type_name:<{type_width}}  "
            wires = _wires(node_id, workflow, layout)
            yield from _wrapped(start, wires, width, " " * _NUMBER + bars)


def _name_length(node_id: str, layout: Layout) -> int:
    return len(node_text(node_id)) + 2 * len(layout.scopes.get(node_id, ()))


def _wires(node_id: str, workflow: Workflow, layout: Layout) -> list[str]:
    """What is wired to a node, and what it does beside its data."""
    by_slot: dict[str, list[str]] = {}
    for edge in layout.incoming.get(node_id, ()):
        if edge.kind == "data":
            by_slot.setdefault(edge.target_slot, []).append(source_text(edge, workflow))
    engine = bool(mark_of(node_id))
    wires = [
        ("" if engine else f"{slot} ") + "← " + ", ".join(sources)
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
