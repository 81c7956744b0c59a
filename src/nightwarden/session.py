"""A session opens one run: it checks what was asked for, opens the record, and runs it to its end.

Every surface (library, command line, server) goes through here; none touches the kernel.

    Session(workflow, inputs, …) ─▶ await run() ─▶ RunResult
                     │                └ record, bus ─▶ wiring.py ─▶ driver ─▶ ending.py
                     └ push, close, cancel, and words from other processes, meanwhile

The main path is three files: a run is opened here, driven in `runtime/driver.py`, decided in
`kernel/machine.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nightwarden import telemetry
from nightwarden.announcing import first_event, what_is_not_stored
from nightwarden.ending import terminal_event
from nightwarden.errors import RunError, StoreError
from nightwarden.events import Event, RunResumed
from nightwarden.events.seen import Seen
from nightwarden.kernel.effects import Ended, Status
from nightwarden.kernel.state import Settings
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.registry import Registry
from nightwarden.opening import (
    checked_id,
    definitions_of,
    fresh_id,
    models_of,
    plan_of,
    refuse_other_things,
    registry_of,
    supervisor_of,
)
from nightwarden.own_loop import run_on_own_loop
from nightwarden.result import RunResult, shown_output
from nightwarden.run_inputs import open_elements, resolve_inputs
from nightwarden.runtime.bus import Bus, Subscriber
from nightwarden.runtime.executors import Executor
from nightwarden.runtime.executors.references import refuse_while_loading
from nightwarden.runtime.feeding import InputFeed, OpenInputs
from nightwarden.runtime.log_masking import masked_logging
from nightwarden.runtime.past import Past
from nightwarden.runtime.paying import NamedModel
from nightwarden.runtime.recognising import installed
from nightwarden.runtime.risks import Risk, risks
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.signatures.signature import Recogniser, with_plugins
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.spec.workflow import Workflow
from nightwarden.wiring import Request, Wired

if TYPE_CHECKING:
    from nightwarden.steering.ports import Evaluator
    from nightwarden.store.contract import Command, OpenRun, Store

Aside = Callable[[], AbstractContextManager[object]]
"""Entered while a person is asked: what else draws on the terminal steps back."""


class Session:
    """One run of a workflow; runs once.

    `open_inputs` are list inputs whose items may be pushed while the run goes on.

    `registry` is where the code of steps is looked up, by default where the workflow has its own
    from. `run_id` names the run in the record. `executor` runs plain `def` steps, `seed` repeats
    the delays of retries. `keep_going` lets items fail that nobody decided on, instead of stopping
    the run; `stop_grace_s` is what a stopped run leaves its steps to end, `window` how many items
    a fan-out may be ahead. `recognisers` give errors their signatures, as installed ones do.

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
        refuse_other_things(workflow, inputs)
        if max_cost_micro_usd is not None and max_cost_micro_usd < 0:
            raise RunError(f"max_cost_micro_usd is {max_cost_micro_usd}, but has to be 0 or more")
        if supervisors not in (None, "on", "off"):
            raise RunError(f"supervisors is {supervisors!r}, but has to be on or off")
        bounds = bounds or Bounds()
        resolved = resolve_inputs(workflow, inputs or {})
        known = registry or registry_of(workflow)
        rng = random.Random(seed)
        names = (open_inputs,) if isinstance(open_inputs, str) else open_inputs
        feeds = {name: InputFeed(name) for name in names}
        named = supervisor_of(supervise, store, aside, bounds)
        self._request = Request(
            workflow=workflow,
            inputs=resolved,
            plan=plan_of(workflow),
            definitions=definitions_of(workflow, known),
            node_files=known.files,
            run_id=checked_id(run_id) if run_id else fresh_id(),
            rng=rng,
            workdir=(workdir or Path.cwd()).resolve(),
            secrets=dict(secrets or {}),
            feeds=feeds,
            elements=open_elements(workflow, feeds),
            settings=Settings(
                max_retries=bounds.max_retries,
                max_retry_delay_s=bounds.max_retry_delay_s,
                keep_going=keep_going,
                window=window,
            ),
            stop_grace_s=stop_grace_s,
            executor=executor,
            recognisers=with_plugins((*recognisers, installed)),
            watch=watch,
            supervisor=named.supervisor,
            supervisor_name=named.name,
            bounds=bounds,
            max_cost_micro_usd=max_cost_micro_usd,
            steering=supervisors,
            evaluators=evaluators,
            past=past,
            resumed=resumed,
        )
        self._check_models()
        self._place = store
        self._store: Store | None = None
        self._registry = SecretRegistry()
        self._open = OpenInputs(feeds, self._request.elements, self._registry)
        self._subscribers: list[Subscriber] = []
        self._bus: Bus | None = None
        self._wired: Wired | None = None
        self._opened = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancel_reason: str | None = None
        self._early: list[Command] | None = []
        """Words that came before anybody could take them; None from then on."""

    @property
    def workflow(self) -> Workflow:
        """What is run."""
        return self._request.workflow

    @property
    def inputs(self) -> Mapping[str, object]:
        """The values of the workflow's inputs, defaults included."""
        return self._request.inputs

    @property
    def bounds(self) -> Bounds:
        """What limits deciding."""
        return self._request.bounds

    @property
    def run_id(self) -> str:
        """The run's name in the record."""
        return self._request.run_id

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Call `subscriber` with every event of the run, on the run's loop. Before `run` only."""
        self._subscribers.append(subscriber)

    async def push(self, name: str, value: object) -> None:
        """Add an item to an open input while the run goes on; on the run's loop.

        Waits while a thousand items wait already. Raises `RunError` for an input that is not
        open, a value that does not fit, a run that is not running, or where nobody would take
        the item: those who read from the input have enough.
        """
        if not self._is_here() and not (self._loop and self._loop.is_closed()):
            raise RunError(
                f"input {name}: push on the loop the run is on: "
                "asyncio.run_coroutine_threadsafe(session.push(…), loop)"
            )
        await self._open.push(name, value)

    def close(self, name: str) -> None:
        """Say that an open input is complete; from any thread. Twice changes nothing."""
        self._open.feed(name)
        self._on_loop(partial(self._open.close, name))

    def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the run, at once; from any thread. More than once changes nothing."""
        self._cancel_reason = self._cancel_reason or reason
        if self._wired is not None:
            self._on_loop(partial(self._wired.driver.cancel, self._registry.mask_text(reason)))

    def _is_here(self) -> bool:
        """Whether this is the loop the run is on, or it is on none yet."""
        try:
            return self._loop is None or asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread
            return False

    def _on_loop(self, act: Callable[[], None]) -> None:
        if self._loop is None or self._is_here():
            act()
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(act)

    @property
    def record(self) -> str:
        """Where the run is recorded, for people; empty if it is not."""
        return self._store.place if self._store is not None else ""

    @property
    def supervisor(self) -> str:
        """Who decides, as the record calls it; empty if nobody does."""
        return self._request.supervisor_name

    def steered(self, setting: bool | None = None) -> bool:
        """Whether declared supervisors are to run; `setting` is what the settings say."""
        from nightwarden.steering.switch import switch

        return switch(self._request.steering, setting=setting).on

    @property
    def at_risk(self) -> Sequence[Risk]:
        """What a resumed run may not simply run again; known before it starts."""
        past = self._request.past
        return () if past is None else risks(past, self.workflow.types)

    @property
    def abandoned(self) -> frozenset[asyncio.Task[object]]:
        """Tasks that did not heed their cancellation; nobody should wait for them."""
        bounded = None if self._wired is None else self._wired.bounded
        return frozenset() if bounded is None else bounded.abandoned

    @property
    def begun(self) -> bool:
        """Whether the run got as far as its first step, or past it."""
        return self._wired is not None

    def remarks(self) -> Sequence[str]:
        """After the run: what its supervisor is to be told about, such as rules never needed."""
        bounded = None if self._wired is None else self._wired.bounded
        if bounded is None or not bounded.decisions_used:
            return ()
        unused: Callable[[], Sequence[str]] = getattr(bounded.supervisor, "unused", tuple)
        # What a run needed before it was resumed, the supervisor of this process has not seen.
        rules = unused() if self._request.past is None else ()
        notes = []
        if rules:
            more = f"; nor were {len(rules) - 1} more" if len(rules) > 1 else ""
            notes.append(f"{self.supervisor}: {rules[0]}{more}")
        for error in (bounded.attach_error, bounded.close_error):
            notes += [f"the supervisor {error}"] if error else []
        return [self._registry.mask_text(note) for note in notes]

    def masked(self, text: str) -> str:
        """The text without the run's secrets, as far as they are known by now."""
        return self._registry.mask(text)

    def masked_outputs(self, result: RunResult) -> dict[str, object]:
        """The outputs as they may be shown: plain JSON data, secrets masked, nothing cut."""
        shown = {name: shown_output(value) for name, value in result.outputs.items()}
        return {name: self._registry.mask_value(value)[0] for name, value in shown.items()}

    def progress(self) -> Sequence[Mapping[str, Any]]:
        """Per node, in plan order: id, due, done, running state; cheap enough to poll."""
        if self._wired is None:
            return ()
        report = self._wired.driver.machine.report()
        return [msgspec.to_builtins(node) for node in report.nodes]

    def pending(self) -> Sequence[str]:
        """What waits for something, in words; nothing once a run has completed."""
        return () if self._wired is None else self._wired.driver.machine.pending()

    async def run(self) -> RunResult:
        """Run to the end, whatever that is.

        Raises `StoreError` when the record cannot be written, and what broke the engine itself.
        """
        if self._opened:
            raise RunError(f"run {self.run_id} was opened before: a session runs once")
        refuse_while_loading()
        self._opened = True
        self._loop = asyncio.get_running_loop()
        with self._opened_store() as store:
            self._store = store
            log = await self._open_log(store) if store is not None else None
            bus = self._bus = Bus(log)
            traced = telemetry.subscriber(run_id=self.run_id)
            if traced is not None:
                bus.subscribe(traced)
            try:
                with masked_logging(self._registry):
                    result = await self._run(bus)
                if bus.lost is not None:
                    raise bus.lost
                return result
            finally:
                self._open.end()
                if self._wired is not None:  # of a run that broke off
                    await self._wired.close()
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

        past = self._request.past
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
        elif self._wired is not None:
            self._wired.obey(command)

    async def _run(self, bus: Bus) -> RunResult:
        began = time.monotonic()
        for subscriber in self._subscribers:
            bus.subscribe(subscriber)
        run = self._wired = Wired(self._request, bus, self._registry, self._store)
        bus.on_lost = self._end_unrecorded
        self._announce(bus)
        early, self._early = self._early or (), None
        run.steer_if_declared()
        for command in early:
            run.obey(command)
        interrupted: asyncio.CancelledError | None = None
        if self._cancel_reason is not None:
            ended = Ended(Status.CANCELLED, self._registry.mask_text(self._cancel_reason))
        else:
            try:
                ended = await run.drive()
            except asyncio.CancelledError as error:  # whoever awaits the run was cancelled
                interrupted = error
                ended = Ended(Status.CANCELLED, "cancelled")
            await run.services.aclose()
        run.recorder.narrator.flush()
        await run.close()
        result = run.result(ended, duration_s=time.monotonic() - began, record=self.record)
        if bus.active:
            bus.publish(terminal_event(ended.status, result, self._registry))
        if interrupted is not None:
            raise interrupted
        return result

    def _announce(self, bus: Bus) -> None:
        if bus.active:
            bus.publish(first_event(self._request, self._registry))
        for remark in what_is_not_stored(self.workflow) if bus.records else ():
            bus.publish(remark)
        past = self._request.past
        self._open.begin(bus, closed_before=() if past is None else past.closed_inputs)

    def _end_unrecorded(self) -> None:
        """Nothing goes on without its record; not at once, for the kernel may be at work."""
        asyncio.get_running_loop().call_soon(self.cancel, "the record cannot be written")

    @property
    def models(self) -> list[NamedModel]:
        """The models that steps still have to ask, as far as they are known beforehand."""
        plan, past = self._request.plan, self._request.past
        named = models_of(plan, self.workflow, self.inputs)
        if past is None:
            return named
        types = {node.id: node.type for node in plan.nodes}
        return [each for each in named if not past.through(each.node_id, types[each.node_id])]

    def _check_models(self) -> None:
        """Raise `ModelError` if a model that will be asked cannot be had, as far as is known."""
        named = self.models
        if named:
            from nightwarden.agents.stepping import StepModels

            StepModels().check(named)


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
