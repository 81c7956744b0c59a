"""A run's spans arrive at a real collector, over the wire; and one that fails is no harm.

Issue 4, OpenTelemetry: spans when an exporter is configured. The collector is `collector.py`.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collector import Heard, collector

import nightwarden as nw
from nightwarden import telemetry
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.session import run_on_own_loop, run_session
from nightwarden.testing import InlineExecutor
from nightwarden.testing.loop import VirtualLoop
from nightwarden.verdict import Retry

SECRET = "sk-canary-0123456789"


@nw.node(type="t.Twice", retry_safe=True, label="{x}")
async def twice(x: int, ctx: nw.Context) -> str:
    if x == 777002 and ctx.attempt == 1:
        raise nw.NodeError(f"not with {ctx.secret('KEY')}", code="busy")
    return f"value-{x}"


def session(**options: Any) -> nw.Session:
    with nw.workflow("numbers") as w:
        w.add(twice, id="step", x=w.input("numbers", list[int]).each())
    numbers = [777001, 777002, 777003]
    return nw.Session(w.build(), {"numbers": numbers}, secrets={"KEY": SECRET}, **options)


def traced(environ: dict[str, str], **options: Any) -> tuple[nw.RunResult, list[str], float]:
    """A run with these variables: its result, what was told, and how long closing took."""
    told: list[str] = []
    opened = session(**options)
    spans = telemetry.subscriber(environ, warn=told.append)
    assert spans is not None
    opened.subscribe(spans)
    result = run_session(opened)
    began = time.monotonic()
    spans.close(1.0)
    spans.close(1.0)
    return result, told, time.monotonic() - began


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: a.value for a in span.attributes}


def by_name(heard: Heard, name: str) -> list[Any]:
    return [span for span in heard.spans() if span.name == name]


def test_a_collector_gets_run_invocations_and_decision_over_the_wire(tmp_path: Path) -> None:
    retry = Scripted([Rule(answers=(ScriptedAnswer(Retry(), "again"),))])
    with collector() as heard:
        result, told, _ = traced(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url}, supervise=retry, workdir=tmp_path
        )
    assert (result.status, told) == ("completed", [])
    assert set(heard.paths) == {"/v1/traces"}
    (run,), (decision,), steps = (
        by_name(heard, "run numbers"),
        by_name(heard, "decide step"),
        by_name(heard, "step"),
    )
    assert len(steps) == 4
    assert {span.trace_id for span in heard.spans()} == {run.trace_id}
    assert {span.parent_span_id for span in steps} == {run.span_id}
    failed = next(span for span in steps if span.status.code == 2)
    assert decision.parent_span_id == failed.span_id
    again = next(span for span in steps if span.links)
    assert again.links[0].span_id == decision.span_id
    assert attributes(again)["nightwarden.attempt"].int_value == 2
    assert [v.int_value for v in attributes(again)["nightwarden.lineage"].array_value.values] == [1]
    assert attributes(run)["nightwarden.run.id"].string_value == result.run_id
    assert run.start_time_unix_nano <= failed.start_time_unix_nano
    assert failed.end_time_unix_nano <= run.end_time_unix_nano
    assert heard.resource()["service.name"] == "nightwarden"


def test_neither_a_secret_nor_a_value_goes_over_the_wire(tmp_path: Path) -> None:
    with collector() as heard:
        result, _, _ = traced({"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url}, workdir=tmp_path)
    assert result.status == "failed"
    raw = b"".join(request.SerializeToString() for request in heard.requests)
    assert b"step [2]: not with" in raw
    for hidden in (SECRET.encode(), b"777001", b"777002", b"value-"):
        assert hidden not in raw


def test_the_endpoint_of_traces_is_taken_as_it_stands() -> None:
    with collector() as heard:
        traced({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{heard.url}/my/place"})
    assert set(heard.paths) == {"/my/place"}


def test_a_run_of_many_items_loses_no_span() -> None:
    with nw.workflow("many") as w:
        w.add(twice, id="step", x=w.input("numbers", list[int]).each())
    with collector() as heard:
        opened = nw.Session(w.build(), {"numbers": list(range(3_000))})
        spans = telemetry.subscriber({"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url})
        assert spans is not None
        opened.subscribe(spans)
        assert run_session(opened).status == "completed"
        spans.close(5.0)
    assert len(by_name(heard, "step")) == 3_000


def test_a_collector_that_refuses_costs_one_line_and_not_the_run(tmp_path: Path) -> None:
    with collector(status=400) as heard:
        result, told, _ = traced({"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url}, workdir=tmp_path)
    assert result.status == "failed"
    assert told == [f"telemetry: 4 of 4 spans did not reach {heard.url}"]


def test_a_collector_that_never_answers_holds_nothing_up_beyond_the_limit() -> None:
    with collector(deaf=True) as heard:
        _, told, took_s = traced({"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url})
    assert took_s < 3.0
    assert told == [f"telemetry: 4 of 4 spans did not reach {heard.url}"]


def test_where_no_collector_is_the_address_is_told_without_what_is_secret_in_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://me:{SECRET}@127.0.0.1:{port}"
    _, told, took_s = traced({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    assert took_s < 3.0
    assert told == [f"telemetry: 4 of 4 spans did not reach http://127.0.0.1:{port}"]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, VirtualLoop])
def test_closing_does_not_need_a_thread_to_wait_for_and_does_not_hold_up_the_loop(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def run() -> str:
        opened = session(executor=InlineExecutor())
        spans = telemetry.subscriber({"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url})
        assert spans is not None
        opened.subscribe(spans)
        result = await opened.run()
        await spans.aclose(3.0)
        return result.status

    with collector() as heard:
        assert run_on_own_loop(run(), make_loop=loop) == "failed"
    assert len(by_name(heard, "run numbers")) == 1


SCRIPT = """
import nightwarden as nw

