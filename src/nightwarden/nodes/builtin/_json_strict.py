"""Strict JSON (RFC 8259), and what is wrong with a text that is not.

    value     what the standard allows, and nothing more: no NaN, no key twice,
              no number out of range, no half of a surrogate pair
    Refusal   a code that says what kind of mistake, a sentence that says where

Nothing is mended here: a mended guess is a decision, and decisions are a supervisor's.

Read next: `json.py`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"```")
_FENCED_NOTHING: Final = re.compile(r"\s*```[\w-]*\s*```\s*")
_COMMA_BEFORE: Final = re.compile(r",\s*\Z")
_PYTHON_WORD: Final = re.compile(r"(?:True|False|None)\b")
_WORDS: Final = ("true", "false", "null")
_TYPOGRAPHIC: Final = "“”„‟«»‘’"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Refusal(NamedTuple):
    """Why a text is no strict JSON."""

    code: str
    text: str


class _RefusedError(ValueError):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.refusal = Refusal(code, text)


def load(text: str) -> tuple[object, Refusal | None]:
    """The value of a JSON text, or None and why it has none."""
    source = text.removeprefix("\ufeff")
    if not source.strip():
        return None, Refusal("json-empty", "the text is empty")
    try:
        value = _DECODER.decode(source)
    except _RefusedError as error:
        return None, error.refusal
    except json.JSONDecodeError as error:
        return None, _diagnosis(source, error)
    except RecursionError:
        return None, Refusal("json-depth", "the value is nested too deeply")
    except ValueError:  # the interpreter limits how long an integer may be
        return None, Refusal("json-number", "an integer with thousands of digits")
    return (None, _inner(value)) if _inner(value) else (value, None)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(
                "json-duplicate-key", f"the key {key!r} stands twice in one object; which holds?"
            )
        found[key] = value
    if _SURROGATE.search("".join(found)) or any(map(_is_broken_text, found.values())):
        raise _RefusedError("json-text", "a text holds half of a surrogate pair (\\ud800…\\udfff)")
    return found


def _is_broken_text(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_is_broken_text, value))
    return isinstance(value, str) and _SURROGATE.search(value) is not None


def _constant(name: str) -> float:
    raise _RefusedError("json-nan", f"{name} is no JSON value; a number, or null, is expected")


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedError("json-number", f"the number {digits[:40]} is out of range")
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_number
)


def _inner(value: object) -> Refusal | None:
    """A text whose content is JSON itself: someone encoded twice."""
    if _is_broken_text(value):
        return Refusal("json-text", "a text holds half of a surrogate pair (\\ud800…\\udfff)")
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return None
    return Refusal("json-nested", "a JSON text inside a JSON text: it was encoded twice")


def _diagnosis(source: str, error: json.JSONDecodeError) -> Refusal:
    """What kind of mistake it is: the whole text first, then the place where reading stopped."""
    if _FENCED_NOTHING.fullmatch(source):
        return Refusal("json-empty", "a code fence with nothing in it")
    if _FENCE.match(source.lstrip()):
        return Refusal("json-fence", "a code fence around the value; the bare value is expected")
    at = f"line {error.lineno}, column {error.colno}"
    if error.msg.startswith("Extra data"):
        return Refusal("json-words", f"more text after the value ends, {at}")
    start = source.lstrip()[:1]
    if start not in ("{", "[", '"') and not _PYTHON_WORD.match(source.lstrip()):
        return _no_value_first(source)
    return _inside(source, error, at)


def _no_value_first(source: str) -> Refusal:
    begins = " ".join(source[:60].split())
    if "{" in source or "[" in source:
        return Refusal("json-words", f"words before the value: it begins {begins!r}")
    return Refusal("json-none", f"there is no JSON in it: it begins {begins!r}")


def _inside(source: str, error: json.JSONDecodeError, at: str) -> Refusal:
    rest = source[error.pos :].lstrip()
    found = rest[:1]
    if "trailing comma" in error.msg or (
        found in ("}", "]", ",") and _COMMA_BEFORE.search(source, 0, error.pos)
    ):
        return Refusal("json-comma", f"a comma with nothing after it, {at}")
    if error.msg.startswith("Unterminated string") or any(w.startswith(rest) for w in _WORDS):
        return Refusal("json-cut", f"the text ends before the value does, {at}")
    if error.msg.startswith("Invalid control character"):
        return Refusal("json-syntax", f"a line end or control sign inside a text, {at}")
    if found in _TYPOGRAPHIC:
        return Refusal("json-quotes", f'typographic quotes where " is expected, {at}')
    if found == "'" or _PYTHON_WORD.match(rest):
        return Refusal("json-python", f"a Python literal (quotes, True, None), not JSON, {at}")
    return Refusal("json-syntax", f"{error.msg[:1].lower()}{error.msg[1:]}, found {found!r}, {at}")
