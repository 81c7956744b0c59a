"""The events of one run as spans: run, invocation, decision, model call.

    run pages ─┬─ page                 one span an attempt
               │    ├─ decide page     from the question to the answer
               │    │    └─ chat …     what the supervisor asked a model
               │    └─ chat …          what the step itself asked a model
               └─ page                 the next attempt, linked to the decision that ordered it

Times are those of the events; where a start was not told (only steps with outside effects tell
theirs), it is the end less the duration. A span holds ids, counts, costs and the one masked line
of an error: no value, no label, no text of a model. What has ended is forgotten.

Read next: `asking.py`, `attributes.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer, set_span_in_context

from nightwarden.events import (
    Event,
    InvocationFailed,
    InvocationPruned,
    InvocationSucceeded,
    RunEnded,
    RunStopping,
    SupervisorDeciding,
    SupervisorDecision,
    SupervisorEscalation,
    WindowWidened,
)
from nightwarden.lineage import show
from nightwarden.telemetry.asking import Decisions, ModelCalls, Trace, cut_off
from nightwarden.telemetry.attributes import (
    Place,
    dollars,
    field,
    length,
    named,
    ns,
    place_of,
    spent,
    where,
)

_COUNTED: Final = {
    "invocation_succeeded": "succeeded",
    "invocation_failed": "failed",
    "item_emitted": "emitted",
    "supervisor_decision": "decisions",
    "llm_step_finished": "model_steps",
}
"""Events that are counted, and under which name the run's span tells how many."""


