"""The types a node's signature is written in.

    rows: Collect[dict]                    a list per parent item, with `.indices` and `.losses`
    parts: Many[str]                       a list over several edges
    lines: Stream[str]                     an async iterator the node drains itself
    lines: Annotated[Stream[str], ARRIVAL] the same, in arrival order
    caption: str | Absent                  takes ABSENT where nothing came
    @outputs class Split(NamedTuple)       one output slot a field
    total: Annotated[int, ONCE]            of a generator's frames: one value, settled at its end

Read next: `define.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from nightwarden.spec.types import name_type

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
C = TypeVar("C", bound=type)


class Marker:
    """What annotates a slot's type."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ARRIVAL: Final = Marker("ARRIVAL")
"""Annotates a `Stream[T]` slot that is read in arrival order."""

ONCE: Final = Marker("ONCE")
"""Annotates a field of a generator's frames that has one value for the whole fan-out."""

absent_cause: ContextVar[str] = ContextVar("absent_cause", default="")
"""Why the absent inputs of the running invocation are absent; set by the runtime."""


class Absent:
    """The type of `ABSENT`: nothing came, and nothing will. Falsy; there is only one."""

    _only: Absent | None = None

    def __new__(cls) -> Absent:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"

    def __copy__(self) -> Absent:
        return self

    def __deepcopy__(self, memo: object) -> Absent:
        return self

    def __reduce__(self) -> tuple[type[Absent], tuple[()]]:
        return (Absent, ())

    @property
    def cause(self) -> str:
        """In a running step: why its absent inputs are absent, in words. Empty elsewhere."""
        return absent_cause.get()


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Loss:
    """An item a list does not have, and why. `index` is 0-based."""

    index: int
    cause: str


class Collect(list[T]):
    """Items of a fan-out in item order; `indices` are their 0-based numbers, `losses` what is lost.

    An item that took another branch leaves a gap in `indices`; a lost one is also in `losses`.
    `ended_early` says why the fan-out was ended before its end, in words, and is empty where it was
    not: then nobody knows how many items there would have been.
    """

    __slots__ = ("ended_early", "indices", "losses")

    def __init__(
        self,
        values: Iterable[T] = (),
        indices: Sequence[int] | None = None,
        losses: Sequence[Loss] = (),
        *,
        ended_early: str = "",
    ) -> None:
        super().__init__(values)
        self.ended_early = ended_early
        self.indices: Sequence[int] = range(len(self)) if indices is None else indices
        self.losses: Sequence[Loss] = losses

    def __reduce__(self) -> tuple[Any, ...]:
        return (_collected, (list(self), self.indices, self.losses, self.ended_early))


def _collected(
    values: list[Any], indices: Sequence[int], losses: Sequence[Loss], ended_early: str
) -> Collect[Any]:
    """A list of items as it was before it was sent to another process."""
    return Collect(values, indices, losses, ended_early=ended_early)


class Many(list[T]):
    """The values of several edges into one slot, in edge order."""

    __slots__ = ()


class Stream(AsyncIterator[T_co], Generic[T_co]):
    """Items of a fan-out, read by the node itself, in item order unless asked otherwise.

    The runtime hands in a subclass; `async for item in lines` ends when the fan-out does.
    """

    def indexed(self) -> AsyncIterator[tuple[int, T_co]]:
        """The items with their 0-based numbers."""
        raise NotImplementedError

    @property
    def losses(self) -> Sequence[Loss]:
        """What has been lost among the items read so far."""
        raise NotImplementedError

    async def __anext__(self) -> T_co:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AssetRef:
    """A file in the run's own store. `digest` is its SHA-256 in hex, `size_bytes` its length."""

    name: str
    digest: str
    size_bytes: int
    media_type: str = "application/octet-stream"


# What a workflow file calls `path` and `asset`; the layer below knows no files.
name_type("path", Path)
name_type("asset", AssetRef)


def outputs(cls: C) -> C:
    """Mark a NamedTuple or dataclass: each of its fields is an output slot of its own."""
    cls.__nightwarden_outputs__ = True  # type: ignore[attr-defined]
    return cls


def is_outputs(cls: object) -> bool:
    """Whether `cls` was marked with `@outputs`."""
    return isinstance(cls, type) and getattr(cls, "__nightwarden_outputs__", False) is True


Step = Callable[..., Any]
"""A node's code, whatever its signature: the one place where types are the author's."""
