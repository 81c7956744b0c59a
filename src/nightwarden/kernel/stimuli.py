"""Facts the kernel is told, in the past tense. Plain data; a call is named by its number.

Read next: `effects.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nightwarden.verdict import Decision


class RunStarted(msgspec.Struct, frozen=True, gc=False):
    """The run began, with these values for its inputs (defaults filled in)."""

    inputs: Mapping[str, object]


class Succeeded(msgspec.Struct, frozen=True, gc=False):
    """A step returned. `outputs` follow `NodePlan.outs`, or its `ends` for a fan-out.

    `NOT_TAKEN` stands for a branch not taken.
    """

    call: int
    outputs: tuple[object, ...]


class Emitted(msgspec.Struct, frozen=True, gc=False):
    """A fan-out yielded a frame, and `more` right after it: values follow `NodePlan.outs`."""

    call: int
    frame: tuple[object, ...]
    more: Sequence[tuple[object, ...]] = ()


class Requested(msgspec.Struct, frozen=True, gc=False):
    """A reading step asked for the next item of a stream slot; at most one request a slot.

    It may be shown the `ahead` items after that one, if they are there.
    """

    call: int
    slot: str
    ahead: int = 0


class Read(msgspec.Struct, frozen=True, gc=False):
    """A reading step used `number` of the items it was shown: as if it had asked for each."""

    call: int
    slot: str
    number: int


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A step raised. Nothing raw: the facts that decide what may be answered.

    `bad_input`: a value did not fit an input's declared type. `copied` is False where a mutable
    input could not be kept for a retry. `unknown`: whether it took effect cannot be known.
    `checkable`: every declared output has a type that can be checked. `cut_off`: the process that
    ran it ended; found by whoever resumes the run.
    """

    call: int
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
    cut_off: bool = False


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor (or none) answered. `outputs` are a repair's checked values in `outs` order.

    `problems` says what is wrong with a repair. `jitter` in [0, 1) spreads the retry delay.
    """

    escalation: int
    decision: Decision
    outputs: tuple[object, ...] = ()
    problems: tuple[str, ...] = ()
    jitter: float = 0.0


class DelayPassed(msgspec.Struct, frozen=True, gc=False):
    """The delay before a retry is over."""

    call: int


class Suspended(msgspec.Struct, frozen=True, gc=False):
    """A step asked for the run to pause."""

    call: int
    reason: str


class ControlSent(msgspec.Struct, frozen=True, gc=False):
    """A controller sent an event to a node it controls; `awaits` if it waits for the answer."""

    call: int
    target: int
    event: int
    overrides: Mapping[str, object]
    awaits: bool = False


class ControlEnded(msgspec.Struct, frozen=True, gc=False):
    """A controller will send no further event to a node."""

    call: int
    target: int


class Halted(msgspec.Struct, frozen=True, gc=False):
    """A call the engine told to stop has ended: closed, cancelled or given up on."""

    call: int


class Parked(msgspec.Struct, frozen=True, gc=False):
    """A call waits for something from outside: nothing of the engine's own moves it.

    `away`: it has not begun, and holds no place at its node.
    """

    call: int
    away: bool = False


class Unparked(msgspec.Struct, frozen=True, gc=False):
    """What a parked call waited for has come."""

    call: int


class Unbegun(msgspec.Struct, frozen=True, gc=False):
    """A call that was ordered had not begun when the run stopped, and will not."""

    call: int


class RunCancelled(msgspec.Struct, frozen=True, gc=False):
    """Whoever owns the run cancelled it."""

    reason: str = "cancelled"


class Overspent(msgspec.Struct, frozen=True, gc=False):
    """The steps have spent more than the run may: what runs may finish, nothing else starts."""

    reason: str


Stimulus = (
    RunStarted
    | Succeeded
    | Emitted
    | Requested
    | Read
    | Failed
    | Decided
    | DelayPassed
    | Suspended
    | ControlSent
    | ControlEnded
    | Halted
    | Parked
    | Unparked
    | Unbegun
    | RunCancelled
    | Overspent
)
