"""What is written down of a run: kernel effects and results of steps, as masked events.

Without a record and without listeners nothing is built; costs and failures are kept anyway.
Whoever watches every step is told from here, too.

Read next: `events/__init__.py`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nightwarden.errors import OutOfMoney, Suspended
from nightwarden.events import (
    ControlSent,
    InvocationFailed,
    InvocationPruned,
    InvocationStarted,
    InvocationSucceeded,
    InvocationSuspended,
    ItemEmitted,
    Log,
    NodeFinished,
    NodeStarted,
    RunStopping,
    StreamClosed,
    WindowWidened,
)
from nightwarden.events.seen import Moment
from nightwarden.kernel.causes import Cause, Kind
from nightwarden.kernel.effects import (
    CloseRoot,
    Escalate,
    Finish,
    Invoke,
    Prune,
    Stop,
    Warn,
    Widen,
)
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.stimuli import Failed
from nightwarden.lineage import Lineage, show
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.again import Again
from nightwarden.runtime.binding import Arguments, Binding
from nightwarden.runtime.failing import (
    Failure,
    candidate_of,
    facts_of,
    has_candidate,
    label_of,
    shown,
    stimulus,
)
from nightwarden.runtime.keeping import Keeper
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.substitution import can_be_repaired
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser

_PRUNED_AT_ONCE = 1000
NOTHING_READ: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Said:
    """What a record says already, so that a resumed run does not say it again."""

    started: frozenset[str] = frozenset()
    finished: frozenset[str] = frozenset()
    pruned: frozenset[tuple[int, Lineage]] = frozenset()
    closed: frozenset[tuple[str, Lineage, str]] = frozenset()


NOTHING_SAID = Said()


class Recorder:
    """Writes one run down. `costs` are micro-dollars by node; `cause` looks one up by number."""

    def __init__(
        self,
        plan: Plan,
        services: RunServices,
        recognisers: Sequence[Recogniser],
        watch: Watch | None = None,
    ) -> None:
        self.costs: Counter[str] = Counter()
        self.suspensions: list[Mapping[str, object]] = []
        self.last_failure: Failure | None = None
        self._plan = plan
        self._services = services
        self._bus = services.bus
        self._recognisers = tuple(recognisers)
        self._watch = watch
        self._failures: dict[int, Failure] = {}
        self.keeper = Keeper(plan, services.registry, records=services.bus.records)
        self.said = NOTHING_SAID
        self._pruned: dict[tuple[int, int, str], list[Lineage]] = defaultdict(list)
        self.cause: Callable[[int], Cause] | None = None
        self.counts: Callable[[int], Mapping[str, int]] = lambda _: {}

    def open(self, bindings: Sequence[Binding]) -> None:
        """How the nodes' values are kept."""
        self.keeper.checks = [binding.checks for binding in bindings]

    @property
    def watched(self) -> bool:
        """Whether somebody wants to know of every start."""
        return self._watch is not None

    # -- steps --

    def node_started(self, invoke: Invoke) -> None:
        """The first invocation of a node."""
        node_id = self._plan.nodes[invoke.node].id
        if node_id not in self.said.started:
            self._bus.publish(NodeStarted(node_id=node_id))

    def begun(self, invoke: Invoke) -> float | None:
        """An invocation starts: when, on a steady clock; None if nobody wants to know.

        The start of one with outside effects has to be durable before it runs: see `durable`.
        """
        if not self._bus.active:
            return None
        node = self._plan.nodes[invoke.node]
        if node.type.effectful:
            self._bus.publish(
                InvocationStarted(node_id=node.id, lineage=invoke.lineage, attempt=invoke.attempt)
            )
        if self._watch is not None:
            self._watch.began(invoke)
        return time.perf_counter()

    async def durable(self) -> None:
        """Return once everything that has been recorded would outlive the process."""
        await self._bus.durable()

    def succeeded(
        self,
        invoke: Invoke,
        outputs: tuple[object, ...],
        account: Account,
        began: float | None,
        *,
        read: Mapping[str, int] = NOTHING_READ,
    ) -> None:
        """A step returned. `read` says how many items it asked for, by slot."""
        node = self._plan.nodes[invoke.node]
        self._book(node, account)
        if began is None or not self._bus.active:
            return
        outs = node.ends if node.type.fans_out else node.outs
        kept = self.keeper.kept(invoke.node, outs, outputs)
        took_s = int((time.perf_counter() - began) * 1e6) / 1e6
        self._bus.publish(
            InvocationSucceeded(
                node_id=node.id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                outputs=kept.outputs,
                absent=kept.absent,
                sealed=kept.sealed,
                read=read,
                duration_s=took_s,
                cost_micro_usd=account.cost_micro_usd,
                assets=account.assets,
            )
        )
        if self._watch is not None:
            self._watch.put_out(Moment.RETURNED, invoke, outs, outputs, took_s)

    def emitted(
        self,
        invoke: Invoke,
        frame: tuple[object, ...],
        *,
        read: Mapping[str, int] = NOTHING_READ,
    ) -> None:
        """A fan-out yields a frame; what the engine makes of values on record is not written down.

        `read` says how many items it has asked for, by slot."""
        node = self._plan.nodes[invoke.node]
        if not self._bus.active or node.type.engine_owned:
            return
        kept = self.keeper.kept(invoke.node, node.outs, frame)
        self._bus.publish(
            ItemEmitted(
                node_id=node.id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                outputs=kept.outputs,
                absent=kept.absent,
                sealed=kept.sealed,
                read=read,
            )
        )
        if self._watch is not None:
            self._watch.put_out(Moment.PUT_OUT, invoke, node.outs, frame)

    def failed(
        self,
        invoke: Invoke,
        error: BaseException,
        account: Account,
        binding: Binding,
        arguments: Arguments | None,
        *,
        path: Sequence[tuple[int, object]],
        totals: Sequence[int | None],
        now: float,
        unknown: bool,
        idempotent: bool,
        cut_off: bool = False,
        read: Mapping[str, int] = NOTHING_READ,
    ) -> Failed:
        """A step raised: keep the masked facts, and return what the kernel needs of them."""
        node = binding.node
        registry = self._services.registry
        self._book(node, account)
        fact = stimulus(
            invoke.call,
            error,
            account,
            now=now,
            recognisers=self._recognisers,
            checkable=has_candidate(error) and can_be_repaired(node, binding),
            copied=arguments is None or arguments.copied,
            unknown=unknown,
            idempotent=idempotent,
            cut_off=cut_off,
        )
        detail, error_type = shown(error, registry)
        given = {} if arguments is None else dict(arguments.values)
        given.pop(binding.definition.context_name or "", None)
        failure = Failure(
            node_id=node.id,
            detail=detail,
            error_type=error_type,
            signature=fact.signature,
            has_candidate=fact.has_candidate,
            candidate=candidate_of(error, registry),
            raw_candidate=getattr(error, "candidate_output", None),
            inputs=registry.redact(given),  # type: ignore[arg-type]
            cost_micro_usd=account.cost_micro_usd,
            assets=len(account.assets),
            retry_safe=node.type.retry_safe,
            label=self._label(node, given, path),
            number=show(invoke.lineage),
            total=totals[-1] if totals else None,
            ends_run=isinstance(error, OutOfMoney),
        )
        self._failures[invoke.call] = self.last_failure = failure
        self._bus.publish(
            InvocationFailed(
                node_id=node.id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                error_type=error_type,
                detail=detail,
                signature=fact.signature,
                cost_micro_usd=account.cost_micro_usd,
                assets=len(account.assets),
                item=f"{failure.number} {failure.label}".strip(),
                facts=facts_of(fact, read),
            )
        )
        self._tell_failed(failure, invoke.lineage, invoke.attempt)
        return fact

    def failure(self, call: int) -> Failure:
        """The facts of a failed attempt; told once."""
        return self._failures.pop(call)

    def failed_before(self, call: int, failure: Failure) -> None:
        """A failure that is on record already, and has to be decided on again."""
        self._failures[call] = self.last_failure = failure

    def kernel_failure(self, effect: Escalate) -> Failure:
        """The facts of a failure of a node the kernel ran itself."""
        node = self._plan.nodes[effect.node]
        failure = Failure(
            node_id=node.id,
            detail=effect.detail,
            error_type="NodeError",
            signature=effect.signature or None,
            has_candidate=False,
            candidate=None,
            inputs={},
            cost_micro_usd=0,
            assets=0,
            retry_safe=False,
            label="",
            number=show(effect.lineage),
            total=None,
        )
        self.last_failure = failure
        self._bus.publish(
            InvocationFailed(
                node_id=node.id,
                lineage=effect.lineage,
                attempt=effect.attempt,
                error_type=failure.error_type,
                detail=failure.detail,
                signature=failure.signature,
                item=failure.number,
            )
        )
        self._tell_failed(failure, effect.lineage, effect.attempt)
        return failure

    def _tell_failed(self, failure: Failure, lineage: Lineage, attempt: int) -> None:
        if self._watch is not None:
            line = f"{failure.detail} ({failure.error_type})"
            self._watch.failed(failure.node_id, lineage, attempt, line)

    def noted(self, effect: Warn) -> None:
        """Something the report should show."""
        self._bus.publish(
            Log(
                node_id=self._plan.nodes[effect.node].id,
                lineage=effect.lineage,
                level="warning",
                message=effect.message,
            )
        )

    def declared(self, binding: Binding) -> Mapping[str, object]:
        """The JSON Schema of each declared output."""
        return {name: binding.checker(name).schema() for name in binding.node.type.outputs}

    def halted(self, invoke: Invoke, account: Account) -> None:
        """A call ended because it had to; what it spent was spent."""
        self._book(self._plan.nodes[invoke.node], account)
        if self._watch is not None:
            self._watch.ended(Moment.HALTED, invoke)

    def suspended(self, invoke: Invoke, error: Suspended) -> None:
        """A step asked for a pause; whoever resumes the run needs its state."""
        registry = self._services.registry
        node_id, reason = self._plan.nodes[invoke.node].id, self._services.mask(error.reason)
        if self._watch is not None:
            self._watch.ended(Moment.SUSPENDED, invoke, reason)
        self.suspensions.append(
            {
                "node": node_id,
                "lineage": list(invoke.lineage),
                "reason": reason,
                "state": registry.redact(error.state),
            }
        )
        state, whole = self.keeper.anything(error.state)
        self._bus.publish(
            InvocationSuspended(
                node_id=node_id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                reason=reason,
                state=state,
                sealed=not whole,
            )
        )

    def controlled(
        self,
        invoke: Invoke,
        again: Again,
        target: str,
        overrides: Mapping[str, object],
        awaits: bool,
    ) -> None:
        """A step sent a control event. Raises `NodeError` if it sent another one before."""
        if not self._bus.active:
            return
        plain, whole = self.keeper.anything(dict(overrides))
        if again.sent_before(target, plain):
            return
        self._bus.publish(
            ControlSent(
                node_id=self._plan.nodes[invoke.node].id,
                lineage=invoke.lineage,
                attempt=invoke.attempt,
                target=target,
                overrides=plain,  # type: ignore[arg-type]
                sealed=not whole,
                awaits=awaits,
            )
        )

    def warn(self, invoke: Invoke, message: str) -> None:
        """A line for the report."""
        node = self._plan.nodes[invoke.node]
        self._bus.publish(
            Log(node_id=node.id, lineage=invoke.lineage, level="warning", message=message)
        )

    # -- kernel effects --

    def pruned(self, effect: Prune) -> None:
        """A lineage that will not run; written in ranges."""
        if not self._bus.active or (effect.node, effect.lineage) in self.said.pruned:
            return
        waiting = self._pruned[effect.node, effect.cause, effect.kind]
        waiting.append(effect.lineage)
        if len(waiting) >= _PRUNED_AT_ONCE:
            self._flush(effect.node)

    def closed(self, effect: CloseRoot) -> None:
        """A fan-out ended."""
        if self._bus.active and self._news(effect.node, effect.lineage, effect.mark):
            self._bus.publish(
                StreamClosed(
                    node_id=self._plan.nodes[effect.node].id,
                    lineage=effect.lineage,
                    emitted=effect.emitted,
                    mark=effect.mark,
                )
            )

    def widened(self, effect: Widen) -> None:
        """A window was doubled."""
        node = self._plan.nodes[effect.node]
        self._bus.publish(WindowWidened(node_id=node.id, window=effect.window))

    def finished(self, effect: Finish) -> None:
        """A node is done."""
        if not self._bus.active:
            return
        self._flush(effect.node)
        node_id = self._plan.nodes[effect.node].id
        if node_id not in self.said.finished:
            self._bus.publish(NodeFinished(node_id=node_id, counts=self.counts(effect.node)))

    def stopping(self, effect: Stop) -> None:
        """Nothing new starts."""
        self._bus.publish(RunStopping(status=effect.status, reason=effect.reason))

    def flush(self) -> None:
        """Write everything that was held back."""
        for node in {key[0] for key in self._pruned}:
            self._flush(node)

    # -- words --

    def item_text(
        self, invoke: Invoke, path: Sequence[tuple[int, object]], totals: Sequence[int | None]
    ) -> str:
        """The item as people name it."""
        label = self._label(self._plan.nodes[invoke.node], {}, path)
        total = totals[-1] if totals else None
        number = show(invoke.lineage)
        return f"{number}/{total} {label}".strip() if total else f"{number} {label}".strip()

    def explain(self, causes: Sequence[Cause]) -> str:
        """Causes in words, the first on the way first."""
        return "; ".join(cause_text(cause) for cause in causes[:3])

    def _label(
        self, node: NodePlan, arguments: Mapping[str, object], path: Sequence[tuple[int, object]]
    ) -> str:
        frame = path[-1][1] if path else None
        template = node.spec.label or node.type.label
        return self._services.mask(label_of(template if arguments else None, arguments, frame))

    def _book(self, node: NodePlan, account: Account) -> None:
        if account.cost_micro_usd:
            self.costs[node.id] += account.cost_micro_usd

    def _flush(self, node: int) -> None:
        for key in [k for k in self._pruned if k[0] == node]:
            cause = self.cause(key[1]) if self.cause is not None else None
            self._bus.publish(
                InvocationPruned(
                    node_id=self._plan.nodes[node].id,
                    kind=key[2],
                    by=cause_text(cause) if cause is not None else "",
                    lineages=tuple(self._pruned.pop(key)),
                )
            )

    def _news(self, node: int, lineage: Lineage, mark: str) -> bool:
        return (self._plan.nodes[node].id, lineage, mark) not in self.said.closed


_HAPPENED = {Kind.REPAIRED: "was repaired", Kind.LOST: "was given up", Kind.FAILED: "failed"}


def cause_text(cause: Cause) -> str:
    """One cause in words."""
    if cause.kind is Kind.NOT_TAKEN:
        return f"{cause.node_id}.{cause.slot} was not taken"
    item = show(cause.lineage)
    return f"{cause.node_id}{f' [{item}]' if item else ''} {_HAPPENED[cause.kind]}"
