"""How two runs of one workflow differ: in status, decisions, items and counts.

Times, costs and who is credited are not compared: a replay takes other times, pays nothing,
and answers in another's name.

Read next: `cli/replay.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nightwarden.events.words import list_of
from nightwarden.lineage import Lineage, show
from nightwarden.report.folding import RunReport

_COUNTS: Final = (
    "due",
    "attempts",
    "succeeded",
    "repaired",
    "skipped",
    "ended_early",
    "pruned",
    "failed",
    "cancelled",
    "suspended",
    "unrun",
)

_Attempt = tuple[str, Lineage, int]


def differences(before: RunReport, after: RunReport) -> list[str]:
    """One readable line a difference; empty when the runs came to the same."""
    return [
        *_changed("status", before.status, after.status),
        *_changed("definition", before.definition_hash[:12], after.definition_hash[:12]),
        *_decisions(before, after),
        *_missing(before, after),
        *_nodes(before, after),
        *_rejected(before, after),
    ]


def _changed(what: str, before: object, after: object) -> Iterator[str]:
    if before != after:
        yield f"{what}: {before} → {after}"


def _decisions(before: RunReport, after: RunReport) -> Iterator[str]:
    first, second = _by_attempt(before), _by_attempt(after)
    for key in sorted(first.keys() | second.keys()):
        node, lineage, attempt = key
        item = f" [{show(lineage)}]" if lineage else ""
        what = f"decision on {node}{item}, attempt {attempt}"
        yield from _changed(what, first.get(key, "none"), second.get(key, "none"))


def _by_attempt(report: RunReport) -> dict[_Attempt, str]:
    return {
        (
            str(found.escalation.get("node_id", "")),
            tuple(list_of(found.escalation.get("lineage"))),
            int(found.escalation.get("attempt") or 0),
        ): f"{found.action or 'none'} ({found.became or 'no outcome'})"
        for found in report.interventions
    }


def _missing(before: RunReport, after: RunReport) -> Iterator[str]:
    first = {(m.root, m.item): m for m in before.missing}
    second = {(m.root, m.item): m for m in after.missing}
    for key in [k for k in first if k not in second]:
        yield f"item {_item(key)}: missing at {first[key].node} → there"
    for key in [k for k in second if k not in first]:
        yield f"item {_item(key)}: there → missing at {second[key].node}"


def _item(key: tuple[str, str]) -> str:
    root, item = key
    return f"{item} of {root}" if root else item or "of the run"


def _nodes(before: RunReport, after: RunReport) -> Iterator[str]:
    first, second = _accounts(before), _accounts(after)
    for node in dict.fromkeys([*first, *second]):
        for name in _COUNTS:
            one, other = first.get(node, {}).get(name, 0), second.get(node, {}).get(name, 0)
            yield from _changed(f"{node}, {name.replace('_', ' ')}", one, other)


def _accounts(report: RunReport) -> dict[str, Mapping[str, Any]]:
    return {str(node.get("node_id", "")): node for node in report.nodes}


def _rejected(before: RunReport, after: RunReport) -> Iterator[str]:
    for node in dict.fromkeys([*before.rejected, *after.rejected]):
        yield from _changed(
            f"{node}, records rejected", before.rejected[node], after.rejected[node]
        )
