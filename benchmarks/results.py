"""What a measurement came to, held against its goal: for people, for programs, for the document.

A row is one sentence of the kind "fan-out of 20,000 × 3 takes 3.1 times what the reference
takes; the goal is 3". Rows without a goal are there to be known. Nothing here judges a build.

Read next: `goals.py`.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

FORMAT = 1
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
_HEADINGS = ("", "what", "measured", "goal", "stretch", "met", "")


@dataclass(frozen=True)
class Row:
    """One measured number. `low` and `high` are the extremes over the rounds."""

    goal: str
    what: str
    measured: float
    unit: str
    low: float
    high: float
    at_most: float | None = None
    stretch: float | None = None
    met: bool | None = None
    note: str = ""
    detail: Mapping[str, float] = field(default_factory=dict)


def at_most(
    goal: str,
    what: str,
    unit: str,
    samples: Sequence[float],
    limit: float | None = None,
    stretch: float | None = None,
    *,
    note: str = "",
    detail: Mapping[str, float] | None = None,
) -> Row:
    """A row whose median should not be above `limit`."""
    measured = statistics.median(samples)
    met = None if limit is None else measured <= limit
    extremes = (min(samples), max(samples))
    return Row(goal, what, measured, unit, *extremes, limit, stretch, met, note, dict(detail or {}))


def exactly(goal: str, what: str, unit: str, found: float, wanted: float) -> Row:
    """A row whose number should be just that."""
    return Row(goal, what, found, unit, found, found, wanted, None, found == wanted)


@dataclass(frozen=True)
class Report:
    """A whole run of the benchmark. `broken` says what could not be measured."""

    rows: Sequence[Row]
    broken: Sequence[str]
    machine: Mapping[str, object]
    quick: bool
    rounds: int

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "version": FORMAT,
            "machine": dict(self.machine),
            "quick": self.quick,
            "rounds": self.rounds,
            "rows": [asdict(row) for row in self.rows],
            "broken": list(self.broken),
        }

    def table(self) -> str:
        """For a terminal."""
        lines = [_HEADINGS, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([self.headline(), "", *text, *self._complaints()])

    def markdown(self) -> str:
        """For the document, between its two marks."""
        rows = ["| " + " | ".join(_cells(row)) + " |" for row in self.rows]
        head = ["| " + " | ".join(_HEADINGS) + " |", "|---|---|---:|---:|---:|---|---|"]
        return "\n".join([BEGIN, self.headline(), "", *head, *rows, *self._complaints(), END])

    def headline(self) -> str:
        """When, on what, how often."""
        m = self.machine
        kind = "quick, sizes cut down; not to be quoted" if self.quick else "full sizes"
        return (
            f"{m['date']} · {m['cpu']}, {m['cores']} cores · Python {m['python']} · "
            f"medians of {self.rounds} rounds, {kind} · load before: {m['load']}"
        )

    def _complaints(self) -> list[str]:
        return ["", *(f"not measured: {line}" for line in self.broken)] if self.broken else []


class Document:
    """A page with a place for results. Raises `ValueError` if it has none, or is not there."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        try:
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from error
        self._before, begin, rest = text.partition(BEGIN)
        _, end, self._after = rest.partition(END)
        if not (begin and end):
            raise ValueError(f"{path} has no place for results: it needs {BEGIN} and {END}")

    def write(self, block: str) -> None:
        """Put the block in the place of the old one."""
        self._path.write_text(self._before + block + self._after, encoding="utf-8")


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines: Iterable[str] = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = ()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def _cells(row: Row) -> tuple[str, ...]:
    spread = "" if row.low == row.high else f" ({_number(row.low)}-{_number(row.high)})"
    return (
        row.goal,
        row.what,
        f"{_number(row.measured)} {row.unit}{spread}",
        "" if row.at_most is None else _number(row.at_most),
        "" if row.stretch is None else _number(row.stretch),
        _verdict(row),
        row.note,
    )


def _verdict(row: Row) -> str:
    if row.met is None:
        return ""
    if row.met and row.stretch is not None and row.measured <= row.stretch:
        return "yes, stretch"
    return "yes" if row.met else "no"


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
