"""A report as people read it: what is missing first, then every decision, then the accounts.

Nothing is left out of it for being long, but rejected records beyond the first few of a node;
those are counted.

Read next: `comparing.py`.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from nightwarden.events.interventions import SHIELD
from nightwarden.events.words import (
    count,
    cut,
    dollars,
    items_text,
    list_of,
    mapping_of,
    seconds,
    text,
)
from nightwarden.report.costing import by_model
from nightwarden.report.folding import RunReport
from nightwarden.report.missing import (
    Missing,
    kept_of,
    missing_text,
    unfinished_texts,
    unread_of,
)
from nightwarden.report.standing import COUNTS
from nightwarden.report.steering import steering_text
from nightwarden.report.telling import inputs_text, no_end, output_text, told

_KEY: Final = 12
_REJECTS_SHOWN: Final = 20


def report_text(report: RunReport, *, width: int = 100) -> str:
    """The whole report, ending in a newline; long values are wrapped at `width`."""
    width = max(width, 40)
    sections = [
        _head(report, width),
        _section("Missing", _missing(report, width)),
        _section("Interventions", _interventions(report, width)),
        _section("Steering", _steering(report, width)),
        _section("Failures nobody was asked about", _failures(report, width)),
        _section("Rejected records", _rejected(report)),
        _section("Warnings", _warnings(report, width)),
        _section("Items", _items(report)),
        _section("Costs", _costs(report)),
        _section("Outputs", _outputs(report, width)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _section(title: str, lines: Iterator[str]) -> list[str]:
    found = list(lines)
    return [title, *found] if found else []


def _field(name: str, value: str, width: int, indent: str = "") -> Iterator[str]:
    head = f"{indent}{name:<{_KEY}} "
    wrapped = textwrap.wrap(value, max(20, width - len(head)), break_on_hyphens=False)
    for i, line in enumerate(wrapped or [""]):
        yield ((head if i == 0 else " " * len(head)) + line).rstrip()


def _head(report: RunReport, width: int) -> list[str]:
    lines = [f"Run {text(report.run_id)} of {text(report.workflow) or '(not recorded)'}", ""]
    if report.ended:
        lines += _field("result", text(report.headline or report.status), width)
    else:
        lines += _field("result", f"{text(report.status)} — {no_end(report)}", width)
    if report.reason and text(report.reason) not in text(report.headline):
        lines += _field("reason", text(report.reason), width)
    began = text(report.started_at)
    lines += _field("started", f"{began}, took {seconds(report.took_s)}", width)
    lines += _field("resumed", count(report.resumed, "time"), width) if report.resumed else []
    lines += _field("supervisor", text(report.supervisor) or "none", width)
    for name, said in inputs_text(report):
        lines += _field(f"input {name}", said, width)
    lines += _field("record", text(report.record), width) if report.record else []
    return lines


def _missing(report: RunReport, width: int) -> Iterator[str]:
    """Every item by name, under why it is missing; then what the run did not get through."""
    deciders = {found.id: found.decided_by for found in report.interventions}
    groups: dict[tuple[str, str, str, str], list[Missing]] = defaultdict(list)
    for item in report.missing:
        groups[item.root, item.node, item.kind, item.reason].append(item)
    for (root, node, kind, reason), items in groups.items():
        what = missing_text(items, text(root))
        verb = "given up" if kind == "lost" else text(kind)
        why = f": {text(reason)}" if reason else ""
        yield from textwrap.wrap(
            f"{what} {verb} at {text(node)}{why}",
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        for item in items:
            by = deciders.get(item.escalation)
            decision = f"  ({text(item.escalation)}{f', by {text(by)}' if by else ''})"
            decision = decision if item.escalation else ""
            if item.item or decision:
                yield f"    {text(item.item):>6}  {text(item.label)}{decision}".rstrip()
    for said in unfinished_texts(report.roots, report.missing):
        yield f"  {text(said)}"


def _interventions(report: RunReport, width: int) -> Iterator[str]:
    for found in report.interventions:
        yield f"  {text(found.id):<5} {SHIELD} {found.place}"
        for name, value in told(found, report.afterwards.get(found.id, "")):
            yield from _field(name, value, width, indent=" " * 8)


def _steering(report: RunReport, width: int) -> Iterator[str]:
    for who, what in steering_text(report.steering):
        yield from textwrap.wrap(
            f"{who}: {what}",
            width,
            initial_indent="  ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )


def _failures(report: RunReport, width: int) -> Iterator[str]:
    for failure in report.failures:
        signature = f", {text(failure.signature)}" if failure.signature else ""
        detail = f"{text(failure.detail)} ({text(failure.error_type)}{signature})"
        yield from textwrap.wrap(
            f"{failure.place}: {detail}",
            width,
            initial_indent="  ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )


def _rejected(report: RunReport) -> Iterator[str]:
    shown: Counter[str] = Counter()
    for node, number in report.rejected.items():
        yield f"  {text(node)}: {count(number, 'record')}"
        for event in report.rejects:
            if event.get("node_id") != node or shown[node] >= _REJECTS_SHOWN:
                continue
            shown[node] += 1
            raw = cut(text(event.get("raw")), 60)
            yield f"    line {event.get('line')}: {text(event.get('reason'))}: {raw}"
        if number > shown[node] > 0:
            yield f"    and {number - shown[node]:,} more"


def _warnings(report: RunReport, width: int) -> Iterator[str]:
    for line, number in Counter(report.warnings).items():
        times = f" ({number} times)" if number > 1 else ""
        yield from textwrap.wrap(
            line + times,
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
    for node, window in report.widened.items():
        yield f"  {text(node)}: everything waited for it, so it may be {window:,} items ahead"


def _items(report: RunReport) -> Iterator[str]:
    """The ledger: one line a node, and one a fan-out."""
    names = [text(node.get("node_id")) for node in report.nodes]
    width = max((len(name) for name in names), default=0)
    for name, node in zip(names, report.nodes, strict=True):
        counts = [f"{node[c]:,} {c.replace('_', ' ')}" for c in COUNTS if node.get(c)]
        again = node.get("retries_run")
        counts += [count(again, "retry", "retries")] if again else []
        yield f"  {name:<{width}}  {node.get('due', 0):>7,} due: {', '.join(counts) or 'none'}"
    for root in report.roots:
        kept = f"kept {kept_of(root):,} of {root.get('items', 0):,}"
        filtered = f", {root['filtered']:,} filtered out" if root.get("filtered") else ""
        lost = [list_of(mapping_of(m).get("lineage")) for m in list_of(root.get("missing"))]
        missing = f", missing {items_text(lost)}" if lost else ""
        unread = f", {unread_of(root):,} left unread" if unread_of(root) else ""
        cut_short = ", cut short" if mapping_of(root.get("marks")).get("cut") else ""
        yield f"  {text(root.get('node'))}: {kept}{filtered}{unread}{cut_short}{missing}"


def _costs(report: RunReport) -> Iterator[str]:
    for node, amount in report.costs.items():
        yield f"  {text(node)}: {dollars(amount)}"
    models = by_model(report.money)
    for model, (steps, supervisor) in models.items() if any(models) else ():
        yield f"  model {text(model) or '(none, or not told)'}: {dollars(steps + supervisor)}"
    if report.cost_micro_usd or report.supervisor_cost_micro_usd:
        yield f"  steps {dollars(report.cost_micro_usd)}"
        yield f"  supervisor {dollars(report.supervisor_cost_micro_usd)}"
    for name, amount in report.money.steering.items():
        yield f"  steering, {text(name)}: {dollars(amount)}"


def _outputs(report: RunReport, width: int) -> Iterator[str]:
    for name, value in report.outputs.items():
        yield from _field(text(name), output_text(value), width, indent="  ")
