"""What people call the actions: four verbs in words, and the names records use.

Retry, Repair, Skip, Stop; `end_stream` ends one step's items and keeps what it produced. Both
the verb and the record's name are understood wherever a person writes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from nightwarden.verdict import Action

WORDS: Final[Mapping[Action, str]] = {
    Action.RETRY: "retry",
    Action.SUBSTITUTE: "repair",
    Action.SKIP: "skip",
    Action.END_STREAM: "end_stream",
    Action.FAIL: "stop",
}
_BY_WORD: Final = {word: action for action, word in WORDS.items()}


def action_named(word: str) -> Action | None:
    """The action a word stands for: `repair` and `substitute`, `stop` and `fail` …, or None."""
    known = _BY_WORD.get(word)
    if known is not None:
        return known
    return Action(word) if word in list(Action) else None


def every_word() -> tuple[str, ...]:
    """All words that are understood."""
    return tuple(dict.fromkeys([*WORDS.values(), *Action]))


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to write instead: `did you mean 'skip'?`, or the list of what there is."""
    names = [str(name) for name in known]
    near = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(names)}"
