"""A run's events as OpenTelemetry spans (issue 4: run, invocation, decision, model call)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import nightwarden as nw
from nightwarden import telemetry
from nightwarden.events import (
    Event,
    InvocationFailed,
    InvocationStarted,
    InvocationSucceeded,
    RunCompleted,
    RunResumed,
    RunStarted,
    SupervisorDecision,
)
from nightwarden.events.budget import BudgetCommitted, BudgetReserved
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.telemetry.spans import Spans
from nightwarden.testing import InlineExecutor, play
from nightwarden.verdict import Retry, Skip, Substitute

SECRET = "sk-canary-0123456789"


class Collected(NamedTuple):
    """What came out at the end."""

    spans: Sequence[ReadableSpan]

    def of(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.of(name)
        return span

    def below(self, span: ReadableSpan) -> list[str]:
        """The names of a span's children, in order of their start."""
        context = span.context
        children = [s for s in self.spans if s.parent and s.parent.span_id == context.span_id]
        return [s.name for s in sorted(children, key=lambda s: s.start_time or 0)]


class Tracing:
    """Spans that are kept in memory."""

    def __init__(self, run_id: str = "") -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider.get_tracer("test"), run_id=run_id)

    def told(self, *events: Event) -> Collected:
        """What these events come to, in order, a second apart unless they have a time."""
        for number, event in enumerate(events):
            event.at = event.at or f"2026-11-30T10:00:{number:02}.000Z"
            self.spans(event)
        return self.collected()

    def collected(self) -> Collected:
        return Collected(self._exporter.get_finished_spans())


def traced(workflow: Any, inputs: dict[str, object] | None = None, **options: Any) -> Collected:
    """A whole run's spans."""
    tracing = Tracing()
    session = nw.Session(workflow, inputs, executor=InlineExecutor(), run_id="r1", **options)
    session.subscribe(tracing.spans)
    play(session, seed=3)
    return tracing.collected()


def answers(*verdicts: Any) -> Scripted:
    given = tuple(ScriptedAnswer(verdict, "because") for verdict in verdicts)
    return Scripted([Rule(answers=given, repeats=False)])


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {k.removeprefix("nightwarden."): v for k, v in (span.attributes or {}).items()}


def seconds(span: ReadableSpan) -> tuple[float, float]:
    """Start and end, in seconds of the minute the tests' events are in."""
    base = 1_796_032_800_000_000_000  # 2026-11-30T10:00:00Z
    return ((span.start_time or 0) - base) / 1e9, ((span.end_time or 0) - base) / 1e9


# -- steps --


@nw.node(type="t.Double", retry_safe=True)
async def double(x: int) -> int:
    return 2 * x


@nw.node(type="t.Odd", retry_safe=True, label="{x}")
async def odd(x: int, ctx: nw.Context) -> int:
    if x == 2 and ctx.attempt == 1:
        raise nw.NodeError(f"busy, {ctx.secret('KEY')}", code="busy")
    return x


@nw.node(type="t.Paint")
async def paint(x: int, ctx: nw.Context) -> int:
    ctx.spend(0.25, what="paint")
    ctx.assets.write("a.txt", b"abc")
    return x


@nw.node(type="t.Near")
async def near(x: int) -> int:
    raise nw.RecoverableError("nearly", candidate_output=7, code="near")


def fan_out(step: Any) -> Any:
    with nw.workflow("numbers") as w:
        numbers = w.input("numbers", list[int])
        w.add(step, id="step", x=numbers.each())
    return w.build()


def single(step: Any) -> Any:
    with nw.workflow("single") as w:
        w.add(step, id="step", x=w.input("x", int))
    return w.build()


def started(**more: Any) -> RunStarted:
    plain = {"nodes": [{"id": "a", "type": "t.A"}]}
    known: dict[str, Any] = {"definition": plain, "definition_hash": "h", "inputs": {}}
    return RunStarted(run_id="r1", workflow="w", **{**known, **more})


# -- the run and its invocations --


def test_a_run_is_a_span_and_each_invocation_one_below_it() -> None:
    found = traced(fan_out(double), {"numbers": [1, 2, 3]})
    run = found.one("run numbers")
    assert run.parent is None
    assert found.below(run) == ["inputs.numbers[*]", "step", "step", "step"]
    assert len({span.context.trace_id for span in found.spans}) == 1
    assert len(found.spans) == 5


