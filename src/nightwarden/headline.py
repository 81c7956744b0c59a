"""The one line people read of a run that has ended: what is missing first, then how much was kept.

    completed (supervised): 147/150 items, 3 skipped, 2 decisions, +$0.04 supervisor cost

A loss is never only in the small print. Fan-outs that lost nothing get a line each below it.

Read next: `result.py`, `ending.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from nightwarden.events.words import dollars, place
from nightwarden.ids import EscalationId
from nightwarden.kernel.causes import Cause, CauseSet, Kind
from nightwarden.kernel.ledger import Report, RootAccount
from nightwarden.kernel.plan import Plan
from nightwarden.kernel.state import Capture
from nightwarden.lineage import show
from nightwarden.verdict import Action, DecidedBy, Intervention

# An answer given before holds again; or the run was ending, and nobody decided any more.
_UNASKED: Final = (DecidedBy.STICKY, DecidedBy.DEFAULT)


class Gap(msgspec.Struct, frozen=True):
    """An output of the run that never came because something was given up: by `cause` node."""

    node: str
    cause: str
    sentence: str


def missing_outputs(
    captures: Sequence[Capture],
    plan: Plan,
    explain: Callable[[CauseSet], Sequence[Cause]],
    interventions: Sequence[Intervention],
) -> tuple[Gap, ...]:
    """The run's own outputs that are lost, each with the first thing on its way that was."""
    by_id = {i.escalation.id: i for i in interventions}
    found: dict[str, Gap] = {}
    for capture in captures:
        absents = [absent for _, absent in capture.absents if absent.kind is Kind.LOST]
        if capture.plan.depth or not absents:
            continue
        node = plan.nodes[capture.plan.source].id
        cause = next(c for c in explain(absents[0].causes) if c.kind is Kind.LOST)
        intervention = by_id.get(EscalationId(f"e{cause.escalation}"))
        early = intervention is not None and intervention.action is Action.END_STREAM
        what = "ended early" if early else "was skipped"
        who = "it" if cause.node_id == node else place(cause.node_id, show(cause.lineage))
        found.setdefault(node, Gap(node, cause.node_id, f"no output from {node}: {who} {what}"))
    return tuple(found.values())


def headline(
    status: str,
    reason: str,
    report: Report,
    interventions: Sequence[Intervention],
    *,
    gaps: Sequence[Gap] = (),
    supervisor_cost_micro_usd: int,
    rejected: int,
) -> str:
    """The closing line without its dashes."""
    supervised = bool(interventions) and status == "completed"
    parts = [gap.sentence for gap in gaps if gap.cause != gap.node]
    told = {node for gap in gaps for node in (gap.node, gap.cause) if gap.cause != gap.node}
    parts += _absent_nodes(report, interventions, told)
    roots = _outer_first(report)
    parts += [_kept(root) for root in roots[:1]]
    # A loss is never only in the small print.
    parts += [_kept(root, root.node_id) for root in roots[1:] if root.missing]
    parts += _ended_early(report)
    asked = sum(1 for i in interventions if i.decision and i.decision.decided_by not in _UNASKED)
    if asked:
        parts.append(f"{asked} {'decision' if asked == 1 else 'decisions'}")
    repaired = sum(1 for i in interventions if i.action is Action.SUBSTITUTE)
    if repaired:
        parts.append(f"{repaired} repaired")
    if rejected:
        parts.append(f"{rejected} {'record' if rejected == 1 else 'records'} rejected")
    if supervisor_cost_micro_usd:
        parts.append(f"+{dollars(supervisor_cost_micro_usd)} supervisor cost")
    head = status + (" (supervised)" if supervised else "")
    if status != "completed" and reason:
        parts.insert(0, _clause(reason))
    return f"{head}: {', '.join(parts)}" if parts else head


def _clause(sentence: str) -> str:
    """A sentence as part of a longer one: models and people end theirs with a full stop."""
    return sentence.removesuffix(".") if not sentence.endswith("..") else sentence


def other_roots(report: Report) -> tuple[str, ...]:
    """A line for each fan-out the headline does not speak of: nothing was lost there."""
    others = _outer_first(report)[1:]
    return tuple(f"{root.node_id}: {_kept(root)}" for root in others if not root.missing)


def _outer_first(report: Report) -> list[RootAccount]:
    return [r for r in sorted(report.roots, key=lambda r: r.depth) if r.items or r.depth == 1]


def _kept(root: RootAccount, name: str = "") -> str:
    skipped = len(root.missing) - root.failed
    parts = [f"{root.kept}/{root.items} items" + (f" of {name}" if name else "")]
    if skipped:
        parts.append(f"{skipped} skipped")
    if root.failed:
        parts.append(f"{root.failed} failed")
    if root.filtered:
        parts.append(f"{root.filtered} filtered out")
    unread = min((exit_.left for exit_ in root.exits), default=0)
    if unread:
        parts.append(f"{unread} left unread")
    return ", ".join(parts)


def _ended_early(report: Report) -> list[str]:
    return [
        f"{root.node_id} ended early: kept {root.items} of unknown"
        for root in report.roots
        if root.marks.get("early")
    ]


def _absent_nodes(
    report: Report, interventions: Sequence[Intervention], told: Collection[str]
) -> list[str]:
    """Every other node of the run's own scope that did not run because something was lost."""
    found = []
    for node in report.nodes:
        lost = node.skipped or node.pruned_lost
        if node.depth == 0 and lost and node.node_id not in told:
            by = next((i for i in interventions if i.escalation.node_id == node.node_id), None)
            why = f": {_clause(by.reason)}" if by is not None else ": something it needs is missing"
            verb = "skipped" if node.skipped else "did not run"
            found.append(f"{node.node_id} {verb}{why}")
    return found
