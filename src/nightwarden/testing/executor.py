"""An executor without threads: plain `def` steps run where they are, on the loop.

For tests on virtual time, where a thread would not be waited for. A step that blocks, blocks
the loop; generators and readers that are plain `def` get a thread of their own all the same and
need a real loop.

Read next: `runs.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context


class InlineExecutor:
    """Implements `runtime.executors.Executor` on the loop; other tasks get a turn before."""

    def __init__(self) -> None:
        self.calls = 0
        self.closed = False

    async def run(self, call: Callable[[], object]) -> object:
        """The result of `call`, with a copy of the caller's context variables."""
        self.calls += 1
        await asyncio.sleep(0)
        return copy_context().run(call)

    def close(self) -> None:
        """Nothing to end; noted, so that a test can ask."""
        self.closed = True
