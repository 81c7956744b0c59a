"""A model provider on loopback: real wire protocols, scripted behaviour, no model.

    POST …/v1/messages           Anthropic Messages, JSON and server-sent events
    POST …/chat/completions      OpenAI Chat Completions, both
    POST …/responses             OpenAI Responses, both
    POST …:generateContent       Google Gemini, JSON; …:streamGenerateContent, events

Each request takes the next turn of the script; the last one is kept. The server lives in a
thread of its own, so that it serves tests with a loop, without one, and other processes. It
keeps every request, and notices when a client closes the socket of one that waits.

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

Json = Mapping[str, Any]
USAGE = (1_000, 50)


@dataclass(frozen=True)
class Call:
    """The model calls a tool. `usage` is (in, out) tokens; None where the provider does not say."""

    name: str
    arguments: Json
    usage: tuple[int, int] | None = USAGE


@dataclass(frozen=True)
class Calls:
    """The model calls several tools at once."""

    calls: Sequence[tuple[str, Json]]
    usage: tuple[int, int] | None = USAGE


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str
    usage: tuple[int, int] | None = USAGE
    stop: str = "end"


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


Turn = Call | Calls | Say | Status | Hang | Drop | Cut
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

    def __init__(self, script: Sequence[Script]) -> None:
        self.requests: list[Request] = []
        self.waiting = threading.Event()
        """A request hangs."""
        self.closed = threading.Event()
        """A client closed the socket of a request that hung."""
        self.closed_at = 0.0
        self._script = list(script)
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
            asyncio.start_server(self._client, "127.0.0.1", 0), self._loop
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
        protocol = _protocol(request)
        if not request.streamed:
            writer.write(_http(200, json.dumps(protocol.whole(turn, next(self._ids)))))
            return True
        events = protocol.events(turn, next(self._ids))
        writer.write(_http(200, _sse(events), {"content-type": "text/event-stream"}))
        return True

    async def _cut(
        self,
        turn: Cut,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        protocol = _protocol(request)
        events = list(protocol.events(turn.turn, next(self._ids)))[: turn.events]
        head = (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999999\r\n\r\n"
        )
        writer.write(head.encode() + _sse(iter(events)).encode())
        await writer.drain()
        if turn.hang:
            await self._hang(reader)

    async def _hang(self, reader: asyncio.StreamReader) -> None:
        """Wait until the client has had enough."""
        self.waiting.set()
        await reader.read()
        self.closed_at = time.monotonic()
        self.closed.set()


# -- the protocols --


def _parts(turn: Turn) -> tuple[str, list[tuple[str, Json]]]:
    """What is said, and which tools are called."""
    match turn:
        case Call():
            return "", [(turn.name, turn.arguments)]
        case Calls():
            return "", list(turn.calls)
        case Say():
            return turn.text, []
    raise AssertionError(turn)


class _Anthropic:
    def whole(self, turn: Any, number: int) -> Json:
        said, calls = _parts(turn)
        content: list[Json] = [{"type": "text", "text": said}] if said else []
        for i, (name, arguments) in enumerate(calls):
            content.append(
                {"type": "tool_use", "id": f"toolu_{number}_{i}", "name": name, "input": arguments}
            )
        message: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "stub",
            "content": content,
            "stop_reason": self._stop(turn, calls),
            "stop_sequence": None,
        }
        if turn.usage is not None:
            message["usage"] = {"input_tokens": turn.usage[0], "output_tokens": turn.usage[1]}
        return message

    def _stop(self, turn: Any, calls: Sequence[object]) -> str:
        if isinstance(turn, Say) and turn.stop != "end":
            return turn.stop
        return "tool_use" if calls else "end_turn"

    def events(self, turn: Any, number: int) -> Iterator[Json]:
        whole = self.whole(turn, number)
        usage = whole.get("usage", {})
        start = {
            **whole,
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 0},
        }
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(whole["content"]):
            yield from self._block(index, block)
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": usage.get("output_tokens", 0)},
        }
        yield {"type": "message_stop"}

    def _block(self, index: int, block: Json) -> Iterator[Json]:
        text = block["type"] == "text"
        empty = {"text": ""} if text else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        if text:
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


class _Chat:
    def whole(self, turn: Any, number: int) -> Json:
        said, calls = _parts(turn)
        message: dict[str, Any] = {"role": "assistant", "content": said or None}
        if calls:
            message["tool_calls"] = self._calls(calls, number)
        choice = {
            "index": 0,
            "finish_reason": "tool_calls" if calls else "stop",
            "message": message,
        }
        made: dict[str, Any] = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "stub",
            "choices": [choice],
        }
        if turn.usage is not None:
            made["usage"] = self._usage(turn.usage)
        return made

    def events(self, turn: Any, number: int) -> Iterator[Json]:
        said, calls = _parts(turn)
        delta: dict[str, Any] = {"role": "assistant", "content": said or None}
        if calls:
            listed = self._calls(calls, number)
            delta["tool_calls"] = [{**call, "index": i} for i, call in enumerate(listed)]
        yield self._chunk(number, [{"index": 0, "delta": delta, "finish_reason": None}])
        finish = "tool_calls" if calls else "stop"
        yield self._chunk(number, [{"index": 0, "delta": {}, "finish_reason": finish}])
        if turn.usage is not None:
            yield {**self._chunk(number, []), "usage": self._usage(turn.usage)}

    def _calls(self, calls: Sequence[tuple[str, Json]], number: int) -> list[Json]:
        return [
            {
                "id": f"call_{number}_{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for i, (name, arguments) in enumerate(calls)
        ]

    def _chunk(self, number: int, choices: Sequence[Json]) -> Json:
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "stub",
            "choices": list(choices),
        }

    def _usage(self, usage: tuple[int, int]) -> Json:
        return {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }


class _Responses:
    def whole(self, turn: Any, number: int) -> Json:
        said, calls = _parts(turn)
        output: list[Json] = []
        if said:
            text = {"type": "output_text", "text": said, "annotations": []}
            output.append(self._item("message", f"m_{number}", role="assistant", content=[text]))
        for i, (name, arguments) in enumerate(calls):
            ids = {"call_id": f"call_{number}_{i}", "name": name}
            output.append(
                self._item(
                    "function_call", f"f_{number}_{i}", arguments=json.dumps(arguments), **ids
                )
            )
        made: dict[str, Any] = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "stub",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        if turn.usage is not None:
            made["usage"] = {
                "input_tokens": turn.usage[0],
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": turn.usage[1],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": sum(turn.usage),
            }
        return made

    def events(self, turn: Any, number: int) -> Iterator[Json]:
        whole = self.whole(turn, number)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        numbers = itertools.count()
        yield {"type": "response.created", "response": begun, "sequence_number": next(numbers)}
        for i, item in enumerate(whole["output"]):
            for kind, about in self._steps(item):
                yield {
                    "type": f"response.{kind}",
                    "output_index": i,
                    "sequence_number": next(numbers),
                    **about,
                }
        yield {"type": "response.completed", "response": whole, "sequence_number": next(numbers)}

    def _steps(self, item: Json) -> Iterator[tuple[str, Json]]:
        empty = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield "output_item.added", {"item": {**item, **empty, "status": "in_progress"}}
        if item["type"] == "function_call":
            arguments = item["arguments"]
            about = {"item_id": item["id"]}
            yield "function_call_arguments.delta", {**about, "delta": arguments}
            yield (
                "function_call_arguments.done",
                {**about, "arguments": arguments, "name": item["name"]},
            )
        else:
            part = item["content"][0]
            about = {"item_id": item["id"], "content_index": 0}
            yield "content_part.added", {**about, "part": {**part, "text": ""}}
            yield "output_text.delta", {**about, "delta": part["text"], "logprobs": []}
            yield "output_text.done", {**about, "text": part["text"], "logprobs": []}
            yield "content_part.done", {**about, "part": part}
        yield "output_item.done", {"item": item}

    def _item(self, kind: str, identity: str, **fields: Any) -> Json:
        return {"type": kind, "id": identity, "status": "completed", **fields}


class _Google:
    def whole(self, turn: Any, number: int) -> Json:
        said, calls = _parts(turn)
        parts: list[Json] = [{"text": said}] if said else []
        parts += [{"functionCall": {"name": name, "args": args}} for name, args in calls]
        content = {"role": "model", "parts": parts}
        made: dict[str, Any] = {
            "responseId": f"g_{number}",
            "modelVersion": "stub",
            "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        }
        if turn.usage is not None:
            made["usageMetadata"] = {
                "promptTokenCount": turn.usage[0],
                "candidatesTokenCount": turn.usage[1],
                "totalTokenCount": sum(turn.usage),
            }
        return made

    def events(self, turn: Any, number: int) -> Iterator[Json]:
        whole = dict(self.whole(turn, number))
        usage = whole.pop("usageMetadata", None)
        (candidate,) = whole["candidates"]
        open_end = {k: v for k, v in candidate.items() if k != "finishReason"}
        yield {**whole, "candidates": [open_end]}
        end = {**candidate, "content": {"role": "model", "parts": []}}
        yield {**whole, "candidates": [end], **({"usageMetadata": usage} if usage else {})}


_PROTOCOLS: Mapping[str, Any] = {
    "/messages": _Anthropic(),
    "/chat/completions": _Chat(),
    "/responses": _Responses(),
    ":generateContent": _Google(),
    ":streamGenerateContent": _Google(),
}


def _protocol(request: Request) -> Any:
    path = request.path.partition("?")[0]
    return next(found for end, found in _PROTOCOLS.items() if path.endswith(end))


def _sse(events: Iterator[Json]) -> str:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    if any('"chat.completion.chunk"' in line for line in lines):
        lines.append("data: [DONE]\n\n")
    return "".join(lines)


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
