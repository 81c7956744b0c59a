"""What an HTTP answer means for trying again: pure, with the clock as an argument.

    status, headers, body, now ──▶ Advice(transient, wait_s, reason)

Transient is what may be different next time: 408, 425, 429 and 5xx, unless the body says
that no money or quota is left; and, where JSON from a model provider is due, an answer
with status 200 that is an error or holds no answer. `Retry-After` is read in both
notations (RFC 9110 §10.2.3), a date relative to the response's own `Date` where there is one.

Read next: `http.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, NamedTuple

_AGAIN: Final = frozenset({408, 425, 429})

_NO_MONEY: Final = (
    "insufficient_quota",
    "insufficient_funds",
    "insufficient balance",
    "billing_hard_limit",
    "billing_not_active",
    "billing_error",
    "credit balance is too low",
    "exceeded your current quota",
    "out of credits",
    "payment_required",
    "access_terminated",
)
"""Words of providers for an empty purse; waiting does not fill it."""

_PASSING: Final = (
    "overloaded",
    "rate_limit",
    "rate limit",
    "server_error",
    "api_error",
    "unavailable",
    "timeout",
    "timed out",
    "resource_exhausted",
    "internal",
    "try again",
)
"""Words of providers for what passes."""

_RETRY_DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d+)?)s"')
"""How Google's services say `Retry-After`: in the body."""

_HINTS: Final = {
    400: "the server did not understand the request",
    401: "the server wants credentials",
    402: "the server wants payment",
    403: "the server refuses access",
    404: "there is no such page",
    407: "the proxy wants credentials",
    408: "the server gave up waiting for the request",
    410: "the page is gone for good",
    414: "the address is too long",
    429: "too many requests",
    431: "the headers are too large",
    451: "withheld for legal reasons",
    500: "the server failed",
    502: "a server behind it failed",
    503: "the server is not available now",
    504: "a server behind it did not answer in time",
    529: "the server is overloaded",
}


class Advice(NamedTuple):
    """`wait_s` is what the server asked for, in seconds; None where it asked for nothing."""

    transient: bool
    wait_s: float | None = None
    reason: str = ""


def classify(
    status: int,
    headers: Mapping[str, str],
    body: str | bytes,
    *,
    now: datetime,
    json_due: bool = True,
) -> Advice:
    """Whether an answer may be different next time, and when to ask.

    `json_due` is for answers of model providers: an error, nothing, or a page in an answer
    with status 200 is then one too. `now` is the receiver's clock, used where the answer
    has no `Date`. A good answer is `Advice(False, None, "")`.
    """
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    wait_s = retry_after(headers, now=now)
    delay = _RETRY_DELAY.search(text)
    if wait_s is None and delay is not None:
        wait_s = float(delay.group(1))
    if status < 400:
        return _good_status(text, wait_s) if json_due and status < 300 else Advice(False)
    reason = hint(status)
    if status not in _AGAIN and status < 500:
        return Advice(False, None, reason)
    # Google words a passing limit like an empty purse, but says when to come back.
    if status == 429 and delay is None and _says(text, _NO_MONEY):
        return Advice(False, None, "no money or quota is left, waiting does not help")
    return Advice(True, wait_s, reason)


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The seconds a `Retry-After` header asks to wait, never negative; None if it says nothing."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    asked = lower.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        when, sent = _date(asked), _date(lower.get("date", ""))
        return None if when is None else max(0.0, (when - (sent or now)).total_seconds())
    return max(0.0, seconds) if math.isfinite(seconds) else None


def phrase(status: int) -> str:
    """`401 Unauthorized`; the number alone where no standard names it."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def hint(status: int) -> str:
    """What a status means, in the words of someone who does not know the numbers."""
    if status in _HINTS:
        return _HINTS[status]
    return "the server failed" if status >= 500 else "the server refused the request"


def _good_status(text: str, wait_s: float | None) -> Advice:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return Advice(True, wait_s, "no JSON where JSON was due")
    if not isinstance(answer, dict):
        return Advice(False)
    if error := answer.get("error"):
        return _error_inside(error, wait_s)
    for key in ("choices", "candidates"):
        if answer.get(key) == [] and not answer.get("promptFeedback"):
            return Advice(True, wait_s, "an answer without content")
    return Advice(False)


def _error_inside(error: object, wait_s: float | None) -> Advice:
    """An error object in an answer with status 200: its code decides, else its words."""
    text = json.dumps(error)
    reason = f"an error with status 200: {text[:200]}"
    if _says(text, _NO_MONEY):
        return Advice(False, None, reason)
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        transient = code in _AGAIN or code >= 500
    else:
        transient = _says(text, _PASSING)
    return Advice(transient, wait_s if transient else None, reason)


def _says(text: str, words: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(word in lower for word in words)


def _date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
