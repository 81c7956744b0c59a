"""Nodes the kernel itself runs: `Zip`, `Cross` and `Loop`. No code of theirs is ever called.

Each is a call that holds no place and waits for items; `advance` lets it go on as far as it
can. What it emits obeys the same windows as any fan-out.

    Zip    pairs by index; one side absent makes the pair absent; unequal ends are a failure
    Cross  buffers right, streams left; pair left × len(right) + right
    Loop   emits what its body hands back, until the condition ends it

Read next: `machine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from nightwarden.kernel.causes import Absent, Carried, CauseSet, Kind
from nightwarden.kernel.closing import carry_end, close_group, merge, take
from nightwarden.kernel.effects import USE_DEFAULT, Warn
from nightwarden.kernel.emitting import emit_settled, is_full
from nightwarden.kernel.plan import CONTROL
from nightwarden.kernel.reading import release, release_reader
from nightwarden.kernel.routing import answer, node_settled, settle
from nightwarden.kernel.state import (
    LEFT,
    Buffer,
    Call,
    State,
)
from nightwarden.kernel.tasks import (
    FailCall,
)
from nightwarden.spec.catalog import Role

MOST_PAIRS = 1_000_000
MOST_ITERATIONS = 1_000


def advance(state: State, call: Call) -> None:
    """Go on as far as possible."""
    if call.number not in state.calls:
        return
    assert call.group is not None
    if call.group.cut:
        _end(state, call, None, mark="cut")
        return
    match call.node.plan.type.role:
        case Role.ZIP:
            _zip(state, call)
        case Role.CROSS:
            _cross(state, call)
        case Role.LOOP:
            _loop(state, call)
        case Role.NONE:
            raise AssertionError(f"{call.node.plan.id} is not run by the kernel")
        case role:
            assert_never(role)


# -- Zip --


def _zip(state: State, call: Call) -> None:
    left, right = _sides(call)
    while left.cursor in left.ahead and right.cursor in right.ahead:
        if _wait_for_room(call):
            return
        index = left.cursor
        one, other = _take_next(state, left), _take_next(state, right)
        _note(state, left, one)
        _note(state, right, other)
        _emit_pair(state, call, one, other, index)
    over, more = (left, right) if _is_over(left) else (right, left)
    if not _is_over(over):
        return
    if _is_over(more):
        _end(state, call, merge_causes(state, over, more), behind=(over, more))
    elif over.group.cause is not None:
        # One side was ended early: what the other side has beyond that is lost to that cause. As
        # long as it may have nothing beyond that, it may yet have a cause of its own.
        if more.group.emitted * more.plan.edges > more.cursor:
            release(state, more.group, more, over.group.cause)
            _end(state, call, over.group.cause)
    elif more.cursor in more.ahead or (more.group.closed and more.group.cause is None):
        names = {id(left): "left", id(right): "right"}
        number = over.group.emitted
        over.carried = state.causes.union(over.carried, over.group.carried)
        state.work.append(
            FailCall(
                call,
                f"{names[id(over)]} ended after {number} item{'s' * (number != 1)}, "
                f"{names[id(more)]} has more: nothing says what they belong to",
                "zip:unequal",
            )
        )


def _sides(call: Call) -> tuple[Buffer, Buffer]:
    assert call.buffers is not None
    return call.buffers["left"], call.buffers["right"]


def _is_over(buffer: Buffer) -> bool:
    return buffer.group.closed and buffer.cursor == buffer.group.emitted * buffer.plan.edges


def _take_next(state: State, buffer: Buffer) -> object:
    item, settlement = buffer.ahead.pop(buffer.cursor)
    exit_ = buffer.plan.exits[buffer.cursor % buffer.plan.edges]
    buffer.cursor += 1
    take(state, item, exit_, settlement)
    return settlement


def _note(state: State, buffer: Buffer, settlement: object) -> None:
    """What is taken in is behind whatever goes wrong with it later."""
    if type(settlement) is Carried:
        buffer.carried = state.causes.union(buffer.carried, settlement.causes)
    elif type(settlement) is Absent:
        carried = state.causes.interventions(settlement.causes)
        buffer.carried = state.causes.union(buffer.carried, carried)


def _emit_pair(state: State, call: Call, one: object, other: object, index: int) -> None:
    absents = [s for s in (one, other) if type(s) is Absent]
    settlements: dict[str, object]
    if absents:
        absent = absents[0] if len(absents) == 1 else merge(state, absents[0], absents[1])
        settlements = dict.fromkeys(("left", "right", "index"), absent)
    else:
        carried = call.carried
        for side in (one, other):
            if type(side) is Carried:
                carried = state.causes.union(carried, side.causes)
        settlements = {
            "left": _carrying(one, carried),
            "right": _carrying(other, carried),
            "index": _carrying(index, carried),
        }
    emit_settled(state, call, settlements, _bare(one))


def merge_causes(state: State, one: Buffer, other: Buffer) -> Absent | None:
    """Why either side was ended early, if one was."""
    causes = [b.group.cause for b in (one, other) if b.group.cause is not None]
    if len(causes) < 2:
        return causes[0] if causes else None
    return merge(state, causes[0], causes[1])


# -- Cross --


def _cross(state: State, call: Call) -> None:
    left, right = _sides(call)
    limit = _given(call, "limit", MOST_PAIRS)
    assert isinstance(limit, int)
    if not right.group.closed or right.settled != right.group.emitted * right.plan.edges:
        return
    if not right.over:
        while right.cursor in right.ahead:
            right.values.append(_take_next(state, right))
            _note(state, right, right.values[-1])
        right.carried = state.causes.union(right.carried, right.group.carried)
        right.over = LEFT
        right.indices.append(0)  # which right item the next pair takes
    group = call.group
    assert group is not None
    while left.cursor in left.ahead:
        settlement = left.ahead[left.cursor][1]
        position = right.indices[0]
        while position < len(right.values):
            if _wait_for_room(call):
                right.indices[0] = position
                return
            if group.emitted >= limit:
                detail = f"more than {limit} pairs: raise limit, or filter one side first"
                state.work.append(FailCall(call, detail, "cross:limit"))
                return
            if position == 0:
                _note(state, left, settlement)
            _emit_pair(state, call, settlement, right.values[position], group.emitted)
            position += 1
        right.indices[0] = 0
        _take_next(state, left)
    if _is_over(left):
        cause = merge_causes(state, left, right) if group.emitted else None
        _end(state, call, cause, behind=(left, right))


# -- Loop --


def _loop(state: State, call: Call) -> None:
    group = call.group
    assert group is not None
    if group.emitted == 0:
        _iterate(state, call, _given(call, "initial"))
        return
    assert call.feedback is not None
    back = call.feedback
    call.feedback = {}
    absents = [s for s in back.values() if type(s) is Absent]
    if absents:
        cause = absents[0] if len(absents) == 1 else merge(state, absents[0], absents[1])
        _end(state, call, cause, done=cause)
        return
    for settlement in back.values():
        if type(settlement) is Carried:
            call.carried = state.causes.union(call.carried, settlement.causes)
    _ask(state, call, group.emitted, _bare(back["next"]), back)


def _ask(
    state: State, call: Call, done: int, following: object, back: Mapping[str, object]
) -> None:
    """Whether there is another iteration."""
    wanted = _bare(back["condition"]) if "condition" in back else _given(call, "condition", True)
    if not isinstance(wanted, bool):
        detail = f"condition is {type(wanted).__name__}; expected true or false"
        state.work.append(FailCall(call, detail, "loop:condition"))
        return
    most = _given(call, "max_iterations", MOST_ITERATIONS)
    assert isinstance(most, int)
    if wanted and done < most:
        _iterate(state, call, following)
        return
    if wanted and call.node.feedback > 1:
        message = f"stopped at its limit of {most} iterations; the condition still held"
        state.out.append(Warn(call.node.index, call.item.lineage, message))
    _end(state, call, None, done=_carrying(following, call.carried))


def _iterate(state: State, call: Call, value: object) -> None:
    assert call.group is not None
    index = _carrying(call.group.emitted, call.carried)
    emit_settled(state, call, {"value": _carrying(value, call.carried), "index": index}, value)


# -- common --


def _wait_for_room(call: Call) -> bool:
    """Whether the window is full; then the call goes on when there is room."""
    group = call.group
    assert group is not None
    if not is_full(group):
        return False
    group.root.paused[call.number] = call
    return True


def _end(
    state: State,
    call: Call,
    cause: Absent | None,
    *,
    done: object = None,
    behind: Sequence[Buffer] = (),
    mark: str = "closed",
) -> None:
    """The node has put out its last item; `cause` says why earlier than it might have.

    That there are no more is a result too: it carries what the sides `behind` it carry.
    """
    del state.calls[call.number]
    node, group = call.node, call.group
    assert group is not None
    group.root.paused.pop(call.number, None)
    node.succeeded += 1
    for out in node.ends:
        settle(state, out.edges, call.item, done)
    release_reader(state, call, LEFT)
    carried = call.carried
    for side in behind:
        carried = state.causes.union(carried, side.group.carried)
    carry_end(state, group, carried)
    if cause is not None and cause.kind is not Kind.NOT_TAKEN:
        mark = "failed" if cause.kind is Kind.FAILED else "early"
    close_group(state, group, mark, cause)
    take(state, call.item, node.exit, True)
    if node.plan.control_root >= 0:
        named = {out.plan.base: _bare(done) for out in node.ends if type(done) is not Absent}
        answer(state, call.item, named)
    node_settled(state, node, call.item, carried=carried)


def _given(call: Call, name: str, default: object = None) -> object:
    """What a setting is: as a control event says, as it is wired, as the file says."""
    slots = call.node.plan.slots
    wired = {slot.name: value for slot, value in zip(slots, call.inputs, strict=True)}
    event = wired.get(CONTROL)
    if isinstance(event, dict) and name in event:
        return event[name]
    found = wired.get(name, USE_DEFAULT)
    if found is USE_DEFAULT:
        found = call.node.plan.spec.properties.get(name, default)
    return found


def _bare(settlement: object) -> object:
    if type(settlement) is Absent:
        return None
    return settlement.value if type(settlement) is Carried else settlement


def _carrying(settlement: object, causes: CauseSet) -> object:
    if not causes:
        return settlement
    if type(settlement) is Carried:
        return Carried(settlement.value, settlement.causes | causes)
    return Carried(settlement, causes)
