"""What a step's time limit and concurrency may be, wherever they are written.

Read next: `nodefile.py` (in a workflow file), `build.py` (in Python).
"""

from __future__ import annotations

import math


def timeout_problem(value: object) -> str:
    """What is wrong with a timeout; empty when nothing is. None means none is set."""
    if value is None:
        return ""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]
        return f"timeout is {value!r}, but has to be a number of seconds above 0"
    return ""


def concurrency_problem(value: object) -> str:
    """What is wrong with a concurrency; empty when nothing is. None means none is set."""
    if value is None or (type(value) is int and value >= 1):
        return ""
    return f"concurrency is {value!r}, but has to be a whole number from 1"
