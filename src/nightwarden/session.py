"""A session opens one run: it wires record, bus, driver and supervisor, and folds the result.

Every surface (library, command line, server) goes through here; none touches the kernel.

    Session(workflow, inputs, …) ─▶ await run() ─▶ RunResult

The main path is three files: a run is opened here, driven in `runtime/driver.py`, decided in
`kernel/machine.py`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nightwarden.errors import NodeError, Problem, RunError, SpecError
from nightwarden.events import (
    Event,
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunStarted,
    RunSuspended,
)
from nightwarden.events.seen import Seen
from nightwarden.ids import RunId, new_run_id
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.effects import Ended, Status
from nightwarden.kernel.plan import Plan
from nightwarden.kernel.state import Settings
from nightwarden.masking.marks import contains_mark
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.define import NodeDef
from nightwarden.nodes.io import AssetRef
from nightwarden.nodes.registry import Registry
from nightwarden.result import (
    RunResult,
    fold_ledger,
    fold_outputs,
    headline,
    missing_outputs,
    other_roots,
    shown_output,
)
from nightwarden.run_inputs import (
    fed_nodes,
    open_elements,
    resolve_inputs,
    secret_names,
)
from nightwarden.runtime.bounded import Bounded, bounded
from nightwarden.runtime.bus import Bus, Subscriber, utc_now
from nightwarden.runtime.context import asset_bytes
from nightwarden.runtime.deciding import Deciding, summary
from nightwarden.runtime.driver import Driver
from nightwarden.runtime.executors import PROCESS, Executor, StepExecutor, ThreadExecutor
from nightwarden.runtime.executors.references import refusal, refuse_while_loading
from nightwarden.runtime.failing import Failure
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.log_masking import masked_logging
from nightwarden.runtime.recording import Recorder, cause_text
from nightwarden.runtime.secrets import SecretResolver
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.substitution import check_repair
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser, with_plugins
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import Workflow
from nightwarden.store.jsonl import JsonLines, RunFolder
from nightwarden.verdict import DecidedBy, Fail, Item
from nightwarden.version import __version__

T = TypeVar("T")

Aside = Callable[[], AbstractContextManager[object]]
"""Entered while a person is asked: what else draws on the terminal steps back."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TERMINAL: Mapping[Status, type[RunEnded]] = {
    Status.COMPLETED: RunCompleted,
    Status.FAILED: RunFailed,
    Status.CANCELLED: RunCancelled,
    Status.SUSPENDED: RunSuspended,
}


