"""What every call of a run shares: the way to the kernel, the record, the code, the context.

A call, plain or streaming, does its work and then tells the kernel what came of it; whatever a
step raises becomes a fact here, with everything secret taken out.

Read next: `plain.py`, `stream_calls.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from nightwarden.errors import Suspended
from nightwarden.kernel.causes import NO_CAUSES, CauseSet
from nightwarden.kernel.effects import Invoke
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.stimuli import Failed, Halted, Stimulus
from nightwarden.kernel.stimuli import Suspended as StepSuspended
from nightwarden.nodes.define import Mode, NodeDef
from nightwarden.nodes.io import Loss, absent_cause
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.again import ANEW, Again
from nightwarden.runtime.binding import Arguments, Binding
from nightwarden.runtime.context import StepContext
from nightwarden.runtime.controlling import CallControls, Switchboard
from nightwarden.runtime.executors import PROCESS, Executor, StepExecutor
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.failures import NOTHING_READ
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.narrating import explain
from nightwarden.runtime.pool import Pool
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.services import RunServices

GRACE_S: Final = 2.0
"""How long a cancelled step may take to end before it is left behind."""


class Tell(Protocol):
    """How the kernel is told a fact. `own` is the pool whose worker tells it."""

    def __call__(self, stimulus: Stimulus, own: Pool | None = None) -> None:
        """Tell it, and perform what it orders."""
        ...


class Desk:
    """The shared part of one run. `codes` are what the nodes run, by node number."""

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        definitions: Mapping[str, NodeDef],
        services: RunServices,
        recorder: Recorder,
        *,
        executor: Executor,
        processes: Callable[[], StepExecutor],
        feeds: Mapping[int, InputFeed],
        tell: Tell,
    ) -> None:
        self.plan = plan
        self.machine = machine
        self.services = services
        self.recorder = recorder
        self.executor = executor
        self._make_processes = processes
        self._processes: StepExecutor | None = None
        self.feeds = feeds
        self.tell = tell
        self.board = Switchboard(plan, tell)
        self.bindings = tuple(
            Binding(plan, node, definitions[node.id], self.explain) for node in plan.nodes
        )
        recorder.open(self.bindings)
        self.again: dict[int, Again] = {}
        self.codes: list[Any] = [binding.definition.target for binding in self.bindings]

    def prepare(self, invoke: Invoke, account: Account, arguments: Arguments) -> None:
        """Add what is not an input: the context, and why absent inputs are absent."""
        name = self.bindings[invoke.node].definition.context_name
        if name is not None:
            arguments.values[name] = self.context(invoke, account)
        if arguments.absent_cause:
            absent_cause.set(arguments.absent_cause)

    def context(self, invoke: Invoke, account: Account) -> StepContext:
        """The engine as one invocation sees it."""
        node = self.plan.nodes[invoke.node]
        again = self.again.get(invoke.call, ANEW)
        return StepContext(
            self.services,
            account,
            node_id=node.id,
            lineage=invoke.lineage,
            attempt=invoke.attempt,
            suspended_state=again.state,
            rejected_before=again.rejected,
            controls=CallControls(
                self.board, invoke.call, node, partial(self.recorder.controlled, invoke, again)
            ),
            item=lambda: self.recorder.item_text(
                invoke, self.machine.label(invoke.call), self.machine.totals(invoke.call)
            ),
        )

    async def elsewhere(self, invoke: Invoke, account: Account, arguments: Arguments) -> object:
        """Run a step in a process of its own; its time counts from when it has begun there."""
        if self._processes is None:
            self._processes = self._make_processes()
        binding = self.bindings[invoke.node]
        return await self._processes.run_step(
            binding.definition,
            arguments.values,
            self.context(invoke, account),
            account,
            timeout_s=timeout_of(binding.node),
        )

    def close(self) -> None:
        """No more steps will run."""
        self.executor.close()
        if self._processes is not None:
            self._processes.close()

    def ended_badly(
        self,
        invoke: Invoke,
        error: BaseException,
        account: Account,
        arguments: Arguments | None,
        *,
        halting: bool,
        left_behind: bool = False,
        read: Mapping[str, int] = NOTHING_READ,
    ) -> None:
        """Tell the kernel that a call failed, asked for a pause, or ended because it had to."""
        if halting:
            self.recorder.halted(invoke, account)
            self.tell(Halted(invoke.call))
            return
        if isinstance(error, asyncio.CancelledError):
            uncancel()  # nobody ordered it: it is the step's own failure
        if isinstance(error, Suspended):
            self.recorder.suspended(invoke, error, account)
            self.tell(StepSuspended(invoke.call, self.services.mask(error.reason)))
            return
        binding = self.bindings[invoke.node]
        threaded = (
            binding.definition.mode in (Mode.THREAD, Mode.THREAD_GENERATOR)
            and binding.node.type.executor != PROCESS  # a process is gone when its time is over
        )
        unknown = left_behind or (threaded and isinstance(error, StepTimeout))
        self.tell(
            self.failed_fact(
                invoke, error, binding, arguments, account=account, unknown=unknown, read=read
            )
        )

    def failed_fact(
        self,
        invoke: Invoke,
        error: BaseException,
        binding: Binding,
        arguments: Arguments | None,
        *,
        account: Account | None = None,
        unknown: bool = False,
        cut_off: bool = False,
        read: Mapping[str, int] = NOTHING_READ,
    ) -> Failed:
        """Write a failure down, and return what the kernel needs of it."""
        account = account or Account()
        self.recorder.book(binding.node, account)
        if unknown:
            self.recorder.leave(binding.node, account)
        return self.recorder.failures.failed(
            invoke,
            error,
            account,
            binding,
            arguments,
            path=self.machine.label(invoke.call),
            totals=self.machine.totals(invoke.call),
            now=time.time(),
            unknown=unknown,
            idempotent=has_key(binding.node, arguments),
            cut_off=cut_off,
            read=read,
        )

    def losses(self, call: int, slot: str) -> Sequence[Loss]:
        """What a reader has missed so far."""
        found = self.machine.losses(call, slot)
        return tuple(Loss(index, self.explain(causes)) for index, causes in found)

    def explain(self, causes: object) -> str:
        """A set of causes in words."""
        found: CauseSet = causes or NO_CAUSES  # type: ignore[assignment]
        return explain(self.machine.explain(found))

    def describe(self, error: BaseException) -> str:
        """An error as one masked line."""
        return self.services.registry.describe_error(error)


def timeout_of(node: NodePlan) -> float | None:
    """How long an invocation may take, in seconds: what the file says, else the code."""
    return node.spec.run.timeout_s or node.type.timeout_s


def uncancel() -> None:
    """Take a delivered cancellation back, so that the current task can go on."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def has_key(node: NodePlan, arguments: Arguments | None) -> bool:
    """Whether the step passed an idempotency key on."""
    key = node.type.idempotent_by
    return bool(key and arguments is not None and arguments.values.get(key))
