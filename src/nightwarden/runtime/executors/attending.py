"""A place for one worker process, and the thread that speaks with it.

    Job ─▶ queue ─▶ start a process if there is none
                 ─▶ Call ─▶ serve what the step asks ─▶ Done
                                     └─▶ the process died: WorkerDied
    kill(job) ─▶ SIGKILL to the process and whatever it started

A thread, since pickling and reading block; it does nothing but wait most of the time. A process
that dies is replaced when the next job comes. One that dies before the step began has done
nothing: the job is given to the next process.

Read next: `child.py`, `serving.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from nightwarden.errors import NodeError
from nightwarden.nodes.context import Context
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.executors.child import Child
from nightwarden.runtime.executors.packing import unpack_error
from nightwarden.runtime.executors.serving import Server
from nightwarden.runtime.executors.wire import Began, Call, Done, pack_inputs

_STARTS: Final = 3
"""How many processes may die before a step begins until it is given up."""

Outcome = tuple[object, BaseException | None]


class WorkerDied(NodeError):
    """The process of a step is gone, and with it what the step had not told."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="worker-died")


class _NotBegun(Exception):
    """The process died before it had anything to do with the step."""


@dataclass(eq=False, slots=True)
class Job:
    """A call, what it is called with, and who waits for it; `began` is called on the loop.

    `over` and `killed` exclude each other.
    """

    call: Call
    values: Mapping[str, object]
    context: Context
    account: Account
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Outcome]
    began: Callable[[], None] = lambda: None
    killed: bool = False
    over: bool = False

    def settle(self, outcome: Outcome) -> None:
        """Tell whoever waits, from any thread."""

        def settle() -> None:
            if not self.done.done():
                self.done.set_result(outcome)

        self.on_loop(settle)

    def on_loop(self, call: Callable[[], None]) -> None:
        """Call something on the loop, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(call)


class Attendant:
    """Has no process at first, and at most one at a time."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._child: Child | None = None
        self._dismissed = False
        self._thread = threading.Thread(target=self._work, name="nightwarden-worker", daemon=True)
        self._thread.start()

    def give(self, job: Job) -> None:
        """Run a job; `job.done` gets what came of it."""
        self._jobs.put(job)

    def kill(self, job: Job) -> None:
        """End the process now if it is at this job, or would be; nothing if that is over."""
        with self._lock:
            if job.over:
                return
            job.killed = True
            if self._job is job and self._child is not None:
                self._child.kill()

    def dismiss(self) -> None:
        """No more jobs: the process ends, at once if it is at one, and the thread with it."""
        with self._lock:
            self._dismissed = True
            if self._job is not None and self._child is not None:
                self._child.kill()
        self._jobs.put(None)

    def gone(self, timeout_s: float) -> bool:
        """Wait until process and thread have ended; kill what takes too long."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            with self._lock:
                if self._child is not None:
                    self._child.kill()
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- the thread --

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._job = job
            try:
                outcome = self._attend(job)
            except BaseException as error:  # ours; whoever waits must hear of it
                outcome = (None, error)
            with self._lock:
                self._job, job.over = None, not job.killed
            job.settle(outcome)
            del job, outcome  # they may be large, and the next one may be long in coming
        if self._child is not None:
            self._child.dismiss()

    def _attend(self, job: Job) -> Outcome:
        try:
            payload = pack_inputs(job.call, job.values)
        except NodeError as error:
            return None, error
        ended = ""
        for _ in range(_STARTS):
            try:
                child = self._ready()
            except OSError as error:
                return None, WorkerDied(f"no worker process could be started: {error}")
            with self._lock:
                if job.killed or self._dismissed:
                    return None, WorkerDied("the step was cancelled before it began")
            try:
                return self._converse(job, child, payload)
            except _NotBegun:
                ended = child.bury()
            except (EOFError, OSError):
                return None, WorkerDied(f"the worker process of the step {child.bury()}")
        return None, WorkerDied(f"the step could not begin: each worker process {ended} before")

    def _ready(self) -> Child:
        """A process that lives."""
        if self._child is not None and self._child.ended:
            self._child.bury()
            self._child = None
        if self._child is None:
            child = Child()
            with self._lock:
                self._child = child
        return self._child

    def _converse(self, job: Job, child: Child, payload: bytes) -> Outcome:
        number, begun = job.call.number, False
        server = Server(number, job.context, job.account)
        try:
            child.channel.send(job.call, payload)
            while True:
                message, received = child.receive()
                match message:
                    case Began(call) if call == number:
                        begun = True
                        job.on_loop(job.began)
                    case Done(call, failed) if call == number:
                        return _outcome(job, received, failed=failed)
                    case _:
                        server.serve(message, child.channel)
        except (EOFError, OSError) as error:
            if begun or job.killed or self._dismissed:
                raise
            raise _NotBegun from error


def _outcome(job: Job, data: bytes, *, failed: bool) -> Outcome:
    if failed:
        return None, unpack_error(data)
    try:
        return pickle.loads(data), None
    except Exception as error:  # unpickling runs the value's own code
        why = f"{type(error).__name__}: {error}"
        message = f"{job.call.step}: the result cannot be read here: {why}"
        return None, NodeError(message, code="not-picklable")
