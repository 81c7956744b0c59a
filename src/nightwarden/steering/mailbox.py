"""Messages for agents, from a supervisor or a person, and what becomes of each.

    queued ─▶ delivered ─▶ consumed
      ├─▶ cancelled   taken back, or replaced by a newer one of the same author for the same node
      └─▶ expired     the node ended, the run ended, its time passed

Nothing is lost without a record: every way is a transition, and each has its event. A person's
words go first. Supervisors share one gate a node: while a word of one of them has not been taken
up, the next waits, so that advice does not stack up.

Pure: the time is a number, ids are given. Where messages are kept is somebody else's: a store,
or files (`claude/box.py`). Read next: `ports.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from nightwarden.errors import NightwardenError
from nightwarden.events import (
    UserMessageCancelled,
    UserMessageConsumed,
    UserMessageDelivered,
    UserMessageExpired,
    UserMessageQueued,
)
from nightwarden.spec.supervisors import OPERATOR
from nightwarden.steering.ports import NotQueued, Words


class State(StrEnum):
    """Where a message stands."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    CONSUMED = "consumed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.QUEUED: frozenset({State.DELIVERED, State.CANCELLED, State.EXPIRED}),
    State.DELIVERED: frozenset({State.CONSUMED, State.QUEUED}),
    State.CONSUMED: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
}
"""Back to `queued` only where it turns out that the agent never got it."""


class NoSuchMessage(NightwardenError):
    """There is no message of that id."""


class TooLate(NightwardenError):
    """The message is past what was asked for."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message. Times are seconds; None where it has not come to that."""

    message_id: str
    run_id: str
    text: str
    author: str = OPERATOR
    node_id: str = ""
    state: State = State.QUEUED
    queued_at: float = 0.0
    delivered_at: float | None = None
    consumed_at: float | None = None
    expires_at: float | None = None
    reason: str = ""

    @property
    def by_operator(self) -> bool:
        """Whether a person wrote it."""
        return self.author == OPERATOR

    def is_for(self, node_id: str | None) -> bool:
        """Whether an agent takes it: for any node, for its own, or not knowing which it is."""
        return not self.node_id or node_id is None or self.node_id == node_id


MessageEvent = (
    UserMessageQueued
    | UserMessageDelivered
    | UserMessageConsumed
    | UserMessageCancelled
    | UserMessageExpired
)


