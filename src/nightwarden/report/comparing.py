"""How two runs of one workflow differ: in status, decisions, items, outputs and counts.

    decisions   what was decided for an attempt, and what it came to
    items       which are missing, and where they went missing
    outputs     the run's outputs, as the records' ends show them
    counts      how often each thing became of each node's lineages

Times and who is credited are not compared: a replay takes other times, and answers in another's
name. Costs are told, and are no difference: nobody pays twice for a decision that is replayed.

Read next: `cli/replay.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final

from nightwarden.events.interventions import Intervention
from nightwarden.events.words import dollars, list_of, text, usd
from nightwarden.lineage import Lineage, show
from nightwarden.report.folding import RunReport
from nightwarden.report.missing import Missing
from nightwarden.report.standing import COUNTS
from nightwarden.report.telling import output_text

_COUNTS: Final = ("due", "attempts", *COUNTS)
_TITLES: Final = {
    "run": "The run",
    "decision": "Decisions",
    "item": "Items",
    "output": "Outputs",
    "count": "Counts",
}

_Attempt = tuple[str, Lineage, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `kind` is `run`, `decision`, `item`, `output` or `count`."""

    kind: str
    about: str
    before: str
    after: str

    @property
    def line(self) -> str:
        """In one line."""
        return f"{self.about}: {self.before} → {self.after}"


def compare(before: RunReport, after: RunReport) -> list[Difference]:
    """Every difference, those of one kind together; empty when the runs came to the same."""
    return [
        *_changed("run", "status", before.status, after.status),
        *_changed("run", "definition", before.definition_hash[:12], after.definition_hash[:12]),
        *_decisions(before, after),
        *_missing(before, after),
        *_outputs(before, after),
        *_nodes(before, after),
        *_rejected(before, after),
    ]


def differences(before: RunReport, after: RunReport) -> list[str]:
    """The same, one readable line each."""
    return [found.line for found in compare(before, after)]


def comparison_text(found: Sequence[Difference]) -> Iterator[str]:
    """The differences under headings, each with what it was before and what it is now."""
    for kind, group in groupby(found, key=lambda difference: difference.kind):
        yield _TITLES[kind]
        yield from (f"  {text(difference.line)}" for difference in group)


def costs_text(before: RunReport, after: RunReport) -> str:
    """What each of the two cost, in one line; empty where neither cost anything."""
    pairs = _costs(before, after)
    told = [
        f"{what} {dollars(one)} → {dollars(other)}"
        for what, (one, other) in pairs.items()
        if one or other
    ]
    return ", ".join(told)


def comparison_json(before: RunReport, after: RunReport) -> dict[str, object]:
    """Plain data: the differences as lines and in parts, and both runs' costs."""
    found = compare(before, after)
    return {
        "same": not found,
        "differences": [difference.line for difference in found],
        "details": [asdict(difference) for difference in found],
        "costs": {
            what: {"before_usd": usd(one), "after_usd": usd(other)}
            for what, (one, other) in _costs(before, after).items()
        },
    }


def _costs(before: RunReport, after: RunReport) -> dict[str, tuple[int, int]]:
    return {
        "steps": (before.cost_micro_usd, after.cost_micro_usd),
        "supervisor": (before.supervisor_cost_micro_usd, after.supervisor_cost_micro_usd),
    }


def _changed(kind: str, what: str, before: object, after: object) -> Iterator[Difference]:
    if before != after:
        yield Difference(kind, what, str(before), str(after))


def _decisions(before: RunReport, after: RunReport) -> Iterator[Difference]:
    first, second = _by_attempt(before), _by_attempt(after)
    for key in sorted(first.keys() | second.keys()):
        node, lineage, attempt = key
        item = f" [{show(lineage)}]" if lineage else ""
        what = f"decision on {node}{item}, attempt {attempt}"
        yield from _changed("decision", what, first.get(key, "none"), second.get(key, "none"))


def _by_attempt(report: RunReport) -> dict[_Attempt, str]:
    return {_attempt(found): _decided(found) for found in report.interventions}


def _attempt(found: Intervention) -> _Attempt:
    return (
        str(found.escalation.get("node_id", "")),
        tuple(list_of(found.escalation.get("lineage"))),
        int(found.escalation.get("attempt") or 0),
    )


def _decided(found: Intervention) -> str:
    return f"{found.action or 'none'} ({found.became or 'no outcome'})"


def _missing(before: RunReport, after: RunReport) -> Iterator[Difference]:
    first = {(m.root, m.item): m for m in before.missing}
    second = {(m.root, m.item): m for m in after.missing}
    for key in dict.fromkeys([*first, *second]):
        was, now = _place(first.get(key)), _place(second.get(key))
        yield from _changed("item", f"item {_item(key)}", was, now)


def _place(missing: Missing | None) -> str:
    return "there" if missing is None else f"missing at {missing.node}"


def _item(key: tuple[str, str]) -> str:
    root, item = key
    return f"{item} of {root}" if root else item or "of the run"


def _outputs(before: RunReport, after: RunReport) -> Iterator[Difference]:
    for name in dict.fromkeys([*before.outputs, *after.outputs]):
        one, other = _shown(before.outputs, name), _shown(after.outputs, name)
        if before.outputs.get(name) != after.outputs.get(name):
            same = " (its end differs)" if one == other else ""
            yield Difference("output", f"output {name}", one, other + same)


def _shown(outputs: Mapping[str, Any], name: str) -> str:
    return output_text(outputs[name]) if name in outputs else "none"


def _nodes(before: RunReport, after: RunReport) -> Iterator[Difference]:
    first, second = _accounts(before), _accounts(after)
    for node in dict.fromkeys([*first, *second]):
        for name in _COUNTS:
            one, other = first.get(node, {}).get(name, 0), second.get(node, {}).get(name, 0)
            yield from _changed("count", f"{node}, {name.replace('_', ' ')}", one, other)


def _accounts(report: RunReport) -> dict[str, Mapping[str, Any]]:
    return {str(node.get("node_id", "")): node for node in report.nodes}


def _rejected(before: RunReport, after: RunReport) -> Iterator[Difference]:
    for node in dict.fromkeys([*before.rejected, *after.rejected]):
        what = f"{node}, records rejected"
        yield from _changed("count", what, before.rejected[node], after.rejected[node])
