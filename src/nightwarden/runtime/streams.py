"""The stream a reading step iterates over: asks the kernel for the next item.

    ask ─▶ the item asked for, and what was there besides
             └─▶ used ─▶ told to the kernel before anything else is

Read next: `untold.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

from nightwarden.nodes.io import Loss, Stream

_END = object()

LOOK_AHEAD: Final = 64
"""How many items a step is shown at once, besides the one it asked for."""


class StepStream(Stream[object]):
    """Implements `nodes.Stream` over the kernel's requests.

    `ask` tells the kernel that the step wants the next item; `losses_so_far` reads what was
    lost among those before it; `parked` and `unparked` enclose the time it waits. `using` is
    called before the first item that nobody asked for is used, and again once the kernel has been
    told how many were: it says whether the step may go on with them. Plain `def` steps iterate
    with `for`, from their own thread. Several tasks of a step may share a stream: each item goes
    to one of them, and they wait in the order in which they asked.

    `used` counts the items that nobody asked for, and that the kernel has not been told of.
    """

    def __init__(
        self,
        ask: Callable[[], None],
        using: Callable[[], bool],
        losses_so_far: Callable[[], Sequence[Loss]],
        *,
        parked: Callable[[], None],
        unparked: Callable[[], None],
    ) -> None:
        self.used = 0
        self._told = 0
        self._ask = ask
        self._using = using
        self._parked = parked
        self._unparked = unparked
        self._losses = losses_so_far
        self._box: deque[tuple[int, object]] = deque()
        self._shown: deque[tuple[int, object]] = deque()
        self._turn = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None
        self._asked = self._over = False
        self._error: Exception | None = None
        self._loop = asyncio.get_running_loop()

    # -- the driver's side --

    def feed(self, index: int, value: object, shown: Sequence[tuple[int, object]]) -> None:
        """The item that was asked for, and what comes right after it."""
        self._told += 1
        self._asked = False
        self._box.append((index, value))
        self._shown.extend(shown)
        self._wake()

    def end(self) -> None:
        """There is no further item."""
        self._told += 1
        self._over = True
        self._wake()

    def break_off(self, error: Exception) -> None:
        """The next item cannot be had: the step is told so where it asks."""
        self._told += 1
        self._error = error
        self._wake()

    @property
    def read(self) -> int:
        """What was asked for, the end included, and what was used besides."""
        return self._told + self.used

    def told(self) -> int:
        """How many items were used that nobody asked for; the kernel is told of them now."""
        used, self.used = self.used, 0
        self._told += used
        return used

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- the step's side --

    @property
    def losses(self) -> Sequence[Loss]:
        """What has been lost among the items read so far."""
        return self._losses()

    async def __anext__(self) -> object:
        shown = self._shown
        if shown and not self._box and (self.used or self._using()):
            self.used += 1
            return shown.popleft()[1]
        found = await self._next()
        if found is _END:
            raise StopAsyncIteration
        return found[1]  # type: ignore[index]

    def indexed(self) -> AsyncIterator[tuple[int, object]]:
        """The items with their 0-based numbers."""
        return self._indexed()

    async def _indexed(self) -> AsyncIterator[tuple[int, object]]:
        while (found := await self._next()) is not _END:
            yield found  # type: ignore[misc]

    def __iter__(self) -> Iterator[object]:
        while True:
            found = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
            if found is _END:
                return
            yield found[1]  # type: ignore[index]

    async def _next(self) -> object:
        if self._at_hand():
            return self._shown.popleft()
        async with self._turn:
            if self._at_hand():  # shown to who had the turn before
                return self._shown.popleft()
            if not self._box and not self._over:
                await self._fetch()
            if self._error is not None:
                raise self._error
            return self._box.popleft() if self._box else _END

    def _at_hand(self) -> bool:
        """Whether the next item is one that nobody asked for; then it is used."""
        if self._shown and not self._box and (self.used or self._using()):
            self.used += 1
            return True
        return False

    async def _fetch(self) -> None:
        """Ask for the next item, unless somebody did who has given up since, and wait for it."""
        self._shown.clear()
        if not self._asked:
            self._asked = True
            self._ask()
        if self._box or self._over or self._error is not None:
            return
        self._waiter = self._loop.create_future()
        self._parked()
        try:
            await self._waiter
        finally:
            self._unparked()
            self._waiter = None
