"""The demo site: two hundred pages on 127.0.0.1, some of them broken on purpose.

    with DemoSite(cache_dir) as site:
        site.urls                       # ['http://127.0.0.1:43121/p/1', …, '…/p/200']

A small HTTP/1.1 server on an event loop of its own, in a thread of its own. A request for a
page meets the page's fault as long as that holds; requests are counted page by page, so the
same run meets the same faults, in whatever order its requests arrive.

Read next: `examples/pages.yaml`, which reads these pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final

from nightwarden.demo.faults import FAULTS, Fault, Kind, spoil
from nightwarden.demo.pages import MODULES, page_files
from nightwarden.errors import RunError

HOST: Final = "127.0.0.1"
STOP_TIMEOUT_S: Final = 10.0
_REFUSALS: Final = {
    Kind.BUSY: (HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": "1"}),
    Kind.UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, {}),
    Kind.LOCKED: (HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Basic realm="demo"'}),
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """What goes back. `sent` is how much of the body does, None for all of it."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None

    def head(self, *, keep_alive: bool) -> bytes:
        """Status line and headers."""
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            "Content-Type: text/html; charset=utf-8",
            f"Content-Length: {len(self.body)}",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class DemoSite:
    """Serves the pages while its `with` block runs.

    `cache_dir` keeps the rendered pages; `faults` False serves them as they are. Each answer
    takes `latency_s`, as if it came from afar. Raises `RunError` when the pages cannot be
    rendered or no port can be had.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        faults: bool | Mapping[int, Fault] = True,
        latency_s: float = 0.0,
    ) -> None:
        self._cache_dir = cache_dir
        self._faults = faults if isinstance(faults, Mapping) else FAULTS if faults else {}
        self._latency_s = latency_s
        self._requests: Counter[int] = Counter()
        self._files: Sequence[Path] = ()
        self._address = ""
        self._failure: OSError | None = None
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def urls(self) -> list[str]:
        """The addresses of all pages, in order."""
        return [f"{self._address}/p/{n}" for n in range(1, len(MODULES) + 1)]

    @property
    def address(self) -> str:
        """The address of the site: a list of its pages."""
        return self._address

    def requests(self, page: int) -> int:
        """How often a page has been asked for."""
        return self._requests[page]

    def __enter__(self) -> DemoSite:
        self._files = page_files(self._cache_dir)
        self._thread = threading.Thread(target=self._run, name="demo-site", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise RunError(
                f"the demo site found no free port on {HOST}: {self._failure}"
            ) from self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        self._address = f"http://{HOST}:{port}"
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()
        # `asyncio.run` cancels the connections that hang; waiting for them would not end.
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or is no HTTP client
        except asyncio.CancelledError:
            pass  # the site closes
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Whether the connection may carry another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, _, rest = head.partition(" ")
        path = rest.partition(" ")[0]
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        fault = self._meet(path) if method in ("GET", "HEAD") else None
        if fault is Kind.HANG:
            await reader.read()  # ends when the client hangs up
            return False
        if fault is Kind.RESET:
            _reset(writer)
            return False
        answer = self._answer(method, path, fault)
        keep_alive = answer.sent is None and "connection: close" not in head.lower()
        writer.write(answer.head(keep_alive=keep_alive))
        if method != "HEAD":
            writer.write(answer.body[: answer.sent])
        await writer.drain()
        return keep_alive

    def _meet(self, path: str) -> Kind | None:
        """Count a request for a page; which fault it meets, if any."""
        page = _page_number(path)
        if page is None:
            return None
        self._requests[page] += 1
        fault = self._faults.get(page)
        return fault.kind if fault and fault.holds(self._requests[page]) else None

    def _answer(self, method: str, path: str, fault: Kind | None) -> _Answer:
        if method not in ("GET", "HEAD"):
            return _message(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"})
        if path == "/":
            return _Answer(HTTPStatus.OK, self._index())
        page = _page_number(path)
        if page is None:
            return _message(HTTPStatus.NOT_FOUND, {})
        if fault in _REFUSALS:
            return _message(*_REFUSALS[fault])
        text = self._files[page - 1].read_text(encoding="utf-8")
        body = (spoil(text, fault) if fault else text).encode()
        return _Answer(
            HTTPStatus.OK, body, sent=len(body) // 2 if fault is Kind.TRUNCATED else None
        )

    def _index(self) -> bytes:
        items = (
            f'<li><a href="/p/{n}">{html.escape(name)}</a></li>'
            for n, name in enumerate(MODULES, start=1)
        )
        return ("<title>All pages</title><ol>" + "\n".join(items) + "</ol>").encode()


def _page_number(path: str) -> int | None:
    """The page a path asks for, from 1; None where there is no such page."""
    head, _, number = path.partition("/p/")
    if head or len(number) > 3 or not number.isascii() or not number.isdecimal():
        return None
    return int(number) if 1 <= int(number) <= len(MODULES) else None


def _message(status: HTTPStatus, headers: Mapping[str, str]) -> _Answer:
    text = f"<title>{status.value} {status.phrase}</title><p>{status.description}</p>"
    return _Answer(status, text.encode(), headers)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of a farewell."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    writer.transport.abort()
