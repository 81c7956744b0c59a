"""A streaming chain: documents are cut into pieces, and each piece is stored as it comes.

`pieces` streams: what it has put out before it fails is on its way, or stored already.

Read next: `join.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import nightwarden as nw
from nightwarden.evals.case import Case
from nightwarden.evals.steps import step
from nightwarden.evals.world import World
from nightwarden.nodes.context import Context
from nightwarden.nodes.io import Collect
from nightwarden.spec.workflow import Workflow

DOCUMENTS: Final = ("ebb", "flood", "neap")
PIECES: Final = 3


def night(*, without: tuple[str, ...] = ()) -> list[list[str]]:
    """What is stored in the end: the pieces of each document, less the documents or pieces named.

    A document is named `"flood"`, a piece `"flood 3"`.
    """
    return [
        [name for i in range(1, PIECES + 1) if (name := f"{document} {i}") not in without]
        for document in DOCUMENTS
        if document not in without
    ]


def nightly(world: World, case: Case) -> Workflow:
    """The workflow of a case of this shape."""
    once = "idempotent_by" in case.promises.get("stored", {})

    async def documents() -> AsyncIterator[str]:
        """List tonight's documents."""
        for document in DOCUMENTS:
            yield document

    async def pieces(document: str, ctx: Context) -> AsyncIterator[str]:
        """Cut a document into pieces to search by, one after the other."""
        await world.meet("pieces", ctx)
        for number in range(1, PIECES + 1):
            if number == PIECES:
                await world.meet("pieces", ctx, after=True)
            yield f"{document} {number}"

    async def vector(piece: str, ctx: Context) -> list[float]:
        """Have a vector made of a piece by the embedding service."""
        await world.meet("vector", ctx)
        return [float(len(piece)), 1.0]

    async def stored(piece: str, vector: list[float], ctx: Context) -> str:
        """Put a piece and its vector into the index."""
        await world.meet("stored", ctx)
        world.post(piece, str(vector[0]), once=once)
        await world.meet("stored", ctx, after=True)
        return piece

    async def counted(stored: Collect[str]) -> list[str]:
        """Name the pieces of one document that are stored."""
        return list(stored)

    async def night(counts: Collect[list[str]]) -> list[list[str]]:
        """Name everything that is stored; a missing document or piece is named in the report."""
        return list(counts)

    with nw.workflow("nightly", description="Stores documents, piece by piece, to search by.") as w:
        each = w.add(step(case, documents), id="documents")
        cut = w.add(
            step(case, pieces, retry_safe=True, label="{document}"), id="pieces", document=each
        )
        made = w.add(step(case, vector, retry_safe=True, label="{piece}"), id="vector", piece=cut)
        kept = w.add(step(case, stored, label="{piece}"), id="stored", piece=cut, vector=made)
        count = w.add(step(case, counted), id="counted", stored=kept.collect())
        end = w.add(step(case, night), id="night", counts=count.collect())
        w.output("result", end)
    return w.build()
