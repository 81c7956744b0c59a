"""Events about a node over all its items.

Read next: `invocation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.events.base import Event


class NodeStarted(Event, tag="node_started"):
    """The first invocation of a node began."""


class NodeProgress(Event, tag="node_progress"):
    """How far a step says it is; throttled. `total` None where it does not know."""

    done: int
    total: int | None = None


class NodeFinished(Event, tag="node_finished"):
    """No further item of this node can come: its counts, as in the ledger."""

    counts: Mapping[str, int] = {}


class Log(Event, tag="log"):
    """A line a step wrote. `level` is `info` or `warning`."""

    level: str
    message: str


class RecordRejected(Event, tag="record_rejected"):
    """A reader could not use one input record: `line` is 1-based, `raw` masked and cut."""

    line: int
    raw: str
    reason: str


class WindowWidened(Event, tag="window_widened"):
    """Everything waited for a paused fan-out, so its window was doubled."""

    window: int
