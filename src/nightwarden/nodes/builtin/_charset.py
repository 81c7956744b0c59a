"""Bytes to text: the encoding a source declares, checked against what the bytes say.

    byte order mark ─▶ what the transport declared ─▶ UTF-8 ─▶ what the document declares
                    ─▶ detection ─▶ Windows-1252

A declaration that does not fit the bytes loses against UTF-8 that does. Nothing here
raises: what cannot be decoded becomes U+FFFD, and `note` says in words what was done.

Read next: `http.py`, `_files.py`.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FALLBACK: Final = "cp1252"
"""What text in no known encoding mostly is; its few undefined bytes are replaced."""

_DECLARED: Final = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_HEAD_BYTES: Final = 2048
"""How far into a document its own declaration is looked for."""

_DETECT_FROM: Final = 64
"""With fewer bytes than this, statistics guess no better than the fallback."""


class Decoded(NamedTuple):
    """Text, the encoding it was read in, and a remark where that was not the obvious one."""

    text: str
    encoding: str
    note: str = ""


def decode(data: bytes, *, declared: str | None = None) -> Decoded:
    """The text of a document. `declared` is what the transport said (a `charset` parameter)."""
    for mark, name in BOMS:
        if data.startswith(mark):
            return Decoded(data.decode(name, "replace"), name.removesuffix("-sig"))
    from_transport = _claim(declared)
    if from_transport is not None and (text := _strictly(data, from_transport)) is not None:
        return Decoded(text, from_transport)
    if (text := _strictly(data, "utf-8")) is not None:
        return Decoded(text, "utf-8", _contradiction(declared, "utf-8"))
    inner = document_encoding(data)
    guess = inner or (None if from_transport else _detected(data))
    if guess is not None and (text := _strictly(data, guess)) is not None:
        return Decoded(text, guess, _contradiction(declared, guess))
    last = from_transport or inner or FALLBACK
    note = f"not valid {last}: some characters were replaced"
    return Decoded(data.decode(last, "replace"), last, note)


def document_encoding(data: bytes) -> str | None:
    """What an XML declaration or a `<meta>` element near the start says, if it is known."""
    found = _DECLARED.search(data, 0, _HEAD_BYTES)
    if found is None:
        return None
    return _claim((found.group(1) or found.group(2)).decode("ascii", "replace"))


def known_encoding(name: str | None) -> str | None:
    """The codec's own name for a declared text encoding; None for what Python cannot decode.

    As browsers do, `latin-1` is read as Windows-1252, which contains it.
    """
    if not name:
        return None
    try:
        found = codecs.lookup(name.strip("\"' "))
        "".encode(found.name)  # refuses codecs that are no text encodings, such as `hex`
    except (LookupError, ValueError):
        return None
    return FALLBACK if found.name == "iso8859-1" else found.name


def looks_binary(data: bytes) -> bool:
    """Whether the first kilobytes hold zero bytes as no text does. UTF-16 needs its mark."""
    return b"\0" in data[:4096] and not any(data.startswith(mark) for mark, _ in BOMS)


def _claim(name: str | None) -> str | None:
    """A declared encoding that says something: `ascii` does not, all others contain it."""
    found = known_encoding(name)
    return None if found == "ascii" else found


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _detected(data: bytes) -> str | None:
    if len(data) < _DETECT_FROM:
        return None
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    return None if best is None else best.encoding


def _contradiction(declared: str | None, used: str) -> str:
    if not declared or known_encoding(declared) == used:
        return ""
    return f"declared as {declared}, read as {used}"