class Session:
    """One run of a workflow; runs once.

    `open_inputs` are list inputs whose items may be pushed while the run goes on.

    `store` is the folder runs are recorded under (`.nightwarden`), None for no record. Relative
    paths are meant from `workdir`. `secrets` are values `$secrets.NAME` and `ctx.secret` find
    before the environment. `supervise` is a supervisor or a mode (`"scripted:FILE"`, `"operator"`,
    `"replay:RUN"`). `aside` is entered while a person is asked. `watch` is called on the run's
    loop with every invocation's inputs and outputs, masked and cut. Raises `RunError` for inputs
    that do not fit or a mode that cannot be had, `SpecError` for a workflow whose node types are
    not known here.
    """

    def __init__(
        self,
        workflow: Workflow,
        inputs: Mapping[str, object] | None = None,
        *,
        registry: Registry | None = None,
        supervise: Supervisor | str | None = None,
        bounds: Bounds | None = None,
        store: Path | None = None,
        run_id: str | None = None,
        workdir: Path | None = None,
        secrets: Mapping[str, str] | None = None,
        keep_going: bool = False,
        stop_grace_s: float = 30.0,
        window: int = 1024,
        recognisers: Sequence[Recogniser] = (),
        executor: Executor | None = None,
        seed: int | None = None,
        aside: Aside = nullcontext,
        open_inputs: Iterable[str] = (),
        watch: Callable[[Seen], None] | None = None,
    ) -> None:
        self.workflow = workflow
        self.bounds = bounds or Bounds()
        self.inputs = resolve_inputs(workflow, inputs or {})
        known = registry or _registry_of(workflow)
        self._definitions = _definitions(workflow, known)
        self._node_files = known.files
        self._plan = _plan(workflow)
        self._feeds = {name: InputFeed(name) for name in open_inputs}
        self._elements = open_elements(workflow, self._feeds)
        self._rng = random.Random(seed)
        self.run_id = _checked_id(run_id) if run_id else _fresh_id(self._rng)
        self._store = store
        self._supervisor, self._supervisor_name = _supervisor(supervise, store, aside)
        self._workdir = (workdir or Path.cwd()).resolve()
        self._secrets = dict(secrets or {})
        self._settings = Settings(
            max_retries=self.bounds.max_retries,
            max_retry_delay_s=self.bounds.max_retry_delay_s,
            keep_going=keep_going,
            window=window,
        )
        self._stop_grace_s = stop_grace_s
        self._recognisers = with_plugins(tuple(recognisers))
        self._executor = executor
        self._subscribers: list[Subscriber] = []
        self._watch = watch
        self._driver: Driver | None = None
        self._bounded: Bounded | None = None
        self._registry = SecretRegistry()
        self._cancel_reason: str | None = None
        self._opened = False

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Call `subscriber` with every event of the run, on the run's loop. Before `run` only."""
        self._subscribers.append(subscriber)

    async def push(self, name: str, value: object) -> None:
        """Add an item to an open input while the run goes on; on the run's loop.

        Waits while a thousand items wait already. Raises `RunError` for an input that is not
        open, a value that does not fit, or a run that is not running.
        """
        feed = self._feed(name)
        problems = self._elements[name].problems(value)
        if problems:
            raise RunError(f"input {name}: {problems[0]}")
        if self._driver is None:
            raise RunError(f"input {name}: the run has not started; give the items as its inputs")
        await feed.push(value)

    def close(self, name: str) -> None:
        """Say that an open input is complete. More than once changes nothing."""
        self._feed(name).close()

    def _feed(self, name: str) -> InputFeed:
        feed = self._feeds.get(name)
        if feed is None:
            known = ", ".join(self._feeds) or "none"
            raise RunError(f"input {name} is not open; open inputs: {known} (open_inputs=…)")
        return feed

    def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the run, at once; on the run's loop. More than once changes nothing."""
        self._cancel_reason = self._cancel_reason or reason
        if self._driver is not None:
            self._driver.cancel(reason)

    @property
    def record(self) -> Path | None:
        """The file the run is recorded in."""
        return RunFolder(self._store).events_path(self.run_id) if self._store else None

    @property
    def abandoned(self) -> frozenset[asyncio.Task[object]]:
        """Tasks that did not heed their cancellation; nobody should wait for them."""
        return self._bounded.abandoned if self._bounded is not None else frozenset()

    @property
    def begun(self) -> bool:
        """Whether the run got as far as its first step, or past it."""
        return self._driver is not None

    def remarks(self) -> Sequence[str]:
        """After the run: what its supervisor is to be told about, such as rules never needed."""
        if self._bounded is None or not self._bounded.decisions_used:
            return ()
        unused: Callable[[], Sequence[str]] = getattr(self._bounded.supervisor, "unused", tuple)
        rules = unused()
        notes = []
        if rules:
            more = f"; nor were {len(rules) - 1} more" if len(rules) > 1 else ""
            notes.append(f"{self._supervisor_name}: {rules[0]}{more}")
        for error in (self._bounded.attach_error, self._bounded.close_error):
            notes += [f"the supervisor {error}"] if error else []
        return [self._registry.mask_text(note) for note in notes]

    def masked_outputs(self, result: RunResult) -> dict[str, object]:
        """The outputs as they may be shown: plain JSON data, secrets masked, nothing cut."""
        shown = {name: shown_output(value) for name, value in result.outputs.items()}
        return {name: self._registry.mask_value(value)[0] for name, value in shown.items()}

    def progress(self) -> Sequence[Mapping[str, Any]]:
        """Per node, in plan order: id, due, done, running state; cheap enough to poll."""
        if self._driver is None:
            return ()
        report = self._driver.machine.report()
        return [msgspec.to_builtins(node) for node in report.nodes]

    async def run(self) -> RunResult:
        """Run to the end, whatever that is.

        Raises `StoreError` when the record cannot be written, and what broke the engine itself.
        """
        if self._opened:
            raise RunError(f"run {self.run_id} was opened before: a session runs once")
        refuse_while_loading()
        self._opened = True
        log = JsonLines(self.record) if self.record is not None else None
        bus = Bus(log)
        try:
            with masked_logging(self._registry):
                result = await self._run(bus, self._registry)
            if bus.lost is not None:
                raise bus.lost
            return result
        finally:
            if log is not None:
                log.close()

    async def _run(self, bus: Bus, registry: SecretRegistry) -> RunResult:
        began = time.monotonic()
        secrets = SecretResolver(registry, self._secrets)
        secrets.preload(secret_names(self.workflow))
        services = RunServices(
            bus,
            registry,
            secrets,
            workdir=self._workdir,
            assets_dir=self._assets_dir(),
        )
        services.open()
        for subscriber in self._subscribers:
            bus.subscribe(subscriber)
        watch = None if self._watch is None else Watch(self._plan, services, self._watch)
        bus.active = bus.active or watch is not None  # only an active run tells what its steps do
        recorder = Recorder(self._plan, services, self._recognisers, watch)
        driver = Driver(
            self._plan,
            self._definitions,
            services,
            recorder,
            executor=self._executor or ThreadExecutor(),
            processes=self._processes,
            settings=self._settings,
            stop_grace_s=self._stop_grace_s,
            feeds=fed_nodes(self._plan, self._feeds),
        )
        deciding = self._deciding(bus, driver, registry)
        driver.deciding = deciding
        self._driver = driver
        bus.on_lost = self._end_unrecorded
        self._announce(bus, registry)
        interrupted: asyncio.CancelledError | None = None
        if self._cancel_reason is not None:
            ended = Ended(Status.CANCELLED, self._cancel_reason)
        else:
            try:
                ended = await _drive(driver, self.inputs)
            except asyncio.CancelledError as error:  # whoever awaits the run was cancelled
                interrupted = error
                ended = Ended(Status.CANCELLED, "cancelled")
        recorder.flush()
        took_s = time.monotonic() - began
        result = self._finish(ended, bus, services, recorder, deciding, took_s)
        if interrupted is not None:
            raise interrupted
        return result

    def _end_unrecorded(self) -> None:
        """Nothing goes on without its record; not at once, for the kernel may be at work."""
        asyncio.get_running_loop().call_soon(self.cancel, "the record cannot be written")

    # -- wiring --

    def _processes(self) -> StepExecutor:
        from nightwarden.runtime.executors.processes import ProcessExecutor

        return ProcessExecutor(files=self._node_files)

    def _deciding(self, bus: Bus, driver: Driver, registry: SecretRegistry) -> Deciding:
        bindings = {binding.node.id: binding for binding in driver.bindings()}

        def check(
            node_id: str, outputs: Mapping[str, object]
        ) -> tuple[tuple[object, ...], Sequence[str]]:
            values, problems = check_repair(
                bindings[node_id],
                outputs,
                is_marked=contains_mark,
                resolves=self._resolves,
            )
            return (() if problems else bindings[node_id].repaired(values)), problems

        if self._supervisor is not None:
            self._bounded = bounded(self._supervisor, self.bounds, stamp=utc_now)
        deciding = Deciding(
            self.run_id,
            self._bounded,
            bus,
            tell=driver.tell,
            check=check,
            registry=registry,
            stamp=utc_now,
            rng=self._rng,
        )
        if self._bounded is not None:
            self._bounded.attach(_Reader(self.run_id, driver, deciding, check))
        return deciding

    def _announce(self, bus: Bus, registry: SecretRegistry) -> None:
        if not bus.active:
            return
        definition, _ = registry.mask_value(self.workflow.canonical())
        inputs, _ = registry.mask_value(dict(self.inputs))
        bus.publish(
            RunStarted(
                run_id=self.run_id,
                workflow=self.workflow.name,
                definition=definition,  # type: ignore[arg-type]
                definition_hash=self.workflow.digest(),
                inputs=inputs,  # type: ignore[arg-type]
                versions={"nightwarden": __version__, "python": platform.python_version()},
                bounds=_bounds_json(self.bounds, self._settings),
                supervisor=self._supervisor_name,
            )
        )

    def _assets_dir(self) -> Path:
        root = self._store or self._workdir / ".nightwarden"
        return root / "runs" / self.run_id / "assets"

    def _resolves(self, reference: object) -> bool:
        """Whether a file that a repair names is there, inside the run's own places."""
        if isinstance(reference, AssetRef):
            return asset_bytes(self._assets_dir(), reference) is not None
        path = self._workdir / str(reference)
        return _inside(path, self._workdir) and path.exists()

    # -- the end --

    def _finish(
        self,
        ended: Ended,
        bus: Bus,
        services: RunServices,
        recorder: Recorder,
        deciding: Deciding,
        duration_s: float,
    ) -> RunResult:
        driver, registry = self._driver, services.registry
        assert driver is not None
        machine = driver.machine
        report = machine.report()
        interventions = tuple(deciding.interventions[n] for n in sorted(deciding.interventions))
        gaps = missing_outputs(machine.captures(), self._plan, machine.explain, interventions)
        reason = _reason(ended, recorder, deciding) or "; ".join(gap.sentence for gap in gaps)
        supervisor_cost = self._bounded.spent_micro_usd if self._bounded is not None else 0
        costs = {
            "nodes_micro_usd": dict(recorder.costs),
            "total_micro_usd": sum(recorder.costs.values()),
            "supervisor_micro_usd": supervisor_cost,
        }
        ledger = fold_ledger(report, machine.cause, deciding.interventions, services.mask)
        outputs = fold_outputs(
            machine.captures(),
            _output_names(self._plan),
            [node.id for node in self._plan.nodes],
            lambda causes: [cause_text(machine.cause(n)) for n in causes],
        )
        line = headline(
            ended.status,
            reason,
            report,
            interventions,
            gaps=gaps,
            supervisor_cost_micro_usd=supervisor_cost,
            rejected=sum(services.rejects.values()),
        )
        result = RunResult(
            run_id=self.run_id,
            status=ended.status,
            supervised=bool(interventions),
            reason=reason,
            outputs=outputs,
            interventions=interventions,
            ledger=ledger,
            costs=costs,
            rejected=dict(services.rejects),
            duration_s=round(duration_s, 6),
            headline=line,
            other_roots=other_roots(report),
            record=str(self.record or ""),
            suspended=tuple(recorder.suspensions),
        )
        if bus.active:
            bus.publish(self._terminal(ended, result, registry))
        return result

    def _terminal(self, ended: Ended, result: RunResult, registry: SecretRegistry) -> RunEnded:
        outputs = {name: _summary_of(value, registry) for name, value in result.outputs.items()}
        ending = _TERMINAL[ended.status]
        event = ending(
            reason=result.reason,
            ledger={
                **result.ledger,
                "headline": result.headline,
                "other_roots": result.other_roots,
                "rejected": result.rejected,
            },
            cost_micro_usd=result.costs["total_micro_usd"],
            supervisor_cost_micro_usd=result.costs["supervisor_micro_usd"],
            supervised=result.supervised,
            duration_s=result.duration_s,
            outputs=outputs,
        )
        if isinstance(event, RunSuspended):
            event.suspended = result.suspended
        return event


