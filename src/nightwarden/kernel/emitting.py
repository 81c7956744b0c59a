"""A fan-out puts out an item: a new lineage, settled on every stream slot of its node.

Read next: `engine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.kernel.causes import NOT_TAKEN, Absent, CauseSet
from nightwarden.kernel.closing import take
from nightwarden.kernel.routing import outputs, settle
from nightwarden.kernel.state import Call, Group, Item, State


def emit(state: State, call: Call, frame: tuple[object, ...], carried: CauseSet) -> None:
    """A frame a step has yielded: values in the order of `NodePlan.outs`.

    `carried` is what is behind the call by now.
    """
    assert call.group is not None
    item = new_item(call.group, call.item, frame[0])
    node = call.node
    if len(frame) == 1 and not carried and frame[0] is not NOT_TAKEN:
        out = node.outs[0]
        settle(state, out.edges, item, frame[0])
        if out.plan.exit >= 0:
            take(state, item, out.plan.exit, True)
        return
    outputs(state, node.outs, node, item, frame, carried)
    for out, value in zip(node.outs, frame, strict=True):
        if out.plan.exit >= 0:
            taken: object = True
            if value is NOT_TAKEN:
                taken = state.causes.branch(node.plan.id, node.plan.order, out.plan.base)
            take(state, item, out.plan.exit, taken)


def emit_settled(
    state: State, call: Call, settlements: Mapping[str, object], label: object
) -> None:
    """An item of a node the kernel runs itself: settlements by slot, absences included."""
    assert call.group is not None
    item = new_item(call.group, call.item, label)
    for out in call.node.outs:
        settlement = settlements[out.plan.base]
        settle(state, out.edges, item, settlement)
        if out.plan.exit >= 0:
            take(state, item, out.plan.exit, settlement if type(settlement) is Absent else True)


def is_full(group: Group) -> bool:
    """Whether a fan-out has to wait: too much is outstanding, and some of it under this parent."""
    return group.root.outstanding >= group.root.window and group.outstanding > 0


def new_item(group: Group, parent: Item, label: object) -> Item:
    """The next item of a group, with nothing settled yet."""
    root = group.root
    index = group.emitted
    item = Item((*parent.lineage, index), parent, group, root.exits, root.children, label)
    group.emitted = index + 1
    group.open += 1
    group.outstanding += 1
    root.outstanding += 1
    return item
