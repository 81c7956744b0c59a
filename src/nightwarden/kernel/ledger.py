"""What became of every item: the run's account, and the laws it has to satisfy.

    (1) emitted = delivered + not_taken + lost + left + failed + unrun     at every exit of a root
    (4) due     = succeeded + repaired + skipped + ended early + pruned
                  + failed + cancelled + suspended + unrun                 at every node
    (5) retries decided = retries run + retries never run
    (6) completed: nothing failed, cancelled, suspended, unrun or pending

`unrun` is what a stopped run did not get to: the difference. In a completed run it has to
be zero, and anything else is a `KernelBug`.

Read next: `machine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nightwarden.errors import KernelBug
from nightwarden.kernel.closing import fold
from nightwarden.kernel.effects import Status
from nightwarden.kernel.plan import RUN
from nightwarden.kernel.state import Missing, Node, Root, State


class ExitCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How the items of a root ended at one exit."""

    name: str
    delivered: int = 0
    not_taken: int = 0
    lost: int = 0
    left: int = 0
    failed: int = 0
    unrun: int = 0


class RootAccount(msgspec.Struct, frozen=True, kw_only=True):
    """One fan-out over all its parents. `kept` are items lost or failed at none of its exits.

    `marks` counts how it closed: `closed`, `early`, `cut`, `absent`, `failed`, `open`.
    """

    node_id: str
    depth: int
    items: int
    kept: int
    filtered: int
    missing: tuple[Missing, ...]
    exits: tuple[ExitCounts, ...]
    marks: Mapping[str, int]


class NodeAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Equation 4 and 5 of one node. `pruned_lost` are those pruned by a loss or failure."""

    node_id: str
    depth: int
    due: int
    started: int
    attempts: int
    succeeded: int
    repaired: int
    skipped: int
    ended_early: int
    pruned: int
    pruned_lost: int
    failed: int
    cancelled: int
    suspended: int
    unrun: int
    retries_decided: int
    retries_run: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger. `roots` are the fan-outs in plan order, without the run itself."""

    status: Status | None
    reason: str
    roots: tuple[RootAccount, ...]
    run: RootAccount
    nodes: tuple[NodeAccount, ...]
    escalations: int


def make_report(state: State) -> Report:
    """The account so far. Raises `KernelBug` when a completed run does not balance."""
    roots = tuple(_root(root) for root in state.roots)
    nodes = tuple(_node(state, node) for node in state.nodes)
    report = Report(
        status=state.status,
        reason=state.reason,
        roots=roots[1:],
        run=roots[RUN],
        nodes=nodes,
        escalations=state.escalated,
    )
    if state.ended and state.status is Status.COMPLETED:
        _check_completed(report)
    return report


def _root(root: Root) -> RootAccount:
    total = Root(root.plan, root.exits, root.window, root.children)
    total.emitted, total.delivered = root.emitted, list(root.delivered)
    total.others, total.missing = dict(root.others), list(root.missing)
    total.marks, total.filtered = dict(root.marks), root.filtered
    for group in root.open_groups.values():
        fold(group, total)
    exits = []
    for number, name in enumerate(root.plan.exits):
        counts = {c: n for (e, c), n in total.others.items() if e == number}
        unrun = total.emitted - total.delivered[number] - sum(counts.values())
        exits.append(
            ExitCounts(name=name, delivered=total.delivered[number], unrun=unrun, **counts)
        )
    return RootAccount(
        node_id=root.plan.name,
        depth=root.plan.depth,
        items=total.emitted,
        kept=total.emitted - len(total.missing),
        filtered=total.filtered,
        missing=tuple(sorted(total.missing, key=lambda m: m.lineage)),
        exits=tuple(exits),
        marks=total.marks,
    )


def _node(state: State, node: Node) -> NodeAccount:
    root = state.roots[node.plan.root]
    due = root.emitted + sum(g.emitted for g in root.open_groups.values())
    done = (
        node.succeeded
        + node.repaired
        + node.skipped
        + node.ended_early
        + node.pruned
        + node.failed
        + node.cancelled
        + node.suspended
    )
    return NodeAccount(
        node_id=node.plan.id,
        depth=node.plan.depth,
        due=due,
        started=node.started,
        attempts=node.started + node.retries_run,
        succeeded=node.succeeded,
        repaired=node.repaired,
        skipped=node.skipped,
        ended_early=node.ended_early,
        pruned=node.pruned,
        pruned_lost=node.pruned_lost,
        failed=node.failed,
        cancelled=node.cancelled,
        suspended=node.suspended,
        unrun=due - done,
        retries_decided=node.retries_decided,
        retries_run=node.retries_run,
    )


def _check_completed(report: Report) -> None:
    for node in report.nodes:
        if node.unrun or node.failed or node.cancelled or node.suspended:
            raise KernelBug(f"{node.node_id}: the run completed, but {node} does not balance")
        if node.retries_decided != node.retries_run:
            raise KernelBug(f"{node.node_id}: a retry was decided and never run")
    for root in (report.run, *report.roots):
        for exit_ in root.exits:
            if exit_.unrun or exit_.failed:
                raise KernelBug(f"{root.node_id}: the run completed, but {exit_} does not balance")
