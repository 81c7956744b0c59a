"""Workflows by hand, in a few words: every node has a type of its own.

    workflow(
        fan("urls"),
        step("fetch", url="urls"),
        step("table", rows=collect("fetch"), path="inputs.path"),
    )

A wire is `"node"`, `"node.slot"`, or one of `many`, `collect`, `stream`, `wire`. The types of
`zipped`, `crossed` and `loop` are those of `flow.Zip`, `flow.Cross` and `flow.Loop`.

Read next: `graphs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwarden.nodes.registry import Registry
from nightwarden.spec.catalog import (
    MISSING,
    InputSlot,
    NodeType,
    OutputSlot,
    Projection,
    SlotKind,
)
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import INPUTS, EdgeSpec, InputSpec, NodeSpec, RunOptions, Workflow


@dataclass(frozen=True, slots=True)
class Wire:
    """How an input slot is wired: `sources` are `(node, slot)`, in edge order."""

    sources: tuple[tuple[str, str], ...]
    kind: SlotKind = SlotKind.PLAIN
    default: object = MISSING
    accepts: bool = False
    by_arrival: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its type, the wires into it, and the nodes it controls."""

    spec: NodeSpec
    type: NodeType
    wires: Mapping[str, Wire]
    controls: tuple[str, ...] = ()


def _sources(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    pairs = (name.partition(".") for name in names)
    return tuple((node, slot or "output") for node, _, slot in pairs)


def wire(*names: str, default: object = MISSING, accepts: bool = False) -> Wire:
    """A plain slot; several sources are for merge nodes."""
    return Wire(_sources(names), SlotKind.PLAIN, default, accepts)


def many(*names: str, default: object = MISSING, accepts: bool = False) -> Wire:
    """A slot that takes a list over several edges."""
    return Wire(_sources(names), SlotKind.MANY, default, accepts)


def collect(*names: str, default: object = MISSING, accepts: bool = False) -> Wire:
    """A slot that takes one list a parent lineage."""
    return Wire(_sources(names), SlotKind.COLLECT, default, accepts)


def stream(
    *names: str, default: object = MISSING, accepts: bool = False, by_arrival: bool = False
) -> Wire:
    """A slot the node reads item by item."""
    return Wire(_sources(names), SlotKind.STREAM, default, accepts, by_arrival)


def node(
    name: str,
    wires: Mapping[str, str | Wire],
    *,
    frames: Sequence[str] = (),
    outs: Sequence[str] = ("output",),
    parts: Mapping[str, str] | None = None,
    join: str = "all",
    retry_safe: bool = False,
    concurrency: int | None = None,
) -> Node:
    """A node: `frames` names its stream slots, `outs` the others, `parts` its projections."""
    full = {k: wire(w) if isinstance(w, str) else w for k, w in wires.items()}
    inputs = {
        k: InputSlot(
            name=k,
            type=object,
            kind=w.kind,
            default=w.default,
            accepts_absent=w.accepts,
            by_arrival=w.by_arrival,
        )
        for k, w in full.items()
    }
    outputs = {s: OutputSlot(name=s, type=object, stream=True, may_be_absent=True) for s in frames}
    outputs |= {s: OutputSlot(name=s, type=object, may_be_absent=True) for s in outs}
    node_type = NodeType(
        name=f"test.{name}",
        inputs=inputs,
        outputs=outputs,
        projections={k: Projection(name=k, slot=v, type=object) for k, v in (parts or {}).items()},
        join=join,
        retry_safe=retry_safe,
        fans_out=bool(frames),
        reads=any(w.kind is SlotKind.STREAM for w in full.values()),
    )
    spec = NodeSpec(id=name, type=node_type.name, run=RunOptions(concurrency=concurrency))
    return Node(spec, node_type, full)


def step(name: str, *, outs: Sequence[str] = ("output",), **wires: str | Wire) -> Node:
    """A node that runs once a lineage."""
    return node(name, wires, outs=outs)


def safe(name: str, **wires: str | Wire) -> Node:
    """A node that may be run again."""
    return node(name, wires, retry_safe=True)


def fan(
    name: str, *, frames: Sequence[str] = ("output",), outs: Sequence[str] = (), **wires: str | Wire
) -> Node:
    """A node that streams out."""
    return node(name, wires, frames=frames, outs=outs)


def merge(name: str, **wires: str | Wire) -> Node:
    """A node that runs with whatever has a value."""
    return node(name, wires, join="any")


def built_in(
    name: str, type_name: str, wires: Mapping[str, str | Wire], **properties: object
) -> Node:
    """A node of a type from the library; only the sources of its wires count."""
    found = Registry().find(type_name)
    assert found is not None
    full = {
        slot: Wire(
            _sources([source]) if isinstance(source, str) else source.sources,
            found.inputs[slot].kind,
        )
        for slot, source in wires.items()
    }
    return Node(NodeSpec(id=name, type=type_name, properties=properties), found, full)


def zipped(name: str, left: str, right: str) -> Node:
    """Pairs of equal number."""
    return built_in(name, "flow.Zip", {"left": left, "right": right})


def crossed(name: str, left: str, right: str, **properties: object) -> Node:
    """Each with each."""
    return built_in(name, "flow.Cross", {"left": left, "right": right}, **properties)


def loop(name: str, wires: Mapping[str, str | Wire], **properties: object) -> Node:
    """Repeats what lies between its `value` and its `next`."""
    return built_in(name, "flow.Loop", wires, **properties)


def controlling(made: Node, *targets: str) -> Node:
    """The same node, which controls these."""
    return replace(made, controls=targets)


def workflow(*nodes: Node, inputs: Sequence[str] = ()) -> Workflow:
    """The workflow of these nodes; it must have no problems."""
    edges = tuple(
        EdgeSpec(source=source, source_slot=slot, target=n.spec.id, target_slot=name)
        for n in nodes
        for name, w in n.wires.items()
        for source, slot in w.sources
    )
    edges += tuple(
        EdgeSpec(source=n.spec.id, source_slot="", target=t, target_slot="", kind="control")
        for n in nodes
        for t in n.controls
    )
    made = Workflow(
        name="test",
        nodes=tuple(n.spec for n in nodes),
        edges=edges,
        inputs=tuple(InputSpec(name=i) for i in inputs),
        types={n.spec.id: n.type for n in nodes},
    )
    analysis = analyse(made)
    assert not analysis.problems, analysis.problems
    assert INPUTS not in made.types
    return made


def keeping(made: Workflow, **names: str) -> Workflow:
    """The same workflow with the outputs its author chose: name → `node.slot`."""
    return replace(made, outputs=names)
