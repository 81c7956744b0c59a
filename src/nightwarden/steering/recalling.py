"""Where a supervisor stood, read from what it said: a record is all the state there is.

A supervisor that is attached again, or resumed with its run, gets its own events as history and
knows how often it has looked, what it registered, whether it was done, when its cooldown ends,
what it had put off, and which evidence it has judged.

Read next: `trigger.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nightwarden.events.words import list_of
from nightwarden.steering.activity import TERMINAL
from nightwarden.steering.lookout import kind_of
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Fact
from nightwarden.steering.wakes import Cause, TriggerState

_MOST_JUDGED = 64


def lasting(history: Iterable[Fact]) -> Iterator[Fact]:
    """History without the ends after which the run went on."""
    end: Fact | None = None
    for fact in history:
        end = fact if kind_of(fact) in TERMINAL else None
        if end is None:
            yield fact
    if end is not None:
        yield end


def recall(state: TriggerState, seen: Observed, supervisor: str, at: float) -> None:
    """Take over one event of history, if it is one of this supervisor. `at` is when it was."""
    if not seen.type.startswith("steering_") or seen.get("supervisor") != supervisor:
        return
    match seen.type:
        case "steering_evaluated":
            _evaluated(state, seen, at)
        case "steering_woken":
            _woken(state, seen)
        case "steering_deferred":
            state.pending.append(Cause(kind="seeded", monitor=str(seen.get("trigger"))))
        case "steering_parked":
            state.parkings += 1
            state.parked_until = at + _number(seen.get("retry_in_s"))
        case "steering_exhausted":
            state.exhausted_said = True
        case _:
            pass


def _woken(state: TriggerState, seen: Observed) -> None:
    """What it began to look at: still to be looked at, unless its return follows."""
    triggers = map(str, list_of(seen.get("triggers")))
    state.evaluating = [Cause(kind="seeded", monitor=trigger) for trigger in triggers]
    state.pending = []


def _evaluated(state: TriggerState, seen: Observed, at: float) -> None:
    state.returned_at = at
    looked, state.evaluating = state.evaluating, []
    state.failures = int(_number(seen.get("failures")))
    state.spent_micro_usd += int(_number(seen.get("cost_micro_usd")))
    if seen.get("outcome") == "failed":
        state.pending = [*looked, *state.pending]
        return
    state.completed = int(_number(seen.get("number")))
    state.registered = [str(text) for text in list_of(seen.get("registered"))]
    state.done = bool(seen.get("done"))
    state.parkings, state.parked_until = 0, None
    committed = (str(identity) for identity in list_of(seen.get("committed")))
    state.judged = [*state.judged, *committed][-_MOST_JUDGED:]


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
