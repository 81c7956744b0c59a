"""Events about the run as a whole. Exactly one terminal event ends a record.

Read next: `node.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightwarden.events.base import Event


class RunStarted(Event, tag="run_started"):
    """A run began: its canonical definition and hash, masked inputs, versions, bounds.

    `supervisor` names the mode; empty in an unsupervised run. `blobs` holds large inputs by
    digest; `sealed` names inputs whose value is not on record. `file`, `folder` and `python` are
    where the workflow came from, where it runs, and the files with its steps.
    """

    run_id: str
    workflow: str
    definition: Mapping[str, object]
    definition_hash: str
    inputs: Mapping[str, object]
    versions: Mapping[str, str] = {}
    bounds: Mapping[str, object] = {}
    supervisor: str = ""
    blobs: Mapping[str, str] = {}
    sealed: tuple[str, ...] = ()
    open_inputs: tuple[str, ...] = ()
    file: str = ""
    folder: str = ""
    python: tuple[str, ...] = ()


class RunResumed(Event, tag="run_resumed"):
    """A run goes on after its end, or after its process died. What it had done stands.

    `redo` names what is done again although it is on record, as [node, lineage]; `retry` what is
    run again at its user's risk. `definition` is given where it was changed. The rest is as in
    `run_started`, from here on.
    """

    redo: tuple[tuple[str, tuple[int, ...]], ...] = ()
    retry: tuple[tuple[str, tuple[int, ...]], ...] = ()
    definition: Mapping[str, object] | None = None
    definition_hash: str = ""
    inputs: Mapping[str, object] | None = None
    versions: Mapping[str, str] = {}
    bounds: Mapping[str, object] = {}
    supervisor: str = ""


class InputPushed(Event, tag="input_pushed"):
    """An item was added to an open input: `inputs` holds it by the input's name."""

    inputs: Mapping[str, object] = {}
    blobs: Mapping[str, str] = {}
    sealed: bool = False


class InputClosed(Event, tag="input_closed"):
    """An open input is complete."""

    name: str


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


ENDS: Final[Mapping[str, str]] = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_suspended": "suspended",
}
"""Terminal events and the status each gives a run."""


class RunCompleted(RunEnded, tag="run_completed"):
    """Everything is settled."""


class RunFailed(RunEnded, tag="run_failed"):
    """The run stopped, or something in it failed."""


class RunCancelled(RunEnded, tag="run_cancelled"):
    """Somebody cancelled the run."""


class RunSuspended(RunEnded, tag="run_suspended"):
    """A step asked for a pause: which, why, and the state it wants back."""

    suspended: tuple[Mapping[str, object], ...] = ()
