"""What a run came to: status, outputs, interventions, ledger, costs.

`RunResult` is what the library returns and what `--json` prints; `to_json` is versioned. The
*headline* is the one line people read: what is missing first, then how much was kept.

Read next: `session.py`, `report.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.events.plain import odd_text, plain
from nightwarden.ids import EscalationId
from nightwarden.kernel.causes import Cause, CauseSet, Kind
from nightwarden.kernel.closing import CATEGORY
from nightwarden.kernel.ledger import Report, RootAccount
from nightwarden.kernel.plan import Plan
from nightwarden.kernel.state import Capture, Gathered, Missing
from nightwarden.lineage import show
from nightwarden.nodes.io import Collect, Loss
from nightwarden.runtime.deciding import Intervention
from nightwarden.runtime.failing import called, describe_frame
from nightwarden.verdict import Action, DecidedBy, action_of

FORMAT: Final = 1
# An answer given before holds again; or the run was ending, and nobody decided any more.
_UNASKED: Final = (DecidedBy.STICKY, DecidedBy.DEFAULT)

Explain = Callable[[CauseSet], Sequence[str]]
"""Causes in words, in the order people read them."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run. Money in micro-dollars, times in seconds.

    `outputs` has an entry for every unconnected slot: its value; for per-item slots a
    `Collect` with `.indices` and `.losses`; or `{"absent": kind, "causes": […]}`. `ledger` is
    plain data, see `docs/reference/ledger.md`. `rejected` counts unusable input records by node.
    `headline` is the closing line, `other_roots` a line for each fan-out it does not speak of.
    `suspended` names the steps that asked for a pause, each with `node`, `lineage`, `reason` and
    the `state` it wants back.
    """

    run_id: str
    status: str
    supervised: bool
    reason: str
    outputs: Mapping[str, Any]
    interventions: tuple[Intervention, ...]
    ledger: Mapping[str, Any]
    costs: Mapping[str, Any]
    rejected: Mapping[str, int]
    duration_s: float
    headline: str
    other_roots: tuple[str, ...] = ()
    record: str = ""
    suspended: tuple[Mapping[str, Any], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the run completed, supervised or not."""
        return self.status == "completed"

    def to_json(self, outputs: Mapping[str, object] | None = None) -> dict[str, object]:
        """Plain data for `--json`, with `outputs` masked by the caller."""
        shown = {name: shown_output(value) for name, value in self.outputs.items()}
        form = msgspec.to_builtins(
            msgspec.structs.replace(self, outputs={}), str_keys=True, enc_hook=odd_text
        )
        assert isinstance(form, dict)
        form["outputs"] = dict(outputs) if outputs is not None else shown
        return {"version": FORMAT, **form}


def shown_output(value: object) -> object:
    """An output as plain data; a per-item one with the numbers of its items and what is lost."""
    if isinstance(value, Collect):
        return {
            "values": plain(list(value)),
            "indices": plain(list(value.indices)),
            "losses": plain(list(value.losses)),
        }
    return plain(value)


def fold_outputs(
    captures: Sequence[Capture],
    names: Mapping[tuple[str, str], Sequence[str]],
    nodes: Sequence[str],
    explain: Explain,
) -> dict[str, Any]:
    """The run's outputs by name. `names` maps (node, slot) to what the caller will look for."""
    found: dict[str, Any] = {}
    for capture in captures:
        fold = _single if capture.plan.depth == 0 else _per_item
        for name in names[nodes[capture.plan.source], capture.plan.source_slot]:
            found[name] = fold(capture, explain)
    return found


def _single(capture: Capture, explain: Explain) -> Any:
    if capture.values:
        return _plain(capture.values[0], explain)
    if capture.absents:
        absent = capture.absents[0][1]
        return {"absent": CATEGORY[absent.kind], "causes": list(explain(absent.causes))}
    return {"absent": "failed", "causes": ["the run ended before this was reached"]}


