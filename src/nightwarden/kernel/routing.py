"""Values on their way: from an output slot over its edges into joins, and out as invocations.

    settle(outs) ─▶ edge PLAIN   ─▶ port ─▶ join complete ─▶ match ─▶ ready ─▶ Invoke
                 ─▶ edge COLLECT ─▶ closing.gather                 └▶ prune ─▶ settle …
                 ─▶ edge READ    ─▶ reading.arrive
                 ─▶ edge CAPTURE ─▶ the run's outputs

Propagation is a worklist, not recursion: what follows from a settlement is put on
`state.work`, and `propagating.py` empties it. Each settlement costs amortised O(1).

Read next: `propagating.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightwarden.errors import KernelBug
from nightwarden.kernel import reading
from nightwarden.kernel.causes import (
    NO_CAUSES,
    NOT_TAKEN,
    Absent,
    Carried,
    CauseSet,
    Kind,
)
from nightwarden.kernel.closing import CATEGORY, gather, merge, open_group, take
from nightwarden.kernel.effects import Answer, Finish, Invoke, Prune
from nightwarden.kernel.matching import match
from nightwarden.kernel.state import (
    PENDING,
    Buffer,
    Call,
    Edge,
    Entry,
    Group,
    Item,
    Node,
    Out,
    Root,
    State,
)
from nightwarden.kernel.stopping import halt
from nightwarden.kernel.tasks import (
    Advance,
    ControllerDone,
    NeverOpened,
    Settle,
    TakeAt,
)
from nightwarden.kernel.waiting import waits_for_one_less

SINGLE, JOIN, BROADCAST, COLLECT, READ, CAPTURE, FEEDBACK = range(7)
"""What an edge does at its target: the only input, one of several, one for many items, …"""

_NO_ANSWER = {
    Kind.NOT_TAKEN: "it lies on a branch that was not taken",
    Kind.LOST: "it, or what it needs, was given up",
    Kind.FAILED: "it, or what it needs, failed",
}
"""What a caller is told who waits for a node that did not run."""


def settle(state: State, edges: Sequence[Edge], item: Item, settlement: object) -> None:
    """Send one settlement of `item` along every edge of an output slot."""
    if state.trace is not None:
        state.trace += [("settle", e.plan.index, item.lineage, settlement) for e in edges]
    kind = type(settlement)
    bare = kind is not Absent and kind is not Carried
    for edge in edges:
        role = edge.role
        if role == SINGLE:
            if bare and edge.target.simple:
                ready(state, edge.target, item, (settlement,), NO_CAUSES)
            else:
                _decide(state, edge.target, item, [settlement])
        elif role == COLLECT:
            gather(state, edge, item, settlement)
        elif role == READ:
            reading.arrive(state, edge, item, settlement)
        elif role == CAPTURE:
            _capture(state, edge, item, settlement)
        elif role == FEEDBACK:
            _feed_back(state, edge, item, settlement)
        else:
            _arrive(state, edge.target, edge.port, edge.role, edge.key, item, settlement)
            if role == BROADCAST:
                take(state, item, edge.exit, settlement)


def _arrive(
    state: State, node: Node, port: int, join: int, key: int, item: Item, settlement: object
) -> None:
    if join == JOIN:
        entry = node.entries.get(item)
        if entry is None:
            entry = _open_entry(node, item)
        _fill(state, node, entry, port, settlement)
        return
    if item.held is None:
        item.held = {}
    item.held[key] = settlement
    if item.waiting is not None:
        for entry in item.waiting.pop(key, ()):
            _fill(state, node, entry, port, settlement)


def _open_entry(node: Node, item: Item) -> Entry:
    """A join for `item`, with what was broadcast to it already filled in."""
    plan = node.plan
    entry = Entry(item, [PENDING] * plan.ports, plan.ports)
    node.entries[item] = entry
    for port, depth in node.broadcasts:
        ancestor = item
        while len(ancestor.lineage) > depth:
            parent = ancestor.parent
            assert parent is not None
            ancestor = parent
        key = node.first_key + port
        if ancestor.held is not None and key in ancestor.held:
            entry.values[port] = ancestor.held[key]
            entry.left -= 1
        else:
            if ancestor.waiting is None:
                ancestor.waiting = {}
            ancestor.waiting.setdefault(key, []).append(entry)
    return entry


def _fill(state: State, node: Node, entry: Entry, port: int, settlement: object) -> None:
    if entry.values[port] is not PENDING:
        raise KernelBug(f"{node.plan.id}: port {port} settled twice for {entry.item.lineage}")
    entry.values[port] = settlement
    entry.left -= 1
    if entry.left == 0:
        del node.entries[entry.item]
        _decide(state, node, entry.item, entry.values)


def _decide(state: State, node: Node, item: Item, values: list[object]) -> None:
    """Every input is settled: fire or prune."""
    if node.simple:
        for value in values:
            kind = type(value)
            if kind is Absent or kind is Carried:
                break
        else:
            ready(state, node, item, tuple(values), NO_CAUSES)
            return
    found = match(node.plan, values, state.causes)
    if node.plan.type.reads:
        absents = [v.failed for v in values if type(v) is Buffer and v.failed is not None]
        if type(found) is not Absent:
            for absent in absents:
                found = merge(state, found if type(found) is Absent else None, absent)
    if type(found) is Absent:
        prune(state, node, item, found, values)
    else:
        inputs, carried = found  # type: ignore[misc]
        ready(state, node, item, inputs, carried)


def ready(
    state: State, node: Node, item: Item, inputs: tuple[object, ...], carried: CauseSet
) -> None:
    """An invocation may run: start it, or queue it for a free place."""
    state.active += 1
    if node.running < node.limit and state.status is None:
        start(state, node, item, inputs, carried)
    else:
        node.queue.append((item, inputs, carried))


def start(
    state: State, node: Node, item: Item, inputs: tuple[object, ...], carried: CauseSet
) -> None:
    """Begin an invocation at its first attempt."""
    state.numbers = number = state.numbers + 1
    call = Call(number, node, item, inputs, carried)
    if node.special:
        if not _prepare(state, call):
            return
        inputs = call.inputs
        if node.engine:
            # The kernel runs it: it waits for items, and holds no place.
            call.parked = True
            state.active -= 1
            state.calls[number] = call
            node.started += 1
            state.work.append(Advance(call))
            return
    state.calls[number] = call
    node.running += 1
    node.started += 1
    state.out.append(Invoke(number, node.index, item.lineage, 1, inputs))


def _prepare(state: State, call: Call) -> bool:
    """Give a reader its buffers and a fan-out its group; False if a reader has to be pruned."""
    node = call.node
    if node.plan.type.reads:
        call.buffers = {}
        for slot, value in zip(node.plan.slots, call.inputs, strict=True):
            if type(value) is Buffer:
                call.buffers[slot.name] = value
        failed = reading.failure_met(state, call)
        if failed is not None:
            state.active -= 1
            prune(state, node, call.item, failed, list(call.inputs))
            return False
        for buffer in call.buffers.values():
            buffer.reader = call
        call.inputs = tuple(None if type(v) is Buffer else v for v in call.inputs)
    if node.own_root is not None:
        call.group = open_group(node.own_root, call.item)
        call.group.call = call
    return True


def place(state: State, node: Node) -> None:
    """A place at a node is free: start what waits for one."""
    queue = node.queue
    while queue and node.running < node.limit and state.status is None:
        waiting = queue.popleft()
        if type(waiting) is Call:
            again(state, waiting)
        else:
            item, inputs, carried = waiting  # type: ignore[misc]
            start(state, node, item, inputs, carried)


def again(state: State, call: Call) -> None:
    """Invoke the next attempt of a call, under a new number."""
    state.numbers += 1
    call.number = state.numbers
    state.calls[call.number] = call
    call.node.running += 1
    call.node.retries_run += 1
    state.out.append(
        Invoke(call.number, call.node.index, call.item.lineage, call.attempt, call.inputs)
    )


def prune(
    state: State, node: Node, item: Item, absent: Absent, values: Sequence[object] = ()
) -> None:
    """The node never runs for this item; everything it would have settled is Absent."""
    node.pruned += 1
    if absent.kind is not Kind.NOT_TAKEN:
        node.pruned_lost += 1
    cause = state.causes.charge(absent.causes)
    state.out.append(Prune(node.index, item.lineage, CATEGORY[absent.kind], cause.number))
    for value in values:
        if type(value) is Buffer:
            reading.release(state, value.group, value, absent)
    absent_outputs(state, node, item, absent)


def absent_outputs(state: State, node: Node, item: Item, absent: Absent) -> None:
    """Settle a node's own slots, its root and its exit with one absence."""
    if node.own_root is None:
        for out in node.outs:
            state.work.append(Settle(out.edges, item, absent))
    else:
        for out in node.ends:
            state.work.append(Settle(out.edges, item, absent))
        state.work.append(NeverOpened(node.own_root, item, absent))
    if node.plan.exit >= 0:
        state.work.append(TakeAt(item, node.plan.exit, absent))
    node_settled(state, node, item, absent)


