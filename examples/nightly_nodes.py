"""Steps of `nightly.yaml`, and a way to ask what it stored.

    chunk      a text becomes pieces, one after the other
    embed      a piece becomes a vector: hashed words, no model
    upsert     piece and vector go into an SQLite file; the same piece again changes nothing

    python examples/nightly_nodes.py nightly.db "why is high water later every day"

Read next: `nightly.yaml`, `nightly.answers.yaml`.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sqlite3
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from nightwarden import Collect, Context, NodeError, node

Fault = Literal["none", "chunker_breaks", "poisoned", "upsert_lost_answer"]

DIMENSIONS: Final = 512
_WORD: Final = re.compile(r"[^\W_]+")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")
_TABLE: Final = """
    create table if not exists chunks (
        document text not null, digest text not null, position integer not null,
        text text not null, vector blob not null,
        primary key (document, digest)
    )
"""
_UPSERT: Final = """
    insert into chunks values (?, ?, ?, ?, ?)
    on conflict (document, digest) do update set position = excluded.position
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document; `position` counts from 0."""

    document: str
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a piece in the store: new, or there already."""

    digest: str
    new: bool


@dataclass(frozen=True, slots=True)
class Count:
    """How much of one document is in the store after this run."""

    document: str
    chunks: int
    new: int


@dataclass(frozen=True, slots=True)
class Night:
    """What the whole run came to; `missing` names lost documents, and why."""

    documents: int
    chunks: int
    new: int
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer of the store: cosine similarity, where it stands, and the text."""

    similarity: float
    document: str
    position: int
    text: str


@node(retry_safe=True, label="{document.name}")
def chunk(
    text: str,
    document: Path,
    ctx: Context,
    *,
    size: Annotated[int, Field(ge=40)] = 320,
    fault: Fault = "none",
) -> Iterator[Piece]:
    """Cut a text into pieces of at most `size` characters, or one sentence, at ends of sentences.

    A text with control characters in it is none, and fails (code `not-text`).
    """
    number = ctx.lineage[0]  # of the document, from 0
    if fault == "poisoned" and number == 2:
        text += "\0"
    if found := _CONTROLS.search(text):
        where = f"character {found.start() + 1} is {found.group()!r}"
        raise NodeError(f"{document.name} is no text: {where}", code="not-text")
    name = _name(document, ctx)
    for position, part in enumerate(_parts(text, size)):
        if fault == "chunker_breaks" and number == 1 and position == 2:
            raise ValueError(f"lost the thread of {document.name} after {position} pieces")
        yield Piece(name, position, part)


# Pure computing: in a process of its own it takes no time from whatever else the run does.
@node(retry_safe=True, pure=True, executor="process")
def embed(piece: Piece) -> list[float]:
    """A vector of length 1 for a piece: equal words point the same way."""
    return vector_of(piece.text)


# Storing the same again would do no harm, by its key. But whoever wrote this step has not said so
# to the engine, and what nobody has classified is not done twice.
@node(concurrency=1, label="{piece.document}")
def upsert(
    piece: Piece, vector: list[float], store: Path, ctx: Context, *, fault: Fault = "none"
) -> Stored:
    """Put a piece and its vector into the store, once for each document and text."""
    digest = hashlib.blake2b(piece.text.encode(), digest_size=16).hexdigest()
    row = (piece.document, digest, piece.position, piece.text, array("f", vector).tobytes())
    with opened(ctx.workdir / store) as db:
        known = db.execute(
            "select 1 from chunks where document = ? and digest = ?", row[:2]
        ).fetchone()
        db.execute(_UPSERT, row)
    if fault == "upsert_lost_answer" and ctx.lineage == (0, 1):
        raise ConnectionError("the store hung up before it said whether it had written")
    return Stored(digest, new=known is None)


@node(retry_safe=True, pure=True)
def count(stored: Collect[Stored], document: Path, ctx: Context) -> Count:
    """Count the pieces of one document that are in the store."""
    return Count(_name(document, ctx), len(stored), sum(piece.new for piece in stored))


@node(retry_safe=True, pure=True)
def total(counts: Collect[Count], documents: Collect[Path]) -> Night:
    """Add the documents up, and name those that are missing."""
    names = {index: path.name for index, path in zip(documents.indices, documents, strict=True)}
    missing = [f"{names[loss.index]} ({loss.cause})" for loss in counts.losses]
    chunks, new = sum(c.chunks for c in counts), sum(c.new for c in counts)
    return Night(len(counts), chunks, new, missing)


@node
def notify(night: Night, notes: Path, ctx: Context) -> str:
    """Tell people, in one line appended to a file."""
    line = f"nightly: {night.documents} documents, {night.chunks} chunks, {night.new} new"
    line += "".join(f"; missing {what}" for what in night.missing)
    with (ctx.workdir / notes).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return line


def nearest(store: Path, question: str, most: int = 3) -> list[Hit]:
    """The pieces in the store that are nearest to a question; compares with every one of them."""
    wanted = vector_of(question)
    with opened(store) as db:
        rows = db.execute("select document, position, text, vector from chunks").fetchall()
    hits = []
    for document, position, text, blob in rows:
        similarity = sum(map(mul, wanted, array("f", blob)))
        hits.append(Hit(round(similarity, 3), document, position, text))
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.document, hit.position))[:most]


def vector_of(text: str) -> list[float]:
    """Words and their beginnings, each hashed to one place and a sign; scaled to length 1."""
    vector = [0.0] * DIMENSIONS
    for feature, weight in _features(text):
        hashed = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest())
        vector[hashed % DIMENSIONS] += weight if hashed >> 63 else -weight
    length = math.hypot(*vector)
    if not length:  # nothing in it, or all of it cancelled out
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    return [value / length for value in vector]


@contextmanager
def opened(store: Path) -> Iterator[sqlite3.Connection]:
    """The store, with its table, in one transaction that is kept unless something is raised."""
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(_TABLE)
        yield db


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Long words tell more than short ones; a beginning in common is half as good as a word."""
    for word in _WORD.findall(text.casefold()):
        weight = math.log(len(word))
        yield word, weight
        if len(word) > 4:
            yield f"{word[:4]}…", weight / 2


def _parts(text: str, size: int) -> Iterator[str]:
    """Whole sentences, as many as fit; a heading goes with what it stands above."""
    part = ""
    for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", text.strip()):
        if part and len(part) + len(sentence) >= size:
            yield part
            part = ""
        part = f"{part} {' '.join(sentence.split())}".strip()
    if part:
        yield part


def _name(document: Path, ctx: Context) -> str:
    """The same on every machine, if the documents lie where the run is."""
    return os.path.relpath(document, ctx.workdir)


def main(arguments: Sequence[str]) -> int:
    """Ask the store from the command line."""
    if len(arguments) != 2:
        sys.stderr.write("usage: nightly_nodes.py STORE QUESTION\n")
        return 2
    store, question = Path(arguments[0]), arguments[1]
    if not store.is_file():
        sys.stderr.write(f"{store}: there is no such store; run nightly.yaml first\n")
        return 1
    for hit in nearest(store, question):
        sys.stdout.write(f"{hit.similarity:.3f}  {hit.document}  {hit.text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
