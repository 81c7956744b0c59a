"""A collector that speaks OTLP over HTTP on the loopback, and keeps what it is sent.

with collector() as heard:            with collector(status=503) …, collector(deaf=True) …
    … OTEL_EXPORTER_OTLP_ENDPOINT=heard.url …
    heard.spans()
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass
class Heard:
    """What came in: each request's path and headers, and its decoded body."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    def spans(self) -> list[Any]:
        """All spans, as they came over the wire."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resource(self) -> dict[str, str]:
        """Who says it."""
        (first, *_) = self.requests[0].resource_spans
        return {a.key: a.value.string_value for a in first.resource.attributes}


@contextmanager
def collector(*, status: int = 200, deaf: bool = False) -> Iterator[Heard]:
    """A running collector; `deaf` takes requests and never answers while it runs."""
    heard = Heard()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            heard.paths.append(self.path)
            heard.headers.append({k.lower(): v for k, v in self.headers.items()})
            heard.requests.append(ExportTraceServiceRequest.FromString(body))
            if deaf:
                over.wait(20)
                return
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    heard.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