def outputs(
    state: State,
    outs: Sequence[Out],
    node: Node,
    item: Item,
    values: Sequence[object],
    carried: CauseSet,
) -> None:
    """Settle output slots with values; `NOT_TAKEN` is a branch not taken."""
    for out, value in zip(outs, values, strict=True):
        settlement: object
        if value is NOT_TAKEN:
            plan = node.plan
            settlement = state.causes.branch(plan.id, plan.order, out.plan.base)
        elif carried:
            settlement = Carried(value, carried)
        else:
            settlement = value
        settle(state, out.edges, item, settlement)


def node_settled(
    state: State,
    node: Node,
    item: Item,
    absent: Absent | None = None,
    carried: CauseSet = NO_CAUSES,
) -> None:
    """A node is settled for an item: the run's own nodes are finished, controllers are done.

    `carried` are the interventions it has lived through.
    """
    if node.plan.depth == 0:
        state.out.append(Finish(node.index))
    if node.plan.controls:
        state.work.append(ControllerDone(node, item, absent, carried))
    if absent is not None and node.plan.control_root >= 0:
        answer(state, item, None, _NO_ANSWER[absent.kind])


def answer(state: State, item: Item, outputs_: dict[str, object] | None, error: str = "") -> None:
    """Tell the caller of a control event what came of it, once, if it waits for that."""
    if item.caller is None:
        return
    call, event, awaited_by = item.caller
    item.caller = None
    if awaited_by in state.calls:  # and not over, nor at its next attempt
        waits_for_one_less(state, call)
        state.out.append(Answer(call.number, event, outputs_, error))


