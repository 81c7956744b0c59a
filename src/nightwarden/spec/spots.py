"""Spots in a run, as options name them: a node, or one item of it.

    page          the node `page`, all its items
    page[148]     its 148th item
    chunk[3.1]    below two fan-outs: the first item of the third

Pure. Read next: `differences.py` (below), `scopes.py`.
"""

from __future__ import annotations

import re
from typing import Final

from nightwarden.errors import RunError
from nightwarden.lineage import Lineage, parse
from nightwarden.spec.differences import below
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import INPUTS, Workflow

Spot = tuple[str, Lineage]
"""A node, and an item's lineage or the beginning of one."""

_ITEM: Final = re.compile(r"(?P<node>.+)\[(?P<item>[^\[\]]*)\]")


def read_spot(workflow: Workflow, text: str) -> Spot:
    """The spot that is meant. Raises `RunError` that names what there is."""
    known = [spec.id for spec in workflow.nodes]
    match = None if text in known else _ITEM.fullmatch(text)
    node = match["node"] if match else text
    if node not in known:
        raise RunError(f"{text}: there is no node {node!r}; there are {', '.join(known)}")
    lineage = _item(text, match["item"]) if match else ()
    depth = len(analyse(workflow).scopes[node])
    if len(lineage) > depth:
        one = "a number" if depth == 1 else f"{depth} numbers"
        raise RunError(f"{text}: name {node} {f'by {one} at most' if depth else 'without an item'}")
    return node, lineage


def with_below(workflow: Workflow, spot: Spot) -> list[Spot]:
    """A spot and all that follows from it: as little as the scopes allow."""
    node, lineage = spot
    scopes = analyse(workflow).scopes
    edges = [{"source": e.source, "target": e.target} for e in workflow.edges]
    found: list[Spot] = [spot]
    for other in sorted(below([node], edges) - {node, INPUTS}):
        common = 0
        for mine, theirs in zip(scopes[node], scopes[other], strict=False):
            if mine != theirs:
                break
            common += 1
        found.append((other, lineage[:common]))
    return found


def _item(text: str, item: str) -> Lineage:
    try:
        if item:
            return parse(item)
    except ValueError:
        pass
    raise RunError(
        f"{text}: {item!r} is no item: write NODE[148], NODE[3.1] below two lists, or NODE for all"
    )
