"""What `Zip` and `Cross` make of what lies on their two sides, once both are known.

    Zip    item k of one side with item k of the other
    Cross  item i on the left with item k on the right: pair i × len(right) + k

A pair is absent if either side is. A side that ended early takes what the other has beyond it;
otherwise unequal lengths are a failure of the Zip. Neither is there room for more than `limit`
pairs.

Read next: `interpreter.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reference.joining import Items
from reference.words import NONE, Absent, Causes, Settlement, Value, union


@dataclass(frozen=True, slots=True)
class Paired:
    """The pairs, how many places of each side are in them, and how that ended.

    `cause`: a side had ended early. `causes`: the interventions behind there being no more
    pairs. `broken`: it ended in a failure, of which `read` are the causes.
    """

    pairs: tuple[tuple[Settlement, Settlement], ...]
    passed: tuple[int, int]
    cause: Absent | None = None
    causes: Causes = NONE
    broken: bool = False
    read: Causes = NONE


def zipped(left: Items, right: Items) -> Paired:
    """Pairs of equal number."""
    sides = _settlements(left), _settlements(right)
    n = min(map(len, sides))
    pairs = tuple(zip(*sides, strict=False))
    if len(sides[0]) == len(sides[1]):
        return Paired(
            pairs, (n, n), _ended(left, right), left.closing.causes | right.closing.causes
        )
    shorter = (left, right)[len(sides[1]) == n]
    if shorter.closing.cause is not None:
        return Paired(pairs, (n, n), shorter.closing.cause)
    read = carried(side for pair in pairs for side in pair) | shorter.closing.causes
    return Paired(pairs, (n, n), broken=True, read=read)


def crossed(left: Items, right: Items, limit: int) -> Paired:
    """Each with each."""
    rows, row = _settlements(left), _settlements(right)
    pairs = tuple((one, other) for one in rows for other in row)
    if len(pairs) > limit:
        used = rows[: -(-limit // len(row))]
        read = carried([*used, *row]) | right.closing.causes
        passed = (limit // len(row), len(row))
        return Paired(pairs[:limit], passed, broken=True, read=read)
    cause = _ended(left, right) if pairs else None
    causes = left.closing.causes | right.closing.causes
    return Paired(pairs, (len(rows), len(row)), cause, causes)


def pair(one: Settlement, other: Settlement, index: int, carrying: Causes) -> dict[str, Settlement]:
    """The slots of a pair; `carrying`: what the node itself has lived through."""
    absents = [side for side in (one, other) if isinstance(side, Absent)]
    if isinstance(one, Value) and isinstance(other, Value):
        causes = one.causes | other.causes | carrying
        values = {"left": one.value, "right": other.value, "index": index}
        return {name: Value(value, causes) for name, value in values.items()}
    return dict.fromkeys(("left", "right", "index"), union(absents))


def carried(settlements: Iterable[Settlement]) -> Causes:
    """The interventions that reading these brings with it."""
    found = (s.causes if isinstance(s, Value) else s.interventions for s in settlements)
    return NONE.union(*found)


def _settlements(items: Items) -> Sequence[Settlement]:
    return [settled for _, settled in items.places]


def _ended(*sides: Items) -> Absent | None:
    causes = [side.closing.cause for side in sides if side.closing.cause is not None]
    return union(causes) if causes else None
