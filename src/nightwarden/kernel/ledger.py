"""What became of every item: the run's account, and the laws it has to satisfy.

    (1) emitted = delivered + not_taken + lost + left
                  + failed + unrun + suspended                           at every exit of a root
    (4) due     = succeeded + repaired + skipped + ended early + pruned
                  + failed + cancelled + suspended + unrun                 at every node
    (5) retries decided = retries run + retries never run
    (6) completed: nothing failed, cancelled, suspended, unrun or pending

`unrun` is what a stopped run did not get to: the difference. In a completed run it has to
be zero, and anything else is a `KernelBug`. An invocation that failed, was cancelled or asked
for a pause while its run ended has settled nothing; at its own exit it counts as `failed` or
`suspended` all the same, what would have followed from it is `unrun`.

Read next: `machine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nightwarden.errors import KernelBug
from nightwarden.kernel.causes import Kind
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
    suspended: int = 0


class RootAccount(msgspec.Struct, frozen=True, kw_only=True):
    """One fan-out over all its parents: `items` = `kept` + `missing` + `unfinished`.

    `kept` have come through every exit and are missing at none; `failed` are those of `missing`
    that are not lost but failed; `unfinished` are what a run that ended before its end did not
    get through, and may still get through. `marks` counts how it closed: `closed`, `early`,
    `cut`, `absent`, `failed`, `open`.
    """

    node_id: str
    depth: int
    items: int
    kept: int
    filtered: int
    missing: tuple[Missing, ...]
    failed: int
    unfinished: int
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
    nodes = tuple(_node(state, node) for node in state.nodes)
    totals = tuple(_total(root) for root in state.roots)
    broken = _broken_off(state, totals, nodes)
    roots = tuple(_root(state, total, broken) for total in totals)
    report = Report(
        status=state.status,
        reason=state.reason,
        roots=roots[1:],
        run=roots[RUN],
        nodes=nodes,
        escalations=state.escalated,
    )
    if state.status is Status.COMPLETED:
        _check_completed(report)
    return report


def _total(root: Root) -> Root:
    """The sums of a root together with those of its open groups."""
    total = Root(root.plan, root.exits, root.window, root.children, outstanding=root.outstanding)
    total.emitted, total.delivered = root.emitted, list(root.delivered)
    total.others, total.missing, total.gone = dict(root.others), list(root.missing), root.gone
    total.marks, total.filtered = dict(root.marks), root.filtered
    for group in root.open_groups.values():
        fold(group, total)
    return total


_Broken = Mapping[tuple[int, int], tuple[int, int]]


def _broken_off(state: State, totals: Sequence[Root], nodes: Sequence[NodeAccount]) -> _Broken:
    """What is over at a node but settled nothing, by root and exit: `failed` and `suspended`."""
    found = {}
    for node, account in zip(state.nodes, nodes, strict=True):
        root, exit_ = node.plan.root, node.plan.exit
        if exit_ >= 0:
            over = account.due - account.unrun - account.suspended
            failed = over - sum(_taken(totals[root], exit_).values())
            found[root, exit_] = (failed, account.suspended)
    return found


def _taken(total: Root, exit_: int) -> dict[str, int]:
    """How many items an exit has taken, by what it took."""
    counts = {c: n for (e, c), n in total.others.items() if e == exit_}
    return {"delivered": total.delivered[exit_], **counts}


def _root(state: State, total: Root, broken: _Broken) -> RootAccount:
    missing = total.missing
    return RootAccount(
        node_id=total.plan.name,
        depth=total.plan.depth,
        items=total.emitted,
        kept=total.emitted - total.outstanding - total.gone,
        filtered=total.filtered,
        missing=tuple(sorted(missing, key=lambda m: m.lineage)),
        failed=sum(state.causes[m.cause].kind is Kind.FAILED for m in missing),
        unfinished=total.outstanding - (len(missing) - total.gone),
        exits=tuple(_exit(total, number, broken) for number in range(total.exits)),
        marks=total.marks,
    )


def _exit(total: Root, number: int, broken: _Broken) -> ExitCounts:
    counts = _taken(total, number)
    failed, suspended = broken.get((total.plan.index, number), (0, 0))
    unrun = total.emitted - sum(counts.values()) - failed - suspended
    counts["failed"] = counts.get("failed", 0) + failed
    return ExitCounts(name=total.plan.exits[number], unrun=unrun, suspended=suspended, **counts)


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
        if root.unfinished:
            raise KernelBug(f"{root.node_id}: the run completed, but not {root.unfinished} items")
        for exit_ in root.exits:
            if exit_.unrun or exit_.failed or exit_.suspended:
                raise KernelBug(f"{root.node_id}: the run completed, but {exit_} does not balance")
