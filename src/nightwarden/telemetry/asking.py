"""The spans of those who are asked: supervisors, and models.

    decide page     from the failure's escalation to the answer; what became of it is known later
      └─ chat …     one call of a model, from its reservation to its booking

A decision lies below the attempt that failed, a model call below whoever asks it.

Read next: `spans.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Tracer, set_span_in_context

from nightwarden.events import Event, SupervisorDecision, SupervisorEscalation, SupervisorOutcome
from nightwarden.telemetry.attributes import (
    Attributes,
    Place,
    dollars,
    field,
    length,
    named,
    place_of,
    usage,
    where,
)
from nightwarden.verdict import Action, action_of


@dataclass(slots=True)
class Trace:
    """Where one run's spans are made: the time it is, when it began, and what it is inside of."""

    tracer: Tracer
    inside: Context | None = None
    now: int = 0
    began: int = 0

    def start(
        self,
        name: str,
        parent: Context | None,
        attributes: Attributes,
        *,
        at: int | None = None,
        link: Link | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """A new span, not before the run itself."""
        return self.tracer.start_span(
            name,
            context=parent,
            kind=kind,
            attributes=attributes,
            links=() if link is None else (link,),
            start_time=max(self.now if at is None else at, self.began),
        )


def cut_off(span: Span, now: int) -> None:
    """End a span whose end was never told."""
    span.set_attribute("nightwarden.cut_off", True)
    span.end(now)


@dataclass(slots=True)
class _Open:
    span: Span
    until: int | None = None


class Decisions:
    """The decisions that are open, by escalation."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._open: dict[str, _Open] = {}

    def context(self, escalation_id: object) -> Context | None:
        """The context of an open decision; None where there is none."""
        found = self._open.get(str(escalation_id or ""))
        return None if found is None else set_span_in_context(found.span)

    def escalated(self, event: SupervisorEscalation, failed: Context | None) -> None:
        """A question; `failed` is the context of the attempt it is about."""
        asked = event.escalation
        attributes = {
            **where(event, asked.node_type),
            **named(
                escalation__id=asked.id,
                escalation__allowed=tuple(str(action) for action in asked.allowed_actions),
                escalation__retries_left=asked.retries_left,
                escalation__caused_by=tuple(asked.caused_by),
                signature=asked.signature,
            ),
            "error.type": asked.error_type,
        }
        span = self._trace.start(f"decide {event.node_id}", failed, attributes)
        self._open[asked.id] = _Open(span)

    def asked(self, escalation_id: str) -> None:
        """Others were decided before it; from here on somebody thinks about this one."""
        found = self._open.get(escalation_id)
        if found is not None:
            found.span.add_event("asked", timestamp=self._trace.now)

    def decided(self, event: SupervisorDecision) -> Link | None:
        """The answer; a link for the attempt it orders, if it does."""
        found, decision = self._open.get(event.escalation_id), event.decision
        if found is None:
            return None
        action, refused = action_of(decision.verdict), decision.asked_for
        found.span.set_attributes(
            named(
                decision__verdict=str(action),
                decision__by=str(decision.decided_by),
                decision__asked_for=None if refused is None else str(action_of(refused)),
                decision__cost_usd=dollars(decision.cost_micro_usd),
                decision__tokens_in=decision.tokens_in or None,
                decision__tokens_out=decision.tokens_out or None,
                decision__model=decision.model,
                decision__delay_s=decision.delay_s,
            )
        )
        found.until = self._trace.now
        return Link(found.span.get_span_context()) if action is Action.RETRY else None

    def concluded(self, event: SupervisorOutcome) -> None:
        """What became of it. The span ended with the answer."""
        found = self._open.pop(event.escalation_id, None)
        if found is not None:
            found.span.set_attribute("nightwarden.decision.outcome", str(event.outcome.kind))
            found.span.end(self._trace.now if found.until is None else found.until)

    def close(self) -> None:
        """The run is over."""
        for found in self._open.values():
            if found.until is None:
                cut_off(found.span, self._trace.now)
            else:
                found.span.end(found.until)
        self._open.clear()


class ModelCalls:
    """The model calls that are open, by reservation. `parent` finds the context of who asks.

    Fields are looked for, not counted on: what a provider does not tell is not in its events.
    """

    def __init__(self, trace: Trace, parent: Callable[[Event, int], Context | None]) -> None:
        self._trace = trace
        self._parent = parent
        self._open: dict[object, Span] = {}
        self._told: Counter[Place] = Counter()

    def reserved(self, event: Event) -> None:
        """Money was put aside: a call begins."""
        self._open[_reservation(event)] = self._start(event, self._trace.now)

    def committed(self, event: Event) -> None:
        """The call is over, and booked."""
        span = self._open.pop(_reservation(event), None)
        if span is None:
            return
        self._told[place_of(event)] += 1
        span.set_attributes(
            {
                **named(
                    cost_usd=dollars(field(event, "cost_micro_usd")), booked=field(event, "booked")
                ),
                **usage(event),
            }
        )
        span.end(self._trace.now)

    def said(self, event: Event) -> None:
        """A turn of an agent; a call of its own, unless its reservation told of it already."""
        place = place_of(event)
        if self._told[place] > 0:
            self._told[place] -= 1
            return
        took = length(float(field(event, "duration_s") or 0))
        span = self._start(event, self._trace.now - took)
        span.set_attributes(usage(event))
        span.end(self._trace.now)

    def forget(self, place: Place) -> None:
        """An invocation is over."""
        self._told.pop(place, None)

    def close(self) -> None:
        """The run is over."""
        for span in self._open.values():
            cut_off(span, self._trace.now)
        self._open.clear()
        self._told.clear()

    def _start(self, event: Event, start: int) -> Span:
        model = str(field(event, "model") or "")
        attributes: dict[str, Any] = {**where(event, ""), "gen_ai.operation.name": "chat"}
        if model:
            attributes["gen_ai.request.model"] = model
        return self._trace.start(
            f"chat {model}".strip(),
            self._parent(event, start),
            attributes,
            at=start,
            kind=SpanKind.CLIENT,
        )


def _reservation(event: Event) -> object:
    return field(event, "budget"), field(event, "reservation")
