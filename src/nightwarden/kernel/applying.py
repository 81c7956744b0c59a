"""What becomes of a call that does not end with its own result.

    substitute   values that carry the repair
    skip         Absent(lost) on all it would have settled
    end_stream   what it had put out is kept, the rest is lost
    fail         Absent(failed) on all it would have settled, where a run keeps going

Read next: `escalating.py`, which decides; `routing.py`, which settles.
"""

from __future__ import annotations

from nightwarden.errors import KernelBug
from nightwarden.kernel import reading
from nightwarden.kernel.causes import NOT_TAKEN, Absent, Kind
from nightwarden.kernel.closing import CATEGORY, close_group, take
from nightwarden.kernel.effects import Prune
from nightwarden.kernel.reading import carried_by, release_reader
from nightwarden.kernel.routing import (
    absent_outputs,
    answer,
    node_settled,
    outputs,
    settle,
)
from nightwarden.kernel.state import Call, Node, State
from nightwarden.kernel.tasks import NeverOpened


def absence(state: State, call: Call, kind: Kind, escalation: int) -> Absent:
    """The Absent an intervention at this call leaves behind."""
    plan = call.node.plan
    causes = state.causes.intervention(kind, plan.id, plan.order, call.item.lineage, escalation)
    return Absent(kind, causes)


def substitute(state: State, call: Call, escalation: int, values: tuple[object, ...]) -> None:
    """Settle a call with a repair instead of its result."""
    node = call.node
    node.repaired += 1
    repair = absence(state, call, Kind.REPAIRED, escalation).causes
    carried = state.causes.union(carried_by(state, call), repair)
    outputs(state, node.outs, node, call.item, values, carried)
    if node.plan.exit >= 0:
        take(state, call.item, node.plan.exit, True)
    if node.plan.control_root >= 0:
        answer(state, call.item, named_outputs(node, values))
    node_settled(state, node, call.item, carried=carried)


def named_outputs(node: Node, values: tuple[object, ...]) -> dict[str, object]:
    """A result by slot, without branches that were not taken; for whoever called the node."""
    outs = node.ends if node.own_root is not None else node.outs
    return {
        out.plan.base: value
        for out, value in zip(outs, values, strict=True)
        if value is not NOT_TAKEN and not out.plan.projected
    }


def absent_outputs_of(state: State, call: Call, absent: Absent) -> None:
    """Settle everything a call would have settled with one absence."""
    if call.group is not None:
        # Nothing was emitted: the group that was opened for it never counts.
        call.group.root.open_groups.pop(call.group.number, None)
    release_reader(state, call, absent)
    absent_outputs(state, call.node, call.item, absent)


def end_stream(state: State, call: Call, absent: Absent) -> None:
    """Keep what was emitted; what the node had not settled yet is lost to this cause."""
    node = call.node
    release_reader(state, call, absent)
    outs = node.ends if node.own_root is not None else node.outs
    for out in outs:
        settle(state, out.edges, call.item, absent)
    if call.group is not None:
        close_started(state, call, "early", absent)
    if node.plan.exit >= 0:
        take(state, call.item, node.plan.exit, True)
    node_settled(state, node, call.item, absent)


def close_started(state: State, call: Call, mark: str, absent: Absent) -> None:
    """Close the group of a call that ends by an intervention; an empty one never opened."""
    group = call.group
    assert group is not None
    if group.emitted:
        close_group(state, group, mark, absent)
    else:
        group.root.open_groups.pop(group.number, None)
        state.work.append(NeverOpened(group.root, call.item, absent))


def settle_failed(state: State, call: Call, absent: Absent) -> None:
    """A failed item goes on as Absent(failed): what depends on it is pruned, the rest goes on."""
    if call.group is not None and call.group.emitted:
        release_reader(state, call, absent)
        for out in call.node.ends:
            settle(state, out.edges, call.item, absent)
        close_group(state, call.group, "failed", absent)
        take(state, call.item, call.node.plan.exit, absent)
        node_settled(state, call.node, call.item, absent)
    else:
        absent_outputs_of(state, call, absent)


def stopped_by_failure(state: State, call: Call) -> None:
    """A reader was cancelled because something failed reached it: it fails with that cause."""
    settle_failed(state, call, _failure_met(state, call))


def never_began(state: State, call: Call) -> None:
    """Something failed reached a reader before it began: it is pruned, as if it had come first."""
    node, absent = call.node, _failure_met(state, call)
    node.pruned += 1
    node.pruned_lost += 1
    cause = state.causes.charge(absent.causes)
    state.out.append(Prune(node.index, call.item.lineage, CATEGORY[absent.kind], cause.number))
    absent_outputs_of(state, call, absent)


def _failure_met(state: State, call: Call) -> Absent:
    failed = reading.failure_met(state, call)
    if failed is None:
        raise KernelBug(f"{call.node.plan.id}: halted for no reason")
    return failed
