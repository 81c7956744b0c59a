"""Finding every registered secret in a text, cheaply where there is none.

    text ──▶ sieve (substrings of letters and digits) ──▶ nothing: the text as it is
                         │ some form may be there
                         ▼
             reading (secret_reading) ──▶ spans, merged, longest names first ──▶ marks
                         ▼
             check: decoded in every way, does the result still tell?  ──▶ ••••(hidden)

Read next: `redaction.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from nightwarden.masking.marks import HIDDEN, MASK_PREFIX, mask_of
from nightwarden.masking.secret_forms import OPTIONAL_SPACE, SHORT, Form, Secret
from nightwarden.masking.secret_reading import occurrences
from nightwarden.masking.sieve import BROKEN_ESCAPE, FOLD, decodings, sieved

Span = tuple[int, int, str]

_ELLIPSIS = re.compile(r"\.{3}|…|\[\.\.\.\]")
_MOST_KEYS: Final = 4_096
_NUMBER_SIGNS: Final = frozenset("0123456789.+-eE")
_FRAGMENT: Final = 8
_LAST_FRAGMENT: Final = 12


class Scanner:
    """Masks a fixed set of secrets."""

    __slots__ = (
        "_always", "_clean_keys", "_forms", "_fragile", "_lengths", "_marks", "_needles", "longest",
        "numeric",
    )  # fmt: skip

    def __init__(self, secrets: Iterable[Secret]) -> None:
        needles: dict[bytes, list[Form]] = {}
        always: list[Form] = []
        fragile: list[tuple[str, str]] = []
        longest = 0
        for secret in secrets:
            for form in secret.forms:
                longest = max(longest, len(form.units))
                for needle in form.needles:
                    needles.setdefault(needle, []).append(form)
                if not form.needles:
                    always.append(form)
            fragile += [(text, secret.name) for text in secret.fragile]
        self._forms = needles
        self._needles = sorted(needles, key=len)
        self._lengths = [len(needle) for needle in self._needles]
        self._always = tuple(always)
        self._fragile = tuple(fragile)
        names = sorted({mask_of(form.name) for form in (*always, *_all(needles))})
        self._marks = re.compile("|".join(re.escape(name) for name in names) or r"(?!)")
        self.longest = longest
        """How many characters the longest form has."""
        self.numeric = any(map(_may_be_a_number, (*always, *_all(needles))))
        """Whether a number can hold one of the secrets."""
        self._clean_keys: set[str] = set()

    def mask_key(self, text: str) -> str:
        """Like `mask`, for texts that come again and again: keys found clean are remembered."""
        if text in self._clean_keys:
            return text
        masked = self.mask(text)
        if masked == text and len(text) <= 64 and len(self._clean_keys) < _MOST_KEYS:
            self._clean_keys.add(text)
        return masked

    def mask(self, text: str) -> str:
        """`text` with a mark in place of every secret; the very same text where there is none."""
        if MASK_PREFIX not in text:
            return self._mask_part(text)
        parts: list[str] = []
        place = 0
        for mark in self._marks.finditer(text):
            parts += (self._mask_part(text[place : mark.start()]), mark[0])
            place = mark.end()
        masked = "".join([*parts, self._mask_part(text[place:])])
        return text if masked == text else masked

    def _mask_part(self, text: str) -> str:
        forms = self._suspects(text)
        if not forms and len(text) < _FRAGMENT:
            return text
        spans = [*self._spans(text, forms), *self._fragments(text)]
        if spans:
            text = _replace(text, spans)
        if forms and self._still_tells(text, forms):
            return HIDDEN
        return text

    def _suspects(self, text: str) -> tuple[Form, ...]:
        """The forms that may stand in `text`."""
        letters = sieved(text)
        short = self._needles[: bisect_right(self._lengths, len(letters))]
        hits = [needle for needle in short if needle in letters]
        if not hits:
            return self._always
        found = [form for needle in hits for form in self._forms[needle]]
        return tuple(dict.fromkeys([*self._always, *found]))

    def _spans(self, text: str, forms: tuple[Form, ...]) -> Iterator[Span]:
        for form in forms:
            for start, end in occurrences(text, form):
                yield start, end, form.name
        if forms and BROKEN_ESCAPE.search(text):
            unfolded = _Unfolded(text)
            for form in forms:
                for start, end in occurrences(unfolded.text, form):
                    yield unfolded.place(start), unfolded.place(end - 1) + 1, form.name

    def _fragments(self, text: str) -> Iterator[Span]:
        """What is left of a token that somebody else cut: `zk-live/7Qm2...9aB==`."""
        if not self._fragile:
            return
        cuts = [(cut.start(), cut.end()) for cut in _ELLIPSIS.finditer(text)]
        last = text[-_LAST_FRAGMENT:]
        for token, name in self._fragile:
            if last in token and len(last) == _LAST_FRAGMENT:
                end = _ending(text, len(text), token, _LAST_FRAGMENT)
                if 0 < end < len(token):
                    yield len(text) - end, len(text), name
            for left, right in cuts:
                head = _ending(text, left, token, _FRAGMENT)
                tail = _beginning(text, right, token, _FRAGMENT if not head else 3)
                if head or tail:
                    yield left - head, right + tail, name

    def _still_tells(self, text: str, forms: tuple[Form, ...]) -> bool:
        """Whether a secret can be read in the result all the same: it is encoded in an odd way."""
        wanted = {
            _squash(read)
            for form in forms
            if form.verify and form.spaced and not form.word
            for read in decodings(form.verify)
            if _is_itself(read)
        }
        if not wanted:
            return False
        bare = self._marks.sub("\0\0", text)
        starts = dict.fromkeys((bare, FOLD.sub("", bare)))
        squashed = [_squash(read) for start in starts for read in decodings(start)]
        return any(secret in read for secret in wanted for read in squashed)


class _Unfolded:
    """A text with its line breaks taken out, and where each of its characters came from."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._shifts: list[int] = []
        parts: list[str] = []
        place = length = 0
        for start, end in [*(m.span() for m in FOLD.finditer(text)), (len(text), len(text))]:
            self._starts.append(length)
            self._shifts.append(place - length)
            parts.append(text[place:start])
            length += start - place
            place = end
        self.text = "".join(parts)

    def place(self, at: int) -> int:
        """Where the character at `at` stands in the folded text."""
        return at + self._shifts[bisect_right(self._starts, at) - 1]


