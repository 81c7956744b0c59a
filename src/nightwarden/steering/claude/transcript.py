"""From the records of a Claude Code transcript to events: a pure reader.

    assistant  text ─▶ assistant_text    tool_use ─▶ tool_started    its end ─▶ llm_step_finished
    user       text ─▶ user_prompt       tool_result ─▶ tool_called, tool_error
    system     a turn's end ─▶ session_stopped

The format is internal to Claude Code and changes: what is unknown is passed over. One answer is
spread over several lines that repeat its token counts; it is known by message id and request id,
and counted once, as its last line has it. Records are known by uuid within their kind, so that
what was copied or written again counts once. Side-chains are another agent's.

Read next: `observer.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

Record = Mapping[str, Any]

SYNTHETIC: Final = "<synthetic>"
_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_TURN_ENDS: Final = ("turn_duration", "stop_hook_summary")
_MOST_OPEN: Final = 1_000


class Usage(msgspec.Struct):
    """What a session has used. `model_answers` and tokens count each answer once."""

    model_answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    tool_calls: int = 0
    failed_requests: int = 0


class _Answer:
    """An answer of the model; `at` is when the line was written its counts are from.

    Its lines need not lie together: results of its first tools may come in between.
    """

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        self.usage: Mapping[str, int] = {}
        self.at = ""
        self.model = ""
        self.tools = 0
        self.texts: set[str] = set()
        self.told = False


class Transcript:
    """Reads records in order; may read several files of one session. `seq` numbers the events."""

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq
        self._seen: set[tuple[str, str]] = set()
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._open: _Answer | None = None
        self._calls: dict[str, tuple[str, object]] = {}
        self._tool_calls: set[str] = set()
        self._results: set[str] = set()
        self._failed: set[str] = set()

    @property
    def usage(self) -> Usage:
        """What the answers so far have used, by their last lines."""
        found = Usage(
            model_answers=len(self._answers),
            tool_calls=len(self._tool_calls),
            failed_requests=len(self._failed),
        )
        for answer in self._answers.values():
            for name in _COUNTED:
                setattr(found, name, getattr(found, name) + answer.usage.get(name, 0))
        return found

    def take(self, record: Record) -> list[dict[str, Any]]:
        """The events of one record, numbered; none for what was seen before or is not ours."""
        kind = record.get("type")
        if not isinstance(kind, str) or not self._is_new(kind, record):
            return []
        if record.get("isSidechain") or record.get("isMeta") or record.get("isCompactSummary"):
            return []
        message = record.get("message")
        message = message if isinstance(message, Mapping) else {}
        events: list[dict[str, Any]] = []
        if kind == "assistant":
            events += self._assistant(record, message)
        elif kind == "user":
            events += self._close_answer()
            events += self._user(message)
        elif kind == "system":
            events += self._system(record)
        return [self._numbered(event, record) for event in events]

    def _is_new(self, kind: str, record: Record) -> bool:
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return True
        if (kind, uuid) in self._seen:
            return False
        self._seen.add((kind, uuid))
        return True

    def _numbered(self, event: dict[str, Any], record: Record) -> dict[str, Any]:
        self.seq += 1
        at = record.get("timestamp")
        return {"seq": self.seq, "at": at if isinstance(at, str) else "", **event}

    # -- the agent --

    def _assistant(self, record: Record, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if record.get("isApiErrorMessage") or message.get("model") == SYNTHETIC:
            self._failed.add(str(message.get("id") or record.get("uuid") or len(self._failed)))
            yield {"type": "log", "level": "warning", "message": _text(message.get("content"))}
            return
        key = _key(record, message)
        if self._open is None or self._open.key != key:
            yield from self._close_answer()
            self._open = self._answers.setdefault(key, _Answer(key))
        self._count(self._open, record, message)
        for block in _blocks(message.get("content")):
            yield from self._said(block, self._open)
        if message.get("stop_reason") == "end_turn":
            yield from self._close_answer()

    def _count(self, answer: _Answer, record: Record, message: Mapping[str, Any]) -> None:
        """Take the counts of a line, unless it is a copy of one before the last."""
        counts, at = message.get("usage"), record.get("timestamp")
        at = at if isinstance(at, str) else answer.at
        if isinstance(counts, Mapping) and at >= answer.at:
            usable = {n: counts.get(n) for n in _COUNTED}
            answer.usage = {n: v for n, v in usable.items() if type(v) is int}
            answer.at = at
        answer.model = str(message.get("model", ""))

    def _said(self, block: Mapping[str, Any], answer: _Answer) -> Iterator[dict[str, Any]]:
        """A part of an answer, unless it has been read: forks copy, under other uuids perhaps."""
        text = _text(block.get("text")) if block.get("type") == "text" else ""
        if text.strip() and text not in answer.texts:
            answer.texts.add(text)
            yield {"type": "assistant_text", "text": text}
        elif block.get("type") == "tool_use":
            tool, use = str(block.get("name", "")), str(block.get("id", ""))
            if use and use in self._tool_calls:
                return
            self._tool_calls.add(use or f"#{len(self._tool_calls)}")
            answer.tools += 1
            if len(self._calls) >= _MOST_OPEN:
                self._calls.pop(next(iter(self._calls)))
            self._calls[use] = (tool, block.get("input"))
            yield {
                "type": "tool_started",
                "tool": tool,
                "tool_use_id": use,
                "input": block.get("input"),
            }

    def _close_answer(self) -> Iterator[dict[str, Any]]:
        answer, self._open = self._open, None
        if answer is not None and not answer.told:
            answer.told = True
            yield {
                "type": "llm_step_finished",
                "model": answer.model,
                "tool_calls": answer.tools,
                **answer.usage,
            }

    # -- what it is told --

    def _user(self, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        content = message.get("content")
        if isinstance(content, str):
            if content.strip():
                yield {"type": "user_prompt", "text": content}
            return
        for block in _blocks(content):
            if block.get("type") == "tool_result":
                yield from self._result(block)
            elif block.get("type") == "text" and _text(block.get("text")).strip():
                yield {"type": "user_prompt", "text": block["text"]}

    def _result(self, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        use = str(block.get("tool_use_id", ""))
        if use and use in self._results:
            return
        self._results.add(use)
        tool, given = self._calls.pop(use, ("", None))
        event = {"tool": tool, "tool_use_id": use, "input": given}
        text = _text(block.get("content"))
        if block.get("is_error"):
            yield {"type": "tool_error", **event, "error": text}
        else:
            yield {"type": "tool_called", **event, "output": text}

    def _system(self, record: Record) -> Iterator[dict[str, Any]]:
        if record.get("subtype") in _TURN_ENDS:
            yield from self._close_answer()
            if record.get("subtype") == "turn_duration" or not record.get("preventedContinuation"):
                yield {"type": "session_stopped"}


def _key(record: Record, message: Mapping[str, Any]) -> tuple[str, str]:
    """What all lines of an answer have in common; one that names nothing is one by itself."""
    key = (str(message.get("id") or ""), str(record.get("requestId") or ""))
    return key if any(key) else ("", f"uuid {record.get('uuid', '')}")


def _blocks(content: object) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    found = content if isinstance(content, list) else ()
    return [block for block in found if isinstance(block, Mapping)]


def _text(content: object) -> str:
    """The text of a block, of a list of blocks, or of what a tool gave."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _text(content.get("text", ""))
    if isinstance(content, list):
        return "\n".join(part for part in map(_text, content) if part)
    return ""
