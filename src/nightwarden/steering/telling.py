"""From what a supervisor does to the events that say so.

Read next: `coordinator.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from nightwarden.events import (
    Event,
    SteeringArmed,
    SteeringDeferred,
    SteeringDone,
    SteeringEvaluated,
    SteeringExhausted,
    SteeringParked,
    SteeringWoken,
)
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.ports import Answer
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import (
    Act,
    Armed,
    Deferred,
    Done,
    Exhausted,
    Parked,
    TriggerState,
    Wake,
)


def told(act: Act, trigger: Trigger, *, dropped: int = 0, reason: str = "") -> Event | None:
    """The event of an act; None for one that needs none. `reason` is what was last advised."""
    name = trigger.spec.name
    match act:
        case Armed(node):
            return SteeringArmed(
                supervisor=name,
                node_id=node,
                cut=trigger.state.cut,
                watches=trigger.spec.watches,
                monitors=tuple(trigger.watchlist.texts()),
            )
        case Wake(causes, node, number):
            return SteeringWoken(
                supervisor=name,
                node_id=node,
                number=number,
                triggers=tuple(cause.text() for cause in causes),
                events=tuple(cause.seq for cause in causes if cause.seq),
                dropped=dropped,
            )
        case Deferred(cause, wait_s, why):
            return SteeringDeferred(supervisor=name, trigger=cause.text(), why=why, wait_s=wait_s)
        case Parked(failures, detail, wait):
            return SteeringParked(
                supervisor=name, failures=failures, detail=detail, retry_in_s=wait
            )
        case Exhausted(limit, detail):
            return SteeringExhausted(supervisor=name, limit=limit, detail=detail)
        case Done():
            return SteeringDone(supervisor=name, reason=reason)
        case _:
            return None


def evaluated(
    trigger: Trigger,
    wake: Wake,
    answer: Answer,
    outcome: str,
    *,
    duration_s: float,
    detail: str = "",
    message_id: str = "",
) -> SteeringEvaluated:
    """The event of an evaluation that has returned, with where the supervisor stands now."""
    state = trigger.state
    acted = outcome in ("silent", "intervened")
    return SteeringEvaluated(
        supervisor=trigger.spec.name,
        node_id=wake.node,
        outcome=outcome,
        number=state.completed,
        limit=trigger.spec.max_evals,
        reason=answer.advice.reason if answer.advice else "",
        detail=detail,
        message_id=message_id,
        registered=tuple(trigger.watchlist.registered()),
        done=state.done,
        failures=state.failures,
        committed=tuple(c.identity for c in wake.causes if c.identity) if acted else (),
        model=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_micro_usd=answer.cost_micro_usd,
        duration_s=round(duration_s, 3),
    )


def cut_off(
    spec: SupervisorSpec, state: TriggerState, evaluator: object, why: str
) -> SteeringEvaluated | None:
    """The event of a look that was let go of: what it has cost, at worst; None for nothing."""
    untold: Callable[[], int] = getattr(evaluator, "untold_micro_usd", int)
    cost = untold()
    if not cost:
        return None
    return SteeringEvaluated(
        supervisor=spec.name,
        outcome="failed",
        number=state.completed,
        limit=spec.max_evals,
        failures=state.failures,
        registered=tuple(state.registered),
        done=state.done,
        detail=why,
        cost_micro_usd=cost,
    )
