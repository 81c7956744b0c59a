"""Plain calls: one value in, one value out, by workers that drain a node's queue.

    Invoke ─▶ queue ─▶ worker ─▶ arguments ─▶ the step ─▶ results ─▶ Succeeded | Failed

A step that does not heed its cancellation, or its timeout, is left behind with its worker.

Read next: `pool.py`, `desk.py`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nightwarden.errors import NodeError
from nightwarden.kernel.effects import Invoke
from nightwarden.kernel.stimuli import Halted, Succeeded, Unbegun
from nightwarden.nodes.define import Mode
from nightwarden.runtime.accounting import Account, current
from nightwarden.runtime.binding import Arguments
from nightwarden.runtime.copying import SHARED
from nightwarden.runtime.desk import GRACE_S, Desk, timeout_of, uncancel
from nightwarden.runtime.executors import PROCESS
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.pool import Pool, Worker

FAIR_SHARE: Final = 64
"""How many invocations a worker runs before others get a turn."""
_UNTOUCHED: Final = Account()


class PlainCalls:
    """The pools of one run. `pools` are by node number."""

    def __init__(self, desk: Desk) -> None:
        self.pools = tuple(Pool(binding, self._drain) for binding in desk.bindings)
        self._desk = desk

    def open(self) -> None:
        """The nodes' code is ready."""
        for pool in self.pools:
            node = pool.binding.node
            pool.plain = not (node.type.fans_out or node.type.reads)

    def halt(self, call: int) -> None:
        """Cancel a call, if it is one of these."""
        for pool in self.pools:
            worker = pool.find(call)
            if worker is not None and worker.task is not None:
                worker.halting = True
                worker.task.cancel()
                loop = asyncio.get_running_loop()
                loop.call_later(GRACE_S, self._leave_halted, pool, worker, call)
                return

    def stop(self) -> None:
        """Take back what no worker has begun."""
        for pool in self.pools:
            for call in pool.drop_all():
                self._desk.tell(Unbegun(call))

    def halt_all(self) -> None:
        """Cancel whatever is still running."""
        for pool in self.pools:
            for worker in list(pool.workers):
                if worker.call and not worker.halting:
                    self.halt(worker.call)

    async def close(self) -> None:
        """End the idle workers; none is running any more but abandoned ones."""
        tasks = [task for pool in self.pools for task in pool.tasks()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # -- one call after the other --

    async def _drain(self, pool: Pool, worker: Worker) -> None:
        """Run what is queued at a node, one after the other, for a fair while."""
        desk, queue, binding = self._desk, pool.queue, pool.binding
        recorder, bus, secret = desk.recorder, desk.services.bus, desk.services.secret
        code, fixed, as_is = desk.codes[binding.node.index], binding.fixed, binding.as_is
        positional, bare, tell = binding.positional, binding.bare, desk.tell
        journaled = binding.node.type.effectful and bus.records
        announced = binding.node.type.effectful or recorder.watched
        # Nobody holds on to the account of a step that is given no context.
        alone = binding.definition.context_name is None
        account: Account | None = None
        for _ in range(FAIR_SHARE):
            if not queue:
                return
            invoke = queue.popleft()
            if queue and not pool.looking:
                pool.left_over()
            if account is None or not alone or account != _UNTOUCHED:
                account = Account()
                current.set(account)
            worker.call, worker.invoke, worker.account = invoke.call, invoke, account
            began: float | None = None
            if bus.active:
                began = recorder.begun(invoke) if announced else time.perf_counter()
            arguments: Arguments | None = None
            outputs: tuple[object, ...] | None
            failure: BaseException
            try:
                if journaled:
                    await recorder.durable()
                if bare or (positional and SHARED.issuperset(map(type, invoke.inputs))):
                    value = await code(*invoke.inputs, **fixed)
                else:
                    arguments = binding.arguments(invoke.inputs, secret)
                    value = await self._call(pool, worker, invoke, arguments)
                outputs = (value,) if type(value) in as_is else binding.results(value)
            except BaseException as error:  # whatever a step raises is its failure
                outputs = None
                failure = error
            if worker.abandoned:
                return
            if outputs is None:
                self._failed(worker, invoke, failure, arguments)
                account = None
                continue
            worker.call = 0
            if worker.halting or worker.timed_out:
                worker.halting = worker.timed_out = False
                uncancel()
            if began is not None or account.cost_micro_usd:
                recorder.succeeded(invoke, outputs, account, began)
            tell(Succeeded(invoke.call, outputs), pool)

    async def _call(
        self, pool: Pool, worker: Worker, invoke: Invoke, arguments: Arguments
    ) -> object:
        desk, mode = self._desk, pool.binding.definition.mode
        assert worker.account is not None
        desk.prepare(invoke, worker.account, arguments)
        if pool.binding.node.type.executor == PROCESS:
            return await desk.elsewhere(invoke, worker.account, arguments)
        code = desk.codes[invoke.node]
        timeout_s = timeout_of(pool.binding.node)
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
            return await desk.executor.run(lambda: code(**arguments.values))
        except asyncio.CancelledError as error:
            if worker.timed_out and not worker.halting:
                raise StepTimeout(f"timeout after {timeout_s:g} s") from error
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _failed(
        self,
        worker: Worker,
        invoke: Invoke,
        error: BaseException,
        arguments: Arguments | None,
    ) -> None:
        account = worker.account
        assert account is not None
        worker.call = 0
        if arguments is None and not isinstance(error, NodeError):
            arguments = self._desk.bindings[invoke.node].shown(invoke.inputs)
        timed_out, worker.timed_out = worker.timed_out, False
        halting, worker.halting = worker.halting, False
        self._desk.ended_badly(invoke, error, account, arguments, halting=halting)
        if halting or timed_out:
            uncancel()

    # -- steps that do not end --

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
        assert worker.invoke is not None
        assert worker.account is not None
        pool.abandon(worker)
        timeout_s = timeout_of(pool.binding.node)
        self._desk.ended_badly(
            worker.invoke,
            StepTimeout(f"timeout after {timeout_s:g} s, and it does not heed its cancellation"),
            worker.account,
            worker.arguments,
            halting=worker.halting,
            left_behind=True,
        )

    def _leave_halted(self, pool: Pool, worker: Worker, call: int) -> None:
        if worker.call == call and worker.halting and worker in pool.workers:
            pool.abandon(worker)
            self._desk.tell(Halted(call))
