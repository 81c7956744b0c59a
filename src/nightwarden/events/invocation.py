"""Events about single invocations and the items of fan-outs.

There may be millions of them: of the most frequent ones, fields that are empty are left out.

Read next: `supervision.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.events.base import Event
from nightwarden.lineage import Lineage


class InvocationStarted(Event, tag="invocation_started", omit_defaults=True):
    """A step with outside effects is about to run."""


class InvocationSucceeded(Event, tag="invocation_succeeded", omit_defaults=True):
    """A step returned. `outputs` are by slot, masked; large ones stand in `blobs`, by digest.

    `absent` names the branches it did not take. `sealed` says that what stands here is not the
    value itself: masking changed it, or it has no form in a record. `read` says how many items
    it asked for, by the slot it reads.
    """

    outputs: Mapping[str, object] = {}
    absent: tuple[str, ...] = ()
    blobs: Mapping[str, str] = {}
    sealed: bool = False
    read: Mapping[str, int] = {}
    duration_s: float = 0.0
    cost_micro_usd: int = 0
    assets: tuple[Mapping[str, object], ...] = ()


class InvocationFailed(Event, tag="invocation_failed"):
    """A step raised. `detail` is one masked line; `escalation` empty where nobody was asked.

    `facts` are what decides which answers are allowed, where it differs from the usual.
    """

    error_type: str
    detail: str
    signature: str | None = None
    cost_micro_usd: int = 0
    assets: int = 0
    duration_s: float = 0.0
    escalation: str = ""
    item: str = ""
    facts: Mapping[str, object] = {}


class InvocationSuspended(Event, tag="invocation_suspended"):
    """A step asked the run to pause; `state` is what it wants back when the run goes on."""

    reason: str
    state: object = None
    sealed: bool = False


class InvocationSpent(Event, tag="invocation_spent"):
    """A step booked money, and goes on: should it be cut off, this is known.

    `model` names the model it went to, if it did.
    """

    cost_micro_usd: int
    what: str = ""
    model: str = ""


class AssetWritten(Event, tag="asset_written"):
    """A step is writing a file, and goes on: should it be cut off, this is known."""

    asset: Mapping[str, object]


class ControlSent(Event, tag="control_sent"):
    """A step sent a control event to a node it controls; `awaits`: it waits for the answer."""

    target: str
    overrides: Mapping[str, object] = {}
    sealed: bool = False
    awaits: bool = False


class InvocationPruned(Event, tag="invocation_pruned"):
    """A node will not run for these lineages, because of one cause (`kind`, `by` a node)."""

    kind: str
    by: str
    lineages: tuple[Lineage, ...] = ()
    escalation: str = ""


class ItemEmitted(Event, tag="item_emitted", omit_defaults=True):
    """A fan-out put out one item: the next under its lineage. Fields as of a step that returned.

    `read` says how many items it had asked for by then. `node_id` may be an input that was fed
    while the run went on.
    """

    outputs: Mapping[str, object] = {}
    absent: tuple[str, ...] = ()
    blobs: Mapping[str, str] = {}
    sealed: bool = False
    read: Mapping[str, int] = {}


class StreamClosed(Event, tag="stream_closed"):
    """A fan-out ended after `emitted` items; `mark` says how: closed, early, cut, absent."""

    emitted: int
    mark: str
