"""What a record says has already happened: the facts a resumed run is told again.

    lines of the record ─▶ fold_past ─▶ Past ─▶ standing(node, key) ─▶ told again, or run

A fact is found by its key: node, lineage, attempt. Later facts stand in place of earlier ones.
Left out is what ended the run: stops, cancels, decisions to fail. Values stay encoded until
somebody needs them.

Pure. Read next: `replaying.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from nightwarden.errors import StoreError
from nightwarden.lineage import Lineage
from nightwarden.runtime.bounded import BoundsState
from nightwarden.runtime.deciding import Intervention
from nightwarden.runtime.recording import Said
from nightwarden.runtime.sticky import StickySkip
from nightwarden.spec.catalog import NodeType
from nightwarden.verdict import (
    ApplyTo,
    DecidedBy,
    Decision,
    Escalation,
    Fail,
    Outcome,
    Retry,
    Skip,
)

Key = tuple[str, Lineage, int]
"""Node, lineage, attempt."""

_NO_VALUES: Final = msgspec.Raw(b"{}")
ENDS: Final[Mapping[str, str]] = {
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
    "run_suspended": "suspended",
}


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


_Hot = Returned | Frame | Broken | Begun
_hot = msgspec.json.Decoder(_Hot)
_any = msgspec.json.Decoder(dict)
_HOT: Final = tuple(
    f'{{"type":"{tag}"'.encode()
    for tag in ("invocation_succeeded", "item_emitted", "invocation_failed", "invocation_started")
)


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
    are to be given again.
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
        if key in self.suspended:
            return Standing.AGAIN
        if key in self.begun or key in self.frames or key in self.touched:
            return Standing.AGAIN if self.may_repeat(node, key) else Standing.CUT_OFF
        return Standing.NEW

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
        """Take back what is known of a node's invocations under a lineage."""
        width = len(lineage)

        def meant(key: Key) -> bool:
            same = key[1] == lineage if exactly else key[1][:width] == lineage
            return key[0] == node and same

        tables: Sequence[dict[Key, Any]] = (
            self.returned,
            self.broken,
            self.frames,
            self.touched,
            self.suspended,
            self.sent,
            self.known,
        )
        for table in tables:
            for key in [key for key in table if meant(key)]:
                del table[key]
        self.begun = {key for key in self.begun if not meant(key)}
        self.rejected = Counter({k: n for k, n in self.rejected.items() if not meant(k)})
        self.closed = {known for known in self.closed if known[0] != node}
        self.pruned = {known for known in self.pruned if known[0] != node}
        self.finished.discard(node)


def fold_past(lines: Iterable[bytes]) -> Past:
    """What the record says. Raises `StoreError` for one that is none."""
    return _Fold().all(lines)


