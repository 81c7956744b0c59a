"""What follows from a settlement and is still to be done: the items of `State.work`.

`propagating.py` empties that list before the next fact is taken in.

Read next: `propagating.py`.
"""

from __future__ import annotations

import msgspec

from nightwarden.kernel.causes import Absent, CauseSet
from nightwarden.kernel.state import Buffer, Call, Edge, Group, Item, Node, Root


class Settle(msgspec.Struct, frozen=True, gc=False):
    """Work: send a settlement of an item along edges."""

    edges: tuple[Edge, ...]
    item: Item
    settlement: object


class Arrive(msgspec.Struct, frozen=True, gc=False):
    """Work: a port of a node is settled for an item."""

    node: Node
    port: int
    item: Item
    settlement: object


class TakeAt(msgspec.Struct, frozen=True, gc=False):
    """Work: an exit takes an item."""

    item: Item
    exit: int
    settlement: object


class NeverOpened(msgspec.Struct, frozen=True, gc=False):
    """Work: a fan-out will not open under this item."""

    root: Root
    item: Item
    cause: Absent


class StreamClosed(msgspec.Struct, frozen=True, gc=False):
    """Work: the root of a reading slot has closed."""

    group: Group
    buffer: Buffer


class PlaceFreed(msgspec.Struct, frozen=True, gc=False):
    """Work: a node has a free place for what waits in its queue."""

    node: Node


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Work: nobody wants more of a fan-out."""

    group: Group


class RootDone(msgspec.Struct, frozen=True, gc=False):
    """Work: everything below a top-level fan-out is settled."""

    root: Root


class ControllerDone(msgspec.Struct, frozen=True, gc=False):
    """Work: a node that controls others is settled for an item, with a value or an absence.

    `carried` are the interventions it has lived through.
    """

    node: Node
    item: Item
    absent: Absent | None
    carried: CauseSet


class Advance(msgspec.Struct, frozen=True, gc=False):
    """Work: a node the kernel itself runs may be able to go on."""

    call: Call


class FailCall(msgspec.Struct, frozen=True, gc=False):
    """Work: a node the kernel itself runs has failed, for the reason given."""

    call: Call
    detail: str
    code: str


Task = (
    Settle
    | Arrive
    | TakeAt
    | NeverOpened
    | StreamClosed
    | PlaceFreed
    | Cut
    | RootDone
    | ControllerDone
    | Advance
    | FailCall
)
"""What follows from a settlement and is still to be done."""
