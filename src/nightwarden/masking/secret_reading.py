"""How a character may be written: reading text against the units of a form.

A walk keeps the set of places it may have reached. From each it skips what encoders put
*between* characters (backslashes, quotes, line breaks, and these encoded) and reads the next
character in every way its place allows:

    /   →   /   %2F   %252F   \\/   \\u002f   \\x2f   &#47;   &sol;   =2F
    é   →   é   %C3%A9   %E9   \\u00e9   \\xc3\\xa9   \\303\\251   &eacute;

Nothing is decoded as a whole, so a stray `%` or backslash beside a secret cannot hide it, and
mixtures of encodings read like one.

Read next: `scanner.py`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from nightwarden.masking.secret_forms import MAYBE_SPACE, Form

_BACKSLASH: Final = r"(?:\\|%(?:25)*5[Cc]|&(?:amp;)*#(?:92|[xX]5[cC]);|\\u005[cC])"
_RUN: Final = _BACKSLASH + "{1,64}"
_HEX: Final = "[0-9A-Fa-f]"

_ESCAPE = re.compile(
    rf"{_RUN}(?:u(?P<u>{_HEX}{{4}})|u\{{(?P<braced>{_HEX}{{1,6}})\}}|U(?P<long>{_HEX}{{8}})"
    r"|(?P<char>.))",
    re.DOTALL,
)
_LOW_HALF = re.compile(rf"{_RUN}u([dD][c-fC-F]{_HEX}{{2}})")
_BYTE = re.compile(
    rf"%(?:25)*({_HEX}{{2}})|{_RUN}x({_HEX}{{2}})|=([0-9A-F]{{2}})|{_RUN}([0-3][0-7]{{2}})"
)
_ENTITY = re.compile(
    r"(?:&|%(?:25)*26|\\+u0026)(?:amp(?:;|%(?:25)*3[bB]))*"
    rf"((?:\#|%(?:25)*23)(?:[0-9]{{1,8}}|[xX]{_HEX}{{1,7}})|[A-Za-z][A-Za-z0-9]{{1,31}})"
    r"(?:;|%(?:25)*3[bB])"
)
_PERCENT = re.compile("%(?:25)+")
_AMPERSAND = re.compile(r"(?:&|%(?:25)*26|\\+u0026)(?:amp(?:;|%(?:25)*3[bB]))+")
_HASH = re.compile(r"%(?:25)*23")
_CONTROLS: Final = {
    "n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "b": "\b", "a": "\a", "e": "\x1b",
    "0": "\0",
}  # fmt: skip

_LINE_BREAK: Final = (
    r"[ \t]*[│┃]?[ \t]*[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029](?:[\s│┃])*"
    r"|%(?:25)*0[aAdD]|=\r?\n|<br\s*/?>|&(?:amp;)*(?:\#0*1[03]|\#[xX]0*[aAdD]|NewLine);"
)
_ANY_SPACE: Final = (
    r"\s+|%(?:25)*(?:0[09]|20)|<wbr\s*/?>"
    r"|&(?:amp;)*(?:\#0*(?:9|32|160)|\#[xX]0*(?:9|20|[aA]0)|nbsp|Tab);"
)
_BETWEEN: Final = (
    r"[\0\xad\u200b-\u200d\u2060\ufeff]+|[\"'`]"
    r"|%(?:25)*2[27]|&(?:amp;)*(?:\#0*3[49]|\#[xX]0*2[27]|quot|apos);"
)
_GAPS: Final = {
    True: re.compile(f"{_LINE_BREAK}|{_ANY_SPACE}|{_BETWEEN}", re.IGNORECASE),
    False: re.compile(f"{_LINE_BREAK}|{_BETWEEN}", re.IGNORECASE),
}
_BACKSLASHES = re.compile(_RUN)
_ESCAPED_SPACE: Final = {
    True: re.compile(r"[nrtfv]|\r?\n|u000[9aAdD]|u0020|u2028|x0[09aAdD]|x20|u0000"),
    False: re.compile(r"[nr]|\r?\n|u000[aAdD]|u2028|x0[aAdD]"),
}
_MOST_PLACES: Final = 64

INTRODUCERS: Final = "%\\&="
_GAP_STARTS: Final = "\"'`<│┃\\0\\xad\\u200b-\\u200d\\u2060\\ufeff\\s"


def occurrences(text: str, form: Form) -> Iterator[tuple[int, int]]:
    """Where `form` stands in `text`: start and end of each, from left to right."""
    done = 0
    for match in _head(form.units[:2], form.word).finditer(text):
        start = match.start()
        if start < done:
            continue
        end = _walk(text, start, form)
        if end < 0 or (form.word and not _is_word(text, start, end)):
            continue
        done = end
        yield (_less(text, start), _more(text, end)) if form.before or form.after else (start, end)


@lru_cache(maxsize=512)
def _head(units: tuple[str, ...], word: bool) -> re.Pattern[str]:
    """Finds where a form may start: its first character and a possible second, or its escape."""
    first, second = units[0], units[1] if len(units) > 1 else MAYBE_SPACE
    plain = f"[{_members(first)}]"
    if second != MAYBE_SPACE:
        between = "" if word else _GAP_STARTS
        plain += f"(?=[{_members(second)}%\\\\&={between}])"
    return re.compile("|".join((plain, *_escapes_of(first))))


def _escapes_of(unit: str) -> Iterator[str]:
    """Where an escape of one of the unit's characters may start, by the sign it starts with."""
    codes = {char.encode(codec, "ignore")[:1].hex() for char in unit for codec in _CODECS}
    hexes = "|".join(sorted(codes - {""}))
    yield f"%(?=25|26|5[Cc]|(?i:{hexes}))"
    yield f"=(?={hexes.upper()})"
    yield r"&(?=(?:amp;)*\#|amp;)" if unit.isalnum() else "&"
    letters = "".join(sign for sign, char in _CONTROLS.items() if char in unit)
    yield rf"\\(?=[\\uUx0-7{letters}{'' if unit.isalnum() else _members(unit)}])"


