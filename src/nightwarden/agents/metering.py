"""No request without a reservation: the wrapper around a provider's model that keeps the budget.

    request ─▶ bytes bound tokens ─▶ reserve ─▶ journal, durable ─▶ the provider
                                        │no                            ├─ answered ─▶ what it used
                                        ▼                              ├─ refused ──▶ given back
                                   BudgetRefused                       └─ cut off ──▶ the worst case

It sits inside the model, so that no loop above can pass it by. A token is at least one byte of
what is sent, so that the length of a request bounds what can be charged for it; what providers
add unseen (their own instructions for tools) is allowed for. The answer is bounded by
`max_tokens`, set on every request. Ways to spend that cannot be bounded are closed.

Imports the model library: only `building.py` and `conversation.py` may import this.
Read next: `meter.py`, `patient.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import msgspec
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from nightwarden.agents.budget import Reservation
from nightwarden.agents.meter import UNSEEN_TOKENS, Meter
from nightwarden.agents.prices import Usage
from nightwarden.errors import ModelError
from nightwarden.events.budget import Booking

_REFUSED_OVERLOADED: Final = 529


class MeteredModel(WrapperModel):
    """A model every request of which goes through a meter."""

    def __init__(self, wrapped: Model, meter: Meter) -> None:
        super().__init__(wrapped)
        self._meter = meter

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One turn. Raises `BudgetRefused` instead of asking what cannot be paid."""
        settings = self._limited(model_settings)
        turn = await self._reserve(messages, settings, model_request_parameters)
        try:
            response = await self.wrapped.request(messages, settings, model_request_parameters)
        except BaseException as error:
            self._meter.book(turn, _ended(error))
            raise
        self._meter.book(turn, Booking.ACTUAL, _usage(response.usage))
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """One streamed turn; a stream left before its end costs the worst case."""
        settings = self._limited(model_settings)
        turn = await self._reserve(messages, settings, model_request_parameters)
        try:
            async with self.wrapped.request_stream(
                messages, settings, model_request_parameters, run_context
            ) as stream:
                yield stream
                whole = stream.get().state == "complete"
                usage = _usage(stream.usage) if whole else None
        except BaseException as error:
            self._meter.book(turn, _ended(error))
            raise
        self._meter.book(turn, Booking.ACTUAL, usage)

    async def compact_messages(self, *_: Any, **__: Any) -> NoReturn:
        """Closed: nobody could say beforehand what it costs."""
        raise ModelError("shortening a conversation by the provider cannot be held to a budget")

    async def batch_create(self, *_: Any, **__: Any) -> NoReturn:
        """Closed: nobody could say beforehand what it costs."""
        raise ModelError("batches of requests cannot be held to a budget")

    def _limited(self, settings: ModelSettings | None) -> ModelSettings:
        """The settings with the longest answer set, and without repeats below the reservation."""
        asked = (settings or {}).get("max_tokens")
        most = self._meter.max_output_tokens
        limited = ModelSettings(**(settings or {}))
        limited["max_tokens"] = most if asked is None else min(asked, most)
        limited["max_retries"] = 0
        return limited

    async def _reserve(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> Reservation:
        _, prepared = self.wrapped.prepare_request(settings, parameters)
        sent = self.wrapped.prepare_messages(messages, prepared)
        return await self._meter.reserve(most_tokens(sent, prepared))


def most_tokens(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """How many tokens a request may be counted as, at most: its bytes, and what is added unseen.

    Raises `ModelError` for content whose tokens do not follow from its length, such as images.
    """
    for part in _contents(messages):
        if not isinstance(part, str):
            raise ModelError(
                f"{type(part).__name__} cannot be held to a budget: "
                "only of text does the length bound what it costs"
            )
    if parameters.native_tools:
        raise ModelError("tools that run at the provider cannot be held to a budget")
    # Only parts are sent; what the library notes beside them is not, and instructions once.
    parts = ModelMessagesTypeAdapter.dump_json(list(messages), include={"__all__": {"parts"}})
    tools = [*parameters.function_tools, *parameters.output_tools]
    shapes: list[object] = [(t.name, t.description, t.parameters_json_schema) for t in tools]
    if parameters.output_object is not None:
        shapes.append(parameters.output_object.json_schema)
    shaped = sum(len(msgspec.json.encode(shape)) for shape in shapes)
    length = len(parts) + shaped + _instructions(messages, parameters)
    return length + UNSEEN_TOKENS


def _instructions(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """The bytes of the instructions, wherever the library keeps them this time."""
    apart = sum(len(part.content.encode()) for part in parameters.instruction_parts or ())
    said = (getattr(message, "instructions", None) or "" for message in messages)
    return max([apart, *(len(text.encode()) for text in said)])


def was_refused(error: BaseException) -> bool:
    """Whether the provider never took the turn on: no connection, 4xx, or 529."""
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        return not error.in_stream and (400 <= status < 500 or status == _REFUSED_OVERLOADED)
    if isinstance(error, ModelConnectionError):
        return not error.in_stream and error.phase in ("pool", "connect")
    return False


def _ended(error: BaseException) -> Booking:
    return Booking.REFUSED if was_refused(error) else Booking.WORST


def _usage(usage: RequestUsage) -> Usage | None:
    """What the provider said it used; None where it did not say."""
    if usage.unmeasured_requests or usage.input_tokens <= 0 or usage.output_tokens < 0:
        return None
    return Usage(
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
    )


def _contents(messages: Sequence[ModelMessage]) -> Iterable[object]:
    """Everything people's parts hold, one by one."""
    for message in messages:
        for part in message.parts:
            content = getattr(part, "content", "")
            if part.part_kind == "user-prompt" and not isinstance(content, str):
                yield from content
