"""Going on with a recorded run: what it had done stands, and exactly what is missing runs.

    store ─▶ past ─▶ the same workflow? ─▶ what is done again ─▶ Session ─▶ run

A changed definition is refused with its differences, unless `force` says that what changed, and
what lies below it, is to be done again. Whoever resumes may change the bounds and the supervisor.

Read next: `session.py`, `runtime/past.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from nightwarden.errors import RunError
from nightwarden.events import RunResumed
from nightwarden.library import asked_python, load, recorded
from nightwarden.result import RunResult
from nightwarden.runtime.past import Past
from nightwarden.runtime.past_folding import fold_past
from nightwarden.runtime.risks import risks
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.runtime.supervisors.installed import installed_names
from nightwarden.runtime.supervisors.modes import MODES
from nightwarden.session import Session, run_session
from nightwarden.spec.differences import below, changed_nodes, differences
from nightwarden.spec.spots import Spot, read_spot, with_below
from nightwarden.spec.workflow import Workflow
from nightwarden.store.contract import RunBusy

if TYPE_CHECKING:
    from nightwarden.store.contract import Store

INHERIT: Final = "inherit"
"""The supervisor the run had."""

_MOST_DIFFERENCES: Final = 12


class NothingLeft(RunError):
    """The run is complete."""


class Changed(RunError):
    """The workflow is no longer what the run was a run of."""


def resume(run_id: str = "last", *, store: Store | Path | str, **options: Any) -> RunResult:
    """Go on with a run to its end; `options` are those of `resume_session`.

    Raises `RunError` for a run that is complete or whose workflow has changed, `RunBusy` for one
    that another process drives, and what `run` raises.
    """
    if isinstance(store, (str, Path)):
        from nightwarden.store.opening import open_store  # noqa: PLC0415  (brings a database in)

        with open_store(store) as opened:
            return run_session(resume_session(opened, run_id, **options))
    return run_session(resume_session(store, run_id, **options))


def resume_session(
    store: Store,
    run_id: str = "last",
    *,
    workflow: Workflow | None = None,
    supervise: Supervisor | str | None = INHERIT,
    bounds: Bounds | Mapping[str, Any] | None = None,
    keep_going: bool | None = None,
    max_cost_micro_usd: int | None = None,
    inputs: Mapping[str, object] | Callable[[Workflow], Mapping[str, object]] | None = None,
    nodes: Sequence[Path] = (),
    trust: bool = False,
    force: bool = False,
    redo: Iterable[str] = (),
    retry: Iterable[str] = (),
    **options: Any,
) -> Session:
    """A session that goes on with a run.

    `workflow` is looked for where the run had it, if not given. `redo` names what is done again
    with everything that follows from it, `retry` what is run again at its user's risk, each as
    `NODE` or `NODE[ITEM]`. `inputs` are those the record does not have, because they held secrets;
    a function is asked for them once the workflow is known. A mapping of `bounds` changes some of
    those the run had. `max_cost_micro_usd` is a new budget for the whole run; what was spent
    before counts. `nodes` stand in for the files its steps were in; a Python file the workflow
    names now and the run did not use is imported only with `trust`. Further options are those of
    `Session`.
    """
    run_id = store.find(run_id)
    _refuse_driven(store, run_id)
    past = fold_past(store.lines(run_id))
    redo, retry = tuple(redo), tuple(retry)
    if past.ended and not (redo or force):
        raise NothingLeft(f"run {run_id} is complete: nothing is left to do")
    found = workflow or _workflow_of(past, nodes, trust=trust)
    again, retried = _taken_back(past, found, redo, retry, force=force)
    inputs = inputs(found) if callable(inputs) else inputs or {}
    past.give_up_sealed(found.types)
    given = _inputs(past, store, inputs)
    settings = past.bounds
    if max_cost_micro_usd is None and settings.get("max_cost_usd") is not None:
        max_cost_micro_usd = round(settings["max_cost_usd"] * 1_000_000)
    if not isinstance(bounds, Bounds):
        bounds = replace(bounds_of(settings), **(bounds or {}))
    return Session(
        found,
        given,
        run_id=run_id,
        store=store,
        past=past,
        supervise=_supervisor_of(past) if supervise == INHERIT else supervise,
        bounds=bounds,
        workdir=options.pop("workdir", _folder_of(past)),
        keep_going=bool(settings.get("keep_going")) if keep_going is None else keep_going,
        max_cost_micro_usd=max_cost_micro_usd,
        open_inputs=options.pop("open_inputs", past.started.get("open_inputs", ())),
        resumed=RunResumed(
            redo=tuple(again),
            retry=tuple(retried),
            definition=found.canonical() if found.digest() != past.definition_hash else None,
            definition_hash=found.digest(),
        ),
        **options,
    )


def bounds_of(recorded_bounds: Mapping[str, Any]) -> Bounds:
    """The bounds a run had."""
    usual = Bounds()
    cap = recorded_bounds.get("cost_cap_usd")
    return Bounds(
        max_decisions=recorded_bounds.get("max_decisions", usual.max_decisions),
        max_retries=recorded_bounds.get("max_retries", usual.max_retries),
        decision_timeout_s=recorded_bounds.get("decision_timeout_s", usual.decision_timeout_s),
        cost_cap_micro_usd=usual.cost_cap_micro_usd if cap is None else round(cap * 1_000_000),
        max_retry_delay_s=recorded_bounds.get("max_retry_delay_s", usual.max_retry_delay_s),
    )


def _refuse_driven(store: Store, run_id: str) -> None:
    """Raise `RunBusy` before anything is read of a run that goes on elsewhere."""
    entry = store.entry(run_id)
    if entry.owner_alive:
        raise RunBusy(
            f"run {run_id} is driven by {entry.owner}: follow it with `nightwarden events {run_id} "
            f"--follow`, or end it with `nightwarden cancel {run_id}`"
        )


def _workflow_of(past: Past, nodes: Sequence[Path], *, trust: bool) -> Workflow:
    """The workflow as it is now where the run had it from, else as the record has it."""
    used = [_where_it_ran(past, str(name)) for name in past.started.get("python", ())]
    code = list(nodes) or used
    gone = [path for path in code if not path.is_file()]
    if gone:
        raise RunError(
            f"the run's steps were in {gone[0]}, which is no longer there; put it back, or name "
            "the file with --nodes"
        )
    file = _where_it_ran(past, str(past.started.get("file") or ""))
    if file.suffix in (".yaml", ".yml", ".json") and file.is_file():
        known = {path.resolve() for path in used}
        trust = trust or {path.resolve() for path in asked_python(file)} <= known
        return load(file, nodes=_not_named(file, code), trust=trust)
    return recorded(past.definition, {}, nodes=code, trust=True)[0]


def _where_it_ran(past: Past, name: str) -> Path:
    """A file the run was started with, wherever the process that resumes it stands."""
    there = _folder_of(past) / name
    return there if there.exists() else Path(name)


def _folder_of(past: Past) -> Path:
    """Where the run ran, if that is still there."""
    folder = Path(str(past.started.get("folder") or "."))
    return folder if folder.is_dir() else Path()


def _not_named(file: Path, code: Sequence[Path]) -> list[Path]:
    """The files with steps that were given beside the workflow, not named in it."""
    named = {path.resolve() for path in asked_python(file)}
    return [path for path in code if path.resolve() not in named]


def _taken_back(
    past: Past, found: Workflow, redo: Iterable[str], retry: Iterable[str], *, force: bool
) -> tuple[list[Spot], list[Spot]]:
    """Forget what is done again with all below it, and what is run again by itself; gives both."""
    again = _changed(past, found, force=force)
    again += [spot for text in redo for spot in with_below(found, _on_record(past, found, text))]
    retried = [_at_risk(past, found, text) for text in retry]
    for node, lineage in again:
        past.forget(node, lineage)
    for node, lineage in retried:
        past.forget(node, lineage, exactly=True)
    return again, retried


def _changed(past: Past, found: Workflow, *, force: bool) -> list[Spot]:
    """What a changed definition makes necessary to do again. Raises `Changed` without `force`."""
    if found.digest() == past.definition_hash:
        return []
    now = found.canonical()
    lines = differences(past.definition, now)
    if not lines:
        return []
    if not force:
        more = len(lines) - _MOST_DIFFERENCES
        shown = lines[:_MOST_DIFFERENCES] + ([f"and {more} more"] if more > 0 else [])
        raise Changed(
            f"the workflow is not the one that run {past.run_id} was a run of:\n"
            + "".join(f"  {line}\n" for line in shown)
            + "put it back, or resume with --force: what has changed, and what lies below it, "
            "is then done again"
        )
    edges: Any = now["edges"]
    return [(node, ()) for node in sorted(below(changed_nodes(past.definition, now), edges))]


def _on_record(past: Past, workflow: Workflow, text: str) -> Spot:
    """What is done again. Raises `RunError` for an item nothing is known of."""
    node, lineage = read_spot(workflow, text)
    if lineage and not past.knows(node, lineage):
        raise RunError(f"{text}: nothing is on record of that item, so it cannot be done again")
    return node, lineage


def _supervisor_of(past: Past) -> str | None:
    """The mode of supervision the run had. Raises `RunError` if it was a program's own."""
    mode = past.supervisor
    name = (mode or "").partition(":")[0]
    if mode and name not in MODES and name not in installed_names():
        raise RunError(
            f"run {past.run_id} was supervised by {mode!r}, which only the program that started it "
            "has: name another with --supervise MODE, or --supervise off"
        )
    return mode or None


def _at_risk(past: Past, workflow: Workflow, text: str) -> Spot:
    """What is retried at its user's risk. Raises `RunError` if there is nothing to retry."""
    spot = read_spot(workflow, text)
    known = risks(past, workflow.types)
    if spot not in [(risk.node_id, risk.lineage) for risk in known]:
        names = ", ".join(str(risk) for risk in known[:10]) or "nothing"
        raise RunError(f"{text} does not have to be retried; at risk is {names}")
    return spot


def _inputs(past: Past, store: Store, given: Mapping[str, object]) -> dict[str, object]:
    """The run's inputs: as recorded; those that held secrets have to be given again."""
    found = {**past.inputs}
    for name, digest in past.input_blobs.items():
        found[name] = msgspec.json.decode(store.blobs.get(digest))
    changed = [name for name in given if name not in past.sealed_inputs]
    if changed:
        raise RunError(
            f"input {changed[0]} is on record: a run goes on with the inputs it had; "
            "for others start a new one"
        )
    lacking = [name for name in past.sealed_inputs if name not in given]
    if lacking:
        raise RunError(
            f"input {lacking[0]} held a secret, and is not on record: give it again "
            f"(--input {lacking[0]}=…)"
        )
    return {**found, **given}
