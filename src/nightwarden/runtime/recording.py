"""What is written down of a run's steps, as masked events.

Without a record and without listeners nothing is built; costs and failures are kept anyway.
Whoever watches every step is told from here, too.

    steps that return, put out, end ─▶ here
    steps that fail                 ─▶ `failures.py`
    what the kernel says            ─▶ `narrating.py`

Read next: `events/__init__.py`.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from nightwarden.errors import Suspended
from nightwarden.events import (
    ControlSent,
    InvocationStarted,
    InvocationSucceeded,
    InvocationSuspended,
    ItemEmitted,
    Log,
)
from nightwarden.events.seen import Moment
from nightwarden.kernel.effects import Invoke
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.lineage import show
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.again import Again
from nightwarden.runtime.binding import Binding
from nightwarden.runtime.failing import Failure, called, item_label
from nightwarden.runtime.failures import NOTHING_READ, Failures
from nightwarden.runtime.keeping import Keeper
from nightwarden.runtime.narrating import Narrator
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser

_LONGEST_FORM: Final = 8_000
_TOO_LONG: Final = {"description": "Too long to be shown; what of a repair does not fit is said."}


class Recorder:
    """Writes the steps of one run down. `costs` are micro-dollars by node."""

    def __init__(
        self,
        plan: Plan,
        services: RunServices,
        recognisers: Sequence[Recogniser],
        watch: Watch | None = None,
    ) -> None:
        self.costs: Counter[str] = Counter()
        self.suspensions: list[Mapping[str, object]] = []
        self._left: list[tuple[NodePlan, Account]] = []
        self.narrator = Narrator(plan, services.bus)
        self.failures = Failures(plan, services, recognisers, watch)
        self._plan = plan
        self._services = services
        self._bus = services.bus
        self._watch = watch
        self.keeper = Keeper(plan, services.registry, records=services.bus.records)

    def open(self, bindings: Sequence[Binding]) -> None:
        """How the nodes' values are kept."""
        self.keeper.checks = [binding.checks for binding in bindings]

    @property
    def watched(self) -> bool:
        """Whether somebody wants to know of every start."""
        return self._watch is not None

    # -- steps --

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
        self.book(node, account)
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

    def declared(self, binding: Binding, failure: Failure) -> Mapping[str, object]:
        """The JSON Schema of each declared output, masked where the workflow gave it."""
        if failure.output_schema is not None:
            masked, _ = self._services.registry.mask_value(dict(failure.output_schema))
            return {
                "output": masked
                if len(json.dumps(masked, default=str)) <= _LONGEST_FORM
                else _TOO_LONG
            }
        return {name: binding.checker(name).schema() for name in binding.node.type.outputs}

    def halted(self, invoke: Invoke, account: Account) -> None:
        """A call ended because it had to; what it spent was spent."""
        node = self._plan.nodes[invoke.node]
        self.book(node, account)
        self.leave(node, account)
        if self._watch is not None:
            self._watch.ended(Moment.HALTED, invoke)

    def suspended(self, invoke: Invoke, error: Suspended, account: Account) -> None:
        """A step asked for a pause; whoever resumes the run needs its state."""
        self.book(self._plan.nodes[invoke.node], account)
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

    def item_text(
        self, invoke: Invoke, path: Sequence[tuple[int, object]], totals: Sequence[int | None]
    ) -> str:
        """The item as people name it."""
        label = called(self._services.mask(item_label(self._plan.nodes[invoke.node], {}, path)))
        total = totals[-1] if totals else None
        number = show(invoke.lineage)
        return f"{number}/{total} {label}".strip() if total else f"{number} {label}".strip()

    def book(self, node: NodePlan, account: Account) -> None:
        """Add what an attempt has spent since it was booked last."""
        owed = account.cost_micro_usd - account.booked_micro_usd
        if owed:
            self.costs[node.id] += owed
            account.booked_micro_usd += owed

    def leave(self, node: NodePlan, account: Account) -> None:
        """An attempt nobody waits for any more may still be at work, and spend."""
        self._left.append((node, account))

    def settle(self) -> None:
        """Book what was spent by attempts that were left behind; costs are whole after this."""
        for node, account in self._left:
            self.book(node, account)
