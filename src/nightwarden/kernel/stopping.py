"""How a run stops before its end: nothing new starts, what waits is cancelled, the rest drains.

    stop ─▶ Halt what waits on the engine; close pending decisions as *fail*, by default
         ─▶ let plain computation finish: its results are kept
         ─▶ Ended, when no call is left

Cancel does the same but halts everything. Of several endings the stronger one wins:
cancelled, suspended, failed, completed.

Read next: `ledger.py`.
"""

from __future__ import annotations

from nightwarden.kernel.effects import Apply, Conclude, Ended, Halt, Status, Stop
from nightwarden.kernel.state import (
    Call,
    Node,
    State,
)
from nightwarden.kernel.tasks import (
    PlaceFreed,
)
from nightwarden.kernel.waiting import may_wait
from nightwarden.verdict import DecidedBy, Decision, Fail, OutcomeKind

_RANK = {s: i for i, s in enumerate(Status)}


def stop(state: State, status: Status, reason: str) -> None:
    """End the run as `status`; a stronger ending may still replace a weaker one."""
    if state.ended:
        return
    if state.status is not None and _RANK[state.status] <= _RANK[status]:
        return
    state.status, state.reason = status, reason
    state.out.append(Stop(status, reason))
    _close_decisions(state, reason)
    _drop_delays(state)
    for call in list(state.calls.values()):
        if call.node.engine:
            del state.calls[call.number]
            call.node.cancelled += 1
        elif status is Status.CANCELLED or call.parked or call.awaiting:
            halt(state, call, gently=call.parked and not call.asking)


def halt(state: State, call: Call, *, gently: bool) -> None:
    """Tell a call to end, once; one that was told gently may be told again, when that is late."""
    if call.halting and not call.gentle:
        return
    call.halting, call.gentle = True, gently
    come_back(call)
    asks_no_more(call)
    if call.parked:
        call.parked, call.asking = False, ""
        call.node.running += 1
        state.active += 1
        if call.group is not None:
            call.group.root.paused.pop(call.number, None)
    may_wait(state, call)
    state.out.append(Halt(call.number, gently=gently))


def asks_no_more(call: Call) -> None:
    """A reader is over, or told to end: it is fed nothing, and never told "end of stream"."""
    for buffer in (call.buffers or {}).values():
        buffer.wanted, buffer.reader = False, None


def come_back(call: Call) -> None:
    """A call that held no place while it was away counts as running again, perhaps to end."""
    if call.away:
        call.away = False
        call.node.running += 1


def _close_decisions(state: State, reason: str) -> None:
    for waiting in list(state.pending.values()):
        decision = Decision(
            verdict=Fail(reason=reason),
            decided_by=DecidedBy.DEFAULT,
            rationale="the run was ending before this was decided",
        )
        state.out.append(Apply(escalation=waiting.number, decision=decision))
        state.out.append(Conclude(escalation=waiting.number, kind=OutcomeKind.NEVER_RAN))
        waiting.call.node.failed += 1
        state.active -= 1
    state.pending.clear()


def _drop_delays(state: State) -> None:
    queued = [c for node in state.nodes for c in node.queue if type(c) is Call]
    for call in (*state.delayed.values(), *queued):
        state.out.append(Conclude(escalation=call.escalation, kind=OutcomeKind.RETRY_NEVER_RAN))
        call.node.failed += 1
        state.active -= 1
    state.delayed.clear()
    for call in queued:
        call.node.queue.remove(call)


def place_freed(state: State, node: Node) -> None:
    """A call no longer holds its place: another one may start."""
    if node.queue:
        state.work.append(PlaceFreed(node))


def end_if_over(state: State) -> None:
    """Report the end once: when all is settled, or when a stopping run has no call left."""
    if state.ended:
        return
    if state.status is not None:
        if not state.calls:
            state.ended = True
            state.out.append(Ended(state.status, state.reason))
    elif state.freed:
        state.ended = True
        state.status = Status.FAILED if state.failures else Status.COMPLETED
        state.out.append(Ended(state.status, state.reason))
