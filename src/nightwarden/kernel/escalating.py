"""A failure becomes an escalation, a decision becomes settlements.

    Failed ─▶ Escalate ─▶ … ─▶ Decided ─▶ Apply ─▶ retry      Delay, then the next attempt
                                                   substitute  values that carry the repair
                                                   skip        Absent(lost)
                                                   end_stream  Closed(n, cause)
                                                   fail        the run stops, or Absent(failed)

A verdict outside the allowed set becomes *fail*, whoever gave it. Nothing is settled
before a decision is applied.

Read next: `applying.py`, `stopping.py`.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from nightwarden.kernel.allowed import (
    Shape,
    allowed_actions,
    repair_refusal,
    retry_delay_s,
    retry_refusal,
    shape_of,
)
from nightwarden.kernel.applying import (
    absence,
    absent_outputs_of,
    end_stream,
    settle_failed,
    substitute,
)
from nightwarden.kernel.causes import Kind
from nightwarden.kernel.effects import Apply, Conclude, Delay, Escalate, Status
from nightwarden.kernel.reading import carried_by
from nightwarden.kernel.state import (
    Call,
    Escalated,
    State,
)
from nightwarden.kernel.stimuli import Decided, DelayPassed, Failed
from nightwarden.kernel.stopping import asks_no_more, place_freed, stop
from nightwarden.kernel.tasks import (
    PlaceFreed,
)
from nightwarden.kernel.waiting import waits_no_more
from nightwarden.verdict import (
    Action,
    DecidedBy,
    Decision,
    EndStream,
    Fail,
    OutcomeKind,
    Retry,
    Skip,
    Substitute,
    action_of,
)

_UNCHOSEN = (DecidedBy.DEFAULT, DecidedBy.BOUNDS, DecidedBy.KERNEL)


def failed(state: State, stimulus: Failed, *, detail: str = "", code: str = "") -> None:
    """A step raised: ask, or only write it down when the run is already stopping.

    `detail` and `code` say what went wrong in a node the kernel itself runs.
    """
    call = state.calls.pop(stimulus.call, None)
    if call is None:
        return
    waits_no_more(state, call)
    _leave(state, call)
    if call.escalation:
        _conclude(state, call.escalation, OutcomeKind.RETRIED_FAILED_AGAIN)
    if state.status is not None:
        call.node.failed += 1
        state.active -= 1
        return
    emitted = call.group.emitted if call.group is not None else 0
    shape = shape_of(call.node.plan, stimulus, emitted)
    refused, exhausted = _retry_state(state, call, stimulus)
    allowed = allowed_actions(
        shape,
        retry=not refused,
        has_candidate=stimulus.has_candidate,
        checkable=stimulus.checkable,
    )
    number = _number(state, call)
    state.pending[number] = Escalated(
        number,
        call,
        allowed,
        exhausted=exhausted and shape in _RETRYABLE,
        retry_after_s=stimulus.retry_after_s,
        refused={
            Action.RETRY: refused if shape in _RETRYABLE else "",
            Action.SUBSTITUTE: repair_refusal(stimulus) if shape is Shape.PLAIN else "",
        },
    )
    state.out.append(
        Escalate(
            number=number,
            call=stimulus.call,
            node=call.node.index,
            lineage=call.item.lineage,
            attempt=call.attempt,
            retries_left=max(0, state.settings.max_retries - call.retried),
            allowed=allowed,
            emitted=emitted,
            caused_by=tuple(sorted({state.causes[n].escalation for n in carried_by(state, call)})),
            retry_refused=refused,
            detail=detail,
            signature=code,
        )
    )


def kernel_failed(state: State, call: Call, detail: str, code: str) -> None:
    """A node the kernel itself runs has failed; it can only be given up or ended early."""
    failed(state, Failed(call=call.number), detail=detail, code=code)


def _number(state: State, call: Call) -> int:
    """The number this escalation had before the run was resumed, else the next."""
    known = state.numbered.get((call.node.index, call.item.lineage, call.attempt))
    if known is not None:
        return known
    state.escalated += 1
    return state.escalated


_RETRYABLE = (Shape.PLAIN, Shape.FANOUT_SILENT)


def _retry_state(state: State, call: Call, stimulus: Failed) -> tuple[str, bool]:
    """Why retry is not offered (empty if it is), and whether only its budget stands in the way."""
    refused = retry_refusal(call.node.plan, stimulus)
    if refused:
        return refused, False
    longest = state.settings.max_retry_delay_s
    if stimulus.retry_after_s is not None and stimulus.retry_after_s > longest:
        return f"it asks to wait {stimulus.retry_after_s:g} s, more than {longest:g} s", False
    if call.retried >= state.settings.max_retries:
        return f"its {state.settings.max_retries} retries are used up", True
    return "", False


def _leave(state: State, call: Call) -> None:
    """A failed call holds no place while it waits for its decision, and is fed nothing."""
    asks_no_more(call)
    if call.parked:
        call.parked, call.asking = False, ""
        state.active += 1
        if call.group is not None:
            call.group.root.paused.pop(call.number, None)
    else:
        call.node.running -= 1
    place_freed(state, call.node)


def decided(state: State, stimulus: Decided) -> None:
    """Apply a decision, after checking it against what is allowed."""
    waiting = state.pending.pop(stimulus.escalation, None)
    if waiting is None:
        return
    decision = _enforced(waiting, stimulus)
    call = waiting.call
    match decision.verdict:
        case Retry():
            _retry(state, waiting, decision, stimulus.jitter)
            return
        case Substitute():
            _record(state, waiting, decision, OutcomeKind.REPAIR_ACCEPTED)
            substitute(state, call, waiting.number, stimulus.outputs)
        case Skip():
            call.node.skipped += 1
            _record(state, waiting, decision, OutcomeKind.SKIPPED)
            absent_outputs_of(state, call, absence(state, call, Kind.LOST, waiting.number))
        case EndStream():
            call.node.ended_early += 1
            kept = call.group.emitted if call.group is not None else None
            _record(state, waiting, decision, OutcomeKind.ENDED_EARLY, kept=kept)
            end_stream(state, call, absence(state, call, Kind.LOST, waiting.number))
        case Fail():
            _fail(state, waiting, decision)
        case _:
            assert_never(decision.verdict)
    state.active -= 1


def _enforced(waiting: Escalated, stimulus: Decided) -> Decision:
    """The decision, or *fail* in its place, credited to whoever stands in the way."""
    decision = stimulus.decision
    action = action_of(decision.verdict)
    if action not in waiting.allowed:
        spent = action is Action.RETRY and waiting.exhausted
        by = DecidedBy.BOUNDS if spent else DecidedBy.KERNEL
        offered = ", ".join(each.word for each in waiting.allowed)
        why = waiting.refused.get(action) or f"only {offered} may be answered here"
        return _refused(decision, by, f"{action.word} was refused: {why}")
    if stimulus.problems:
        why = f"the repair was refused: {stimulus.problems[0]}"
        return _refused(decision, DecidedBy.KERNEL, why)
    return decision


def _refused(decision: Decision, by: DecidedBy, why: str) -> Decision:
    return msgspec.structs.replace(
        decision, verdict=Fail(reason=why), decided_by=by, asked_for=decision.verdict
    )


def _record(
    state: State,
    waiting: Escalated,
    decision: Decision,
    kind: OutcomeKind,
    *,
    kept: int | None = None,
) -> None:
    state.out.append(Apply(escalation=waiting.number, decision=decision))
    _conclude(state, waiting.number, kind, kept=kept)


def _conclude(state: State, escalation: int, kind: OutcomeKind, *, kept: int | None = None) -> None:
    state.out.append(Conclude(escalation=escalation, kind=kind, kept=kept))


def _retry(state: State, waiting: Escalated, decision: Decision, jitter: float) -> None:
    call = waiting.call
    call.retried += 1
    call.node.retries_decided += 1
    delay = retry_delay_s(call.retried, waiting.retry_after_s, jitter)
    applied = msgspec.structs.replace(decision, delay_s=delay)
    state.out.append(Apply(escalation=waiting.number, decision=applied))
    call.escalation = waiting.number
    call.attempt += 1
    state.delayed[call.number] = call
    state.out.append(Delay(call.number, delay))


def delay_passed(state: State, stimulus: DelayPassed) -> None:
    """The next attempt may start, as soon as its node has a free place."""
    call = state.delayed.pop(stimulus.call, None)
    if call is not None:
        call.node.queue.appendleft(call)
        state.work.append(PlaceFreed(call.node))


def _fail(state: State, waiting: Escalated, decision: Decision) -> None:
    call = waiting.call
    call.node.failed += 1
    _record(state, waiting, decision, OutcomeKind.STOPPED)
    if state.settings.keep_going and decision.decided_by in _UNCHOSEN:
        state.failures = True
        settle_failed(state, call, absence(state, call, Kind.FAILED, waiting.number))
        return
    assert isinstance(decision.verdict, Fail)
    stop(state, Status.FAILED, decision.verdict.reason)
