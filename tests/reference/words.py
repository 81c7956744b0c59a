"""The words in which the reference says what happens: settlements, closings, node code, a meaning.

Nothing here is shared with the kernel; a test compares the two.

    code = {"fetch": lambda at: {"output": page(at.inputs["url"])}}      one result
    def pages(at):                                                       a fan-out
        for n in range(3):
            yield Emit({"output": n})
        return {}
    def drain(at):                                                       a reader
        while (item := (yield Next("items"))) is not END: ...
        return {"output": ...}

Read next: `interpreter.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import GeneratorType
from typing import NamedTuple

from nightwarden.lineage import Lineage
from nightwarden.verdict import Action, Verdict


class Sentinel:
    """A value of its own, with a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ABSENT = Sentinel("ABSENT")
"""In node code: on an input, nothing came; on an output, the branch not taken."""
DEFAULT = Sentinel("DEFAULT")
"""As an input: the slot is left to its default."""
STREAM = Sentinel("STREAM")
"""As an input: the node reads this slot itself."""
END = Sentinel("END")
"""What a reader is given when its stream has ended."""


class Kind(IntEnum):
    """How bad an absence is; the strongest of several wins."""

    NOT_TAKEN = 1
    LOST = 2
    FAILED = 3

    @property
    def word(self) -> str:
        """The kind as the ledger counts it."""
        return self.name.lower()


class Cause(NamedTuple):
    """An intervention (node and lineage), or a branch not taken (node and slot)."""

    node: str
    lineage: Lineage = ()
    slot: str = ""


Causes = frozenset[Cause]
NONE: Causes = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """The settlement of a lineage that has a value; `causes` are interventions only."""

    value: object
    causes: Causes = NONE


@dataclass(frozen=True, slots=True)
class Absent:
    """The settlement of a lineage that will never have one."""

    kind: Kind
    causes: Causes

    @property
    def interventions(self) -> Causes:
        """What a value that survives this absence carries."""
        return frozenset(c for c in self.causes if not c.slot)


Settlement = Value | Absent
Overrides = tuple[tuple[str, object], ...]
"""What a control event says, by name."""
CONTROL = ""
"""The slot by which a controlled node is given its events."""


def union(absents: Iterable[Absent]) -> Absent:
    """One absence out of several: strongest kind, all causes."""
    given = list(absents)
    return Absent(max(a.kind for a in given), frozenset().union(*(a.causes for a in given)))


@dataclass(frozen=True, slots=True)
class Closing:
    """`Closed(n)`, `Closed(n, cause)`; with n = 0 and a cause, `Closed(Absent(cause))`.

    `causes` are the interventions behind it: that there were no more items is a result too.
    """

    n: int
    cause: Absent | None = None
    causes: Causes = field(default=NONE, compare=False)

    @property
    def never_opened(self) -> bool:
        """Whether this stands for one absent input of whatever collects or reads below."""
        return self.n == 0 and self.cause is not None


@dataclass(frozen=True, slots=True)
class Listed:
    """What a collecting slot is given. `losses` name lost items and why, an edge each; the loss
    of a whole fan-out has the index -1. `ended`: why there may be fewer than there would be."""

    values: tuple[object, ...] = ()
    indices: tuple[int, ...] = ()
    losses: tuple[tuple[int, Causes], ...] = ()
    ended: Causes = NONE