def test_an_invocation_tells_node_type_item_lineage_and_attempt() -> None:
    found = traced(fan_out(double), {"numbers": [1, 2]})
    told = sorted((attributes(span) for span in found.of("step")), key=lambda a: a["lineage"])
    assert told == [
        {"node.id": "step", "node.type": "t.Double", "lineage": (0,), "item": "1", "attempt": 1},
        {"node.id": "step", "node.type": "t.Double", "lineage": (1,), "item": "2", "attempt": 1},
    ]


def test_the_run_tells_what_it_is_and_what_it_came_to() -> None:
    workflow = fan_out(double)
    told = attributes(traced(workflow, {"numbers": [1, 2, 3]}).one("run numbers"))
    assert told == {
        "run.id": "r1",
        "run.workflow": "numbers",
        "run.definition_hash": workflow.digest(),
        "run.resumed": False,
        "run.status": "completed",
        "run.supervised": False,
        "run.succeeded": 4,
    }


def test_money_and_files_are_told_by_invocation_and_run() -> None:
    found = traced(single(paint), {"x": 1})
    assert attributes(found.one("step"))["cost_usd"] == 0.25
    assert attributes(found.one("step"))["assets"] == 1
    assert attributes(found.one("run single"))["run.cost_usd"] == 0.25


def test_a_failed_run_and_its_failed_step_are_errors_with_their_one_line() -> None:
    found = traced(single(near), {"x": 1})
    step, run = found.one("step"), found.one("run single")
    assert (step.status.status_code, step.status.description) == (StatusCode.ERROR, "nearly")
    assert attributes(step)["error.type"] == "RecoverableError"
    assert attributes(step)["signature"] == "node:near"
    assert run.status.status_code is StatusCode.ERROR
    assert "nearly" in (run.status.description or "")
    assert attributes(run)["run.status"] == "failed"
    assert [event.name for event in run.events] == ["stopping"]


def test_a_success_is_no_error_and_sets_no_status() -> None:
    found = traced(single(double), {"x": 1})
    assert {span.status.status_code for span in found.spans} == {StatusCode.UNSET}


# -- times --


def test_times_are_those_of_the_events_and_a_start_is_the_end_less_the_duration() -> None:
    found = Tracing().told(
        started(),
        InvocationSucceeded(node_id="a", attempt=1, duration_s=0.75),
        RunCompleted(),
    )
    assert seconds(found.one("run w")) == (0.0, 2.0)
    assert seconds(found.one("a")) == (0.25, 1.0)


def test_a_start_that_was_told_is_taken_as_it_was_told() -> None:
    found = Tracing().told(
        started(),
        InvocationStarted(node_id="a", attempt=1),
        InvocationFailed(node_id="a", attempt=1, error_type="E", detail="no", duration_s=0.25),
        RunCompleted(),
    )
    assert seconds(found.one("a")) == (1.0, 2.0)


def test_nothing_begins_before_its_run() -> None:
    found = Tracing().told(
        started(at="2026-11-30T10:00:05.000Z"),
        InvocationSucceeded(node_id="a", attempt=1, duration_s=9.0, at="2026-11-30T10:00:05.001Z"),
        RunCompleted(at="2026-11-30T10:00:06.000Z"),
    )
    assert seconds(found.one("a")) == (5.0, 5.001)


def test_a_clock_that_jumps_back_makes_no_span_that_ends_before_it_began() -> None:
    found = Tracing().told(
        started(at="2026-11-30T10:00:09.000Z"),
        InvocationStarted(node_id="a", attempt=1, at="2026-11-30T10:00:10.000Z"),
        InvocationSucceeded(node_id="a", attempt=1, at="2026-11-30T10:00:01.000Z"),
        RunCompleted(at="2026-11-30T10:00:02.000Z"),
    )
    assert seconds(found.one("a")) == (10.0, 10.0)
    assert seconds(found.one("run w")) == (9.0, 10.0)


# -- decisions --


def test_a_decision_lies_below_the_failed_attempt_and_the_next_one_is_linked_to_it() -> None:
    found = traced(
        fan_out(odd),
        {"numbers": [1, 2]},
        supervise=answers(Retry()),
        secrets={"KEY": SECRET},
    )
    first, second = sorted(
        (s for s in found.of("step") if attributes(s)["item"] == "2"),
        key=lambda s: attributes(s)["attempt"],
    )
    decision = found.one("decide step")
    assert found.below(first) == ["decide step"]
    assert sorted(found.below(found.one("run numbers"))) == ["inputs.numbers[*]", *["step"] * 3]
    assert [link.context.span_id for link in second.links] == [decision.context.span_id]
    assert attributes(decision) == {
        "node.id": "step",
        "node.type": "t.Odd",
        "lineage": (1,),
        "item": "2",
        "attempt": 1,
        "escalation.id": "e1",
        "escalation.allowed": ("retry", "skip", "fail"),
        "escalation.retries_left": 2,
        "signature": "node:busy",
        "error.type": "NodeError",
        "decision.verdict": "retry",
        "decision.by": "agent",
        "decision.delay_s": attributes(decision)["decision.delay_s"],
        "decision.outcome": "retried_succeeded",
    }
    assert attributes(found.one("run numbers"))["run.decisions"] == 1


