"""Bars on a terminal: one a step, polled ten times a second while the run goes on.

Lines are printed above them. While a person is asked they step back.

Read next: `watching.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

INTERVAL_S: Final = 0.1
MOST_BARS: Final = 12
_ENDED: Final = (
    "succeeded",
    "repaired",
    "skipped",
    "ended_early",
    "pruned",
    "failed",
    "cancelled",
    "suspended",
)
_TOLD: Final = ("repaired", "skipped", "ended_early", "pruned", "failed", "cancelled", "unrun")

Rows = Sequence[Mapping[str, Any]]


def done_of(row: Mapping[str, Any]) -> int:
    """How many of the items due at a node are settled."""
    return sum(row[name] for name in _ENDED)


def tally(row: Mapping[str, Any], *, unrun: bool = False) -> str:
    """What became of a node's items beside success: `6 skipped, 1 failed`."""
    told = [name for name in _TOLD if row[name] and (unrun or name != "unrun")]
    return ", ".join(f"{row[name]:,} {name.replace('_', ' ')}" for name in told)


def is_step(row: Mapping[str, Any]) -> bool:
    """Whether the row is a step the author drew, not a mark such as `row[]`."""
    return "[" not in str(row["node_id"])


class Bars:
    """The bars of one run; `rows` is asked for how far it is."""

    def __init__(self, rows: Callable[[], Rows]) -> None:
        self._rows = rows
        self._bars: dict[str, TaskID] = {}
        self._progress = _made()
        self._aside = False

    def print(self, line: str) -> None:
        """A line above the bars."""
        self._progress.console.print(
            line, markup=False, highlight=False, emoji=False, soft_wrap=True
        )

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing is drawn inside."""
        self._aside = True
        self._progress.stop()
        try:
            yield
        finally:
            self._aside = False
            self._progress.start()

    @contextlib.asynccontextmanager
    async def drawn(self) -> Any:
        """Draw until the block ends."""
        self._progress.start()
        task = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self._update()
            self._progress.stop()

    async def _poll(self) -> None:
        while True:
            self._update()
            await asyncio.sleep(INTERVAL_S)

    def _update(self) -> None:
        if self._aside:
            return
        for row in self._rows():
            if (row["started"] or done_of(row)) and is_step(row):
                self._show(row)
        self._progress.refresh()

    def _show(self, row: Mapping[str, Any]) -> None:
        node = str(row["node_id"])
        if node not in self._bars:
            if len(self._bars) >= MOST_BARS:
                return
            self._bars[node] = self._progress.add_task(node, total=row["due"], told="")
        self._progress.update(
            self._bars[node], completed=done_of(row), total=row["due"], told=tally(row)
        )


def _made() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(max_width=24)),
        BarColumn(bar_width=30),
        TextColumn("{task.completed:,}/{task.total:,}", markup=False),
        TextColumn("{task.fields[told]}", markup=False, style="dim"),
        console=Console(file=sys.stderr, stderr=True),
        auto_refresh=False,
        transient=False,
    )
