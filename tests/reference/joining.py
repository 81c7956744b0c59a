"""What has arrived at a node for one lineage, and whether it runs: the rows of "Joining".

    edges of a slot ──arrived──▶ one value or one absence a slot ──join──▶ inputs | Absent

Read next: `interpreter.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nightwarden.lineage import Lineage, Scope
from nightwarden.spec.catalog import InputSlot, Missing, NodeType, SlotKind
from nightwarden.spec.scopes import controllers, edge_scope, is_feedback, slot_streams
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow
from reference.words import (
    ABSENT,
    CONTROL,
    DEFAULT,
    NONE,
    STREAM,
    Absent,
    Causes,
    Choices,
    Closing,
    Kind,
    Listed,
    Meaning,
    Settlement,
    Value,
    union,
)

Place = tuple[int, int]
"""Where an item stands in a slot: its index, and which of the slot's edges it comes over."""


@dataclass(slots=True)
class Items:
    """What lies under one parent, as a reading slot gets it; `passed` places are behind it."""

    places: Sequence[tuple[Place, Settlement]]
    closing: Closing
    passed: int = 0
    ended: bool = False

    def failures(self) -> list[Absent]:
        """What cancels a reader when it gets here."""
        absents = [s for _, s in self.places if isinstance(s, Absent)]
        if self.closing.cause is not None:
            absents.append(self.closing.cause)
        return [a for a in absents if a.kind is Kind.FAILED]


