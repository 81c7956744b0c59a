"""Where events go: the record first, then whoever listens.

    publish(event) ─▶ seq, at ─▶ log (encoded at once, written by its own thread)
                              └▶ subscribers (a subscriber that raises is dropped)

A log that cannot write any more must not break whoever has something to tell: `lost` keeps its
error, `on_lost` is called once, and the run is ended from there.

A run without record and subscribers publishes nothing: `active` is False, and nobody even
makes the event.

Read next: `driver.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from nightwarden.errors import StoreError
from nightwarden.events import Event, encode

Subscriber = Callable[[Event], None]


class Log(Protocol):
    """The record of one run, as the runtime needs it; `store` satisfies it."""

    def append(self, line: bytes) -> None:
        """Add one encoded event; returns at once."""
        ...

    def barrier(self) -> None:
        """Return once everything appended so far is durable."""
        ...


def utc_now() -> str:
    """The time as events carry it: UTC, milliseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Bus:
    """Numbers events and hands them on."""

    def __init__(self, log: Log | None = None, *, stamp: Callable[[], str] = utc_now) -> None:
        self._log = log
        self._stamp = stamp
        self._subscribers: list[Subscriber] = []
        self.seq = 0
        self.active = log is not None
        self.lost: StoreError | None = None
        self.on_lost: Callable[[], None] | None = None

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every event from now on."""
        self._subscribers.append(subscriber)
        self.active = True

    @property
    def records(self) -> bool:
        """Whether values are kept, not only announced."""
        return self._log is not None

    def publish(self, event: Event) -> None:
        """Number and stamp an event, write it, tell everyone."""
        if not self.active:
            return
        self.seq += 1
        event.seq, event.at = self.seq, self._stamp()
        if self._log is not None:
            try:
                self._log.append(encode(event))
            except StoreError as error:
                self._lose(error)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception:
                # Whoever watches must not be able to change the run.
                self._subscribers.remove(subscriber)
                logging.getLogger("nightwarden").warning(
                    "a subscriber raised and is no longer told", exc_info=True
                )

    def _lose(self, error: StoreError) -> None:
        self._log, self.lost = None, error
        if self.on_lost is not None:
            self.on_lost()

    def barrier(self) -> None:
        """Return once what was published is durable."""
        if self._log is not None:
            self._log.barrier()
