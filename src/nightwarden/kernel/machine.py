"""The kernel: facts in, orders out. Its only door is `Machine.handle`.

    stimuli (facts)            Machine              effects (orders)
    RunStarted, Succeeded,  ──▶ handle ──▶  Invoke, Resume, Feed, Escalate,
    Emitted, Failed, Decided…               Delay, Halt, Stop, Ended …

It never awaits, reads no clock, draws no random number and logs nothing, so that a run can
be told again from its facts: tests do that in any order, and resume does it from a record.

Read next: `routing.py` (values on their way), `closing.py` (items that end),
`escalating.py` (failures), `applying.py` (what they leave), `stopping.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nightwarden.errors import KernelBug
from nightwarden.kernel import applying, control, escalating, reading
from nightwarden.kernel.asked import Asked
from nightwarden.kernel.assembly import assemble
from nightwarden.kernel.causes import NO_CAUSES, NOT_TAKEN
from nightwarden.kernel.closing import close_group, take, taken, unpark
from nightwarden.kernel.effects import Conclude, Effect, Pause, Status, Widen
from nightwarden.kernel.emitting import emit, is_full
from nightwarden.kernel.plan import EdgeKind, NodePlan, Plan
from nightwarden.kernel.propagating import propagate
from nightwarden.kernel.routing import (
    answer,
    node_settled,
    outputs,
    place,
    ready,
    settle,
)
from nightwarden.kernel.state import (
    LEFT,
    Call,
    Root,
    Settings,
)
from nightwarden.kernel.stimuli import (
    ControlEnded,
    ControlSent,
    Decided,
    DelayPassed,
    Emitted,
    Failed,
    Halted,
    Overspent,
    Parked,
    Read,
    Requested,
    RunCancelled,
    RunStarted,
    Stimulus,
    Succeeded,
    Suspended,
    Unbegun,
    Unparked,
)
from nightwarden.kernel.stopping import (
    asks_no_more,
    come_back,
    end_if_over,
    halt,
    place_freed,
    stop,
)
from nightwarden.kernel.waiting import is_idle, may_wait, waits, waits_for_one_less, waits_no_more
from nightwarden.lineage import Lineage
from nightwarden.verdict import OutcomeKind


def one_at_a_time(node: NodePlan) -> int:
    """The default limit: what the file or the node's code says, else one."""
    return node.spec.run.concurrency or node.type.concurrency or 1


