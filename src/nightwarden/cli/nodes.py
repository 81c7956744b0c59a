"""`nightwarden nodes [TYPE]`: the steps there are, each documented from its signature.

Read next: `validate.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nightwarden.cli.completing import node_types
from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import Debug, Json, Nodes, settings_for
from nightwarden.cli.output import Output
from nightwarden.events.plain import plain

if TYPE_CHECKING:
    from nightwarden.nodes.registry import Registry
    from nightwarden.spec.catalog import InputSlot, NodeType, OutputSlot

FORMAT: Final = 1
Row = tuple[str, str, str]
_KINDS: Final = {"many": "Many", "collect": "Collect", "stream": "Stream"}


def nodes(
    type: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE",
            help="A node type, or the word before its dot.",
            autocompletion=node_types,
        ),
    ] = None,
    json: Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of workflow files, for editors.")
    ] = False,
    files: Nodes = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """List the node types, or document one.

    Slots, types, defaults and promises are read from the signature of its code.
    """
    out = Output(as_json=json or schema)
    settings_for(out)

    from nightwarden.nodes.registry import Registry

    registry = Registry()
    for file in files or ():
        registry.load_file(file)
    if schema:
        from nightwarden.spec.schema import workflow_schema

        out.data(workflow_schema(registry))
        return COMPLETED
    found = _chosen(registry, type)
    if json:
        out.data({"version": FORMAT, "nodes": [described(node) for node in found]})
    elif type is not None and len(found) == 1:
        for line in documented(found[0]):
            out.say(line)
    else:
        width = max(len(node.name) for node in found)
        for node in found:
            out.say(f"{node.name:<{width}}  {_first_line(node)}".rstrip())
    return COMPLETED


def _chosen(registry: Registry, name: str | None) -> list[NodeType]:
    known = [node for n in registry.names() if (node := registry.find(n)) is not None]
    if name is None:
        return known
    found = [node for node in known if node.name == name]
    found = found or [node for node in known if node.name.partition(".")[0] == name]
    if not found:
        from nightwarden.spec.findings import suggestion

        hint = suggestion(name, [node.name for node in known], what="node types")
        raise Usage(f"there is no node type {name!r}: {hint}")
    return found


def documented(node: NodeType) -> Iterator[str]:
    """The documentation of a node type, line by line."""
    yield node.name
    yield ""
    yield from (f"  {line}".rstrip() for line in node.doc.splitlines())
    yield ""
    taken, given = list(_input_rows(node)), list(_output_rows(node))
    widths = [max((len(row[i]) for row in (*taken, *given)), default=0) for i in range(2)]
    yield "  in"
    yield from _table(taken or [("nothing", "", "")], widths)
    yield "  out"
    yield from _table(given, widths)
    yield ""
    yield "  " + " · ".join(_promises(node))
    yield f"  code {node.source}"


def _input_rows(node: NodeType) -> Iterator[Row]:
    for slot in node.inputs.values():
        notes = ["required" if slot.required else f"default {plain(slot.default)!r}"]
        notes += ["takes absent values"] if slot.accepts_absent else []
        notes += ["in order of arrival"] if slot.by_arrival else []
        notes += [slot.doc] if slot.doc else []
        yield slot.name, _slot_type(slot), ", ".join(notes)
    if node.extra is not None:
        yield f"**{node.extra.name}", _slot_type(node.extra), "any further names"


def _output_rows(node: NodeType) -> Iterator[Row]:
    for out in node.outputs.values():
        notes = ["an item each"] if out.stream else []
        notes += ["may be absent"] if out.may_be_absent else []
        yield out.name, _type(out.type), ", ".join(notes)
        for field in node.projections.values():
            if field.slot == out.name:
                yield f"  .{field.name}", _type(field.type), ""


def _table(rows: Sequence[Row], widths: Sequence[int]) -> Iterator[str]:
    for name, type_name, notes in rows:
        yield f"    {name:<{widths[0]}}  {type_name:<{widths[1]}}  {notes}".rstrip()


def _slot_type(slot: InputSlot) -> str:
    kind = _KINDS.get(slot.kind)
    return f"{kind}[{_type(slot.type)}]" if kind else _type(slot.type)


def _type(annotation: Any) -> str:
    from nightwarden.spec.types import type_text

    return type_text(annotation)


def _promises(node: NodeType) -> list[str]:
    """What matters when it fails, and how it runs."""
    found = ["safe to retry" if node.retry_safe else "never retried"]
    if node.idempotent_by:
        found = [f"safe to retry with an idempotency key in {node.idempotent_by}"]
    found += ["fans out"] if node.fans_out else []
    found += ["reads a stream"] if node.reads else []
    found += ["fires once with what has values"] if node.join == "any" else []
    found += [f"{node.concurrency} at a time"] if node.concurrency else []
    found += [f"timeout {node.timeout_s:g} s"] if node.timeout_s else []
    found += [f"an item is called {node.label}"] if node.label else []
    return found


def described(node: NodeType) -> dict[str, object]:
    """A node type as JSON shows it."""
    return {
        "type": node.name,
        "doc": node.doc,
        "inputs": [_input_json(slot) for slot in node.inputs.values()],
        "further_inputs": None if node.extra is None else _slot_type(node.extra),
        "further_inputs_schema": None if node.extra is None else _schema(node.extra.type),
        "outputs": [_output_json(node, out) for out in node.outputs.values()],
        "retry_safe": node.retry_safe,
        "idempotent_by": node.idempotent_by,
        "inline": node.inline,
        "pure": node.pure,
        "executor": node.executor,
        "fans_out": node.fans_out,
        "reads": node.reads,
        "join": node.join,
        "concurrency": node.concurrency,
        "timeout_s": node.timeout_s,
        "label": node.label,
        "source": node.source,
    }


def _input_json(slot: InputSlot) -> dict[str, object]:
    """`schema` is that of one value: of an item where the slot takes several."""
    return {
        "name": slot.name,
        "type": _slot_type(slot),
        "schema": _schema(slot.type),
        "kind": str(slot.kind),
        "required": slot.required,
        "default": None if slot.required else plain(slot.default),
        "accepts_absent": slot.accepts_absent,
        "by_arrival": slot.by_arrival,
        "doc": slot.doc,
    }


def _output_json(node: NodeType, out: OutputSlot) -> dict[str, object]:
    fields = [field for field in node.projections.values() if field.slot == out.name]
    return {
        "name": out.name,
        "type": _type(out.type),
        "schema": _schema(out.type),
        "per_item": out.stream,
        "may_be_absent": out.may_be_absent,
        "doc": out.doc,
        "fields": [field.name for field in fields],
        "field_types": {field.name: _type(field.type) for field in fields},
    }


def _schema(annotation: Any) -> dict[str, Any]:
    """The type as JSON Schema; `{}`, which anything fits, where it has none."""
    from nightwarden.spec.checker import Checker

    return Checker(annotation).schema()


def _first_line(node: NodeType) -> str:
    return node.doc.splitlines()[0] if node.doc else ""
