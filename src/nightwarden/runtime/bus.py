"""Where events go: the record first, then whoever listens.

    publish(event) ─▶ seq, at ─▶ log (encoded at once, written by its own thread)
                              │   └▶ values over 16 kB are kept apart, and named by digest
                              └▶ subscribers (a subscriber that raises is dropped)

A log that cannot write any more must not break whoever has something to tell: `lost` keeps its
error, `on_lost` is called once, and the run is ended from there.

A run without record and subscribers publishes nothing: `active` is False, and nobody even
makes the event.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import time_ns
from typing import Final, Protocol

import msgspec

from nightwarden.errors import StoreError
from nightwarden.events import (
    Event,
    InputPushed,
    InvocationSucceeded,
    ItemEmitted,
    RunStarted,
    encode,
)
from nightwarden.events.plain import plain

Subscriber = Callable[[Event], None]

LARGE: Final = 16_000
"""Bytes of an encoded event; where it has more, its largest values are kept apart."""


class Log(Protocol):
    """The record of one run, as the runtime needs it; `store` satisfies it."""

    last_seq: int

    def append(self, line: bytes) -> None:
        """Add one encoded event; returns at once."""
        ...

    def keep(self, data: bytes, source: Path | None = None) -> str:
        """Keep bytes, durable no later than the events after it; gives their digest.

        `source` is a file that holds just these.
        """
        ...

    def barrier(self) -> None:
        """Return once everything appended so far is durable."""
        ...

    def when_durable(self, call: Callable[[StoreError | None], None]) -> None:
        """As `barrier`, without waiting: `call` comes from another thread."""
        ...


class Blobs(Protocol):
    """Where large values are kept; `store` satisfies it."""

    def get(self, digest: str) -> bytes:
        """What was kept. Raises `StoreError`."""
        ...

    def give(self, digest: str, path: Path) -> bool:
        """Make `path` another name of what was kept; False where that cannot be."""
        ...


def utc_now() -> str:
    """The time as events carry it: UTC, milliseconds."""
    global _moment, _stamp  # noqa: PLW0603  (a fast run has many events in one millisecond)
    moment = time_ns() // 1_000_000
    if moment != _moment:
        at = datetime.fromtimestamp(moment / 1000, UTC)
        _stamp = f"{at:%Y-%m-%dT%H:%M:%S}.{moment % 1000:03d}Z"
        _moment = moment
    return _stamp


_moment, _stamp = -1, ""


class Bus:
    """Numbers events and hands them on."""

    def __init__(self, log: Log | None = None, *, stamp: Callable[[], str] = utc_now) -> None:
        self._log = log
        self._stamp = stamp
        self._subscribers: list[Subscriber] = []
        self.seq = 0 if log is None else log.last_seq
        self.active = log is not None
        self.lost: StoreError | None = None
        self.on_lost: Callable[[], None] | None = None

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every event from now on."""
        self._subscribers.append(subscriber)
        self.active = True

    @property
    def records(self) -> bool:
        """Whether values are kept, not only announced; also when they no longer can be."""
        return self._log is not None or self.lost is not None

    def publish(self, event: Event) -> None:
        """Number and stamp an event, write it, tell everyone."""
        if not self.active:
            return
        self.seq += 1
        event.seq, event.at = self.seq, self._stamp()
        if self._log is not None:
            try:
                line = encode(event)
                if len(line) > LARGE:
                    line = encode(_apart(event, self._log.keep))
                self._log.append(line)
            except StoreError as error:
                self._lose(error)
        if self._subscribers:
            self._tell(event)

    def _tell(self, event: Event) -> None:
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

    def keep(self, data: bytes, source: Path) -> None:
        """Keep what a file holds; from any thread. What breaks the record shows later."""
        log = self._log
        if log is not None:
            with contextlib.suppress(StoreError):
                log.keep(data, source)

    async def durable(self) -> None:
        """Return once what was published would outlive the process.

        Raises `StoreError` when it never will; then the run ends, too.
        """
        log = self._log
        if log is None:
            if self.lost is not None:
                raise self.lost
            return
        loop = asyncio.get_running_loop()
        if not getattr(loop, "waits", True):  # time is virtual: nothing outside is waited for
            log.barrier()
            return
        done = loop.create_future()

        def settle(error: StoreError | None) -> None:
            if error is not None and self._log is not None:
                self._lose(error)
            if not done.done():
                done.set_result(None)

        def tell(error: StoreError | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, error)

        log.when_durable(tell)
        await done
        if self.lost is not None:
            raise self.lost


def _apart(event: Event, keep: Callable[[bytes], str]) -> Event:
    """The event with its largest values kept elsewhere, until what is left is small."""
    field = _VALUES.get(type(event))
    if field is None:
        return event
    values: dict[str, object] = dict(getattr(event, field))
    sizes = {name: _encoded(value) for name, value in values.items()}
    blobs: dict[str, str] = {}
    left = sum(map(len, sizes.values()))
    for name in sorted(values, key=lambda n: -len(sizes[n])):
        if left <= LARGE // 2:
            break
        blobs[name] = keep(sizes[name])
        left -= len(sizes[name])
        del values[name]
    return msgspec.structs.replace(event, **{field: values, "blobs": blobs})


_VALUES: Final[Mapping[type, str]] = {
    InvocationSucceeded: "outputs",
    ItemEmitted: "outputs",
    RunStarted: "inputs",
    InputPushed: "inputs",
}


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except Exception:  # sealed values only: they are shown, and never read back
        return msgspec.json.encode(plain(value))
