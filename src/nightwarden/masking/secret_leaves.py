"""A secret that is itself a document: the smaller secrets inside it.

    {"client": "svc", "pass": "h…"}     each text in it, and its re-serialisations
    postgresql://me:p%40ss@host/db      the password, as written and decoded
    https://hooks.example/T0/B0/XYZ     the path, which libraries print without the host
    host=db password='p ss'             values under telling names
    -----BEGIN PRIVATE KEY----- …       the body, and each line of it

A text of a document shorter than three characters, and one of three to five plain lower-case
letters that no telling name covers (`"prod"`), is not taken: it would mask ordinary words.

Read next: `secret_forms.py`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, unquote_plus, urlsplit

from nightwarden.masking.sensitive import is_sensitive


@dataclass(frozen=True, slots=True)
class Leaf:
    """One text to mask. `encode`: also where it is encoded as a whole (base64, hexadecimal).

    `opaque`: one random-looking token, of which a fragment beside an ellipsis gives it away.
    `document`: JSON, where a quote may be of either kind.
    """

    text: str
    encode: bool = True
    opaque: bool = False
    document: bool = False


MAX_DEPTH: Final = 8
_PLAIN_WORD = re.compile(r"[a-z]{3,5}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://\S+")
_PAIR = re.compile(
    r"(?:^|[;\s,])\s*(?:export\s+)?(?P<name>[A-Za-z][\w .-]{0,40}?)\s*[=:]\s*"
    r"(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^;\s]+)"
)
_USER = re.compile(r"[^\s:/@=]{1,64}:([^\s/:]{6,})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def leaves_of(secret: str) -> list[Leaf]:
    """The secret itself first, then what is inside it; each text once."""
    found: dict[str, Leaf] = {}
    for leaf in _whole(secret, 0):
        known = found.get(leaf.text)
        if leaf.text.strip() and (known is None or (leaf.encode and not known.encode)):
            found[leaf.text] = leaf
    return list(found.values())


def _whole(text: str, depth: int) -> Iterator[Leaf]:
    inner = list(_inside(text.strip(), depth)) if depth < MAX_DEPTH else []
    yield Leaf(text, opaque=not inner and not re.search(r"\s|://", text.strip()))
    yield from inner


def _inside(text: str, depth: int) -> Iterator[Leaf]:
    """What is in the document `text`; nothing when it is none."""
    if text[:1] in ("{", "["):
        yield from _json(text, depth)
    elif _URL.fullmatch(text):
        yield from _url(text, depth)
    elif "\n" in text:
        yield from _lines(text, depth)
    elif _BASE64.fullmatch(text):
        yield from _decoded(text, depth)
    else:
        yield from _pairs(text, depth)
        user = _USER.fullmatch(text)
        if user:
            yield from _whole(user[1], depth + 1)


def _json(text: str, depth: int) -> Iterator[Leaf]:
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(parsed, dict | list):
        return
    for form in serialisations(parsed):
        yield Leaf(form, document=True)
    yield from _texts(parsed, telling=False, depth=depth)


def serialisations(parsed: object) -> Iterator[str]:
    """The document as programs print it again: compact, spaced, sorted, in ASCII, as Python."""
    for sort in (False, True):
        for separators in ((",", ":"), (", ", ": ")):
            for ascii_only in (True, False):
                yield json.dumps(
                    parsed, separators=separators, sort_keys=sort, ensure_ascii=ascii_only
                )
    yield repr(parsed)


def _texts(value: object, *, telling: bool, depth: int) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, telling=telling or is_sensitive(key), depth=depth)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, telling=telling, depth=depth)
    elif isinstance(value, str):
        yield from _text(value, telling=telling, depth=depth)
    elif telling and isinstance(value, int | float) and not isinstance(value, bool):
        yield from _text(str(value), telling=True, depth=depth)


def _text(text: str, *, telling: bool, depth: int) -> Iterator[Leaf]:
    if len(text) >= 3 and (telling or not _PLAIN_WORD.fullmatch(text)):
        yield from _whole(text, depth + 1)


def _url(text: str, depth: int) -> Iterator[Leaf]:
    try:
        parts = urlsplit(text)
    except ValueError:
        return
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    for secret in (password, "" if colon else user):
        yield from _text(secret, telling=True, depth=depth)
        if "%" in secret:
            yield from _text(unquote(secret), telling=True, depth=depth)
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if is_sensitive(name) or len(value) >= 16:
            yield from _text(value, telling=True, depth=depth)
            yield from _text(unquote_plus(value), telling=True, depth=depth)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    if not password and len(target) >= 16:
        yield Leaf(target)


def _lines(text: str, depth: int) -> Iterator[Leaf]:
    lines = [line.strip() for line in text.splitlines()]
    body = [line for line in lines if line and not line.startswith("-----")]
    if lines[0].startswith("-----BEGIN"):
        yield Leaf("\n".join(body))
    else:
        yield from _pairs(text, depth)
    for line in body:
        if len(line) >= 12:
            yield Leaf(line, encode=False, opaque=" " not in line)


def _pairs(text: str, depth: int) -> Iterator[Leaf]:
    for pair in _PAIR.finditer(text):
        if is_sensitive(pair["name"]):
            value = pair["value"]
            bare = value[1:-1] if value[0] in "'\"" else value.rstrip(",")
            yield from _text(bare, telling=True, depth=depth)
            if "\\" in bare:
                yield from _text(re.sub(r"\\(.)", r"\1", bare), telling=True, depth=depth)


def _decoded(text: str, depth: int) -> Iterator[Leaf]:
    padded = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(padded + "=" * (-len(padded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    if plain[:1] in ("{", "[") or plain.startswith("-----BEGIN") or _USER.fullmatch(plain):
        yield from _whole(plain, depth + 1)
