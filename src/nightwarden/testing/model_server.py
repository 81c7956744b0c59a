"""A model provider on loopback: real wire protocols, scripted behaviour, no model.

    POST …/v1/messages           Anthropic Messages, JSON and server-sent events
    POST …/chat/completions      OpenAI Chat Completions, both
    POST …/responses             OpenAI Responses, both
    POST …/embeddings            OpenAI Embeddings
    POST …:generateContent       Google Gemini, JSON; …:streamGenerateContent, events
    POST …:batchEmbedContents    Google's vectors

Each request takes the next turn of the script; the last one is kept. The server lives in a
thread of its own, so that it serves tests with a loop, without one, and other processes. It
keeps every request, and notices when a client closes the socket of one that waits.

Read next: `answers.py`, `wire.py`.

    with ModelServer([Call("decide", {…})]) as server: … server.base_url … server.requests
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from nightwarden.testing.answers import USAGE, Answer, Call, Calls, Json, Say, Vectors
from nightwarden.testing.wire import dialect_of, sse, vectors

__all__ = [
    "USAGE",
    "Call",
    "Calls",
    "Cut",
    "Drop",
    "Hang",
    "ModelServer",
    "Request",
    "Say",
    "Script",
    "Status",
    "Vectors",
]


@dataclass(frozen=True)
class Status:
    """The provider answers with a status, and a body of any kind."""

    status: int
    body: str | bytes | Json = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """The provider takes the request and says nothing, or only the beginning of an answer."""

    first: bytes = b""


@dataclass(frozen=True)
class Drop:
    """The provider takes the request and closes the connection, perhaps amid its answer."""

    first: bytes = b""


@dataclass(frozen=True)
class Cut:
    """A streamed answer that breaks off after some of its events."""

    turn: Call | Say
    events: int
    hang: bool = False


Turn = Answer | Vectors | Status | Hang | Drop | Cut
Script = Turn | Callable[["Request"], Turn]


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The body as JSON."""
        return json.loads(self.raw)

    @property
    def text(self) -> str:
        """Everything that was sent, escapes undone, for searching in."""
        return json.dumps(self.body, ensure_ascii=False) + "\n".join(_strings(self.body))

    @property
    def tools(self) -> dict[str, Json]:
        """The tools the model was offered: name → JSON Schema of their parameters."""
        found = [tool.get("function", tool) for tool in self.body.get("tools", ())]
        tools = [each for tool in found for each in tool.get("functionDeclarations", [tool])]
        names = ("input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema")
        return {
            tool["name"]: next((tool[name] for name in names if name in tool), {}) for tool in tools
        }

    @property
    def max_tokens(self) -> int | None:
        """The longest answer that was asked for."""
        names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
        body = {**self.body, **self.body.get("generationConfig", {})}
        return next((body[name] for name in names if name in body), None)

    @property
    def streamed(self) -> bool:
        """Whether events are wanted instead of one answer."""
        return bool(self.body.get("stream")) or ":streamGenerateContent" in self.path


class ModelServer:
    """A provider with a script. Enter it; it is closed with everything that still hangs."""

    def __init__(self, script: Sequence[Script], *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.waiting = threading.Event()
        """A request hangs."""
        self.closed = threading.Event()
        """A client closed the socket of a request that hung."""
        self.closed_at = 0.0
        self._script = list(script)
        self._port = port
        self._ids = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def base_url(self) -> str:
        """The server's address, without a path."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._client, "127.0.0.1", self._port), self._loop
        ).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; False when the connection is not to be used again."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(first.split()[1], headers, raw)
        number = len(self.requests)
        self.requests.append(request)
        turn = self._script[min(number, len(self._script) - 1)]
        if callable(turn):
            turn = turn(request)
        return await self._answer(turn, request, reader, writer)

    async def _answer(
        self,
        turn: Turn,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        match turn:
            case Status():
                body = turn.body if isinstance(turn.body, (str, bytes)) else json.dumps(turn.body)
                writer.write(_http(turn.status, body, turn.headers))
                return True
            case Vectors():
                writer.write(_http(200, json.dumps(vectors(turn, request.body))))
                return True
            case Hang():
                writer.write(turn.first)
                await self._hang(reader)
                return False
            case Drop():
                writer.write(turn.first)
                return False
            case Cut():
                await self._cut(turn, request, reader, writer)
                return False
        dialect = dialect_of(request.path)
        if not request.streamed:
            writer.write(_http(200, json.dumps(dialect.whole(turn, next(self._ids)))))
            return True
        events = dialect.events(turn, next(self._ids))
        writer.write(_http(200, sse(events), {"content-type": "text/event-stream"}))
        return True

    async def _cut(
        self,
        turn: Cut,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        dialect = dialect_of(request.path)
        events = list(dialect.events(turn.turn, next(self._ids)))[: turn.events]
        head = (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999999\r\n\r\n"
        )
        writer.write(head.encode() + sse(iter(events), whole=False).encode())
        await writer.drain()
        if turn.hang:
            await self._hang(reader)

    async def _hang(self, reader: asyncio.StreamReader) -> None:
        """Wait until the client has had enough."""
        self.waiting.set()
        await reader.read()
        self.closed_at = time.monotonic()
        self.closed.set()


def _http(status: int, body: str | bytes, headers: Mapping[str, str] | None = None) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    given = {
        "content-type": "application/json",
        **{k.lower(): v for k, v in (headers or {}).items()},
    }
    lines = [f"HTTP/1.1 {status} STUB", *(f"{k}: {v}" for k, v in given.items())]
    return "\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
