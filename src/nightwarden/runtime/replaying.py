"""A resumed run is told its past: each order the kernel gives is answered from the record.

    Invoke ─▶ standing? ─▶ returned, answered    told again, from the record
                        ─▶ new, may be repeated  left to the driver
                        ─▶ failed, cut off       a failure, to be decided on afresh

Nothing of this is recorded a second time. What may not be run again waits, where nobody is
there to decide on it, until everything that does not depend on it is done.

Read next: `past.py`, `recorded.py`, `playback.py`, `driver.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from nightwarden.kernel.effects import Escalate, Invoke
from nightwarden.kernel.plan import NodePlan
from nightwarden.kernel.stimuli import (
    ControlSent,
    Decided,
    Emitted,
    Failed,
    Halted,
    Parked,
    Requested,
    Stimulus,
    Succeeded,
    Unparked,
)
from nightwarden.lineage import show
from nightwarden.runtime.again import ANEW, Again, Before
from nightwarden.runtime.desk import Desk
from nightwarden.runtime.failing import Failure
from nightwarden.runtime.past import Broken, Frame, Key, Past, Returned, Standing
from nightwarden.runtime.playback import Playback, Playbacks
from nightwarden.runtime.recorded import SIGNATURE, Interrupted, RecordedValues, lack, stand_ins
from nightwarden.verdict import Retry, Substitute

CUT_OFF: Final = "it was running when the run's process ended; whether it took effect is not known"


class Replaying:
    """The past of one run, while it is told again. `soon` has a playback go on in its turn."""

    def __init__(
        self,
        past: Past,
        desk: Desk,
        *,
        tell: Callable[[Stimulus], None],
        soon: Callable[[Playback], None],
        blob: Callable[[str], bytes],
        check: Callable[[str, Mapping[str, object]], tuple[tuple[object, ...], Sequence[str]]],
        supervised: bool,
        idle: Callable[[], bool],
    ) -> None:
        self._past = past
        self._desk = desk
        self._tell = tell
        self._check = check
        self._supervised = supervised
        self._idle = idle
        self.playbacks = Playbacks(tell, soon)
        self._values = RecordedValues(desk, blob)
        self._at_once: set[int] = set()
        self._held: list[tuple[Invoke, Key, Standing]] = []

    # -- orders --

    def begin(self, invoke: Invoke) -> bool:
        """Answer an order from the record; False leaves it to the driver."""
        node = self._desk.plan.nodes[invoke.node]
        key = (node.id, invoke.lineage, invoke.attempt)
        standing = self._past.standing(node.type, key)
        match standing:
            case Standing.RETURNED:
                found = self._past.returned.pop(key)
                if found.read or node.type.fans_out or key in self._past.sent:
                    self.playbacks.begin(invoke.call, self._as_it_was(invoke, node, key, found))
                else:
                    self._tell(Succeeded(invoke.call, self._values.of(node, node.outs, found)))
            case Standing.ANSWERED:
                self._answered(invoke, key)
            case Standing.FAILED | Standing.CUT_OFF:
                self._hold(invoke, key, standing)
            case Standing.NEW | Standing.AGAIN:
                error = lack(invoke.inputs)
                if error is None:
                    return False
                self._lack(invoke, error)
        return True

    def again(self, invoke: Invoke) -> Again:
        """What an invocation that is run now had done before."""
        node, key = self._desk.plan.nodes[invoke.node], self._key(invoke)
        past = self._past
        frames = past.frames.get(key, ())
        suspended = past.suspended.get(key, {})
        rejected = past.rejected.get(key, 0)
        if not (frames or suspended or rejected or key in past.sent):
            return ANEW
        return Again(
            frames=[self._before(node, frame) for frame in frames],
            sent=[(sent.target, sent.overrides) for sent in past.sent.get(key, ())],
            rejected=rejected,
            state=suspended.get("state"),
        )

    def _before(self, node: NodePlan, frame: Frame) -> Before:
        plain = self._values.plain(frame)
        return Before(plain, frame.absent, lambda: self._values.of(node, node.outs, frame))

    def decide(self, effect: Escalate) -> bool:
        """Answer an escalation as it was answered; False where it was not."""
        key = (self._desk.plan.nodes[effect.node].id, effect.lineage, effect.attempt)
        number = self._past.known.get(key)
        if number is None or number != effect.number:
            return False
        decision = self._past.interventions[number].decision
        assert decision is not None
        if isinstance(decision.verdict, Retry) and effect.call:
            self._retried(effect, key)
        values: tuple[object, ...] = ()
        problems: Sequence[str] = ()
        if isinstance(decision.verdict, Substitute):
            outputs = decision.verdict.outputs
            if key in self._past.sealed_repairs:
                values = stand_ins(self._desk.plan.nodes[effect.node], outputs)
            else:
                values, problems = self._check(key[0], outputs)
        self._tell(
            Decided(
                escalation=number,
                decision=decision,
                outputs=values,
                problems=tuple(problems),
            )
        )
        return True

    def at_once(self, call: int) -> bool:
        """Whether a retry's delay is over: its attempt is on record."""
        if call in self._at_once:
            self._at_once.discard(call)
            return True
        return False

    def halt(self, call: int) -> bool:
        """End a playback, or what is held; False if the call is neither."""
        held = [h for h in self._held if h[0].call == call]
        if not self.playbacks.end(call) and not held:
            return False
        self._held = [h for h in self._held if h[0].call != call]
        self._tell(Halted(call))
        return True

    def release(self) -> None:
        """Once nothing else moves, what was held back fails."""
        while self._held and self._idle():
            invoke, key, standing = self._held.pop(0)
            self._tell(Unparked(invoke.call))
            self._fail(invoke, key, standing)

    # -- told again --

    def _as_it_was(
        self, invoke: Invoke, node: NodePlan, key: Key, found: Returned
    ) -> Iterator[Stimulus]:
        yield from self._on_the_way(invoke, node, key, found.read)
        outs = node.ends if node.type.fans_out else node.outs
        yield Succeeded(invoke.call, self._values.of(node, outs, found))

    def _on_the_way(
        self, invoke: Invoke, node: NodePlan, key: Key, read: Mapping[str, int]
    ) -> Iterator[Stimulus]:
        """What a call asked for, sent and put out before it ended."""
        asked: dict[str, int] = {}
        for frame in self._past.frames.get(key, ()):
            yield from _requests(invoke.call, asked, frame.read)
            yield Emitted(invoke.call, self._values.of(node, node.outs, frame))
        for number, sent in enumerate(self._past.sent.get(key, ())):
            target = self._desk.plan.node(sent.target).index
            yield ControlSent(invoke.call, target, -number - 1, sent.overrides)
        yield from _requests(invoke.call, asked, read)

    def _answered(self, invoke: Invoke, key: Key) -> None:
        """It failed, and what was decided stands: `decide` is asked for that next."""
        broken, node = self._past.broken[key], self._desk.plan.nodes[invoke.node]

        def steps() -> Iterator[Stimulus]:
            read = broken.facts.get("read", {})
            yield from self._on_the_way(invoke, node, key, read)
            yield _fact(invoke.call, broken)

        self.playbacks.begin(invoke.call, steps())

    def _retried(self, effect: Escalate, key: Key) -> None:
        """Whether its next attempt is on record, so that nobody has to wait for it."""
        node, lineage, attempt = key
        following = (node, lineage, attempt + 1)
        node_type = self._desk.plan.nodes[effect.node].type
        if self._past.standing(node_type, following) is not Standing.NEW:
            self._at_once.add(effect.call)

    # -- what may not be run again --

    def _hold(self, invoke: Invoke, key: Key, standing: Standing) -> None:
        """Without anybody to decide on it, it must not stop what does not depend on it."""
        if self._supervised:
            self._fail(invoke, key, standing)
            return
        self._held.append((invoke, key, standing))
        self._tell(Parked(invoke.call, away=True))

    def _fail(self, invoke: Invoke, key: Key, standing: Standing) -> None:
        node = self._desk.plan.nodes[invoke.node]
        broken = self._past.broken.get(key)
        read = broken.facts.get("read", {}) if broken is not None else {}

        def steps() -> Iterator[Stimulus]:
            yield from self._on_the_way(invoke, node, key, read)
            if broken is not None and standing is Standing.FAILED:
                self._desk.recorder.failures.again(invoke, self._failure(invoke, broken))
                yield _fact(invoke.call, broken)
            else:
                yield self._cut_off(invoke)

        self.playbacks.begin(invoke.call, steps())

    def _cut_off(self, invoke: Invoke) -> Failed:
        binding = self._desk.bindings[invoke.node]
        error = Interrupted(CUT_OFF, code=SIGNATURE)
        shown = binding.shown(invoke.inputs)
        return self._desk.failed_fact(invoke, error, binding, shown, cut_off=True)

    def _lack(self, invoke: Invoke, error: Interrupted) -> None:
        """An input is needed that only its producer could give, and that may not run again."""
        binding = self._desk.bindings[invoke.node]
        fact = self._desk.failed_fact(invoke, error, binding, None)
        self._tell(msgspec.structs.replace(fact, bad_input=True))

    def _failure(self, invoke: Invoke, broken: Broken) -> Failure:
        """The recorded failure, as a supervisor is shown it."""
        node = self._desk.plan.nodes[invoke.node]
        number, _, label = broken.item.partition(" ")
        totals = self._desk.machine.totals(invoke.call)
        return Failure(
            node_id=node.id,
            detail=broken.detail,
            error_type=broken.error_type,
            signature=broken.signature,
            has_candidate=False,
            candidate=None,
            inputs={},
            cost_micro_usd=broken.cost_micro_usd,
            assets=broken.assets,
            retry_safe=node.type.retry_safe,
            label=label,
            number=number or show(invoke.lineage),
            total=totals[-1] if totals else None,
        )

    def _key(self, invoke: Invoke) -> Key:
        return (self._desk.plan.nodes[invoke.node].id, invoke.lineage, invoke.attempt)


def _requests(call: int, asked: dict[str, int], read: Mapping[str, int]) -> Iterator[Stimulus]:
    """The requests between what was asked for and what had been read by then."""
    for slot, number in read.items():
        while asked.get(slot, 0) < number:
            asked[slot] = asked.get(slot, 0) + 1
            yield Requested(call, slot)


def _fact(call: int, broken: Broken) -> Failed:
    """The failure as the kernel was told it; a candidate for repair is gone with its process."""
    facts = {k: v for k, v in broken.facts.items() if k != "read"}
    return Failed(
        call=call,
        signature=broken.signature,
        cost_micro_usd=broken.cost_micro_usd,
        assets=broken.assets,
        **facts,
    )
