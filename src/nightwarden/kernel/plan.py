"""A workflow compiled for the kernel: numbers instead of names, every edge with its role.

Static, and made by `compiling.py`; one plan serves any number of runs. An edge at its target is

    PLAIN      one settlement for the port it leads to
    COLLECT    one item of a list that is complete when its root has closed
    READ       one item of a stream the node drains itself
    CAPTURE    no target: the run keeps what arrives as one of its outputs
    FEEDBACK   what a loop's body hands to the next iteration

A *port* is what a node's join waits for: one a plain edge, one a collecting or reading
slot. An *exit* of a root is where its items end (see `closing.py`).

Read next: `state.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from nightwarden.spec.catalog import NodeType, SlotKind
from nightwarden.spec.workflow import NodeSpec, Workflow

CONTROL = ""
"""The name of the slot by which control events arrive."""

RUN = 0
"""The index of the outermost root: the run itself, with one item."""


class EdgeKind(IntEnum):
    """The role of an edge at its target."""

    PLAIN = 0
    COLLECT = 1
    READ = 2
    CAPTURE = 3
    FEEDBACK = 4


@dataclass(slots=True, eq=False)
class EdgePlan:
    """An edge. `exit` is its number among the exits of its root, or -1.

    `position` counts the edges of one collecting or reading slot; `port` is the port it feeds.
    """

    index: int
    kind: EdgeKind
    source: int
    source_slot: str
    target: int
    target_slot: str
    depth: int
    port: int = -1
    group: int = -1
    position: int = 0
    exit: int = -1


@dataclass(slots=True, eq=False)
class SlotPlan:
    """A wired input slot: which ports feed it, and what absence means to it.

    `depth` is the shortest scope of these: what comes from there, many items may share.
    """

    name: str
    kind: SlotKind
    ports: tuple[int, ...]
    has_default: bool
    accepts_absent: bool
    depth: int


@dataclass(slots=True, eq=False)
class OutPlan:
    """An output slot or projection that leads somewhere. `base` is the slot a projection reads."""

    name: str
    base: str
    stream: bool
    edges: list[EdgePlan] = field(default_factory=list)
    exit: int = -1

    @property
    def projected(self) -> bool:
        """Whether this is a field of another slot's value."""
        return self.name != self.base


@dataclass(slots=True, eq=False)
class GatherPlan:
    """A collecting or reading slot as a root knows it: `edges` of them lead in."""

    kind: EdgeKind
    target: int
    slot: str
    port: int
    edges: int
    by_arrival: bool
    exits: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class RootPlan:
    """A fan-out, or the run itself (`node` -1). `exits` names them, for the ledger.

    `control` is the edge by which a control event reaches the node it is for.
    """

    index: int
    node: int
    name: str
    scope: tuple[int, ...]
    exits: list[str] = field(default_factory=list)
    gathers: list[GatherPlan] = field(default_factory=list)
    control: EdgePlan | None = None
    children: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """The length of its items' lineages."""
        return len(self.scope)


@dataclass(slots=True, eq=False)
class NodePlan:
    """A node. `outs` settle with each result, or frame; `ends` when a fan-out ends.

    `controls` are the roots of the nodes it controls; `control_root` its own, if it is controlled.
    """

    index: int
    id: str
    spec: NodeSpec
    type: NodeType
    order: int
    depth: int
    root: int
    own_root: int
    slots: tuple[SlotPlan, ...]
    ports: int
    port_depths: tuple[int, ...]
    outs: tuple[OutPlan, ...]
    ends: tuple[OutPlan, ...]
    exit: int = -1
    controls: tuple[int, ...] = ()
    control_root: int = -1

    @property
    def join_any(self) -> bool:
        """Whether one value is enough."""
        return self.type.join == "any"


@dataclass(slots=True, eq=False)
class Plan:
    """Everything the kernel knows before a run. `inputs` are the edges of the run's own inputs.

    `memo` keeps what the runtime has worked out about a node, by node number.
    """

    workflow: Workflow
    nodes: tuple[NodePlan, ...]
    roots: tuple[RootPlan, ...]
    inputs: Mapping[str, OutPlan]
    captures: tuple[EdgePlan, ...]
    memo: dict[int, object] = field(default_factory=dict)

    def node(self, node_id: str) -> NodePlan:
        """The node of that id. Raises `KeyError`."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)
