"""A resumed run is told its past: each order the kernel gives is answered from the record.

    Invoke ─▶ standing? ─▶ returned, answered    told again, from the record
                        ─▶ new, may be repeated  left to the driver
                        ─▶ failed, cut off       a failure, to be decided on afresh

Nothing of this is recorded a second time. What may not be run again waits, where nobody is
there to decide on it, until everything that does not depend on it is done.

Read next: `past.py`, `driver.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.errors import NodeError, StoreError
from nightwarden.kernel.causes import NOT_TAKEN
from nightwarden.kernel.effects import Escalate, Invoke
from nightwarden.kernel.plan import NodePlan, OutPlan
from nightwarden.kernel.state import Gathered
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
from nightwarden.nodes.io import Collect
from nightwarden.runtime.again import ANEW, Again, Before
from nightwarden.runtime.binding import Binding, projected
from nightwarden.runtime.desk import Desk
from nightwarden.runtime.failing import Failure
from nightwarden.runtime.past import Broken, Frame, Key, Past, Put, Returned, Standing
from nightwarden.runtime.substitution import ABSENT_FORM
from nightwarden.spec.checker import Misfit
from nightwarden.spec.storing import original
from nightwarden.verdict import Retry, Substitute

CUT_OFF: Final = "it was running when the run's process ended; whether it took effect is not known"
SIGNATURE: Final = "interrupted"

_decode = msgspec.json.decode


class Interrupted(NodeError):
    """An invocation that was cut off, and that nobody may simply run again."""


class NotOnRecord:
    """Stands for a value the record does not have: it held a secret, or has no form there."""

    def __init__(self, node_id: str, slot: str, shown: object) -> None:
        self.node_id, self.slot, self.shown = node_id, slot, shown

    def __repr__(self) -> str:
        return f"<{self.node_id}.{self.slot} is not on record>"


class Playback:
    """One streaming call of the past, told step by step: it waits and pauses as it did.

    `due`: its next step will be taken, so that it is not taken twice.
    """

    def __init__(self, call: int, steps: Iterator[Stimulus]) -> None:
        self.call = call
        self._steps = steps
        self._waits = self._paused = False
        self.over = self.due = False

    def answered(self) -> None:
        """What it asked for has come."""
        self._waits = False

    def pause(self) -> None:
        """It has to wait."""
        self._paused = True

    def resume(self) -> None:
        """It may go on."""
        self._paused = False

    def next(self) -> Stimulus | None:
        """The next fact; None while it waits, and at its end."""
        if self._waits or self._paused or self.over:
            return None
        step = next(self._steps, None)
        self.over = step is None
        self._waits = isinstance(step, Requested)
        return step


class Replaying:
    """The past of one run, while it is told again. `go_on` asks for a playback's next step."""

    def __init__(
        self,
        past: Past,
        desk: Desk,
        *,
        tell: Callable[[Stimulus], None],
        go_on: Callable[[Playback], None],
        blob: Callable[[str], bytes],
        check: Callable[[str, Mapping[str, object]], tuple[tuple[object, ...], Sequence[str]]],
        supervised: bool,
        idle: Callable[[], bool],
    ) -> None:
        self._past = past
        self._desk = desk
        self._tell = tell
        self._go_on = go_on
        self._blob = blob
        self._check = check
        self._supervised = supervised
        self._idle = idle
        self._playing: dict[int, Playback] = {}
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
                    self._begin(invoke, self._as_it_was(invoke, node, key, found))
                else:
                    self._tell(Succeeded(invoke.call, self._values(node, node.outs, found)))
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
        plain = self._plain(frame)
        return Before(plain, frame.absent, lambda: self._values(node, node.outs, frame))

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
            values, problems = self._repaired(effect, key, decision.verdict.outputs)
        self._tell(
            Decided(
                escalation=number,
                decision=decision,
                outputs=values,
                problems=tuple(problems),
            )
        )
        return True

    def _repaired(
        self, effect: Escalate, key: Key, outputs: Mapping[str, object]
    ) -> tuple[tuple[object, ...], Sequence[str]]:
        """The values of a repair; where they held a secret, what stands for them."""
        if key not in self._past.sealed_repairs:
            return self._check(key[0], outputs)
        node = self._desk.plan.nodes[effect.node]
        return tuple(
            NOT_TAKEN
            if outputs.get(out.base) == ABSENT_FORM
            else NotOnRecord(node.id, out.base, outputs.get(out.base))
            for out in node.outs
        ), ()

    def at_once(self, call: int) -> bool:
        """Whether a retry's delay is over: its attempt is on record."""
        if call in self._at_once:
            self._at_once.discard(call)
            return True
        return False

    def playing(self, call: int) -> Playback | None:
        """The playback of a call, if it is one."""
        return self._playing.get(call)

    def halt(self, call: int) -> bool:
        """End a playback, or what is held; False if the call is neither."""
        held = [h for h in self._held if h[0].call == call]
        if self._playing.pop(call, None) is None and not held:
            return False
        self._held = [h for h in self._held if h[0].call != call]
        self._tell(Halted(call))
        return True

    def step(self, playback: Playback) -> None:
        """Tell a playback's next fact, and come back for the one after it."""
        if self._playing.get(playback.call) is not playback:
            return
        fact = playback.next()
        if fact is None:
            return
        if isinstance(fact, (Succeeded, Failed)):
            del self._playing[playback.call]
            self._tell(fact)
            return
        self._tell(fact)
        self._go_on(playback)

    def release(self) -> None:
        """Once nothing else moves, what was held back fails."""
        while self._held and self._idle():
            invoke, key, standing = self._held.pop(0)
            self._tell(Unparked(invoke.call))
            self._fail(invoke, key, standing)

    # -- told again --

    def _begin(self, invoke: Invoke, steps: Iterator[Stimulus]) -> None:
        playback = Playback(invoke.call, steps)
        self._playing[invoke.call] = playback
        self.step(playback)

    def _as_it_was(
        self, invoke: Invoke, node: NodePlan, key: Key, found: Returned
    ) -> Iterator[Stimulus]:
        yield from self._on_the_way(invoke, node, key, found.read)
        outs = node.ends if node.type.fans_out else node.outs
        yield Succeeded(invoke.call, self._values(node, outs, found))

    def _on_the_way(
        self, invoke: Invoke, node: NodePlan, key: Key, read: Mapping[str, int]
    ) -> Iterator[Stimulus]:
        """What a call asked for, sent and put out before it ended."""
        asked: dict[str, int] = {}
        for frame in self._past.frames.get(key, ()):
            yield from _requests(invoke.call, asked, frame.read)
            yield Emitted(invoke.call, self._values(node, node.outs, frame))
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

        self._begin(invoke, steps())

    def _retried(self, effect: Escalate, key: Key) -> None:
        """Whether its next attempt is on record, so that nobody has to wait for it."""
        node, lineage, attempt = key
        following = (node, lineage, attempt + 1)
        node_type = self._desk.plan.nodes[effect.node].type
        if self._past.standing(node_type, following) is not Standing.NEW:
            self._at_once.add(effect.call)

    def _values(self, node: NodePlan, outs: Sequence[OutPlan], found: Put) -> tuple[object, ...]:
        """Recorded values, in the order of `outs`."""
        plain = self._plain(found)
        binding = self._desk.bindings[node.index]
        made: dict[str, object] = {}
        values: list[object] = []
        for out in outs:
            slot = out.base
            if slot in found.absent or slot not in plain:
                values.append(NOT_TAKEN)
                continue
            if slot not in made:
                made[slot] = self._original(binding, slot, plain[slot], found)
            value = made[slot]
            values.append(value if isinstance(value, NotOnRecord) else projected(out, value))
        return tuple(values)

    def _plain(self, found: Put) -> dict[str, Any]:
        plain: dict[str, Any] = _decode(found.outputs)
        for slot, digest in found.blobs.items():
            plain[slot] = _decode(self._blob(digest))
        return plain

    def _original(self, binding: Binding, slot: str, plain: object, found: Put) -> object:
        if found.sealed:
            return NotOnRecord(binding.node.id, slot, plain)
        try:
            return original(binding.checker(slot), plain)
        except Misfit as misfit:
            raise StoreError(
                f"{binding.node.id}.{slot}: what is on record is no longer of its type "
                f"({misfit.problems[0]}); resume with --from {binding.node.id}"
            ) from misfit

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

        self._begin(invoke, steps())

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


def lack(values: Sequence[object]) -> Interrupted | None:
    """Why these cannot be handed to a step; None where the record has them all."""
    missing = _missing(values)
    if missing is None:
        return None
    return Interrupted(
        f"{missing.node_id}.{missing.slot} is not on record (it held a secret, or has no form "
        f"there), and {missing.node_id} may not simply be run again",
        code=SIGNATURE,
    )


def as_recorded(value: object) -> object:
    """An output of a resumed run: what the record does not have, as it is shown there."""
    if isinstance(value, NotOnRecord):
        return value.shown
    if type(value) is Collect and _missing(value) is not None:
        shown = [as_recorded(part) for part in value]
        return Collect(shown, value.indices, value.losses, ended_early=value.ended_early)
    return value


def _missing(inputs: Sequence[object]) -> NotOnRecord | None:
    """An input that the record does not have."""
    for value in inputs:
        if isinstance(value, NotOnRecord):
            return value
        parts = value.values if type(value) is Gathered else value if type(value) is list else ()
        for part in parts:
            if isinstance(part, NotOnRecord):
                return part
    return None
