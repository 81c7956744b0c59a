"""text.*: summarising, filling in, and splitting text. Deterministic, and no model.

Read next: `_sentences.py`, `_templates.py`, `json.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._sentences import most_telling, sentences
from nightwarden.nodes.builtin._templates import Template, fill
from nightwarden.nodes.define import node

_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n)+")
_LOOKED_AT: Final = 4
"""How many sentences are looked at for each one wanted: long ones may not fit."""


@node(retry_safe=True, pure=True)
def summarise(
    text: str,
    *,
    max_sentences: Annotated[int, Field(ge=1)] = 3,
    max_chars: Annotated[int, Field(ge=1)] = 600,
) -> str:
    """Summarise a text by its own most telling sentences, in their order.

    At most `max_sentences`, together at most `max_chars` characters. Where not even one fits, the
    best is cut at a word and ends in `…`. The summary of an empty text is empty.
    """
    parts = sentences(text)
    kept: list[int] = []
    room = max_chars
    for looked_at, best in enumerate(most_telling(parts)):
        if len(kept) == max_sentences or looked_at == _LOOKED_AT * max_sentences:
            break
        if len(parts[best]) <= room:
            kept.append(best)
            room -= len(parts[best]) + 1
    if not kept and parts:
        return _shortened(parts[next(most_telling(parts))], max_chars)
    return " ".join(parts[position] for position in sorted(kept))


@node(retry_safe=True, inline=True, pure=True)
def template(template: Template, **fields: object) -> str:
    """Fill `{name}` in a text from further inputs of these names.

    `{name.part}` takes a part of a record, `{price:.2f}` formats as Python does, `{{` and `}}` are
    braces. A name without a value fails the step (code `template`) and is named. Values are put in
    as they are: no markup in them is escaped, and braces in them stay braces.
    """
    return fill(template, fields)


@node(retry_safe=True, inline=True, pure=True)
def split(
    text: str,
    *,
    by: Literal["size", "paragraphs", "lines"] = "size",
    size: Annotated[int, Field(ge=1)] = 800,
    overlap: Annotated[int, Field(ge=0)] = 0,
) -> Iterator[str]:
    """Split a text and fan out, one piece an item, in order.

    `size`: pieces of at most `size` characters, cut at blanks where the last quarter of a piece has
    one; each begins with the last `overlap` characters of the one before, and nothing is left
    out. `paragraphs` are parted by blank lines; `lines` by line ends; both without empty ones.
    """
    if by == "size":
        if overlap >= size:
            raise NodeError(f"overlap: {overlap} is not less than size: {size}", code="split-size")
        yield from _by_size(text, size, overlap)
        return
    whole_lines = "\n".join(text.splitlines())
    pieces = _BLANK_LINES.split(whole_lines) if by == "paragraphs" else whole_lines.split("\n")
    for piece in pieces:
        if piece.strip():
            yield piece.strip("\n") if by == "paragraphs" else piece


def _by_size(text: str, size: int, overlap: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = _cut(text, start, size, overlap)
        yield text[start:end]
        if end >= len(text):
            return
        start = end - overlap


def _cut(text: str, start: int, size: int, overlap: int) -> int:
    """Where a piece ends: after the last blank of its last quarter, else at full size."""
    end = start + size
    if end >= len(text):
        return len(text)
    # Never before the overlap's end: the next piece has to begin further on.
    for at in range(end, max(end - size // 4, start + overlap + 1), -1):
        if text[at - 1].isspace():
            return at
    return end


def _shortened(sentence: str, max_chars: int) -> str:
    room = max_chars - 1
    cut = sentence[:room]
    at = cut.rfind(" ")
    return (cut[:at] if at > room // 2 else cut) + "…"
