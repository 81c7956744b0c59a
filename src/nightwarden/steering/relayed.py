"""Events of a supervisor in another process, on their way into the record of the run.

    relayed(event) ─▶ body ─store─▶ told_elsewhere(body) ─▶ the same event, for the run's bus

A record has one writer: whoever drives the run. Who is attached from elsewhere leaves what it has
to tell as words for that writer, so that its state is in the record like everybody's. Events of
steering only; anything else is passed over.

Read next: `attached.py`, `managed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

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

_KINDS: Final[Mapping[str, type[Event]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        SteeringArmed,
        SteeringDeferred,
        SteeringDone,
        SteeringEvaluated,
        SteeringExhausted,
        SteeringParked,
        SteeringWoken,
    )
}


def relayed(event: Event) -> dict[str, object] | None:
    """The body of a word that tells of an event; None for one that is none of steering."""
    if str(event.__struct_config__.tag) not in _KINDS:
        return None
    body = msgspec.to_builtins(event)
    return {key: value for key, value in body.items() if key not in ("seq", "at")}


def told_elsewhere(body: Mapping[str, Any]) -> Event | None:
    """The event in such a body, without number and time; None where it is none."""
    kind = _KINDS.get(str(body.get("type")))
    if kind is None:
        return None
    try:
        event = msgspec.convert(dict(body), kind)
    except msgspec.ValidationError:
        return None
    event.seq, event.at = 0, ""
    return event