def _per_item(capture: Capture, explain: Explain) -> Any:
    order = sorted(range(len(capture.values)), key=capture.lineages.__getitem__)
    flat = capture.plan.depth == 1
    indices: list[Any] = [capture.lineages[i][0] if flat else capture.lineages[i] for i in order]
    losses = [
        Loss(lineage[-1], "; ".join(explain(absent.causes)))
        for lineage, absent in sorted(capture.absents, key=lambda pair: pair[0])
        if absent.kind is not Kind.NOT_TAKEN
    ]
    values = [_plain(capture.values[i], explain) for i in order]
    return Collect(values, indices, losses)


def _plain(value: object, explain: Explain) -> Any:
    if isinstance(value, Gathered):
        losses = [Loss(i, "; ".join(explain(c))) for i, c in value.losses]
        return Collect(value.values, value.indices, losses)
    return value


def fold_ledger(
    report: Report,
    cause: Callable[[int], Cause],
    interventions: Mapping[int, Intervention],
    mask: Callable[[str], str],
) -> dict[str, Any]:
    """The ledger as plain data: roots with their missing items by name, and node counts."""

    def missing(root: RootAccount) -> list[dict[str, object]]:
        return [_missing(m, cause(m.cause), interventions, mask) for m in root.missing]

    return {
        "roots": [
            {
                "node": root.node_id,
                "depth": root.depth,
                "items": root.items,
                "kept": root.kept,
                "filtered": root.filtered,
                "missing": missing(root),
                "unfinished": root.unfinished,
                "exits": [msgspec.to_builtins(e) for e in root.exits],
                "marks": dict(root.marks),
            }
            for root in report.roots
        ],
        "run": {
            "missing": missing(report.run),
            "exits": [msgspec.to_builtins(e) for e in report.run.exits],
        },
        "nodes": [msgspec.to_builtins(node) for node in report.nodes],
    }


def _label(missing: Missing, cause: Cause, found: Intervention | None) -> str:
    """What whoever decided on this very item was told that it is called."""
    if found is None or cause.lineage != missing.lineage:
        return ""
    return found.escalation.item.label


def _missing(
    missing: Missing,
    cause: Cause,
    interventions: Mapping[int, Intervention],
    mask: Callable[[str], str],
) -> dict[str, object]:
    found = interventions.get(cause.escalation)
    return {
        "item": show(missing.lineage),
        "lineage": list(missing.lineage),
        "label": _label(missing, cause, found) or called(mask(describe_frame(missing.label))),
        "kind": CATEGORY[cause.kind],
        "node": cause.node_id,
        "at": show(cause.lineage),
        "escalation": f"e{cause.escalation}" if cause.escalation else "",
        "reason": reason_of(found) if found is not None else "",
    }


def reason_of(found: Intervention) -> str:
    """Why an intervention was made: the decision's words, else the error's."""
    decision = found.decision
    if decision is not None and decision.rationale:
        return decision.rationale
    return found.escalation.detail


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
        early = intervention is not None and _action(intervention) is Action.END_STREAM
        what = "ended early" if early else "was skipped"
        item = show(cause.lineage)
        who = "it" if cause.node_id == node else f"{cause.node_id}{f' [{item}]' if item else ''}"
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
    repaired = sum(1 for i in interventions if _action(i) is Action.SUBSTITUTE)
    if repaired:
        parts.append(f"{repaired} repaired")
    if rejected:
        parts.append(f"{rejected} {'record' if rejected == 1 else 'records'} rejected")
    if supervisor_cost_micro_usd:
        parts.append(f"+${supervisor_cost_micro_usd / 1_000_000:.2f} supervisor cost")
    head = status + (" (supervised)" if supervised else "")
    if status != "completed" and reason:
        parts.insert(0, reason)
    return f"{head}: {', '.join(parts)}" if parts else head


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
            why = f": {reason_of(by)}" if by is not None else ": nothing reached it"
            verb = "skipped" if node.skipped else "did not run"
            found.append(f"{node.node_id} {verb}{why}")
    return found


def _action(intervention: Intervention) -> Action | None:
    return None if intervention.decision is None else action_of(intervention.decision.verdict)