class Spans:
    """Call it with every event of a run, in order; `close` ends what was left open.

    `parent` is the context the run stands in, None for the current one. `run_id` names a run
    whose first event does not.
    """

    def __init__(self, tracer: Tracer, *, parent: Context | None = None, run_id: str = "") -> None:
        self._parent = parent
        self._run_id = run_id
        self._run: Span | None = None
        self._trace = Trace(tracer, inside=parent)
        self._types: dict[str, str] = {}
        self._supervised = False
        self._last_failure = ""
        self._counts: Counter[str] = Counter()
        self._calls: dict[Place, Span] = {}
        self._failed: dict[Place, Context] = {}
        self._orders: dict[Place, Link] = {}
        self._decisions = Decisions(self._trace)
        self._models = ModelCalls(self._trace, self._who_asks)
        self._handlers: Mapping[str, Callable[[Any], None]] = {
            "run_started": self._run_started,
            "run_resumed": self._run_started,
            "run_stopping": self._run_stopping,
            "run_completed": self._run_ended,
            "run_failed": self._run_ended,
            "run_cancelled": self._run_ended,
            "run_suspended": self._run_ended,
            "window_widened": self._widened,
            "invocation_started": self._started,
            "invocation_succeeded": self._succeeded,
            "invocation_failed": self._failed_attempt,
            "invocation_suspended": self._suspended,
            "invocation_pruned": self._pruned,
            "supervisor_escalation": self._escalated,
            "supervisor_deciding": self._asked,
            "supervisor_decision": self._decided,
            "supervisor_outcome": self._decisions.concluded,
            "budget_reserved": self._models.reserved,
            "budget_committed": self._models.committed,
            "llm_step_finished": self._models.said,
        }

    def __call__(self, event: Event) -> None:
        """Take the next event."""
        tag = _tag(event)
        if tag in _COUNTED:
            self._counts[_COUNTED[tag]] += 1
        handler = self._handlers.get(tag)
        if handler is not None:
            self._trace.now = max(ns(event.at), self._trace.now)
            handler(event)

    def close(self) -> None:
        """End everything; a run whose last event never came has broken off."""
        self._close_open()
        if self._run is not None:
            self._run.set_status(Status(StatusCode.ERROR, "the run broke off"))
            self._run.end(self._trace.now)
            self._run = None

    # -- the run --

    def _run_started(self, event: Event) -> None:
        definition = field(event, "definition") or {}
        self._types = {str(n.get("id")): str(n.get("type")) for n in definition.get("nodes", ())}
        self._supervised = bool(field(event, "supervisor"))
        workflow = field(event, "workflow") or str(definition.get("name", ""))
        self._trace.began = self._trace.now
        attributes = named(
            run__id=field(event, "run_id") or self._run_id,
            run__workflow=workflow,
            run__definition_hash=field(event, "definition_hash"),
            run__supervisor=field(event, "supervisor"),
            run__resumed=_tag(event) == "run_resumed",
        )
        self._run = self._trace.start(f"run {workflow}".strip(), self._parent, attributes)
        self._trace.inside = set_span_in_context(self._run)

    def _run_stopping(self, event: RunStopping) -> None:
        if self._run is not None:
            self._run.add_event("stopping", named(run__status=event.status), self._trace.now)

    def _widened(self, event: WindowWidened) -> None:
        if self._run is not None:
            told = named(node__id=event.node_id, window=event.window)
            self._run.add_event("window widened", told, self._trace.now)

    def _pruned(self, event: InvocationPruned) -> None:
        self._counts["pruned"] += len(event.lineages)

    def _run_ended(self, event: RunEnded) -> None:
        self._close_open()
        if self._run is None:
            return
        status = _tag(event).removeprefix("run_")
        self._run.set_attributes(
            named(
                run__status=status,
                run__supervised=event.supervised,
                run__cost_usd=dollars(event.cost_micro_usd),
                run__supervisor_cost_usd=dollars(event.supervisor_cost_micro_usd),
                **{f"run__{name}": count for name, count in self._counts.items()},
            )
        )
        if status == "failed":
            # The run's own reason names the item by its label, which is a value.
            self._run.set_status(Status(StatusCode.ERROR, self._last_failure or "failed"))
        self._run.end(self._trace.now)
        self._run = None

    def _close_open(self) -> None:
        """What has no end of its own ended with the run."""
        self._decisions.close()
        self._models.close()
        for span in self._calls.values():
            cut_off(span, self._trace.now)
        self._calls.clear()
        self._failed.clear()
        self._orders.clear()

    # -- invocations --

    def _started(self, event: Event) -> None:
        self._call(event, self._trace.now)

    def _succeeded(self, event: InvocationSucceeded) -> None:
        span = self._ended(event, event.duration_s)
        span.set_attributes(spent(event.cost_micro_usd, len(event.assets)))
        span.end(self._trace.now)

    def _failed_attempt(self, event: InvocationFailed) -> None:
        span = self._ended(event, event.duration_s)
        span.set_attributes(spent(event.cost_micro_usd, event.assets))
        span.set_attributes(named(signature=event.signature))
        span.set_attribute("error.type", event.error_type)
        span.set_status(Status(StatusCode.ERROR, event.detail))
        span.end(self._trace.now)
        item = show(event.lineage)
        self._last_failure = f"{event.node_id}{f' [{item}]' if item else ''}: {event.detail}"
        if self._supervised:
            self._failed[place_of(event)] = set_span_in_context(span)

    def _suspended(self, event: Event) -> None:
        span = self._ended(event, 0.0)
        span.set_attribute("nightwarden.suspended", True)
        span.end(self._trace.now)

    def _ended(self, event: Event, duration_s: float) -> Span:
        """The span of an invocation that is over, which is open no more."""
        self._models.forget(place_of(event))
        self._call(event, self._trace.now - length(duration_s))
        return self._calls.pop(place_of(event))

    def _call(self, event: Event, start: int) -> Span:
        """The open span of an invocation; where there is none, it is opened."""
        place = place_of(event)
        if place not in self._calls:
            self._calls[place] = self._trace.start(
                event.node_id,
                self._trace.inside,
                where(event, self._types.get(event.node_id, "")),
                at=start,
                link=self._orders.pop(place, None),
            )
        return self._calls[place]

    # -- decisions and models --

    def _escalated(self, event: SupervisorEscalation) -> None:
        self._decisions.escalated(event, self._failed.pop(place_of(event), self._trace.inside))

    def _asked(self, event: SupervisorDeciding) -> None:
        self._decisions.asked(event.escalation_id)

    def _decided(self, event: SupervisorDecision) -> None:
        order = self._decisions.decided(event)
        if order is not None:
            node_id, lineage, attempt = place_of(event)
            self._orders[node_id, lineage, attempt + 1] = order

    def _who_asks(self, event: Event, start: int) -> Context | None:
        """The context of a model call: a decision's, a step's, else the run's."""
        deciding = self._decisions.context(field(event, "escalation_id"))
        if deciding is not None or not event.node_id:
            return deciding or self._trace.inside
        return set_span_in_context(self._call(event, start))


def _tag(event: Event) -> str:
    return str(event.__struct_config__.tag)
