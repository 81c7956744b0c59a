"""Streams that a node drains itself: buffered in order, handed over one request at a time.

    item ──▶ buffer.ahead ──(reader asks)──▶ Feed, the exit takes it
                 ├─(shown with that, and used: Read)──▶ the exit takes it
                 └─(reader over)──▶ the exit takes it unread: left, lost or failed

What a reader is shown stays in the buffer until it is used: it has not been read.

A reader starts when its other inputs are settled and each stream has begun or closed: the
port of a reading slot settles with the buffer itself.

Read next: `routing.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from nightwarden.kernel.causes import Absent, Carried, CauseSet, Kind
from nightwarden.kernel.closing import merge, take
from nightwarden.kernel.effects import EndFeed, Feed
from nightwarden.kernel.state import (
    LEFT,
    Buffer,
    Call,
    Edge,
    Group,
    Item,
    State,
)
from nightwarden.kernel.stopping import halt
from nightwarden.kernel.tasks import (
    Advance,
    Arrive,
    Cut,
    PlaceFreed,
)
from nightwarden.kernel.waiting import may_wait


def arrive(state: State, edge: Edge, item: Item, settlement: object) -> None:
    """One item reaches a reading slot."""
    group = item.group
    buffer = group.buffers[edge.gather]
    buffer.settled += 1
    if buffer.over:
        take(state, item, edge.exit, _unread(settlement, buffer.over))
        return
    failed = type(settlement) is Absent and settlement.kind is Kind.FAILED
    if failed and not edge.target.engine:  # Zip and Cross pair a failed item like any other
        assert type(settlement) is Absent
        take(state, item, edge.exit, settlement)
        fail(state, group, buffer, settlement)
        return
    position = item.lineage[-1] * buffer.plan.edges + edge.position
    if buffer.plan.by_arrival:
        buffer.arrived.append(position)
    buffer.ahead[position] = (item, settlement)
    if buffer.wanted or not buffer.opened or edge.target.engine:
        _tell_reader(state, group, buffer)


def _open(state: State, group: Group, buffer: Buffer) -> None:
    buffer.opened = True
    assert group.parent is not None
    node = state.nodes[buffer.plan.target]
    state.work.append(Arrive(node, buffer.plan.port, group.parent, buffer))


def stream_closed(state: State, group: Group, buffer: Buffer) -> None:
    """The root of a reading slot has closed; a failure reaches the reader like a failed item."""
    cause = group.cause
    runs = not state.nodes[buffer.plan.target].engine
    if runs and cause is not None and cause.kind is Kind.FAILED:
        fail(state, group, buffer, cause)
    else:
        _tell_reader(state, group, buffer)


def _tell_reader(state: State, group: Group, buffer: Buffer) -> None:
    """Something is there, or the end is."""
    if not buffer.opened:
        _open(state, group, buffer)
    elif buffer.wanted:
        feed(state, group, buffer)
    elif buffer.reader is not None and buffer.reader.node.engine:
        state.work.append(Advance(buffer.reader))


def fail(state: State, group: Group, buffer: Buffer, absent: Absent) -> None:
    """Something failed reaches the slot: a running reader is cancelled, a waiting one pruned."""
    buffer.failed = merge(state, buffer.failed, absent)
    if not buffer.opened:
        _open(state, group, buffer)
    elif buffer.reader is not None:
        halt(state, buffer.reader, gently=False)


def failure_met(state: State, call: Call) -> Absent | None:
    """All that has failed in the streams of a reader, whichever of them came first."""
    met = None
    for buffer in (call.buffers or {}).values():
        if buffer.failed is not None:
            met = merge(state, met, buffer.failed)
    return met


def request(state: State, call: Call, slot: str, look_ahead: int) -> None:
    """The reader wants its next item, and may be shown more."""
    assert call.buffers is not None
    buffer = call.buffers[slot]
    buffer.wanted, buffer.look_ahead = True, look_ahead
    feed(state, buffer.group, buffer)
    if buffer.wanted and not call.parked:
        call.parked, call.asking = True, slot
        call.node.running -= 1
        state.active -= 1
        may_wait(state, call)
        state.work.append(PlaceFreed(call.node))


def feed(state: State, group: Group, buffer: Buffer) -> None:
    """Hand over the next item, or the end, if it is there."""
    edges = buffer.plan.edges
    call = buffer.reader
    assert call is not None  # who has ended, or is told to, wants nothing
    while True:
        position = _next(buffer)
        if position < 0:
            break
        item, settlement = buffer.ahead.pop(position)
        exit_ = buffer.plan.exits[position % edges]
        if type(settlement) is Absent:
            if settlement.kind is Kind.LOST:
                buffer.losses[position] = settlement.causes
                carried = state.causes.interventions(settlement.causes)
                buffer.carried = state.causes.union(buffer.carried, carried)
            take(state, item, exit_, settlement)
            continue
        if type(settlement) is Carried:
            buffer.carried = state.causes.union(buffer.carried, settlement.causes)
            settlement = settlement.value
        _answered(state, buffer, call)
        shown = _shown(buffer) if buffer.look_ahead else ()
        state.out.append(Feed(call.number, buffer.plan.slot, position // edges, settlement, shown))
        take(state, item, exit_, settlement)
        return
    if group.closed and buffer.settled == group.emitted * edges:
        buffer.carried = state.causes.union(buffer.carried, group.carried)
        if group.cause is not None:
            # A reader that left before the end has not met what ended the stream.
            cause = state.causes.interventions(group.cause.causes)
            buffer.carried = state.causes.union(buffer.carried, cause)
        _answered(state, buffer, call)
        state.out.append(EndFeed(call.number, buffer.plan.slot))


def _shown(buffer: Buffer) -> Sequence[tuple[int, object]]:
    """The values that come next. What is lost, or carries causes, has to be asked for."""
    ahead, edges, most = buffer.ahead, buffer.plan.edges, buffer.look_ahead
    positions: Iterable[int] = range(buffer.cursor, buffer.cursor + most)
    if buffer.plan.by_arrival:
        positions = islice(buffer.arrived, most)
    found = []
    for position in positions:
        if position not in ahead:
            break
        settlement = ahead[position][1]
        kind = type(settlement)
        if kind is Absent or kind is Carried:
            break
        found.append((position // edges, settlement))
    return found


def read(state: State, call: Call, slot: str, number: int) -> None:
    """The reader has used what it was shown: that is read now, as if it had been asked for."""
    assert call.buffers is not None
    buffer = call.buffers[slot]
    ahead, exits, edges = buffer.ahead, buffer.plan.exits, buffer.plan.edges
    positions: Iterable[int] = range(buffer.cursor, buffer.cursor + number)
    if buffer.plan.by_arrival:
        positions = [buffer.arrived.popleft() for _ in range(number)]
    else:
        buffer.cursor += number
    for position in positions:
        item, settlement = ahead.pop(position)
        take(state, item, exits[position % edges], settlement)


def _next(buffer: Buffer) -> int:
    if buffer.plan.by_arrival:
        return buffer.arrived.popleft() if buffer.arrived else -1
    if buffer.cursor in buffer.ahead:
        buffer.cursor += 1
        return buffer.cursor - 1
    return -1


def _answered(state: State, buffer: Buffer, call: Call) -> None:
    buffer.wanted = False
    unpark(state, call)
    if call.besides:
        may_wait(state, call)


def unpark(state: State, call: Call) -> None:
    """A reader no longer waits for its next item; what else it may wait for stays."""
    if call.asking:
        call.parked, call.asking = False, ""
        call.node.running += 1
        state.active += 1
        may_wait(state, call)


def release(state: State, group: Group, buffer: Buffer, over: object) -> None:
    """Nobody reads this slot any more: its exit takes everything, now and later, unread."""
    buffer.over, buffer.reader, buffer.wanted = over, None, False
    edges = buffer.plan.edges
    waiting = sorted(buffer.ahead.items())
    buffer.ahead = {}
    for position, (item, settlement) in waiting:
        take(state, item, buffer.plan.exits[position % edges], _unread(settlement, over))
    if over is LEFT:
        group.left_exits += edges
        if group.left_exits == group.root.exits:
            state.work.append(Cut(group))


def _unread(settlement: object, over: object) -> object:
    """What an unread item counts as: a loss stays the loss it was."""
    return settlement if type(settlement) is Absent else over


def release_reader(state: State, call: Call, over: object) -> None:
    """The call reads no more: its streams take everything, now and later, as `over` says."""
    for buffer in (call.buffers or {}).values():
        if buffer.over is None:
            release(state, buffer.group, buffer, over)


def carried_by(state: State, call: Call) -> CauseSet:
    """The interventions behind a call's inputs, those a reader has met on the way included."""
    carried = call.carried
    if call.buffers:
        for buffer in call.buffers.values():
            carried = state.causes.union(carried, buffer.carried)
    return carried
