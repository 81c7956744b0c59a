"""The driver: turns the kernel's orders into work, and what comes of it into facts.

    tell(stimulus) ─▶ Machine.handle ─▶ effects ─▶ perform: workers, streams, timers, decisions
         ▲                                             │
         └─────────────── what it came to ◀────────────┘

It runs on one event loop and owns every task of the run. Whatever a step raises is caught
around its code; only a cancellation the engine ordered passes. A step that does not heed a
cancellation within two seconds is left behind, and the run goes on without it.

Read next: `desk.py`, `plain.py`, `stream_calls.py`, `deciding.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

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
from nightwarden.kernel.stimuli import DelayPassed, Overspent, RunCancelled, RunStarted, Stimulus
from nightwarden.nodes.define import Mode, NodeDef
from nightwarden.runtime.binding import Binding
from nightwarden.runtime.deciding import Deciding
from nightwarden.runtime.desk import Desk
from nightwarden.runtime.executors import PROCESS, Executor, StepExecutor, processors
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.instances import Instances
from nightwarden.runtime.past import Past
from nightwarden.runtime.plain import PlainCalls
from nightwarden.runtime.playback import Orders, Playback
from nightwarden.runtime.pool import Pool
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.replaying import Replaying
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.stream_calls import StreamCalls

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
    if node.type.executor == PROCESS:
        return processors()
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
        processes: Callable[[], StepExecutor],
        settings: Settings,
        stop_grace_s: float = 30.0,
        feeds: Mapping[int, InputFeed] | None = None,
        past: Past | None = None,
    ) -> None:
        self.machine = _machine(plan, definitions, settings, past)
        narrator = recorder.narrator
        narrator.cause, narrator.counts = self.machine.cause, self.machine.counts
        if past is not None:
            narrator.said = past.said(_numbers(plan))
        self.replaying: Replaying | None = None
        self.deciding: Deciding | None = None
        self.broken: BaseException | None = None
        self._desk = Desk(
            plan,
            self.machine,
            definitions,
            services,
            recorder,
            executor=executor,
            processes=processes,
            feeds=feeds or {},
            tell=self.tell,
        )
        self._plain = PlainCalls(self._desk)
        self._streams = StreamCalls(self._desk)
        self._instances = Instances(self._desk)
        self._untold = self._streams.untold.waiting
        self._stop_grace_s = stop_grace_s
        self._started: set[int] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._effects: deque[Effect | Playback] = deque()
        self._performing = False
        self._grace: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[Ended] | None = None
        self._orders = self._all_orders()

    def _all_orders(self) -> Mapping[type, Callable[[Any], None]]:
        """Who performs what."""
        streams, narrator = self._streams, self._desk.recorder.narrator
        return {
            Invoke: self._invoke,
            Pause: streams.pause,
            Resume: streams.resume,
            Feed: streams.feed,
            EndFeed: streams.end_feed,
            Escalate: self._escalate,
            Apply: self._apply,
            Conclude: self._conclude,
            Delay: self._delay,
            Halt: self._halt,
            Stop: self._stop,
            Ended: self._end,
            Prune: narrator.pruned,
            CloseRoot: narrator.closed,
            Widen: narrator.widened,
            Finish: narrator.finished,
            Warn: narrator.noted,
            Answer: self._desk.board.answered,
        }

    @property
    def desk(self) -> Desk:
        """What its calls share."""
        return self._desk

    def bindings(self) -> Sequence[Binding]:
        """Every node's binding, in plan order."""
        return self._desk.bindings

    @property
    def _decisions(self) -> Deciding:
        assert self.deciding is not None, "a driver decides nothing by itself"
        return self.deciding

    # -- the run --

    async def run(self, inputs: Mapping[str, object]) -> Ended:
        """Run to the end. Cancelling this cancels the run, and raises when it has ended.

        Raises `NodeError` for a node that cannot be set up.
        """
        self._done = asyncio.get_running_loop().create_future()
        try:
            if await self._set_up(self._done):
                self._plain.open()
                self.tell(RunStarted(inputs))
            ended = await self._wait(self._done)
        finally:
            await self._close()
        if self.broken is not None:
            raise self.broken
        return ended

    async def _set_up(self, done: asyncio.Future[Ended]) -> bool:
        try:
            return await self._instances.set_up(done)
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def _wait(self, done: asyncio.Future[Ended]) -> Ended:
        cancelled = False
        while True:
            try:
                ended = await asyncio.shield(done)
            except asyncio.CancelledError:
                if done.done():
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

    def overspent(self, reason: str) -> None:
        """Steps have spent more than the run may: begin nothing more."""
        self.tell(Overspent(reason))

    def tell(self, stimulus: Stimulus, own: Pool | None = None) -> None:
        """Tell the kernel a fact, and perform what it orders and what follows from that.

        `own` is the pool whose worker tells it, and sees by itself what is queued there.
        """
        try:
            if self._untold:
                self._streams.untold.tell_all()
            effects = self.machine.handle(stimulus)
            if self._performing:
                self._effects.extend(effects)
                return
            pools, orders = self._plain.pools, iter(effects)
            for effect in orders:
                if type(effect) is Invoke and (pool := pools[effect.node]).started:
                    pool.queue.append(effect)
                    if pool is not own and not pool.coming:
                        pool.call()
                else:
                    self._perform((effect, *orders))
            if self.replaying is not None:
                self.replaying.release()
        except BaseException as bug:
            self._break(bug)

    def _perform(self, effects: Iterable[Effect | Playback]) -> None:
        orders = self._orders
        self._performing = True
        try:
            for effect in effects:
                orders[type(effect)](effect)
            while self._effects:
                effect = self._effects.popleft()
                orders[type(effect)](effect)
        finally:
            self._performing = False

    def _break(self, bug: BaseException) -> None:
        """The engine itself failed: nothing can be relied on, end loudly."""
        if self.broken is None:
            self.broken = bug
        self._effects.clear()
        if self._done is not None and not self._done.done():
            self._done.set_exception(self.broken)

    # -- orders --

    def replay(self, replaying: Replaying) -> None:
        """Tell the run its past first. Before `run`."""
        self.replaying = replaying
        self._orders = {
            **self._orders,
            **Orders(replaying.playbacks, self._streams).all(),
        }

    def soon(self, playback: Playback) -> None:
        """Let a call of the past go on, after what its last fact led to."""
        self._effects.append(playback)
        if not self._performing:
            self._perform(())

    def _invoke(self, effect: Invoke) -> None:
        if self.replaying is not None:
            if self.replaying.begin(effect):
                return
            self._desk.again[effect.call] = self.replaying.again(effect)
        if effect.node not in self._started:
            self._started.add(effect.node)
            self._desk.recorder.narrator.node_started(effect)
        pool = self._plain.pools[effect.node]
        if not pool.plain:
            self._streams.begin(effect)
            return
        pool.started = self.replaying is None
        pool.queue.append(effect)
        if not pool.coming:
            pool.call()

    def _escalate(self, effect: Escalate) -> None:
        if self.replaying is not None and self.replaying.decide(effect):
            return
        desk = self._desk
        facts = (
            desk.recorder.failures.of_kernel(effect)
            if effect.detail
            else desk.recorder.failures.take(effect.call)
        )
        node_type = desk.plan.nodes[effect.node].type.name
        declared = desk.recorder.declared(desk.bindings[effect.node], facts)
        self._decisions.escalate(effect, node_type, facts, declared)

    def _apply(self, effect: Apply) -> None:
        self._decisions.apply(effect)

    def _conclude(self, effect: Conclude) -> None:
        self._decisions.conclude(effect)

    def _delay(self, effect: Delay) -> None:
        def passed() -> None:
            self._timers.pop(effect.call, None)
            self.tell(DelayPassed(effect.call))

        if self.replaying is not None and self.replaying.at_once(effect.call):
            self.tell(DelayPassed(effect.call))
            return
        loop = asyncio.get_running_loop()
        self._timers[effect.call] = loop.call_later(effect.seconds, passed)

    def _halt(self, effect: Halt) -> None:
        if self.replaying is not None and self.replaying.halt(effect.call):
            return
        if not self._streams.halt(effect):
            self._plain.halt(effect.call)

    def _stop(self, effect: Stop) -> None:
        self._desk.recorder.narrator.stopping(effect)
        self._plain.stop()
        self._streams.stop()
        self._decisions.abort()
        self._cancel_timers()
        if self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(self._stop_grace_s, self._grace_over)

    def _grace_over(self) -> None:
        """What has not drained by now is cancelled."""
        self._plain.halt_all()
        self._streams.halt_all()

    def _end(self, effect: Ended) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(effect)

    async def _close(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._cancel_timers()
        await self._plain.close()
        await self._streams.close()
        if self.deciding is not None:
            await self.deciding.aclose()
        await self._instances.tear_down()
        self._desk.close()

    def _cancel_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


def _machine(
    plan: Plan, definitions: Mapping[str, NodeDef], settings: Settings, past: Past | None
) -> Machine:
    """The kernel of this run; one that goes on knows which escalations were answered before."""
    return Machine(
        plan,
        settings=settings,
        limits=lambda node: default_limit(node, definitions[node.id]),
        numbered=past.numbered(_numbers(plan)) if past is not None else None,
        numbers=max(past.interventions, default=0) if past is not None else 0,
    )


def _numbers(plan: Plan) -> Mapping[str, int]:
    return {node.id: node.index for node in plan.nodes}
