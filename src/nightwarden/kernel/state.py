"""What the kernel remembers while a run goes on: items, groups, nodes, calls.

    Item   one lineage: the run itself, or one frame of a fan-out under its parent
    Group  one fan-out under one parent item: what it emitted, how it closed, who gathers it
    Node   one node: its counters, pending joins, ready queue and open calls
    Call   one invocation, attempt by attempt

Every record is freed as soon as nothing can refer to it again: an item when each exit has
taken it and each fan-out under it is closed and empty; what remains of it are counts.

Read next: `routing.py` (values on their way), `closing.py` (items that end).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from nightwarden.kernel.causes import NO_CAUSES, Absent, CauseSet, CauseTable
from nightwarden.kernel.effects import Effect, Status
from nightwarden.kernel.plan import EdgePlan, GatherPlan, NodePlan, OutPlan, Plan, RootPlan
from nightwarden.lineage import Lineage
from nightwarden.verdict import Action

if TYPE_CHECKING:
    from nightwarden.kernel.tasks import Task


class Pending:
    """Type of `PENDING`: a port whose settlement has not come."""

    def __repr__(self) -> str:
        return "PENDING"


PENDING = Pending()


class Left:
    """Type of `LEFT`: an exit takes an item that its reader never asked for."""

    def __repr__(self) -> str:
        return "LEFT"


LEFT = Left()


class Gathered(msgspec.Struct, frozen=True):
    """The list a collecting slot receives. `losses` are (index, causes) of lost items.

    `ended` holds the causes of a fan-out that ended early: nobody knows how many there would be.
    """

    values: list[object]
    indices: Sequence[int]
    losses: tuple[tuple[int, CauseSet], ...] = ()
    ended: CauseSet = frozenset()


class Item(msgspec.Struct, eq=False):
    """One lineage. `remaining` exits have not taken it; `live` counts what is open below it.

    `caller` is, for a control event, the call that sent it, the event, and the number of the call
    that awaits the answer, 0 for none. `held` keeps settlements broadcast to longer scopes, by
    port key; `waiting` the joins that wait for one. `label` is what people may call it by, raw.
    """

    lineage: Lineage
    parent: Item | None
    group: Group
    remaining: int
    live: int
    label: object = None
    caller: tuple[Call, int, int] | None = None
    held: dict[int, object] | None = None
    waiting: dict[int, list[Entry]] | None = None


class Entry(msgspec.Struct, eq=False):
    """A join that waits: `values` by port, `left` of them still to come."""

    item: Item
    values: list[object]
    left: int


class Buffer(msgspec.Struct, eq=False):
    """A collecting or reading slot under one parent.

    Collecting: `values` and `indices` in arrival order. Reading: `ahead` holds what came before
    its turn, by position; `wanted` says that the reader waits for the next one, and that it may
    be shown `look_ahead` more; `over` (`LEFT`, an Absent) says what becomes of items nobody will
    read. `settled` counts arrivals.
    """

    plan: GatherPlan
    group: Group
    settled: int = 0
    values: list[object] = []
    indices: list[int] = []
    losses: dict[int, CauseSet] = {}
    carried: CauseSet = frozenset()
    failed: Absent | None = None
    ahead: dict[int, tuple[Item, object]] = {}
    arrived: deque[int] = msgspec.field(default_factory=deque)
    cursor: int = 0
    opened: bool = False
    wanted: bool = False
    look_ahead: int = 0
    over: object = None
    reader: Call | None = None


class Missing(msgspec.Struct, frozen=True):
    """An item that is lost or failed at some exit, and the cause it is charged to."""

    lineage: Lineage
    cause: int
    label: object


class Group(msgspec.Struct, eq=False):
    """One root under one parent. `open` items are not freed, `outstanding` ones not yet taken.

    `missing` are those lost or failed at some exit, `gone` how many of them all exits have taken.
    `mark` says how it closed: `closed`, `early` (kept what it had), `absent` (never opened),
    `cut` (nobody wanted more). `counts` are exits × categories, see `ledger.py`.
    """

    root: Root
    parent: Item | None
    number: int = 0
    emitted: int = 0
    open: int = 0
    outstanding: int = 0
    closed: bool = False
    mark: str = ""
    cause: Absent | None = None
    carried: CauseSet = frozenset()
    buffers: list[Buffer] = []
    delivered: list[int] = []
    others: dict[tuple[int, str], int] = {}
    missing: dict[int, Missing] = {}
    gone: int = 0
    filtered: dict[int, int] = {}
    left_exits: int = 0
    cut: bool = False
    call: Call | None = None


class Root(msgspec.Struct, eq=False):
    """A root of the plan at run time; sums over all parents live here."""

    plan: RootPlan
    exits: int
    window: int
    children: int
    outstanding: int = 0
    paused: dict[int, Call] = {}
    groups: int = 0
    emitted: int = 0
    delivered: list[int] = []
    others: dict[tuple[int, str], int] = {}
    missing: list[Missing] = []
    gone: int = 0
    filtered: int = 0
    marks: dict[str, int] = {}
    open_groups: dict[int, Group] = {}


class Node(msgspec.Struct, eq=False):
    """A node at run time. `limit` invocations run at once; `queue` waits for a free place.

    `only` are the edges of a plain node's single output slot. `engine` nodes are run by the
    kernel itself; `feedback` counts the edges that lead back into a loop. `control` says that it
    controls others, or is controlled.
    """

    plan: NodePlan
    index: int
    limit: int
    simple: bool
    special: bool
    first_key: int
    broadcasts: tuple[tuple[int, int], ...]
    outs: tuple[Out, ...] = ()
    ends: tuple[Out, ...] = ()
    exit: int = -1
    depth: int = 0
    engine: bool = False
    control: bool = False
    feedback: int = 0
    only: tuple[Edge, ...] | None = None
    next: Node | None = None
    own_root: Root | None = None
    running: int = 0
    queue: deque[Call | tuple[Item, tuple[object, ...], CauseSet]] = msgspec.field(
        default_factory=deque
    )
    entries: dict[Item, Entry] = {}
    started: int = 0
    succeeded: int = 0
    repaired: int = 0
    skipped: int = 0
    ended_early: int = 0
    pruned: int = 0
    pruned_lost: int = 0
    failed: int = 0
    cancelled: int = 0
    suspended: int = 0
    attempts: int = 0
    retries_decided: int = 0
    retries_run: int = 0


class Edge(msgspec.Struct, eq=False):
    """An edge at run time. `role` is one of `routing.SINGLE` …; `key` names the port among all.

    A captured slot has an edge whose target is its own source.
    """

    plan: EdgePlan
    role: int
    target: Node
    port: int
    key: int
    exit: int
    gather: int
    position: int


class Out(msgspec.Struct, eq=False):
    """An output slot at run time."""

    plan: OutPlan
    edges: tuple[Edge, ...]


class Call(msgspec.Struct, eq=False):
    """An invocation. `number` changes with each attempt, so that late results find nobody.

    `awaiting` counts what it waits for while it holds its place; `besides` says that an item it
    asked for is among that.
    """

    number: int
    node: Node
    item: Item
    inputs: tuple[object, ...]
    carried: CauseSet
    attempt: int = 1
    group: Group | None = None
    buffers: dict[str, Buffer] | None = None
    parked: bool = False
    asking: str = ""
    halting: bool = False
    gentle: bool = False
    escalation: int = 0
    retried: int = 0
    awaiting: int = 0
    away: bool = False
    outside: bool = False
    besides: bool = False
    feedback: dict[str, object] | None = None


class Capture(msgspec.Struct, eq=False):
    """What an unconnected slot put out, in arrival order."""

    plan: EdgePlan
    values: list[object] = []
    lineages: list[Lineage] = []
    absents: list[tuple[Lineage, Absent]] = []


class Control(msgspec.Struct, eq=False):
    """The control events of a node under one parent.

    `open` controllers may still send some; `unsettled` ones have not ended; `ran` says that one
    of them was not absent; `carried` are the interventions behind those that ran.
    """

    group: Group
    open: set[int]
    unsettled: set[int]
    ran: bool = False
    absent: Absent | None = None
    carried: CauseSet = NO_CAUSES


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a run in the kernel. Seconds; items."""

    max_retries: int = 2
    max_retry_delay_s: float = 300.0
    keep_going: bool = False
    window: int = 1024


