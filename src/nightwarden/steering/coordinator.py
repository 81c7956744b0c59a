"""One task a supervisor and run: it owns all state, and nothing waits for it.

    Lookout ─▶ Inbox ─▶ Trigger ─▶ Thinking (its own task, 60 s at most) ─▶ Injector
                           └ steering_… events ─▶ emit

While a model thinks, events are taken in as ever; what they trigger waits. A supervisor may
fail, hang or answer nonsense: the run is never slowed, failed or changed by it.

Read next: `trigger.py`, `thinking.py`, `lookout.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from nightwarden.events import Event
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.inbox import LIMIT, Inbox
from nightwarden.steering.lookout import RECENT, Lookout
from nightwarden.steering.observed import Observed
from nightwarden.steering.policies import applied
from nightwarden.steering.ports import (
    Advice,
    Answer,
    Evaluator,
    Injector,
    Observation,
    Observer,
    Snapshot,
)
from nightwarden.steering.recalling import lasting, recall
from nightwarden.steering.telling import evaluated, told
from nightwarden.steering.thinking import EVALUATION_S, Thinking, say, wanted
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import Act, TriggerState, Wake

_AT_ONCE: Final = 200
"""Events taken in before others get a turn."""


class Coordinator:
    """Watches one run for one supervisor.

    Without observer, evaluator, injector or run it does nothing, and that is no error. `emit`
    gets the steering events, `keep` the state whenever an evaluation is over and at the end.
    Supervisors of one run share its `lookout`, with an observer that is `Shared`.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        *,
        run_id: str,
        observer: Observer | None,
        evaluator: Evaluator | None,
        injector: Injector | None,
        emit: Callable[[Event], None] = lambda _event: None,
        keep: Callable[[TriggerState], None] = lambda _state: None,
        state: TriggerState | None = None,
        lookout: Lookout | None = None,
        limit: int = LIMIT,
        evaluation_s: float = EVALUATION_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.spec = applied(spec)
        self.run_id = run_id
        self.works = bool(run_id and observer and evaluator and injector)
        self._observer = observer
        self._injector = injector
        self._emit_to = emit
        self._keep_to = keep
        self._wall = wall
        self._bell = asyncio.Event()
        self._inbox = Inbox(self._bell.set, limit)
        self._lookout = Lookout() if lookout is None else lookout
        self._before = Lookout()
        self._trigger = Trigger(self.spec, state=state, recent=self._lookout.recent)
        self._thinking = Thinking(evaluator, self._bell.set, evaluation_s)
        self._observation: Observation | None = None
        self._detached = False
        self._task: asyncio.Task[None] | None = None
        self._last: Advice | None = None
        self._reached = 0.0

    @property
    def state(self) -> TriggerState:
        """What it remembers."""
        return self._trigger.state

    @property
    def closed(self) -> bool:
        """Whether the run is over."""
        return self._trigger.closed

    @property
    def dropped(self) -> int:
        """Events it never saw, because it could not keep up."""
        return self._inbox.dropped

    def start(self) -> None:
        """Run as a task of its own, on the running loop. Watches from this moment on."""
        if self.works and self._task is None:
            self._attach()
            name = f"steering {self.spec.name or 'supervisor'}"
            self._task = asyncio.create_task(self.run(), name=name)

    async def close(self) -> None:
        """Detach. The run goes on untouched."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        self._detach()  # also of a task that was cancelled before it began

    async def wait(self) -> None:
        """Return when the run is over, or there is nothing to wait for."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def run(self) -> None:
        """Watch until the run is over."""
        observation = self._attach()
        if observation is None:
            return
        try:
            await self._replay(observation)
            self._follow(self._trigger.begin(self._now()))
            while not self._trigger.closed:
                await self._turn()
        finally:
            self._detach()

    def _attach(self) -> Observation | None:
        if self._observation is None and self.works and self._observer is not None:
            trigger = self._trigger
            self._lookout.join(
                self._inbox.offer, trigger.wants, self._inbox.end, trigger.watchlist.amounts
            )
            self._observation = self._observer.observe(self.run_id, self._lookout)
        return self._observation

    def _detach(self) -> None:
        if self._observation is not None and not self._detached:
            self._detached = True
            self._lookout.leave(self._inbox.offer)
            self._observation.release()
            self._thinking.stop()
            self._keep()

    async def _replay(self, observation: Observation) -> None:
        """Take in what happened before; at its own time, as far as clocks agree."""
        state = self._trigger.state
        state.cut = max(state.cut, observation.cut)
        for number, fact in enumerate(lasting(observation.history()), start=1):
            seen = self._before.observe(fact)
            at = self._now() - max(0.0, self._wall() - _stamp(seen.at, self._wall()))
            recall(state, seen, self.spec.name, at)
            self._trigger.see(seen, at)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        state.cut = observation.cut

    # -- one turn of the loop --

    async def _turn(self) -> None:
        for _ in range(_AT_ONCE):
            if not len(self._inbox) or self._trigger.closed:
                break
            self._follow(self._trigger.see(self._inbox.take(), self._now()))
        if not len(self._inbox) and self._inbox.ended:
            self._trigger.closed = True
        if self._trigger.closed:
            return
        self._follow(self._trigger.due(self._now()))
        await self._thought()
        if len(self._inbox):
            await asyncio.sleep(0)
        else:
            await self._sleep()

    async def _sleep(self) -> None:
        """Until something comes, the model has answered, or something is due."""
        times = (self._trigger.deadline(), self._thinking.deadline)
        until = min((at for at in times if at is not None), default=None)
        self._bell.clear()
        if len(self._inbox) or self._inbox.ended or self._thinking.has_answered:
            return
        if until is None:
            await self._bell.wait()
            return
        timer = asyncio.get_running_loop().call_at(until, self._ring_at, until)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()

    def _ring_at(self, at: float) -> None:
        self._reached = at  # a timer may fire a hair before its time
        self._bell.set()

    def _now(self) -> float:
        return max(asyncio.get_running_loop().time(), self._reached)

    # -- what follows --

    def _follow(self, acts: Sequence[Act]) -> None:
        reason = self._last.reason if self._last else ""
        for act in acts:
            event = told(act, self._trigger, dropped=self.dropped, reason=reason)
            if event is not None:
                self._emit(event)
            if isinstance(act, Wake):
                self._thinking.begin(act, self._snapshot(act), self._now())

    def _emit(self, event: Event) -> None:
        with contextlib.suppress(Exception):  # whoever listens must not harm the supervisor
            self._emit_to(event)

    def _keep(self) -> None:
        with contextlib.suppress(Exception):
            self._keep_to(self._trigger.freeze())

    def _snapshot(self, wake: Wake) -> Snapshot:
        return Snapshot(
            supervisor=self.spec.name,
            run_id=self.run_id,
            policy=self.spec.system,
            model=self.spec.model,
            node=wake.node,
            reasons=tuple(cause.text() for cause in wake.causes),
            recent=tuple(seen.shown for seen in self._recent()),
            monitors=tuple(self._trigger.watchlist.texts()),
            number=wake.number,
            limit=self.spec.max_evals,
            repeated=self.state.repeated,
            last=self._last,
        )

    def _recent(self) -> list[Observed]:
        """The last events, of history where the run has not said enough since."""
        live = list(self._lookout.recent)
        first = live[0].seq if live else 0
        before = [seen for seen in self._before.recent if not first or seen.seq < first]
        return [*before, *live][-RECENT:]

    async def _thought(self) -> None:
        """Take the answer of an evaluation, if it is there or has taken too long."""
        found, wake = self._thinking.answer(self._now()), self._thinking.wake
        if found is None or wake is None:
            return
        answer, took = found
        if isinstance(answer.advice, Advice):
            await self._apply(answer.advice, answer, wake, took)
        else:
            self.state.spent_micro_usd += answer.cost_micro_usd
            acts = self._trigger.failed(self._now(), answer.detail)
            self._emit(
                evaluated(
                    self._trigger, wake, answer, "failed", duration_s=took, detail=answer.detail
                )
            )
            self._follow(acts)
        self._keep()

    async def _apply(self, advice: Advice, answer: Answer, wake: Wake, took: float) -> None:
        outcome, message_id, refused = "silent", "", ""
        if advice.intervene and self._injector is not None:
            message_id, refused = await say(
                self._injector, advice, wake, run_id=self.run_id, author=self.spec.name
            )
            outcome = "refused" if refused else "intervened"
        self._last = self._last if refused else advice
        acts = self._trigger.returned(
            self._now(),
            done=advice.done and not refused,
            watch=tuple(wanted(advice.watch)),
            committed=not refused,
            cost_micro_usd=answer.cost_micro_usd,
        )
        self._lookout.changed()
        self._emit(
            evaluated(
                self._trigger,
                wake,
                answer,
                outcome,
                duration_s=took,
                detail=refused,
                message_id=message_id,
            )
        )
        self._follow(acts)


def _stamp(at: str, otherwise: float) -> float:
    """An event's time in seconds; what cannot be read happened just now."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return otherwise
