"""The steps of the run that is kept in `run-0001`: pages in pieces, each published once."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import nightwarden as nw
from nightwarden import Collect, RecoverableError
from nightwarden.errors import NodeError
from nightwarden.nodes.registry import Registry
from nightwarden.spec.workflow import Workflow

DIES_AT = "dies.txt"
"""Where this file lies, the process ends in the midst of publishing."""


@nw.node(type="night.Page", retry_safe=True, label="{name}")
async def page(name: str) -> dict[str, object]:
    if name.startswith("gone"):
        raise NodeError(f"{name} is gone", code="gone")
    if name == "torn":
        raise RecoverableError("torn at the end", candidate_output={"name": name}, code="torn")
    return {"name": name, "text": f"{name} " * 10_000}


@nw.node(type="night.Pieces", retry_safe=True)
async def pieces(page: dict[str, object]) -> AsyncIterator[str]:
    for number in range(2):
        yield f"{page['name']}.{number}"


@nw.node(type="night.Publish")
async def publish(piece: str) -> str:
    if piece == "c.1" and os.access(DIES_AT, os.F_OK):
        os._exit(9)
    return f"published {piece}"


@nw.node(type="night.Table", retry_safe=True)
async def table(rows: Collect[str]) -> list[str]:
    return list(rows)


def workflow() -> Workflow:
    """Pages, their pieces, and a list of what was published of each."""
    registry = Registry()
    for step in (page, pieces, publish, table):
        registry.add(step)
    with nw.workflow("night", registry=registry) as w:
        names = w.input("names", list[str])
        found = w.add(page, id="page", name=names.each())
        piece = w.add(pieces, id="piece", page=found)
        done = w.add(publish, id="publish", piece=piece)
        w.add(table, id="rows", rows=done.collect())
    return w.build()


NAMES = ["a", "gone-1", "torn", "gone-2", "c", "d"]
