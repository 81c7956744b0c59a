"""The seam under an invocation: where a step's code runs.

On the loop and in threads by default: code that can be called where it stands. A process or a
cluster gets a step by name, with its inputs. Accounting comes back, whatever becomes of the step;
a worker that dies is a failure like any other.

Read next: `threads.py`, `processes.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from nightwarden.nodes.context import Context
from nightwarden.nodes.define import NodeDef
from nightwarden.runtime.accounting import Account

PROCESS: Final = "process"
"""The `executor` of a step that runs in a process of its own."""


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class Executor(Protocol):
    """Runs blocking code somewhere else."""

    async def run(self, call: Callable[[], object]) -> object:
        """The result of `call`. Cancelling this abandons it; what it raises comes out here."""
        ...

    def close(self) -> None:
        """No more calls will come."""
        ...


class StepExecutor(Protocol):
    """Runs whole steps somewhere else, where only their names and values can go."""

    async def run_step(
        self,
        definition: NodeDef,
        values: Mapping[str, object],
        context: Context,
        account: Account,
        *,
        timeout_s: float | None = None,
    ) -> object:
        """What the step returns for `values`, its inputs by slot; what it raises comes out here.

        What it asks of the run is served by `context` and booked on `account` at once. Cancelling
        this ends the step, for good. `timeout_s` counts from when the step has begun.
        """
        ...

    def close(self) -> None:
        """No more steps will come."""
        ...
