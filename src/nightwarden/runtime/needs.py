"""What the values of a node need before a call: a copy of their own, a check, or nothing at all.

    others see the value too, or a retry needs it again   ─▶ a copy
    the types of the edge do not settle that it fits      ─▶ a check on arrival

A plan knows all of it, so that a call has little left to ask.

Read next: `binding.py`, `copying.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightwarden.kernel.plan import CONTROL, NodePlan, Plan, SlotPlan
from nightwarden.nodes.define import Mode, NodeDef
from nightwarden.runtime.copying import SHARED
from nightwarden.runtime.executors import PROCESS
from nightwarden.spec.assign import assignable
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.checker import Checker
from nightwarden.spec.generics import input_types, source_type


@dataclass(slots=True, frozen=True)
class SlotNeeds:
    """What the values of one wired input need. `check` is None where types alone settle it."""

    plan: SlotPlan
    copy: bool
    check: Checker | None

    @property
    def as_it_is(self) -> bool:
        """Whether a value passes as it is, or a copy of it."""
        plain = self.plan.kind is SlotKind.PLAIN and self.plan.name != CONTROL
        special = self.plan.has_default or self.plan.accepts_absent
        return plain and not special and self.check is None


@dataclass(slots=True, frozen=True)
class Needs:
    """What a node's values need: `slots` of its wired inputs, `checks` of its outputs by name."""

    slots: tuple[SlotNeeds, ...]
    checks: Mapping[str, Checker]


def needs_of(plan: Plan, node: NodePlan) -> Needs:
    """What a node's values need; worked out once a plan, for all its runs."""
    known = plan.memo.get(node.index)
    if known is None:
        known = plan.memo[node.index] = _worked_out(plan, node)
    assert isinstance(known, Needs)
    return known


def _worked_out(plan: Plan, node: NodePlan) -> Needs:
    copies = _copied_slots(plan, node)
    return Needs(
        slots=tuple(
            SlotNeeds(slot, copies[slot.name], _arrival_check(plan, node, slot))
            for slot in node.slots
        ),
        checks={name: Checker(slot.type) for name, slot in node.type.outputs.items()},
    )


def changeable(node: NodePlan, value: object) -> bool:
    """Whether a step could change this property for its next item."""
    return not node.type.pure and type(value) not in SHARED


def by_position(definition: NodeDef, node: NodePlan, names: tuple[str, ...]) -> bool:
    """Whether a call is a coroutine with the wired inputs in order, and nothing else to see to."""
    timed = node.spec.run.timeout_s or node.type.timeout_s
    if definition.mode is not Mode.COROUTINE or timed or definition.context_name is not None:
        return False
    if node.type.executor == PROCESS or node.control_root >= 0:
        return False
    run: Any = definition.target
    code = getattr(run.run if definition.is_class else run, "__code__", None)
    if code is None:
        return False
    parameters = code.co_varnames[definition.is_class : code.co_argcount]
    return bool(parameters[: len(names)] == names)


def _copied_slots(plan: Plan, node: NodePlan) -> Mapping[str, bool]:
    """Which inputs a call gets as its own: values others see too, and what a retry needs again."""
    copies = {}
    for slot in node.slots:
        if slot.name == CONTROL:
            copies[CONTROL] = False
            continue
        kept_for_retry = node.type.retry_safe or node.type.idempotent_by is not None
        # What goes to another process is copied on its way.
        alone = node.type.pure or node.type.executor == PROCESS
        copies[slot.name] = not alone and (
            kept_for_retry or slot.depth < node.depth or _shared(plan, node, slot)
        )
    return copies


def _shared(plan: Plan, node: NodePlan, slot: SlotPlan) -> bool:
    """Whether a value on this slot reaches anyone else: another consumer, or a run output."""
    for source in plan.nodes:
        outs = (*source.outs, *source.ends)
        for out in outs:
            if any(e.target == node.index and e.target_slot == slot.name for e in out.edges):
                siblings = [o for o in outs if o.base == out.base]
                if sum(len(o.edges) for o in siblings) > 1:
                    return True
    for given in plan.inputs.values():
        if any(e.target == node.index and e.target_slot == slot.name for e in given.edges):
            return True
    return False


def _arrival_check(plan: Plan, node: NodePlan, slot: SlotPlan) -> Checker | None:
    """The check a slot's values need on arrival; None where types alone settle it."""
    declared = node.type.input(slot.name)
    if declared is None:
        return None  # control events, checked one by one
    given = input_types(plan.workflow)
    for edge in plan.workflow.edges_into(node.id):
        if edge.target_slot == slot.name:
            source = source_type(edge, plan.workflow.types, given)
            if assignable(source, declared.type) is not True:
                check = Checker(declared.type)
                return None if check.anything else check
    return None