# ── node code ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class At:
    """What node code knows of the invocation it runs in."""

    node: str
    lineage: Lineage
    attempt: int
    inputs: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Next:
    """Node code asks for the next item of a stream: `(index, value)`, or `END`."""

    slot: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Node code yields a frame; a slot that is missing in it is not taken."""

    frame: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Send:
    """Node code sends an event to a node it controls; if it `awaits`, it is told `Answered`."""

    target: str
    overrides: Overrides
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class EndControl:
    """Node code sends nothing more to a node it controls."""

    target: str


class Answered(NamedTuple):
    """What came of an event, by slot; None if nothing did."""

    outputs: tuple[tuple[str, object], ...] | None


@dataclass(eq=False)
class Broken(Exception):
    """Node code raises. The facts are those that decide what may be answered."""

    signature: str | None = None
    has_candidate: bool = False
    checkable: bool = False
    cost_micro_usd: int = 0
    cost_known: bool = True
    assets: int = 0
    retry_after_s: float | None = None
    bad_input: bool = False
    copied: bool = True
    unknown: bool = False
    idempotent: bool = False


Outputs = Mapping[str, object]
Order = Next | Emit | Send | EndControl
Running = Generator[Order, object, Outputs]
Code = Callable[[At], Outputs | Running]
Judge = Callable[[str, Lineage, int, frozenset[Action]], Verdict]


def begin(code: Code, at: At) -> Running:
    """Node code as a generator, whether or not it yields."""
    made = code(at)
    if isinstance(made, GeneratorType):
        made = yield from made
    assert isinstance(made, Mapping)
    return made


def part(value: object, name: str) -> object:
    """The field of a value that a projection stands for."""
    return value[name] if isinstance(value, Mapping) else (value, name)


# ── what is found out ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cut:
    """A fan-out that was closed because nobody reads on: after `steps` of its code, `n` items."""

    steps: int
    n: int


@dataclass(frozen=True, slots=True)
class Choices:
    """What the design leaves to the order of events: where fan-outs were cut short, in which
    order an arrival-order reader got its items, after how many steps of its code a failed
    item cancelled a reader (-1: before it had begun; a half more: it waited for an answer), and
    who sent the events of a controlled node."""

    cuts: Mapping[tuple[str, Lineage], Cut] = field(default_factory=dict)
    arrivals: Mapping[tuple[str, Lineage, str], tuple[int, ...]] = field(default_factory=dict)
    cancels: Mapping[tuple[str, Lineage], float] = field(default_factory=dict)
    senders: Mapping[tuple[str, Lineage], tuple[str, ...]] = field(default_factory=dict)


class Invocation(NamedTuple):
    """A node runs."""

    node: str
    lineage: Lineage
    attempt: int
    inputs: tuple[tuple[str, object], ...]


class Escalated(NamedTuple):
    """A failure is put to whoever decides."""

    node: str
    lineage: Lineage
    attempt: int
    allowed: frozenset[Action]
    emitted: int
    caused_by: Causes


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a reader got with a slot: `passed` (index, edge) places, and what takes the rest."""

    passed: int
    places: tuple[tuple[int, int], ...]
    ended: bool
    rest: str
    cause: Absent | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a due lineage of a node ended: a word of equation (4), and its absence if any.

    `causes` are the interventions it had lived through by a good end.
    """

    word: str
    absent: Absent | None = None
    causes: Causes = NONE


Slot = tuple[str, str]


@dataclass(slots=True)
class Meaning:
    """Everything that happens in a run. `stopped` names the failure that would have ended it:
    then this is what happens if the rest goes on, and a stopped run shows a part of it."""

    slots: dict[Slot, dict[Lineage, Settlement]] = field(default_factory=dict)
    closings: dict[tuple[str, Lineage], Closing] = field(default_factory=dict)
    invocations: list[Invocation] = field(default_factory=list)
    escalations: list[Escalated] = field(default_factory=list)
    endings: dict[tuple[str, Lineage], Ending] = field(default_factory=dict)
    readings: dict[tuple[str, Lineage, str], Reading] = field(default_factory=dict)
    stopped: tuple[str, Lineage] | None = None

    def counts(self, node: str) -> Counter[str]:
        """The right side of equation (4) for one node."""
        return Counter(end.word for (n, _), end in self.endings.items() if n == node)

    def runs(self, node: str) -> Iterator[Lineage]:
        """The lineages for which a node is invoked, attempts aside."""
        return (i.lineage for i in self.invocations if i.node == node and i.attempt == 1)
