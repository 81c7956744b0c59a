"""Running a coroutine on a loop of its own, without waiting for tasks that will not end.

Read next: `session.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from nightwarden.errors import RunError

T = TypeVar("T")


def run_on_own_loop(
    main: Coroutine[Any, Any, T],
    *,
    left_behind: Callable[[], frozenset[asyncio.Task[object]]] = frozenset,
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> T:
    """Like `asyncio.run`, but a task deaf to cancellation does not hold up the end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        main.close()
        raise RunError("an event loop is running here: await `arun` instead of calling `run`")
    loop = make_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        _end_loop(loop, left_behind())


def _end_loop(
    loop: asyncio.AbstractEventLoop, left_behind: frozenset[asyncio.Task[object]]
) -> None:
    # What was cancelled before the run ended and still goes on has had its time.
    rest = [t for t in asyncio.all_tasks(loop) if t not in left_behind and not t.cancelling()]
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest, timeout=2.0))
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()