class _Reader:
    """Implements `runtime.RunReader` for the supervisor of a session."""

    def __init__(
        self,
        run_id: str,
        driver: Driver,
        deciding: Deciding,
        check: Callable[[str, Mapping[str, object]], tuple[tuple[object, ...], Sequence[str]]],
    ) -> None:
        self.run_id = run_id
        self._driver = driver
        self._deciding = deciding
        self._check = check

    def state(self) -> Mapping[str, object]:
        """Per node counts and the decisions so far."""
        report = self._driver.machine.report()
        return {
            "nodes": [msgspec.to_builtins(node) for node in report.nodes],
            "decisions": len(self._deciding.interventions),
        }

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        """What is wrong with a repair."""
        found = self._deciding.interventions.get(int(escalation_id[1:]))
        if found is None:
            return [f"there is no escalation {escalation_id}"]
        return self._check(found.escalation.node_id, outputs)[1]


# -- the library's short forms --


async def arun(
    workflow: Workflow, inputs: Mapping[str, object] | None = None, **options: Any
) -> RunResult:
    """Run a workflow on the current loop; `options` are those of `Session`."""
    return await Session(workflow, inputs, **options).run()


def run(
    workflow: Workflow, inputs: Mapping[str, object] | None = None, **options: Any
) -> RunResult:
    """Run a workflow to its end and return what it came to; `options` are those of `Session`.

    Raises `RunError` where an event loop is running already: use `arun` there.
    """
    session = Session(workflow, inputs, **options)
    return run_session(session)


