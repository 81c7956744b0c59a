"""Drives the kernel with the code of a case, in an order of events drawn from a seed.

    open calls, escalations, delays ──(pick any)──▶ stimulus ──▶ Machine ──▶ effects
                                                                   └──▶ trace, report

What it collects is said in the words of the reference, so that the two can be compared.
Orders that no run may give (more calls of a node than its limit, a step after the last, a
decision without an outcome) fail here.

Read next: `tests/unit/test_kernel_meaning.py`.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from nightwarden.kernel.compiling import compile_plan
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
    Widen,
)
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.plan import NodePlan
from nightwarden.kernel.state import Settings
from nightwarden.kernel.stimuli import (
    ControlEnded,
    ControlSent,
    Decided,
    DelayPassed,
    Emitted,
    Failed,
    Halted,
    Read,
    Requested,
    RunCancelled,
    RunStarted,
    Stimulus,
    Succeeded,
    Suspended,
)
from nightwarden.lineage import Lineage
from nightwarden.spec.catalog import Role, SlotKind
from nightwarden.spec.scopes import analyse
from nightwarden.verdict import DecidedBy, Decision, Fail, Substitute
from reference.acting import Case, Made, codes, judge
from reference.translate import Run, Translator, aligned, tell_trace
from reference.twice import Twice
from reference.words import (
    CONTROL,
    END,
    STREAM,
    Answered,
    At,
    Broken,
    Choices,
    Code,
    Cut,
    Emit,
    EndControl,
    Escalated,
    Invocation,
    Next,
    Running,
    Send,
    Value,
    begin,
)

MAX_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Pace:
    """In which order things happen: the first or last that came, any, or by a rank of nodes.

    `interrupt` ends the run after `after` events: `cancel`, or `suspend` out of a step. With
    `races`, a call that is told to stop may have come to its end before it hears of it. Up to
    `together` items are shown to a reader at once, and put out at once.
    """

    order: str = "first"
    seed: int = 0
    window: int = 1024
    interrupt: str = ""
    after: int = 0
    races: bool = False
    together: int = 0


@dataclass(slots=True, eq=False)
class _Live:
    """A call in progress. `waiting`: for an item, or an answer (`asked`); `paused`: for room;
    `halt`: gently or not, `stuck`: it was halted while it waited."""

    number: int
    plan: NodePlan
    at: At
    running: Running
    order: int
    answer: object = None
    steps: int = 0
    waiting: bool = False
    asked: bool = False
    paused: bool = False
    halt: str = ""
    stuck: bool = False
    shown: dict[str, deque[tuple[int, object]]] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    frames: list[tuple[object, ...]] = field(default_factory=list)


def drive(case: Case, pace: Pace, *, keep_going: bool = False) -> Run:
    """Run a case to its end. Raises `AssertionError` where the kernel breaks its promises."""
    return _Driver(case, pace, keep_going).run()


class _Driver:
    def __init__(self, case: Case, pace: Pace, keep_going: bool) -> None:
        self.case, self.code, self.judge = case, codes(case), judge(case)
        self.keep_going = keep_going
        self.plan = compile_plan(case.workflow, analyse(case.workflow))
        settings = Settings(max_retries=case.max_retries, keep_going=keep_going, window=pace.window)
        self.kernels = Twice(lambda: Machine(self.plan, settings=settings))
        self.machine = self.kernels.machine
        self.words = Translator(self.machine._state.causes)
        self.pace, self.random = pace, random.Random(pace.seed)
        self.calls: dict[int, _Live] = {}
        self.open: list[Escalate] = []
        self.delays: list[Delay] = []
        self.result = Run(self.plan)
        self.ended: dict[tuple[str, Lineage], float] = {}
        self.arrivals: dict[tuple[str, Lineage, str], tuple[int, ...]] = {}
        self.finished: set[int] = set()
        self.count = 0
        self.untold: _Live | None = None
        self.stopping = self.interrupted = False

    def run(self) -> Run:
        self.tell(RunStarted(dict(self.case.inputs)))
        while self.result.status is None:
            self.count += 1
            assert self.count < MAX_STEPS, "the run does not end"
            ready = [c for c in self.calls.values() if not (c.waiting or c.paused)]
            events: list[_Live | Escalate | Delay] = [*ready, *self.open, *self.delays]
            assert events, f"nothing can happen any more: {self.machine.pending()}"
            event = self.pick(events)
            if self.pace.interrupt and self.count > self.pace.after and not self.interrupted:
                self.interrupt(event)
            else:
                self.happen(event)
        return self.collect()

    def interrupt(self, event: _Live | Escalate | Delay) -> None:
        """Cancel the run now, or suspend it out of the next step that is about to run."""
        if self.pace.interrupt == "cancel":
            self.interrupted = True
            self.tell(RunCancelled())
        elif isinstance(event, _Live) and not event.halt:
            self.interrupted = True
            del self.calls[event.number]
            self.tell(Suspended(event.number, "wait for me"))
        else:
            self.happen(event)

    def pick(self, events: Sequence[_Live | Escalate | Delay]) -> _Live | Escalate | Delay:
        match self.pace.order:
            case "first":
                return events[0]
            case "last":
                return events[-1]
            case "any":
                return self.random.choice(events)
            case _:
                return max(events, key=self.rank)

    def rank(self, event: _Live | Escalate | Delay) -> float:
        """Some nodes always come before others: what is slow in one run is fast in the next."""
        name = f"{event.at.node}{event.at.attempt}" if isinstance(event, _Live) else event.call
        return random.Random(f"{self.pace.seed} {name}").random()

    def happen(self, event: _Live | Escalate | Delay) -> None:
        match event:
            case Escalate():
                self.open.remove(event)
                self.decide(event)
            case Delay():
                self.delays.remove(event)
                self.tell(DelayPassed(event.call))
            case _:
                self.step(event)

    # ── one step of a call ───────────────────────────────────────────────────────────────

    def step(self, call: _Live) -> None:
        if call is not self.untold:
            self.tell_rest()
        if call.halt == "gently" or (call.halt and (call.stuck or not self.pace.races)):
            self.halted(call)
            return
        try:
            order = call.running.send(call.answer)
        except StopIteration as stop:
            self.tell_rest()
            del self.calls[call.number]
            outs = call.plan.ends if call.plan.type.fans_out else call.plan.outs
            self.tell(Succeeded(call.number, aligned(outs, stop.value)))
            return
        except Broken as broken:
            self.tell_rest()
            del self.calls[call.number]
            if call.halt and not self.stopping:
                self.ended[call.at.node, call.at.lineage] = call.steps
            facts = {k: v for k, v in vars(broken).items() if k in Failed.__struct_fields__}
            self.tell(Failed(call=call.number, **facts))
            return
        call.answer = None
        if call.halt:
            self.halted(call)
        elif isinstance(order, Emit):
            call.steps += 1
            call.frames.append(aligned(call.plan.outs, order.frame))
            self.untold = call
            if len(call.frames) >= min(self.pace.together, self.machine.room(call.number)):
                self.tell_rest()
        elif isinstance(order, Next):
            self.next(call, order.slot)
        else:
            self.control(call, order)

    def next(self, call: _Live, slot: str) -> None:
        shown = call.shown.get(slot)
        if shown and (call.used or self.machine.wanted(call.number)):
            call.waiting, self.untold = True, call
            call.used[slot] += 1
            self.fed(call, slot, *shown.popleft())
            return
        call.shown.pop(slot, None)
        call.waiting = True
        self.tell(Requested(call.number, slot, self.pace.together))

    def tell_rest(self) -> None:
        """Tell what one call has done and not yet told, before anything else happens."""
        call, self.untold = self.untold, None
        if call is None:
            return
        used, frames = dict(call.used), list(call.frames)
        call.used.clear()
        call.frames.clear()
        for slot, number in used.items():
            self.tell(Read(call.number, slot, number))
        if frames:
            self.tell(Emitted(call.number, frames[0], frames[1:]))

    def control(self, call: _Live, order: Send | EndControl) -> None:
        target = self.plan.node(order.target).index
        if isinstance(order, EndControl):
            call.steps += 1
            self.tell(ControlEnded(call.number, target))
            return
        call.waiting = call.asked = order.awaits
        call.steps += not order.awaits
        self.tell(ControlSent(call.number, target, self.count, dict(order.overrides), order.awaits))

    def halted(self, call: _Live) -> None:
        del self.calls[call.number]
        here = (call.at.node, call.at.lineage)
        if not self.stopping:
            self.ended[here] = call.steps + 0.5 * call.asked
        self.tell(Halted(call.number))

    def decide(self, escalate: Escalate) -> None:
        node = self.plan.nodes[escalate.node]
        allowed = frozenset(escalate.allowed)
        verdict = self.judge(node.id, escalate.lineage, escalate.attempt, allowed)
        outputs: tuple[object, ...] = ()
        if isinstance(verdict, Substitute):
            outputs = aligned(node.outs, verdict.outputs)
        unchosen = self.keep_going and isinstance(verdict, Fail)
        by = DecidedBy.DEFAULT if unchosen else DecidedBy.AGENT
        decision = Decision(verdict=verdict, decided_by=by)
        self.tell(Decided(escalation=escalate.number, decision=decision, outputs=outputs))

    # ── what the kernel orders ───────────────────────────────────────────────────────────

    def tell(self, stimulus: Stimulus) -> None:
        self.tell_rest()
        for effect in self.kernels.handle(stimulus):
            assert self.result.status is None, f"{effect} after the end"
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        match effect:
            case Invoke():
                self.invoke(effect)
            case Feed() | EndFeed() | Pause() | Resume() | Halt() if effect.call not in self.calls:
                raise AssertionError(f"{effect} for a call that is over")
            case Feed(call=number, slot=slot, index=index, value=value, shown=shown):
                self.fed(self.calls[number], slot, index, value)
                self.calls[number].shown[slot] = deque(shown)
            case EndFeed(call=number):
                self.answer(number, END)
            case Answer(call=number, outputs=outputs):
                if number in self.calls and not self.calls[number].halt:
                    assert self.calls[number].asked
                    self.calls[number].asked = False
                    plain = None if outputs is None else self.words.plain(outputs)
                    self.answer(number, Answered(plain))  # type: ignore[arg-type]
            case CloseRoot(node=index, lineage=lineage, mark="cut"):
                if self.plan.nodes[index].type.role is not Role.NONE:
                    self.ended[self.plan.nodes[index].id, lineage] = 0
            case Pause(call=number):
                self.calls[number].paused = True
            case Resume(call=number):
                assert self.calls[number].paused
                self.calls[number].paused = False
            case Halt(call=number, gently=gently):
                call = self.calls[number]
                call.halt = "gently" if gently else "at once"
                call.stuck = call.paused or call.waiting
                call.paused = call.waiting = False
            case Escalate():
                self.escalated(effect)
            case Delay():
                self.delays.append(effect)
            case Apply(escalation=number):
                self.result.outcomes[-number] += 1
                self.open = [e for e in self.open if e.number != number]
            case Conclude(escalation=number):
                self.result.outcomes[number] += 1
            case Prune(node=index, lineage=lineage, kind=kind):
                assert index not in self.finished
                node_type = self.plan.nodes[index].type
                if kind == "failed" and node_type.reads and node_type.role is Role.NONE:
                    self.ended[self.plan.nodes[index].id, lineage] = -1
            case Stop():
                self.stopping = True
                self.delays.clear()
            case Widen():
                self.result.widened += 1
            case Finish(node=index):
                assert index not in self.finished, f"{self.plan.nodes[index].id} finishes twice"
                self.finished.add(index)
            case Ended(status=status, reason=reason):
                self.result.status, self.result.reason = status, reason
            case _:
                pass

    def invoke(self, effect: Invoke) -> None:
        node = self.plan.nodes[effect.node]
        assert not self.stopping, "a stopping run starts nothing"
        assert effect.node not in self.finished, f"{node.id} was finished"
        inputs = {
            slot.name: STREAM
            if slot.kind is SlotKind.STREAM and value is None
            else self.words.plain(value)
            for slot, value in zip(node.slots, effect.inputs, strict=True)
        }
        at = At(node.id, effect.lineage, effect.attempt, inputs)
        self.result.invocations.append(
            Invocation(node.id, at.lineage, at.attempt, tuple(sorted(inputs.items())))
        )
        code: Code = self.code[node.id]
        assert effect.call not in self.calls
        self.calls[effect.call] = _Live(effect.call, node, at, begin(code, at), self.count)
        busy = [c for c in self.calls.values() if c.plan is node and not (c.waiting or c.paused)]
        limit = node.spec.run.concurrency or 1
        assert len(busy) <= limit, f"{len(busy)} calls of {node.id} at once, {limit} allowed"

    def fed(self, call: _Live, slot: str, index: int, value: object) -> None:
        self.answer(call.number, (index, self.words.plain(value)))
        self.read(call, slot, index)

    def answer(self, number: int, value: object) -> None:
        call = self.calls[number]
        assert call.waiting, f"{call.at.node} is fed what it did not ask for"
        call.waiting, call.answer = False, value
        call.steps += 1

    def read(self, call: _Live, slot: str, index: int) -> None:
        if call.plan.type.inputs[slot].by_arrival:
            key = (call.at.node, call.at.lineage, slot)
            self.arrivals[key] = (*self.arrivals.get(key, ()), index)

    def escalated(self, effect: Escalate) -> None:
        self.open.append(effect)
        self.result.escalations.append(
            Escalated(
                self.plan.nodes[effect.node].id,
                effect.lineage,
                effect.attempt,
                frozenset(effect.allowed),
                effect.emitted,
                self.words.by_escalation(effect.caused_by),
            )
        )

    def senders(self) -> dict[tuple[str, Lineage], tuple[str, ...]]:
        """Who sent each event of a controlled node, by its number."""
        found: dict[tuple[str, Lineage], tuple[str, ...]] = {}
        for (node_id, slot), events in self.result.captures.items():
            for lineage, event in events.items() if slot == CONTROL else ():
                assert isinstance(event, Value)
                assert isinstance(event.value, tuple)
                ((_, said),) = event.value
                assert isinstance(said, Made)
                before = found.get((node_id, lineage[:-1]), ())
                assert lineage[-1] == len(before), "events are numbered as they come"
                found[node_id, lineage[:-1]] = (*before, str(said.origin[0]))
        return found

    def collect(self) -> Run:
        result, trace = self.result, self.machine.trace
        assert trace is not None
        tell_trace(trace, result, self.words)
        cuts = {
            key: Cut(int(steps), result.closings[key].n)
            for key, steps in self.ended.items()
            if key in result.closings and result.closings[key].cause is None
        }
        cancels = {key: steps for key, steps in self.ended.items() if key not in cuts}
        result.choices = Choices(cuts, self.arrivals, cancels, self.senders())
        result.interrupted = self.interrupted
        result.pending = self.machine.pending()
        result.report = self.machine.report()
        assert result.report == self.kernels.untraced.report()
        result.causes = self.words.all_causes()
        assert self.machine._state.awaiting == 0, "calls that are over still wait for answers"
        result.unfinished = [n.id for n in self.plan.nodes if n.index not in self.finished]
        return result