def finish_under(state: State, root: Root) -> None:
    """Every node below a top-level fan-out is finished."""
    for node in state.nodes:
        path = state.roots[node.plan.root].plan.scope
        if root.plan.index in path:
            state.out.append(Finish(node.index))


def _feed_back(state: State, edge: Edge, item: Item, settlement: object) -> None:
    """What a loop's body hands to the next iteration."""
    call = item.group.call
    assert call is not None
    if call.feedback is None:
        call.feedback = {}
    call.feedback[edge.plan.target_slot] = settlement
    if len(call.feedback) == edge.target.feedback:
        state.work.append(Advance(call))
    take(state, item, edge.exit, settlement)


def _capture(state: State, edge: Edge, item: Item, settlement: object) -> None:
    capture = state.captures[edge.port]
    if type(settlement) is Absent:
        capture.absents.append((item.lineage, settlement))
        return
    if type(settlement) is Carried:
        settlement = settlement.value
    capture.values.append(settlement)
    capture.lineages.append(item.lineage)


def arrive_port(state: State, node: Node, port: int, item: Item, settlement: object) -> None:
    if node.plan.ports == 1 and node.plan.port_depths[0] == node.plan.depth:
        _decide(state, node, item, [settlement])
        return
    join = JOIN if node.plan.port_depths[port] == node.plan.depth else BROADCAST
    _arrive(state, node, port, join, node.first_key + port, item, settlement)


def cut(state: State, group: Group) -> None:
    """Nobody wants more of this fan-out: close it at its next yield, at once if it waits."""
    group.cut = True
    call = group.call
    if call is not None and call.node.engine:
        state.work.append(Advance(call))
    elif call is not None and (call.parked or call.outside) and not call.halting:
        halt(state, call, gently=not call.asking)