_CODECS: Final = ("utf-8", "latin-1")


def _members(unit: str) -> str:
    return "".join(r"\s" if char == " " else re.escape(char) for char in unit)


def _walk(text: str, start: int, form: Form) -> int:
    """The end of the form when it starts at `start`, else -1."""
    places = {start}
    for i, unit in enumerate(form.units):
        if i and not form.word:
            places = _past_gaps(text, places, spaced=form.spaced)
        reached = set(places) if unit == MAYBE_SPACE else set()
        for place in places:
            _step(text, place, unit or " +", reached)
        if not reached:
            return -1
        places = reached
    return max(places)


def _step(text: str, place: int, unit: str, reached: set[int]) -> None:
    if place >= len(text):
        return
    char = text[place]
    if char in unit or (" " in unit and char.isspace()):
        reached.add(place + 1)
    if char in INTRODUCERS:
        for decoded, end in _escaped(text, place):
            if decoded in unit or (" " in unit and decoded.isspace()):
                reached.add(end)


def _past_gaps(text: str, places: set[int], *, spaced: bool) -> set[int]:
    """The places, and those behind what may stand between two characters."""
    gap, space = _GAPS[spaced], _ESCAPED_SPACE[spaced]
    reached = set(places)
    todo = list(places)
    while todo and len(reached) < _MOST_PLACES:
        place = todo.pop()
        ends = [m.end() for m in (gap.match(text, place),) if m]
        run = _BACKSLASHES.match(text, place)
        if run:
            after = space.match(text, run.end())
            ends += [run.end(), after.end()] if after else [run.end()]
        todo += [end for end in ends if end not in reached]
        reached.update(ends)
    return reached


def _escaped(text: str, place: int) -> Iterator[tuple[str, int]]:
    """What an escape at `place` may stand for, and where it ends."""
    yield from _bytes(text, place)
    percent, ampersand, entity = (r.match(text, place) for r in (_PERCENT, _AMPERSAND, _ENTITY))
    if percent:
        # However often it was encoded: of `%2525bf` the percent sign may end after each `25`.
        yield from (("%", end) for end in range(place + 3, percent.end() + 1, 2))
    if ampersand:
        yield "&", ampersand.end()
    if entity:
        decoded = html.unescape(f"&{_HASH.sub('#', entity[1])};")
        if len(decoded) == 1:
            yield decoded, entity.end()
    escape = _ESCAPE.match(text, place)
    if escape:
        yield from _backslashed(text, escape)


def _bytes(text: str, place: int) -> Iterator[tuple[str, int]]:
    """Escaped bytes: a character of UTF-8, else one of Latin-1."""
    match = _BYTE.match(text, place)
    if not match:
        return
    data = bytes([_value(match)])
    yield data.decode("latin-1"), match.end()
    for _ in range(3 if data[0] >= 0xC2 else 0):
        match = _BYTE.match(text, match.end())
        if not match:
            return
        data += bytes([_value(match)])
        try:
            yield data.decode(), match.end()
        except UnicodeDecodeError:
            continue
        return


def _value(match: re.Match[str]) -> int:
    percent, backslash, quoted, octal = match.groups()
    return int(octal, 8) if octal else int(percent or backslash or quoted, 16)


def _backslashed(text: str, escape: re.Match[str]) -> Iterator[tuple[str, int]]:
    code = escape["u"] or escape["braced"] or escape["long"]
    if code is None:
        char = escape["char"]
        yield _CONTROLS.get(char, char), escape.end()
        return
    low = _LOW_HALF.match(text, escape.end()) if code[:1] in "dD" else None
    if low:
        units = int(code, 16).to_bytes(2, "big") + int(low[1], 16).to_bytes(2, "big")
        yield units.decode("utf-16-be", "replace"), low.end()
    elif int(code, 16) < 0x110000:
        yield chr(int(code, 16)), escape.end()


_AFTER_ESCAPE = re.compile(rf"(?:%{_HEX}{{2}}|\\[nrtfv]|\\u{_HEX}{{4}}|\\x{_HEX}{{2}})\Z")


def _is_word(text: str, start: int, end: int) -> bool:
    """Whether no letter, digit or underscore touches it; an escape before it does not count."""
    if end < len(text) and (text[end].isalnum() or text[end] == "_"):
        return False
    before = text[max(0, start - 6) : start]
    if not before or not (before[-1].isalnum() or before[-1] == "_"):
        return True
    return _AFTER_ESCAPE.search(before) is not None


_BASE64_CHAR = re.compile(r"[A-Za-z0-9+/_-]")
_BASE64_TAIL = re.compile(r"[A-Za-z0-9+/_-]?(?:=|%3[dD]){0,2}")


def _less(text: str, start: int) -> int:
    return start - 1 if start and _BASE64_CHAR.match(text, start - 1) else start


def _more(text: str, end: int) -> int:
    match = _BASE64_TAIL.match(text, end)
    return match.end() if match else end
