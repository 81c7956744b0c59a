"""What the tests of steering share: events in short, and scripted ends of every port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nightwarden.events import Event
from nightwarden.spec.monitors import parse_monitor
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Advice, Answer, Fact, NotQueued, Sink, Snapshot, Words
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import Act, Deferred, Exhausted, Parked, Silent, Wake

SILENCE = Advice(intervene=False)


def event(kind: str, node: str = "", **fields: Any) -> dict[str, Any]:
    """An event as a record has it."""
    return {"type": kind, "node_id": node, **fields}


def seen(kind: str, node: str = "", **fields: Any) -> Observed:
    return Observed(event(kind, node, **fields))


def spec(*monitors: str, **fields: Any) -> SupervisorSpec:
    fields.setdefault("name", "dog")
    return SupervisorSpec(monitors=tuple(map(parse_monitor, monitors)), **fields)


class Clockwork:
    """A trigger, a clock, and an evaluator that takes `thinking_s` and says what it is told."""

    def __init__(
        self,
        given: SupervisorSpec,
        *,
        thinking_s: float = 0.0,
        advice: Callable[[int], Advice | None] = lambda _n: SILENCE,
        trigger: Trigger | None = None,
        now: float = 0.0,
    ) -> None:
        self.trigger = trigger or Trigger(given, explain=True)
        self.thinking_s = thinking_s
        self.advice = advice
        self.now = now
        self.acts: list[tuple[float, Act]] = []
        self._answer: float | None = None
        self._take(self.trigger.begin(now))

    def at(self, when: float, kind: str, node: str = "", /, **fields: Any) -> None:
        """An event, after everything that is due before it."""
        self.until(when)
        self._take(self.trigger.see(seen(kind, node, **fields), when))

    def until(self, end: float) -> None:
        while True:
            times = [t for t in (self._answer, self.trigger.deadline()) if t is not None]
            if not times or min(times) > end:
                break
            self.now = max(self.now, min(times))
            if self._answer is not None and self._answer <= self.now:
                self._return()
            else:
                self._take(self.trigger.due(self.now))
        self.now = end

    def _return(self) -> None:
        self._answer = None
        advice = self.advice(len(self.wakes))
        if advice is None:
            self._take(self.trigger.failed(self.now, "no answer"))
            return
        watch = [parse_monitor(w) for w in advice.watch]
        committed = not advice.intervene or bool(advice.message.strip())
        self._take(
            self.trigger.returned(self.now, done=advice.done, watch=watch, committed=committed)
        )

    def _take(self, acts: Iterable[Act]) -> None:
        for act in acts:
            self.acts.append((round(self.now, 3), act))
            if isinstance(act, Wake):
                self._answer = self.now + self.thinking_s

    @property
    def wakes(self) -> list[tuple[float, Wake]]:
        return [(at, act) for at, act in self.acts if isinstance(act, Wake)]

    @property
    def woke_at(self) -> list[float]:
        return [at for at, _ in self.wakes]

    def of(self, kind: type[Act]) -> list[Any]:
        return [act for _, act in self.acts if isinstance(act, kind)]

    @property
    def deferred(self) -> list[Deferred]:
        return self.of(Deferred)

    @property
    def parked(self) -> list[Parked]:
        return self.of(Parked)

    @property
    def exhausted(self) -> list[Exhausted]:
        return self.of(Exhausted)

    @property
    def silent(self) -> list[Silent]:
        return self.of(Silent)


# -- scripted ends of the ports --


class Watching:
    """An observation of a scripted run."""

    def __init__(self, cut: int, before: Iterable[Fact]) -> None:
        self.cut = cut
        self._before = tuple(before)
        self.released = 0

    def history(self) -> Iterable[Fact]:
        return self._before

    def release(self) -> None:
        self.released += 1


class Run:
    """An observer of one run, whose events the test sends itself."""

    def __init__(self, before: Iterable[Mapping[str, Any]] = ()) -> None:
        self.before = list(before)
        self.seq = max((int(e.get("seq", 0)) for e in self.before), default=0)
        self.sinks: list[Sink] = []
        self.watching = Watching(self.seq, self.before)

    def observe(self, run_id: str, sink: Sink) -> Watching:
        self.sinks.append(sink)
        return self.watching

    def say(self, kind: str, node: str = "", **fields: Any) -> None:
        self.seq += 1
        for sink in self.sinks:
            sink({"seq": self.seq, **event(kind, node, **fields)})

    def end(self) -> None:
        for sink in self.sinks:
            sink(None)


class Judge:
    """An evaluator that answers from a list, then with silence."""

    def __init__(self, *answers: object, takes_s: float = 0.0) -> None:
        self.answers = list(answers)
        self.takes_s = takes_s
        self.asked: list[tuple[float, Snapshot]] = []

    async def evaluate(self, snapshot: Snapshot) -> Answer:
        self.asked.append((round(asyncio.get_running_loop().time(), 3), snapshot))
        await asyncio.sleep(self.takes_s)
        answer = self.answers.pop(0) if self.answers else SILENCE
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Advice):
            return Answer(advice=answer, input_tokens=100, output_tokens=10, cost_micro_usd=500)
        return answer  # type: ignore[return-value]

    @property
    def asked_at(self) -> list[float]:
        return [at for at, _ in self.asked]


class Box:
    """An injector that keeps what it is given, or refuses it."""

    def __init__(self, refuse: str = "") -> None:
        self.refuse = refuse
        self.words: list[Words] = []

    async def inject(self, words: Words) -> None:
        if self.refuse:
            raise NotQueued(self.refuse)
        if words.message_id not in [w.message_id for w in self.words]:
            self.words.append(words)


def kinds(events: Iterable[Event]) -> list[str]:
    return [str(e.__struct_config__.tag) for e in events]