class Mailbox:
    """The messages of one run. Each method gives the messages it changed, in order."""

    def __init__(self, run_id: str, messages: Iterable[Message] = ()) -> None:
        self.run_id = run_id
        self.closed = False
        self._by_id = {message.message_id: message for message in messages}

    def all(self) -> list[Message]:
        """Every message, in the order they came."""
        return list(self._by_id.values())

    def get(self, message_id: str) -> Message:
        """One message. Raises `NoSuchMessage`."""
        try:
            return self._by_id[message_id]
        except KeyError:
            raise NoSuchMessage(f"run {self.run_id} has no message {message_id!r}") from None

    # -- in --

    def enqueue(self, words: Words, now: float, *, ttl_s: float | None = None) -> list[Message]:
        """Queue a text; the one it replaces first. An id that is known changes nothing.

        Raises `NotQueued` for a run that is over, or without a word.
        """
        if words.message_id in self._by_id:
            return []
        if self.closed:
            raise NotQueued(f"run {self.run_id} is over: nobody is left to read this")
        if not words.text.strip():
            raise NotQueued("the message is empty; write what the agent should read")
        message = Message(
            message_id=words.message_id,
            run_id=self.run_id,
            text=words.text,
            author=words.author or OPERATOR,
            node_id=words.node_id,
            queued_at=now,
            expires_at=None if ttl_s is None else now + ttl_s,
        )
        changed = self._replaced(message)
        self._by_id[message.message_id] = message
        return [*changed, message]

    def refuse(self, words: Words, now: float, reason: str) -> list[Message]:
        """Note a text nobody will read, and why: on record twice, and never handed over."""
        changed = self.enqueue(words, now)
        if not changed:
            return []
        expired = self._to(changed[-1], State.EXPIRED, reason=reason)
        return [*changed, expired]

    def _replaced(self, newer: Message) -> list[Message]:
        if newer.by_operator:
            return []  # a person's words all count
        older = [
            m for m in self._queued() if m.author == newer.author and m.node_id == newer.node_id
        ]
        return [self._to(m, State.CANCELLED, reason="a newer one replaced it") for m in older]

    # -- out --

    def waiting(self, node_id: str | None, now: float) -> list[Message]:
        """What an agent is to read at its next turn, a person's words first, then the oldest.

        `node_id` None means that whoever asks does not know its node.
        """
        found = [m for m in self._queued() if m.is_for(node_id) and not _is_late(m, now)]
        operators = [m for m in found if m.by_operator]
        others = [m for m in found if not m.by_operator and self._gate_is_open(m)]
        return sorted(operators, key=_age) + sorted(others, key=_age)[:1]

    def _gate_is_open(self, message: Message) -> bool:
        return not any(
            m.state is State.DELIVERED and not m.by_operator and _share_a_gate(m, message)
            for m in self._by_id.values()
        )

    def deliver(self, messages: Iterable[Message], now: float) -> list[Message]:
        """The agent has these now. One that somebody else delivered before is left out."""
        return [
            self._to(self._by_id[m.message_id], State.DELIVERED, delivered_at=now)
            for m in messages
            if self._by_id[m.message_id].state is State.QUEUED
        ]

    def take(self, node_id: str | None, now: float) -> list[Message]:
        """What waits for an agent, delivered: for whoever hands it over in the same breath."""
        return self.deliver(self.waiting(node_id, now), now)

    def fold(self, node_id: str | None, now: float) -> list[Message]:
        """The same before a human pause: everything that waits goes into the question."""
        found = [m for m in self._queued() if m.is_for(node_id) and not _is_late(m, now)]
        first = sorted(found, key=lambda m: (not m.by_operator, m.queued_at))
        return self.deliver(first, now)

    def stepped(self, node_id: str, now: float) -> list[Message]:
        """An agent has taken a step: what it had been given, it has taken up."""
        return [
            self._to(m, State.CONSUMED, consumed_at=now)
            for m in self.all()
            if m.state is State.DELIVERED and m.is_for(node_id)
        ]

    def undelivered(self, message_id: str) -> Message:
        """It turned out that the agent never got it. Raises `TooLate` once it was taken up."""
        message = self.get(message_id)
        if State.QUEUED not in TRANSITIONS[message.state]:
            raise TooLate(f"message {message_id} is {message.state}")
        return self._to(message, State.QUEUED, delivered_at=None)

    def cut_off(self, is_over: Callable[[str], bool]) -> list[Message]:
        """Agents were cut off: what they were handed and had not taken up waits for them again.

        `is_over` says of a node that nobody there will ask any more.
        """
        return [
            self.undelivered(m.message_id)
            for m in self.all()
            if m.state is State.DELIVERED and m.node_id and not is_over(m.node_id)
        ]

    def cancel(self, message_id: str, reason: str = "") -> Message:
        """Take a message back. Raises `NoSuchMessage`, or `TooLate` once it was delivered."""
        message = self.get(message_id)
        if message.state is not State.QUEUED:
            raise TooLate(f"message {message_id} is {message.state} and cannot be taken back")
        return self._to(message, State.CANCELLED, reason=reason)

    # -- ends --

    def expire(self, now: float) -> list[Message]:
        """What waited too long."""
        late = [m for m in self._queued() if _is_late(m, now)]
        return [self._to(m, State.EXPIRED, reason="its time passed") for m in late]

    def node_ended(self, node_id: str) -> list[Message]:
        """A node is over: what was for it alone has nobody to read it."""
        mine = [m for m in self._queued() if m.node_id and m.node_id == node_id]
        return [self._to(m, State.EXPIRED, reason="the node ended") for m in mine]

    def run_ended(self) -> list[Message]:
        """The run is over, and nothing more is taken."""
        self.closed = True
        return [self._to(m, State.EXPIRED, reason="the run ended") for m in self._queued()]

    # -- inside --

    def _queued(self) -> list[Message]:
        return [m for m in self._by_id.values() if m.state is State.QUEUED]

    def _to(self, message: Message, state: State, **fields: object) -> Message:
        assert state in TRANSITIONS[message.state], f"{message.state} does not lead to {state}"
        changed = msgspec.structs.replace(message, state=state, **fields)
        self._by_id[message.message_id] = changed
        return changed


def _age(message: Message) -> float:
    return message.queued_at


def _is_late(message: Message, now: float) -> bool:
    return message.expires_at is not None and now >= message.expires_at


def _share_a_gate(one: Message, other: Message) -> bool:
    return not one.node_id or not other.node_id or one.node_id == other.node_id


def event_of(message: Message, stamp: Callable[[float], str]) -> MessageEvent:
    """The event of the state a message has come to. `stamp` writes a time as events carry it."""
    made = _EVENTS[message.state](
        message_id=message.message_id, author=message.author, node_id=message.node_id
    )
    match made:
        case UserMessageQueued():
            made.text = message.text
            made.expires_at = "" if message.expires_at is None else stamp(message.expires_at)
        case UserMessageCancelled() | UserMessageExpired():
            made.reason = message.reason
        case _:
            pass
    return made


_EVENTS: Final[Mapping[State, type[MessageEvent]]] = {
    State.QUEUED: UserMessageQueued,
    State.DELIVERED: UserMessageDelivered,
    State.CONSUMED: UserMessageConsumed,
    State.CANCELLED: UserMessageCancelled,
    State.EXPIRED: UserMessageExpired,
}