class State(msgspec.Struct, eq=False):
    """The whole of a run's mutable state, shared by the kernel's modules.

    `numbered` are the numbers that escalations had in an earlier part of the run.
    `active` counts what will bring a stimulus by itself: running unparked calls, ready ones,
    delays, open escalations. `work` is the propagation worklist, `out` the effects so far.
    """

    plan: Plan
    settings: Settings
    causes: CauseTable
    nodes: tuple[Node, ...]
    roots: tuple[Root, ...]
    inputs: dict[str, tuple[Edge, ...]]
    captures: tuple[Capture, ...]
    run: Item
    out: list[Effect] = []
    work: deque[Task] = msgspec.field(default_factory=deque)
    calls: dict[int, Call] = {}
    numbers: int = 0
    control_edges: dict[int, Edge] = {}
    active: int = 0
    status: Status | None = None
    reason: str = ""
    ended: bool = False
    freed: bool = False
    started: bool = False
    trace: list[tuple[object, ...]] | None = None
    escalated: int = 0
    numbered: Mapping[tuple[int, Lineage, int], int] = {}
    pending: dict[int, Escalated] = {}
    delayed: dict[int, Call] = {}
    failures: bool = False
    controls: dict[tuple[int, Item], Control] = {}
    awaiting: int = 0


class Escalated(msgspec.Struct, eq=False):
    """An escalation that waits for its decision."""

    number: int
    call: Call
    allowed: tuple[Action, ...]
    exhausted: bool
    retry_after_s: float | None
    refused: Mapping[Action, str]
