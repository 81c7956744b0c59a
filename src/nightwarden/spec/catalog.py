"""What the specification knows of a node type: its slots and its promises.

`spec` never sees node code or a registry. It gets a `Catalog`, which answers with
`NodeType`s, plain descriptions that `nodes/define.py` draws from a function's signature.

Read next: `workflow.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

OutputSchema = Callable[[Mapping[str, Any]], Mapping[str, object]]
"""From a call's inputs to the JSON Schema its output has to fit."""


class SlotKind(StrEnum):
    """How an input slot takes what reaches it.

    PLAIN    one value a lineage
    MANY     one list a lineage, over several edges
    COLLECT  one list a parent lineage, over the items of the innermost root
    STREAM   the items one by one, read by the node itself
    """

    PLAIN = "plain"
    MANY = "many"
    COLLECT = "collect"
    STREAM = "stream"


class Role(StrEnum):
    """Nodes the kernel itself runs, because they pair or repeat items by lineage."""

    NONE = ""
    ZIP = "zip"
    CROSS = "cross"
    LOOP = "loop"


FEEDBACK = ("next", "condition")
"""The slots of a loop that its own body feeds."""


class Missing:
    """Type of `MISSING`: a slot has no default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSlot:
    """An input slot. `type` is the element type: `T` of `T`, `Many[T]`, `Collect[T]`, `Stream[T]`.

    `default` is `MISSING` where the slot must be wired or given. `accepts_absent` says that the
    code takes `ABSENT`. `by_arrival` makes a STREAM slot read in arrival order.
    """

    name: str
    type: object
    kind: SlotKind = SlotKind.PLAIN
    default: object = MISSING
    accepts_absent: bool = False
    by_arrival: bool = False
    doc: str = ""

    @property
    def required(self) -> bool:
        """Whether the slot has to be wired or given as a property."""
        return isinstance(self.default, Missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSlot:
    """An output slot. `stream` slots carry one value a frame, the others one an invocation.

    `may_be_absent` says that the code may leave it `ABSENT`: a branch not taken.
    """

    name: str
    type: object
    stream: bool = False
    may_be_absent: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A field of an output value that can be wired like a slot: `$page.url` of slot `output`."""

    name: str
    slot: str
    type: object


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A node type as loading, checking and the kernel see it.

    `extra` describes the slots of `**fields: T`, which take any further name. `join` is `"all"`,
    or `"any"` for a merge node. `fans_out`: the code yields; `reads`: it drains a stream itself.
    `concurrency` None means the engine's default; times are seconds. `output_schema` says of the
    one output what its type does not; a repair has to fit it as well.
    """

    name: str
    inputs: Mapping[str, InputSlot]
    outputs: Mapping[str, OutputSlot]
    projections: Mapping[str, Projection] = field(default_factory=dict)
    extra: InputSlot | None = None
    retry_safe: bool = False
    idempotent_by: str | None = None
    output_schema: OutputSchema | None = None
    inline: bool = False
    pure: bool = False
    executor: str | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    label: str | None = None
    join: str = "all"
    fans_out: bool = False
    reads: bool = False
    engine_owned: bool = False
    role: Role = Role.NONE
    doc: str = ""
    source: str = ""

    def input(self, name: str) -> InputSlot | None:
        """The input slot of that name, a named extra one included; None where there is none."""
        slot = self.inputs.get(name)
        if slot is None and self.extra is not None:
            return InputSlot(
                name=name,
                type=self.extra.type,
                kind=self.extra.kind,
                default=self.extra.default,
                accepts_absent=self.extra.accepts_absent,
            )
        return slot

    @property
    def effectful(self) -> bool:
        """Whether doing it twice, or not knowing whether it was done, matters."""
        return not (self.retry_safe or self.inline)


class _Ties(Container[object]):
    def __contains__(self, slot: object) -> bool:
        return isinstance(slot, str) and slot.startswith("(")


TIES: Final = _Ties()
"""Slots any node of a subworkflow may have, beside its own: `(sub.text)`. Their edges say where
the node lies and what it needs, as the input `text` of `sub` would; code never sees a value."""


def tie_name(subworkflow: str, name: str, *, optional: bool, loose: bool) -> str:
    """The slot that ties a node to an input: one with a default, or one that may be absent."""
    return f"({subworkflow}.{name}{'~' if loose else '?' if optional else ''})"


def tie_slot(name: str) -> InputSlot:
    """The slot of that name, one of `TIES`."""
    return InputSlot(
        name=name,
        type=object,
        default=None if name.endswith("?)") else MISSING,
        accepts_absent=name.endswith("~)"),
    )


class Catalog(Protocol):
    """Where node types are looked up."""

    def find(self, name: str) -> NodeType | None:
        """The node type of that name, or None."""
        ...

    def names(self) -> Sequence[str]:
        """All known names, sorted; for suggestions in messages."""
        ...
