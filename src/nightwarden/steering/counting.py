"""What monitors would have hit on a recorded run: for people who choose them.

Read next: `rehearsal.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nightwarden.spec.monitors import Monitor
from nightwarden.steering.lookout import Lookout
from nightwarden.steering.monitors import Watchlist
from nightwarden.steering.ports import Fact
from nightwarden.steering.rehearsal import timed


class Hits(msgspec.Struct, kw_only=True):
    """One monitor's hits: how many, and the first ones as they are shown."""

    monitor: str
    hits: int = 0
    examples: list[str] = []


def count_hits(
    events: Iterable[Fact], monitors: Sequence[Monitor], *, examples: int = 3
) -> list[Hits]:
    """The hits of each monitor, whoever is active; silence is counted on the run's own time."""
    watchlist = Watchlist(monitors)
    found = {text: Hits(monitor=text) for text in watchlist.texts()}
    watchlist.armed(0.0)
    for now, seen in timed(map(Lookout().observe, events)):
        for match in watchlist.silent(now):
            _note(found[match.monitor], f"silence before {seen.shown}", examples)
        for match in watchlist.matches(seen, now):
            _note(found[match.monitor], seen.shown, examples)
    return list(found.values())


def _note(hits: Hits, line: str, examples: int) -> None:
    hits.hits += 1
    if len(hits.examples) < examples:
        hits.examples.append(line)
