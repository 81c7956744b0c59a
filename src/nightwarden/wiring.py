"""The parts of one run, put together: who does, who writes down, who decides, who steers.

    Request ─▶ Wired ┬ services, recorder   what steps may use, what is kept of them
                     ├ driver               who does it
                     ├ deciding, bounded    who is asked when a step breaks
                     └ steering             who watches agents; made when it is needed

A `Request` is what a session was asked for, checked and resolved. `Wired` is one run of it, on
the run's loop; it opens no store and ends no record: that is the session's.

Read next: `runtime/driver.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nightwarden.ending import Finished, result_of
from nightwarden.errors import NodeError, RunError
from nightwarden.events import RunResumed
from nightwarden.events.budget import BudgetState, budget_state
from nightwarden.events.seen import Seen
from nightwarden.ids import RunId
from nightwarden.kernel.effects import Ended, Status
from nightwarden.kernel.plan import Plan
from nightwarden.kernel.state import Settings
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.define import NodeDef
from nightwarden.result import RunResult
from nightwarden.run_inputs import fed_nodes, secret_names, values_pushed
from nightwarden.runtime.bounded import Bounded, bounded
from nightwarden.runtime.bus import Bus, utc_now
from nightwarden.runtime.deciding import Deciding
from nightwarden.runtime.driver import Driver
from nightwarden.runtime.executors import Executor, StepExecutor, ThreadExecutor
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.past import Past
from nightwarden.runtime.paying import Models
from nightwarden.runtime.recording import Recorder
from nightwarden.runtime.replaying import Replaying
from nightwarden.runtime.secrets import SecretResolver
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.substitution import Repairs
from nightwarden.runtime.supervision import Bounds, RunReader, Supervisor
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser
from nightwarden.spec.checker import Checker
from nightwarden.spec.supervisors import SupervisorSpec, is_steered
from nightwarden.spec.workflow import Workflow

if TYPE_CHECKING:
    from nightwarden.steering.managed import RunSteering
    from nightwarden.steering.ports import Evaluator
    from nightwarden.store.contract import Command, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a session was asked for. `definitions` are by node id; the rest is as `Session` says."""

    workflow: Workflow
    inputs: Mapping[str, object]
    plan: Plan
    definitions: Mapping[str, NodeDef]
    node_files: Sequence[Path]
    run_id: RunId
    rng: random.Random
    workdir: Path
    secrets: Mapping[str, str]
    feeds: Mapping[str, InputFeed]
    elements: Mapping[str, Checker]
    settings: Settings
    stop_grace_s: float
    executor: Executor | None
    recognisers: tuple[Recogniser, ...]
    watch: Callable[[Seen], None] | None
    supervisor: Supervisor | None
    supervisor_name: str
    bounds: Bounds
    max_cost_micro_usd: int | None
    steering: str | None
    evaluators: Callable[[SupervisorSpec], Evaluator | None] | None
    past: Past | None
    resumed: RunResumed | None


