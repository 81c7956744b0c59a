"""What a run came to: status, outputs, interventions, ledger, costs.

`RunResult` is what the library returns and what `--json` prints; `to_json` is versioned.

Read next: `headline.py`, `session.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.events.plain import odd_text, plain
from nightwarden.kernel.causes import Cause, CauseSet, Kind
from nightwarden.kernel.closing import CATEGORY
from nightwarden.kernel.ledger import Report, RootAccount
from nightwarden.kernel.state import Capture, Gathered, Missing
from nightwarden.lineage import show
from nightwarden.nodes.io import Collect, Loss
from nightwarden.runtime.failing import called, describe_frame
from nightwarden.verdict import Intervention

FORMAT: Final = 1

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
        "reason": found.reason if found is not None else "",
    }
