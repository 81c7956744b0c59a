"""Ctrl-C: once stops the run cleanly, twice ends the process at once. SIGTERM is like one Ctrl-C.

So is SIGHUP, which says that the terminal was closed, unless `nohup` has it ignored. The handlers
are the process's, not the event loop's: they work while a step holds up the loop. What they print
goes past the streams' buffers, which the signal may have interrupted.

Read next: `running.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from nightwarden.cli.failing import CANCELLED
from nightwarden.cli.output import Output


@contextlib.contextmanager
def interruptible(
    stop: Callable[[str], None], out: Output, *, doing: str = "stopping"
) -> Iterator[None]:
    """Call `stop` with the reason at the first signal; to be entered on the run's loop.

    `doing` says what follows of it.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def ask(name: str, line: str, told: bool) -> None:
        if not told:
            out.note(line)
        stop(name)

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal asked
        if asked:
            # A second SIGTERM may be the same one: `timeout` sends it to the group as well.
            if number == signal.SIGINT:
                end_at_once()
            return
        asked = True
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        line = f"{name}: {doing}… press Ctrl-C again to end at once"
        loop.call_soon_threadsafe(ask, name, line, out.note_at_once(line))

    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once() -> None:
    """End the process now, whatever runs; what is printed already is not lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(CANCELLED)