def run_session(session: Session) -> RunResult:
    """Run a session on a loop of its own, without waiting for tasks that were left behind."""
    return run_on_own_loop(session.run(), left_behind=lambda: session.abandoned)


def run_on_own_loop(
    main: Coroutine[Any, Any, T],
    *,
    left_behind: Callable[[], frozenset[asyncio.Task[object]]] = frozenset,
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> T:
    """Like `asyncio.run`, but a task deaf to cancellation does not hold up the end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        main.close()
        raise RunError("an event loop is running here: await `arun` instead of calling `run`")
    loop = make_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        _end_loop(loop, left_behind())


def _end_loop(
    loop: asyncio.AbstractEventLoop, left_behind: frozenset[asyncio.Task[object]]
) -> None:
    # What was cancelled before the run ended and still goes on has had its time.
    rest = [t for t in asyncio.all_tasks(loop) if t not in left_behind and not t.cancelling()]
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest, timeout=2.0))
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()


# -- small parts --


async def _drive(driver: Driver, inputs: Mapping[str, object]) -> Ended:
    try:
        return await driver.run(inputs)
    except NodeError as error:
        return Ended(Status.FAILED, str(error))


def _plan(workflow: Workflow) -> Plan:
    """The workflow's plan, compiled once. Raises `SpecError`."""
    plan = workflow.memo.get("plan")
    if not isinstance(plan, Plan):
        analysis = analyse(workflow)
        if analysis.problems:
            raise SpecError(analysis.problems)
        plan = workflow.memo["plan"] = compile_plan(workflow, analysis)
    return plan


def _registry_of(workflow: Workflow) -> Registry:
    """Where the workflow's own node types came from, else what is built in or installed."""
    return workflow.catalog if isinstance(workflow.catalog, Registry) else Registry()


def _definitions(workflow: Workflow, registry: Registry) -> dict[str, NodeDef]:
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


def _fresh_id(rng: random.Random) -> RunId:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return new_run_id(stamp, int.from_bytes(os.urandom(4)) ^ rng.getrandbits(1))


def _checked_id(run_id: str) -> RunId:
    """A run id somebody chose: it names a folder, and has to be told from `last`."""
    if not _RUN_ID.fullmatch(run_id) or run_id == "last":
        raise RunError(
            f"{run_id!r} cannot be a run's id: use up to 100 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit; 'last' is taken"
        )
    return RunId(run_id)


def _supervisor(
    supervise: Supervisor | str | None, store: Path | None, aside: Aside
) -> tuple[Supervisor | None, str]:
    """The supervisor a mode names, and what the record calls it. Raises `RunError`."""
    if supervise is None or supervise == "off":
        return None, ""
    if not isinstance(supervise, str):
        return supervise, type(supervise).__name__.lower()
    from nightwarden.runtime.supervisors.modes import make_supervisor

    folder = RunFolder(store or Path(".nightwarden"))
    made = make_supervisor(
        supervise,
        read_text=lambda name: Path(name).read_text(encoding="utf-8"),
        read_run=folder.read,
        aside=aside,
    )
    return made, supervise


def _bounds_json(bounds: Bounds, settings: Settings) -> dict[str, object]:
    return {
        "max_decisions": bounds.max_decisions,
        "max_retries": bounds.max_retries,
        "decision_timeout_s": bounds.decision_timeout_s,
        "cost_cap_usd": round(bounds.cost_cap_micro_usd / 1_000_000, 6),
        "max_retry_delay_s": bounds.max_retry_delay_s,
        "keep_going": settings.keep_going,
    }


def _output_names(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """What each captured slot is called: as the author named it, perhaps twice, else by node."""
    chosen: dict[str, list[str]] = {}
    for name, ref in (plan.workflow.outputs or {}).items():
        chosen.setdefault(ref, []).append(name)
    pairs = [(plan.nodes[e.source].id, e.source_slot) for e in plan.captures]
    ids = [node_id for node_id, _ in pairs]
    return {
        (node_id, slot): chosen.get(f"{node_id}.{slot}")
        or [node_id if ids.count(node_id) == 1 else f"{node_id}.{slot}"]
        for node_id, slot in pairs
    }


def _reason(ended: Ended, recorder: Recorder, deciding: Deciding) -> str:
    """One sentence: the words of whoever stopped the run, or the engine's own."""
    if ended.status is not Status.FAILED:
        return ended.reason
    stopped = [
        i
        for i in deciding.interventions.values()
        if i.decision is not None and isinstance(i.decision.verdict, Fail)
    ]
    if not stopped:
        failure = recorder.last_failure
        return ended.reason or ("a step failed" if failure is None else _failure_text(failure))
    first = stopped[0]
    assert first.decision is not None
    bounded = first.decision.decided_by in (DecidedBy.BOUNDS, DecidedBy.KERNEL)
    if bounded and not ended.reason.startswith("stopped: "):
        return f"stopped: {ended.reason}; {summary(first.escalation)}"
    return ended.reason or summary(first.escalation)


def _failure_text(failure: Failure) -> str:
    """Where and what, in one line."""
    item = str(Item(failure.number, failure.total, failure.label))
    return f"{failure.node_id}{f' [{item}]' if item else ''}: {failure.detail}"


def _summary_of(value: object, registry: SecretRegistry) -> object:
    """An output as the record's last line shows it: lists as counts, the rest masked and cut."""
    if isinstance(value, list) and len(value) > 20:
        return {"items": len(value)}
    return registry.redact(value)


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
