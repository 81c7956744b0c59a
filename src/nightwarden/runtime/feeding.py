"""Run inputs that stay open: their items come while the run goes on.

    Session.push(name, value) ─▶ checked ─▶ feed ─▶ the fan-out of that input ─▶ items
                                         └▶ on record, masked
    Session.close(name)       ─▶ the fan-out ends

A push that nobody would take is refused: after the end of the run, and where all who read from
the input have enough.

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container, Iterable, Mapping
from typing import Final

from nightwarden.errors import RunError
from nightwarden.events import InputClosed, InputPushed
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.bus import Bus
from nightwarden.spec.checker import Checker
from nightwarden.spec.storing import plain_form

ROOM: Final = 1024
"""How many pushed items may wait before whoever pushes has to."""


class OpenInputs:
    """The open inputs of one run, by name. `elements` are the checks of one item of each."""

    def __init__(
        self,
        feeds: Mapping[str, InputFeed],
        elements: Mapping[str, Checker],
        registry: SecretRegistry,
    ) -> None:
        self._feeds = feeds
        self._elements = elements
        self._registry = registry
        self._bus: Bus | None = None

    def begin(self, bus: Bus, *, closed_before: Container[str]) -> None:
        """The run's record has begun; inputs in `closed_before` are closed there already."""
        self._bus = bus
        for name, feed in self._feeds.items():
            if feed.closed and name not in closed_before:
                bus.publish(InputClosed(name=name))

    async def push(self, name: str, value: object) -> None:
        """Add an item, on record before this returns. Raises `RunError` if that cannot be."""
        feed = self.feed(name)
        problems = self._elements[name].problems(value)
        if problems:
            raise RunError(f"input {name}: {problems[0]}")
        if self._bus is None:
            raise RunError(f"input {name}: the run has not started; give the items as its inputs")
        await feed.push(value)
        if self._bus.records:
            self._bus.publish(self._pushed(name, value))
            await self._bus.durable()

    def end(self) -> None:
        """The run is over: whoever waits for room is told so."""
        for feed in self._feeds.values():
            feed.leave("the run is over")

    def close(self, name: str) -> None:
        """Nothing more will come. More than once changes nothing."""
        feed = self.feed(name)
        if self._bus is not None and not feed.closed:
            self._bus.publish(InputClosed(name=name))
        feed.close()

    def _pushed(self, name: str, value: object) -> InputPushed:
        masked, changed = self._registry.mask_value(value)
        plain, whole = plain_form(self._elements[name], masked)
        return InputPushed(inputs={name: plain}, sealed=changed or not whole)

    def feed(self, name: str) -> InputFeed:
        """An open input. Raises `RunError` for any other."""
        feed = self._feeds.get(name)
        if feed is None:
            known = ", ".join(self._feeds) or "none"
            raise RunError(f"input {name} is not open; open inputs: {known} (open_inputs=…)")
        return feed


class InputFeed:
    """What was pushed to one input and has not been taken. For the run's own loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._items: deque[object] = deque()
        self._closed = False
        self._left = ""
        self._taker: asyncio.Future[None] | None = None
        self._pushers: deque[asyncio.Future[None]] = deque()

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    @property
    def ready(self) -> bool:
        """Whether there is anything to take, or nothing will come."""
        return bool(self._items) or self._closed

    def restore(self, values: Iterable[object]) -> None:
        """Hand in again what was pushed before the run was resumed."""
        self._items.extend(values)

    async def push(self, value: object) -> None:
        """Hand an item in; waits while there is no room.

        Raises `RunError` once it is closed, or nobody will take it.
        """
        while len(self._items) >= ROOM and not self._closed and not self._left:
            pusher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._pushers.append(pusher)
            await pusher
        if self._closed:
            raise RunError(f"input {self.name} is closed: nothing more can be pushed to it")
        if self._left:
            raise RunError(f"input {self.name}: nothing more can be pushed: {self._left}")
        self._items.append(value)
        _set(self._taker)

    def close(self) -> None:
        """Nothing more will come; what was pushed is still taken."""
        self._closed = True
        _set(self._taker)
        self._release()

    def leave(self, why: str) -> None:
        """Nobody takes anything any more; what was pushed stays where it is."""
        self._left = self._left or why
        _set(self._taker)
        self._release()

    def _release(self) -> None:
        while self._pushers:
            _set(self._pushers.popleft())

    def take(self) -> list[object]:
        """Everything that is there, at once; empty if nothing is."""
        items = list(self._items)
        self._items.clear()
        while self._pushers and len(self._items) < ROOM:
            _set(self._pushers.popleft())
        return items

    async def wait(self) -> None:
        """Return when something is there, or nothing more will come."""
        if self.ready:
            return
        self._taker = asyncio.get_running_loop().create_future()
        try:
            await self._taker
        finally:
            self._taker = None


def _set(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
