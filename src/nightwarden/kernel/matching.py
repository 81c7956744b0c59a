"""Whether a join fires, once every wired input of a lineage is settled. Pure.

The first row that applies wins:

    1  any input Absent(failed)                    pruned
    2  join="any"                                  fires with what has a value; pruned if none
    3  a slot that accepts ABSENT                  gets it, whether not_taken or lost
    4  lost in any other slot                      pruned
    5  not_taken: the default, if another input
       of the node's full scope has a value        else pruned

Since nothing is decided earlier, the answer does not depend on the order of arrival.

Read next: `routing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightwarden.kernel.causes import NO_CAUSES, Absent, Carried, CauseSet, CauseTable, Kind
from nightwarden.kernel.effects import USE_DEFAULT
from nightwarden.kernel.plan import NodePlan, SlotPlan
from nightwarden.kernel.state import Gathered
from nightwarden.spec.catalog import SlotKind

Firing = tuple[tuple[object, ...], CauseSet]
"""The inputs in slot order, and the interventions they carry."""


def match(node: NodePlan, values: Sequence[object], causes: CauseTable) -> Firing | Absent:
    """The inputs to run `node` with, or the Absent its outputs take. `values` follow its ports."""
    absents = _absent_inputs(node, values)
    if any(type(v) is Absent and v.kind is Kind.FAILED for v in values):
        return _union(absents, causes)
    choose = _any_inputs if node.join_any else _all_inputs
    inputs = choose(node, values, causes)
    if inputs is None:
        return _union(absents, causes)
    carried = NO_CAUSES
    for value in values:
        if type(value) is Carried:
            carried = causes.union(carried, value.causes)
        elif type(value) is Absent:
            carried = causes.union(carried, causes.interventions(value.causes))
    return tuple(inputs), carried


def _union(absents: Sequence[Absent], causes: CauseTable) -> Absent:
    if len(absents) == 1:
        return absents[0]
    together = NO_CAUSES
    for absent in absents:
        together = causes.union(together, absent.causes)
    return Absent(max(a.kind for a in absents), together)


def _absent_inputs(node: NodePlan, values: Sequence[object]) -> list[Absent]:
    found: list[Absent] = []
    for slot in node.slots:
        absents, present = _parted(slot, values)
        bearable = Kind.LOST if (node.join_any or slot.accepts_absent) else Kind.NOT_TAKEN
        if not present or any(a.kind > bearable for a in absents):
            found.extend(absents)
    return found


def _any_inputs(
    node: NodePlan, values: Sequence[object], causes: CauseTable
) -> list[object] | None:
    inputs: list[object] = []
    fires = False
    for slot in node.slots:
        absents, present = _parted(slot, values)
        fires = fires or bool(present)
        if present:
            inputs.append(present if slot.kind is SlotKind.MANY else present[0])
        else:
            inputs.append(USE_DEFAULT if slot.has_default else _union(absents, causes))
    return inputs if fires else None


def _all_inputs(
    node: NodePlan, values: Sequence[object], causes: CauseTable
) -> list[object] | None:
    in_full = any(
        node.port_depths[i] == node.depth and type(v) is not Absent for i, v in enumerate(values)
    )
    inputs: list[object] = []
    for slot in node.slots:
        many = slot.kind is SlotKind.MANY
        value = _many(slot, values, causes) if many else values[slot.ports[0]]
        if type(value) is not Absent:
            inputs.append(_bare(value))
        elif slot.accepts_absent:
            inputs.append(_accepted(slot, value))
        elif value.kind is Kind.NOT_TAKEN and slot.has_default and in_full:
            inputs.append(USE_DEFAULT)
        else:
            return None
    return inputs


def _many(slot: SlotPlan, values: Sequence[object], causes: CauseTable) -> object:
    """The list of a Many slot, or the Absent that stands for it."""
    absents, present = _parted(slot, values)
    lost = any(a.kind is Kind.LOST for a in absents)
    if lost and not slot.accepts_absent:
        return _union(absents, causes)
    return present or _union(absents, causes)


def _parted(slot: SlotPlan, values: Sequence[object]) -> tuple[list[Absent], list[object]]:
    """What has not come over the edges of a slot, and the values that have, in edge order."""
    mine = [values[port] for port in slot.ports]
    absents = [v for v in mine if type(v) is Absent]
    return absents, [_bare(v) for v in mine if type(v) is not Absent]


def _accepted(slot: SlotPlan, absent: Absent) -> object:
    if slot.kind is SlotKind.COLLECT and absent.kind is Kind.LOST:
        return Gathered([], (), ((-1, absent.causes),))
    return absent


def _bare(value: object) -> object:
    return value.value if type(value) is Carried else value
