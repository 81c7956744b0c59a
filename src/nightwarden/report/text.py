"""A report as people read it: what is missing first, then every decision, then the accounts.

Nothing is left out of it for being long, but rejected records beyond the first few of a node;
those are counted.

Read next: `comparing.py`.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nightwarden.events.interventions import OUTCOMES, SHIELD, Intervention, verb, verdict_text
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
from nightwarden.report.folding import NO_END, Missing, RunReport

_KEY: Final = 12
_REJECTS_SHOWN: Final = 20
_COUNTS: Final = (
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

_LEFT_OUT = re.compile(r"…\(\+([\d,]+) ")


def report_text(report: RunReport, *, width: int = 100) -> str:
    """The whole report, ending in a newline; long values are wrapped at `width`."""
    width = max(width, 40)
    sections = [
        _head(report, width),
        _section("Missing", _missing(report, width)),
        _section("Interventions", _interventions(report, width)),
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
        state = "the record has no end: the run goes on, or its process ended before it did"
        lines += _field("result", f"{NO_END} — {state}", width)
    if report.reason and text(report.reason) not in text(report.headline):
        lines += _field("reason", text(report.reason), width)
    began = text(report.started_at)
    lines += _field("started", f"{began}, took {seconds(report.duration_s)}", width)
    lines += _field("supervisor", text(report.supervisor) or "none", width)
    for name, value in report.inputs.items():
        lines += _field(f"input {text(name)}", _short(value), width)
    lines += _field("record", text(report.record), width) if report.record else []
    return lines


def _missing(report: RunReport, width: int) -> Iterator[str]:
    """Every item by name, under why it is missing."""
    groups: dict[tuple[str, str, str, str], list[Missing]] = defaultdict(list)
    for item in report.missing:
        groups[item.root, item.node, item.kind, item.reason].append(item)
    for (root, node, kind, reason), items in groups.items():
        what = count(len(items), "item") + (f" of {text(root)}" if root else "")
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
            decision = f"  ({text(item.escalation)})" if item.escalation else ""
            yield f"    {text(item.item):>6}  {text(item.label)}{decision}".rstrip()


def _interventions(report: RunReport, width: int) -> Iterator[str]:
    for found in report.interventions:
        yield f"  {text(found.id):<5} {SHIELD} {found.place}"
        for name, value in _told(found):
            yield from _field(name, value, width, indent=" " * 8)


def _told(found: Intervention) -> Iterator[tuple[str, str]]:
    escalation, decision = found.escalation, found.decision
    signature = text(escalation.get("signature"))
    kind = text(escalation.get("error_type")) + (f", {signature}" if signature else "")
    attempt = escalation.get("attempt")
    yield "failed", f"{text(escalation.get('detail'))} ({kind}; attempt {attempt})"
    if escalation.get("caused_by"):
        yield "because of", ", ".join(text(e) for e in list_of(escalation.get("caused_by")))
    inputs = mapping_of(escalation.get("inputs"))
    if inputs:
        yield "saw", "; ".join(f"{text(k)} = {_short(v)}" for k, v in inputs.items())
    if escalation.get("has_candidate"):
        yield "value", _short(escalation.get("candidate_output"))
    allowed = ", ".join(verb(a) for a in list_of(escalation.get("allowed_actions")))
    refused = text(escalation.get("retry_refused"))
    yield "allowed", allowed + (f" (no retry: {refused})" if refused else "")
    yield "decided", f"{verdict_text(found)} — {_by(decision)}"
    repair = mapping_of(mapping_of(decision.get("verdict")).get("outputs"))
    if repair:
        yield "repair", "; ".join(f"{text(k)} = {_short(v)}" for k, v in repair.items())
    yield "became", _became(found)


def _by(decision: Mapping[str, Any]) -> str:
    """Who decided, when it was asked, how long it took, and what it cost."""
    if not decision:
        return "nobody yet"
    model = text(decision.get("model"))
    parts = [f"by {text(decision.get('decided_by'))}" + (f" {model}" if model else "")]
    if (decision.get("duration_s") or 0) >= 0.05:
        parts.append(f"in {seconds(decision.get('duration_s'))}")
    parts.append(dollars(decision.get("cost_micro_usd")))
    return ", ".join(parts)


def _became(found: Intervention) -> str:
    kind = OUTCOMES.get(found.became, text(found.became))
    kept = found.outcome.get("kept")
    return (kind or "not known") + ("" if kept is None else f", kept {kept}")


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
        counts = [f"{node[c]:,} {c.replace('_', ' ')}" for c in _COUNTS if node.get(c)]
        again = node.get("retries_run")
        counts += [count(again, "retry", "retries")] if again else []
        yield f"  {name:<{width}}  {node.get('due', 0):>7,} due: {', '.join(counts) or 'none'}"
    for root in report.roots:
        kept = f"kept {_kept(root):,} of {root.get('items', 0):,}"
        filtered = f", {root['filtered']:,} filtered out" if root.get("filtered") else ""
        lost = [list_of(mapping_of(m).get("lineage")) for m in list_of(root.get("missing"))]
        missing = f", missing {items_text(lost)}" if lost else ""
        yield f"  {text(root.get('node'))}: {kept}{filtered}{missing}"


def _kept(root: Mapping[str, Any]) -> int:
    """Items that are in the result; in a run that stopped, what never got there is not."""
    exits = [mapping_of(found) for found in list_of(root.get("exits"))]
    arrived = [sum(int(e.get(c, 0)) for c in ("delivered", "not_taken", "left")) for e in exits]
    return min([int(root.get("kept", 0)), *arrived])


def _costs(report: RunReport) -> Iterator[str]:
    for node, amount in report.costs.items():
        yield f"  {text(node)}: {dollars(amount)}"
    if report.cost_micro_usd or report.supervisor_cost_micro_usd:
        yield f"  steps {dollars(report.cost_micro_usd)}"
        yield f"  supervisor {dollars(report.supervisor_cost_micro_usd)}"


def _outputs(report: RunReport, width: int) -> Iterator[str]:
    for name, value in report.outputs.items():
        found = mapping_of(value)
        if found.keys() == {"absent", "causes"}:
            causes = "; ".join(text(cause) for cause in list_of(found["causes"]))
            shown = f"none: {causes or text(found['absent'])}"
        else:
            shown = _short(value, 300)
        yield from _field(text(name), shown, width, indent="  ")


def _size(value: Sequence[object]) -> int:
    """How many elements there were; the record may say at the end how many it left out."""
    last = _LEFT_OUT.match(value[-1]) if value and isinstance(value[-1], str) else None
    return len(value) - 1 + int(last.group(1).replace(",", "")) if last else len(value)


def _short(value: object, width: int = 160) -> str:
    """A recorded value in one line."""
    if isinstance(value, str):
        return cut(text(value), width)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{text(k)}: {_short(v, width)}" for k, v in value.items())
        return cut("{" + inner + "}", width)
    if isinstance(value, Sequence):
        first = ", ".join(_short(v, width) for v in value[:3])
        size = _size(value)
        more = f", … {size:,} in all" if size > 3 else ""
        return cut(f"[{first}", max(width - len(more) - 1, 8)) + more + "]"
    return cut(text("null" if value is None else value), width)
