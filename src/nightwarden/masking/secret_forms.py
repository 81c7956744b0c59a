"""The forms a secret takes: what to look for, whoever encoded it.

A form is a run of *units*, the characters that must follow one another. How each of them is
written (as itself, `%2F`, `\\"`, `&quot;`, `\\u00e9`, with a line break before it) is the business
of `secret_reading.py`; so one form covers percent-, JSON-, HTML-, repr- and shell-escaping in
any mixture. What an encoder changes as a whole is a form of its own:

    text         in Unicode's normal forms, mis-decoded, percent-decoded
    base64       three alignments × the bytes of the text, of its JSON form, of UTF-16;
                 only the characters the neighbours cannot change, so `user:secret` is found
    hexadecimal  in either case, also byte by byte (`73:65:63`)

*Needles* are cheap substrings: where none of them stands, the form cannot stand either.

Read next: `secret_reading.py`, `scanner.py`.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from nightwarden.masking.secret_leaves import Leaf, leaves_of

SHORT: Final = 6
"""A secret shorter than this is masked only as a whole word."""
SPACED_DIGITS: Final = 12
"""A number shorter than this is not found with spaces in it: two columns of a table may do that."""
OPTIONAL_SPACE: Final = 12
"""From this length on, a secret is found without the spaces it has."""

SPACE: Final = " +"
"""The unit of white space: any white space, or `+` as forms write it."""
MAYBE_SPACE: Final = ""
"""The unit of white space that may be missing."""


@dataclass(frozen=True, slots=True)
class Form:
    """One thing to look for. A unit lists the characters accepted at its place.

    `needles`: substrings in ASCII letters and digits, one of which stands wherever the form does;
    empty when it has none. `before`, `after`: a base64 character next to it holds bits of it.
    """

    name: str
    units: tuple[str, ...]
    needles: tuple[bytes, ...]
    word: bool = False
    spaced: bool = True
    before: bool = False
    after: bool = False
    verify: str = ""


@dataclass(frozen=True, slots=True)
class Secret:
    """All there is to look for of one secret. `fragile`: tokens of which fragments matter."""

    name: str
    forms: tuple[Form, ...]
    fragile: tuple[str, ...]
    warnings: tuple[str, ...]


def secret_of(name: str, value: str) -> Secret:
    """What to look for so that `value` shows nowhere."""
    leaves = leaves_of(value)
    forms: dict[tuple[object, ...], Form] = {}
    for leaf in leaves:
        for form in _forms(name, leaf):
            forms.setdefault((form.units, form.word, form.before, form.after), form)
    fragile = tuple(leaf.text for leaf in leaves if leaf.opaque and len(leaf.text) >= 16)
    return Secret(name, tuple(forms.values()), fragile, tuple(_warnings(name, value, leaves)))


def _warnings(name: str, value: str, leaves: Iterable[Leaf]) -> Iterator[str]:
    if not value.strip():
        yield f"secret {name}: it is empty, so there is nothing to mask"
    elif len(value.strip()) < SHORT:
        yield (
            f"secret {name}: shorter than {SHORT} characters, so it is masked only where it stands"
            " as a whole word; use a longer one"
        )
    elif any(len(leaf.text.strip()) < SHORT for leaf in leaves):
        yield (
            f"secret {name}: a text inside it is shorter than {SHORT} characters and is masked"
            " only where it stands as a whole word"
        )


def _forms(name: str, leaf: Leaf) -> Iterator[Form]:
    for text in _spellings(leaf.text.strip()):
        word = len(text) < SHORT
        units = _units(text, document=leaf.document, word=word)
        spaced = len(text) >= SPACED_DIGITS or not text.isdigit()
        yield _form(name, units, word=word, spaced=spaced, verify=text)
        if leaf.encode and not word:
            yield from _encoded(name, text)


def _spellings(text: str) -> dict[str, None]:
    """The text as other programs may hold it, without changing what it says."""
    found = {text: None}
    for form in ("NFC", "NFD"):
        found[unicodedata.normalize(form, text)] = None
    if "%" in text:
        found[unquote(text)] = None
    if not text.isascii():
        for codec in ("latin-1", "cp1252"):
            # What UTF-8 looks like to a program that takes it for something else.
            found[text.encode("utf-8", "surrogatepass").decode(codec, "replace")] = None
    return {spelling.strip(): None for spelling in found if spelling.strip()}


def _units(text: str, *, document: bool, word: bool) -> tuple[str, ...]:
    solid = sum(not c.isspace() for c in text)
    space = MAYBE_SPACE if solid >= OPTIONAL_SPACE else SPACE
    units: list[str] = []
    for char in text:
        unit = _unit(char, space, document=document)
        if unit == SPACE and units and units[-1] in (SPACE, MAYBE_SPACE) and not word:
            unit = MAYBE_SPACE  # programs like to make one space of several
        units.append(unit)
    return tuple(units)


def _unit(char: str, space: str, *, document: bool) -> str:
    if char.isspace():
        return space
    if char == "+":
        return "+ "  # a form decoder makes a space of it
    return "\"'" if document and char in "\"'" else char


def _encoded(name: str, text: str) -> Iterator[Form]:
    raw = text.encode("utf-8", "surrogatepass")
    hexed = _form(name, tuple(c if c.isdigit() else c + c.upper() for c in raw.hex()))
    yield hexed
    yield replace(hexed, units=_byte_by_byte(hexed.units))
    for data in _payloads(text, raw):
        for shift in range(3):
            yield _base64(name, data, shift)


def _byte_by_byte(units: tuple[str, ...]) -> tuple[str, ...]:
    """Hexadecimal as dumps and fingerprints write it: `73:65:63`, `73-65-63`."""
    pairs = [units[at : at + 2] for at in range(0, len(units), 2)]
    return (*pairs[0], *(unit for pair in pairs[1:] for unit in (":-", *pair)))


def _payloads(text: str, raw: bytes) -> dict[bytes, None]:
    """The bytes that may stand inside something that was encoded in base64."""
    found = {raw: None, text.encode("utf-16-le", "surrogatepass"): None}
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        found[escaped.encode("utf-8", "surrogatepass")] = None
    if all(ord(char) < 256 for char in text):
        found[text.encode("latin-1")] = None
    return {data: None for data in found if len(data) >= SHORT}


def _base64(name: str, data: bytes, shift: int) -> Form:
    """The base64 of `data` after `shift` unknown bytes, less what its neighbours decide.

    Of every three bytes four characters are made; a character lies wholly inside `data` when
    all its six bits do.
    """
    encoded = base64.b64encode(bytes(shift) + data).decode()
    first, end = -(-8 * shift // 6), 8 * (shift + len(data)) // 6
    units = tuple({"+": "+- ", "/": "/_"}.get(c, c) for c in encoded[first:end])
    return _form(name, units, before=shift > 0, after=(shift + len(data)) % 3 > 0)


def _form(
    name: str,
    units: tuple[str, ...],
    *,
    word: bool = False,
    spaced: bool = True,
    before: bool = False,
    after: bool = False,
    verify: str = "",
) -> Form:
    return Form(
        name=name,
        units=units,
        needles=_needles(units),
        word=word,
        spaced=spaced,
        before=before,
        after=after,
        verify=verify,
    )


def _needles(units: tuple[str, ...]) -> tuple[bytes, ...]:
    """The longest run of ASCII letters and digits, near the start if a good one is there."""
    for part, least in ((units[:24], 4), (units, 3)):
        run = max(_runs(part, least), key=len, default=())
        if len(run) >= least:
            lower, upper = (b"".join(u[i].encode() for u in run) for i in (0, -1))
            return (lower,) if lower == upper else (lower, upper)
    return ()


def _runs(units: tuple[str, ...], least: int) -> Iterator[tuple[str, ...]]:
    """Runs of letters and digits, less what the sieve may take for part of an escape.

    That is what follows a backslash or percent sign of the secret's own, and, where the run is
    long enough, the start of the form: a stray sign may stand before it.
    """
    start = 0
    for i, unit in enumerate((*units, MAYBE_SPACE)):
        if unit.isascii() and unit.isalnum():
            continue
        if start == 0:
            start = max(0, min(5, i - least))
        elif units[start - 1] in ("\\", "%"):
            start += 2
        yield units[start:i]
        start = i + 1
