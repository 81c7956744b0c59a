"""The work that is measured, the same on both sides, and what has to come out of it.

A step does next to nothing, so that what is timed is the machinery around it. Items are whole
numbers, or records of 10 kB that can be changed; a run is right when the sum is.

Read next: `reference.py`, `subject.py`.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

AT_ONCE: Final = 50
NAP_S: Final = 0.020
CHAIN: Final = 100
FAILING: Final = frozenset((3, 31, 59, 87, 115, 143, 171))
"""Items of 200 that fail."""

_CELLS: Final = tuple(f"cell_{i}" for i in range(40))
_WIDTH: Final = 250


async def add_one(x: int) -> int:
    """The step that does nothing."""
    return x + 1


async def add(left: int, right: int) -> int:
    """The join."""
    return left + right


async def nap(x: int) -> int:
    """A step that waits for the outside world."""
    await asyncio.sleep(NAP_S)
    return x + 1


def make_record(key: int) -> dict[str, object]:
    """A record of 40 texts, 10 kB together, none shared with another record."""
    line = str(key).rjust(_WIDTH)
    record: dict[str, object] = {name: line + name for name in _CELLS}
    record["n"] = key
    return record


async def rewrite(record: dict[str, object]) -> dict[str, object]:
    """A step on records that leaves the one it was given alone."""
    n = record["n"]
    assert isinstance(n, int)
    return {**record, "n": n + 1}


async def change(record: dict[str, object]) -> dict[str, object]:
    """A step on records that changes the one it was given."""
    n = record["n"]
    assert isinstance(n, int)
    record["n"] = n + 1
    return record


def number(value: object) -> int:
    """What an item counts for in the sum."""
    counts = value["n"] if isinstance(value, dict) else value
    assert isinstance(counts, int)
    return counts


def total(items: int, steps: int = 3) -> int:
    """The sum over 0 … items-1 after so many steps."""
    return items * (items - 1) // 2 + steps * items


def joined_total(items: int) -> int:
    """The sum after the diamond: each item arrives at the join twice, two steps on."""
    return 2 * total(items, 2)


def ideal_s(items: int) -> float:
    """How long so many naps take, at best."""
    return math.ceil(items / AT_ONCE) * NAP_S
