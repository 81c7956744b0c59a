"""The kernel told its facts one by one: for tests of one rule, in an order written down.

    run = Hand(workflow(fan("urls"), step("fetch", url="urls")))
    run.start()
    run.emits("urls", "a", "b")
    run.returns("fetch", 1)
    run.decides(Skip())
    run.values("fetch"), run.ran("fetch"), run.of(Escalate)

A step that is not told what it returns returns its name and lineage. Whatever can run at once
does, unless a node says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from reference.twice import Twice

from nightwarden.kernel.causes import NOT_TAKEN, Absent, Carried, Cause, Kind
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.effects import Delay, Effect, Ended, Escalate, Invoke
from nightwarden.kernel.ledger import ExitCounts, NodeAccount, RootAccount
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.plan import OutPlan
from nightwarden.kernel.state import Settings
from nightwarden.kernel.stimuli import (
    Decided,
    DelayPassed,
    Emitted,
    Failed,
    Halted,
    Read,
    Requested,
    RunStarted,
    Stimulus,
    Succeeded,
)
from nightwarden.lineage import Lineage, show
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import DecidedBy, Decision, Verdict

E = TypeVar("E", bound=Effect)


class Hand:
    """One run of the kernel, driven by the test. `settings` are those of the kernel."""

    def __init__(self, made: Workflow, **settings: Any) -> None:
        self.plan = compile_plan(made, analyse(made))
        self._kernels = Twice(lambda: self._made(settings))
        self.machine = self._kernels.machine
        self.said: list[Effect] = []
        self.calls: dict[tuple[str, Lineage], int] = {}

    def _made(self, settings: Mapping[str, Any]) -> Machine:
        return Machine(
            self.plan,
            settings=Settings(**settings),
            limits=lambda node: node.spec.run.concurrency or 99,
        )

    # -- facts --

    def tell(self, stimulus: Stimulus) -> Sequence[Effect]:
        """What follows from one fact: the same by the shorter ways of a run without a trace."""
        effects = list(self._kernels.handle(stimulus))
        self.said += effects
        for effect in effects:
            if isinstance(effect, Invoke):
                self.calls[self.plan.nodes[effect.node].id, effect.lineage] = effect.call
        return effects

    def start(self, **inputs: object) -> Sequence[Effect]:
        """The run begins."""
        return self.tell(RunStarted(inputs))

    def returns(self, node: str, *lineage: int, **outputs: object) -> Sequence[Effect]:
        """A step returns; a slot it does not name, if it names any, is a branch not taken."""
        plan = self._plan(node)
        outs = plan.ends if plan.type.fans_out else plan.outs
        said = outputs or {out.base: f"{node}({show(lineage)})" for out in outs}
        return self.tell(Succeeded(self.calls[node, lineage], _aligned(outs, said)))

    def emits(self, node: str, *frames: object, at: Lineage = ()) -> Sequence[Effect]:
        """A fan-out yields: a value for its first slot, or a mapping by slot."""
        outs: Sequence[OutPlan] = self._plan(node).outs
        effects: list[Effect] = []
        for frame in frames:
            named = frame if isinstance(frame, Mapping) else {outs[0].base: frame}
            effects += self.tell(Emitted(self.calls[node, at], _aligned(outs, named)))
        return effects

    def emits_together(self, node: str, *values: object) -> Sequence[Effect]:
        """A fan-out with one slot yields several times before it says so."""
        first, *more = [(value,) for value in values]
        return self.tell(Emitted(self.calls[node, ()], first, more))

    def asks(self, node: str, slot: str, *lineage: int, ahead: int = 0) -> Sequence[Effect]:
        """A reader wants its next item, and may be shown more."""
        return self.tell(Requested(self.calls[node, lineage], slot, ahead))

    def uses(self, node: str, slot: str, number: int) -> Sequence[Effect]:
        """A reader has used so many of the items it was shown."""
        return self.tell(Read(self.calls[node, ()], slot, number))

    def fails(self, node: str, *lineage: int, **facts: Any) -> Sequence[Effect]:
        """A step raises."""
        return self.tell(Failed(call=self.calls[node, lineage], **facts))

    def halted(self, node: str, *lineage: int) -> Sequence[Effect]:
        """A step that was told to end has ended."""
        return self.tell(Halted(self.calls[node, lineage]))

    def decides(
        self,
        verdict: Verdict,
        *,
        number: int = 0,
        by: DecidedBy = DecidedBy.AGENT,
        outputs: Sequence[object] = (),
        **more: Any,
    ) -> Sequence[Effect]:
        """The last escalation, or the one named, is answered."""
        decision = Decision(verdict=verdict, decided_by=by)
        which = number or self.of(Escalate)[-1].number
        return self.tell(
            Decided(escalation=which, decision=decision, outputs=tuple(outputs), **more)
        )

    def waits(self) -> Sequence[Effect]:
        """The last delay that was ordered is over."""
        return self.tell(DelayPassed(self.of(Delay)[-1].call))

    # -- what came of them --

    def of(self, kind: type[E]) -> list[E]:
        """The effects of one kind so far."""
        return [effect for effect in self.said if isinstance(effect, kind)]

    def ran(self, node: str) -> dict[Lineage, tuple[object, ...]]:
        """The inputs of every invocation of a node so far, by lineage."""
        index = self._plan(node).index
        return {e.lineage: e.inputs for e in self.of(Invoke) if e.node == index}

    def settled(self, node: str, slot: str = "output") -> dict[Lineage, object]:
        """What the first edge of a slot has carried, by lineage."""
        plan = self._plan(node)
        out = next(o for o in (*plan.outs, *plan.ends) if o.name == slot)
        trace = self.machine.trace or []
        return {t[2]: t[3] for t in trace if t[:2] == ("settle", out.edges[0].index)}  # type: ignore[misc]

    def values(self, node: str, slot: str = "output") -> dict[Lineage, object]:
        """The values among what a slot has carried, without their causes."""
        found = self.settled(node, slot).items()
        bare = {at: v.value if isinstance(v, Carried) else v for at, v in found}
        return {at: v for at, v in bare.items() if not isinstance(v, Absent)}

    def kind(self, node: str, *lineage: int, slot: str = "output") -> Kind | None:
        """How a slot is absent for a lineage; None for a value."""
        settlement = self.settled(node, slot)[lineage]
        return settlement.kind if isinstance(settlement, Absent) else None

    def causes(self, settlement: object) -> list[Cause]:
        """The causes of an absence, or those that a value carries."""
        assert isinstance(settlement, (Absent, Carried))
        return list(self.machine.explain(settlement.causes))

    def status(self) -> str:
        """How the run ended; empty while it goes on."""
        ended = self.of(Ended)
        return str(ended[-1].status) if ended else ""

    def node(self, node: str) -> NodeAccount:
        """A node's account."""
        return next(n for n in self.machine.report().nodes if n.node_id == node)

    def root(self, node: str) -> RootAccount:
        """A fan-out's account."""
        return next(r for r in self.machine.report().roots if r.node_id == node)

    def exit(self, node: str, name: str) -> ExitCounts:
        """The one exit of a fan-out whose name holds `name`."""
        (found,) = [e for e in self.root(node).exits if name in e.name]
        return found

    def _plan(self, node: str) -> Any:
        return next(plan for plan in self.plan.nodes if plan.id == node)


def _aligned(outs: Sequence[OutPlan], values: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(values.get(out.base, NOT_TAKEN) for out in outs)