def test_a_decision_ends_with_its_answer_not_with_what_became_of_it() -> None:
    found = traced(single(near), {"x": 1}, supervise=answers(Substitute(outputs={"output": 3})))
    decision, run = found.one("decide step"), found.one("run single")
    assert attributes(decision)["decision.outcome"] == "repair_accepted"
    assert decision.end_time is not None
    assert run.end_time is not None
    assert decision.end_time <= run.end_time
    assert [event.name for event in decision.events] == ["asked"]


def test_a_refused_verdict_is_told_beside_the_one_that_was_applied() -> None:
    found = traced(single(near), {"x": 1}, supervise=answers(Retry()))
    told = attributes(found.one("decide step"))
    assert (told["decision.verdict"], told["decision.asked_for"]) == ("fail", "retry")
    assert told["decision.by"] == "kernel"
    assert told["decision.outcome"] == "stopped"


def test_what_nobody_decided_has_no_decision() -> None:
    found = traced(single(near), {"x": 1})
    assert [span.name for span in found.spans] == ["step", "run single"]


# -- model calls --


class StepFinished(Event, tag="llm_step_finished"):
    step: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""
    response_text: str = ""


def reserved(number: int = 1, **more: Any) -> BudgetReserved:
    return BudgetReserved(budget="b", reservation=number, worst_micro_usd=9_000, **more)


def committed(number: int = 1, **more: Any) -> BudgetCommitted:
    return BudgetCommitted(budget="b", reservation=number, **{"cost_micro_usd": 0, **more})


def test_a_model_call_of_a_step_lies_below_its_invocation_and_tells_tokens_and_cost() -> None:
    found = Tracing().told(
        started(),
        reserved(node_id="a", attempt=1, model="m-1"),
        committed(cost_micro_usd=1_500, tokens_in=10, tokens_out=4),
        InvocationSucceeded(node_id="a", attempt=1, duration_s=2.0),
        RunCompleted(),
    )
    call = found.one("chat m-1")
    assert found.below(found.one("a")) == ["chat m-1"]
    assert call.kind is SpanKind.CLIENT
    assert seconds(call) == (1.0, 2.0)
    assert attributes(call) == {
        "node.id": "a",
        "attempt": 1,
        "cost_usd": 0.0015,
        "booked": "actual",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 4,
    }


def test_a_turn_whose_reservation_told_of_it_is_not_told_twice() -> None:
    at = {"node_id": "a", "attempt": 1}
    found = Tracing().told(
        started(),
        reserved(1, **at),
        committed(1, **at),
        StepFinished(node_id="a", attempt=1),
        StepFinished(node_id="a", attempt=1),
        InvocationSucceeded(node_id="a", attempt=1, duration_s=3.0),
        RunCompleted(),
    )
    assert found.below(found.one("a")) == ["chat", "chat"]
    assert attributes(found.one("run w"))["run.model_steps"] == 2


def test_a_turn_without_a_reservation_is_a_model_call_and_its_words_are_not_told() -> None:
    found = Tracing().told(
        started(),
        InvocationStarted(node_id="a", attempt=1),
        StepFinished(
            node_id="a", attempt=1, input_tokens=3, finish_reason="stop", response_text=SECRET
        ),
        InvocationSucceeded(node_id="a", attempt=1),
        RunCompleted(),
    )
    told = attributes(found.one("chat"))
    assert told["gen_ai.usage.input_tokens"] == 3
    assert told["gen_ai.response.finish_reasons"] == ("stop",)
    assert SECRET not in found.one("chat").to_json()


def test_calls_at_the_same_time_are_told_apart_by_their_reservations() -> None:
    found = Tracing().told(
        started(),
        reserved(1, model="one"),
        reserved(2, model="two"),
        committed(1),
        committed(2),
        RunCompleted(),
    )
    assert seconds(found.one("chat one")) == (1.0, 3.0)
    assert seconds(found.one("chat two")) == (2.0, 4.0)
    assert found.below(found.one("run w")) == ["chat one", "chat two"]


