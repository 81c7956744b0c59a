"""What the kernel orders, in the imperative, and what it lets be known. Plain data.

Read next: `machine.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from nightwarden.lineage import Lineage
from nightwarden.verdict import Action, Decision, OutcomeKind


class Status(StrEnum):
    """How a run ends; of several, the first listed wins."""

    CANCELLED = "cancelled"
    SUSPENDED = "suspended"
    FAILED = "failed"
    COMPLETED = "completed"


class Invoke(msgspec.Struct, frozen=True, gc=False):
    """Run a node. `inputs` follow `NodePlan.slots`; `USE_DEFAULT` leaves a slot to its default."""

    call: int
    node: int
    lineage: Lineage
    attempt: int
    inputs: tuple[object, ...]


class Pause(msgspec.Struct, frozen=True, gc=False):
    """Too much of what a fan-out emitted is outstanding: it must wait for `Resume`."""

    call: int


class Resume(msgspec.Struct, frozen=True, gc=False):
    """A paused fan-out may yield again."""

    call: int


class Feed(msgspec.Struct, frozen=True, gc=False):
    """The item a reading step asked for.

    `shown` are those right after it, by index: the step may use them without asking, in order;
    until it is told that it has (`Read`), they count as not read.
    """

    call: int
    slot: str
    index: int
    value: object
    shown: Sequence[tuple[int, object]] = ()


class EndFeed(msgspec.Struct, frozen=True, gc=False):
    """The stream a reading step asked for has ended."""

    call: int
    slot: str


class Escalate(msgspec.Struct, frozen=True, kw_only=True):
    """A failed call needs a decision. `number` counts a run's escalations from 1.

    `detail` and `signature` are given where the kernel itself ran the node.
    """

    number: int
    call: int
    node: int
    lineage: Lineage
    attempt: int
    retries_left: int
    allowed: tuple[Action, ...]
    emitted: int
    caused_by: tuple[int, ...]
    retry_refused: str = ""
    detail: str = ""
    signature: str = ""


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """The decision as the kernel applies it, for the record; `asked_for` holds a refused one."""

    escalation: int
    decision: Decision


class Conclude(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a decision."""

    escalation: int
    kind: OutcomeKind
    kept: int | None = None
    detail: str = ""


class Delay(msgspec.Struct, frozen=True, gc=False):
    """Tell me when this many seconds have passed."""

    call: int
    seconds: float


class Halt(msgspec.Struct, frozen=True, gc=False):
    """End a call: `gently` closes a fan-out where it stands, otherwise it is cancelled."""

    call: int
    gently: bool


class Stop(msgspec.Struct, frozen=True):
    """Nothing new starts from here on; what runs may drain. `reason` is one sentence."""

    status: Status
    reason: str


class Ended(msgspec.Struct, frozen=True):
    """Everything is settled or given up: the run is over."""

    status: Status
    reason: str


class Prune(msgspec.Struct, frozen=True, gc=False):
    """A node will never run for this lineage. `kind` is not_taken, lost or failed."""

    node: int
    lineage: Lineage
    kind: str
    cause: int


class CloseRoot(msgspec.Struct, frozen=True, gc=False):
    """A fan-out is closed under a parent: after `emitted` items; `mark` says how."""

    node: int
    lineage: Lineage
    emitted: int
    mark: str


class Widen(msgspec.Struct, frozen=True, gc=False):
    """A fan-out's window was doubled, because everything waited for it."""

    node: int
    window: int


class Warn(msgspec.Struct, frozen=True):
    """Something the report should show."""

    node: int
    lineage: Lineage
    message: str


class Answer(msgspec.Struct, frozen=True):
    """What a control event came to, for the caller that awaits it; `outputs` None with `error`."""

    call: int
    event: int
    outputs: dict[str, object] | None
    error: str = ""


class Finish(msgspec.Struct, frozen=True, gc=False):
    """No lineage of this node is due any more."""

    node: int


class UseDefault:
    """Type of `USE_DEFAULT`."""

    def __repr__(self) -> str:
        return "USE_DEFAULT"


USE_DEFAULT = UseDefault()

Effect = (
    Invoke
    | Pause
    | Resume
    | Feed
    | EndFeed
    | Escalate
    | Apply
    | Conclude
    | Delay
    | Halt
    | Stop
    | Ended
    | Prune
    | CloseRoot
    | Widen
    | Finish
    | Answer
    | Warn
)
