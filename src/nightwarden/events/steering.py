"""Events of steering: what a supervisor over a running agent did, and what became of its words.

    armed ─▶ woken ─▶ evaluated ─▶ user_message_queued ─▶ delivered ─▶ consumed
              └ deferred                                └▶ cancelled, expired

They are the audit, the display and the state: a supervisor that is attached again reads from
them where it stood. None of them ever wakes a supervisor.

Read next: `steering_lines.py`.
"""

from __future__ import annotations

from nightwarden.events.base import Event


class SteeringEvent(Event, kw_only=True):
    """What all of them tell: whose they are."""

    supervisor: str = ""


class SteeringArmed(SteeringEvent, tag="steering_armed"):
    """A watched node became active, or the whole run is watched. `cut` is the last event that
    is history to this supervisor; `watches` and `monitors` are what it began with."""

    cut: int = 0
    watches: tuple[str, ...] = ()
    monitors: tuple[str, ...] = ()


class SteeringWoken(SteeringEvent, tag="steering_woken"):
    """An evaluation begins. `triggers` say why, `events` by which events; `dropped` is how many
    events it never saw because it could not keep up."""

    number: int
    triggers: tuple[str, ...] = ()
    events: tuple[int, ...] = ()
    dropped: int = 0


class SteeringDeferred(SteeringEvent, tag="steering_deferred"):
    """A wake was put off. `why` is `cooldown` or `parked`, for `wait_s`; or `evaluating` or
    `ended`, until the evaluation returns or a watched node starts again."""

    trigger: str
    why: str = "cooldown"
    wait_s: float | None = None


class SteeringEvaluated(SteeringEvent, tag="steering_evaluated"):
    """An evaluation returned: `outcome` is `silent`, `intervened`, `refused` (nothing could be
    queued), or `failed` (no answer; `detail` says why, and it does not count).

    `number` counts completed ones up to `limit`. `registered` are the monitors it has asked for
    so far, `done` whether it rests now, `committed` the evidence it has judged.
    """

    outcome: str
    number: int
    limit: int
    reason: str = ""
    detail: str = ""
    message_id: str = ""
    registered: tuple[str, ...] = ()
    done: bool = False
    failures: int = 0
    committed: tuple[str, ...] = ()
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0
    duration_s: float = 0.0


class SteeringParked(SteeringEvent, tag="steering_parked"):
    """Evaluations kept failing; the next attempt is in `retry_in_s`."""

    failures: int
    detail: str = ""
    retry_in_s: float = 0.0


class SteeringExhausted(SteeringEvent, tag="steering_exhausted"):
    """Its evaluations, or its money, are spent; said once."""

    limit: int
    detail: str = ""


class SteeringDone(SteeringEvent, tag="steering_done"):
    """It declared itself done; a monitor it registered, or a fresh start, wakes it again."""

    reason: str = ""


class UserMessageEvent(Event, kw_only=True):
    """What all of them tell: which message. `node_id` is the node it is for, empty for any."""

    message_id: str
    author: str = ""


class UserMessageQueued(UserMessageEvent, tag="user_message_queued"):
    """A text waits for the agent's next turn. `expires_at` empty means it does not expire."""

    text: str = ""
    expires_at: str = ""


class UserMessageDelivered(UserMessageEvent, tag="user_message_delivered"):
    """The agent has it."""


class UserMessageConsumed(UserMessageEvent, tag="user_message_consumed"):
    """The agent has taken a step since it has it."""


class UserMessageCancelled(UserMessageEvent, tag="user_message_cancelled"):
    """Somebody took it back, or a newer one replaced it, before it was delivered."""

    reason: str = ""


class UserMessageExpired(UserMessageEvent, tag="user_message_expired"):
    """Nobody was left to read it: the node ended, the run ended, or its time had passed."""

    reason: str = ""
