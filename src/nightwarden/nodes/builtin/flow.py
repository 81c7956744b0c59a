"""flow.*: fanning out and in, branching, merging, checking. The graph is the policy.

`ForEach` and `Collect` are what `[*]` and `[]` in a workflow file turn into. Nodes that work on
whole streams (`Batch`, `Window`, `Dedupe`, `Sort`, `Limit`) stand in modules of their own.

Read next: `_streams.py`, `data.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, NoReturn, TypeVar

from annotated_types import Ge

from nightwarden.errors import RecoverableError
from nightwarden.nodes.builtin._sorting import dedupe, sort
from nightwarden.nodes.builtin._streams import batch, limit_, window
from nightwarden.nodes.builtin._subworkflow import subworkflow, value
from nightwarden.nodes.define import define, node, register
from nightwarden.nodes.io import ABSENT, ONCE, Absent, Collect, Many, Stream, outputs
from nightwarden.spec.catalog import Role

__all__ = ["batch", "dedupe", "limit_", "sort", "subworkflow", "value", "window"]
# The family as the registry finds it: what is defined here, and what is defined beside it.

T = TypeVar("T")
L = TypeVar("L")
R = TypeVar("R")
"""Bound when a workflow is loaded, to the type of what is wired in."""


@outputs
class Branches(NamedTuple, Generic[T]):
    """The value on the side that was taken; the other side is ABSENT."""

    then: T | Absent = ABSENT
    otherwise: T | Absent = ABSENT


@outputs
@dataclass(frozen=True, slots=True)
class Pair(Generic[L, R]):
    """Two items that belong together, and the 0-based number of the pair."""

    left: L
    right: R
    index: int


@outputs
@dataclass(frozen=True, slots=True)
class Iteration(Generic[T]):
    """One round of a loop; `done` is the value it ends with."""

    value: T
    index: int
    done: Annotated[T, ONCE]


def for_each(items: list[T]) -> Iterator[T]:
    """Fan a list out: one item each, in order. This is what `[*]` stands for."""
    yield from items


def collect(items: Collect[T]) -> list[T]:
    """Gather the items of the innermost fan-out into a list, in item order: what `[]` means."""
    return items


register(for_each, define(for_each, engine_owned=True, retry_safe=True, inline=True, pure=True))
register(collect, define(collect, engine_owned=True, retry_safe=True, inline=True, pure=True))


def zip_(left: Stream[L], right: Stream[R]) -> Iterator[Pair[L, R]]:
    """Pair the items of two fan-outs by their number: first with first, second with second.

    If one item of a pair is lost or took another branch, so does the pair. Fan-outs of unequal
    length are a failure, unless one of them was ended early: then the rest is lost with it.
    """
    yield from _run_by_the_kernel()


def cross(
    left: Stream[L], right: Stream[R], *, limit: Annotated[int, Ge(1)] = 1_000_000
) -> Iterator[Pair[L, R]]:
    """Pair each item on the left with each on the right. The right side is kept in memory.

    More than `limit` pairs are a failure that says so.
    """
    yield from _run_by_the_kernel()


def loop(
    initial: T,
    next: T,
    condition: bool = True,
    *,
    max_iterations: Annotated[int, Ge(1)] = 1_000,
) -> Iterator[Iteration[T]]:
    """Repeat what hangs on `value` until `condition` is false: do, then ask.

    The body hands its result to `next`, and whether to go on to `condition`; both once an
    iteration. `done` is the last result. After `max_iterations` the loop ends with a warning.
    If an iteration is lost or takes a branch that leads out, the loop ends without `done`.
    """
    yield from _run_by_the_kernel()


def _run_by_the_kernel() -> NoReturn:
    raise AssertionError("the kernel runs this node itself")


register(zip_, define(zip_, name="flow.Zip", engine_owned=True, role=Role.ZIP, pure=True))
register(cross, define(cross, name="flow.Cross", engine_owned=True, role=Role.CROSS, pure=True))
register(loop, define(loop, name="flow.Loop", engine_owned=True, role=Role.LOOP, pure=True))


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
