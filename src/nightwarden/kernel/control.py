"""Control events: a node that runs once an event, and callers that wait for their own answer.

The controlled node is the root of its control events: an event under parent P is item i of
that root, and the node runs at lineage P + (i,), its data inputs broadcast. The group closes
when every controller under P has ended, or said that it will send no more.

    ControlSent ─▶ item ─▶ the node's control port ─▶ Invoke … ─▶ Answer to its own caller

A caller is released whatever happens: with the outputs, or with the reason there are none.

Read next: `machine.py`.
"""

from __future__ import annotations

from nightwarden.kernel.causes import Absent, Carried
from nightwarden.kernel.closing import close_group, merge, open_group
from nightwarden.kernel.effects import Answer
from nightwarden.kernel.emitting import new_item
from nightwarden.kernel.escalating import carried_by
from nightwarden.kernel.routing import settle
from nightwarden.kernel.state import (
    Call,
    Control,
    Item,
    Node,
    State,
)
from nightwarden.kernel.stimuli import ControlEnded, ControlSent
from nightwarden.kernel.tasks import (
    NeverOpened,
)
from nightwarden.spec.workflow import INPUTS


def sent(state: State, stimulus: ControlSent) -> None:
    """A controller sends an event."""
    call = state.calls.get(stimulus.call)
    if call is None or call.halting or state.status is not None:
        _refuse(state, stimulus, "the run is ending")
        return
    target = state.nodes[stimulus.target]
    control = _control(state, target, call)
    if control is None or call.node.index not in control.open:
        _refuse(state, stimulus, f"{target.plan.id} takes no more events from {call.node.plan.id}")
        return
    if stimulus.awaits and (needed := _needs(state, target, call)):
        _refuse(
            state,
            stimulus,
            f"{target.plan.id} waits for {needed}, which depends on {call.node.plan.id} itself: "
            "send the event without waiting for its answer",
        )
        return
    item = new_item(control.group, call.item, None)
    item.caller = (call, stimulus.event, stimulus.awaits)
    if stimulus.awaits:
        call.awaiting += 1
        state.awaiting += 1
    carried = carried_by(state, call)
    value: object = dict(stimulus.overrides)
    edge = state.control_edges[target.plan.control_root]
    settle(state, (edge,), item, Carried(value, carried) if carried else value)


def ended(state: State, stimulus: ControlEnded) -> None:
    """A controller sends nothing more to a node."""
    call = state.calls.get(stimulus.call)
    control = _control(state, state.nodes[stimulus.target], call) if call is not None else None
    if call is not None and control is not None:
        control.open.discard(call.node.index)
        _close_if_over(state, control, call.item)


def controller_done(state: State, node: Node, item: Item, absent: Absent | None) -> None:
    """A controller is settled: its targets can expect nothing more of it."""
    for root in node.plan.controls:
        control = _under(state, root, item)
        control.open.discard(node.index)
        control.unsettled.discard(node.index)
        if absent is None:
            control.ran = True
        else:
            control.absent = merge(state, control.absent, absent)
        _close_if_over(state, control, item)
        if not control.unsettled:
            del state.controls[root, item]


def _control(state: State, target: Node, call: Call) -> Control | None:
    root = target.plan.control_root
    return _under(state, root, call.item) if root in call.node.plan.controls else None


def _under(state: State, root: int, item: Item) -> Control:
    found = state.controls.get((root, item))
    if found is None:
        controllers = {node.index for node in state.nodes if root in node.plan.controls}
        group = open_group(state.roots[root], item)
        found = Control(group, open=controllers, unsettled=set(controllers))
        state.controls[root, item] = found
    return found


def _close_if_over(state: State, control: Control, item: Item) -> None:
    group = control.group
    if control.open or group.closed:
        return
    if group.emitted == 0 and control.absent is not None and not control.ran:
        group.closed = True
        del group.root.open_groups[group.number]
        state.work.append(NeverOpened(group.root, item, control.absent))
    else:
        close_group(state, group, "closed")


def _refuse(state: State, stimulus: ControlSent, reason: str) -> None:
    if stimulus.awaits:
        state.out.append(Answer(stimulus.call, stimulus.event, None, reason))


def _needs(state: State, target: Node, call: Call) -> str:
    """The source of an input the target still waits for that cannot come before the caller ends."""
    for slot in target.plan.slots:
        for port in slot.ports:
            if target.plan.port_depths[port] == target.plan.depth or _has_come(
                call.item, target, port
            ):
                continue
            for source in _sources(state, target.plan.id, slot.name):
                if _depends(state, source, call.node.plan.id):
                    return source
    return ""


def _has_come(item: Item, target: Node, port: int) -> bool:
    ancestor = item
    while len(ancestor.lineage) > target.plan.port_depths[port]:
        assert ancestor.parent is not None
        ancestor = ancestor.parent
    return ancestor.held is not None and target.first_key + port in ancestor.held


def _sources(state: State, node_id: str, slot: str) -> list[str]:
    edges = state.plan.workflow.edges_into(node_id)
    return [e.source for e in edges if e.target_slot == slot and e.source != INPUTS]


def _depends(state: State, node_id: str, on: str) -> bool:
    """Whether a node's data come from another one, however far up."""
    seen, ahead = set(), [node_id]
    while ahead:
        current = ahead.pop()
        if current == on:
            return True
        if current not in seen:
            seen.add(current)
            edges = state.plan.workflow.edges_into(current)
            ahead += [e.source for e in edges if e.source != INPUTS]
    return False
