"""The seam under an invocation: where a step's code runs.

On the loop and in threads by default; processes and clusters satisfy the same protocol.
Accounting comes back with the result; a worker that dies is a failure like any other.

Read next: `threads.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Executor(Protocol):
    """Runs blocking code somewhere else."""

    async def run(self, call: Callable[[], object]) -> object:
        """The result of `call`. Cancelling this abandons it; what it raises comes out here."""
        ...

    def close(self) -> None:
        """No more calls will come."""
        ...
