"""The mailbox of a run of this process: what is queued, handed over and taken up are its events.

    Injector, operator ─▶ Post ─▶ user_message_… events
                            └ an agent at its turn: take, and stepped when it has gone on

The record is the store: a resumed run reads its messages from its own events.

Read next: `mailbox.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from nightwarden.events import Event
from nightwarden.spec.supervisors import OPERATOR
from nightwarden.steering.mailbox import Mailbox, Message, State, event_of
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Fact, Words

TTL_S: Final = 900.0
"""So long a supervisor's word waits before it is stale."""

_STATES: Final = {f"user_message_{state}": state for state in State if state is not State.QUEUED}


class Post:
    """A `Mailbox` whose every change is an event. An `Injector`. Safe to use from any thread."""

    def __init__(
        self,
        run_id: str,
        emit: Callable[[Event], None],
        *,
        history: Iterable[Fact] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self.mailbox = Mailbox(run_id, messages_of(run_id, history))
        self._emit = emit
        self._now = now
        self._lock = threading.RLock()

    async def inject(self, words: Words) -> None:
        """Queue a supervisor's words. Raises `NotQueued`."""
        self.queue(words)

    def queue(self, words: Words) -> None:
        """Queue words; those of a supervisor get stale. Raises `NotQueued`."""
        ttl_s = None if words.author in ("", OPERATOR) else TTL_S
        self._tell(lambda box, now: box.enqueue(words, now, ttl_s=ttl_s))

    def say(self, message_id: str, text: str, node_id: str = "") -> None:
        """Queue what a person says; it waits as long as the run. Raises `NotQueued`."""
        words = Words(
            message_id=message_id,
            run_id=self.mailbox.run_id,
            node_id=node_id,
            author=OPERATOR,
            text=text,
        )
        self.queue(words)

    def refuse(self, words: Words, reason: str) -> None:
        """Put words on record that nobody will read, and why. Raises `NotQueued`."""
        self._tell(lambda box, now: box.refuse(words, now, reason))

    def take(self, node_id: str) -> list[Message]:
        """What an agent is to read at its turn; it counts as handed over."""
        self._tell(lambda box, now: box.expire(now))
        return self._tell(lambda box, now: box.take(node_id, now))

    def fold(self, node_id: str) -> list[Message]:
        """The same before a human pause: everything that waits."""
        self._tell(lambda box, now: box.expire(now))
        return self._tell(lambda box, now: box.fold(node_id, now))

    def stepped(self, node_id: str) -> None:
        """An agent has gone on: what it was handed, it has taken up."""
        self._tell(lambda box, now: box.stepped(node_id, now))

    def cancel(self, message_id: str, reason: str = "") -> None:
        """Take a message back. Raises `NoSuchMessage`, `TooLate`."""
        self._tell(lambda box, _now: [box.cancel(message_id, reason)])

    def cut_off(self, is_over: Callable[[str], bool]) -> None:
        """The run goes on after its process died: what was only handed over waits again."""
        self._tell(lambda box, _now: box.cut_off(is_over))

    def node_ended(self, node_id: str) -> None:
        """A node is over."""
        self._tell(lambda box, _now: box.node_ended(node_id))

    def run_ended(self) -> None:
        """The run is over; say so before its terminal event."""
        self._tell(lambda box, _now: box.run_ended())

    def _tell(self, change: Callable[[Mailbox, float], list[Message]]) -> list[Message]:
        """Make a change, and tell of it before anybody makes the next."""
        with self._lock:
            messages = change(self.mailbox, self._now())
            for message in messages:
                self._emit(event_of(message, _stamp))
        return messages


def messages_of(run_id: str, events: Iterable[Fact]) -> list[Message]:
    """The messages of a run, from its events."""
    found: dict[str, Message] = {}
    for seen in map(Observed, events):
        message_id = str(seen.get("message_id") or "")
        if seen.type == "user_message_queued":
            found[message_id] = Message(
                message_id=message_id,
                run_id=run_id,
                text=str(seen.get("text") or ""),
                author=str(seen.get("author") or OPERATOR),
                node_id=seen.node_id,
                queued_at=_seconds(seen.at) or 0.0,
                expires_at=_seconds(str(seen.get("expires_at") or "")),
            )
        elif seen.type in _STATES and message_id in found:
            found[message_id] = _moved(found[message_id], _STATES[seen.type])
    return list(found.values())


def _moved(message: Message, state: State) -> Message:
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return Message(**{**fields, "state": state})


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _seconds(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
