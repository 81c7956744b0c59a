"""The same call with the same outcome, again and again, and nothing changed in between.

    pytest ✗  pytest ✗  pytest ✗           three repeats: a loop
    status 5%  status 31%  status 58%      its answer moves on: a wait
    pytest ✗  edit  pytest ✗  edit         something was changed: work

Compared are calls and outcomes. Words about a call, durations, times of day, addresses in memory
and names that are new each time (temporary files, processes, random ids) do not count. What may
have changed something starts the count anew: an edit that went through, a command or tool that
does more than read. A call that has come before, with the outcome it had before, is no change; so
a loop over two commands is found as well.

Pure. Read next: `monitors.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from nightwarden.spec.monitors import RESULT_TYPES
from nightwarden.steering.observed import Observed

_T = TypeVar("_T")

_MOST: Final = 200
"""Calls remembered."""
_LONG: Final = 4_000
"""An outcome longer than this is remembered as a digest."""
_MOST_APART: Final = 200
"""Durations and times do not make outcomes differ in length by more."""

_json = msgspec.json.Encoder(order="sorted")

_WORDS: Final = frozenset(
    {"description", "explanation", "reason", "rationale", "thought", "timeout", "timeout_ms"}
)
"""Parts of a call's input that say something about it but change nothing."""

_READING: Final = frozenset(
    {"read", "grep", "glob", "ls", "list", "search", "find", "view", "cat", "fetch", "webfetch"}
    | {"websearch", "web_search", "todowrite", "todoread", "bashoutput", "read_file", "list_files"}
    | {"list_dir", "search_files", "toolsearch"}
)
_SHELLS: Final = frozenset({"bash", "shell", "sh", "run", "terminal", "powershell"})
_EDITING: Final = frozenset(
    {"edit", "write", "multiedit", "notebookedit", "apply_patch", "write_file", "edit_file"}
    | {"str_replace_editor", "str_replace_based_edit_tool", "create", "delete", "move", "rename"}
)
_LOOKS: Final = frozenset(
    {"cat", "ls", "grep", "rg", "head", "tail", "wc", "pwd", "echo", "which", "file", "stat"}
    | {"env", "date", "sleep", "true", "false", "test", "tree", "du", "df", "ps", "diff", "cd"}
    | {"pytest", "tox", "nox", "mypy", "pyright", "tsc", "eslint", "jest", "vitest", "sort", "uniq"}
)
_LOOK_PHRASES: Final = re.compile(
    r"(python3? -m (pytest|unittest|mypy)|ruff check(?!.*--fix)|(npm|pnpm|yarn)( run)? test|"
    r"go (test|vet)|cargo (test|check|clippy)|make (test|check|lint)|uv run (pytest|mypy)|"
    r"git (status|diff|log|show|branch|blame)|find(?!.*-(delete|exec)))\b"
)
_PASSING: Final = (
    (
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    (re.compile(r"(?<![\w:./-])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w:])"), "<time>"),
    (
        re.compile(
            r"(?<![\w.])\d+(?:[.,]\d+)?\s?"
            r"(?:ms|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![\w%])"
        ),
        "<duration>",
    ),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b(pid|process|thread)([ =:#]+)\d+\b", re.IGNORECASE), r"\1\2<id>"),
    (re.compile(r"\btmp[a-z0-9_]{6,10}\b|\bpytest-\d+(?=/)"), "<temporary>"),
    (re.compile(r"\s+"), " "),
)


class Repeats:
    """Calls since the last change: outcome and how often. `known` are the outcomes of all calls."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, int]] = {}
        self.known: dict[str, str] = {}

    def take(self, seen: Observed) -> int:
        """How often this call has had this outcome now; 0 for an event that is no outcome."""
        if seen.type not in RESULT_TYPES:
            return 0
        call, outcome = call_key(seen), outcome_of(seen)
        before = self.calls.get(call)
        if before is not None and same_outcome(before[0], outcome):
            self.calls[call] = (outcome, before[1] + 1)
            return before[1] + 1
        known = self.known.get(call)
        if may_change(seen) and (
            known is None or seen.tool in _EDITING or not same_outcome(known, outcome)
        ):
            self.calls.clear()
        _put(self.calls, call, (outcome, 1))
        _put(self.known, call, outcome)
        return 1


def call_key(seen: Observed) -> str:
    """Equal for calls that ask for the same, whatever words and blanks stand in between."""
    asked = seen.asked
    if isinstance(asked, Mapping):
        asked = {k: v for k, v in asked.items() if k not in _WORDS}
    text = _encoded(asked).replace(b"\\n", b" ").replace(b"\\t", b" ")
    plain = b" ".join(text.split()).replace(b'" ', b'"').replace(b' "', b'"')
    whose = f"{seen.node_id}\0{seen.tool}".encode("utf-8", "replace")
    return _digest(whose, plain)


def outcome_of(seen: Observed) -> str:
    """What came of a call: its kind and text, or a digest of what is long."""
    found: Any = None
    for name in ("error", "output", "output_preview"):
        found = seen.get(name)
        if found:
            break
    text = found if isinstance(found, str) else _encoded(found).decode("utf-8", "replace")
    if len(text) > _LONG:
        text = _digest(lasting(text).encode("utf-8", "replace"))
    return f"{seen.type}\n{text}"


def same_outcome(one: str, other: str) -> bool:
    """Whether two outcomes differ in what passes at most."""
    if one == other:
        return True
    if one[:9] != other[:9] or abs(len(one) - len(other)) > _MOST_APART:
        return False
    return lasting(one) == lasting(other)


def lasting(text: str) -> str:
    """A text without what passes: durations, times, addresses, new names, runs of blanks."""
    for pattern, instead in _PASSING:
        text = pattern.sub(instead, text)
    return text.strip()


def may_change(seen: Observed) -> bool:
    """Whether a call may have changed what later calls see."""
    tool = seen.tool
    if tool in _EDITING:
        return seen.type == "tool_called"  # an edit that failed has changed nothing
    if tool in _READING:
        return False
    if tool in _SHELLS:
        asked = seen.asked
        command = asked.get("command") or asked.get("cmd") if isinstance(asked, Mapping) else asked
        return not (isinstance(command, str) and only_looks(command))
    return True


@lru_cache(maxsize=1_000)
def only_looks(command: str) -> bool:
    """Whether a shell command, as far as can be told, reads and tests and changes nothing."""
    quiet = re.sub(r"[0-9&]?>{1,2}\s*(/dev/null|&\d)", "", command)
    if ">" in quiet or "`" in quiet or "$(" in quiet:
        return False
    parts = [part.strip() for part in re.split(r"&&|\|\|?|;|\n", quiet) if part.strip()]
    return bool(parts) and all(_looks(part) for part in parts)


def _looks(part: str) -> bool:
    words = part.split()
    while words and re.fullmatch(r"\w+=\S*|time|timeout|\d+s?", words[0]):
        words = words[1:]
    rest = " ".join(words)
    return bool(words) and (words[0] in _LOOKS or _LOOK_PHRASES.match(rest) is not None)


def _put(into: dict[str, _T], key: str, value: _T) -> None:
    """Remember, and forget the oldest where there is too much."""
    if len(into) >= _MOST and key not in into:
        into.pop(next(iter(into)))
    into[key] = value


def _encoded(value: object) -> bytes:
    try:
        return _json.encode(value)
    except Exception:  # half a character, say, which no JSON has room for
        return repr(value).encode("utf-8", "replace")


def _digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"\0".join(parts), digest_size=8).hexdigest()
