"""What a workflow means: nodes in topological order, each for all lineages of its scope.

No scheduler and no concurrency:

    what has arrived ──join──▶ pruned: its slots are Absent
                         └───▶ run ──▶ values, frames ──▶ settled slots, a closing
                                └────▶ broken ──verdict──▶ run again, or settled otherwise

Three things hang on the order of events and come in as `Choices`: where a fan-out that
nobody reads any more was cut short, the order in which an arrival-order reader reads, and
when a failed item cancelled a reader that had not got there yet.

Read next: `accounts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from nightwarden.lineage import Lineage, Scope
from nightwarden.spec.catalog import NodeType
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import INPUTS, Workflow
from nightwarden.verdict import Action, EndStream, Retry, Skip, Substitute, Verdict, action_of
from reference.joining import Arrivals, Inbox, Items, join
from reference.words import (
    ABSENT,
    END,
    NONE,
    Absent,
    At,
    Broken,
    Cause,
    Causes,
    Choices,
    Closing,
    Code,
    Emit,
    Ending,
    Escalated,
    Invocation,
    Judge,
    Kind,
    Meaning,
    Next,
    Reading,
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
    if node_type.reads or emitted:
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
        self.types, self.scopes, self.order = workflow.types, analysis.scopes, analysis.order
        self.code, self.judge, self.keep_going = code, judge, keep_going
        self.max_retries, self.choices = max_retries, choices
        self.meaning = Meaning()
        self.arrivals = Arrivals(workflow, self.scopes, self.meaning, choices)

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
        closings = self.meaning.closings
        above = self.lineages(scope[:-1])
        return [(*p, i) for p in above for i in range(closings[scope[-1], p].n)]

    def node(self, node_id: str, lineage: Lineage) -> None:
        arrived = self.arrivals.at(node_id, lineage)
        streams = {n: i.value for n, i in arrived.items() if isinstance(i.value, Items)}
        joined = join(self.types[node_id], arrived)
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
            if isinstance(order, Emit):
                play.frames.append((order.frame, play.causes))
                answer = None
            else:
                answer = self.read(play, order)
        raise AssertionError

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

    # ── settling ─────────────────────────────────────────────────────────────────────────

    def succeed(self, play: _Play, outputs: Mapping[str, object], word: str) -> None:
        node_id, lineage = play.at.node, play.at.lineage
        for name, slot in self.types[node_id].outputs.items():
            if not slot.stream:
                self.put(node_id, name, lineage, outputs.get(name, ABSENT), play.causes)
        cut = self.choices.cuts.get((node_id, lineage))
        frames = play.frames[: cut.n] if cut else play.frames
        self.close(node_id, lineage, frames, None, play.causes)
        self.meaning.endings[node_id, lineage] = Ending(word)
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
        for name, slot in self.types[node_id].outputs.items():
            for i, (frame, carried) in enumerate(frames if slot.stream else ()):
                self.put(node_id, name, (*lineage, i), frame.get(name, ABSENT), carried)

    def put(self, node_id: str, name: str, lineage: Lineage, value: object, causes: Causes) -> None:
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
