"""Events about the run as a whole. Exactly one terminal event ends a record.

Read next: `node.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightwarden.events.base import Event


class RunStarted(Event, tag="run_started"):
    """A run began: its canonical definition and hash, masked inputs, versions, bounds.

    `supervisor` names the mode; empty in an unsupervised run.
    """

    run_id: str
    workflow: str
    definition: Mapping[str, object]
    definition_hash: str
    inputs: Mapping[str, object]
    versions: Mapping[str, str] = {}
    bounds: Mapping[str, object] = {}
    supervisor: str = ""


class RunStopping(Event, tag="run_stopping"):
    """Nothing new starts from here on."""

    status: str
    reason: str


class RunEnded(Event):
    """What all terminal events tell. Money in micro-dollars; `ledger` as in the report."""

    reason: str = ""
    ledger: Mapping[str, object] = {}
    cost_micro_usd: int = 0
    supervisor_cost_micro_usd: int = 0
    supervised: bool = False
    duration_s: float = 0.0
    outputs: Mapping[str, object] = {}


class RunCompleted(RunEnded, tag="run_completed"):
    """Everything is settled."""


class RunFailed(RunEnded, tag="run_failed"):
    """The run stopped, or something in it failed."""


class RunCancelled(RunEnded, tag="run_cancelled"):
    """Somebody cancelled the run."""


class RunSuspended(RunEnded, tag="run_suspended"):
    """A step asked for a pause: which, why, and the state it wants back."""

    suspended: tuple[Mapping[str, object], ...] = ()
