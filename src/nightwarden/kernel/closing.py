"""Where items end: exits, groups that close, lists that complete, records that are freed.

Every path of an item under root r ends at one of r's exits; each exit takes each item
exactly once. So an item is *taken* when its count of open exits is zero (back-pressure
looks at that), and *freed* when besides nothing is open below it:

    exit ──▶ item.remaining 0 ──▶ taken ──▶ item.live 0 ──▶ freed ──▶ group.open 0 and closed
                                                                         └──▶ drained: the sums
                                                                              are checked, the
                                                                              parent may be freed
The run itself is the outermost item: when it is freed, everything is settled.

Nothing here calls back into routing: what has to be settled next is put on `state.work`.
Read next: `reading.py`.
"""

from __future__ import annotations

from nightwarden.errors import KernelBug
from nightwarden.kernel.causes import NO_CAUSES, Absent, Carried, CauseSet, Kind, rank
from nightwarden.kernel.effects import CloseRoot, Resume
from nightwarden.kernel.plan import EdgeKind
from nightwarden.kernel.state import (
    LEFT,
    Buffer,
    Edge,
    Gathered,
    Group,
    Item,
    Missing,
    Root,
    State,
)
from nightwarden.kernel.tasks import (
    Advance,
    Arrive,
    RootDone,
    StreamClosed,
)
from nightwarden.kernel.waiting import may_wait
from nightwarden.lineage import show

CATEGORY = {Kind.NOT_TAKEN: "not_taken", Kind.LOST: "lost", Kind.FAILED: "failed"}


def open_group(root: Root, parent: Item) -> Group:
    """The group of `root` under `parent`, which is about to emit."""
    gathers = root.plan.gathers
    root.groups += 1
    group = Group(root, parent, number=root.groups, delivered=[0] * root.exits)
    if gathers:
        group.buffers = [Buffer(gather, group) for gather in gathers]
    root.open_groups[group.number] = group
    return group


def take(state: State, item: Item, exit_: int, settlement: object) -> None:
    """An exit takes an item with a value, an Absent, or `LEFT` unread."""
    group = item.group
    kind = type(settlement)
    if kind is Absent:
        _take_absent(state, item, exit_, settlement)  # type: ignore[arg-type]
    elif settlement is LEFT:
        _count(group, exit_, "left")
    else:
        group.delivered[exit_] += 1
    item.remaining -= 1
    if item.remaining == 0:
        taken(state, item)


def _take_absent(state: State, item: Item, exit_: int, absent: Absent) -> None:
    group = item.group
    _count(group, exit_, CATEGORY[absent.kind])
    index = _index(item)
    if absent.kind is Kind.NOT_TAKEN:
        group.filtered[index] = group.filtered.get(index, 0) + 1
        return
    cause = state.causes.charge(absent.causes)
    before = group.missing.get(index)
    if before is not None and rank(state.causes[before.cause]) <= rank(cause):
        return
    group.missing[index] = Missing(item.lineage, cause.number, item.label)


def _index(item: Item) -> int:
    return item.lineage[-1] if item.lineage else 0


def _count(group: Group, exit_: int, category: str) -> None:
    key = (exit_, category)
    group.others[key] = group.others.get(key, 0) + 1


def taken(state: State, item: Item) -> None:
    """Every exit has taken an item."""
    group = item.group
    root = group.root
    group.outstanding -= 1
    root.outstanding -= 1
    if group.missing and _index(item) in group.missing:
        group.gone += 1
    if root.paused:
        _resume(state, root, group)
    if item.live == 0:
        free(state, item)


def _resume(state: State, root: Root, group: Group) -> None:
    """Let paused fan-outs go on: all of them at half the window, one that has nothing out."""
    if root.outstanding * 2 <= root.window:
        for call in list(root.paused.values()):
            unpark(state, root, call.number)
    elif group.outstanding == 0 and group.call is not None:
        unpark(state, root, group.call.number)


def unpark(state: State, root: Root, number: int) -> None:
    """Resume one paused fan-out, if it is one."""
    call = root.paused.pop(number, None)
    if call is None:
        return
    if call.node.engine:
        state.work.append(Advance(call))
        return
    call.parked = False
    call.node.running += 1
    state.active += 1
    may_wait(state, call)
    state.out.append(Resume(number))


def free(state: State, item: Item) -> None:
    """Nothing refers to this item any more."""
    group = item.group
    if group.filtered:
        seen = group.filtered.pop(_index(item), 0)
        if seen == group.root.exits:
            group.root.filtered += 1
    group.open -= 1
    if group.open == 0 and group.closed:
        _drained(state, group)


def _drained(state: State, group: Group) -> None:
    root = group.root
    for exit_, delivered in enumerate(group.delivered):
        others = sum(n for (e, _), n in group.others.items() if e == exit_)
        if delivered + others != group.emitted:
            raise KernelBug(
                f"{root.plan.name}: {group.emitted} items emitted, but "
                f"{delivered + others} ended at {root.plan.exits[exit_]}",
                story=[f"{group.mark} under [{show(group.parent.lineage if group.parent else ())}]"]
                + [f"{name} {n}" for name, n in group.others.items()],
            )
    fold(group, root)
    del root.open_groups[group.number]
    parent = group.parent
    if parent is None:
        state.freed = True
        return
    if parent.parent is None:
        state.work.append(RootDone(root))
    parent.live -= 1
    if parent.live == 0 and parent.remaining == 0:
        free(state, parent)


