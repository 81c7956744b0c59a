"""What a model answers, as a test writes it: it says something, calls tools, or gives vectors.

    Say("done")     Call("read", {"path": "a.py"})     Calls([("read", {…}), ("list", {…})])

Read next: `wire.py`, `model_server.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
USAGE = (1_000, 50)


@dataclass(frozen=True)
class Call:
    """The model calls a tool, perhaps after a word. `usage` is (in, out) tokens; None where the
    provider does not say."""

    name: str
    arguments: Json
    usage: tuple[int, int] | None = USAGE
    say: str = ""


@dataclass(frozen=True)
class Calls:
    """The model calls several tools at once."""

    calls: Sequence[tuple[str, Json]]
    usage: tuple[int, int] | None = USAGE


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str
    usage: tuple[int, int] | None = USAGE
    stop: str = "end"


@dataclass(frozen=True)
class Vectors:
    """The model turns each text into a vector; a text is `size` of its own characters' numbers."""

    size: int = 3
    usage: int | None = 100

    def of(self, text: str) -> list[float]:
        """The vector of a text: always the same."""
        return [float(ord(char)) for char in text[: self.size].ljust(self.size)]


Answer = Call | Calls | Say
"""What a model answers with, whoever provides it."""


def parts_of(turn: Answer) -> tuple[str, list[tuple[str, Json]]]:
    """What is said, and which tools are called."""
    match turn:
        case Call():
            return turn.say, [(turn.name, turn.arguments)]
        case Calls():
            return "", list(turn.calls)
        case Say():
            return turn.text, []
