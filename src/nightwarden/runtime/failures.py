"""Failed attempts: what is written down of each, and kept until it is known who decides on it.

    error ─▶ failed ─▶ InvocationFailed on record, a Failed for the kernel
                  └▶ Failure, taken when the kernel escalates

Read next: `failing.py`, `deciding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightwarden.errors import OutOfMoney
from nightwarden.events import InvocationFailed
from nightwarden.kernel.effects import Escalate, Invoke
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.stimuli import Failed
from nightwarden.lineage import Lineage, show
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.binding import Arguments, Binding
from nightwarden.runtime.failing import (
    Failure,
    called,
    candidate_of,
    declared_form,
    facts_of,
    has_candidate,
    item_label,
    shown,
    stimulus,
)
from nightwarden.runtime.services import RunServices
from nightwarden.runtime.substitution import can_be_repaired
from nightwarden.runtime.watching import Watch
from nightwarden.signatures.signature import Recogniser

NOTHING_READ: Mapping[str, int] = {}


class Failures:
    """The failed attempts of one run. `first` is what to name for all: what ended the run, else
    the one on the earliest step and item, whichever came about before another."""

    def __init__(
        self,
        plan: Plan,
        services: RunServices,
        recognisers: Sequence[Recogniser],
        watch: Watch | None = None,
    ) -> None:
        self.first: Failure | None = None
        self._place: tuple[bool, int, Lineage] = (False, 0, ())
        self._plan = plan
        self._services = services
        self._bus = services.bus
        self._recognisers = tuple(recognisers)
        self._watch = watch
        self._open: dict[int, Failure] = {}

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
        fact = stimulus(
            invoke.call,
            error,
            account,
            now=now,
            recognisers=self._recognisers,
            registry=self._services.registry,
            checkable=has_candidate(error) and can_be_repaired(node, binding),
            copied=arguments is None or arguments.copied,
            unknown=unknown,
            idempotent=idempotent,
            cut_off=cut_off,
        )
        given = {} if arguments is None else dict(arguments.values)
        given.pop(binding.definition.context_name or "", None)
        failure = self._described(
            invoke.lineage, error, account, node, given, fact, path=path, totals=totals
        )
        self._open[invoke.call] = failure
        self._say(node, invoke.lineage, invoke.attempt, failure, facts_of(fact, read))
        return fact

    def _described(
        self,
        lineage: Lineage,
        error: BaseException,
        account: Account,
        node: NodePlan,
        given: Mapping[str, object],
        fact: Failed,
        *,
        path: Sequence[tuple[int, object]],
        totals: Sequence[int | None],
    ) -> Failure:
        """The failure as a supervisor is shown it, masked; `given` is what the step was given."""
        registry = self._services.registry
        detail, error_type = shown(error, registry)
        return Failure(
            node_id=node.id,
            detail=detail,
            error_type=error_type,
            signature=fact.signature,
            has_candidate=fact.has_candidate,
            candidate=candidate_of(error, registry),
            raw_candidate=getattr(error, "candidate_output", None),
            output_schema=declared_form(node, given) if fact.has_candidate else None,
            inputs=registry.redact(given),  # type: ignore[arg-type]
            cost_micro_usd=account.cost_micro_usd,
            assets=len(account.assets),
            retry_safe=node.type.retry_safe,
            label=called(self._services.mask(item_label(node, given, path))),
            number=show(lineage),
            total=totals[-1] if totals else None,
            ends_run=isinstance(error, OutOfMoney),
        )

    def take(self, call: int) -> Failure:
        """The facts of a failed attempt; told once."""
        return self._open.pop(call)

    def again(self, invoke: Invoke, failure: Failure) -> None:
        """A failure that is on record already, and has to be decided on again."""
        self._open[invoke.call] = failure
        self._note(self._plan.nodes[invoke.node], invoke.lineage, failure)

    def of_kernel(self, effect: Escalate) -> Failure:
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
        self._say(node, effect.lineage, effect.attempt, failure, {})
        return failure

    def _say(
        self,
        node: NodePlan,
        lineage: Lineage,
        attempt: int,
        failure: Failure,
        facts: Mapping[str, object],
    ) -> None:
        """Write a failure down, and tell whoever watches."""
        self._note(node, lineage, failure)
        self._bus.publish(
            InvocationFailed(
                node_id=node.id,
                lineage=lineage,
                attempt=attempt,
                error_type=failure.error_type,
                detail=failure.detail,
                signature=failure.signature,
                cost_micro_usd=failure.cost_micro_usd,
                assets=failure.assets,
                item=f"{failure.number} {failure.label}".strip(),
                facts=facts,
            )
        )
        if self._watch is not None:
            line = f"{failure.detail} ({failure.error_type})"
            self._watch.failed(node.id, lineage, attempt, line)

    def _note(self, node: NodePlan, lineage: Lineage, failure: Failure) -> None:
        place = not failure.ends_run, node.order, lineage
        if self.first is None or place < self._place:
            self.first, self._place = failure, place
