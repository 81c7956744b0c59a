"""What a workflow means: nodes in topological order, each for all lineages of its scope.

No scheduler and no concurrency:

    what has arrived ──join──▶ pruned: its slots are Absent
                         └───▶ run ──▶ values, frames ──▶ settled slots, a closing
                                └────▶ broken ──verdict──▶ run again, or settled otherwise

A node is settled when its turn comes, or earlier if another one needs it: a loop its body, a
caller the node whose answer it awaits. `Zip`, `Cross` and `Loop` have no code; what they make
of their inputs stands in `pairing.py` and in `_Interpreter.loop`.

Four things hang on the order of events and come in as `Choices`: where a fan-out that
nobody reads any more was cut short, the order in which an arrival-order reader reads, when
a failed item cancelled a reader that had not got there yet, and who of several controllers
sent its events first.

Read next: `accounts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from nightwarden.lineage import Lineage, Scope
from nightwarden.spec.catalog import MISSING, NodeType, Role
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import INPUTS, Workflow
from nightwarden.verdict import Action, EndStream, Retry, Skip, Substitute, Verdict, action_of
from reference.controlling import Events, outcome
from reference.joining import Arrivals, Inbox, Items, join
from reference.pairing import Paired, crossed, pair, zipped
from reference.words import (
    ABSENT,
    CONTROL,
    END,
    NONE,
    Absent,
    Answered,
    At,
    Broken,
    Cause,
    Causes,
    Choices,
    Closing,
    Code,
    Emit,
    EndControl,
    Ending,
    Escalated,
    Invocation,
    Judge,
    Kind,
    Meaning,
    Next,
    Order,
    Reading,
    Send,
    Settlement,
    Value,
    begin,
    part,
    union,
)

MAX_RETRY_DELAY_S = 300.0

Frame = tuple[Mapping[str, object], Causes]


def interpret(
    workflow: Workflow,
    inputs: Mapping[str, object],
    code: Mapping[str, Code],
    judge: Judge,
    *,
    keep_going: bool = False,
    max_retries: int = 2,
    choices: Choices | None = None,
) -> Meaning:
    """What happens when the workflow runs. `code` and `judge` must answer alike every time."""
    it = _Interpreter(workflow, code, judge, keep_going, max_retries, choices or Choices())
    return it.run(inputs)


def allowed_actions(
    node_type: NodeType, broken: Broken, attempt: int, emitted: int, max_retries: int
) -> frozenset[Action]:
    """The table of supervision.md §1."""
    if broken.bad_input:
        return frozenset((Action.SKIP, Action.FAIL))
    if emitted or (node_type.reads and node_type.role is Role.NONE):
        return frozenset((Action.END_STREAM, Action.FAIL))
    actions = {Action.SKIP, Action.FAIL}
    spent = broken.cost_micro_usd or not broken.cost_known or broken.assets
    safe = (node_type.retry_safe or broken.idempotent) and broken.copied and not broken.unknown
    soon = (broken.retry_after_s or 0.0) <= MAX_RETRY_DELAY_S
    if safe and soon and not spent and attempt <= max_retries:
        actions.add(Action.RETRY)
    if not node_type.fans_out and broken.has_candidate and broken.checkable:
        actions.add(Action.SUBSTITUTE)
    return frozenset(actions)


@dataclass(slots=True)
class _Play:
    """One attempt: what the node has done so far, and what its values carry by now."""

    at: At
    streams: Mapping[str, Items]
    causes: Causes
    frames: list[Frame] = field(default_factory=list)


class _Cancelled(Exception):
    """A failed item has reached a running reader."""


def failure_of(streams: Mapping[str, Items]) -> Absent:
    """The absence that a cancelled reader puts out: every failure in what it reads."""
    failures = [f for items in streams.values() for f in items.failures()]
    assert failures, "a reader was cancelled, but nothing failed"
    return union(failures)


class _Interpreter:
    def __init__(
        self,
        workflow: Workflow,
        code: Mapping[str, Code],
        judge: Judge,
        keep_going: bool,
        max_retries: int,
        choices: Choices,
    ) -> None:
        analysis = analyse(workflow)
        assert not analysis.problems, analysis.problems
        self.workflow = workflow
        self.types, self.scopes, self.order = workflow.types, analysis.scopes, analysis.order
        self.code, self.judge, self.keep_going = code, judge, keep_going
        self.max_retries, self.choices = max_retries, choices
        self.meaning = Meaning()
        self.begun: set[tuple[str, Lineage]] = set()
        self.events = Events(workflow, self.scopes, self.meaning, choices)
        self.arrivals = Arrivals(
            workflow, self.scopes, self.meaning, choices, self.node, self.closing
        )

    def run(self, inputs: Mapping[str, object]) -> Meaning:
        for name, value in inputs.items():
            self.meaning.slots[INPUTS, name] = {(): Value(value)}
        for node_id in self.order:
            for lineage in self.lineages(self.scopes[node_id]):
                self.node(node_id, lineage)
        return self.meaning

    def lineages(self, scope: Scope) -> list[Lineage]:
        if not scope:
            return [()]
        above = self.lineages(scope[:-1])
        return [(*p, i) for p in above for i in range(self.closing(scope[-1], p).n)]

    def closing(self, root: str, parent: Lineage) -> Closing:
        """How a root has closed under a parent, after whatever puts out its items."""
        target = self.events.roots.get(root)
        if target is None:
            self.node(root, parent)
        elif (root, parent) not in self.meaning.closings:
            controllers = self.events.controllers(target)
            for node_id in controllers:
                if self.events.takes(target, parent, node_id):
                    self.node(node_id, parent)
            endings = {n: self.meaning.endings.get((n, parent)) for n in controllers}
            self.events.close(target, parent, endings)
        return self.meaning.closings[root, parent]

    def node(self, node_id: str, lineage: Lineage) -> None:
        """Settle a node for a lineage, once."""
        if (node_id, lineage) in self.meaning.endings:
            return
        assert (node_id, lineage) not in self.begun, f"{node_id} {lineage} waits for itself"
        self.begun.add((node_id, lineage))
        arrived = self.arrivals.at(node_id, lineage)
        streams = {n: i.value for n, i in arrived.items() if isinstance(i.value, Items)}
        joined = join(self.types[node_id], arrived)
        if isinstance(joined, Inbox) and self.types[node_id].role is not Role.NONE:
            self.run_without_code(node_id, lineage, joined, streams)
            return
        if isinstance(joined, Inbox) and self.choices.cancels.get((node_id, lineage), 0) < 0:
            joined = failure_of(streams)
        elif isinstance(joined, Absent) and joined.kind is Kind.FAILED:
            joined = union([joined, *(f for s in streams.values() for f in s.failures())])
        if isinstance(joined, Inbox):
            self.invoke(node_id, lineage, joined, streams)
        else:
            self.give_up(node_id, lineage, "pruned", joined)
            self.leave(node_id, lineage, streams, joined.kind.word, joined)

    # ── running ──────────────────────────────────────────────────────────────────────────

    def invoke(
        self, node_id: str, lineage: Lineage, inbox: Inbox, streams: Mapping[str, Items]
    ) -> None:
        inputs = tuple(sorted(inbox.inputs.items()))
        for attempt in count(1):
            self.meaning.invocations.append(Invocation(node_id, lineage, attempt, inputs))
            play = _Play(At(node_id, lineage, attempt, inbox.inputs), streams, inbox.causes)
            try:
                self.succeed(play, self.play(play), "succeeded")
            except _Cancelled:
                self.lose(play, "cancelled", failure_of(streams))
            except Broken as broken:
                verdict = self.escalate(play, broken)
                if isinstance(verdict, Retry):
                    continue
                self.apply(play, verdict)
            return

    def play(self, play: _Play) -> Mapping[str, object]:
        """Run node code to its end, or to where it was cut short."""
        here = (play.at.node, play.at.lineage)
        cut, cancelled = self.choices.cuts.get(here), self.choices.cancels.get(here)
        running = begin(self.code[play.at.node], play.at)
        answer: object = None
        for steps in count():
            if cut is not None and steps == cut.steps:
                return {}
            if steps == cancelled:
                raise _Cancelled
            try:
                order = running.send(answer)
            except StopIteration as stop:
                outputs: Mapping[str, object] = stop.value
                return outputs
            answer = self.follow(play, order, cut_off=cancelled == steps + 0.5)
        raise AssertionError

    def follow(self, play: _Play, order: Order, *, cut_off: bool) -> object:
        """Do what node code asks for; `cut_off`: it was cancelled before it was answered."""
        match order:
            case Emit():
                play.frames.append((order.frame, play.causes))
                return None
            case Next():
                return self.read(play, order)
            case EndControl():
                self.events.end(order.target, play.at.lineage, play.at.node, play.causes)
                return None
            case Send():
                return self.send(play, order, cut_off=cut_off)

    def send(self, play: _Play, order: Send, *, cut_off: bool) -> Answered | None:
        """One event for a controlled node, and the answer if it is awaited."""
        target, sender = (order.target, play.at.lineage), play.at.node
        if not self.events.takes(*target, sender) or (
            order.awaits and self.events.waits_for(*target, sender)
        ):
            return Answered(None) if order.awaits else None
        lineage = self.events.add(*target, sender, order.overrides, play.causes)
        if cut_off:
            raise _Cancelled
        if not order.awaits:
            return None
        self.node(order.target, lineage)
        return outcome(self.workflow, self.meaning, order.target, lineage)

    def read(self, play: _Play, order: Next) -> object:
        """The next item with a value; what is passed over on the way is survived."""
        items = play.streams[order.slot]
        while items.passed < len(items.places):
            (index, _), settled = items.places[items.passed]
            items.passed += 1
            if isinstance(settled, Value):
                play.causes |= settled.causes
                return index, settled.value
            self.survive(play, settled)
        items.ended = True
        play.causes |= items.closing.causes
        if items.closing.cause is not None:
            self.survive(play, items.closing.cause)
        return END

    def survive(self, play: _Play, absent: Absent) -> None:
        if absent.kind is Kind.FAILED:
            raise _Cancelled
        play.causes |= absent.interventions

    def escalate(self, play: _Play, broken: Broken) -> Verdict | None:
        """The verdict, or None where it is not allowed."""
        at, emitted = play.at, len(play.frames)
        node_type = self.types[at.node]
        allowed = allowed_actions(node_type, broken, at.attempt, emitted, self.max_retries)
        self.meaning.escalations.append(
            Escalated(at.node, at.lineage, at.attempt, allowed, emitted, play.causes)
        )
        verdict = self.judge(at.node, at.lineage, at.attempt, allowed)
        return verdict if action_of(verdict) in allowed else None

    def apply(self, play: _Play, verdict: Verdict | None) -> None:
        here = frozenset((Cause(play.at.node, play.at.lineage),))
        match verdict:
            case Substitute(outputs=outputs):
                play.causes |= here
                self.succeed(play, outputs, "repaired")
            case Skip():
                self.lose(play, "skipped", Absent(Kind.LOST, here))
            case EndStream():
                self.lose(play, "ended early", Absent(Kind.LOST, here))
            case _:
                if not self.keep_going and self.meaning.stopped is None:
                    self.meaning.stopped = (play.at.node, play.at.lineage)
                self.lose(play, "failed", Absent(Kind.FAILED, here))

    # ── nodes without code ───────────────────────────────────────────────────────────────

    def run_without_code(
        self, node_id: str, lineage: Lineage, inbox: Inbox, streams: Mapping[str, Items]
    ) -> None:
        """`Zip`, `Cross` or `Loop`: one attempt, and no invocation of anybody's code."""
        play = _Play(At(node_id, lineage, 1, self.given(node_id, inbox)), streams, inbox.causes)
        if self.types[node_id].role is Role.LOOP:
            self.loop(play)
        else:
            self.pair(play)

    def given(self, node_id: str, inbox: Inbox) -> Mapping[str, object]:
        """What a node is given: defaults, properties, what is wired, what a control event says."""
        slots = self.types[node_id].inputs.items()
        defaults = {name: slot.default for name, slot in slots if slot.default is not MISSING}
        said = inbox.inputs.get(CONTROL, ())
        assert isinstance(said, tuple)
        return {**defaults, **self.workflow.node(node_id).properties, **inbox.inputs, **dict(said)}

    def pair(self, play: _Play) -> None:
        left, right = play.streams["left"], play.streams["right"]
        limit = play.at.inputs.get("limit")
        made = crossed(left, right, limit) if isinstance(limit, int) else zipped(left, right)
        cut = self.choices.cuts.get((play.at.node, play.at.lineage))
        if cut is not None:
            used = (cut.n, cut.n) if limit is None else (cut.n // len(right.places), None)
            made = Paired(made.pairs[: cut.n], (used[0], used[1] or len(right.places)))
        play.frames += [(pair(*sides, i, play.causes), NONE) for i, sides in enumerate(made.pairs)]
        for items, passed in zip((left, right), made.passed, strict=True):
            items.passed = passed
            items.ended = cut is None and passed == len(items.places)
        if made.broken:
            play.causes |= made.read
            self.apply(play, self.escalate(play, Broken()))
        else:
            play.causes |= made.causes
            self.end(play, {}, made.cause)

    def loop(self, play: _Play) -> None:
        """Do, then ask; what an iteration hands back is settled before the next one begins."""
        node_id, lineage, given = play.at.node, play.at.lineage, play.at.inputs
        value = given["initial"]
        most = given["max_iterations"]
        assert isinstance(most, int)
        for index in count():
            play.frames.append(({"value": value, "index": index}, play.causes))
            self.frame(node_id, lineage, index, play.frames[index])
            back = self.arrivals.fed_back(node_id, (*lineage, index))
            absents = [s for s in back.values() if isinstance(s, Absent)]
            if absents:
                self.end(play, {"done": union(absents)}, union(absents))
                return
            values = {name: s.value for name, s in back.items() if isinstance(s, Value)}
            play.causes = play.causes.union(*(s.causes for s in back.values()))
            value = values["next"]
            go_on = values.get("condition", given["condition"])
            if not isinstance(go_on, bool):
                self.apply(play, self.escalate(play, Broken()))
                return
            if not go_on or index + 1 >= most:
                self.end(play, {"done": value}, None)
                return

    def end(self, play: _Play, outputs: Mapping[str, object], cause: Absent | None) -> None:
        """It has put out its last item, earlier than it might have if there is a cause."""
        node_id, lineage = play.at.node, play.at.lineage
        for name, slot in self.types[node_id].outputs.items():
            if not slot.stream:
                self.put(node_id, name, lineage, outputs[name], play.causes)
        self.close(node_id, lineage, play.frames, cause, play.causes)
        self.meaning.endings[node_id, lineage] = Ending("succeeded", causes=play.causes)
        self.leave(node_id, lineage, play.streams, cause.kind.word if cause else "left", cause)

    # ── settling ─────────────────────────────────────────────────────────────────────────

    def succeed(self, play: _Play, outputs: Mapping[str, object], word: str) -> None:
        node_id, lineage = play.at.node, play.at.lineage
        for name, slot in self.types[node_id].outputs.items():
            if not slot.stream:
                self.put(node_id, name, lineage, outputs.get(name, ABSENT), play.causes)
        cut = self.choices.cuts.get((node_id, lineage))
        frames = play.frames[: cut.n] if cut else play.frames
        self.close(node_id, lineage, frames, None, play.causes)
        self.meaning.endings[node_id, lineage] = Ending(word, causes=play.causes)
        self.leave(node_id, lineage, play.streams, "left", None)

    def lose(self, play: _Play, word: str, absent: Absent) -> None:
        self.give_up(play.at.node, play.at.lineage, word, absent, play.frames)
        self.leave(play.at.node, play.at.lineage, play.streams, absent.kind.word, absent)

    def give_up(
        self,
        node_id: str,
        lineage: Lineage,
        word: str,
        absent: Absent,
        frames: Sequence[Frame] = (),
    ) -> None:
        """All slots are absent, but for the frames that are out already."""
        for name, slot in self.types[node_id].outputs.items():
            if not slot.stream:
                self.settle(node_id, name, lineage, absent)
        self.close(node_id, lineage, frames, absent)
        self.meaning.endings[node_id, lineage] = Ending(word, absent)

    def close(
        self,
        node_id: str,
        lineage: Lineage,
        frames: Sequence[Frame],
        absent: Absent | None,
        causes: Causes = NONE,
    ) -> None:
        if not self.types[node_id].fans_out:
            return
        self.meaning.closings[node_id, lineage] = Closing(len(frames), absent, causes)
        if self.types[node_id].role is Role.LOOP:
            return  # its iterations have been put out as they came
        for index, frame in enumerate(frames):
            self.frame(node_id, lineage, index, frame)

    def frame(self, node_id: str, lineage: Lineage, index: int, frame: Frame) -> None:
        """One item, on every slot that streams."""
        for name, slot in self.types[node_id].outputs.items():
            if slot.stream:
                self.put(node_id, name, (*lineage, index), frame[0].get(name, ABSENT), frame[1])

    def put(self, node_id: str, name: str, lineage: Lineage, value: object, causes: Causes) -> None:
        if isinstance(value, Value | Absent):
            self.settle(node_id, name, lineage, value)
            return
        branch = Absent(Kind.NOT_TAKEN, frozenset((Cause(node_id, slot=name),)))
        self.settle(node_id, name, lineage, branch if value is ABSENT else Value(value, causes))

    def settle(self, node_id: str, name: str, lineage: Lineage, settled: Settlement) -> None:
        """A slot settles, and with it the fields of its value that can be wired by name."""
        named = {name: settled}
        for field_ in self.types[node_id].projections.values():
            if field_.slot == name and isinstance(settled, Value):
                named[field_.name] = Value(part(settled.value, field_.name), settled.causes)
            elif field_.slot == name:
                named[field_.name] = settled
        for key, settlement in named.items():
            slot = self.meaning.slots.setdefault((node_id, key), {})
            assert lineage not in slot, f"{node_id}.{key} {lineage} is settled twice"
            slot[lineage] = settlement

    def leave(
        self,
        node_id: str,
        lineage: Lineage,
        streams: Mapping[str, Items],
        rest: str,
        cause: Absent | None,
    ) -> None:
        """The slots of a reader take everything it has not read, at once."""
        for name, items in streams.items():
            places = tuple(place for place, _ in items.places)
            self.meaning.readings[node_id, lineage, name] = Reading(
                items.passed, places, items.ended, rest, cause
            )
