"""What steering did in a run: who watched, how often they looked, what was said, what became of it.

    steering_…      ─▶ Watcher   a supervisor over running agents
    user_message_…  ─▶ Word      a text for an agent, a supervisor's or a person's

Read next: `text.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nightwarden.events.steering_lines import MARK
from nightwarden.events.words import count, list_of, text

Plain = Mapping[str, Any]

_STATES: Final[Mapping[str, str]] = {
    "user_message_queued": "queued",
    "user_message_delivered": "delivered",
    "user_message_consumed": "consumed",
    "user_message_cancelled": "cancelled",
    "user_message_expired": "expired",
}
"""The state of a message by its event: the mailbox's own words."""
_OUTCOMES: Final[Mapping[str, str]] = {
    "intervened": "said a word",
    "silent": "said nothing",
    "refused": "could not leave its word",
    "failed": "gave no answer",
}


@dataclass(slots=True)
class Watcher:
    """A supervisor over running agents. `looks` are counted by outcome; `limit` bounds those that
    returned. `standing` says why it looks no more, or is left alone for now."""

    name: str
    watches: dict[str, None] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    limit: int = 0
    standing: str = ""

    @property
    def told(self) -> str:
        """What it did, in one line."""
        watched = ", ".join(map(text, self.watches)) or "the whole run"
        done = self.looks.total() - self.looks["failed"]
        most = f" of {self.limit}" if self.limit else ""
        came = [f"{_OUTCOMES[o]} {_times(n)}" for o, n in self.looks.items() if o in _OUTCOMES]
        said = f": {', '.join(came)}" if came else ""
        standing = f"; {text(self.standing)}" if self.standing else ""
        return f"watched {watched}, looked {_times(done)}{most}{said}{standing}"


@dataclass(slots=True)
class Word:
    """A text for an agent. `node` is empty for whoever asks first; `at` is when it was left."""

    id: str
    author: str
    node: str
    text: str
    at: str
    state: str = "queued"
    reason: str = ""

    @property
    def fate(self) -> str:
        """What became of it, and why."""
        return self.state + (f": {text(self.reason)}" if self.reason else "")


@dataclass(slots=True)
class Steering:
    """All of it, in the order it came up."""

    watchers: dict[str, Watcher] = field(default_factory=dict)
    words: dict[str, Word] = field(default_factory=dict)

    def take(self, event: Plain) -> None:
        """One event of the run."""
        kind = str(event.get("type", ""))
        if kind.startswith("steering_"):
            self._watched(kind, event)
        elif kind in _STATES:
            self._worded(kind, event)

    def _watched(self, kind: str, event: Plain) -> None:
        name = str(event.get("supervisor") or "supervisor")
        found = self.watchers.setdefault(name, Watcher(name))
        match kind:
            case "steering_armed":
                found.watches |= dict.fromkeys(map(str, list_of(event.get("watches"))))
                found.standing = ""
            case "steering_woken":
                found.standing = ""
            case "steering_evaluated":
                found.looks[str(event.get("outcome"))] += 1
                found.limit = int(event.get("limit") or 0)
            case "steering_done":
                found.standing = _with("done", event.get("reason"))
            case "steering_exhausted":
                found.standing = _with("has spent what it may", event.get("detail"))
            case "steering_parked":
                found.standing = _with("left alone after failures", event.get("detail"))

    def _worded(self, kind: str, event: Plain) -> None:
        id_ = str(event.get("message_id", ""))
        word = self.words.get(id_)
        if word is None:
            word = self.words[id_] = Word(
                id_,
                str(event.get("author", "")),
                str(event.get("node_id", "")),
                str(event.get("text", "")),
                str(event.get("at", "")),
            )
        word.state, word.reason = _STATES[kind], str(event.get("reason") or "")


def steering_text(steering: Steering) -> Iterator[tuple[str, str]]:
    """(who, what) of everything, for people."""
    for watcher in steering.watchers.values():
        yield f"{MARK} {text(watcher.name)}", watcher.told
    for word in steering.words.values():
        to = f" to {text(word.node)}" if word.node else ""
        yield f"{MARK} {text(word.author)}{to}", f"{text(word.text)} ({word.fate})"


def steering_json(steering: Steering) -> dict[str, object]:
    """The same for programs."""
    return {
        "supervisors": [
            {
                "name": watcher.name,
                "watches": list(watcher.watches),
                "looks": dict(watcher.looks),
                "limit": watcher.limit or None,
                "standing": watcher.standing or None,
            }
            for watcher in steering.watchers.values()
        ],
        "messages": [
            {
                "id": word.id,
                "author": word.author,
                "node": word.node or None,
                "text": word.text,
                "queued_at": word.at,
                "state": word.state,
                "reason": word.reason or None,
            }
            for word in steering.words.values()
        ],
    }


def _times(number: int) -> str:
    return "once" if number == 1 else count(number, "time")


def _with(what: str, detail: object) -> str:
    return f"{what}: {detail}" if detail else what