class Machine(Asked):
    """One run. `limits` says how many invocations of a node may run at once.

    Of a run told again, `numbered` are the numbers of the escalations whose answers stand, by
    (node, lineage, attempt), and `numbers` the highest ever given.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        settings: Settings | None = None,
        limits: Callable[[NodePlan], int] = one_at_a_time,
        numbered: Mapping[tuple[int, Lineage, int], int] | None = None,
        numbers: int = 0,
    ) -> None:
        self._state = state = assemble(plan, settings or Settings(), limits)
        state.numbered, state.escalated = numbered or {}, numbers
        self._handlers: dict[type, Callable[[Any], None]] = {
            Emitted: self._emitted,
            Requested: self._requested,
            Read: self._read,
            RunStarted: self._started,
            Failed: self._failed,
            Decided: lambda s: escalating.decided(state, s),
            DelayPassed: lambda s: escalating.delay_passed(state, s),
            Suspended: self._suspended,
            ControlSent: lambda s: control.sent(state, s),
            ControlEnded: lambda s: control.ended(state, s),
            Parked: self._parked,
            Unparked: self._unparked,
            Unbegun: self._unbegun,
            Halted: self._halted,
            RunCancelled: self._cancelled,
            Overspent: self._overspent,
        }

    def handle(self, stimulus: Stimulus) -> Sequence[Effect]:
        """Take one fact in; the orders that follow from it, in order.

        Raises `KernelBug` when a law of the engine is broken.
        """
        state = self._state
        if type(stimulus) is Succeeded:
            self._succeeded(stimulus)
        else:
            self._handlers[type(stimulus)](stimulus)
        if state.work:
            propagate(state)
        while (not state.active or state.awaiting or state.status is not None) and self._quiet():
            propagate(state)
        out = state.out
        if out:
            state.out = []
        return out

    # -- stimuli --

    def _started(self, stimulus: RunStarted) -> None:
        state = self._state
        if state.started:
            raise KernelBug("a run starts once")
        state.started = True
        run = state.run
        for name, edges in state.inputs.items():
            settle(state, edges, run, stimulus.inputs[name])
        for node in state.nodes:
            if node.plan.ports == 0:
                ready(state, node, run, (), NO_CAUSES)
        run.remaining -= 1  # the one that kept it open while it was being set up
        if run.remaining == 0:
            taken(state, run)

    def _succeeded(self, stimulus: Succeeded) -> None:
        state = self._state
        call = state.calls.pop(stimulus.call, None)
        if call is None:
            return
        if call.awaiting:
            waits_no_more(state, call)
        node, item = call.node, call.item
        node.succeeded += 1
        node.running -= 1
        state.active -= 1
        if call.escalation:
            state.out.append(
                Conclude(escalation=call.escalation, kind=OutcomeKind.RETRIED_SUCCEEDED)
            )
        values = stimulus.outputs
        if (
            node.next is not None
            and not call.carried
            and state.trace is None
            and (values[0] is not NOT_TAKEN)
        ):
            ready(state, node.next, item, values, NO_CAUSES)
        elif node.special:
            self._end_special(call, values)
        elif node.only is not None and not call.carried and values[0] is not NOT_TAKEN:
            settle(state, node.only, item, values[0])
        else:
            outputs(state, node.outs, node, item, values, call.carried)
        if node.exit >= 0:
            take(state, item, node.exit, True)
        if node.depth == 0 or node.control:
            if node.plan.control_root >= 0:
                answer(state, item, applying.named_outputs(node, values))
            node_settled(state, node, item, carried=reading.carried_by(state, call))
        if node.queue:
            place(state, node)

    def _end_special(self, call: Call, values: tuple[object, ...]) -> None:
        """A reader or fan-out ended by itself."""
        state, node = self._state, call.node
        carried = reading.carried_by(state, call)
        reading.release_reader(state, call, LEFT)
        if call.group is None:
            outputs(state, node.outs, node, call.item, values, carried)
            return
        outputs(state, node.ends, node, call.item, values, carried)
        if carried:
            # What it read after its last frame is behind what collects those frames too.
            call.group.carried = carried
            for buffer in call.group.buffers:
                if buffer.plan.kind is EdgeKind.COLLECT:
                    buffer.carried = state.causes.union(buffer.carried, carried)
        close_group(state, call.group, "cut" if call.group.cut else "closed")

    def _emitted(self, stimulus: Emitted) -> None:
        state = self._state
        call = state.calls.get(stimulus.call)
        if call is None or call.halting:
            return
        group = call.group
        assert group is not None
        if state.status is not None or group.cut:
            halt(state, call, gently=True)
            return
        # Who puts out what it has while it waits for more, waits no longer.
        if call.parked:
            reading.unpark(state, call)
        if call.escalation:
            # A retried fan-out that yields has got over what it failed at.
            state.out.append(
                Conclude(escalation=call.escalation, kind=OutcomeKind.RETRIED_SUCCEEDED)
            )
            call.escalation = 0
        carried = reading.carried_by(state, call)
        emit(state, call, stimulus.frame, carried)
        for frame in stimulus.more:
            if state.work:
                propagate(state)
            emit(state, call, frame, carried)
        if is_full(group):
            self._park(call, group.root)

    def _park(self, call: Call, root: Root) -> None:
        state = self._state
        call.parked = True
        call.node.running -= 1
        state.active -= 1
        may_wait(state, call)
        root.paused[call.number] = call
        state.out.append(Pause(call.number))
        if call.node.queue:
            place_freed(state, call.node)

    def _requested(self, stimulus: Requested) -> None:
        state = self._state
        call = state.calls.get(stimulus.call)
        if call is None or call.halting:
            return
        if state.status is not None or (call.group is not None and call.group.cut):
            halt(state, call, gently=False)
            return
        reading.request(state, call, stimulus.slot, stimulus.ahead)

    def _read(self, stimulus: Read) -> None:
        call = self._state.calls.get(stimulus.call)
        if call is not None and not call.halting:
            reading.read(self._state, call, stimulus.slot, stimulus.number)

    def _failed(self, stimulus: Failed) -> None:
        call = self._state.calls.get(stimulus.call)
        if call is not None and call.halting and self._state.status is None:
            # Whatever a call says when it is told to end, it has ended.
            self._halted(Halted(stimulus.call))
        else:
            escalating.failed(self._state, stimulus)

    def _suspended(self, stimulus: Suspended) -> None:
        state = self._state
        call = state.calls.pop(stimulus.call, None)
        if call is None:
            return
        waits_no_more(state, call)
        call.node.suspended += 1
        self._gone(call)
        if call.escalation:
            state.out.append(Conclude(escalation=call.escalation, kind=OutcomeKind.NEVER_RAN))
        stop(state, Status.SUSPENDED, stimulus.reason)

    def _halted(self, stimulus: Halted) -> None:
        state = self._state
        call = state.calls.pop(stimulus.call, None)
        if call is None:
            return
        if state.status is None and call.group is not None and call.group.cut:
            state.calls[call.number] = call
            self._succeeded(Succeeded(call.number, (NOT_TAKEN,) * len(call.node.ends)))
            return
        self._gone(call)
        waits_no_more(state, call)
        call.node.cancelled += 1
        if call.escalation:
            state.out.append(Conclude(escalation=call.escalation, kind=OutcomeKind.NEVER_RAN))
        if state.status is None:
            applying.stopped_by_failure(state, call)

    def _parked(self, stimulus: Parked) -> None:
        state = self._state
        call = state.calls.get(stimulus.call)
        if call is None or call.halting:
            return
        if state.status is not None:
            halt(state, call, gently=False)
            return
        if call.group is not None and call.group.cut:
            halt(state, call, gently=True)
            return
        waits(state, call)
        call.outside = not stimulus.away
        if stimulus.away:
            call.away = True
            call.node.running -= 1
            place_freed(state, call.node)

    def _unparked(self, stimulus: Unparked) -> None:
        call = self._state.calls.get(stimulus.call)
        if call is not None and call.awaiting:
            waits_for_one_less(self._state, call)
            call.outside = False
            come_back(call)

    def _unbegun(self, stimulus: Unbegun) -> None:
        state = self._state
        call = state.calls.pop(stimulus.call, None)
        if call is None:
            return
        self._gone(call)
        if call.attempt == 1:
            call.node.started -= 1
            if state.status is None:
                applying.never_began(state, call)
            return
        call.node.retries_run -= 1
        call.node.failed += 1
        if call.escalation:
            kind = OutcomeKind.RETRY_NEVER_RAN
            state.out.append(Conclude(escalation=call.escalation, kind=kind))

    def _gone(self, call: Call) -> None:
        asks_no_more(call)
        self._state.active -= 1
        call.node.running -= 1
        if call.node.queue:
            place_freed(self._state, call.node)

    def _cancelled(self, stimulus: RunCancelled) -> None:
        stop(self._state, Status.CANCELLED, stimulus.reason)

    def _overspent(self, stimulus: Overspent) -> None:
        stop(self._state, Status.FAILED, stimulus.reason)

    def _quiet(self) -> bool:
        """Nothing will move by itself: the run is over, or a window has to give.

        Returns whether that has made work.
        """
        state = self._state
        end_if_over(state)
        if state.status is not None or not state.started:
            return False
        paused = [root for root in state.roots if root.paused]
        if not paused and state.awaiting:
            return False  # whoever waits for an answer may be at work besides
        if not is_idle(state):
            return False
        if not paused:
            raise KernelBug("nothing can move, yet the run is not over", story=self.pending())
        root = min(paused, key=lambda r: r.window)
        root.window *= 2
        state.out.append(Widen(root.plan.node, root.window))
        for number in list(root.paused):
            unpark(state, root, number)
        return bool(state.work)