@nw.node(type="t.One")
async def one() -> int:
    return 1

with nw.workflow("w") as w:
    w.add(one, id="one")
print(nw.run(w.build()).status)
"""


def script(**environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_a_process_of_its_own_is_configured_by_its_variables_alone() -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with collector() as heard:
        done = script(
            OTEL_EXPORTER_OTLP_ENDPOINT=heard.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-team=night",
            OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
            OTEL_SERVICE_NAME="nightly",
            TRACEPARENT=f"00-{trace}-{parent}-01",
        )
    assert (done.stdout, done.stderr) == ("completed\n", "")
    assert heard.resource()["service.name"] == "nightly"
    assert heard.headers[0]["x-team"] == "night"
    (run,) = by_name(heard, "run w")
    assert (run.trace_id.hex(), run.parent_span_id.hex()) == (trace, parent)


def test_a_collector_that_is_down_is_one_line_and_no_trace_of_an_exception() -> None:
    with collector(status=500) as heard:
        done = script(OTEL_EXPORTER_OTLP_ENDPOINT=heard.url)
    assert done.stdout == "completed\n"
    assert done.stderr == f"telemetry: 2 of 2 spans did not reach {heard.url}\n"


def test_the_console_exporter_leaves_standard_output_alone() -> None:
    done = script(OTEL_TRACES_EXPORTER="console")
    assert done.stdout == "completed\n"
    assert '"name": "run w"' in done.stderr


@pytest.mark.parametrize("value", ["0.0", "1.0"])
def test_the_sampler_that_is_configured_is_heeded(value: str) -> None:
    with collector() as heard:
        done = script(
            OTEL_EXPORTER_OTLP_ENDPOINT=heard.url,
            OTEL_TRACES_SAMPLER="traceidratio",
            OTEL_TRACES_SAMPLER_ARG=value,
        )
    assert (done.stdout, done.stderr) == ("completed\n", "")
    assert len(heard.spans()) == (0 if value == "0.0" else 2)
