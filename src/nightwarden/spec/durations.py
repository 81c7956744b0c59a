"""Durations as people write them: `45s`, `2m30s`, `1h`, or a number of seconds.

Read next: `monitors.py`.
"""

from __future__ import annotations

import math
import re
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)\s*")


def duration_s(written: object) -> float | None:
    """The seconds of a duration; None for what is none. Never infinite, may be zero or less."""
    if isinstance(written, bool):
        return None
    if isinstance(written, (int, float)):
        return float(written) if math.isfinite(written) else None
    if not isinstance(written, str):
        return None
    return _plain_number(written.strip()) if written.strip() else None


def _plain_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return _with_units(text)
    return number if math.isfinite(number) else None


def _with_units(text: str) -> float | None:
    total, end = 0.0, 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    return total if math.isfinite(total) else None


def duration_text(seconds: float) -> str:
    """The same in as few signs as it can be written: `90s`, `5m`, `1h`."""
    for unit in ("h", "m"):
        amount = seconds / _UNITS[unit]
        if amount >= 1 and amount == int(amount):
            return f"{int(amount)}{unit}"
    return f"{seconds:g}s"
