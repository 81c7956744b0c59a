"""Control events: a node that runs once an event, and callers that wait for their own answer.

The controlled node is the root of its control events: an event under parent P is item i of
that root, and the node runs at lineage P + (i,), its data inputs broadcast. The group closes
when every controller under P has ended, or said that it will send no more; early, if one of
them was given up before that.

    ControlSent ─▶ item ─▶ the node's control port ─▶ Invoke … ─▶ Answer to its own caller

A caller is released whatever happens: with the outputs, or with the reason there are none.

Read next: `machine.py`.
"""

from __future__ import annotations

from nightwarden.kernel.causes import Absent, Carried, CauseSet, Kind
from nightwarden.kernel.closing import carry_end, close_group, merge, open_group
from nightwarden.kernel.effects import Answer
from nightwarden.kernel.emitting import new_item
from nightwarden.kernel.reading import carried_by
from nightwarden.kernel.routing import settle
from nightwarden.kernel.state import (
    Call,
    Control,
    Item,
    Node,
    State,
)
from nightwarden.kernel.stimuli import ControlEnded, ControlSent
from nightwarden.kernel.stopping import halt
from nightwarden.kernel.tasks import (
    NeverOpened,
)
from nightwarden.kernel.waiting import waits
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.where import is_feedback, slot_streams
from nightwarden.spec.workflow import INPUTS, EdgeSpec


def sent(state: State, stimulus: ControlSent) -> None:
    """A controller sends an event. In a run that stops, it waits for whoever goes on with it."""
    call = state.calls.get(stimulus.call)
    if call is None or call.halting:
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
    if stimulus.awaits and state.status is not None:
        halt(state, call, gently=False)  # what waits on the engine is cancelled, not told why
        return
    item = new_item(control.group, call.item, None)
    item.caller = (call, stimulus.event, call.number if stimulus.awaits else 0)
    if stimulus.awaits:
        waits(state, call)
    carried = carried_by(state, call)
    value: object = dict(stimulus.overrides)
    edge = state.control_edges[target.plan.control_root]
    settle(state, (edge,), item, Carried(value, carried) if carried else value)


def ended(state: State, stimulus: ControlEnded) -> None:
    """A controller sends nothing more to a node."""
    call = state.calls.get(stimulus.call)
    if call is None:
        return
    control = _control(state, state.nodes[stimulus.target], call)
    if control is not None:
        control.open.discard(call.node.index)
        _ran(state, control, carried_by(state, call))  # it has said all it has to say
        _close_if_over(state, control, call.item)


def _ran(state: State, control: Control, carried: CauseSet) -> None:
    """That a controller sends no more is a result too: it carries what the controller does."""
    control.ran = True
    control.carried = state.causes.union(control.carried, carried)


def controller_done(
    state: State, node: Node, item: Item, absent: Absent | None, carried: CauseSet
) -> None:
    """A controller is settled: its targets can expect nothing more of it."""
    for root in node.plan.controls:
        control = _under(state, root, item)
        control.unsettled.discard(node.index)
        if node.index in control.open:
            control.open.discard(node.index)
            if absent is None:
                _ran(state, control, carried)
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
    cause = _given_up(state, control)
    carry_end(state, group, control.carried)
    if cause is None:
        close_group(state, group, "closed")
    elif group.emitted == 0:
        group.closed = True
        del group.root.open_groups[group.number]
        state.work.append(NeverOpened(group.root, item, cause))
    else:
        close_group(state, group, "failed" if cause.kind is Kind.FAILED else "early", cause)


def _given_up(state: State, control: Control) -> Absent | None:
    """Why there are fewer events than there might have been: controllers that were given up.

    A controller on a branch not taken is a reason only where no other one has run.
    """
    absent = control.absent
    if absent is None or not control.ran:
        return absent
    if absent.kind is Kind.NOT_TAKEN:
        return None
    return Absent(absent.kind, state.causes.interventions(absent.causes))


def _refuse(state: State, stimulus: ControlSent, reason: str) -> None:
    if stimulus.awaits:
        state.out.append(Answer(stimulus.call, stimulus.event, None, reason))


def _needs(state: State, target: Node, call: Call) -> str:
    """The source of an input the target still waits for that cannot come before the caller ends."""
    for slot in target.plan.slots:
        for port in slot.ports:
            if _has_come(call.item, target, port):
                continue
            for edge in state.plan.workflow.edges_into(target.plan.id):
                here = target.plan.port_depths[port] == len(call.item.lineage)
                if edge.target_slot == slot.name and _depends(state, edge, call, here=here):
                    return edge.source
    return ""


def _has_come(item: Item, target: Node, port: int) -> bool:
    ancestor = item
    while len(ancestor.lineage) > target.plan.port_depths[port]:
        assert ancestor.parent is not None
        ancestor = ancestor.parent
    return ancestor.held is not None and target.first_key + port in ancestor.held


def _depends(state: State, edge: EdgeSpec, on: Call, *, here: bool) -> bool:
    """Whether what an edge carries cannot come before a call has ended, however far up.

    `here`: it belongs to the item of that call, and not to many of them.
    """
    seen, ahead = set(), [edge]
    while ahead:
        current = ahead.pop()
        if current.source == on.node.plan.id:
            if not (here and current.kind == "control" and _is_done(state, on, current.target)):
                return True
        elif current not in seen and current.source != INPUTS:
            seen.add(current)
            ahead += _behind(state, current)
    return False


def _is_done(state: State, call: Call, target: str) -> bool:
    """Whether a call has said that it sends nothing more to a node it controls."""
    control = _control(state, state.nodes[state.plan.node(target).index], call)
    return control is not None and call.node.index not in control.open


def _behind(state: State, edge: EdgeSpec) -> list[EdgeSpec]:
    """The edges an edge waits for: all into its source, and into a loop that has to end first.

    A source that controls others may wait for these, and so for what they are given.
    """
    workflow = state.plan.workflow
    ends = _ends_first(state, edge)
    called = {e.target for e in workflow.edges if e.kind == "control" and e.source == edge.source}
    return [
        e
        for e in workflow.edges
        if (e.target == edge.source and not is_feedback(e, workflow))
        or (e.target == ends and is_feedback(e, workflow))
        or (e.target in called and e.kind == "data")
    ]


def _ends_first(state: State, edge: EdgeSpec) -> str:
    """The fan-out that has to end before an edge is settled: for a list, or a slot set once."""
    if edge.kind == "control":
        return ""
    workflow, source = state.plan.workflow, state.plan.node(edge.source)
    streams = slot_streams(source.type, edge.source_slot)
    slot = workflow.types[edge.target].input(edge.target_slot)
    assert slot is not None
    if slot.kind not in (SlotKind.COLLECT, SlotKind.STREAM):
        return "" if streams else edge.source
    root = state.plan.roots[source.own_root if streams else source.root]
    return state.plan.nodes[root.node].id
