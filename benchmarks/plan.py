"""What a measurement is, how large each one is, and the forms its rows take.

Read next: `throughput.py`, `goals.py`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from results import Row, at_most
from rounds import Reply, Round, Turn, processor, ratios, step_us, typical


@dataclass(frozen=True)
class Sizes:
    """How much is measured. `times` is how often within a process."""

    items: int = 20_000
    few: int = 2_000
    many: int = 200_000
    kept: int = 100_000
    chains: int = 101
    waits: tuple[int, int] = (200, 2_000)
    streamed: int = 1_000_000
    clean: int = 5_000
    pairs: int = 11
    decided: int = 200
    rounds: int = 5
    long_rounds: int = 3
    starts: int = 11
    times: int = 3


FULL = Sizes()
QUICK = Sizes(
    items=1_000,
    few=200,
    many=2_000,
    kept=2_000,
    chains=3,
    waits=(50, 100),
    streamed=2_000,
    clean=200,
    pairs=3,
    decided=10,
    rounds=1,
    long_rounds=1,
    starts=1,
    times=1,
)


@dataclass(frozen=True)
class Measurement:
    """Processes that take turns, and the rows that come of their replies."""

    turns: Mapping[str, Turn]
    rounds: int
    rows: Callable[[Sequence[Round]], Iterable[Row]]


def against(
    goal: str,
    what: str,
    found: Sequence[Round],
    name: str,
    to: str,
    limit: float | None = None,
    stretch: float | None = None,
) -> Row:
    """A row of how many times the reference's time it takes."""
    ours, theirs = typical(found, name, step_us), typical(found, to, step_us)
    busy = statistics.median(ratios(found, name, to, processor))
    return at_most(
        goal,
        what,
        "× ref",
        ratios(found, name, to),
        limit,
        stretch,
        note=f"{ours:.2g} against {theirs:.2g} µs/step; {busy:.3g} × in processor time",
        detail={"engine_us": ours, "reference_us": theirs, "processor": busy},
    )


def peak_mb(reply: Reply) -> float:
    """The most memory a process used."""
    return float(reply["peak_mb"])


def before_mb(reply: Reply) -> float:
    """What it used before the clock ran, everything imported."""
    return float(reply["before_mb"])
