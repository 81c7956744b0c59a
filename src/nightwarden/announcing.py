"""What a record says first: which run this is, of what, with what; and what it cannot keep.

Read next: `ending.py`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

import msgspec

from nightwarden.events import Event, Log, RunStarted
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.opening import bounds_json
from nightwarden.run_inputs import kept_inputs
from nightwarden.spec.storing import unstored
from nightwarden.spec.workflow import Workflow
from nightwarden.version import __version__
from nightwarden.wiring import Request


def first_event(request: Request, registry: SecretRegistry) -> Event:
    """That the run starts, or goes on."""
    versions = {"nightwarden": __version__, "python": platform.python_version()}
    bounds = bounds_json(request.bounds, request.settings, request.max_cost_micro_usd)
    supervisor = request.supervisor_name
    if request.resumed is not None:
        return msgspec.structs.replace(
            request.resumed, versions=versions, bounds=bounds, supervisor=supervisor
        )
    workflow = request.workflow
    definition, _ = registry.mask_value(workflow.canonical())
    inputs, sealed = kept_inputs(workflow, request.inputs, registry)
    return RunStarted(
        run_id=request.run_id,
        workflow=workflow.name,
        definition=definition,  # type: ignore[arg-type]
        definition_hash=workflow.digest(),
        inputs=inputs,
        sealed=sealed,
        open_inputs=tuple(request.feeds),
        versions=versions,
        bounds=bounds,
        supervisor=supervisor,
        file=registry.mask_text(str(workflow.file or "")),
        folder=registry.mask_text(str(request.workdir)),
        python=tuple(str(path) for path in request.node_files),
    )


def what_is_not_stored(workflow: Workflow) -> Iterator[Log]:
    """A recorded run that could not be resumed past a step says so at its start."""
    for node, slot in unstored(workflow):
        yield Log(
            node_id=node.id,
            level="warning",
            message=f"its {slot} cannot be kept in a record: a run that stops after it "
            "cannot be resumed past it",
        )
