"""What Claude Code says while it works, as the few facts a piece of work is made of. Pure.

    one JSON object a line ─▶ Saying.hear ─▶ Step · Answered · Ended

An answer of the model comes as several lines, one for each of its parts, under one id; it is one
`Step`, said once, when it is whole. What parts of the program say among themselves is passed over.

Read next: `working.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ANSWER: Final = "StructuredOutput"
"""The tool a judge answers by."""

_OWN_WORDS: Final = "<synthetic>"
"""The model of what the program says itself, of an error for instance."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Called:
    """A tool the model asks for."""

    use_id: str
    tool: str
    input: object


@dataclass(frozen=True, slots=True)
class Step:
    """The model answered: what it said, and which tools it asks for."""

    text: str
    calls: tuple[Called, ...]


@dataclass(frozen=True, slots=True)
class Late:
    """A tool the model asks for in an answer that seemed to be whole."""

    call: Called


@dataclass(frozen=True, slots=True)
class Answered:
    """A tool has answered, or could not do what it was asked for."""

    use_id: str
    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The program has nothing more to do. `subtype` says why, `status` is the provider's."""

    text: str = ""
    answer: object = None
    failed: bool = False
    subtype: str = ""
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Retrying:
    """A request failed, with this status of the provider's, and will be tried again."""

    status: int | None


Said = Step | Late | Answered | Retrying | Ended


@dataclass(slots=True)
class _Open:
    """An answer that is still being said."""

    message_id: str
    texts: list[str] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)


class Saying:
    """Follows one session of the program."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._last = ""

    def hear(self, message: Json) -> list[Said]:
        """What a line says. Lines of kinds that are not known say nothing."""
        if message.get("parent_tool_use_id"):
            return []
        match message.get("type"):
            case "assistant":
                return list(self._part(_mapping(message.get("message"))))
            case "stream_event" if _mapping(message.get("event")).get("type") == "message_stop":
                return list(self._whole())
            case "user":
                return [*self._results(_mapping(message.get("message")))]
            case "system" if message.get("subtype") == "api_retry":
                return [Retrying(_status(message.get("error_status")))]
            case "result":
                return [*self._whole(), _ended(message)]
        return []

    def _part(self, said: Json) -> Iterator[Said]:
        if said.get("model") == _OWN_WORDS:
            return
        message_id = str(said.get("id") or "")
        texts, calls = _parts(said)
        if message_id and message_id == self._last:
            yield from (Late(call) for call in calls)
            return
        if self._open is not None and self._open.message_id != message_id:
            yield from self._whole()
        if self._open is None:
            self._open = _Open(message_id)
        self._open.texts += texts
        self._open.calls += calls

    def _whole(self) -> Iterator[Said]:
        found, self._open = self._open, None
        if found is not None:
            self._last = found.message_id
            yield Step("\n".join(found.texts).strip(), tuple(found.calls))

    def _results(self, said: Json) -> Iterator[Said]:
        results = [p for p in _list(said.get("content")) if p.get("type") == "tool_result"]
        if results:
            yield from self._whole()
        for part in results:
            text = as_text(part.get("content"))
            use_id = str(part.get("tool_use_id") or "")
            yield Answered(use_id, text, failed=part.get("is_error") is True)


def as_text(content: object) -> str:
    """What a tool gave, as text."""
    if isinstance(content, str):
        return content
    shown = (
        str(part.get("text") or "")
        if part.get("type") == "text"
        else f"({part.get('type')}, which cannot be shown)"
        for part in _list(content)
    )
    return "\n".join(shown)


def _parts(said: Json) -> tuple[list[str], list[Called]]:
    texts, calls = [], []
    for part in _list(said.get("content")):
        if part.get("type") == "text":
            texts.append(str(part.get("text") or ""))
        elif part.get("type") == "tool_use":
            use_id, name = str(part.get("id") or ""), str(part.get("name") or "")
            calls.append(Called(use_id, name, part.get("input")))
    return texts, calls


def _ended(message: Json) -> Ended:
    text = message.get("result")
    subtype = str(message.get("subtype") or "")
    return Ended(
        text=text if isinstance(text, str) else "",
        answer=message.get("structured_output"),
        failed=message.get("is_error") is True or subtype.startswith("error"),
        subtype=subtype,
        status=_status(message.get("api_error_status")),
    )


def _status(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
