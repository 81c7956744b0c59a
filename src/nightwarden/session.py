"""A session opens one run: it wires record, bus, driver and supervisor, and folds the result.

Every surface (library, command line, server) goes through here; none touches the kernel.

    Session(workflow, inputs, …) ─▶ await run() ─▶ RunResult

The main path is three files: a run is opened here, driven in `runtime/driver.py`, decided in
`kernel/machine.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nightwarden import telemetry
from nightwarden.ending import Finished, result_of, terminal_event
from nightwarden.errors import NodeError, RunError, StoreError
from nightwarden.events import Event, InputClosed, InputPushed, Log, RunResumed, RunStarted
from nightwarden.events.budget import BudgetState, budget_state
from nightwarden.events.seen import Seen
from nightwarden.kernel.effects import Ended, Status
from nightwarden.kernel.state import Settings
from nightwarden.masking.marks import contains_mark
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.io import AssetRef
from nightwarden.nodes.registry import Registry
from nightwarden.opening import (
    bounds_json,
    checked_id,
    definitions_of,
    fresh_id,
    models_of,
    plan_of,
    registry_of,
)
from nightwarden.own_loop import run_on_own_loop
from nightwarden.result import RunResult, shown_output
from nightwarden.run_inputs import (
    fed_nodes,
    kept_inputs,
    open_elements,
    resolve_inputs,
    secret_names,
    values_pushed,
)
from nightwarden.runtime.bounded import Bounded, bounded
from nightwarden.runtime.bus import Bus, Subscriber, utc_now
from nightwarden.runtime.deciding import Deciding
from nightwarden.runtime.driver import Driver
from nightwarden.runtime.executors import Executor, StepExecutor, ThreadExecutor
from nightwarden.runtime.executors.references import refuse_while_loading
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.log_masking import masked_logging
from nightwarden.runtime.past import Past
from nightwarden.runtime.paying import Models
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.replaying import Replaying
from nightwarden.runtime.risks import Risk, risks
from nightwarden.runtime.secrets import SecretResolver
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.substitution import check_repair
from nightwarden.runtime.supervision import Bounds, RunReader, Supervisor
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser, with_plugins
from nightwarden.spec.storing import plain_form, unstored
from nightwarden.spec.supervisors import SupervisorSpec, is_steered
from nightwarden.spec.workflow import Workflow
from nightwarden.version import __version__

if TYPE_CHECKING:
    from nightwarden.steering.managed import RunSteering
    from nightwarden.steering.ports import Evaluator
    from nightwarden.store.contract import Command, OpenRun, Store

Aside = Callable[[], AbstractContextManager[object]]
"""Entered while a person is asked: what else draws on the terminal steps back."""


class Session:
    """One run of a workflow; runs once.

    `open_inputs` are list inputs whose items may be pushed while the run goes on.

    `store` is where runs are recorded: a folder (`.nightwarden`), a URL, or an open store; None
    for no record. `past` is what the record says of a run that is to go on, and `resumed` the
    event that says so: see `resuming.py`. Relative paths are meant from `workdir`. `secrets` are
    values `$secrets.NAME` and `ctx.secret` find before the environment. `supervise` is a
    supervisor or a mode (`"scripted:FILE"`, `"operator"`, `"replay:RUN"`). `max_cost_micro_usd`
    bounds what steps may spend: a model call whose worst case it does not cover is not made, and
    the run stops; deciding has a cap of its own, in `bounds`. `aside` is entered
    while a person is asked. `watch` is called on the run's loop with every invocation's inputs
    and outputs, masked and cut. `supervisors` (`"on"` or `"off"`) switches the supervisors the
    workflow declares; `evaluators` makes what thinks for each, by default its model. Raises
    `RunError` for inputs that do not fit or a mode that cannot be had, `SpecError` for a workflow
    whose node types are not known here, `ModelError` for a model a node names that cannot be had.
    """

    def __init__(
        self,
        workflow: Workflow,
        inputs: Mapping[str, object] | None = None,
        *,
        registry: Registry | None = None,
        supervise: Supervisor | str | None = None,
        bounds: Bounds | None = None,
        store: Store | Path | str | None = None,
        run_id: str | None = None,
        workdir: Path | None = None,
        secrets: Mapping[str, str] | None = None,
        keep_going: bool = False,
        max_cost_micro_usd: int | None = None,
        stop_grace_s: float = 30.0,
        window: int = 1024,
        recognisers: Sequence[Recogniser] = (),
        executor: Executor | None = None,
        seed: int | None = None,
        aside: Aside = nullcontext,
        open_inputs: Iterable[str] = (),
        watch: Callable[[Seen], None] | None = None,
        supervisors: str | None = None,
        evaluators: Callable[[SupervisorSpec], Evaluator | None] | None = None,
        past: Past | None = None,
        resumed: RunResumed | None = None,
    ) -> None:
        self.workflow = workflow
        self.bounds = bounds or Bounds()
        self.inputs = resolve_inputs(workflow, inputs or {})
        known = registry or registry_of(workflow)
        self._definitions = definitions_of(workflow, known)
        self._node_files = known.files
        self._plan = plan_of(workflow)
        self._feeds = {name: InputFeed(name) for name in open_inputs}
        self._elements = open_elements(workflow, self._feeds)
        self._rng = random.Random(seed)
        self.run_id = checked_id(run_id) if run_id else fresh_id(self._rng)
        self._past, self._resumed = past, resumed
        self._place = store
        self._store: Store | None = None
        self._supervisor, self._supervisor_name = _supervisor(supervise, store, aside, self.bounds)
        self._workdir = (workdir or Path.cwd()).resolve()
        self._secrets = dict(secrets or {})
        self._settings = Settings(
            max_retries=self.bounds.max_retries,
            max_retry_delay_s=self.bounds.max_retry_delay_s,
            keep_going=keep_going,
            window=window,
        )
        if max_cost_micro_usd is not None and max_cost_micro_usd < 0:
            raise RunError(f"max_cost_micro_usd is {max_cost_micro_usd}, but has to be 0 or more")
        self._max_cost_micro_usd = max_cost_micro_usd
        self._check_models()
        self._stop_grace_s = stop_grace_s
        self._recognisers = with_plugins(tuple(recognisers))
        self._executor = executor
        self._subscribers: list[Subscriber] = []
        self._watch = watch
        self._driver: Driver | None = None
        self._bounded: Bounded | None = None
        self._registry = SecretRegistry()
        self._cancel_reason: str | None = None
        self._bus: Bus | None = None
        self._services: RunServices | None = None
        self._opened = False
        if supervisors not in (None, "on", "off"):
            raise RunError(f"supervisors is {supervisors!r}, but has to be on or off")
        self._supervisors, self._evaluators = supervisors, evaluators
        self._steering: RunSteering | None = None
        self._early: list[Command] | None = []
        """Words that came before anybody could take them; None from then on."""

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
        if self._driver is None or self._bus is None:
            raise RunError(f"input {name}: the run has not started; give the items as its inputs")
        await feed.push(value)
        if self._bus.records:
            self._bus.publish(self._pushed(name, value))
            await self._bus.durable()

    def close(self, name: str) -> None:
        """Say that an open input is complete. More than once changes nothing."""
        feed = self._feed(name)
        if self._bus is not None and not feed.closed:
            self._bus.publish(InputClosed(name=name))
        feed.close()

    def _pushed(self, name: str, value: object) -> InputPushed:
        masked, changed = self._registry.mask_value(value)
        plain, whole = plain_form(self._elements[name], masked)
        return InputPushed(inputs={name: plain}, sealed=changed or not whole)

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
    def record(self) -> str:
        """Where the run is recorded, for people; empty if it is not."""
        return self._store.place if self._store is not None else ""

    @property
    def supervisor(self) -> str:
        """Who decides, as the record calls it; empty if nobody does."""
        return self._supervisor_name

    def steered(self, setting: bool | None = None) -> bool:
        """Whether declared supervisors are to run; `setting` is what the settings say."""
        from nightwarden.steering.switch import switch

        return switch(self._supervisors, setting=setting).on

    @property
    def at_risk(self) -> Sequence[Risk]:
        """What a resumed run may not simply run again; known before it starts."""
        return () if self._past is None else risks(self._past, self.workflow.types)

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
        with self._opened_store() as store:
            self._store = store
            log = await self._open_log(store) if store is not None else None
            bus = self._bus = Bus(log)
            traced = telemetry.subscriber(run_id=self.run_id)
            if traced is not None:
                bus.subscribe(traced)
            try:
                with masked_logging(self._registry):
                    result = await self._run(bus, self._registry)
                if bus.lost is not None:
                    raise bus.lost
                return result
            finally:
                if self._steering is not None:  # of a run that broke off
                    await self._steering.close()
                if traced is not None:
                    await traced.aclose()
                if log is not None:
                    log.close()

    @contextlib.contextmanager
    def _opened_store(self) -> Iterator[Store | None]:
        """The store of this run; closed afterwards if it was opened here."""
        if not isinstance(self._place, (str, Path)):
            yield self._place
            return
        from nightwarden.store.opening import open_store

        with open_store(self._place) as store:
            yield store

    async def _open_log(self, store: Store) -> OpenRun:
        loop = asyncio.get_running_loop()

        def heard(command: Command) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
                loop.call_soon_threadsafe(self._obey, command)

        past = self._past
        if past is None:
            return store.create(self.run_id, on_command=heard)
        open_again = partial(store.reopen, self.run_id, on_command=heard)
        waits = getattr(loop, "waits", True)
        log = await asyncio.to_thread(open_again) if waits else open_again()
        if log.last_seq != past.last_seq:
            log.close()
            raise StoreError(f"run {self.run_id} has gone on meanwhile; resume it once more")
        return log

    def _obey(self, command: Command) -> None:
        """A word from another process."""
        if command.kind == "cancel":
            self.cancel(str(command.body.get("reason") or "cancelled from another process"))
        elif self._early is not None:
            self._early.append(command)
        elif self._driver is not None:
            self._steer(self._driver).obey(command)

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
            blobs=None if self._store is None else self._store.blobs,
        )
        self._services = services
        services.open()
        services.make_models = partial(self._make_models, services)
        past = self._past
        if past is not None:
            services.spending.add(sum(past.costs.values()))
            for (node_id, _, _), number in past.rejected.items():
                services.rejects[node_id] += number
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
            past=past,
        )
        deciding = self._deciding(bus, driver, registry)
        driver.deciding = deciding
        services.decided = deciding.told
        if past is not None:
            self._remember(past, driver, deciding, recorder)
        self._driver = driver
        bus.on_lost = self._end_unrecorded
        self._announce(bus, registry)
        self._say_what_is_not_stored(bus)
        early, self._early = self._early or (), None
        services.mailboxes = lambda node_id: self._steer(driver).mailbox(node_id)
        if is_steered(self.workflow):
            self._steer(driver)
        for command in early:
            self._steer(driver).obey(command)
        interrupted: asyncio.CancelledError | None = None
        if self._cancel_reason is not None:
            ended = Ended(Status.CANCELLED, self._cancel_reason)
        else:
            try:
                ended = await _drive(driver, self.inputs)
            except asyncio.CancelledError as error:  # whoever awaits the run was cancelled
                interrupted = error
                ended = Ended(Status.CANCELLED, "cancelled")
            await services.aclose()
        recorder.flush()
        if self._steering is not None:
            await self._steering.close()
        took_s = time.monotonic() - began + (past.duration_s if past is not None else 0.0)
        result = result_of(
            Finished(
                run_id=self.run_id,
                plan=self._plan,
                ended=ended,
                machine=driver.machine,
                services=services,
                recorder=recorder,
                deciding=deciding,
                supervisor_cost=self._bounded.spent_micro_usd if self._bounded is not None else 0,
                steering_cost=0 if self._steering is None else self._steering.spent_micro_usd,
                duration_s=took_s,
                record=self.record,
                resumed=past is not None,
            )
        )
        if bus.active:
            bus.publish(terminal_event(ended.status, result, registry))
        if interrupted is not None:
            raise interrupted
        return result

    def _end_unrecorded(self) -> None:
        """Nothing goes on without its record; not at once, for the kernel may be at work."""
        asyncio.get_running_loop().call_soon(self.cancel, "the record cannot be written")

    # -- wiring --

    def _remember(self, past: Past, driver: Driver, deciding: Deciding, recorder: Recorder) -> None:
        """Hand the past to whoever carries it on."""
        assert self._store is not None
        recorder.costs.update(past.costs)
        deciding.recall(past.interventions)
        if self._bounded is not None:
            self._bounded.restore(past.bounds_state)
        driver.replay(
            Replaying(
                past,
                driver.desk,
                tell=driver.tell,
                go_on=driver.go_on,
                blob=self._store.blobs.get,
                check=self._check,
                supervised=deciding.supervised,
                idle=lambda: driver.machine.idle,
            )
        )
        for name, feed in self._feeds.items():
            feed.restore(values_pushed(past, name, self._store.blobs.get, self._elements[name]))
            if name in past.closed_inputs:
                feed.close()

    def _check_models(self) -> None:
        """Raise `ModelError` if a model that is named beforehand cannot be had."""
        named = models_of(self._plan, self.workflow, self.inputs)
        if named:
            from nightwarden.agents.stepping import StepModels

            StepModels().check(named)

    def _make_models(self, services: RunServices) -> Models:
        """What steps ask models through; made when the first one does."""
        from nightwarden.agents.stepping import StepModels

        past = self._past
        return StepModels(
            cap_micro_usd=self._max_cost_micro_usd,
            outside=services.spending.total,
            spent_before={} if past is None else dict(past.costs),
            last_reservation=0 if past is None else past.last_call,
            protect=self._registry.register,
        )

    def _steer(self, driver: Driver) -> RunSteering:
        """What supervises running agents and delivers to them; loaded when it is needed."""
        if self._steering is None:
            from nightwarden.steering.wiring import steering_of

            store, past = self._store, self._past
            self._steering = steering_of(
                self.workflow,
                driver.desk.services,
                run_id=self.run_id,
                inputs=self.inputs,
                supervisors=self._supervisors,
                evaluators=self._evaluators,
                lines=partial(_lines_before, store, past),
                finished=driver.desk.recorder.said.finished,
            )
            self._steering.open()
        return self._steering

    def _processes(self) -> StepExecutor:
        from nightwarden.runtime.executors.processes import ProcessExecutor

        return ProcessExecutor(files=self._node_files)

    def _deciding(self, bus: Bus, driver: Driver, registry: SecretRegistry) -> Deciding:
        self._bindings = {binding.node.id: binding for binding in driver.bindings()}
        check = self._check
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
            self._bounded.attach(self._evidence(bus, driver, deciding, registry))
        return deciding

    def _evidence(
        self, bus: Bus, driver: Driver, deciding: Deciding, registry: SecretRegistry
    ) -> RunReader:
        """What the supervisor may read of this run."""
        from nightwarden.runtime.evidence import SessionEvidence, Sources

        store, limits = self._store, self._bounded
        assert limits is not None
        sources = Sources(
            plan=self._plan,
            bus=bus,
            registry=registry,
            interventions=deciding.interventions,
            state=lambda: {
                "nodes": [msgspec.to_builtins(node) for node in driver.machine.report().nodes],
                "decisions": len(deciding.interventions),
            },
            check=lambda node_id, outputs: self._check(node_id, outputs)[1],
            raw_candidate=deciding.candidates.get,
            inputs=self.inputs,
            lines=lambda: () if store is None else store.lines(self.run_id),
            blob=_no_blob if store is None else store.blobs.get,
            decisions_left=lambda: limits.bounds.max_decisions - limits.decisions_used,
            spent=self._spent_before(),
        )
        return SessionEvidence(self.run_id, sources)

    def _spent_before(self) -> BudgetState:
        """What deciding cost in the run's earlier parts."""
        if self._past is None or self._store is None:
            return BudgetState()
        return budget_state(self._store.read(self.run_id), "supervisor")

    def _check(
        self, node_id: str, outputs: Mapping[str, object]
    ) -> tuple[tuple[object, ...], Sequence[str]]:
        """The values of a repair, and what is wrong with it."""
        binding = self._bindings[node_id]
        values, problems = check_repair(
            binding, outputs, is_marked=contains_mark, resolves=self._resolves
        )
        return (() if problems else binding.repaired(values)), problems

    def _announce(self, bus: Bus, registry: SecretRegistry) -> None:
        if not bus.active:
            return
        versions = {"nightwarden": __version__, "python": platform.python_version()}
        bounds = bounds_json(self.bounds, self._settings, self._max_cost_micro_usd)
        if self._resumed is not None:
            bus.publish(
                msgspec.structs.replace(
                    self._resumed,
                    versions=versions,
                    bounds=bounds,
                    supervisor=self._supervisor_name,
                )
            )
            return
        definition, _ = registry.mask_value(self.workflow.canonical())
        inputs, sealed = kept_inputs(self.workflow, self.inputs, registry)
        bus.publish(
            RunStarted(
                run_id=self.run_id,
                workflow=self.workflow.name,
                definition=definition,  # type: ignore[arg-type]
                definition_hash=self.workflow.digest(),
                inputs=inputs,
                sealed=sealed,
                open_inputs=tuple(self._feeds),
                versions=versions,
                bounds=bounds,
                supervisor=self._supervisor_name,
                file=registry.mask_text(str(self.workflow.file or "")),
                folder=registry.mask_text(str(self._workdir)),
                python=tuple(str(path) for path in self._node_files),
            )
        )

    def _say_what_is_not_stored(self, bus: Bus) -> None:
        """A run that could not be resumed past a step says so at its start."""
        for node, slot in unstored(self.workflow) if bus.records else ():
            bus.publish(
                Log(
                    node_id=node.id,
                    level="warning",
                    message=f"its {slot} cannot be kept in a record: a run that stops after it "
                    "cannot be resumed past it",
                )
            )

    def _assets_dir(self) -> Path:
        if self._store is not None:
            return self._store.files(self.run_id).resolve() / "assets"
        return self._workdir / ".nightwarden" / "runs" / self.run_id / "assets"

    def _resolves(self, reference: object) -> bool:
        """Whether a file that a repair names is there, inside the run's own places."""
        if isinstance(reference, AssetRef):
            return self._services is not None and self._services.fetch(reference) is not None
        path = self._workdir / str(reference)
        return _inside(path, self._workdir) and path.exists()


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


