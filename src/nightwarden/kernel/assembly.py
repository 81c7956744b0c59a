"""The run-time records of a plan: one fresh `State` a run.

Read next: `machine.py`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

from nightwarden.kernel.causes import CauseTable
from nightwarden.kernel.plan import RUN, EdgeKind, EdgePlan, NodePlan, OutPlan, Plan
from nightwarden.kernel.routing import (
    BROADCAST,
    CAPTURE,
    COLLECT,
    FEEDBACK,
    JOIN,
    READ,
    SINGLE,
)
from nightwarden.kernel.state import (
    Capture,
    Edge,
    Group,
    Item,
    Node,
    Out,
    Root,
    Settings,
    State,
)
from nightwarden.spec.catalog import Role, SlotKind
from nightwarden.spec.scopes import is_feedback

_ROLES = {EdgeKind.COLLECT: COLLECT, EdgeKind.READ: READ, EdgeKind.FEEDBACK: FEEDBACK}


def assemble(plan: Plan, settings: Settings, limits: Callable[[NodePlan], int]) -> State:
    """Everything a run starts with: nothing settled, the run itself as the outermost item."""
    roots = tuple(
        Root(
            root,
            exits=len(root.exits),
            window=settings.window,
            children=len(root.children),
            delivered=[0] * len(root.exits),
        )
        for root in plan.roots
    )
    nodes = _nodes(plan, roots, limits)
    group = Group(
        roots[RUN],
        None,
        number=0,
        emitted=1,
        open=1,
        outstanding=1,
        closed=True,
        mark="closed",
        delivered=[0] * roots[RUN].exits,
    )
    roots[RUN].open_groups[0] = group
    roots[RUN].outstanding = 1
    # One more than its exits: the run stays open while it is being set up.
    run = Item((), None, group, roots[RUN].exits + 1, roots[RUN].children)
    for node in nodes:
        node.outs = tuple(_out(out, nodes) for out in node.plan.outs)
        node.ends = tuple(_out(out, nodes) for out in node.plan.ends)
        if len(node.outs) == 1 and not node.special:
            node.only = node.outs[0].edges
            node.next = _next(node.only)
    control_edges = {
        root.index: _edge(root.control, nodes) for root in plan.roots if root.control is not None
    }
    return State(
        control_edges=control_edges,
        plan=plan,
        settings=settings,
        causes=CauseTable(),
        nodes=nodes,
        roots=roots,
        inputs={name: _out(out, nodes).edges for name, out in plan.inputs.items()},
        captures=tuple(Capture(edge) for edge in plan.captures),
        run=run,
    )


def _nodes(
    plan: Plan, roots: tuple[Root, ...], limits: Callable[[NodePlan], int]
) -> tuple[Node, ...]:
    nodes = []
    first_key = 0
    feedback = Counter(e.target for e in plan.workflow.edges if is_feedback(e, plan.workflow))
    for node in plan.nodes:
        depths = enumerate(node.port_depths)
        nodes.append(
            Node(
                node,
                index=node.index,
                limit=_limit(node, limits),
                simple=_simple(node),
                special=node.own_root >= 0 or node.type.reads,
                first_key=first_key,
                broadcasts=tuple((port, d) for port, d in depths if d < node.depth),
                exit=node.exit,
                depth=node.depth,
                engine=node.type.role is not Role.NONE,
                control=bool(node.controls) or node.control_root >= 0,
                feedback=feedback[node.id],
                own_root=roots[node.own_root] if node.own_root >= 0 else None,
            )
        )
        first_key += node.ports
    return tuple(nodes)


def _next(edges: tuple[Edge, ...]) -> Node | None:
    """The plain node that is all a value goes to, and that needs nothing else."""
    if len(edges) != 1 or edges[0].role != SINGLE:
        return None
    target = edges[0].target
    return target if target.simple else None


def _limit(node: NodePlan, limits: Callable[[NodePlan], int]) -> int:
    """How many run at once; what the kernel runs itself only waits, and takes no place."""
    return sys.maxsize if node.type.role is not Role.NONE else max(1, limits(node))


def _simple(node: NodePlan) -> bool:
    """Whether plain values pass from ports to inputs as they are."""
    plain = all(s.kind is not SlotKind.MANY and len(s.ports) == 1 for s in node.slots)
    return plain and not node.type.reads


def _out(out: OutPlan, nodes: tuple[Node, ...]) -> Out:
    return Out(out, tuple(_edge(edge, nodes) for edge in out.edges))


def _edge(edge: EdgePlan, nodes: tuple[Node, ...]) -> Edge:
    if edge.kind is EdgeKind.CAPTURE:
        return Edge(edge, CAPTURE, nodes[edge.source], edge.port, -1, -1, -1, 0)
    target = nodes[edge.target]
    role = _ROLES.get(edge.kind, JOIN)
    if edge.kind is EdgeKind.PLAIN:
        if edge.depth < target.plan.depth:
            role = BROADCAST
        elif target.plan.ports == 1:
            role = SINGLE
    return Edge(
        edge,
        role,
        target,
        edge.port,
        target.first_key + edge.port,
        edge.exit,
        edge.group,
        edge.position,
    )
