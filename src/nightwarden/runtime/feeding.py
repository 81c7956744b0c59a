"""Run inputs that stay open: their items come while the run goes on.

    Session.push(name, value) ─▶ Feed ─▶ the fan-out of that input ─▶ items
    Session.close(name)       ─▶ the fan-out ends

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from nightwarden.errors import RunError

ROOM: Final = 1024
"""How many pushed items may wait before whoever pushes has to."""


class InputFeed:
    """What was pushed to one input and has not been taken. For the run's own loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._items: deque[object] = deque()
        self._closed = False
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
        """Hand an item in; waits while there is no room. Raises `RunError` once it is closed."""
        while len(self._items) >= ROOM and not self._closed:
            pusher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._pushers.append(pusher)
            await pusher
        if self._closed:
            raise RunError(f"input {self.name} is closed: nothing more can be pushed to it")
        self._items.append(value)
        _set(self._taker)

    def close(self) -> None:
        """Nothing more will come; what was pushed is still taken."""
        self._closed = True
        _set(self._taker)
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
