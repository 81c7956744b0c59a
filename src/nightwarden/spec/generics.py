"""Binding the type variables of generic nodes to what is wired into them.

`flow.If(value: T, condition: bool)` says: what comes out is what went in. Once the graph is
known, `T` is known too, and the node's own copy of its type says `Page` instead of `T`:

    page ──Page──▶ good.value: T        good.then: T ──▶ $good.then.title
                                   T = Page, so `title` is a field that can be wired

A `flow.Value` says itself what its value is. Nodes are taken sources first. A variable nothing
binds, or that two edges bind to types that do not fit each other, becomes `Any`: checked when
values arrive, not before.

Read next: `check.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from nightwarden.spec.assign import assignable
from nightwarden.spec.catalog import InputSlot, NodeType, OutputSlot, Projection
from nightwarden.spec.records import record_fields
from nightwarden.spec.ties import with_ties
from nightwarden.spec.types import parse_type
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow

Bindings = dict[TypeVar, Any]

VALUE: Final = "flow.Value"
"""A value as a node: its slot `of` names the type of `value`."""

_UNIONS = (Union, UnionType)


def specialise(workflow: Workflow) -> dict[str, NodeType]:
    """The node type of every node, by id, with its variables bound to what reaches it."""
    incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
    for edge in workflow.edges:
        if edge.kind == "data":
            incoming[edge.target].append(edge)
    types = with_ties(workflow.types, workflow.edges)
    inputs = input_types(workflow)
    given = {node.id: node.properties for node in workflow.nodes}
    for node_id in _sources_first(types, incoming):
        if node_id in types and _variables(types[node_id]):
            bindings = _named(types[node_id], given.get(node_id, {}))
            for edge in incoming[node_id]:
                slot = types[node_id].input(edge.target_slot)
                if slot is not None:
                    unify(slot.type, source_type(edge, types, inputs), bindings)
            types[node_id] = _bound(types[node_id], bindings)
    return types


def _named(node_type: NodeType, given: Mapping[str, object]) -> Bindings:
    """What a node says itself about its types."""
    name = given.get("of") if node_type.name == VALUE else None
    if not isinstance(name, str) or not name:
        return {}
    try:
        return dict.fromkeys(_variables(node_type), parse_type(name))
    except ValueError:  # its slot says so
        return {}


def input_types(workflow: Workflow) -> dict[str, Any]:
    """The annotations of the run's inputs, by name; `Any` for a type that cannot be read."""
    found: dict[str, Any] = {}
    for spec in workflow.inputs:
        try:
            found[spec.name] = parse_type(spec.type)
        except ValueError:
            found[spec.name] = Any
    return found


def source_type(edge: EdgeSpec, types: Mapping[str, NodeType], inputs: Mapping[str, Any]) -> Any:
    """The type of what an edge carries; `Any` where its source is not known."""
    if edge.source == INPUTS:
        return inputs.get(edge.source_slot, Any)
    node_type = types.get(edge.source)
    if node_type is None:
        return Any
    found = node_type.outputs.get(edge.source_slot) or node_type.projections.get(edge.source_slot)
    return Any if found is None else found.type


def _sources_first(ids: Iterable[str], incoming: Mapping[str, Sequence[EdgeSpec]]) -> Sequence[str]:
    """Every id after its sources, as far as there is such an order: circles are cut open."""
    order: dict[str, None] = {}
    entered: set[str] = set()
    for start in ids:
        stack = [(start, False)]
        while stack:
            current, left = stack.pop()
            if left:
                order.setdefault(current)
            elif current not in entered:
                entered.add(current)
                stack.append((current, True))
                stack += [(e.source, False) for e in incoming.get(current, ())]
    return list(order)


def _variables(node_type: NodeType) -> set[TypeVar]:
    slots: list[InputSlot | OutputSlot] = [*node_type.inputs.values(), *node_type.outputs.values()]
    if node_type.extra is not None:
        slots.append(node_type.extra)
    return {v for slot in slots for v in _variables_of(slot.type)}


def _variables_of(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, TypeVar):
        return (annotation,)
    return tuple(getattr(annotation, "__parameters__", ())) if get_origin(annotation) else ()


def _bound(node_type: NodeType, bindings: Bindings) -> NodeType:
    outputs = {n: replace(s, type=fill(s.type, bindings)) for n, s in node_type.outputs.items()}
    extra = node_type.extra
    return replace(
        node_type,
        inputs={n: replace(s, type=fill(s.type, bindings)) for n, s in node_type.inputs.items()},
        outputs=outputs,
        projections=_projections(node_type, outputs, bindings),
        extra=None if extra is None else replace(extra, type=fill(extra.type, bindings)),
    )


def _projections(
    node_type: NodeType, outputs: Mapping[str, OutputSlot], bindings: Bindings
) -> dict[str, Projection]:
    """The fields that can be wired: those of the type as declared, and of what `T` became."""
    found = {
        name: replace(projection, type=fill(projection.type, bindings))
        for name, projection in node_type.projections.items()
    }
    if len(outputs) == 1:
        (slot,) = outputs.values()
        for name, annotation in record_fields(slot.type).items():
            found.setdefault(name, Projection(name=name, slot=slot.name, type=annotation))
    return found


def unify(pattern: Any, actual: Any, bindings: Bindings) -> None:
    """Bind the variables of `pattern` so that `actual` fits it, as far as it can be made to."""
    if isinstance(pattern, TypeVar):
        _bind(pattern, actual, bindings)
        return
    if not _variables_of(pattern):
        return
    if get_origin(pattern) in _UNIONS:
        _unify_union(pattern, actual, bindings)
        return
    for member in get_args(actual) if get_origin(actual) in _UNIONS else (actual,):
        wanted, given = get_args(pattern), get_args(member)
        if _like(get_origin(pattern), get_origin(member)) and len(wanted) == len(given):
            for inner, part in zip(wanted, given, strict=True):
                unify(inner, part, bindings)


def _unify_union(pattern: Any, actual: Any, bindings: Bindings) -> None:
    """`T | None` against `str | None`: what the fixed members take is not left for `T`."""
    fixed = [m for m in get_args(pattern) if not _variables_of(m)]
    members = get_args(actual) if get_origin(actual) in _UNIONS else (actual,)
    left = [m for m in members if m not in fixed]
    rest = Union[tuple(left)] if left else Any  # noqa: UP007  (built at run time)
    for member in get_args(pattern):
        unify(member, rest, bindings)


def _like(pattern: Any, actual: Any) -> bool:
    return isinstance(pattern, type) and isinstance(actual, type) and issubclass(actual, pattern)


def _bind(variable: TypeVar, actual: Any, bindings: Bindings) -> None:
    bound = bindings.setdefault(variable, actual)
    if bound == actual:
        return
    if assignable(bound, actual):
        bindings[variable] = actual
    elif not assignable(actual, bound):
        bindings[variable] = Any


def fill(annotation: Any, bindings: Mapping[TypeVar, Any]) -> Any:
    """The annotation with its variables replaced; unbound ones become `Any`."""
    if isinstance(annotation, TypeVar):
        return bindings.get(annotation, Any)
    variables = _variables_of(annotation)
    if not variables:
        return annotation
    return annotation[tuple(bindings.get(v, Any) for v in variables)]
