"""Events about single invocations and the items of fan-outs.

Read next: `supervision.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.events.base import Event
from nightwarden.lineage import Lineage


class InvocationStarted(Event, tag="invocation_started"):
    """A step with outside effects is about to run."""


class InvocationSucceeded(Event, tag="invocation_succeeded"):
    """A step returned. `outputs` are masked; `sealed` says that masking changed them."""

    outputs: Mapping[str, object] = {}
    sealed: bool = False
    duration_s: float = 0.0
    cost_micro_usd: int = 0
    assets: tuple[Mapping[str, object], ...] = ()


class InvocationFailed(Event, tag="invocation_failed"):
    """A step raised. `detail` is one masked line; `escalation` empty where nobody was asked."""

    error_type: str
    detail: str
    signature: str | None = None
    cost_micro_usd: int = 0
    assets: int = 0
    duration_s: float = 0.0
    escalation: str = ""
    item: str = ""


class InvocationPruned(Event, tag="invocation_pruned"):
    """A node will not run for these lineages, because of one cause (`kind`, `by` a node)."""

    kind: str
    by: str
    lineages: tuple[Lineage, ...] = ()
    escalation: str = ""


class ItemEmitted(Event, tag="item_emitted"):
    """A fan-out put out one item."""

    outputs: Mapping[str, object] = {}
    sealed: bool = False


class StreamClosed(Event, tag="stream_closed"):
    """A fan-out ended after `emitted` items; `mark` says how: closed, early, cut, absent."""

    emitted: int
    mark: str
