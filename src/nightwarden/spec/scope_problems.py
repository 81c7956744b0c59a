"""What can be wrong with where nodes lie, in words: place, fault and remedy.

Read next: `scopes.py`, which finds these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightwarden.errors import Problem
from nightwarden.lineage import Scope
from nightwarden.spec.catalog import Role, SlotKind
from nightwarden.spec.workflow import EdgeSpec, NodeSpec, Workflow


def under(scope: Scope) -> str:
    """A scope in words."""
    return "the run itself" if not scope else "the items of " + " → ".join(scope)


def place_of(node: NodeSpec, edge: EdgeSpec, workflow: Workflow) -> dict[str, object]:
    """Where an edge ends, as problems say it."""
    return {
        "file": workflow.file,
        "line": edge.line or node.line,
        "node": node.id,
        "slot": edge.target_slot,
    }


def problem(where: Mapping[str, object], **what: str) -> Problem:
    """A problem at a place."""
    return Problem(**where, **what)  # type: ignore[arg-type]


def cycle(cycle: Sequence[str], workflow: Workflow) -> Problem:
    """Nodes that feed each other, but not through a loop."""
    node = workflow.node(cycle[0])
    loops = [i for i in cycle if i in workflow.types and workflow.types[i].role is Role.LOOP]
    remedy = f"lead the way back into {loops[0]}.next" if loops else "remove one of these edges"
    return Problem(
        file=workflow.file,
        line=node.line,
        node=node.id,
        rule="cycle",
        message="the nodes feed each other in a circle: " + " → ".join([*cycle, cycle[0]]),
        remedy=remedy,
    )


def nothing_to_collect(
    node: NodeSpec, edge: EdgeSpec, kind: SlotKind, workflow: Workflow
) -> Problem:
    """A collecting or reading slot that is wired to one value of the run."""
    does = "collects" if kind is SlotKind.COLLECT else "reads a stream of"
    return problem(
        place_of(node, edge, workflow),
        rule="nothing-to-collect",
        message=f"{edge.target_slot} {does} the items of a fan-out, "
        f"but {edge.source}.{edge.source_slot} is one value of the run",
        remedy="wire it to something below a fan-out, or fan the list out with [*] first",
    )


def unequal_edges(
    node: NodeSpec, edge: EdgeSpec, before: Scope, scope: Scope, workflow: Workflow
) -> Problem:
    """Edges into one collecting or reading slot that lie under different fan-outs."""
    return problem(
        place_of(node, edge, workflow),
        rule="unequal-scopes",
        message=f"the edges into {edge.target_slot} lie under {under(before)} and {under(scope)}",
        remedy="all edges into one collecting or reading slot must lie under the same fan-out",
    )


def unequal_streams(
    node: NodeSpec, edge: EdgeSpec, before: Scope, scope: Scope, workflow: Workflow
) -> Problem:
    """Streams of one reader that lie under different items."""
    return problem(
        place_of(node, edge, workflow),
        rule="unequal-streams",
        message=f"the streams this node reads lie under {under(before)} and {under(scope)}",
        remedy="read streams whose fan-outs lie under the same items",
    )


def not_prefixes(
    node: NodeSpec,
    one: tuple[Scope, EdgeSpec | None],
    other: tuple[Scope, EdgeSpec],
    workflow: Workflow,
) -> Problem:
    """Inputs of one node that lie under fan-outs of which neither is inside the other."""
    first, second = one[1], other[1]
    assert first is not None
    return problem(
        place_of(node, second, workflow),
        rule="incompatible-scopes",
        message=f"{first.target_slot} (from {first.source}.{first.source_slot}) lies under "
        f"{under(one[0])}, {second.target_slot} (from {second.source}.{second.source_slot}) "
        f"under {under(other[0])}: nothing says which items belong together",
        remedy="pair them with flow.Zip or flow.Cross, or collect one of them first with []",
    )


def reader_too_deep(
    node: NodeSpec, longest: tuple[Scope, EdgeSpec | None], read: Scope, workflow: Workflow
) -> Problem:
    """A plain input of a reader that comes more often than the stream it reads."""
    edge = longest[1]
    assert edge is not None
    return problem(
        place_of(node, edge, workflow),
        rule="reader-scope",
        message=f"{edge.target_slot} lies under {under(longest[0])}, deeper than {under(read)}, "
        "where this node reads its stream",
        remedy="collect it first with []",
    )


def bad_feedback(
    node: NodeSpec, edge: EdgeSpec, scope: Scope, inside: Scope, workflow: Workflow
) -> Problem:
    """What leads back into a loop, but not once an iteration."""
    deeper = scope[: len(inside)] == inside
    return problem(
        place_of(node, edge, workflow),
        rule="loop-feedback",
        message=f"{edge.target_slot} must come from the loop's own body, once an iteration; "
        f"{edge.source}.{edge.source_slot} lies under {under(scope)}",
        remedy="collect it first with []"
        if deeper
        else f"wire it to something below {node.id}.value",
    )


def unequal_controllers(
    node: NodeSpec, one: str, first: Scope, other: str, second: Scope, workflow: Workflow
) -> Problem:
    """Controllers that do not run equally often."""
    return Problem(
        file=workflow.file,
        line=node.line,
        node=node.id,
        rule="unequal-controllers",
        message=f"{one} controls it under {under(first)}, {other} under {under(second)}",
        remedy="all controllers of a node must lie under the same fan-out",
    )


def controlled_too_deep(node: NodeSpec, data: Scope, above: Scope, workflow: Workflow) -> Problem:
    """A controlled node whose data come once an item its controllers know nothing of."""
    return Problem(
        file=workflow.file,
        line=node.line,
        node=node.id,
        rule="controlled-scope",
        message=f"its inputs lie under {under(data)}, its controllers under {under(above)}: "
        "nothing says which item a control event is for",
        remedy="control it from below the same fan-out, or collect its inputs first with []",
    )


def controlled_reader(node: NodeSpec, workflow: Workflow) -> Problem:
    """A controlled node that reads a stream: each of its events would want all of it."""
    return Problem(
        file=workflow.file,
        line=node.line,
        node=node.id,
        rule="controlled-reader",
        message="it reads a stream, and it is controlled: the stream can be read once, "
        "but it would run once a control event",
        remedy="collect the items first with [], or let it run once",
    )
