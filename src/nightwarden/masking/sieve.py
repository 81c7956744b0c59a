"""A cheap look at a text: which secrets cannot stand in it.

Encoders change punctuation, insert line breaks, and leave ASCII letters and digits alone. So a
text is looked at with all but those removed, then again with escaped white space taken out, and
only where letters themselves are escaped with everything decoded. A needle that stands in none
of these readings stands nowhere in the text, however it is written.

Read next: `scanner.py`.
"""

from __future__ import annotations

import html
import re
import string
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

FOLD = re.compile(r"=?[ \t]*[\r\n]\s*")
"""A line break with what surrounds it, quoted-printable's `=` included."""

_KEPT: Final = (string.ascii_letters + string.digits).encode()
_DROPPED: Final = bytes(byte for byte in range(256) if byte not in _KEPT)
_ROUNDS: Final = 4

_SPACES: Final = {
    "\\": ("\\n", "\\r", "\\t", "\\f", "\\v"),
    "%": ("%20", "%0A", "%0a", "%0D", "%0d", "%09"),
    "&": ("&nbsp;", "&NewLine;", "&Tab;"),
    "<": ("<br>", "<br/>", "<br />", "<BR>", "<wbr>"),
}
"""Escaped white space by the sign it starts with."""

# ASCII letters and digits, the signs that start other escapes, and white space, in hexadecimal.
_TELLING: Final = r"(?:3\d|[46][1-9A-Fa-f]|[57][0-9Aa]|2[0356]|5[cC]|0[9aAdD])"
_DEEP: Final = {
    "%": re.compile(r"%(?:3\d|[46][1-9A-Fa-f]|[57][0-9Aa]|2[356]|5[cC])"),
    "\\": re.compile(
        rf"\\(?:u(?:00{_TELLING}|\{{|2028)|x{_TELLING}|U0000[0-9A-Fa-f]{{4}}|[0-3][0-7][0-7])"
    ),
    "&": re.compile(r"&amp;(?:amp;)*#|&#(?!(?:0*(?:34|39|60|62)|[xX]0*(?:2[27]|3[cCeE]));)"),
}
"""By sign: an escape that matters to what the sieve keeps."""

_PERCENT = re.compile(r"%(?:25)*([0-7][0-9A-Fa-f])")
_REFERENCE = re.compile(r"&(?:amp;)*#(?:([0-9]{1,7})|[xX]([0-9A-Fa-f]{1,6}));")
_ESCAPE = re.compile(
    r"\\+(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})"
    r"|([0-3][0-7]{2})|[nrtfv])"
)
_ESCAPES: Final[tuple[tuple[str, re.Pattern[str], tuple[int, ...]], ...]] = (
    ("%", _PERCENT, (16,)),
    ("&", _REFERENCE, (10, 16)),
    ("\\", _ESCAPE, (16, 16, 16, 16, 8)),
)
_RADIX: Final = {escape: radix for _, escape, radix in _ESCAPES}

BROKEN_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]{0,4}|\\[uUx]?[0-9A-Fa-f]{0,8}|&\#?\w{0,12})=?[ \t]*[\r\n]"
)
"""A line break that may lie inside an escape: `%2` at the end of a line, `F` on the next."""


def sieved(text: str) -> bytes:
    """The letters and digits of every reading of `text`."""
    signs = [sign for sign in _SPACES if sign in text]
    if not signs:
        return _letters(text)
    readings = [text, _without_spaces(text, signs)]
    if _is_deep(text):
        readings += _decodings(text)
    if BROKEN_ESCAPE.search(text):
        whole = FOLD.sub("", text)
        readings.append(_without_spaces(whole, signs))
        if _is_deep(whole):
            readings += _decodings(whole)
    return b"\0".join(map(_letters, readings))


def _letters(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, _DROPPED)


def _without_spaces(text: str, signs: list[str]) -> str:
    for sign in signs:
        for space in _SPACES[sign]:
            text = text.replace(space, "")
    return text


def _is_deep(text: str) -> bool:
    return any(sign in text and escape.search(text) for sign, escape in _DEEP.items())


def _decodings(text: str) -> Iterator[str]:
    """`text` with ASCII escapes decoded and escaped white space removed, kind by kind.

    Each step is kept: what one kind makes of a text may look like another kind's escape, or
    become one; so there are several rounds.
    """
    for _ in range(_ROUNDS):
        before = text
        for sign, escape, _radix in _ESCAPES:
            if sign in text:
                text = escape.sub(_ascii_character, text)
                yield text
        if text == before:
            return


def _ascii_character(match: re.Match[str]) -> str:
    char = _character(match)
    return char if char.isascii() and not char.isspace() else ""


def _character(match: re.Match[str]) -> str:
    for code, radix in zip(match.groups(), _RADIX[match.re], strict=True):
        if code is not None:
            value = int(code, radix)
            return chr(value) if value < 0x110000 else ""
    return ""


def decodings(text: str) -> Iterator[str]:
    """`text` as it is, then decoded once, twice, … in every way until nothing is left to decode."""
    for _ in range(_ROUNDS):
        yield text
        before = text
        if "%" in text:
            text = unquote(text)
        if "&" in text:
            text = html.unescape(text)
        if "\\" in text:
            text = _ESCAPE.sub(_character, text)
        if text == before:
            return
