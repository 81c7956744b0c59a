"""The parts of the page, each from a `RunReport`: what is missing, decisions, accounts, costs.

Read next: `html.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nightwarden.events.interventions import OUTCOMES, VERBS, Intervention
from nightwarden.events.words import count, cut, dollars, list_of, mapping_of, text
from nightwarden.report.costing import by_model
from nightwarden.report.folding import RunReport
from nightwarden.report.html_parts import Markup, el, facts, folded, joined, table
from nightwarden.report.missing import (
    Missing,
    kept_of,
    missing_text,
    unfinished_of,
    unfinished_texts,
    unread_of,
)
from nightwarden.report.spending import NO_MODEL, NO_STEP, by_day
from nightwarden.report.standing import COUNTS
from nightwarden.report.telling import output_text, told
from nightwarden.spec.layout import node_text

Plain = Mapping[str, Any]

_KNOWN_ACTIONS: Final = frozenset(VERBS)
_RAW: Final = 200
_SHIELD: Final = "🛡️"
"""What a terminal shows as ⛨: few fonts of browsers have that."""
_SHOWN: Final = 20


def missing(report: RunReport) -> Markup:
    """Every item that is not in the result, under why it is not."""
    deciders = {found.id: found.decided_by for found in report.interventions}
    groups: dict[tuple[str, str, str, str], list[Missing]] = defaultdict(list)
    for item in report.missing:
        groups[item.root, item.node, item.kind, item.reason].append(item)
    parts = [_group(key, items, deciders) for key, items in groups.items()]
    return joined([*parts, *_unfinished(report)])


def _group(
    key: tuple[str, str, str, str], items: Sequence[Missing], deciders: Mapping[str, str]
) -> Markup:
    root, node, kind, reason = key
    what = missing_text(items, node_text(root))
    done = "given up" if kind == "lost" else kind
    caption = f"{what} {done} at {node_text(node)}" + (f": {reason}" if reason else "")
    rows = [
        [item.item or "the run itself", item.label, _decision(item.escalation, deciders)]
        for item in items
    ]
    return folded(caption, table(caption, ["Item", "Name", "Decided"], rows), len(rows))


def _decision(escalation: str, deciders: Mapping[str, str]) -> object:
    if not escalation:
        return "nobody was asked"
    by = deciders.get(escalation)
    link = el("a", escalation, href=f"#{_anchor(escalation)}")
    return joined([f"by {by}, " if by else "", link])


def _anchor(escalation: str) -> str:
    """An id for a decision; whatever a record calls it, it is one word."""
    return "decision-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in escalation)


def _unfinished(report: RunReport) -> Iterator[Markup]:
    for said in unfinished_texts(report.roots, report.missing):
        yield el("p", f"{said}.")


def interventions(report: RunReport) -> Markup:
    """Every decision in full; those that followed from an earlier one as a table.

    Of hundreds, the first are shown, and the others are folded away.
    """
    full = [found for found in report.interventions if found.decided_by != "sticky"]
    sticky = [found for found in report.interventions if found.decided_by == "sticky"]
    caption = f"{count(len(sticky), 'further failure')}, decided as one like it before"
    rows = [_sticky(found) for found in sticky]
    heads = ["Decision", "Where", "What failed", "Decided", "Became"]
    shown = [_intervention(found, report.afterwards.get(found.id, "")) for found in full]
    more = shown[_SHOWN:]
    return joined(
        [
            *shown[:_SHOWN],
            folded(f"{count(len(more), 'further decision')}", joined(more), len(more)),
            folded(caption, table(caption, heads, rows), len(rows)),
        ]
    )


def _intervention(found: Intervention, afterwards: str) -> Markup:
    action = found.action if found.action in _KNOWN_ACTIONS else ""
    head = el(
        "h3",
        el("span", _SHIELD, aria_hidden="true"),
        f" {found.place} ",
        el("span", VERBS.get(found.action, "not decided"), cls="tag"),
        el("span", found.id, cls="tag soft"),
    )
    body = facts(told(found, afterwards))
    return el("article", head, body, cls=action, id=_anchor(found.id))


def _sticky(found: Intervention) -> list[object]:
    name = el("span", found.id, id=_anchor(found.id))
    signature = text(found.escalation.get("signature"))
    decided = VERBS.get(found.action, found.action) + f" (as for all {signature})"
    became = OUTCOMES.get(found.became, found.became)
    return [name, found.place, found.escalation.get("detail"), decided, became]


def steering(report: RunReport) -> Markup:
    """Who watched the run's agents, and every word that was left for one."""
    watchers = [[w.name, w.told] for w in report.steering.watchers.values()]
    words = [
        [w.author, w.node or "the first to ask", w.text, w.fate, w.at]
        for w in report.steering.words.values()
    ]
    caption = count(len(words), "message")
    heads = ["From", "To", "Text", "State", "Queued at"]
    return joined(
        [
            table("Supervisors over running agents", ["Supervisor", "What it did"], watchers),
            folded(caption, table(caption, heads, words), len(words)),
        ]
    )


