"""Nightwarden runs workflows nobody watches.

A workflow stays what its author drew. When a step breaks after its own retries, the failure
becomes a decision (Retry, Repair, Skip, Stop), inside hard limits and on the record.

    import nightwarden as nw

    wf = nw.load("pages.yaml")
    result = nw.run(wf, inputs={"urls": [...]}, supervise="scripted:answers.yaml")

The main path is three files: a run is opened in `session.py`, driven in `runtime/driver.py`,
decided in `kernel/machine.py`. Names are imported when they are first used, so that importing
the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nightwarden.version import __version__

if TYPE_CHECKING:
    from nightwarden.errors import (
        NightwardenError,
        NodeError,
        RecoverableError,
        RunError,
        SpecError,
        Suspended,
    )
    from nightwarden.library import load, workflow
    from nightwarden.nodes.context import Context
    from nightwarden.nodes.define import Node, node
    from nightwarden.nodes.io import (
        ABSENT,
        ARRIVAL,
        ONCE,
        Absent,
        AssetRef,
        Collect,
        Many,
        Stream,
        outputs,
    )
    from nightwarden.nodes.registry import Registry
    from nightwarden.result import RunResult
    from nightwarden.resuming import resume
    from nightwarden.runtime.supervision import Bounds, Supervisor
    from nightwarden.session import Session, arun, run
    from nightwarden.verdict import Decision, Escalation
    from nightwarden.workflow_agent import WorkflowAgent

_HOMES = {
    "errors": (
        "NightwardenError",
        "NodeError",
        "RecoverableError",
        "RunError",
        "SpecError",
        "Suspended",
    ),
    "library": ("load", "workflow"),
    "nodes.context": ("Context",),
    "nodes.define": ("Node", "node"),
    "nodes.io": (
        "ABSENT",
        "ARRIVAL",
        "ONCE",
        "Absent",
        "AssetRef",
        "Collect",
        "Many",
        "Stream",
        "outputs",
    ),
    "nodes.registry": ("Registry",),
    "result": ("RunResult",),
    "runtime.supervision": ("Bounds", "Supervisor"),
    "resuming": ("resume",),
    "session": ("Session", "arun", "run"),
    "verdict": ("Decision", "Escalation"),
    "workflow_agent": ("WorkflowAgent",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ABSENT",
    "ARRIVAL",
    "ONCE",
    "Absent",
    "AssetRef",
    "Bounds",
    "Collect",
    "Context",
    "Decision",
    "Escalation",
    "Many",
    "NightwardenError",
    "Node",
    "NodeError",
    "RecoverableError",
    "Registry",
    "RunError",
    "RunResult",
    "Session",
    "SpecError",
    "Stream",
    "Supervisor",
    "Suspended",
    "WorkflowAgent",
    "__version__",
    "arun",
    "load",
    "node",
    "outputs",
    "resume",
    "run",
    "workflow",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> object:
        module = _HOME.get(name)
        if module is None:
            raise AttributeError(f"module 'nightwarden' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"nightwarden.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