def test_a_model_call_of_a_decision_lies_below_the_decision() -> None:
    tracing = Tracing()
    session = nw.Session(
        single(near), {"x": 1}, executor=InlineExecutor(), supervise=answers(Skip())
    )

    def hand_on(event: Event) -> None:
        if isinstance(event, SupervisorDecision):
            for told in (reserved(escalation_id="e1", model="m"), committed()):
                told.at = event.at
                tracing.spans(told)
        tracing.spans(event)

    session.subscribe(hand_on)
    play(session)
    found = tracing.collected()
    assert found.below(found.one("decide step")) == ["chat m"]


def test_a_call_that_was_never_booked_is_cut_off() -> None:
    found = Tracing().told(started(), reserved(), RunCompleted())
    assert attributes(found.one("chat"))["cut_off"] is True


# -- ends --


def test_what_is_open_when_the_run_ends_is_cut_off_with_it() -> None:
    found = Tracing().told(started(), InvocationStarted(node_id="a", attempt=1), RunCompleted())
    assert attributes(found.one("a"))["cut_off"] is True
    assert seconds(found.one("a")) == (1.0, 2.0)


def test_a_run_without_a_last_event_broke_off() -> None:
    tracing = Tracing()
    tracing.told(started(), InvocationStarted(node_id="a", attempt=1))
    tracing.spans.close()
    run = tracing.collected().one("run w")
    assert (run.status.status_code, run.status.description) == (
        StatusCode.ERROR,
        "the run broke off",
    )
    assert len(tracing.collected().spans) == 2


def test_a_run_that_goes_on_is_a_span_of_its_own_with_the_same_id() -> None:
    found = Tracing(run_id="r1").told(RunResumed(), RunCompleted())
    told = attributes(found.one("run"))
    assert (told["run.id"], told["run.resumed"]) == ("r1", True)


def test_nothing_is_kept_of_what_has_ended() -> None:
    tracing = Tracing()
    tracing.told(started(supervisor="scripted"))
    for number in range(500):
        tracing.told(InvocationSucceeded(node_id="a", lineage=(number,), attempt=1))
    assert tracing.spans._calls == {}
    assert tracing.spans._failed == {}


# -- no values --


def test_no_value_no_label_and_no_secret_stands_in_any_span() -> None:
    found = traced(
        fan_out(odd),
        {"numbers": [1, 2, 424242]},
        supervise=answers(Skip()),
        secrets={"KEY": SECRET},
    )
    whole = "\n".join(span.to_json() for span in found.spans)
    assert SECRET not in whole
    assert "424242" not in whole
    assert "busy, " in whole


# -- switched on and off --


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/x"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console",)),
        ({"OTEL_TRACES_EXPORTER": " otlp , console "}, ("otlp", "console")),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, ()),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, ()),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, ()),
    ],
)
def test_the_environment_alone_says_what_is_exported(
    environ: dict[str, str], names: tuple[str, ...]
) -> None:
    assert telemetry.exporters(environ) == names
    if not names:
        assert telemetry.subscriber(environ) is None


WRONG = [
    (
        {"OTEL_TRACES_EXPORTER": "zipkins"},
        "OTEL_TRACES_EXPORTER names 'zipkins', but its exporter is not installed: there are ",
    ),
    (
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
        "OTEL_EXPORTER_OTLP_ENDPOINT is no address: write http://HOST:PORT",
    ),
    (
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://"},
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address: write http://HOST:PORT",
    ),
    (
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json', but has to be http/protobuf or grpc",
    ),
    (
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
        "OTLP over grpc is configured, but its exporter is not installed: "
        "pip install opentelemetry-exporter-otlp-proto-grpc",
    ),
]


@pytest.mark.parametrize(("environ", "said"), WRONG)
def test_what_cannot_be_had_is_told_in_one_line_and_the_run_goes_on(
    environ: dict[str, str], said: str
) -> None:
    told: list[str] = []
    assert telemetry.subscriber(environ, warn=told.append) is None
    (line,) = told
    assert line.startswith(said)
    assert line.endswith("; the run is not traced")
    assert "\n" not in line


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )


def test_nothing_of_opentelemetry_is_imported_where_nothing_is_configured() -> None:
    done = python(
        "import sys; from nightwarden import telemetry; print(telemetry.subscriber());"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'google'))])"
    )
    assert done.stdout == "None\n[]\n"
    assert done.stderr == ""


def test_a_missing_sdk_is_one_line_that_says_how_to_get_it() -> None:
    done = python(
        "import sys; sys.modules['opentelemetry'] = None;"
        "from nightwarden import telemetry; print(telemetry.subscriber())",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318",
    )
    assert done.stdout == "None\n"
    assert done.stderr == (
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed: "
        "pip install 'nightwarden[otel]'; the run is not traced\n"
    )