def failures(report: RunReport) -> Markup:
    """What failed without anybody being asked."""
    rows = [
        [f.place, f.detail, ", ".join(filter(None, (f.error_type, f.signature)))]
        for f in report.failures
    ]
    return table("Failures nobody was asked about", ["Where", "What failed", "Kind"], rows)


def accounts(report: RunReport) -> Markup:
    """The ledger: fan-outs and nodes."""
    roots = [
        [
            node_text(str(root.get("node", ""))),
            *(f"{n:,}" for n in _root_counts(root)),
            ", ".join(f"{n:,} {mark}" for mark, n in mapping_of(root.get("marks")).items())
            + (f", {unread_of(root):,} left unread" if unread_of(root) else ""),
        ]
        for root in report.roots
    ]
    heads = ["Fan-out", "Items", "Kept", "Missing", "Not through", "Filtered out", "How it ended"]
    return joined([table("Items", heads, roots, numbers=range(1, 6)), _nodes(report)])


def _root_counts(root: Plain) -> tuple[int, ...]:
    gone = len(list_of(root.get("missing")))
    filtered = int(root.get("filtered") or 0)
    return int(root.get("items") or 0), kept_of(root), gone, unfinished_of(root), filtered


def _nodes(report: RunReport) -> Markup:
    used = [c for c in COUNTS if any(state.counts[c] for state in report.states)]
    rows = [
        [
            node_text(s.node),
            s.type,
            s.state,
            *(f"{s.counts[c]:,}" if s.counts[c] else "" for c in used),
        ]
        for s in report.states
    ]
    heads = ["Node", "Type", "State", *(c.replace("_", " ").capitalize() for c in used)]
    return table("Nodes", heads, rows, numbers=range(3, len(heads)))


def costs(report: RunReport) -> Markup:
    """By node, by model, by day; the supervisor apart."""
    money = report.money
    if not any((money.steps_micro_usd, money.supervisor_micro_usd, money.steering_micro_usd)):
        return Markup()
    nodes = [
        [node_text(node) if node else NO_STEP, dollars(amount)]
        for node, amount in money.by_node().most_common()
    ]
    total = [
        ["steps", dollars(money.steps_micro_usd)],
        ["supervisor", dollars(money.supervisor_micro_usd)],
        *([f"steering, {text(name)}", dollars(n)] for name, n in money.steering.items()),
    ]
    together = dollars(
        money.steps_micro_usd + money.supervisor_micro_usd + money.steering_micro_usd
    )
    models = [
        [model or NO_MODEL, dollars(steps), dollars(deciding)]
        for model, (steps, deciding) in by_model(money).items()
    ]
    days = [
        [day or "(no day)", dollars(steps), dollars(deciding)]
        for day, (steps, deciding) in by_day(money).items()
    ]
    return joined(
        [
            table("Together", ["", "Cost"], total, numbers=[1], foot=["together", together]),
            table("By node", ["Node", "Cost"], nodes, numbers=[1]),
            table("By model", ["Model", "Steps", "Supervisor"], models, numbers=[1, 2]),
            table("By day", ["Day", "Steps", "Supervisor"], days, numbers=[1, 2]),
        ]
    )


def rejected(report: RunReport) -> Markup:
    """Input records that could not be used."""
    parts = []
    for node, number in report.rejected.items():
        rows = [
            [str(event.get("line") or ""), event.get("reason"), cut(text(event.get("raw")), _RAW)]
            for event in report.rejects
            if event.get("node_id") == node
        ]
        caption = f"{node_text(node)}: {count(number, 'record')}"
        shown = table(caption, ["Line", "Why", "What it was"], rows)
        more = number - len(rows)
        rest = el("p", f"{caption}: {more:,} more are not on record one by one") if more > 0 else ""
        parts += [folded(caption, shown, len(rows)), rest]
    return joined(parts)


def outputs(report: RunReport) -> Markup:
    """What the run put out, in short."""
    return facts((text(name), output_text(value)) for name, value in report.outputs.items())


def warnings(report: RunReport) -> Markup:
    """Lines steps wrote, and windows that had to be widened."""
    times: dict[str, int] = defaultdict(int)
    for line in report.warnings:
        times[line] += 1
    lines = [line + (f" ({n} times)" if n > 1 else "") for line, n in times.items()]
    lines += [
        f"{node_text(node)}: everything waited for it, so it may be {window:,} items ahead"
        for node, window in report.widened.items()
    ]
    return el("ul", *(el("li", line) for line in lines)) if lines else Markup()
