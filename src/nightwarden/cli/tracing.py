"""What `debug` prints: each invocation's inputs and outputs, as they happen, on stderr.

    → price [2], attempt 2          it begins; its inputs below
    ← price [2] in 12 ms            it returned; its outputs below
    + chunk [1]                     it put out an item
    ✗ price [2] gone (NodeError)    it failed

While a person is asked nothing is printed; what happened meanwhile follows, the first lines of
it.

Read next: `debug.py`, `watching.py`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from nightwarden.cli.output import Output
from nightwarden.events.words import count, cut, place, seconds, text
from nightwarden.lineage import show

if TYPE_CHECKING:
    from nightwarden.events.seen import Seen

Aside = Callable[[], AbstractContextManager[None]]

MOST_HELD: Final = 1_000
"""Lines kept while a question stands."""

_SIGNS: Final[Mapping[str, tuple[str, str]]] = {
    "began": ("→", "bold"),
    "put_out": ("+", ""),
    "returned": ("←", ""),
    "failed": ("✗", "red"),
    "suspended": ("‖", "yellow"),
    "halted": ("×", "dim"),
}


class Tracer:
    """Called with every moment of every invocation; prints it."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._questions = 0
        self._held: list[tuple[str, str]] = []
        self._dropped = 0

    def __call__(self, seen: Seen) -> None:
        """Print one moment."""
        sign, colour = _SIGNS[seen.moment]
        self._line(f"{sign} {heading(seen)}", colour)
        width = max(map(len, seen.values), default=0)
        for name, value in seen.values.items():
            self._line(f"     {text(name):<{width}}  {value_text(value)}", "")

    def around(self, aside: Aside) -> Aside:
        """The same `aside`, inside which nothing is printed here either."""

        @contextlib.contextmanager
        def held() -> Iterator[None]:
            self._questions += 1
            try:
                with aside():
                    yield
            finally:
                self._questions -= 1
                if not self._questions:
                    self._release()

        return held

    def _line(self, line: str, colour: str) -> None:
        if not self._questions:
            self._out.note(line, colour)
        elif len(self._held) < MOST_HELD:
            self._held.append((line, colour))
        else:
            self._dropped += 1

    def _release(self) -> None:
        held, self._held = self._held, []
        for line, colour in held:
            self._out.note(line, colour)
        if self._dropped:
            more = count(self._dropped, "line")
            self._out.note(f"  {more} not shown: a question stood meanwhile", "dim")
            self._dropped = 0


def heading(seen: Seen) -> str:
    """Which invocation it is, and what became of it."""
    where = place(seen.node_id, show(seen.lineage))
    where += f", attempt {seen.attempt}" if seen.attempt > 1 else ""
    match seen.moment.value:
        case "returned":
            return f"{where} in {_took(seen.took_s or 0.0)}"
        case "suspended":
            return f"{where} asked for a pause: {seen.detail}"
        case "halted":
            return f"{where} ended because it had to"
    return f"{where} {seen.detail}".rstrip()


def _took(duration_s: float) -> str:
    return f"{duration_s * 1000:.0f} ms" if duration_s < 0.1 else seconds(duration_s)


def value_text(value: object) -> str:
    """A value in one line, as JSON, without its end where it is long."""
    return cut(json.dumps(value, ensure_ascii=False))
