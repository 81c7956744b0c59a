"""Waiting out a provider that is busy, below everything that could mistake it for a failure.

    429, 503, 529, other 5xx, no connection, an unreadable answer ─▶ wait ─▶ ask again

The provider's own word for how long (`Retry-After`) is heeded, up to a minute; a provider that
asks for more has said no. An exhausted purse is not a busy provider, whatever its status. Each
try is a turn of its own to the budget: `MeteredModel` stands below this.

Imports the model library: only `building.py` may import this. Read next: `metering.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

TRIES: Final = 4
LONGEST_WAIT_S: Final = 60.0
_FIRST_WAIT_S: Final = 0.5

Sleep = Callable[[float], Awaitable[object]]


class PatientModel(WrapperModel):
    """A model that asks again when its provider is busy. `sleep` waits, `draw` spreads waits."""

    def __init__(
        self,
        wrapped: Model,
        *,
        tries: int = TRIES,
        sleep: Sleep = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(wrapped)
        self._tries = tries
        self._sleep = sleep
        self._draw = draw

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One answer, after as many tries as it takes. Raises what the last try raised."""
        failed = 0
        while True:
            try:
                return await self.wrapped.request(
                    messages, model_settings, model_request_parameters
                )
            except Exception as error:
                failed += 1
                await self._wait(error, failed)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """A stream, once one opens; what breaks in an open stream is not asked again."""
        failed = 0
        async with AsyncExitStack() as open_streams:
            while True:
                try:
                    stream = await open_streams.enter_async_context(
                        self.wrapped.request_stream(
                            messages, model_settings, model_request_parameters, run_context
                        )
                    )
                    break
                except Exception as error:
                    failed += 1
                    await self._wait(error, failed)
            yield stream

    async def _wait(self, error: Exception, failed: int) -> None:
        """Wait before the next try. Raises the error when there should be none."""
        wait_s = wait_before_retry(error, failed, self._draw())
        if wait_s is None or failed >= self._tries:
            raise error
        await self._sleep(wait_s)


def wait_before_retry(error: Exception, failed: int, draw: float) -> float | None:
    """Seconds to wait before asking again after `failed` tries; None when it would not help."""
    if not _is_passing(error):
        return None
    told = _told_wait(error)
    if told is not None:
        return told if told <= LONGEST_WAIT_S else None
    return float(min(_FIRST_WAIT_S * 2**failed, LONGEST_WAIT_S) * (0.5 + draw / 2))


def _is_passing(error: Exception) -> bool:
    """Whether the same question may well be answered a little later."""
    if isinstance(error, ModelRateLimitError | ModelUnavailableError | ModelServerError):
        return True
    if isinstance(error, ModelConnectionError):
        # What was sent may have been acted on, and paid for: only what never left is sent again.
        return error.phase in ("pool", "connect")
    return isinstance(error, UnexpectedModelBehavior) and not isinstance(error, ContentFilterError)


def _told_wait(error: Exception) -> float | None:
    """How long the provider asked to wait, a date read against its own clock."""
    headers = (error.headers if isinstance(error, ModelHTTPError) else None) or {}
    later, now = headers.get("retry-after", ""), headers.get("date", "")
    try:
        return max((parsedate_to_datetime(later) - parsedate_to_datetime(now)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        waits: float | None = getattr(error, "retry_after", None)
        return waits
