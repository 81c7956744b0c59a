"""What a request of Claude Code may cost at most, and what an answer says it used. Pure.

    bytes of the request ─▶ most tokens in ┐
    max_tokens ─────────▶ most tokens out ┴▶ worst case        usage of the answer ─▶ Usage

A token is at least a byte of what is sent; an image has a bound of its own. What could cost more
than that, or is charged otherwise than by tokens, is refused: tools that run at the provider,
documents, faster or pinned service, caches kept for an hour.

Read next: `proxy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from nightwarden.agents.meter import UNSEEN_TOKENS
from nightwarden.agents.prices import Price, Usage
from nightwarden.errors import ModelError

IMAGE_TOKENS: Final = 8_000
"""What an image counts as at most, whatever its size."""

_AT_THE_PROVIDER: Final = ("mcp_servers", "container")
_DEARER: Final = {"speed": ("standard",), "inference_geo": ("", "global")}
_OUR_TOOLS: Final = ("custom", "bash_", "text_editor_", "computer_", "memory_", "tool_search_")
_UNBOUNDED: Final = ("document", "search_result", "container_upload")
_AS_THEY_ARE: Final = ("thinking", "redacted_thinking", "image")
"""Parts that are signed, or no text."""

Json = Mapping[str, Any]


def decoded(raw: bytes) -> dict[str, Any]:
    """The body of a request. Raises `ModelError` where it is none."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise ModelError("the request is no JSON object that names a model")
    return body


def most_tokens(body: Json, size: int) -> tuple[int, int]:
    """The most tokens a request of that many bytes is counted as, and the most it brings back.

    Raises `ModelError` for what cannot be held to a budget.
    """
    longest = body.get("max_tokens")
    if not isinstance(longest, int) or isinstance(longest, bool) or longest < 0:
        raise ModelError("the request says not how long its answer may be")
    for name in _AT_THE_PROVIDER:
        if body.get(name):
            raise ModelError(f"{name}: what runs at the provider cannot be held to a budget")
    for name, known in _DEARER.items():
        if body.get(name) is not None and body[name] not in known:
            raise ModelError(f"{name} {body[name]!r} costs more than the price that is known")
    for tool in _objects(body.get("tools")):
        if not str(tool.get("type") or "custom").startswith(_OUR_TOOLS):
            raise ModelError(f"{tool['type']} runs at the provider: it has no bound")
    images = 0
    for block in _blocks(body):
        kind = block.get("type")
        images += kind == "image"
        if kind in _UNBOUNDED:
            raise ModelError(f"a {kind} cannot be held to a budget: only of text and images")
        if (
            isinstance(block.get("cache_control"), dict)
            and block["cache_control"].get("ttl") == "1h"
        ):
            raise ModelError("a cache kept for an hour costs more than the price that is known")
    return size + images * IMAGE_TOKENS + UNSEEN_TOKENS, longest


def worst_micro_usd(price: Price | None, body: Json, size: int) -> int:
    """The worst case of a request: all of it new, or all of it written to a cache.

    Raises `ModelError` as `most_tokens` does, and where there is no price.
    """
    if price is None:
        raise ModelError(f"{body['model']} has no price, and without one no turn is begun")
    tokens_in, tokens_out = most_tokens(body, size)
    plain = Usage(tokens_in=tokens_in, tokens_out=tokens_out)
    cached = Usage(tokens_in=tokens_in, tokens_out=tokens_out, cache_write=tokens_in)
    return max(price.micro_usd(plain), price.micro_usd(cached))


def usage_of(said: object) -> Usage | None:
    """What an answer says it used; None where it says nothing that can be booked."""
    if not isinstance(said, Mapping):
        return None
    new, out = said.get("input_tokens"), said.get("output_tokens")
    read, written = said.get("cache_read_input_tokens"), said.get("cache_creation_input_tokens")
    counts = [0 if count is None else count for count in (read, written)]
    if not all(isinstance(c, int) and c >= 0 for c in (new, out, *counts)):
        return None
    tokens_in = int(new or 0) + sum(counts)
    if tokens_in <= 0:
        return None
    return Usage(
        tokens_in=tokens_in, tokens_out=int(out or 0), cache_read=counts[0], cache_write=counts[1]
    )


class StreamedUsage:
    """Reads the usage out of a stream of events, however it is cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._said: dict[str, Any] = {}
        self.whole = False
        """The answer came to its end."""

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:])

    @property
    def usage(self) -> Usage | None:
        """What was used, once the whole answer is there."""
        return usage_of(self._said) if self.whole else None

    def _event(self, data: bytes) -> None:
        try:
            event = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if not isinstance(event, dict):
            return
        kind = event.get("type")
        self.whole = self.whole or kind == "message_stop"
        message = event.get("message")
        holder = message if kind == "message_start" and isinstance(message, dict) else event
        said = holder.get("usage")
        if kind in ("message_start", "message_delta") and isinstance(said, dict):
            # Counts are totals so far: the last one that is said holds.
            self._said.update({k: v for k, v in said.items() if v is not None})


def masked(body: dict[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    """The request as the provider may read it: without secrets in what is said."""
    return {k: _masked(v, mask) if k in ("messages", "system") else v for k, v in body.items()}


def _masked(value: Any, mask: Callable[[str], str], *, parts: bool = True) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_masked(each, mask, parts=parts) for each in value]
    if not isinstance(value, dict) or (parts and value.get("type") in _AS_THEY_ARE):
        return value
    # What a tool is given may look like a part, and is none.
    return {k: _masked(v, mask, parts=parts and k != "input") for k, v in value.items()}


def _blocks(body: Json) -> Iterator[Json]:
    """All parts of what is said, also those inside the answers of tools; and the tools."""
    yield from _objects(body.get("tools"))
    yield from _inside(body.get("system"))
    for message in _objects(body.get("messages")):
        yield from _inside(message.get("content"))


def _inside(content: object) -> Iterator[Json]:
    for block in _objects(content):
        yield block
        yield from _inside(block.get("content"))


def _objects(value: object) -> Iterator[Json]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))
