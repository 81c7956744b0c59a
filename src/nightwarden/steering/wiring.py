"""From a session to the steering of its run.

Read next: `managed.py`, `evaluating.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nightwarden.runtime.services import RunServices
from nightwarden.settings import load_settings
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.spec.workflow import Workflow
from nightwarden.steering.managed import Evaluators, RunSteering, Setting
from nightwarden.steering.ports import Evaluator
from nightwarden.steering.switch import Switch, switch


def steering_of(
    workflow: Workflow,
    services: RunServices,
    *,
    run_id: str,
    inputs: Mapping[str, object],
    supervisors: str | None,
    evaluators: Callable[[SupervisorSpec], Evaluator | None] | None,
    lines: Callable[[], Iterable[bytes]],
    finished: frozenset[str],
) -> RunSteering:
    """The steering of a run. `supervisors` is the switch, `evaluators` replaces the models."""

    def made(spent: Mapping[str, int]) -> Evaluators:
        if evaluators is not None:
            return evaluators
        from nightwarden.steering.evaluating import evaluators_of  # noqa: PLC0415  (models)

        return evaluators_of(workflow, spent, inputs=inputs, protect=services.registry.register)

    return RunSteering(
        Setting(
            run_id=run_id,
            workflow=workflow,
            bus=services.bus,
            registry=services.registry,
            tell=services.tell,
            switch=_switch(supervisors) if workflow.supervisors else Switch(),
            evaluators=made,
            lines=lines,
            finished=finished,
        )
    )


def _switch(flag: str | None) -> Switch:
    """What holds; settings that cannot be read do not break a run."""
    try:
        setting = load_settings().steering_enabled
    except ValueError:
        setting = None
    return switch(flag, setting=setting)
