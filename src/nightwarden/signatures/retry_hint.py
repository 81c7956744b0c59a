"""How long an error asks to be left alone: `Retry-After`, wherever it is kept.

Looked at are `retry_after_s` and `retry_after` of the error, then the headers of its response
or its own, as seconds or as an HTTP date (RFC 9110 §10.2.3), then the same of what the error
was raised from.

Read next: `kernel/escalating.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from nightwarden.signatures.recognisers import attribute

_MOST_LEVELS: Final = 8
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_DATE = re.compile(
    r"\w+,? (?P<day>\d{1,2})[ -](?P<month>[A-Za-z]{3})[ -](?P<year>\d{2,4})"
    r" (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?: GMT| UTC| [+-]0000)?"
)


def retry_after_s(error: BaseException, now: float) -> float | None:
    """Seconds the error asks to wait, never negative, or None. `now` is Unix time in seconds."""
    part: object = error
    for _ in range(_MOST_LEVELS):
        if not isinstance(part, BaseException):
            break
        for value in _hints(part):
            seconds = _seconds(value, now)
            if seconds is not None:
                return seconds
        part = attribute(part, "__cause__")
    return None


def _hints(error: BaseException) -> Iterator[object]:
    yield attribute(error, "retry_after_s")
    yield attribute(error, "retry_after")
    for holder in (attribute(error, "response"), error):
        headers = attribute(holder, "headers")
        milliseconds = _number(_header(headers, "retry-after-ms"))
        yield milliseconds / 1000 if milliseconds is not None else None
        yield _header(headers, "retry-after")


def _header(headers: object, name: str) -> object:
    """A header of any kind of mapping, whatever the case it was sent in."""
    try:
        for spelling in (name, name.title(), "Retry-After-Ms", "retry-after-MS"):
            if spelling.lower() == name:
                value = headers.get(spelling)  # type: ignore[attr-defined]
                if value is not None:
                    return value
    except BaseException:  # an odd object's own code; nothing is awaited here
        return None
    return None


def _seconds(value: object, now: float) -> float | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    number = _number(value)
    if number is None and isinstance(value, str):
        moment = _moment(value.strip()[:64])
        number = moment - now if moment is not None else None
    return None if number is None else max(0.0, number)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value[:32] if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _moment(text: str) -> float | None:
    """Unix time of an HTTP date; month names are English whatever the locale."""
    match = _DATE.fullmatch(text)
    if not match or match["month"].lower() not in _MONTHS:
        return None
    year = int(match["year"])
    year += 0 if year > 99 else 2000
    month = _MONTHS.index(match["month"].lower()) + 1
    try:
        hour, minute, second = (int(match[part]) for part in ("h", "m", "s"))
        day = datetime(year, month, int(match["day"]), hour, minute, min(second, 59), tzinfo=UTC)
        return day.timestamp()
    except (ValueError, OverflowError):
        return None
