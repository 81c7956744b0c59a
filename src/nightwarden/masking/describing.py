"""An error in one readable line: the most useful cause first.

The author's own words come before what they wrapped; a wrapper without words of its own steps
back behind its cause, a group behind its members. Followed are `__cause__`, `__context__`
unless suppressed, the members of groups, and notes. Whatever the error's own code does,
there is a line.

Read next: `redaction.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from nightwarden.errors import NightwardenError
from nightwarden.masking.anatomy import message_of, type_name
from nightwarden.masking.marks import cut_of

MAX_CHARS: Final = 500
_MOST_PARTS: Final = 12
_MOST_MEMBERS: Final = 3
_MOST_CHARS_READ: Final = 1_000_000

_LEAST_TELLING: Final = 12

_TYPE = re.compile(r"^[A-Z]\w*: ")
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x1f\x7f-\x9f]"
)
_NOISE = re.compile(
    r"\[Errno -?\d+\] |\s*For (?:further|more) information (?:visit|check):? \S+|"
    r" \(\d+ sub-exceptions?\)"
)
_STOCK_GROUP = re.compile(
    r"unhandled errors in a TaskGroup|multiple errors?|errors?", re.IGNORECASE
)


def describe(error: BaseException, mask: Callable[[str], str]) -> str:
    """One masked line of at most 500 characters that says what went wrong."""
    parts: list[str] = []
    for part in _parts(error, mask, set()):
        if part and not any(_repeats(part, said) for said in parts):
            # A wrapper often repeats what it wrapped; the longer one says it all.
            parts = [said for said in parts if said not in part] + [part]
        if len(parts) >= _MOST_PARTS:
            break
    line = " ← ".join(parts) or type_name(error)
    return _cut(mask(line))


def _repeats(part: str, said: str) -> bool:
    """Whether a part was said already, if only without the type of the error in front."""
    words = _TYPE.sub("", part)
    return part in said or (len(words) >= _LEAST_TELLING and words in said)


def _parts(error: BaseException, mask: Callable[[str], str], seen: set[int]) -> Iterator[str]:
    if id(error) in seen or len(seen) > _MOST_PARTS:
        return
    seen.add(id(error))
    members = _members(error)
    words = _words(error, mask, group=bool(members))
    if words:
        yield words
    yield from _notes(error, mask)
    for member in members[:_MOST_MEMBERS]:
        yield from _parts(member, mask, seen)
    if len(members) > _MOST_MEMBERS:
        yield cut_of(len(members) - _MOST_MEMBERS, "more errors")
    inner = _wrapped(error)
    if inner is not None:
        yield from _parts(inner, mask, seen)
    # How a timeout interrupts what it ends is no news; only a cancellation by itself is.
    machinery = len(seen) > 1 and type_name(error) == "CancelledError"
    if not words and not members and inner is None and not machinery:
        yield type_name(error)


def _words(error: BaseException, mask: Callable[[str], str], *, group: bool) -> str:
    """The error's own words; its type in front unless it is an error made for a reader."""
    message = _line(_group_message(error) if group else message_of(error), mask)
    if not message or (group and _STOCK_GROUP.fullmatch(message)):
        return ""
    inner = _wrapped(error)
    if inner is not None and message == _line(message_of(inner), mask):
        return ""
    return message if _written_for_readers(error) else f"{type_name(error)}: {message}"


def _written_for_readers(error: BaseException) -> bool:
    """Whether the message says it all: the engine's errors, and those steps are meant to raise."""
    module = type(error).__module__
    own = isinstance(module, str) and module.partition(".")[0] == "nightwarden"
    return own or isinstance(error, NightwardenError)


def _group_message(error: BaseException) -> str:
    message = _attribute(error, "message")
    return message if isinstance(message, str) else message_of(error)


def _notes(error: BaseException, mask: Callable[[str], str]) -> Iterator[str]:
    notes = _attribute(error, "__notes__")
    for note in notes[:_MOST_MEMBERS] if isinstance(notes, list) else ():
        if isinstance(note, str):
            yield _line(note, mask)


def _members(error: BaseException) -> list[BaseException]:
    members = _attribute(error, "exceptions") if isinstance(error, BaseExceptionGroup) else None
    if not isinstance(members, tuple | list):
        return []
    return [member for member in members if isinstance(member, BaseException)]


def _wrapped(error: BaseException) -> BaseException | None:
    cause = _attribute(error, "__cause__")
    if isinstance(cause, BaseException):
        return cause
    context = _attribute(error, "__context__")
    hidden = _attribute(error, "__suppress_context__") is True
    return context if isinstance(context, BaseException) and not hidden else None


def _attribute(error: BaseException, name: str) -> object:
    try:
        return getattr(error, name, None)
    except BaseException:
        return None


def _line(text: str, mask: Callable[[str], str]) -> str:
    """Masked before anything is taken out of it, so that nothing is split from a secret."""
    if len(text) > _MOST_CHARS_READ:
        # A secret cut in two by the limit stands at the end; the half behind is not kept.
        masked = mask(text[:_MOST_CHARS_READ])
        text = masked[: max(0, len(masked) - _MOST_CHARS_READ // 2)]
    else:
        text = mask(text)
    text = " ".join(_NOISE.sub("", _CONTROL.sub(" ", text)).split())
    return text.encode("utf-8", "backslashreplace").decode()


def _cut(line: str) -> str:
    if len(line) <= MAX_CHARS:
        return line
    kept = line[: MAX_CHARS - len(cut_of(len(line), "chars"))]
    return kept + cut_of(len(line) - len(kept), "chars")
