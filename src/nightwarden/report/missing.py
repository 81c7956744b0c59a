"""Which items are not in a run's result: by name, where they went missing, and by whose decision.

    the ledger of the end     what was lost or failed on its way to an exit
    the interventions         what failed and stopped the run; before the end, what was given up
    failures nobody was       what failed while the run was ending
    asked about

Read next: `folding.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nightwarden.events.interventions import Intervention
from nightwarden.events.words import count, list_of, mapping_of, text
from nightwarden.lineage import show
from nightwarden.spec.layout import node_text

Plain = Mapping[str, Any]

_GIVEN_UP: Final = ("skipped",)
_STOPPED: Final = ("stopped", "never_ran", "retry_never_ran")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One item that is not in the result: which, where and why it was lost, and by which decision.

    `root` is the fan-out it is an item of, empty for the run itself, and where the record does
    not say. `kind` is `lost` or `failed`.
    """

    root: str
    item: str
    label: str
    node: str
    kind: str
    reason: str
    escalation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt nobody was asked about."""

    place: str
    detail: str
    error_type: str
    signature: str
    attempt: int
    node: str = ""
    item: str = ""
    label: str = ""


def of_ledger(
    roots: Iterable[Plain], run: Plain, unasked: Mapping[tuple[str, str], str]
) -> Iterator[Missing]:
    """What the run's end says to be missing; `unasked` is why, where nobody was asked."""
    for root in (*roots, {**run, "node": ""}):
        for item in list_of(root.get("missing")):
            yield _entry(item, str(root.get("node", "")), unasked)


def of_interventions(
    interventions: Iterable[Intervention],
    known: Iterable[Missing],
    roots: Mapping[str, str],
    *,
    ended: bool,
) -> Iterator[Missing]:
    """What interventions say beyond that: what stopped the run, and what is given up so far.

    `roots` names the fan-out each node lies under.
    """
    told = _told(known)
    for found in interventions:
        given_up = not ended and found.became in _GIVEN_UP
        if given_up or found.became in _STOPPED:
            entry = _intervened(found, "lost" if given_up else "failed", roots)
            if (entry.root, entry.item) not in told:
                told.add((entry.root, entry.item))
                yield entry


def of_failures(
    failures: Iterable[Failure], known: Iterable[Missing], roots: Mapping[str, str]
) -> Iterator[Missing]:
    """What failed without anybody being asked."""
    told = _told(known)
    for failure in failures:
        root = roots.get(failure.node, "")
        if (root, failure.item) not in told:
            told.add((root, failure.item))
            yield Missing(
                root=root,
                item=failure.item,
                label=failure.label,
                node=failure.node,
                kind="failed",
                reason=failure.detail,
            )


def _told(known: Iterable[Missing]) -> set[tuple[str, str]]:
    return {(item.root, item.item) for item in known if item.item}


def failure_of(event: Plain, place: str) -> Failure:
    """An `invocation_failed` event, in words."""
    item = show(tuple(list_of(event.get("lineage"))))
    named = str(event.get("item") or "")
    return Failure(
        place=place,
        detail=str(event.get("detail", "")),
        error_type=str(event.get("error_type", "")),
        signature=str(event.get("signature") or ""),
        attempt=int(event.get("attempt") or 1),
        node=str(event.get("node_id", "")),
        item=item,
        label=named.removeprefix(item).strip(),
    )


def kept_of(root: Plain) -> int:
    """How many of a fan-out's items are in the result. Old records counted what never ran."""
    exits = [mapping_of(found) for found in list_of(root.get("exits"))]
    arrived = [sum(int(e.get(c) or 0) for c in ("delivered", "not_taken", "left")) for e in exits]
    return min([int(root.get("kept") or 0), *arrived])


def unfinished_of(root: Plain) -> int:
    """How many the run ended before; worked out where an old record does not say it."""
    told = root.get("unfinished")
    if isinstance(told, int):
        return told
    return max(0, int(root.get("items") or 0) - kept_of(root) - len(list_of(root.get("missing"))))


def unfinished_texts(roots: Iterable[Plain], missing: Iterable[Missing]) -> Iterator[str]:
    """That a run ended before some items were through, besides those of `missing` by name."""
    named = Counter(item.root for item in missing)
    for root in roots:
        name = str(root.get("node", ""))
        # What broke off is by name, and not in the ledger's own list: nothing became of it.
        broke_off = named[name] - len(list_of(root.get("missing")))
        left = unfinished_of(root) - broke_off
        if left > 0:
            items = count(left, "more item" if broke_off else "item")
            yield f"{items} of {node_text(name)} not through when the run ended"


def unread_of(root: Plain) -> int:
    """How many items nobody took: all who read had enough before."""
    exits = [mapping_of(found) for found in list_of(root.get("exits"))]
    return min((int(each.get("left") or 0) for each in exits), default=0)


def missing_text(items: Sequence[Missing], root: str) -> str:
    """How many of what are missing: items of a fan-out, or what the run itself should give."""
    if root:
        return f"{count(len(items), 'item')} of {root}"
    return "the run's own result" if not items[0].item else count(len(items), "item")


def _entry(item: object, root: str, unasked: Mapping[tuple[str, str], str]) -> Missing:
    found = mapping_of(item)
    reason = str(found.get("reason", ""))
    at = (str(found.get("node", "")), str(found.get("at", "")))
    nobody = not reason and at in unasked
    return Missing(
        root=root,
        item=str(found.get("item", "")),
        label=str(found.get("label", "")),
        node=str(found.get("node", "")),
        kind=str(found.get("kind", "")),
        reason=unasked[at] if nobody else reason,
        escalation="" if nobody else str(found.get("escalation", "")),
    )


def _intervened(found: Intervention, kind: str, roots: Mapping[str, str]) -> Missing:
    node = str(found.escalation.get("node_id", ""))
    reason = found.decision.get("rationale") if kind == "lost" else found.escalation.get("detail")
    return Missing(
        root=roots.get(node, ""),
        item=show(tuple(list_of(found.escalation.get("lineage")))),
        label=str(mapping_of(found.escalation.get("item")).get("label", "")),
        node=node,
        kind=kind,
        reason=text(reason),
        escalation=found.id,
    )
