"""flow.*: fanning out and in, branching, merging, checking. The graph is the policy.

`ForEach` and `Collect` are what `[*]` and `[]` in a workflow file turn into.

Read next: `data.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from nightwarden.errors import RecoverableError
from nightwarden.nodes.define import define, node, register
from nightwarden.nodes.io import ABSENT, Absent, Collect, Many, outputs

T = TypeVar("T")
"""Bound when a workflow is loaded, to the type of what is wired in."""


@outputs
class Branches(NamedTuple, Generic[T]):
    """The value on the side that was taken; the other side is ABSENT."""

    then: T | Absent = ABSENT
    otherwise: T | Absent = ABSENT


def for_each(items: list[T]) -> Iterator[T]:
    """Fan a list out: one item each, in order. This is what `[*]` stands for."""
    yield from items


def collect(items: Collect[T]) -> list[T]:
    """Gather the items of the innermost fan-out into a list, in item order: what `[]` means."""
    return items


register(for_each, define(for_each, engine_owned=True, retry_safe=True, inline=True, pure=True))
register(collect, define(collect, engine_owned=True, retry_safe=True, inline=True, pure=True))


@node(type="flow.If", retry_safe=True, inline=True, pure=True)
def if_(value: T, condition: bool) -> Branches[T]:
    """Send a value down one of two branches. What hangs on the other one does not run.

    `condition` is a boolean from another step (`data.Map` makes one of an expression).
    """
    return Branches(then=value) if condition else Branches(otherwise=value)


@node(retry_safe=True, inline=True, pure=True, join="any")
def merge(values: Many[T]) -> T:
    """Put branches together again: the first value in edge order goes on."""
    return values[0]


@node(type="flow.Filter", retry_safe=True, inline=True, pure=True)
def filter_(value: T, condition: bool) -> T | Absent:
    """Let an item pass only where `condition` holds; the others are filtered out, not lost."""
    return value if condition else ABSENT


@node(type="flow.Assert", retry_safe=True, inline=True, pure=True)
def assert_(value: T, condition: bool, message: str = "the check did not hold") -> T:
    """Pass a value on unchanged if `condition` holds; fail with it in hand otherwise.

    The failure carries the value, so a supervisor may repair it in place.
    """
    if condition:
        return value
    raise RecoverableError(message, candidate_output=value, code="assert")