@dataclass(slots=True)
class Input:
    """A slot's value or absence; `full`: a value lies over the node's full scope."""

    value: object = None
    absent: Absent | None = None
    full: bool = False
    causes: Causes = NONE


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inputs a node runs with, and what its values will carry."""

    inputs: Mapping[str, object]
    causes: Causes


def join(node_type: NodeType, arrived: Mapping[str, Input]) -> Inbox | Absent:
    """Where the rows overlap, the first that applies wins."""
    absents = {name: i.absent for name, i in arrived.items() if i.absent is not None}
    taken = {name: i.value for name, i in arrived.items() if i.absent is None}
    pruned = union(absents.values()) if absents else None
    if pruned is not None:
        if pruned.kind is Kind.FAILED:
            return pruned
        if node_type.join == "any" and not taken:
            return pruned
    full = [name for name in taken if arrived[name].full]
    causes = NONE.union(*(arrived[name].causes for name in taken))
    for name, absent in absents.items():
        stand_in = _stand_in(_slot(node_type, name), absent, node_type.join, bool(full))
        if stand_in is None:
            assert pruned is not None
            return pruned
        taken[name] = stand_in
        causes |= absent.interventions
    inputs = {n: STREAM if isinstance(v, Items) else v for n, v in taken.items()}
    return Inbox(inputs, causes)


def _stand_in(slot: InputSlot, absent: Absent, joining: str, full: bool) -> object | None:
    """What a slot gets in place of a value, by rows 2 to 5; None: the node is pruned."""
    default = not isinstance(slot.default, Missing)
    if joining == "any":
        return DEFAULT if default else ABSENT
    if slot.accepts_absent:
        lost = slot.kind is SlotKind.COLLECT and absent.kind is Kind.LOST
        return Listed(losses=((-1, absent.causes),)) if lost else ABSENT
    if absent.kind is Kind.NOT_TAKEN and default and full:
        return DEFAULT
    return None


def _slot(node_type: NodeType, name: str) -> InputSlot:
    slot = node_type.input(name)
    assert slot is not None, f"{node_type.name} has no input {name}"
    return slot


class Arrivals:
    """What arrives at a node, out of a meaning that is being found out.

    What is not found out yet is asked for: `settle_node` settles a node for a lineage, and
    `close_root` closes a root under a parent.
    """

    def __init__(
        self,
        workflow: Workflow,
        scopes: Mapping[str, Scope],
        meaning: Meaning,
        choices: Choices,
        settle_node: Callable[[str, Lineage], None],
        close_root: Callable[[str, Lineage], Closing],
    ) -> None:
        self._workflow, self._scopes = workflow, scopes
        self._meaning, self._choices = meaning, choices
        self._settle_node, self._close_root = settle_node, close_root

    def at(self, node_id: str, lineage: Lineage) -> dict[str, Input]:
        """Every wired slot of a node, settled for one lineage; what a loop is fed is none."""
        slots: dict[str, list[EdgeSpec]] = {}
        for edge in self._workflow.edges_into(node_id):
            if not is_feedback(edge, self._workflow):
                slots.setdefault(edge.target_slot, []).append(edge)
        found = {name: self._slot(edges, lineage) for name, edges in slots.items()}
        if controllers(self._workflow, node_id):
            event = self._meaning.slots[node_id, CONTROL][lineage]
            assert isinstance(event, Value)
            found[CONTROL] = Input(event.value, full=True, causes=event.causes)
        return found

    def fed_back(self, node_id: str, lineage: Lineage) -> dict[str, Settlement]:
        """What the body of a loop hands back for one iteration, by slot."""
        edges = self._workflow.edges_into(node_id)
        back = [e for e in edges if is_feedback(e, self._workflow)]
        return {e.target_slot: self._settled(e, lineage) for e in back}

    def _slot(self, edges: Sequence[EdgeSpec], lineage: Lineage) -> Input:
        node_type = self._workflow.types[edges[0].target]
        slot = _slot(node_type, edges[0].target_slot)
        if slot.kind is SlotKind.COLLECT:
            return self._collected(edges, lineage)
        if slot.kind is SlotKind.STREAM:
            return self._read(edges, lineage)
        several = slot.kind is SlotKind.MANY
        tolerant = node_type.join == "any" or (several and slot.accepts_absent)
        return self._gathered(edges, lineage, several=several, tolerant=tolerant)

    def _gathered(
        self, edges: Sequence[EdgeSpec], lineage: Lineage, *, several: bool, tolerant: bool
    ) -> Input:
        """One settlement an edge: the first value, or for a `Many` slot the list of them."""
        values: list[object] = []
        absents: list[Absent] = []
        found = Input()
        for edge in edges:
            depth = len(edge_scope(edge, self._workflow, self._scopes))
            settled = self._settled(edge, lineage[:depth])
            if isinstance(settled, Absent):
                absents.append(settled)
            else:
                values.append(settled.value)
                found.causes |= settled.causes
                found.full |= depth == len(lineage)
        worst = max((a.kind for a in absents), default=Kind.NOT_TAKEN)
        bearable = Kind.LOST if tolerant else Kind.NOT_TAKEN
        if not values or worst > bearable:
            found.absent = union(absents)
        else:
            found.value = tuple(values) if several else values[0]
            found.causes = found.causes.union(*(a.interventions for a in absents))
        return found

    def _collected(self, edges: Sequence[EdgeSpec], lineage: Lineage) -> Input:
        """The list of a collecting slot: values in item order, gaps, losses."""
        scope = edge_scope(edges[0], self._workflow, self._scopes)
        parent = lineage[: len(scope) - 1]
        full = parent == lineage
        closing = self._close_root(scope[-1], parent)
        ended = [] if closing.cause is None else [closing.cause]
        if closing.never_opened:
            return Input(absent=ended[0])
        places = self._places(edges, parent, closing)
        absents = [s for _, s in places if isinstance(s, Absent)] + ended
        failed = Items(places, closing).failures()
        if failed:
            return Input(absent=union(failed))
        values = [(i, s) for (i, _), s in places if isinstance(s, Value)]
        lost = [
            (i, s.causes) for (i, _), s in places if isinstance(s, Absent) and s.kind is Kind.LOST
        ]
        listed = Listed(
            tuple(s.value for _, s in values),
            tuple(i for i, _ in values),
            tuple(lost),
            NONE.union(*(a.causes for a in ended if a.kind is Kind.LOST)),
        )
        carried = [s.causes for _, s in values] + [a.interventions for a in absents]
        return Input(listed, full=full, causes=closing.causes.union(*carried))

    def _read(self, edges: Sequence[EdgeSpec], lineage: Lineage) -> Input:
        root = edge_scope(edges[0], self._workflow, self._scopes)[-1]
        closing = self._close_root(root, lineage)
        items = Items(self._places(edges, lineage, closing), closing)
        return Input(items, closing.cause if closing.never_opened else None, full=True)

    def _places(
        self, edges: Sequence[EdgeSpec], parent: Lineage, closing: Closing
    ) -> list[tuple[Place, Settlement]]:
        """Item order, then edge order; or the order in which a reader got them."""
        items = [
            ((i, k), self._settled(edge, (*parent, i)))
            for i in range(closing.n)
            for k, edge in enumerate(edges)
        ]
        target = (edges[0].target, parent, edges[0].target_slot)
        arrivals = self._choices.arrivals.get(target)
        if arrivals is not None:
            rank = {index: place for place, index in enumerate(arrivals)}
            items.sort(key=lambda item: rank.get(item[0][0], -1))
        return items

    def _settled(self, edge: EdgeSpec, lineage: Lineage) -> Settlement:
        source, slot = edge.source, edge.source_slot
        if source != INPUTS and lineage not in self._meaning.slots.get((source, slot), {}):
            streams = slot_streams(self._workflow.types[source], slot)
            self._settle_node(source, lineage[:-1] if streams else lineage)
        return self._meaning.slots[source, slot][lineage]
