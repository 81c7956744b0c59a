"""What a record says has already happened: the facts a resumed run is told again.

    lines of the record ─▶ past_folding ─▶ Past ─▶ standing(node, key) ─▶ told again, or run

A fact is found by its key: node, lineage, attempt. Later facts stand in place of earlier ones.
Left out is what ended the run: stops, cancels, decisions to fail. Values stay encoded until
somebody needs them.

Pure. Read next: `past_folding.py`, `replaying.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from nightwarden.lineage import Lineage
from nightwarden.runtime.bounded import BoundsState
from nightwarden.runtime.narrating import Said
from nightwarden.spec.catalog import NodeType
from nightwarden.verdict import Intervention

Key = tuple[str, Lineage, int]
"""Node, lineage, attempt."""

_NO_VALUES: Final = msgspec.Raw(b"{}")


class Put(msgspec.Struct, gc=False):
    """Values somebody put out, encoded by slot; as `InvocationSucceeded` and `ItemEmitted`."""

    outputs: msgspec.Raw = _NO_VALUES
    absent: tuple[str, ...] = ()
    blobs: Mapping[str, str] = {}
    sealed: bool = False
    read: Mapping[str, int] = {}


class Returned(Put, tag_field="type", tag="invocation_succeeded"):
    """A step returned."""

    node_id: str = ""
    lineage: Lineage = ()
    attempt: int = 0
    cost_micro_usd: int = 0
    assets: tuple[Mapping[str, object], ...] = ()


class Frame(Put, tag_field="type", tag="item_emitted"):
    """A fan-out put out an item."""

    node_id: str = ""
    lineage: Lineage = ()
    attempt: int = 0


class Broken(msgspec.Struct, tag_field="type", tag="invocation_failed"):
    """A step raised."""

    node_id: str
    error_type: str
    detail: str
    lineage: Lineage = ()
    attempt: int = 0
    signature: str | None = None
    cost_micro_usd: int = 0
    assets: int = 0
    item: str = ""
    facts: Mapping[str, Any] = {}


class Begun(msgspec.Struct, tag_field="type", tag="invocation_started", gc=False):
    """A step with outside effects was about to run."""

    node_id: str
    lineage: Lineage = ()
    attempt: int = 0


@dataclass(slots=True)
class Sent:
    """A control event on record."""

    target: str
    overrides: Mapping[str, object]
    sealed: bool


class Standing(StrEnum):
    """What a record says of an invocation that is due."""

    NEW = "nothing is on record"
    RETURNED = "it returned"
    ANSWERED = "it failed, and what was decided stands"
    AGAIN = "it may be run again"
    FAILED = "it failed, and may not simply be run again"
    CUT_OFF = "it was cut off, and may not simply be run again"


@dataclass(slots=True, kw_only=True)
class Past:
    """A record, folded. `started` is its first event; `status` empty where it has no end.

    `known` maps keys to the interventions that answered them; those to fail are not among them.
    `costs` are micro-dollars by node, of everything that was ever spent; of a model call nobody
    knows the cost of, its worst case. `last_call` numbers the model calls of steps. `sealed_inputs`
    are to be given again. `sealed_repairs` held a secret: the record has them masked.
    """

    run_id: str = ""
    started: Mapping[str, Any] = field(default_factory=dict)
    status: str = ""
    last_seq: int = 0
    resumes: int = 0
    supervisor: str = ""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)
    definition_hash: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    input_blobs: Mapping[str, str] = field(default_factory=dict)
    sealed_inputs: tuple[str, ...] = ()
    returned: dict[Key, Returned] = field(default_factory=dict)
    broken: dict[Key, Broken] = field(default_factory=dict)
    frames: dict[Key, list[Frame]] = field(default_factory=dict)
    begun: set[Key] = field(default_factory=set)
    touched: dict[Key, str] = field(default_factory=dict)
    suspended: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    sent: dict[Key, list[Sent]] = field(default_factory=dict)
    pushed: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    closed_inputs: set[str] = field(default_factory=set)
    interventions: dict[int, Intervention] = field(default_factory=dict)
    known: dict[Key, int] = field(default_factory=dict)
    sealed_repairs: set[Key] = field(default_factory=set)
    costs: Counter[str] = field(default_factory=Counter)
    last_call: int = 0
    rejected: Counter[Key] = field(default_factory=Counter)
    bounds_state: BoundsState = field(default_factory=BoundsState)
    duration_s: float = 0.0
    pruned: set[tuple[str, Lineage]] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    closed: set[tuple[str, Lineage, str]] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.status == "completed"

    def standing(self, node: NodeType, key: Key) -> Standing:
        """What is to become of an invocation that is due.

        What the engine itself does with values on record is done again.
        """
        if node.engine_owned:
            return Standing.NEW
        if key in self.returned:
            return self._standing_of(node, key, self.returned[key])
        if key in self.broken:
            if key in self.known:
                return Standing.ANSWERED
            return Standing.AGAIN if self.may_repeat(node, key) else Standing.FAILED
        if key in self.suspended and key not in self.begun:
            return Standing.AGAIN  # it was not run since
        if key in self.begun or key in self.frames or key in self.touched:
            return Standing.AGAIN if self.may_repeat(node, key) else Standing.CUT_OFF
        return Standing.NEW

    def through(self, node_id: str, node: NodeType) -> bool:
        """Whether nothing of a step is left to be run: what is on record of it stands."""
        keys = [key for key in (*self.returned, *self.broken) if key[0] == node_id]
        stands = (Standing.RETURNED, Standing.ANSWERED)
        return node_id in self.finished and all(self.standing(node, key) in stands for key in keys)

    def _standing_of(self, node: NodeType, key: Key, found: Returned) -> Standing:
        """A result that masking has changed is worked out again, where that does no harm."""
        sealed = found.sealed
        if not sealed and (node.fans_out or self.sent):
            sealed = any(frame.sealed for frame in self.frames.get(key, ()))
            sealed = sealed or any(event.sealed for event in self.sent.get(key, ()))
        if sealed and self.may_repeat(node, key):
            return Standing.AGAIN
        return Standing.RETURNED

    def may_repeat(self, node: NodeType, key: Key) -> bool:
        """Whether running it again does no harm: the code says so, nothing was spent or made."""
        safe = node.retry_safe or node.inline
        broken, returned = self.broken.get(key), self.returned.get(key)
        if broken is not None:
            if broken.facts.get("cut_off"):
                return False
            safe = safe or bool(broken.facts.get("idempotent"))
            known = broken.facts.get("cost_known", True)
            return safe and known and not (broken.cost_micro_usd or broken.assets)
        if returned is not None:
            return safe and not (returned.cost_micro_usd or returned.assets)
        return safe and key not in self.touched

    def give_up_sealed(self, types: Mapping[str, NodeType]) -> None:
        """Leave out repairs that masking has changed, where the step may simply run again."""
        for key in self.sealed_repairs:
            node = types.get(key[0])
            if node is not None and self.may_repeat(node, key):
                self.known.pop(key, None)

    def numbered(self, index: Mapping[str, int]) -> dict[tuple[int, Lineage, int], int]:
        """The escalations whose answers stand, as the kernel names them."""
        return {
            (index[node], lineage, attempt): number
            for (node, lineage, attempt), number in self.known.items()
            if node in index
        }

    def said(self, index: Mapping[str, int]) -> Said:
        """What is on record already, so that it is not said again."""
        return Said(
            started=frozenset(self.nodes),
            finished=frozenset(self.finished),
            pruned=frozenset((index[node], lin) for node, lin in self.pruned if node in index),
            closed=frozenset(self.closed),
        )

    def knows(self, node: str, lineage: Lineage) -> bool:
        """Whether anything is on record of a node under a lineage."""
        width = len(lineage)
        tables = (self.returned, self.broken, self.frames, self.touched, self.suspended, self.begun)
        keys = (key[:2] for table in tables for key in table)
        return any(
            found == node and known[:width] == lineage
            for found, known in itertools.chain(keys, self.pruned)
        )

    def forget(self, node: str, lineage: Lineage, *, exactly: bool = False) -> None:
        """Take back what is known of a node's invocations under a lineage.

        One that is `exactly` meant is to be run once more: it keeps what it paused with.
        """
        width = len(lineage)

        def meant(key: Key) -> bool:
            same = key[1] == lineage if exactly else key[1][:width] == lineage
            return key[0] == node and same

        tables: Sequence[dict[Key, Any]] = (
            self.returned,
            self.broken,
            self.frames,
            self.touched,
            self.sent,
            self.known,
            *([] if exactly else [self.suspended]),
        )
        for table in tables:
            for key in [key for key in table if meant(key)]:
                del table[key]
        self.begun = {key for key in self.begun if not meant(key)}
        self.rejected = Counter({k: n for k, n in self.rejected.items() if not meant(k)})
        self.closed = {known for known in self.closed if known[0] != node}
        self.pruned = {known for known in self.pruned if known[0] != node}
        self.finished.discard(node)
