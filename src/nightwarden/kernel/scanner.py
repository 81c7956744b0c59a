"""Finding every registered secret in a text, cheaply where there is none.

    text ──▶ sieve (substrings of letters and digits) ──▶ nothing: the text as it is
                         │ some form may be there
                         ▼
             reading (secret_reading) ──▶ spans, merged, longest names first ──▶ marks
                         ▼
             check: decoded in every way, does the result still tell?  ──▶ ••••(hidden)

The sieve looks at the text twice: with all but ASCII letters and digits removed, and the same
after escapes are decoded. Encoders change or insert only what the sieve removes, or what it
decodes, so what it lets pass holds no secret.

Read next: `redaction.py`.
"""

from __future__ import annotations

import html
import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from nightwarden.kernel.marks import HIDDEN, MASK_PREFIX, mask_of
from nightwarden.kernel.secret_forms import SHORT, Form, Secret
from nightwarden.kernel.secret_reading import occurrences

Span = tuple[int, int, str]

_KEPT: Final = (string.ascii_letters + string.digits).encode()
_DROPPED: Final = bytes(byte for byte in range(256) if byte not in _KEPT)

_PERCENT = re.compile(r"%(?:25)*([0-7][0-9A-Fa-f])")
_REFERENCE = re.compile(
    r"&(?:amp;)*#(?:([0-9]{1,7})|[xX]([0-9A-Fa-f]{1,6}));|&(?:nbsp|Tab|NewLine);"
)
_ESCAPE = re.compile(
    r"\\+(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})"
    r"|([0-3][0-7]{2})|[nrtfv])"
)
_BREAK_TAG = re.compile(r"<w?br\s*/?>", re.IGNORECASE)
_BASES: Final = {
    _PERCENT: (16,),
    _REFERENCE: (10, 16),
    _ESCAPE: (16, 16, 16, 16, 8),
    _BREAK_TAG: (),
}
_SIGNS: Final = (("%", _PERCENT), ("&", _REFERENCE), ("\\", _ESCAPE), ("<", _BREAK_TAG))
_FOLD = re.compile(r"[ \t]*[\r\n]\s*")
_ELLIPSIS = re.compile(r"\.{3}|…|\[\.\.\.\]")
_FRAGMENT: Final = 8
_LAST_FRAGMENT: Final = 12
_ROUNDS: Final = 4


class Scanner:
    """Masks a fixed set of secrets. Immutable once built."""

    __slots__ = ("_always", "_fragile", "_marks", "_needles", "longest")

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
        self._needles = tuple((needle, tuple(forms)) for needle, forms in needles.items())
        self._always = tuple(always)
        self._fragile = tuple(fragile)
        names = sorted({mask_of(form.name) for form in (*always, *_all(needles))})
        self._marks = re.compile("|".join(re.escape(name) for name in names) or r"(?!)")
        self.longest = longest
        """How many characters the longest form has."""

    def mask(self, text: str) -> str:
        """`text` with a mark in place of every secret; the very same text where there is none."""
        if MASK_PREFIX not in text:
            return self._mask_part(text)
        parts: list[str] = []
        place = 0
        for mark in self._marks.finditer(text):
            parts += (self._mask_part(text[place : mark.start()]), mark[0])
            place = mark.end()
        return "".join([*parts, self._mask_part(text[place:])])

    def _mask_part(self, text: str) -> str:
        forms = self._suspects(text)
        spans = [*self._spans(text, forms), *self._fragments(text)]
        if spans:
            text = _replace(text, spans)
        if forms and self._still_tells(text, forms):
            return HIDDEN
        return text

    def _suspects(self, text: str) -> tuple[Form, ...]:
        """The forms that may stand in `text`."""
        readings = list(_readings(text))
        if len(readings) > 1 and _FOLD.search(text):
            readings += list(_readings(_FOLD.sub("", text)))[1:]
        sieved = b"\0".join(map(_letters, readings))
        found = [form for needle, forms in self._needles if needle in sieved for form in forms]
        return (*self._always, *dict.fromkeys(found))

    def _spans(self, text: str, forms: tuple[Form, ...]) -> Iterator[Span]:
        for form in forms:
            for start, end in occurrences(text, form):
                yield start, end, form.name
        if forms and _FOLD.search(text) and any(sign in text for sign, _ in _SIGNS):
            # Lines may have been broken inside an escape: `%2` at the end of one, `F` on the next.
            unfolded = _Unfolded(text)
            for form in forms:
                for start, end in occurrences(unfolded.text, form):
                    yield unfolded.place(start), unfolded.place(end - 1) + 1, form.name

    def _fragments(self, text: str) -> Iterator[Span]:
        """What is left of a token that somebody else cut: `zk-live/7Qm2...9aB==`."""
        if not self._fragile:
            return
        cuts = [(cut.start(), cut.end()) for cut in _ELLIPSIS.finditer(text)]
        for token, name in self._fragile:
            end = _ending(text, len(text), token, _LAST_FRAGMENT)
            if 0 < end < len(token):
                yield len(text) - end, len(text), name
            for left, right in cuts:
                head = _ending(text, left, token, _FRAGMENT)
                tail = _beginning(text, right, token, _FRAGMENT if not head else 3)
                if head or tail:
                    yield left - head, right + tail, name

    def _still_tells(self, text: str, forms: tuple[Form, ...]) -> bool:
        wanted = {
            squashed
            for form in forms
            if form.verify and form.spaced and not form.word
            for squashed in (_squash(form.verify), _squash(_unescaped(form.verify)))
            if len(squashed) >= SHORT
        }
        if not wanted:
            return False
        bare = self._marks.sub("\0\0", text)
        squashed = {
            _squash(read) for start in (bare, _FOLD.sub("", bare)) for read in _all_read(start)
        }
        return any(secret in read for secret in wanted for read in squashed)


class _Unfolded:
    """A text with its line breaks taken out, and where each of its characters came from."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._shifts: list[int] = []
        parts: list[str] = []
        place = length = 0
        for start, end in [*(m.span() for m in _FOLD.finditer(text)), (len(text), len(text))]:
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


def _letters(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, _DROPPED)


def _readings(text: str) -> Iterator[str]:
    """`text`, then with escapes of ASCII decoded and escaped white space removed, kind by kind.

    A round may turn one kind of escape into another, so there are several.
    """
    yield text
    for _ in range(_ROUNDS):
        before = text
        for sign, escape in _SIGNS:
            if sign in text:
                text = escape.sub(_character, text)
        if text == before:
            return
        yield text


def _character(match: re.Match[str]) -> str:
    """An ASCII character for its escape; nothing for any other, since the sieve drops those."""
    char = _any_character(match)
    return char if char.isascii() and not char.isspace() else ""


def _any_character(match: re.Match[str]) -> str:
    base = _BASES[match.re]
    for code, radix in zip(match.groups(), base, strict=True):
        if code is not None:
            value = int(code, radix)
            return chr(value) if value < 0x110000 else ""
    return ""


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


def _all_read(text: str) -> Iterator[str]:
    """`text` decoded once, twice, … until nothing is left to decode."""
    for _ in range(_ROUNDS):
        yield text
        before, text = text, _unescaped(text)
        if text == before:
            return


def _squash(text: str) -> str:
    return _QUOTING.sub("", text)


def _unescaped(text: str) -> str:
    text = html.unescape(unquote(text))
    return _ESCAPE.sub(_any_character, text) if "\\" in text else text
