"""One task a supervisor and run: it owns all state, and nothing waits for it.

    sink ─▶ Inbox ─▶ Trigger ─▶ evaluation (its own task, 60 s at most) ─▶ Injector
                        └ steering_… events ─▶ emit

While a model thinks, events are taken in as ever; what they trigger waits. A supervisor may
fail, hang or answer nonsense: the run is never slowed, failed or changed by it.

Read next: `trigger.py`, `ports.py`, `inbox.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from nightwarden.events import (
    Event,
    SteeringArmed,
    SteeringDeferred,
    SteeringDone,
    SteeringEvaluated,
    SteeringExhausted,
    SteeringParked,
    SteeringWoken,
)
from nightwarden.spec.monitors import BadMonitor, Monitor, parse_monitor
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
    NotQueued,
    Observation,
    Observer,
    Snapshot,
    Words,
)
from nightwarden.steering.recalling import recall
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import (
    Act,
    Armed,
    Deferred,
    Done,
    Exhausted,
    Parked,
    TriggerState,
    Wake,
)

EVALUATION_S: Final = 60.0
_INJECTION_S: Final = 10.0
_LONGEST_TEXT: Final = 4_000
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
        self._observer = observer
        self._evaluator = evaluator
        self._injector = injector
        self._emit_to = emit
        self._keep_to = keep
        self._evaluation_s = evaluation_s
        self._wall = wall
        self._bell = asyncio.Event()
        self._inbox = Inbox(self._bell.set, limit)
        self._lookout = Lookout() if lookout is None else lookout
        self._before = Lookout()
        self._trigger = Trigger(self.spec, state=state, recent=self._lookout.recent)
        self._observation: Observation | None = None
        self._detached = False
        self._task: asyncio.Task[None] | None = None
        self._thinking: asyncio.Task[Answer] | None = None
        self._thinking_since = 0.0
        self._wake: Wake | None = None
        self._last: Advice | None = None
        self._reached = 0.0

    @property
    def state(self) -> TriggerState:
        """What it remembers."""
        return self._trigger.state

    @property
    def dropped(self) -> int:
        """Events it never saw, because it could not keep up."""
        return self._inbox.dropped

    @property
    def works(self) -> bool:
        """Whether it is connected to anything."""
        return bool(self.run_id and self._observer and self._evaluator and self._injector)

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

    def _detach(self) -> None:
        if self._observation is not None and not self._detached:
            self._detached = True
            self._lookout.leave(self._inbox.offer)
            self._observation.release()
            self._stop_thinking()
            self._keep()

    def _attach(self) -> Observation | None:
        if self._observation is None and self.works and self._observer is not None:
            self._lookout.join(self._inbox.offer, self._trigger.wants, self._inbox.end)
            self._observation = self._observer.observe(self.run_id, self._lookout)
        return self._observation

    # -- one turn of the loop --

    async def _turn(self) -> None:
        for _ in range(_AT_ONCE):
            if not len(self._inbox) or self._trigger.closed:
                break
            self._follow(self._trigger.see(self._inbox.take(), self._now()))
        if self._trigger.closed:
            return
        if not len(self._inbox) and self._inbox.ended:
            self._trigger.closed = True
            return
        self._follow(self._trigger.due(self._now()))
        await self._thought()
        if len(self._inbox):
            await asyncio.sleep(0)
        else:
            await self._sleep()

    async def _sleep(self) -> None:
        """Until something comes, the model has answered, or something is due."""
        times = [self._trigger.deadline()]
        if self._thinking is not None:
            times.append(self._thinking_since + self._evaluation_s)
        until = min((at for at in times if at is not None), default=None)
        self._bell.clear()
        if len(self._inbox) or self._inbox.ended or self._has_thought():
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

    async def _replay(self, observation: Observation) -> None:
        """Take in what happened before; at its own time, as far as clocks agree."""
        state = self._trigger.state
        state.cut = max(state.cut, observation.cut)
        for number, fact in enumerate(observation.history(), start=1):
            seen = self._before.observe(fact)
            at = self._now() - max(0.0, self._wall() - _stamp(seen.at, self._wall()))
            recall(state, seen, self.spec.name, at)
            self._trigger.see(seen, at)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        state.cut = observation.cut

    # -- what follows --

    def _follow(self, acts: Sequence[Act]) -> None:
        name = self.spec.name
        for act in acts:
            match act:
                case Wake():
                    self._think(act)
                case Armed(node):
                    self._emit(self._armed(node))
                case Deferred(cause, wait_s, why):
                    text = cause.text()
                    self._emit(
                        SteeringDeferred(supervisor=name, trigger=text, why=why, wait_s=wait_s)
                    )
                case Parked(failures, detail, retry_in_s):
                    self._emit(
                        SteeringParked(
                            supervisor=name,
                            failures=failures,
                            detail=detail,
                            retry_in_s=retry_in_s,
                        )
                    )
                case Exhausted(limit, detail):
                    self._emit(SteeringExhausted(supervisor=name, limit=limit, detail=detail))
                case Done():
                    reason = self._last.reason if self._last else ""
                    self._emit(SteeringDone(supervisor=name, reason=reason))
                case _:
                    pass

    def _armed(self, node: str) -> Event:
        return SteeringArmed(
            supervisor=self.spec.name,
            node_id=node,
            cut=self.state.cut,
            watches=self.spec.watches,
            monitors=tuple(self._trigger.watchlist.texts()),
        )

    def _emit(self, event: Event) -> None:
        with contextlib.suppress(Exception):  # whoever listens must not harm the supervisor
            self._emit_to(event)

    def _keep(self) -> None:
        with contextlib.suppress(Exception):
            self._keep_to(self._trigger.freeze())

    # -- the evaluation --

    def _think(self, wake: Wake) -> None:
        assert self._evaluator is not None
        self._wake, self._thinking_since = wake, self._now()
        self._emit(
            SteeringWoken(
                supervisor=self.spec.name,
                node_id=wake.node,
                number=wake.number,
                triggers=tuple(cause.text() for cause in wake.causes),
                events=tuple(cause.seq for cause in wake.causes if cause.seq),
                dropped=self._inbox.dropped,
            )
        )
        snapshot = self._snapshot(wake)
        self._thinking = asyncio.create_task(_answer(self._evaluator, snapshot))
        self._thinking.add_done_callback(lambda _task: self._bell.set())

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

    def _has_thought(self) -> bool:
        return self._thinking is not None and self._thinking.done()

    async def _thought(self) -> None:
        """Take the answer, if it is there or has taken too long."""
        task, wake = self._thinking, self._wake
        if task is None or wake is None:
            return
        took = self._now() - self._thinking_since
        if task.done():
            self._thinking = None
            answer = task.result() if not task.cancelled() else Answer(detail="it was cancelled")
        elif took >= self._evaluation_s:
            self._stop_thinking()
            answer = Answer(detail=f"no answer within {self._evaluation_s:g} s")
        else:
            return
        if isinstance(answer.advice, Advice):
            await self._apply(answer.advice, answer, wake, took)
        else:
            self._not_answered(answer, took)
        self._keep()

    def _stop_thinking(self) -> None:
        """Let go of an evaluation; one that is deaf to it is left behind, unheard."""
        task, self._thinking = self._thinking, None
        if task is not None and not task.done():
            task.cancel()

    def _not_answered(self, answer: Answer, took: float) -> None:
        acts = self._trigger.failed(self._now(), answer.detail)
        self._evaluated("failed", answer, took, detail=answer.detail)
        self._follow(acts)

    async def _apply(self, advice: Advice, answer: Answer, wake: Wake, took: float) -> None:
        watch = tuple(_wanted(advice.watch))
        outcome, message_id, detail = "silent", "", ""
        if advice.intervene:
            message_id, detail = await self._say(advice, wake)
            outcome = "refused" if detail else "intervened"
        acted = outcome != "refused"
        self._last = advice if acted else self._last
        acts = self._trigger.returned(
            self._now(),
            done=advice.done and acted,
            watch=watch,
            committed=acted,
            cost_micro_usd=answer.cost_micro_usd,
        )
        self._lookout.changed()
        committed = tuple(c.identity for c in wake.causes if c.identity) if acted else ()
        self._evaluated(
            outcome,
            answer,
            took,
            detail=detail,
            message_id=message_id,
            committed=committed,
        )
        self._follow(acts)

    async def _say(self, advice: Advice, wake: Wake) -> tuple[str, str]:
        """Queue the words: the message's id, and why they could not be queued."""
        assert self._injector is not None
        text = advice.message.strip()[:_LONGEST_TEXT]
        if not text:
            return "", "it wanted to intervene without a word"
        name = self.spec.name
        body = f"[supervisor {name}] {text}" if name else text
        words = Words(
            message_id=_message_id(self.run_id, name, wake.number, body),
            run_id=self.run_id,
            node_id=wake.node,
            author=name,
            text=body,
        )
        try:
            async with asyncio.timeout(_INJECTION_S):
                await self._injector.inject(words)
        except NotQueued as error:
            return "", str(error)
        except Exception as error:
            return "", f"{type(error).__name__}: {error}"
        return words.message_id, ""

    def _evaluated(
        self,
        outcome: str,
        answer: Answer,
        took: float,
        *,
        detail: str = "",
        message_id: str = "",
        committed: tuple[str, ...] = (),
    ) -> None:
        state = self.state
        self._emit(
            SteeringEvaluated(
                supervisor=self.spec.name,
                node_id=self._wake.node if self._wake else "",
                outcome=outcome,
                number=state.completed,
                limit=self.spec.max_evals,
                reason=answer.advice.reason if answer.advice else "",
                detail=detail,
                message_id=message_id,
                registered=tuple(self._trigger.watchlist.registered()),
                done=state.done,
                failures=state.failures,
                committed=committed,
                model=answer.model,
                input_tokens=answer.input_tokens,
                output_tokens=answer.output_tokens,
                cost_micro_usd=answer.cost_micro_usd,
                duration_s=round(took, 3),
            )
        )


async def _answer(evaluator: Evaluator, snapshot: Snapshot) -> Answer:
    """The evaluator's answer; whatever else it does is an answer without advice."""
    try:
        answer: object = await evaluator.evaluate(snapshot)
    except Exception as error:
        return Answer(detail=f"{type(error).__name__}: {error}")
    if not isinstance(answer, Answer):
        return Answer(detail=f"it answered {type(answer).__name__}, not advice")
    if not isinstance(answer.advice, Advice) and not answer.detail:
        return Answer(detail="it answered without advice")
    return answer


def _wanted(watch: Sequence[object]) -> Iterable[Monitor]:
    """The monitors an evaluator asks for; what cannot be used is left out."""
    for written in watch:
        with contextlib.suppress(BadMonitor):
            yield parse_monitor(written)


def _message_id(run_id: str, name: str, number: int, text: str) -> str:
    """The same for the same words of the same look, whatever process says them."""
    parts = "\0".join((run_id, name, str(number), text))
    return f"msg-{hashlib.blake2b(parts.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _stamp(at: str, otherwise: float) -> float:
    """An event's time in seconds; what cannot be read happened just now."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return otherwise