def _all(needles: dict[bytes, list[Form]]) -> Iterator[Form]:
    for forms in needles.values():
        yield from forms


def _may_be_a_number(form: Form) -> bool:
    return all(not _NUMBER_SIGNS.isdisjoint(unit) for unit in form.units if unit)


def _replace(text: str, spans: list[Span]) -> str:
    """Overlapping spans become one mark, named after the longest of them."""
    parts: list[str] = []
    place = 0
    for start, end, name in _merged(spans):
        parts += (text[place:start], mask_of(name))
        place = end
    return "".join([*parts, text[place:]])


def _merged(spans: list[Span]) -> Iterator[Span]:
    start = end = length = 0
    name = ""
    for left, right, candidate in sorted(spans, key=lambda span: (span[0], -span[1])):
        if right <= left:
            continue
        if left >= end:
            if end:
                yield start, end, name
            start, end, name, length = left, right, candidate, right - left
            continue
        end = max(end, right)
        if right - left > length:
            name, length = candidate, right - left
    if end:
        yield start, end, name


def _ending(text: str, end: int, token: str, least: int) -> int:
    """How many characters of the token's start stand right before `end`; 0 if too few."""
    sample, found = text[max(0, end - least) : end], 0
    place = token.find(sample) if len(sample) == least else -1
    while place >= 0:
        if text.endswith(token[: place + least], 0, end):
            found = place + least
        place = token.find(sample, place + 1)
    return found


def _beginning(text: str, start: int, token: str, least: int) -> int:
    """How many characters of the token's end stand right from `start`; 0 if too few."""
    sample = text[start : start + least]
    place = token.find(sample) if len(sample) == least else -1
    while place >= 0:
        if text.startswith(token[place:], start):
            return len(token) - place
        place = token.find(sample, place + 1)
    return 0


_QUOTING = re.compile(r"[\s\"'`\\]+")


def _squash(text: str) -> str:
    return _QUOTING.sub("", text)


def _is_itself(secret: str) -> bool:
    """Whether enough of it is left without spaces and quotes to know it from ordinary words."""
    squashed = _squash(secret)
    return len(squashed) >= OPTIONAL_SPACE or (squashed == secret and len(squashed) >= SHORT)
