"""Where spans go: the exporters the environment names, sent to in batches by their own threads.

    Spans ─▶ tally ─▶ queue ─▶ exporter, counted ─▶ a collector

A collector that is down, slow or not there never holds up a run: what waits is bounded, closing
has a time limit, and one line at the end says how much did not arrive.

Imports OpenTelemetry: only for whoever has it configured. Read next: `spans.py`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from nightwarden.events import Event
from nightwarden.telemetry import ENDPOINTS, EXPORTER, INSTALL, Warn
from nightwarden.telemetry.spans import Spans
from nightwarden.version import __version__

CLOSE_S: Final = 3.0
"""How long the last spans may take to be sent."""

_WAITING: Final = 16_384
"""Spans that may wait; a run makes them faster than OpenTelemetry's own 2,048 allows for."""

_GROUP: Final = "opentelemetry_traces_exporter"
_PROTOCOLS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class NotToBeHad(Exception):
    """An exporter that is configured and cannot be made; the message is the reason."""


class Telemetry:
    """The spans of one run on their way. Call it with every event; close it once, at the end."""

    def __init__(
        self,
        exporters: Iterable[SpanExporter],
        *,
        parent: Context | None = None,
        run_id: str = "",
        queue: int | None = _WAITING,
        warn: Warn,
    ) -> None:
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._tally = _Tally()
        self._counted = [_Counted(exporter) for exporter in exporters]
        self._warn = warn
        self._closed = False
        self._provider.add_span_processor(self._tally)
        for counted in self._counted:
            self._provider.add_span_processor(_batched(counted, queue))
        tracer = self._provider.get_tracer("nightwarden", __version__)
        self._spans = Spans(tracer, parent=parent, run_id=run_id)

    def __call__(self, event: Event) -> None:
        """Take the next event of the run."""
        self._spans(event)

    async def aclose(self, limit_s: float = CLOSE_S) -> None:
        """`close` without holding up the loop, where the loop can wait for a thread."""
        if getattr(asyncio.get_running_loop(), "waits", True):
            await asyncio.to_thread(self.close, limit_s)
        else:
            self.close(limit_s)

    def close(self, limit_s: float = CLOSE_S) -> None:
        """Send what is left, no longer than `limit_s`; blocks. A second time changes nothing."""
        if self._closed:
            return
        self._closed = True
        self._spans.close()
        # The SDK's own limits are minutes in the worst case, and differ between versions.
        sending = threading.Thread(
            target=self._provider.shutdown, name="nightwarden-telemetry", daemon=True
        )
        sending.start()
        sending.join(limit_s)
        for counted in self._counted:
            lost = self._tally.spans - counted.sent
            if lost > 0:
                self._warn(
                    f"telemetry: {lost:,} of {self._tally.spans:,} spans did not reach "
                    f"{counted.place}"
                )


def open_telemetry(
    names: Sequence[str], environ: Mapping[str, str], run_id: str, warn: Warn
) -> Telemetry | None:
    """Telemetry for these exporters; None, and one line told, where one cannot be had."""
    # Without a handler of its own, what the SDK logs would stand in the middle of the run's lines.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    try:
        exporters = [_exporter(name, environ) for name in names]
        return Telemetry(
            exporters,
            parent=_outer(environ),
            run_id=run_id,
            queue=None if environ.get("OTEL_BSP_MAX_QUEUE_SIZE") else _WAITING,
            warn=warn,
        )
    except NotToBeHad as error:
        warn(f"{error}; the run is not traced")
    except Exception as error:
        # Exporters come from anywhere, and read variables of their own.
        warn(f"telemetry cannot be set up: {type(error).__name__}: {error}; the run is not traced")
    return None


def _exporter(name: str, environ: Mapping[str, str]) -> SpanExporter:
    """Raises `NotToBeHad`, and whatever an exporter raises."""
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr)
    if name == "otlp":
        return _otlp(environ)
    return _installed(name, f"{EXPORTER} names {name!r}")()


def _otlp(environ: Mapping[str, str]) -> SpanExporter:
    variable, protocol = _first(
        environ, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    protocol = protocol or "http/protobuf"
    if protocol not in _PROTOCOLS:
        raise NotToBeHad(f"{variable} is {protocol!r}, but has to be {' or '.join(_PROTOCOLS)}")
    make = _installed(_PROTOCOLS[protocol], f"OTLP over {protocol} is configured")
    variable, endpoint = _first(environ, *ENDPOINTS)
    if not endpoint:
        return make()
    if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).netloc:
        raise NotToBeHad(f"{variable} is no address: write http://HOST:PORT")
    if protocol == "http/protobuf" and variable == ENDPOINTS[1]:
        endpoint = endpoint.rstrip("/") + "/v1/traces"
    return make(endpoint=endpoint)


def _installed(name: str, why: str) -> Callable[..., SpanExporter]:
    """The class of an installed exporter."""
    for point in entry_points(group=_GROUP, name=name):
        made: Callable[..., SpanExporter] = point.load()
        return made
    if name in _PROTOCOLS.values():
        package = f"opentelemetry-exporter-{name.replace('_', '-')}"
        remedy = INSTALL if name == "otlp_proto_http" else f"pip install {package}"
    else:
        known = sorted({point.name for point in entry_points(group=_GROUP)} | {"otlp"})
        remedy = f"there are {', '.join(known)}"
    raise NotToBeHad(f"{why}, but its exporter is not installed: {remedy}")


def _first(environ: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first variable that is set, and its value."""
    for name in names:
        value = environ.get(name, "").strip()
        if value:
            return name, value
    return names[-1], ""


def _outer(environ: Mapping[str, str]) -> Context | None:
    """What the run is part of: the caller's own span, else the one TRACEPARENT names."""
    if get_current_span().get_span_context().is_valid:
        return None  # the current context is taken anyway
    carrier = {name: environ.get(name.upper(), "") for name in ("traceparent", "tracestate")}
    return TraceContextTextMapPropagator().extract(carrier)


def _resource() -> Resource:
    """Who says it: this service, unless the environment has another name for it."""
    found = Resource.create({"service.version": __version__})
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        found = found.merge(Resource({"service.name": "nightwarden"}))
    return found


def _batched(exporter: SpanExporter, queue: int | None) -> BatchSpanProcessor:
    try:
        return BatchSpanProcessor(exporter, max_queue_size=queue)
    except ValueError:  # OTEL_BSP_MAX_EXPORT_BATCH_SIZE asks for more than that at once
        return BatchSpanProcessor(exporter)


class _Tally(SpanProcessor):
    """Counts the spans that should arrive."""

    spans = 0

    def on_end(self, span: ReadableSpan) -> None:
        """One more."""
        context = span.context
        self.spans += context is not None and context.trace_flags.sampled


class _Counted(SpanExporter):
    """An exporter that knows how many spans it got rid of."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.sent = 0
        self._exporter = exporter

    @property
    def place(self) -> str:
        """Where they go, without anything secret that stands in the address."""
        parts = urlsplit(str(getattr(self._exporter, "_endpoint", "")))
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}" if host else type(self._exporter).__name__

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand them on."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return result

    def shutdown(self) -> None:
        """No more will come."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter itself holds."""
        return self._exporter.force_flush(timeout_millis)
