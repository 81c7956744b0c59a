"""Running a coroutine on a loop of its own, without waiting for tasks that will not end.

Read next: `session.py`.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from nightwarden.errors import RunError

T = TypeVar("T")


def run_on_own_loop(
    main: Coroutine[Any, Any, T],
    *,
    left_behind: Callable[[], frozenset[asyncio.Task[object]]] = frozenset,
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> T:
    """Like `asyncio.run`, but a task deaf to cancellation does not hold up the end.

    Ctrl-C cancels `main`, wherever it finds the process, and raises `KeyboardInterrupt` once that
    has ended; a second one raises it at once. Left alone, it would be raised in whatever runs just
    then: in a step, say, whose failure it would be.
    """
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
        return _run(loop, loop.create_task(main))
    finally:
        _end_loop(loop, left_behind())


def _run(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    told = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if told:
            signal.default_int_handler(number, frame)
        told = True
        loop.call_soon_threadsafe(main.cancel)

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        return loop.run_until_complete(main)
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise
    finally:
        if ours and signal.getsignal(signal.SIGINT) is handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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
