"""Worker processes for steps that compute: `@node(executor="process")`.

    run_step ─▶ a free worker, or wait for one ─▶ the step runs there ─▶ its result, its error
        cancelled, or out of time ─▶ the worker is killed, and replaced when it is needed

As many processes as there are processors, started when they are first needed, each by itself
and never by forking this one, which has threads. Why not `concurrent.futures`: there a worker
that dies breaks the whole pool and fails every call in it; a running call cannot be ended at
all; and what a step spends, writes and asks has no way back. Here each worker stands alone.

What it costs: some 0.1 s to start a worker, some 0.2 ms a step; inputs and result are pickled, so
the step gets copies of its own.

Read next: `attending.py`, `worker.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nightwarden.errors import RunError
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import NodeDef
from nightwarden.nodes.io import absent_cause
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.executors.attending import Attendant, Job, Outcome
from nightwarden.runtime.executors.base import processors
from nightwarden.runtime.executors.child import FAREWELL_S
from nightwarden.runtime.executors.references import (
    Reference,
    main_script,
    reference_of,
    refuse_while_loading,
)
from nightwarden.runtime.executors.wire import Call
from nightwarden.runtime.failing import StepTimeout

GONE_S: Final = 1.5
"""How long a cancelled call waits until its killed process is gone, at most."""


class ProcessExecutor:
    """Runs steps in processes of their own; belongs to one event loop, on real time.

    `workers` is how many at most, one a processor by default. `files` are the Python files that
    were loaded by hand, where classes of values may be defined.
    """

    def __init__(self, workers: int | None = None, *, files: Sequence[Path] = ()) -> None:
        self.workers = workers or processors()
        self._files = {path.stem: str(path.resolve()) for path in files}
        self._places = asyncio.Semaphore(self.workers)
        self._idle: list[Attendant] = []
        self._attendants: list[Attendant] = []
        self._numbers = itertools.count(1)
        self._references: dict[Callable[..., object], Reference] = {}
        self._closed = False

    async def run_step(
        self,
        definition: NodeDef,
        values: Mapping[str, object],
        context: Context,
        account: Account,
        *,
        timeout_s: float | None = None,
    ) -> object:
        """What the step returns. Raises what it raises; `values` are its inputs by slot.

        Cancelling this kills the process the step is in, and returns when it is gone. The time
        starts when the step does: waiting for a free process, starting one and importing the
        step's module do not count. Raises `StepTimeout` when it is over, `WorkerDied` (code
        `worker-died`) when the process ended by itself, `NodeError` (code `not-importable`,
        `not-picklable`, `bad-process`) for what cannot be sent.
        """
        job = self._job(definition, values, context, account)
        async with self._places:
            attendant = self._take()
            try:
                value, error = await _attended(attendant, job, timeout_s)
            finally:
                self._idle.append(attendant)
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End all processes. Idle ones may tidy up for a moment; the others are killed."""
        self._closed = True
        for attendant in self._attendants:
            attendant.dismiss()
        until = time.monotonic() + FAREWELL_S
        for attendant in self._attendants:
            attendant.gone(max(0.1, until - time.monotonic()))
        self._attendants.clear()
        self._idle.clear()

    def _job(
        self,
        definition: NodeDef,
        values: Mapping[str, object],
        context: Context,
        account: Account,
    ) -> Job:
        loop = asyncio.get_running_loop()
        reference, own = self._reference(definition), definition.context_name
        call = Call(
            number=next(self._numbers),
            step=definition.type.name,
            reference=reference,
            context_name=own,
            workdir=str(context.workdir),
            lineage=context.lineage,
            attempt=context.attempt,
            suspended_state=context.suspended_state,
            absent_cause=absent_cause.get(),
            main=main_script(),
            files=self._files,
        )
        inputs = {slot: value for slot, value in values.items() if slot != own}
        return Job(call, inputs, context, account, loop, loop.create_future())

    def _reference(self, definition: NodeDef) -> Reference:
        if self._closed:
            raise RunError("the processes of this run have been closed")
        refuse_while_loading()
        target = definition.target
        if target not in self._references:
            found = self._references[target] = reference_of(definition)
            if found.file:
                self._files[found.module] = found.file
        return self._references[target]

    def _take(self) -> Attendant:
        if self._idle:
            return self._idle.pop()
        attendant = Attendant()
        self._attendants.append(attendant)
        return attendant


async def _attended(attendant: Attendant, job: Job, timeout_s: float | None) -> Outcome:
    """What came of a job; when its time is over or it is cancelled, its process is gone."""
    clock = asyncio.timeout(None)

    def begin() -> None:
        if timeout_s is not None and not (job.killed or job.done.done()):
            clock.reschedule(job.loop.time() + timeout_s)

    job.began = begin
    try:
        async with clock:
            attendant.give(job)
            try:
                return await asyncio.shield(job.done)
            except asyncio.CancelledError:
                attendant.kill(job)
                await asyncio.wait([job.done], timeout=GONE_S)
                raise
    except TimeoutError as error:
        if not job.killed:
            return await job.done  # it was over at the same moment
        raise StepTimeout(f"timeout after {timeout_s:g} s") from error