class Wired:
    """One run, put together and ready to be driven. `store` is where it is recorded, if it is."""

    def __init__(
        self, request: Request, bus: Bus, registry: SecretRegistry, store: Store | None
    ) -> None:
        self.request, self.bus, self.registry, self.store = request, bus, registry, store
        self.services = self._services()
        watch = None if request.watch is None else Watch(request.plan, self.services, request.watch)
        bus.active = bus.active or watch is not None  # only an active run tells what its steps do
        self.recorder = Recorder(request.plan, self.services, request.recognisers, watch)
        self.driver = Driver(
            request.plan,
            request.definitions,
            self.services,
            self.recorder,
            executor=request.executor or ThreadExecutor(),
            processes=self._processes,
            settings=request.settings,
            stop_grace_s=request.stop_grace_s,
            feeds=fed_nodes(request.plan, request.feeds),
            past=request.past,
        )
        self.services.on_overspent = self.driver.overspent
        self._repairs = Repairs(self.driver.bindings(), self.services)
        self.bounded: Bounded | None = None
        if request.supervisor is not None:
            self.bounded = bounded(request.supervisor, request.bounds, stamp=utc_now)
        self.deciding = self._deciding()
        self.steering: RunSteering | None = None
        self.services.mailboxes = lambda node_id: self.steer().mailbox(node_id)
        if request.past is not None:
            self._remember(request.past)

    async def drive(self) -> Ended:
        """Run to the end, whatever that is. Raises what broke the engine itself."""
        try:
            return await self.driver.run(self.request.inputs)
        except NodeError as error:
            return Ended(Status.FAILED, str(error))

    def obey(self, command: Command) -> None:
        """A word for the run's agents, or for who watches them."""
        self.steer().obey(command)

    def steer(self) -> RunSteering:
        """What supervises running agents and delivers to them; loaded when it is needed."""
        if self.steering is None:
            from nightwarden.steering.wiring import steering_of

            request = self.request
            self.steering = steering_of(
                request.workflow,
                self.services,
                run_id=request.run_id,
                inputs=request.inputs,
                supervisors=request.steering,
                evaluators=request.evaluators,
                lines=partial(_lines_before, self.store, request.past),
                finished=self.recorder.narrator.said.finished,
            )
            self.steering.open()
        return self.steering

    def steer_if_declared(self) -> None:
        """Start the supervisors that the workflow itself names."""
        if is_steered(self.request.workflow):
            self.steer()

    async def close(self) -> None:
        """Nobody watches any more. More than once changes nothing."""
        if self.steering is not None:
            await self.steering.close()

    def result(self, ended: Ended, *, duration_s: float, record: str) -> RunResult:
        """What the run came to; `duration_s` is what this part of it took."""
        past, steering = self.request.past, self.steering
        return result_of(
            Finished(
                run_id=self.request.run_id,
                plan=self.request.plan,
                ended=ended,
                machine=self.driver.machine,
                services=self.services,
                recorder=self.recorder,
                deciding=self.deciding,
                supervisor_cost=0 if self.bounded is None else self.bounded.spent_micro_usd,
                steering_cost=0 if steering is None else steering.spent_micro_usd,
                duration_s=duration_s + (0.0 if past is None else past.duration_s),
                record=record,
                resumed=past is not None,
            )
        )

    # -- what steps use --

    def _services(self) -> RunServices:
        request = self.request
        secrets = SecretResolver(self.registry, request.secrets)
        secrets.preload(secret_names(request.workflow))
        services = RunServices(
            self.bus,
            self.registry,
            secrets,
            workdir=request.workdir,
            assets_dir=self._assets_dir(),
            blobs=None if self.store is None else self.store.blobs,
            max_cost_micro_usd=request.max_cost_micro_usd,
        )
        services.open()
        services.make_models = partial(self._models, services)
        if request.past is not None:
            services.spent(sum(request.past.costs.values()))
            for (node_id, _, _), number in request.past.rejected.items():
                services.rejects[node_id] += number
        return services

    def _assets_dir(self) -> Path:
        if self.store is not None:
            return self.store.files(self.request.run_id).resolve() / "assets"
        return self.request.workdir / ".nightwarden" / "runs" / self.request.run_id / "assets"

    def _models(self, services: RunServices) -> Models:
        """What steps ask models through; made when the first one does."""
        from nightwarden.agents.stepping import StepModels

        past = self.request.past
        return StepModels(
            cap_micro_usd=self.request.max_cost_micro_usd,
            outside=services.spending.total,
            spent_before={} if past is None else dict(past.costs),
            last_reservation=0 if past is None else past.last_call,
            protect=self.registry.register,
        )

    def _processes(self) -> StepExecutor:
        from nightwarden.runtime.executors.processes import ProcessExecutor

        return ProcessExecutor(files=self.request.node_files)

    # -- who decides --

    def _deciding(self) -> Deciding:
        deciding = Deciding(
            self.request.run_id,
            self.bounded,
            self.bus,
            tell=self.driver.tell,
            check=self._repairs.check,
            registry=self.registry,
            stamp=utc_now,
            rng=self.request.rng,
        )
        self.driver.deciding = deciding
        self.services.decided = deciding.told
        if self.bounded is not None:
            self.bounded.attach(self._evidence(deciding, self.bounded))
        return deciding

    def _evidence(self, deciding: Deciding, limits: Bounded) -> RunReader:
        """What the supervisor may read of this run."""
        from nightwarden.runtime.evidence import SessionEvidence, Sources

        store, request, machine = self.store, self.request, self.driver.machine
        sources = Sources(
            plan=request.plan,
            bus=self.bus,
            registry=self.registry,
            interventions=deciding.interventions,
            state=lambda: {
                "nodes": [msgspec.to_builtins(node) for node in machine.report().nodes],
                "decisions": len(deciding.interventions),
            },
            check=lambda failed, outputs: self._repairs.check(
                failed.node_id, outputs, deciding.forms.get(int(failed.id[1:]))
            )[1],
            raw_candidate=deciding.candidates.get,
            inputs=request.inputs,
            lines=lambda: () if store is None else store.lines(request.run_id),
            blob=_no_blob if store is None else store.blobs.get,
            decisions_left=lambda: limits.bounds.max_decisions - limits.decisions_used,
            spent=self._spent_before(),
        )
        return SessionEvidence(request.run_id, sources)

    def _spent_before(self) -> BudgetState:
        """What deciding cost in the run's earlier parts."""
        if self.request.past is None or self.store is None:
            return BudgetState()
        return budget_state(self.store.read(self.request.run_id), "supervisor")

    # -- what was before --

    def _remember(self, past: Past) -> None:
        """Hand the past to whoever carries it on."""
        store, driver, deciding = self.store, self.driver, self.deciding
        assert store is not None
        self.recorder.costs.update(past.costs)
        deciding.recall(past.interventions)
        if self.bounded is not None:
            self.bounded.restore(past.bounds_state)
        driver.replay(
            Replaying(
                past,
                driver.desk,
                tell=driver.tell,
                soon=driver.soon,
                blob=store.blobs.get,
                check=self._repairs.check,
                supervised=deciding.supervised,
                idle=lambda: driver.machine.idle,
            )
        )
        for name, feed in self.request.feeds.items():
            feed.restore(values_pushed(past, name, store.blobs.get, self.request.elements[name]))
            if name in past.closed_inputs:
                feed.close()


def _lines_before(store: Store | None, past: Past | None) -> Iterator[bytes]:
    """What a run said before it was resumed."""
    if store is not None and past is not None:
        yield from islice(store.lines(past.run_id), past.last_seq)


def _no_blob(digest: str) -> bytes:
    raise RunError(f"value {digest} is not kept: the run has no record")
