"""What is printed while a run goes on: ⛨ lines at the outcome, warnings, steps as they finish.

Lines that would come by the thousand are counted after a few, and the count is printed at the
end; the report has them all.

Read next: `running.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nightwarden.cli.output import Output
from nightwarden.cli.progress import done_of, is_step, tally
from nightwarden.events.interventions import Intervention, Interventions, intervention_line
from nightwarden.events.render import as_mapping, render
from nightwarden.events.words import text

if TYPE_CHECKING:
    from nightwarden.events import Event

MOST_ALIKE: Final = 5
_SHIELDS: Final = ("supervisor_escalation", "supervisor_decision", "supervisor_outcome")
_STEERING: Final = frozenset(
    {
        "steering_evaluated",
        "steering_exhausted",
        "steering_parked",
        "user_message_queued",
        "user_message_cancelled",
        "user_message_expired",
    }
)
"""Of steering: what was said, what became of it where it was not read, and what went wrong."""
_COLOURS: Final[Mapping[str, str]] = {"retry": "blue", "substitute": "yellow", "skip": "dim"}


class Watcher:
    """Subscribes to a run and prints. `rows` is asked for the counts of finished steps."""

    def __init__(
        self, out: Output, rows: Callable[[], Sequence[Mapping[str, Any]]], *, steps: bool
    ) -> None:
        self._out = out
        self._rows = rows
        self._steps = steps
        self._interventions = Interventions()
        self._alike: Counter[tuple[str, str]] = Counter()

    def __call__(self, event: Event) -> None:
        """Print what this event is worth."""
        kind = event.__struct_config__.tag
        if kind in _SHIELDS:
            closed = self._interventions.take(as_mapping(event))
            if closed is not None:
                self._shield(closed)
        elif kind == "log":
            if getattr(event, "level", "info") != "info":
                self._few(event.node_id, "warning", render(event), "yellow")
        elif kind in _STEERING:
            if kind != "steering_evaluated" or getattr(event, "outcome", "") == "failed":
                self._few(event.node_id, "steering", render(event), "cyan")
        elif kind == "window_widened":
            self._few(event.node_id, "wider window", render(event), "dim")
        elif kind == "node_finished" and self._steps:
            self._finished(event.node_id)

    def close(self) -> None:
        """Print how many lines there would have been."""
        for (node, what), number in self._alike.items():
            if number > MOST_ALIKE:
                more = f"{number - MOST_ALIKE:,} more like it, in the report"
                self._out.note(f"   {node}, {what}: {more}")

    def _shield(self, found: Intervention) -> None:
        line, colour = intervention_line(found), _COLOURS.get(found.action, "red")
        if found.decided_by == "sticky":
            signature = text(found.escalation.get("signature"))
            node = str(found.escalation.get("node_id", ""))
            self._few(node, f"⛨ {signature}", line, colour)
        else:
            self._out.note(line, colour)

    def _few(self, node: str, what: str, line: str, colour: str) -> None:
        self._alike[node, what] += 1
        if self._alike[node, what] <= MOST_ALIKE:
            self._out.note(line, colour)

    def _finished(self, node: str) -> None:
        for row in self._rows():
            if row["node_id"] == node and is_step(row):
                told = tally(row)
                counts = f"{done_of(row):,}/{row['due']:,}"
                self._out.note(f"   {node} {counts}" + (f", {told}" if told else ""), "dim")
