"""How one node's code is called: inputs become arguments, what it returns becomes slots.

All that can be decided once is decided when a run is opened: what inputs need (`needs.py`), how
the result is taken apart. What is left for each invocation is little.

Read next: `needs.py`, `driver.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nightwarden.errors import NodeError, RecoverableError
from nightwarden.kernel.causes import NOT_TAKEN, Absent
from nightwarden.kernel.effects import USE_DEFAULT
from nightwarden.kernel.plan import CONTROL, NodePlan, OutPlan, Plan
from nightwarden.kernel.state import Gathered
from nightwarden.nodes.define import NodeDef
from nightwarden.nodes.io import ABSENT, Collect, Loss, Many
from nightwarden.runtime.copying import NotCopiable, private
from nightwarden.runtime.needs import SlotNeeds, by_position, changeable, needs_of
from nightwarden.runtime.secrets import secrets_in, with_secrets
from nightwarden.spec.catalog import TIES, SlotKind
from nightwarden.spec.checker import Checker

Explain = Callable[[object], str]
"""Turns a set of causes into words."""


class BadInput(NodeError):
    """A value that arrived does not fit its slot; skip or stop is all that can be done."""


@dataclass(slots=True)
class Arguments:
    """What an invocation is called with. `copied` False: an input could not be kept for a retry."""

    values: dict[str, Any]
    copied: bool = True
    absent_cause: str = ""


class Binding:
    """One node's way from inputs to a call, and from a result to slots."""

    def __init__(self, plan: Plan, node: NodePlan, definition: NodeDef, explain: Explain) -> None:
        self.node = node
        self.definition = definition
        self._explain = explain
        wired = {slot.name for slot in node.slots}
        given = {k: v for k, v in node.spec.properties.items() if k not in wired}
        self._secret = {k: v for k, v in given.items() if [*secrets_in(v)]}
        self.fixed = {k: v for k, v in given.items() if k not in self._secret}
        self._own = {k: v for k, v in self.fixed.items() if changeable(node, v)}
        self._fallbacks = {k: v for k, v in node.spec.properties.items() if k in wired}
        needs = needs_of(plan, node)
        self._slots = needs.slots
        self._names = tuple(slot.name for slot in node.slots)
        as_they_are = not self._secret and not self._own and all(s.as_it_is for s in self._slots)
        self._direct = as_they_are and not any(s.copy for s in self._slots)
        self.positional = as_they_are and by_position(definition, node, self._names)
        self.bare = self.positional and self._direct
        self.fans_list_out = node.type.name == "flow.ForEach" and len(node.outs) == 1
        self._outs = node.ends if node.type.fans_out else node.outs
        self.checks = needs.checks
        self._whole = (
            self.checks["output"]
            if list(node.type.outputs) == ["output"]
            and len(self._outs) == 1
            and self._outs[0].name == "output"
            and not node.type.fans_out
            else None
        )
        self._frame = (
            self.checks["output"].exact
            if list(node.type.outputs) == ["output"] and [o.name for o in node.outs] == ["output"]
            else frozenset()
        )
        self.as_is = self._whole.exact if self._whole is not None else frozenset()

    # -- inputs --

    def arguments(self, inputs: Sequence[object], secret: Callable[[str], str]) -> Arguments:
        """The keyword arguments of a call. Raises `BadInput` for a value that does not fit."""
        if self._direct:
            return Arguments({**self.fixed, **dict(zip(self._names, inputs, strict=True))})
        found = Arguments(dict(self.fixed))
        for name, value in self._own.items():
            found.values[name] = _copy(value, found)
        for name, value in self._secret.items():
            found.values[name] = with_secrets(value, secret)
        for slot, value in zip(self._slots, inputs, strict=True):
            self._take(slot, value, found)
        if self.node.control_root >= 0:
            self._complete(found)
        return found

    def _complete(self, found: Arguments) -> None:
        """A controlled step may get what it needs from its events; not always."""
        for name, slot in self.node.type.inputs.items():
            if slot.required and name not in found.values and slot.kind is not SlotKind.STREAM:
                raise BadInput(
                    f"{name} needs a value: neither the workflow nor the control event gives one",
                    code="bad-control",
                )

    def _take(self, slot: SlotNeeds, value: object, found: Arguments) -> None:
        name = slot.plan.name
        if name == CONTROL:
            found.values.update(self._overrides(value))
            return
        if name in TIES:
            return
        if value is USE_DEFAULT:
            if name in self._fallbacks:
                found.values[name] = _copy(self._fallbacks[name], found)
            return
        if type(value) is Absent:
            found.values[name] = ABSENT
            found.absent_cause = self._explain(value.causes)
            return
        if slot.plan.kind is SlotKind.STREAM:
            return
        if slot.copy:
            value = _copy(value, found)
        if type(value) is Gathered:
            losses = tuple(Loss(i, self._explain(causes)) for i, causes in value.losses)
            ended = self._explain(value.ended) if value.ended else ""
            value = Collect(value.values, value.indices, losses, ended_early=ended)
        elif slot.plan.kind is SlotKind.MANY:
            value = Many(value)  # type: ignore[call-overload]
        if slot.check is not None:
            self._check(slot, value)
        found.values[name] = value

    def _overrides(self, value: object) -> dict[str, object]:
        """The properties a control event sets, each of its slot's type."""
        assert isinstance(value, Mapping)
        for name, given in value.items():
            declared = self.node.type.input(str(name))
            if declared is None or declared.kind is not SlotKind.PLAIN:
                known = ", ".join(self.node.type.inputs)
                raise BadInput(
                    f"a control event sets {name}, which is no property of {self.node.id}; "
                    f"it has {known}",
                    code="bad-control",
                )
            problems = Checker(declared.type).problems(given)
            if problems:
                raise BadInput(f"a control event sets {name}: {problems[0]}", code="bad-control")
        return dict(value)

    def _check(self, slot: SlotNeeds, value: object) -> None:
        assert slot.check is not None
        many = slot.plan.kind in (SlotKind.MANY, SlotKind.COLLECT)
        for part in value if many else (value,):  # type: ignore[attr-defined]
            if not slot.check.fits(part):
                problem = slot.check.problems(part)[0]
                raise BadInput(f"input {slot.plan.name}: {problem}", code="bad-input")

    def shown(self, inputs: Sequence[object]) -> Arguments:
        """The arguments of a direct call, for the record of its failure."""
        return Arguments({**self.fixed, **dict(zip(self._names, inputs, strict=True))})

    # -- results --

    def results(self, value: object) -> tuple[object, ...]:
        """What a plain call returned, in the order of `NodePlan.outs`.

        Raises `RecoverableError` for a value that is not of its declared type.
        """
        whole = self._whole
        if whole is not None:
            if value is ABSENT:
                return self._absent("output")
            if not whole.fits(value):
                self._misfit("output", value, whole)
            return (value,)
        return self._apart(value, self._outs)

    def frame(self, value: object) -> tuple[object, ...]:
        """What a fan-out yielded, in the order of `NodePlan.outs`."""
        if type(value) in self._frame:
            return (value,)
        return self._apart(value, self.node.outs)

    def once(self, value: object) -> dict[str, object]:
        """The slots of a frame that have one value for the whole fan-out, where it sets them."""
        if not self.node.ends:
            return {}
        found = {}
        for out in self.node.ends:
            part = self._part(value, out.base)
            if part is not ABSENT:
                found[out.base] = part
        return found

    def ends(self, once: Mapping[str, object]) -> tuple[object, ...]:
        """The once-only slots at the end of a fan-out, in the order of `NodePlan.ends`."""
        return tuple(
            NOT_TAKEN if out.base not in once else projected(out, once[out.base])
            for out in self.node.ends
        )

    def repaired(self, outputs: Mapping[str, object]) -> tuple[object, ...]:
        """A repair's values, already checked and revived, in the order of `NodePlan.outs`."""
        return tuple(
            NOT_TAKEN if outputs[out.base] is ABSENT else projected(out, outputs[out.base])
            for out in self.node.outs
        )

    def checker(self, slot: str) -> Checker:
        """The check of a declared output slot."""
        return self.checks[slot]

    def _apart(self, value: object, outs: Sequence[OutPlan]) -> tuple[object, ...]:
        found: list[object] = []
        for out in outs:
            part = self._part(value, out.base)
            if part is ABSENT:
                found.append(self._absent(out.base)[0])
                continue
            check = self.checks[out.base]
            if not check.fits(part):
                self._misfit(out.base, part, check)
            found.append(projected(out, part))
        return tuple(found)

    def _part(self, value: object, slot: str) -> object:
        if list(self.checks) == ["output"]:
            return value
        try:
            return getattr(value, slot)
        except AttributeError:
            names = ", ".join(self.checks)
            raise NodeError(
                f"the step returned a {type(value).__name__}; expected a record with {names}",
                code="bad-output",
            ) from None

    def _absent(self, slot: str) -> tuple[object, ...]:
        declared = self.node.type.outputs[slot]
        if not declared.may_be_absent and not self.checks[slot].anything:
            raise NodeError(
                f"the step left {slot} ABSENT, but its type does not say that it may "
                "(write `T | Absent`)",
                code="bad-output",
            )
        return (NOT_TAKEN,)

    def _misfit(self, slot: str, value: object, check: Checker) -> None:
        problem = check.problems(value)[0]
        raise RecoverableError(
            f"output {slot}: {problem}", candidate_output=value, code="bad-output"
        )


def _copy(value: object, found: Arguments) -> object:
    try:
        if type(value) is Gathered:
            copied: list[object] = list(private(value.values))  # type: ignore[call-overload]
            return msgspec.structs.replace(value, values=copied)
        return private(value)
    except NotCopiable:
        found.copied = False
        return value


def projected(out: OutPlan, value: object) -> object:
    """A field of a record, or the value itself. Raises `NodeError` where there is no such field."""
    if not out.projected:
        return value
    if isinstance(value, Mapping):
        if out.name in value:
            return value[out.name]
    elif hasattr(value, out.name):
        return getattr(value, out.name)
    raise NodeError(
        f"{out.base} has no field {out.name}: it is a {type(value).__name__}", code="bad-output"
    )
