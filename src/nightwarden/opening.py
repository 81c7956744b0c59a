"""What a run needs before it can start: its plan, the code of its steps, its id, its supervisor.

Read next: `session.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from nightwarden.errors import Problem, RunError, SpecError
from nightwarden.ids import RunId, new_run_id
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.state import Settings
from nightwarden.nodes.define import NodeDef
from nightwarden.nodes.models import BACKEND, EMBEDDING_MODEL, MODEL
from nightwarden.nodes.registry import Registry
from nightwarden.runtime.executors import PROCESS
from nightwarden.runtime.executors.references import refusal
from nightwarden.runtime.paying import NamedModel
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.spec.build import Builder
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import Workflow

if TYPE_CHECKING:
    from nightwarden.store.contract import Store

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def plan_of(workflow: Workflow) -> Plan:
    """The workflow's plan, compiled once. Raises `SpecError`."""
    plan = workflow.memo.get("plan")
    if not isinstance(plan, Plan):
        analysis = analyse(workflow)
        if analysis.problems:
            raise SpecError(analysis.problems)
        plan = workflow.memo["plan"] = compile_plan(workflow, analysis)
    return plan


def refuse_other_things(workflow: object, inputs: object) -> None:
    """Raises `RunError` for a workflow that is none, and for inputs without names."""
    kind = type(workflow).__name__
    if isinstance(workflow, str | Path):
        raise RunError(f"{str(workflow)!r} is no workflow: nw.load(…) reads one from a file")
    if isinstance(workflow, Builder):
        raise RunError(f"a {kind} is no workflow yet: call its build() when all is drawn")
    if not isinstance(workflow, Workflow):
        raise RunError(f"a workflow is expected, from nw.load(…) or nw.workflow(…); got {kind}")
    if not isinstance(inputs, Mapping | None):
        got = type(inputs).__name__
        raise RunError(f"inputs are given by name, as in {{'url': …}}; got {got}")


def registry_of(workflow: Workflow) -> Registry:
    """Where the workflow's own node types came from, else what is built in or installed."""
    return workflow.catalog if isinstance(workflow.catalog, Registry) else Registry()


def definitions_of(workflow: Workflow, registry: Registry) -> dict[str, NodeDef]:
    """The code of every node, by node id. Raises `SpecError` for what cannot be run here."""
    found: dict[str, NodeDef] = {}
    problems = []
    for node in workflow.nodes:
        definition = registry.definition(node.type)
        if definition is None:
            problems.append(
                Problem(
                    file=workflow.file,
                    line=node.line,
                    node=node.id,
                    rule="unknown-type",
                    message=f"no node type {node.type!r} is known to this run",
                    remedy="name the Python file it is in, or pass the registry it was loaded with",
                )
            )
        elif definition.type.executor == PROCESS and refusal(definition):
            problems.append(
                Problem(
                    file=workflow.file,
                    line=node.line,
                    node=node.id,
                    rule="process",
                    message=f"{node.type} cannot run in a process of its own",
                    remedy=refusal(definition),
                )
            )
        else:
            found[node.id] = definition
    if problems:
        raise SpecError(problems)
    return found


def fresh_id() -> RunId:
    """A run id nobody has: the time, and chance enough for many runs a second."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return new_run_id(stamp, int.from_bytes(os.urandom(4)))


def checked_id(run_id: str) -> RunId:
    """A run id somebody chose: it names a folder, and has to be told from `last`."""
    if not _RUN_ID.fullmatch(run_id) or run_id == "last":
        raise RunError(
            f"{run_id!r} cannot be a run's id: use up to 100 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit; 'last' is taken"
        )
    return RunId(run_id)


def models_of(plan: Plan, workflow: Workflow, inputs: Mapping[str, object]) -> list[NamedModel]:
    """The models the nodes will ask, as far as they are known: named outright, or by an input."""
    given = {
        (edge.target, edge.target_slot): inputs.get(edge.source_slot)
        for edge in workflow.edges
        if edge.source == "inputs"
    }
    found = []
    for node in plan.nodes:
        for name, slot in node.type.inputs.items():
            marks = get_args(slot.type)[1:] if get_origin(slot.type) is Annotated else ()
            if not (MODEL in marks or EMBEDDING_MODEL in marks):
                continue
            wired = any(wired.name == name for wired in node.slots)
            value = given.get((node.id, name)) if wired else node.spec.properties.get(name)
            if isinstance(value, str):
                embeds = EMBEDDING_MODEL in marks
                found.append(NamedModel(node.id, value, embeds, _backend(node)))
    return found


def _backend(node: NodePlan) -> str:
    """Who works for a node, where it says so outright."""
    for name, slot in node.type.inputs.items():
        if get_origin(slot.type) is Annotated and BACKEND in get_args(slot.type)[1:]:
            return str(node.spec.properties.get(name) or "")
    return ""


def bounds_json(
    bounds: Bounds, settings: Settings, max_cost_micro_usd: int | None = None
) -> dict[str, object]:
    """The bounds of a run, as its record has them; its budget only where there is one."""
    cost = {} if max_cost_micro_usd is None else {"max_cost_usd": max_cost_micro_usd / 1_000_000}
    return {
        "max_decisions": bounds.max_decisions,
        "max_retries": bounds.max_retries,
        "decision_timeout_s": bounds.decision_timeout_s,
        "cost_cap_usd": round(bounds.cost_cap_micro_usd / 1_000_000, 6),
        "max_retry_delay_s": bounds.max_retry_delay_s,
        "keep_going": settings.keep_going,
        **cost,
    }


class Named(NamedTuple):
    """Who decides, and what the record calls it; empty if nobody does."""

    supervisor: Supervisor | None = None
    name: str = ""


def supervisor_of(
    supervise: Supervisor | str | None,
    store: Store | Path | str | None,
    aside: Callable[[], AbstractContextManager[object]],
    bounds: Bounds,
) -> Named:
    """The supervisor a mode names, or the one that is given.

    Raises `RunError`, or `ModelError` with what is wrong with the model it asks.
    """
    if supervise is None or supervise == "off":
        return Named()
    if not isinstance(supervise, str):
        return Named(supervise, type(supervise).__name__.lower())
    from nightwarden.runtime.supervisors.modes import make_supervisor

    made = make_supervisor(
        supervise,
        read_text=lambda name: Path(name).read_text(encoding="utf-8"),
        read_run=partial(_read_run, store),
        aside=aside,
        make_agent=partial(_agent, bounds),
    )
    return Named(made, supervise)


def _agent(bounds: Bounds, model: str) -> Supervisor:
    from nightwarden.agents.opening import open_adjudicator

    return open_adjudicator(model, bounds)


def _read_run(store: Store | Path | str | None, run_id: str) -> Iterator[Mapping[str, Any]]:
    """The events of a recorded run."""
    from nightwarden.store.opening import open_store

    if store is not None and not isinstance(store, (str, Path)):
        yield from store.read(run_id)
        return
    with open_store(store or ".nightwarden") as opened:
        yield from opened.read(run_id)
