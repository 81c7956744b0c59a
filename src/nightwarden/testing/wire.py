"""How the providers speak: what a model's turn looks like on the wire, whole and as events.

    Anthropic Messages · OpenAI Chat Completions, Responses, Embeddings · Google Gemini

Read next: `answers.py`, `model_server.py`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from nightwarden.testing.answers import Answer, Json, Say, Vectors, parts_of


class _Anthropic:
    def whole(self, turn: Answer, number: int) -> Json:
        said, calls = parts_of(turn)
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

    def _stop(self, turn: Answer, calls: Sequence[object]) -> str:
        if isinstance(turn, Say) and turn.stop != "end":
            return turn.stop
        return "tool_use" if calls else "end_turn"

    def events(self, turn: Answer, number: int) -> Iterator[Json]:
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
        empty: Json = {"text": ""} if text else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        if text:
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


class _Chat:
    def whole(self, turn: Answer, number: int) -> Json:
        said, calls = parts_of(turn)
        message: dict[str, Any] = {"role": "assistant", "content": said or None}
        if calls:
            message["tool_calls"] = self._calls(calls, number)
        choice = {
            "index": 0,
            "finish_reason": self._finish(turn, calls),
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

    def events(self, turn: Answer, number: int) -> Iterator[Json]:
        said, calls = parts_of(turn)
        delta: dict[str, Any] = {"role": "assistant", "content": said or None}
        if calls:
            listed = self._calls(calls, number)
            delta["tool_calls"] = [{**call, "index": i} for i, call in enumerate(listed)]
        yield self._chunk(number, [{"index": 0, "delta": delta, "finish_reason": None}])
        finish = self._finish(turn, calls)
        yield self._chunk(number, [{"index": 0, "delta": {}, "finish_reason": finish}])
        if turn.usage is not None:
            yield {**self._chunk(number, []), "usage": self._usage(turn.usage)}

    def _finish(self, turn: Answer, calls: Sequence[object]) -> str:
        if isinstance(turn, Say) and turn.stop != "end":
            return turn.stop
        return "tool_calls" if calls else "stop"

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
    def whole(self, turn: Answer, number: int) -> Json:
        said, calls = parts_of(turn)
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

    def events(self, turn: Answer, number: int) -> Iterator[Json]:
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
        empty: Json = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
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
    def whole(self, turn: Answer, number: int) -> Json:
        said, calls = parts_of(turn)
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

    def events(self, turn: Answer, number: int) -> Iterator[Json]:
        whole = dict(self.whole(turn, number))
        usage = whole.pop("usageMetadata", None)
        (candidate,) = whole["candidates"]
        open_end = {k: v for k, v in candidate.items() if k != "finishReason"}
        yield {**whole, "candidates": [open_end]}
        end = {**candidate, "content": {"role": "model", "parts": []}}
        yield {**whole, "candidates": [end], **({"usageMetadata": usage} if usage else {})}


class Dialect(Protocol):
    """How one provider's answers look. `number` makes their ids."""

    def whole(self, turn: Answer, number: int) -> Json:
        """An answer as one document."""
        ...

    def events(self, turn: Answer, number: int) -> Iterator[Json]:
        """The same answer, streamed."""
        ...


_DIALECTS: Mapping[str, Dialect] = {
    "/messages": _Anthropic(),
    "/chat/completions": _Chat(),
    "/responses": _Responses(),
    ":generateContent": _Google(),
    ":streamGenerateContent": _Google(),
}


def dialect_of(path: str) -> Dialect:
    """How whoever asks at this path is answered."""
    plain = path.partition("?")[0]
    return next(found for end, found in _DIALECTS.items() if plain.endswith(end))


def vectors(turn: Vectors, body: Json) -> Json:
    """The answer to a request for vectors: Google's to one of its batches, else OpenAI's."""
    if "requests" in body:
        return {"embeddings": [_google_vector(turn, asked) for asked in body["requests"]]}
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    size = body.get("dimensions") or turn.size
    data = [
        {"object": "embedding", "index": i, "embedding": Vectors(size).of(text)}
        for i, text in enumerate(texts)
    ]
    made: dict[str, Any] = {"object": "list", "model": "stub", "data": data}
    if turn.usage is not None:
        made["usage"] = {"prompt_tokens": turn.usage, "total_tokens": turn.usage}
    return made


def _google_vector(turn: Vectors, asked: Json) -> Json:
    text = "".join(part.get("text", "") for part in asked["content"]["parts"])
    return {"values": Vectors(asked.get("outputDimensionality") or turn.size).of(text)}


def sse(events: Iterator[Json], *, whole: bool = True) -> str:
    """Events as a server sends them."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    if whole and any('"chat.completion.chunk"' in line for line in lines):
        lines.append("data: [DONE]\n\n")
    return "".join(lines)