class _Fold:
    def __init__(self) -> None:
        self.past = Past()
        self.open_costs: dict[Key, int] = {}
        self.open_calls: dict[tuple[str, int], tuple[Key, int]] = {}
        self.asked: set[str] = set()
        self.skips: dict[tuple[str, str], StickySkip] = {}
        self.used = self.spent = 0

    def all(self, lines: Iterable[bytes]) -> Past:
        past = self.past
        for line in lines:
            past.last_seq += 1
            if line.startswith(_HOT):
                self.hot(_hot.decode(line))
            else:
                self.event(_any.decode(line))
        if not past.started:
            raise StoreError("the record does not begin with run_started: it cannot be resumed")
        for (node, _, _), cost in self.open_costs.items():
            past.costs[node] += cost
        for key, worst in self.open_calls.values():
            past.costs[key[0]] += worst
            if worst and key not in past.returned and key not in past.broken:
                past.touched[key] = "a model call was cut off, and what it cost is not known"
        past.bounds_state = BoundsState(
            decisions_used=self.used + len(self.asked),
            spent_micro_usd=self.spent,
            skips=tuple(self.skips.values()),
        )
        return past

    def hot(self, event: _Hot) -> None:
        past = self.past
        key = (event.node_id, event.lineage, event.attempt)
        if isinstance(event, Returned):
            past.returned[key] = event
            self._over(key)
            past.costs[event.node_id] += event.cost_micro_usd
        elif isinstance(event, Frame):
            past.frames.setdefault(key, []).append(event)
        elif isinstance(event, Broken):
            past.broken[key] = event
            past.known.pop(key, None)
            self._over(key)
            past.costs[event.node_id] += event.cost_micro_usd
        else:
            past.begun.add(key)
            past.returned.pop(key, None)

    def _over(self, key: Key) -> None:
        """What an invocation spent on its way stands in its end."""
        self.open_costs.pop(key, None)
        self.past.touched.pop(key, None)
        self.past.suspended.pop(key, None)

    def event(self, event: Mapping[str, Any]) -> None:
        handler = _HANDLERS.get(str(event.get("type")))
        if handler is not None:
            handler(self, event)

    # -- one function a type --

    def run_started(self, event: Mapping[str, Any]) -> None:
        past = self.past
        past.started, past.run_id = event, str(event["run_id"])
        past.definition = event["definition"]
        past.definition_hash = event["definition_hash"]
        past.inputs = dict(event["inputs"])
        past.input_blobs = event.get("blobs", {})
        past.sealed_inputs = tuple(event.get("sealed", ()))
        past.supervisor, past.bounds = event.get("supervisor", ""), event.get("bounds", {})

    def run_resumed(self, event: Mapping[str, Any]) -> None:
        past = self.past
        past.resumes += 1
        past.status = ""
        past.supervisor, past.bounds = event.get("supervisor", ""), event.get("bounds", {})
        if event.get("definition") is not None:
            past.definition = event["definition"]
            past.definition_hash = event["definition_hash"]
        if event.get("inputs") is not None:
            past.inputs = {**past.inputs, **event["inputs"]}
        for node, lineage in event.get("redo", ()):
            past.forget(node, tuple(lineage))
        for node, lineage in event.get("retry", ()):
            past.forget(node, tuple(lineage), exactly=True)

    def run_ended(self, event: Mapping[str, Any]) -> None:
        self.past.status = ENDS[str(event["type"])]
        self.past.duration_s = float(event.get("duration_s", 0.0))

    def spent_on_the_way(self, event: Mapping[str, Any]) -> None:
        key = _key(event)
        cost = int(event.get("cost_micro_usd", 0))
        self.open_costs[key] = self.open_costs.get(key, 0) + cost
        self.past.touched[key] = "it spent money"

    def call_reserved(self, event: Mapping[str, Any]) -> None:
        """A step was about to ask a model: until it is booked, its worst case counts."""
        number = int(event.get("reservation", 0))
        if event.get("node_id"):
            worst = int(event.get("worst_micro_usd", 0))
            self.open_calls[str(event.get("budget")), number] = (_key(event), worst)
            self.past.last_call = max(self.past.last_call, number)

    def call_booked(self, event: Mapping[str, Any]) -> None:
        self.open_calls.pop((str(event.get("budget")), int(event.get("reservation", 0))), None)

    def wrote_on_the_way(self, event: Mapping[str, Any]) -> None:
        self.past.touched.setdefault(_key(event), "it wrote a file")

    def paused(self, event: Mapping[str, Any]) -> None:
        self.past.suspended[_key(event)] = event

    def control_sent(self, event: Mapping[str, Any]) -> None:
        sent = Sent(str(event["target"]), event.get("overrides", {}), bool(event.get("sealed")))
        self.past.sent.setdefault(_key(event), []).append(sent)

    def input_pushed(self, event: Mapping[str, Any]) -> None:
        for name in (*event.get("inputs", {}), *event.get("blobs", {})):
            self.past.pushed.setdefault(name, []).append(event)

    def input_closed(self, event: Mapping[str, Any]) -> None:
        self.past.closed_inputs.add(str(event["name"]))

    def rejected(self, event: Mapping[str, Any]) -> None:
        self.past.rejected[_key(event)] += 1

    def pruned(self, event: Mapping[str, Any]) -> None:
        node = str(event["node_id"])
        if event.get("kind") != "failed":
            self.past.pruned.update((node, tuple(lin)) for lin in event.get("lineages", ()))

    def stream_closed(self, event: Mapping[str, Any]) -> None:
        lineage = tuple(event.get("lineage", ()))
        self.past.closed.add((str(event["node_id"]), lineage, str(event.get("mark", ""))))

    def node_started(self, event: Mapping[str, Any]) -> None:
        self.past.nodes.add(str(event["node_id"]))

    def node_finished(self, event: Mapping[str, Any]) -> None:
        self.past.finished.add(str(event["node_id"]))

    def escalated(self, event: Mapping[str, Any]) -> None:
        found = msgspec.convert(event["escalation"], Escalation)
        self.past.interventions[int(found.id[1:])] = Intervention(escalation=found)

    def deciding(self, event: Mapping[str, Any]) -> None:
        self.asked.add(str(event["escalation_id"]))

    def decided(self, event: Mapping[str, Any]) -> None:
        number = int(str(event["escalation_id"])[1:])
        self.asked.discard(str(event["escalation_id"]))
        found = self.past.interventions.get(number)
        if found is None:
            return
        decision = msgspec.convert(event["decision"], Decision)
        found.decision = decision
        self.used = max(self.used, int(event.get("used", 0)))
        self.spent = max(self.spent, int(event.get("spent_micro_usd", 0)))
        asked = found.escalation
        key = (asked.node_id, asked.lineage, asked.attempt)
        if not isinstance(decision.verdict, Fail):
            self.past.known[key] = number
        verdict, by = decision.verdict, decision.decided_by
        sticks = isinstance(verdict, Skip) and verdict.apply_to is ApplyTo.SIGNATURE
        if sticks and asked.signature is not None and by is not DecidedBy.STICKY:
            self.skips[asked.node_id, asked.signature] = StickySkip(
                node_id=asked.node_id,
                signature=asked.signature,
                rationale=decision.rationale,
                escalation_id=asked.id,
            )

    def concluded(self, event: Mapping[str, Any]) -> None:
        found = self.past.interventions.get(int(str(event["escalation_id"])[1:]))
        if found is None:
            return
        outcome = msgspec.convert(event["outcome"], Outcome)
        if isinstance(getattr(found.decision, "verdict", None), Retry):
            ran = outcome.kind.value not in ("retry_never_ran", "never_ran")
            if not ran:
                return  # it is run now, and becomes what it becomes
        found.outcome = outcome


def _key(event: Mapping[str, Any]) -> Key:
    return (
        str(event["node_id"]),
        tuple(event.get("lineage", ())),
        int(event.get("attempt", 0)),
    )


_HANDLERS: Final[Mapping[str, Any]] = {
    "run_started": _Fold.run_started,
    "run_resumed": _Fold.run_resumed,
    **dict.fromkeys(ENDS, _Fold.run_ended),
    "invocation_spent": _Fold.spent_on_the_way,
    "budget_reserved": _Fold.call_reserved,
    "budget_committed": _Fold.call_booked,
    "asset_written": _Fold.wrote_on_the_way,
    "invocation_suspended": _Fold.paused,
    "control_sent": _Fold.control_sent,
    "input_pushed": _Fold.input_pushed,
    "input_closed": _Fold.input_closed,
    "record_rejected": _Fold.rejected,
    "invocation_pruned": _Fold.pruned,
    "stream_closed": _Fold.stream_closed,
    "node_started": _Fold.node_started,
    "node_finished": _Fold.node_finished,
    "supervisor_escalation": _Fold.escalated,
    "supervisor_deciding": _Fold.deciding,
    "supervisor_decision": _Fold.decided,
    "supervisor_outcome": _Fold.concluded,
}