def fold(group: Group, root: Root) -> None:
    """Add a group's counts to those of its root."""
    root.emitted += group.emitted
    for exit_, delivered in enumerate(group.delivered):
        root.delivered[exit_] += delivered
    for key, count in group.others.items():
        root.others[key] = root.others.get(key, 0) + count
    root.gone += group.gone
    root.missing.extend(group.missing[i] for i in sorted(group.missing))
    mark = group.mark or "open"
    root.marks[mark] = root.marks.get(mark, 0) + 1


def close_group(state: State, group: Group, mark: str, cause: Absent | None = None) -> None:
    """A fan-out has ended: `closed`, `early` or `failed` (with its cause), or `cut`."""
    group.closed, group.mark, group.cause, group.call = True, mark, cause, None
    parent = group.parent
    assert parent is not None
    if state.trace is not None:
        state.trace.append(("close", group.root.plan.index, parent.lineage, group.emitted, cause))
    state.out.append(CloseRoot(group.root.plan.node, parent.lineage, group.emitted, mark))
    for buffer in group.buffers:
        if buffer.plan.kind is EdgeKind.COLLECT:
            if cause is not None:
                _carry_close(state, buffer, cause)
            complete(state, group, buffer)
        else:
            state.work.append(StreamClosed(group, buffer))
    if group.open == 0:
        _drained(state, group)


def _carry_close(state: State, buffer: Buffer, cause: Absent) -> None:
    if cause.kind is Kind.FAILED:
        buffer.failed = merge(state, buffer.failed, cause)
    else:
        carried = state.causes.interventions(cause.causes)
        buffer.carried = state.causes.union(buffer.carried, carried)


def carry_end(state: State, group: Group, carried: CauseSet) -> None:
    """What a fan-out has lived through by its end is behind what gathers its items."""
    if carried:
        group.carried = carried
        for buffer in group.buffers:
            if buffer.plan.kind is EdgeKind.COLLECT:
                buffer.carried = state.causes.union(buffer.carried, carried)


def close_absent(state: State, root: Root, parent: Item, cause: Absent) -> None:
    """A fan-out never opens under this parent: one Absent for everything that gathers it."""
    if state.trace is not None:
        state.trace.append(("close", root.plan.index, parent.lineage, 0, cause))
    state.out.append(CloseRoot(root.plan.node, parent.lineage, 0, "absent"))
    root.marks["absent"] = root.marks.get("absent", 0) + 1
    for gather in root.plan.gathers:
        state.work.append(Arrive(state.nodes[gather.target], gather.port, parent, cause))
    if parent.parent is None:
        state.work.append(RootDone(root))
    parent.live -= 1
    if parent.live == 0 and parent.remaining == 0:
        free(state, parent)


def gather(state: State, edge: Edge, item: Item, settlement: object) -> None:
    """One item of a collecting slot."""
    group = item.group
    buffer = group.buffers[edge.gather]
    buffer.settled += 1
    kind = type(settlement)
    index = item.lineage[-1] * buffer.plan.edges + edge.position
    if kind is Absent:
        _gather_absent(state, buffer, index, settlement)  # type: ignore[arg-type]
    else:
        if kind is Carried:
            buffer.carried = state.causes.union(buffer.carried, settlement.causes)  # type: ignore[attr-defined]
            settlement = settlement.value  # type: ignore[attr-defined]
        buffer.values.append(settlement)
        buffer.indices.append(index)
    if group.closed:
        complete(state, group, buffer)
    take(state, item, edge.exit, settlement)


def _gather_absent(state: State, buffer: Buffer, index: int, absent: Absent) -> None:
    if absent.kind is Kind.FAILED:
        buffer.failed = merge(state, buffer.failed, absent)
    elif absent.kind is Kind.LOST:
        buffer.losses[index] = absent.causes
        carried = state.causes.interventions(absent.causes)
        buffer.carried = state.causes.union(buffer.carried, carried)


def merge(state: State, one: Absent | None, other: Absent) -> Absent:
    """Both absences as one; the stronger kind wins."""
    if one is None:
        return other
    return Absent(max(one.kind, other.kind), state.causes.union(one.causes, other.causes))


def complete(state: State, group: Group, buffer: Buffer) -> None:
    """If every item of a closed root is settled, hand the list on."""
    plan = buffer.plan
    if buffer.settled != group.emitted * plan.edges:
        return
    node = state.nodes[plan.target]
    assert group.parent is not None
    settlement: object
    if buffer.failed is not None:
        settlement = buffer.failed
    else:
        early = group.cause if group.mark == "early" else None
        ended = NO_CAUSES if early is None else early.causes
        values = _in_order(buffer, plan.edges, ended)
        settlement = Carried(values, buffer.carried) if buffer.carried else values
    buffer.values, buffer.indices = [], []
    state.work.append(Arrive(node, plan.port, group.parent, settlement))


def _in_order(buffer: Buffer, edges: int, ended: CauseSet) -> Gathered:
    values, indices = buffer.values, buffer.indices
    losses: tuple[tuple[int, CauseSet], ...] = ()
    if buffer.losses:
        losses = tuple((i // edges, causes) for i, causes in sorted(buffer.losses.items()))
    n = len(indices)
    if any(indices[i] > indices[i + 1] for i in range(n - 1)):
        order = sorted(range(n), key=indices.__getitem__)
        values = [values[i] for i in order]
        indices = [indices[i] for i in order]
    if edges > 1:
        indices = [i // edges for i in indices]
    if edges == 1 and n and indices[-1] == n - 1:
        return Gathered(values, range(n), losses, ended)
    return Gathered(values, indices, losses, ended)
