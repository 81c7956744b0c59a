"""What went wrong with a provider, in words of ours and as a code.

    ModelAuthenticationError ─▶ "the provider does not accept the key"   http:401
    ModelConnectionError     ─▶ "the provider cannot be reached: …"      model:unreachable

Imports the model library: only modules of this package that do so as well may import this.
Read next: `turns.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)

from nightwarden.errors import NodeError


class ModelTrouble(NodeError):
    """A step's question to a model came to nothing. `retry_after_s` is what the provider asked."""

    def __init__(self, message: str, *, code: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, code=code)


def trouble(model: str, error: Exception) -> ModelTrouble:
    """The failure of a step that asked this model, with a code by which like ones are known."""
    waits: float | None = getattr(error, "retry_after", None)
    return ModelTrouble(f"{model}: {reason(error)}", code=_code(error), retry_after_s=waits)


def reason(error: Exception) -> str:
    """Why there is no answer; the provider's own words where they help."""
    match error:
        case ModelAuthenticationError():
            return "the provider does not accept the key"
        case ModelQuotaExceededError():
            return "the account at the provider is used up"
        case ModelNotFoundError():
            return "the provider does not know the model"
        case ContentFilterError():
            return "the provider's filter refused to answer"
        case ModelHTTPError():
            return f"the provider answered with status {error.status_code}"
        case ModelConnectionError() if not _unsent(error):
            return f"the connection to the provider was lost: {_brief(error)}"
        case ModelConnectionError():
            return f"the provider cannot be reached{_where(error)}: {_why_unreached(error)}"
        case UnexpectedModelBehavior():
            return f"the model's answer cannot be used: {_brief(error)}"
    return f"the model could not be asked: {_brief(error)}"


def _code(error: Exception) -> str:
    match error:
        case ContentFilterError():
            return "model:refused"
        case ModelHTTPError():
            return f"http:{error.status_code}"
        case ModelConnectionError():
            return "model:unreachable" if _unsent(error) else "model:lost"
        case UnexpectedModelBehavior():
            return "model:unreadable"
    return "model:usage"


def _unsent(error: ModelConnectionError) -> bool:
    """Whether the question never left."""
    return not error.in_stream and error.phase in ("pool", "connect")


def _where(error: Exception) -> str:
    """The address that was tried, as far as an error of the transport tells it."""
    for cause in _causes(error):
        with contextlib.suppress(RuntimeError):  # a request that is not known
            url = getattr(getattr(cause, "request", None), "url", None)
            if url is not None:
                return f" at {url.host}" + (f":{url.port}" if url.port else "")
    return ""


def _why_unreached(error: Exception) -> str:
    """The system's own words, where it said something; else the library's."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno:
            told = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror
            return str(told)
    return _brief(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it came from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _brief(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split()).rstrip(".")[:200]