# -- small parts --


async def _drive(driver: Driver, inputs: Mapping[str, object]) -> Ended:
    try:
        return await driver.run(inputs)
    except NodeError as error:
        return Ended(Status.FAILED, str(error))


def _supervisor(
    supervise: Supervisor | str | None,
    store: Store | Path | str | None,
    aside: Aside,
    bounds: Bounds,
) -> tuple[Supervisor | None, str]:
    """The supervisor a mode names, and what the record calls it.

    Raises `RunError`, or `ModelError` with what is wrong with the model it asks.
    """
    if supervise is None or supervise == "off":
        return None, ""
    if not isinstance(supervise, str):
        return supervise, type(supervise).__name__.lower()
    from nightwarden.runtime.supervisors.modes import make_supervisor

    made = make_supervisor(
        supervise,
        read_text=lambda name: Path(name).read_text(encoding="utf-8"),
        read_run=partial(_read_run, store),
        aside=aside,
        make_agent=partial(_agent, bounds),
    )
    return made, supervise


def _lines_before(store: Store | None, past: Past | None) -> Iterator[bytes]:
    """What a run said before it was resumed."""
    if store is not None and past is not None:
        yield from islice(store.lines(past.run_id), past.last_seq)


def _no_blob(digest: str) -> bytes:
    raise RunError(f"value {digest} is not kept: the run has no record")


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


def _inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
