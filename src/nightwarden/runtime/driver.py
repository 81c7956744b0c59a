"""The driver: turns the kernel's orders into work, and what comes of it into facts.

    tell(stimulus) ─▶ Machine.handle ─▶ effects ─▶ perform: workers, streams, timers, decisions
         ▲                                             │
         └─────────────── what it came to ◀────────────┘

It runs on one event loop and owns every task of the run. Whatever a step raises is caught
around its code; only a cancellation the engine ordered passes. A step that does not heed a
cancellation within two seconds is left behind, and the run goes on without it.

Read next: `pool.py`, `streaming.py`, `deciding.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nightwarden.errors import NodeError, Suspended
from nightwarden.kernel.causes import NO_CAUSES
from nightwarden.kernel.effects import (
    Answer,
    Apply,
    CloseRoot,
    Conclude,
    Delay,
    Effect,
    Ended,
    EndFeed,
    Escalate,
    Feed,
    Finish,
    Halt,
    Invoke,
    Pause,
    Prune,
    Resume,
    Stop,
    Warn,
    Widen,
)
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.state import Settings
from nightwarden.kernel.stimuli import (
    DelayPassed,
    Halted,
    RunCancelled,
    RunStarted,
    Stimulus,
    Succeeded,
    Unbegun,
)
from nightwarden.kernel.stimuli import Suspended as StepSuspended
from nightwarden.nodes.define import Mode, Node, NodeDef
from nightwarden.nodes.io import Loss, absent_cause
from nightwarden.runtime.accounting import Account, current
from nightwarden.runtime.binding import Arguments, Binding
from nightwarden.runtime.context import StepContext
from nightwarden.runtime.controlling import CallControls, Switchboard
from nightwarden.runtime.deciding import Deciding
from nightwarden.runtime.executors import Executor
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.pool import Pool, Worker
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.streaming import StreamCall

GRACE_S: Final = 2.0
"""How long a cancelled step may take to end before it is left behind."""

TEARDOWN_S: Final = 30.0
"""How long tearing a node down may take."""

FAIR_SHARE: Final = 64
"""How many invocations a worker runs before others get a turn."""

ASYNC_CONCURRENCY: Final = 8
THREAD_CONCURRENCY: Final = 4


def default_limit(node: NodePlan, definition: NodeDef) -> int:
    """How many invocations of a node run at once when neither file nor code says so.

    A step that nobody classified as safe to run again runs one item at a time, in order.
    """
    chosen = node.spec.run.concurrency or node.type.concurrency
    if chosen is not None:
        return chosen
    if definition.is_class or not node.type.retry_safe:
        return 1
    return THREAD_CONCURRENCY if definition.mode is Mode.THREAD else ASYNC_CONCURRENCY


class Driver:
    """One run on the current event loop. Make it, `await run(inputs)`, read what came of it."""

    def __init__(
        self,
        plan: Plan,
        definitions: Mapping[str, NodeDef],
        services: RunServices,
        recorder: Recorder,
        *,
        executor: Executor,
        settings: Settings,
        stop_grace_s: float = 30.0,
        feeds: Mapping[int, InputFeed] | None = None,
    ) -> None:
        self.plan = plan
        self.services = services
        self.recorder = recorder
        self.executor = executor
        self.feeds = feeds or {}
        self.deciding: Deciding | None = None
        self.machine = Machine(
            plan,
            settings=settings,
            limits=lambda node: default_limit(node, definitions[node.id]),
        )
        recorder.cause = self.machine.cause
        self.broken: BaseException | None = None
        self._stop_grace_s = stop_grace_s
        self._bindings = tuple(
            Binding(plan, node, definitions[node.id], self._explain) for node in plan.nodes
        )
        self._pools = tuple(Pool(binding, self._drain) for binding in self._bindings)
        self._streaming = tuple(n.type.fans_out or n.type.reads for n in plan.nodes)
        self._streams: dict[int, StreamCall] = {}
        self._instances: dict[int, Node] = {}
        self._codes: list[Any] = [b.definition.target for b in self._bindings]
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._effects: deque[Effect] = deque()
        self._performing = False
        self._grace: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[Ended] | None = None
        self._board = Switchboard(plan, self.tell)
        self._orders: dict[type, Callable[[Any], None]] = {
            Invoke: self._invoke,
            Pause: lambda e: self._streams[e.call].pause(),
            Resume: self._resume,
            Feed: lambda e: self._streams[e.call].streams[e.slot].feed(e.index, e.value),
            EndFeed: lambda e: self._streams[e.call].streams[e.slot].end(),
            Escalate: self._escalate,
            Apply: self._apply,
            Conclude: self._conclude,
            Delay: self._delay,
            Halt: self._halt,
            Stop: self._stop,
            Ended: self._end,
            Prune: recorder.pruned,
            CloseRoot: recorder.closed,
            Widen: recorder.widened,
            Finish: recorder.finished,
            Warn: recorder.noted,
            Answer: self._board.answered,
        }

    def bindings(self) -> Sequence[Binding]:
        """Every node's binding, in plan order."""
        return self._bindings

    # -- the run --

    async def run(self, inputs: Mapping[str, object]) -> Ended:
        """Run to the end. Cancelling this cancels the run, and raises when it has ended."""
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        try:
            if await self._is_set_up():
                for pool in self._pools:
                    pool.direct = self._direct(pool.binding)
                self.tell(RunStarted(inputs))
            ended = await self._wait()
        finally:
            await self._close()
        if self.broken is not None:
            raise self.broken
        return ended

    async def _wait(self) -> Ended:
        assert self._done is not None
        cancelled = False
        while True:
            try:
                ended = await asyncio.shield(self._done)
            except asyncio.CancelledError:
                if self._done.done():
                    raise
                cancelled = True
                self.cancel()
                continue
            if cancelled:
                raise asyncio.CancelledError
            return ended

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop at once. Once is enough; more often changes nothing."""
        self.tell(RunCancelled(reason))

    def tell(self, stimulus: Stimulus) -> None:
        """Tell the kernel a fact and perform what it orders."""
        self._perform(self.machine.handle, stimulus)

    def _perform(self, handle: Callable[[Stimulus], Sequence[Effect]], stimulus: Stimulus) -> None:
        """Perform the kernel's orders in order, those that follow from them included."""
        try:
            effects = handle(stimulus)
            if self._performing:
                self._effects.extend(effects)
                return
            self._performing = True
            pools, orders = self._pools, self._orders
            for effect in effects:
                if type(effect) is Invoke and pools[effect.node].plain:
                    pool = pools[effect.node]
                    pool.queue.append(effect)
                    if not pool.waking:
                        pool.wake()
                else:
                    orders[type(effect)](effect)
            while self._effects:
                effect = self._effects.popleft()
                orders[type(effect)](effect)
            self._performing = False
        except BaseException as bug:
            self._performing = False
            self._break(bug)

    def _break(self, bug: BaseException) -> None:
        """The engine itself failed: nothing can be relied on, end loudly."""
        if self.broken is None:
            self.broken = bug
        self._effects.clear()
        for call in list(self._streams.values()):
            call.halt(gently=False)
        if self._done is not None and not self._done.done():
            self._done.set_exception(self.broken)

    # -- orders --

    def _invoke(self, effect: Invoke) -> None:
        pool = self._pools[effect.node]
        if not pool.started:
            pool.started = True
            self.recorder.node_started(effect)
            if not self._streaming[effect.node]:
                pool.plain = True
        if pool.plain:
            pool.queue.append(effect)
            if not pool.waking:
                pool.wake()
            return
        call = StreamCall(effect, pool.binding, self)
        self._streams[effect.call] = call
        call.task = asyncio.get_running_loop().create_task(self._run_stream(call))

    def _resume(self, effect: Resume) -> None:
        call = self._streams.get(effect.call)
        if call is not None:
            call.resume()

    def _escalate(self, effect: Escalate) -> None:
        assert self.deciding is not None
        node = self.plan.nodes[effect.node]
        if effect.detail:
            facts = self.recorder.kernel_failure(effect)
        else:
            facts = self.recorder.failure(effect.call)
        declared = self.recorder.declared(self._bindings[effect.node])
        self.deciding.escalate(effect, node.type.name, facts, declared)

    def _apply(self, effect: Apply) -> None:
        assert self.deciding is not None
        self.deciding.apply(effect)

    def _conclude(self, effect: Conclude) -> None:
        assert self.deciding is not None
        self.deciding.conclude(effect)

    def _delay(self, effect: Delay) -> None:
        def passed() -> None:
            self._timers.pop(effect.call, None)
            self.tell(DelayPassed(effect.call))

        loop = asyncio.get_running_loop()
        self._timers[effect.call] = loop.call_later(effect.seconds, passed)

    def _halt(self, effect: Halt) -> None:
        loop = asyncio.get_running_loop()
        stream = self._streams.get(effect.call)
        if stream is not None and not stream.begun:
            self._never_begin(stream)
        elif stream is not None:
            stream.halt(gently=effect.gently)
            if not effect.gently:
                loop.call_later(GRACE_S, self._leave_stream, stream)
        else:
            for pool in self._pools:
                worker = pool.find(effect.call)
                if worker is not None and worker.task is not None:
                    worker.halting = True
                    worker.task.cancel()
                    loop.call_later(GRACE_S, self._leave_worker, pool, worker, effect.call)
                    return

    def _never_begin(self, stream: StreamCall) -> None:
        del self._streams[stream.invoke.call]
        stream.abandoned = True
        if stream.task is not None:
            stream.task.cancel()
        self.tell(Unbegun(stream.invoke.call))

    def _stop(self, effect: Stop) -> None:
        self.recorder.stopping(effect)
        for pool in self._pools:
            for call in pool.drop_all():
                self.tell(Unbegun(call))
        for stream in [s for s in self._streams.values() if not s.begun]:
            self._never_begin(stream)
        if self.deciding is not None:
            self.deciding.abort()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(self._stop_grace_s, self._grace_over)

    def _grace_over(self) -> None:
        """What has not drained by now is cancelled."""
        for pool in self._pools:
            for worker in list(pool.workers):
                if worker.call and not worker.halting:
                    self._halt(Halt(worker.call, gently=False))
        for number in list(self._streams):
            self._halt(Halt(number, gently=False))

    def _end(self, effect: Ended) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(effect)

    # -- plain calls --

    async def _drain(self, pool: Pool, worker: Worker) -> None:
        """Run what is queued at a node, one after the other, for a fair while."""
        queue, binding, recorder = pool.queue, pool.binding, self.recorder
        bus, machine = self.services.bus, self.machine
        code, single = pool.direct
        for _ in range(FAIR_SHARE):
            if not queue:
                return
            invoke = queue.popleft()
            if queue and not pool.waking:
                pool.wake()
            worker.call = invoke.call
            worker.invoke = invoke
            worker.account = account = Account()
            current.set(account)
            began = recorder.begun(invoke) if bus.active else None
            arguments: Arguments | None = None
            outputs: tuple[object, ...] | None
            failure: BaseException
            try:
                if single:
                    value = await code(**{single: invoke.inputs[0]})
                else:
                    arguments = binding.arguments(invoke.inputs, self.services.secret)
                    value = await self._call(pool, worker, invoke, arguments)
                outputs = binding.results(value)
            except BaseException as error:  # whatever a step raises is its failure
                outputs = None
                failure = error
            if worker.abandoned:
                return
            if outputs is None:
                self._plain_failed(worker, invoke, failure, account, arguments)
                continue
            worker.call = 0
            if worker.halting or worker.timed_out:
                worker.halting = worker.timed_out = False
                _uncancel()
            if began is not None or account.cost_micro_usd:
                recorder.succeeded(invoke, outputs, account, began)
            self._perform(machine.handle, Succeeded(invoke.call, outputs))

    def _plain_failed(
        self,
        worker: Worker,
        invoke: Invoke,
        error: BaseException,
        account: Account,
        arguments: Arguments | None,
    ) -> None:
        worker.call = 0
        binding = self._bindings[invoke.node]
        if arguments is None and not isinstance(error, NodeError):
            arguments = binding.shown(invoke.inputs)
        timed_out, worker.timed_out = worker.timed_out, False
        halting, worker.halting = worker.halting, False
        self._ended_badly(invoke, error, account, arguments, halting=halting)
        if halting or timed_out:
            _uncancel()

    async def _call(
        self, pool: Pool, worker: Worker, invoke: Invoke, arguments: Arguments
    ) -> object:
        binding = pool.binding
        mode = binding.definition.mode
        code = self._codes[invoke.node]
        if binding.definition.context_name is not None:
            assert worker.account is not None
            context = self._context(invoke, worker.account)
            arguments.values[binding.definition.context_name] = context
        if arguments.absent_cause:
            absent_cause.set(arguments.absent_cause)
        timeout_s = binding.node.spec.run.timeout_s or binding.node.type.timeout_s
        timer: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            worker.arguments = arguments
            loop = asyncio.get_running_loop()
            timer = loop.call_later(timeout_s, self._time_out, pool, worker, invoke.call)
        try:
            if mode is Mode.COROUTINE:
                return await code(**arguments.values)
            if mode is Mode.INLINE:
                return code(**arguments.values)
            return await self.executor.run(lambda: code(**arguments.values))
        except asyncio.CancelledError as error:
            if worker.timed_out and not worker.halting:
                raise StepTimeout(f"timeout after {timeout_s:g} s") from error
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _time_out(self, pool: Pool, worker: Worker, call: int) -> None:
        """A step has used up its time: cancel it, and leave it behind if it does not heed that."""
        if worker.call != call or worker.task is None or worker.halting:
            return
        worker.timed_out = True
        worker.task.cancel()
        loop = asyncio.get_running_loop()
        loop.call_later(GRACE_S, self._leave_timed_out, pool, worker, call)

    def _leave_timed_out(self, pool: Pool, worker: Worker, call: int) -> None:
        if worker.call != call or not worker.timed_out or worker not in pool.workers:
            return
        invoke = worker.invoke
        assert invoke is not None
        assert worker.account is not None
        pool.abandon(worker)
        timeout_s = pool.binding.node.spec.run.timeout_s or pool.binding.node.type.timeout_s
        self._ended_badly(
            invoke,
            StepTimeout(f"timeout after {timeout_s:g} s, and it does not heed its cancellation"),
            worker.account,
            worker.arguments,
            halting=worker.halting,
            left_behind=True,
        )

    # -- streaming calls --

    async def _run_stream(self, call: StreamCall) -> None:
        invoke, binding = call.invoke, call.binding
        call.begun = True
        call.account = account = Account()
        current.set(account)
        began = self.recorder.begun(invoke)
        arguments: Arguments | None = None
        timeout_s = binding.node.spec.run.timeout_s or binding.node.type.timeout_s
        try:
            arguments = binding.arguments(invoke.inputs, self.services.secret)
            if binding.definition.context_name is not None:
                name = binding.definition.context_name
                arguments.values[name] = self._context(invoke, account)
            if arguments.absent_cause:
                absent_cause.set(arguments.absent_cause)
            came_to = await call.run(arguments, self._codes[invoke.node], timeout_s)
        except BaseException as error:  # whatever a step raises is its failure
            self._streams.pop(invoke.call, None)
            if not call.abandoned:
                self._ended_badly(invoke, error, account, arguments, halting=call.halting)
            return
        self._streams.pop(invoke.call, None)
        if call.abandoned:
            return
        if isinstance(came_to, Succeeded):
            self.recorder.succeeded(invoke, came_to.outputs, account, began)
        self.tell(came_to)

    def emitted(self, invoke: Invoke, frame: tuple[object, ...]) -> None:
        """A fan-out is about to emit a frame."""
        if self.services.bus.active:
            self.recorder.emitted(invoke, frame, self.plan.nodes[invoke.node])

    def losses(self, call: int, slot: str) -> Sequence[Loss]:
        """What a reader has missed so far."""
        found = self.machine.losses(call, slot)
        return tuple(Loss(index, self._explain(causes)) for index, causes in found)

    def warn(self, invoke: Invoke, message: str) -> None:
        """A line for the report that is no failure."""
        self.recorder.warn(invoke, message)

    def describe(self, error: BaseException) -> str:
        """An error as one masked line."""
        return self.services.registry.describe_error(error)

    # -- endings --

    def _ended_badly(
        self,
        invoke: Invoke,
        error: BaseException,
        account: Account,
        arguments: Arguments | None,
        *,
        halting: bool,
        left_behind: bool = False,
    ) -> None:
        if halting:
            self.recorder.halted(invoke, account)
            self.tell(Halted(invoke.call))
            return
        if isinstance(error, asyncio.CancelledError):
            _uncancel()  # nobody ordered it: it is the step's own failure
        if isinstance(error, Suspended):
            self.recorder.suspended(invoke, error)
            self.tell(StepSuspended(invoke.call, self.services.mask(error.reason)))
            return
        node = self.plan.nodes[invoke.node]
        binding = self._bindings[invoke.node]
        threaded = binding.definition.mode in (Mode.THREAD, Mode.THREAD_GENERATOR)
        self.tell(
            self.recorder.failed(
                invoke,
                error,
                account,
                binding,
                arguments,
                path=self.machine.label(invoke.call),
                totals=self.machine.totals(invoke.call),
                now=time.time(),
                unknown=left_behind or (threaded and isinstance(error, StepTimeout)),
                idempotent=_has_key(node, arguments),
            )
        )

    def _leave_worker(self, pool: Pool, worker: Worker, call: int) -> None:
        if worker.call == call and worker.halting and worker in pool.workers:
            pool.abandon(worker)
            self.tell(Halted(call))

    def stream_timed_out(self, call: StreamCall) -> None:
        """A streaming step has used up its time and been cancelled."""
        loop = asyncio.get_running_loop()
        loop.call_later(GRACE_S, self._leave_timed_out_stream, call)

    def _leave_timed_out_stream(self, call: StreamCall) -> None:
        if self._streams.get(call.invoke.call) is not call or call.halting:
            return
        call.abandoned = True
        del self._streams[call.invoke.call]
        error = StepTimeout("timeout, and it does not heed its cancellation")
        self._ended_badly(
            call.invoke, error, call.account, call.arguments, halting=False, left_behind=True
        )

    def _leave_stream(self, call: StreamCall) -> None:
        if self._streams.get(call.invoke.call) is call:
            call.abandoned = True
            del self._streams[call.invoke.call]
            self.tell(Halted(call.invoke.call))

    # -- set-up and tear-down ---------------------------------------------------------------------

    def _context(self, invoke: Invoke, account: Account) -> StepContext:
        node = self.plan.nodes[invoke.node]
        return StepContext(
            self.services,
            account,
            node_id=node.id,
            lineage=invoke.lineage,
            attempt=invoke.attempt,
            controls=CallControls(self._board, invoke.call, node),
            item=lambda: self.recorder.item_text(
                invoke, self.machine.label(invoke.call), self.machine.totals(invoke.call)
            ),
        )

    def _direct(self, binding: Binding) -> tuple[Any, str]:
        """The code of a coroutine with one input that needs no care, and that input's name."""
        code = self._codes[binding.node.index]
        node = binding.node
        timed = node.spec.run.timeout_s or node.type.timeout_s
        plain = binding.definition.mode is Mode.COROUTINE and not timed
        if plain and binding.single and binding.definition.context_name is None:
            return code, binding.single
        return code, ""

    async def _is_set_up(self) -> bool:
        """Set class nodes up; False when the run was cancelled meanwhile."""
        if not any(b.definition.is_class for b in self._bindings):
            return True
        assert self._done is not None
        setting_up = asyncio.get_running_loop().create_task(self._set_up())
        try:
            await asyncio.wait((setting_up, self._done), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            if not setting_up.done():
                setting_up.cancel()
                await asyncio.wait((setting_up,), timeout=GRACE_S)
        if self._done.done():
            return False
        setting_up.result()
        return True

    async def _set_up(self) -> None:
        for binding in self._bindings:
            if binding.definition.is_class:
                node = binding.node
                try:
                    instance = binding.definition.target()
                    invoke = Invoke(0, node.index, (), 1, ())
                    await instance.setup(self._context(invoke, Account()))
                except asyncio.CancelledError:
                    if self._done is not None and self._done.done():
                        raise  # the run was cancelled
                    raise NodeError(f"{node.id} could not be set up: it cancelled itself") from None
                except BaseException as error:  # a step may raise anything
                    line = self.describe(error)
                    raise NodeError(f"{node.id} could not be set up: {line}") from error
                self._instances[node.index] = instance
                self._codes[node.index] = instance.run

    async def _close(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        for timer in self._timers.values():
            timer.cancel()
        for pool in self._pools:
            await pool.close()
        rest = [c.task for c in self._streams.values() if c.task is not None]
        if rest:
            for task in rest:
                task.cancel()
            await asyncio.wait(rest, timeout=GRACE_S)
        if self.deciding is not None:
            await self.deciding.aclose()
        for index, instance in self._instances.items():
            try:
                await asyncio.wait_for(_guarded(instance.teardown), TEARDOWN_S)
            except Exception as error:
                # A tear-down that fails must not hide what the run came to.
                self.warn(Invoke(0, index, (), 1, ()), f"tear-down failed: {self.describe(error)}")
        self.executor.close()

    def _explain(self, causes: object) -> str:
        return self.recorder.explain(self.machine.explain(causes or NO_CAUSES))  # type: ignore[arg-type]


async def _guarded(call: Callable[[], Any]) -> None:
    """Run an author's code; whatever it raises comes out as an ordinary exception."""
    try:
        await call()
    except Exception:
        raise
    except BaseException as error:
        raise NodeError(f"{type(error).__name__}: {error}") from error


def _uncancel() -> None:
    """Take a delivered cancellation back, so that the task can go on."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _has_key(node: NodePlan, arguments: Arguments | None) -> bool:
    """Whether the step passed an idempotency key on."""
    key = node.type.idempotent_by
    return bool(key and arguments is not None and arguments.values.get(key))
