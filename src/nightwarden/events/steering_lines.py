"""The lines of steering events, for `render.py`.

    ◇ watchdog woke, evaluation 3: event_type=tool_error
    ◇ watchdog to implement: Same failure twice; read month_end() first.

Read next: `render.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nightwarden.events.words import count, dollars, list_of, seconds, text

Plain = Mapping[str, Any]

MARK: Final = "◇"
"""Stands before what steering does, as the shield does before a decision."""


def _who(event: Plain) -> str:
    return f"{MARK} {text(event.get('supervisor')) or 'supervisor'}"


def _armed(event: Plain) -> str:
    watched = ", ".join(map(str, list_of(event.get("watches")))) or "the whole run"
    monitors = count(len(list_of(event.get("monitors"))), "monitor")
    return f"{_who(event)} watches {watched}, {monitors}"


def _woken(event: Plain) -> str:
    why = "; ".join(map(str, list_of(event.get("triggers"))))
    missed = event.get("dropped")
    blind = f" ({count(missed, 'event')} unseen)" if missed else ""
    return f"{_who(event)} woke, evaluation {event.get('number')}: {why}{blind}"


def _deferred(event: Plain) -> str:
    wait = event.get("wait_s")
    until = _UNTIL.get(str(event.get("why")), "") if wait is None else f" for {seconds(wait)}"
    return f"{_who(event)} puts a look off{until}: {event.get('trigger')}"


_UNTIL: Final[Mapping[str, str]] = {
    "ended": " until its node starts again",
    "evaluating": " until it has thought",
}


_OUTCOMES: Final[Mapping[str, str]] = {
    "silent": "says nothing",
    "intervened": "says a word",
    "refused": "had a word, but it could not be queued",
    "failed": "gave no answer",
}


def _evaluated(event: Plain) -> str:
    outcome = _OUTCOMES.get(str(event.get("outcome")), str(event.get("outcome")))
    why = event.get("detail") or event.get("reason")
    cost = event.get("cost_micro_usd")
    spent = f", {dollars(cost)}" if cost else ""
    tally = f" ({event.get('number')} of {event.get('limit')}{spent})"
    return f"{_who(event)} {outcome}{tally}" + (f": {why}" if why else "")


def _parked(event: Plain) -> str:
    failures = count(int(event.get("failures") or 0), "failure")
    wait = seconds(event.get("retry_in_s"))
    return f"{_who(event)} is parked after {failures}, tries again in {wait}: {event.get('detail')}"


def _exhausted(event: Plain) -> str:
    why = event.get("detail") or f"{event.get('limit')} evaluations"
    return f"{_who(event)} has spent what it may: {why}"


def _done(event: Plain) -> str:
    reason = event.get("reason")
    return f"{_who(event)} is done" + (f": {reason}" if reason else "")


def _queued(event: Plain) -> str:
    to = event.get("node_id")
    return f"{MARK} {event.get('author')} to {to or 'the agent'}: {event.get('text')}"


def _became(words: str) -> Callable[[Plain], str]:
    def line(event: Plain) -> str:
        reason = event.get("reason")
        why = f": {reason}" if reason else ""
        return f"{MARK} message {event.get('message_id')} of {event.get('author')} {words}{why}"

    return line


STEERING_LINES: Final[Mapping[str, Callable[[Plain], str]]] = {
    "steering_armed": _armed,
    "steering_woken": _woken,
    "steering_deferred": _deferred,
    "steering_evaluated": _evaluated,
    "steering_parked": _parked,
    "steering_exhausted": _exhausted,
    "steering_done": _done,
    "user_message_queued": _queued,
    "user_message_delivered": _became("was delivered"),
    "user_message_consumed": _became("was consumed"),
    "user_message_cancelled": _became("was cancelled"),
    "user_message_expired": _became("expired"),
}
