"""Sentences, and which of them say most: no model, no word lists of one language.

    text ─▶ sentences ─▶ words (two-letter pieces where a script has no blanks)
         ─▶ weight of a word: how often it comes, less where it comes everywhere
         ─▶ score of a sentence: its words' weights over its length, more for whole sentences
            of words and for coming early, less for signs (code, tables)
         ─▶ the best, each next one the one that adds most to those chosen

The choice is by frequency and redundancy, in the manner of SumBasic (Nenkova and
Vanderwende, 2005): chosen words lose weight. Equal scores go to the earlier sentence, so
that the same text gives the same summary.

Read next: `text.py`.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

_ABBREVIATED: Final = (
    "mr mrs ms dr prof st sr jr vs etc inc ltd co corp dept est fig figs eq no nos vol pp p ed "
    "al cf ca approx gen col sgt capt rev hon pres gov sen rep jan feb mar apr jun jul aug sep "
    "sept oct nov dec mon tue wed thu fri sat sun e.g i.e a.m p.m u.s u.k u.n "
    "bzw usw ggf evtl inkl exkl nr str hr fr bspw vgl z.b d.h u.a o.ä s.o s.u z.t i.d.r "
    "m mm mme mlle av env p.ex sig sigg dott ing avv ecc sra dña ud uds pág núm"
)
_ABBREVIATIONS: Final = frozenset(_ABBREVIATED.split())
"""Words before a full stop that ends no sentence, in lower case."""

_ENDS: Final = re.compile(
    r"[.!?…]+[\"'”’»)\]]*(?=\s)"  # Latin and its neighbours: a blank must follow
    r"|[。！？｡]+[」』”’）]*"  # Chinese, Japanese: none needed
    r"|[।॥؟۔։።]+\s?"  # Devanagari, Arabic, Urdu, Armenian, Ethiopic
)
_STOP: Final = re.compile(r"[.!?…。！？｡।॥؟۔։።][\"'”’»)\]」』）]*\s*\Z")
_LAST_WORD: Final = re.compile(r"([^\s(\[\"'„“«]+)\Z")
_NEAR: Final = 40
"""As far as this a stop's surroundings are looked at; a line may be a whole book."""
_NUMBERED: Final = re.compile(r"\d{1,2}\Z")
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
"""Scripts written without blanks between words."""

_FEWEST_WORDS: Final = 4
"""Shorter ones are headings, menu items, exclamations: chosen only if nothing else is there."""
_USUAL_WORDS: Final = 20
_USUAL_SIGNS: Final = 0.05
"""The share of commas, quotes and the like in ordinary sentences."""
_WRAPPED_FROM: Final = 40
"""A line at least this long may have been broken for its length."""
_LONGEST_TEXT: Final = 2_000_000
"""What comes after this many characters has no part in a summary."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, blanks run together. A line that ends without a stop is one."""
    found: list[str] = []
    for line in _unwrapped(text[:_LONGEST_TEXT].splitlines()):
        start = 0
        for end in _ENDS.finditer(line):
            if _ends_a_sentence(line, end):
                found.append(line[start : end.end()])
                start = end.end()
        found.append(line[start:])
    return [sentence for sentence in (" ".join(part.split()) for part in found) if sentence]


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines that were broken for their length put together: the next begins in lower case."""
    open_lines: list[str] = []
    for line in lines:
        goes_on = open_lines and len(open_lines[-1]) >= _WRAPPED_FROM and line[:1].islower()
        if not goes_on and open_lines:
            yield " ".join(open_lines)
            open_lines = []
        open_lines.append(line)
    yield " ".join(open_lines)


def words(sentence: str) -> list[str]:
    """The words of a sentence, folded; in scripts without blanks, overlapping pairs of signs."""
    found: list[str] = []
    for word in _WORD.findall(sentence.casefold()):
        if len(word) > 1 and _UNSPACED.search(word):
            found.extend(word[i : i + 2] for i in range(len(word) - 1))
        elif not word.isdecimal():
            found.append(word)
    return found


def most_telling(parts: Sequence[str]) -> Iterator[int]:
    """The positions of the sentences, the one that says most first, each by what it adds."""
    bags = [words(part) for part in parts]
    weight = _weights(bags)
    eligible = [i for i, bag in enumerate(bags) if len(bag) >= _FEWEST_WORDS]
    eligible = eligible or [i for i, bag in enumerate(bags) if bag] or list(range(len(parts)))
    form = [_form(part) for part in parts]
    heap = [(-form[i] * _score(bags[i], weight, i), i) for i in eligible]
    heapq.heapify(heap)
    while heap:
        old, best = heapq.heappop(heap)
        # Weights only fall, so the first whose score still holds is the best of all.
        now = -form[best] * _score(bags[best], weight, best)
        if now > old:
            heapq.heappush(heap, (now, best))
            continue
        yield best
        for word in set(bags[best]):
            weight[word] *= weight[word]


def _weights(bags: Sequence[Sequence[str]]) -> dict[str, float]:
    """Between 0 and 1: frequent words weigh most, those of nearly every sentence nothing."""
    often = Counter(word for bag in bags for word in bag)
    spread = Counter(word for bag in bags for word in set(bag))
    raw = {w: math.log1p(n) * math.log((1 + len(bags)) / spread[w]) for w, n in often.items()}
    highest = max(raw.values(), default=1.0) or 1.0
    # Below 1, so that squaring makes a chosen word weigh less.
    return {word: 0.95 * value / highest for word, value in raw.items()}


def _score(bag: Sequence[str], weight: dict[str, float], position: int) -> float:
    total = sum(weight[word] for word in set(bag))
    early = 1 + 1 / (1 + position / 3)
    return early * total / (len(bag) + _USUAL_WORDS)


def _form(sentence: str) -> float:
    """How much a line looks like a sentence, 0 to 1: it ends like one, and is made of words."""
    signs = sum(not (char.isalnum() or char.isspace()) for char in sentence)
    whole = 1.0 if _STOP.search(sentence) else 0.5
    return whole * max(0.05, 1 - 5 * max(0.0, signs / len(sentence) - _USUAL_SIGNS))


def _ends_a_sentence(line: str, end: re.Match[str]) -> bool:
    """Not before lower case; nor, for a full stop, after an abbreviation, initial, or number."""
    rest = line[end.end() : end.end() + _NEAR].lstrip()
    if rest[:1].islower():
        return False
    if not end.group().startswith("."):
        return True
    before = _LAST_WORD.search(line[max(0, end.start() - _NEAR) : end.start()])
    word = before.group(1) if before else ""
    is_initial = len(word) == 1 and word.isalpha() and word.isupper()
    is_number = _NUMBERED.fullmatch(word) is not None
    return not (is_initial or is_number or word.casefold() in _ABBREVIATIONS)
