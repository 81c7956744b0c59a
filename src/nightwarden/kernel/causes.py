"""Why something is absent, and what a value has lived through.

A *cause* names a branch not taken or an intervention. Sets of causes are interned
frozensets of small integers, so that a value or list carries one reference, never n causes.

    not_taken < lost < failed        the strongest kind of an Absent's inputs wins

A value carries interventions only (repairs, losses it survived): `Carried`.

Read next: `matching.py`.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from nightwarden.lineage import Lineage

CauseSet = frozenset[int]
NO_CAUSES: CauseSet = frozenset()


class Kind(IntEnum):
    """How bad an absence is; stopped and cancelled count as failed. A repair is no absence."""

    REPAIRED = 0
    NOT_TAKEN = 1
    LOST = 2
    FAILED = 3


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One reason. `order` is the topological place of the node; `escalation` 0 for a branch."""

    number: int
    kind: Kind
    node_id: str
    order: int
    lineage: Lineage = ()
    slot: str = ""
    escalation: int = 0


class Absent(msgspec.Struct, frozen=True, eq=False):
    """The settlement of a lineage that will never have a value."""

    kind: Kind
    causes: CauseSet


class Carried(msgspec.Struct, frozen=True, eq=False):
    """The settlement of a value together with the interventions behind it."""

    value: object
    causes: CauseSet


class NotTaken:
    """Type of `NOT_TAKEN`: what a step puts on a slot whose branch it does not take."""

    def __repr__(self) -> str:
        return "NOT_TAKEN"


NOT_TAKEN = NotTaken()


class CauseTable:
    """All causes of a run, by number, and their interned sets."""

    def __init__(self) -> None:
        self._causes: list[Cause] = []
        self._sets: dict[CauseSet, CauseSet] = {NO_CAUSES: NO_CAUSES}
        self._branches: dict[tuple[int, str], Absent] = {}

    def __getitem__(self, number: int) -> Cause:
        return self._causes[number]

    def intervention(
        self, kind: Kind, node_id: str, order: int, lineage: Lineage, escalation: int
    ) -> CauseSet:
        """A new cause: something was given up, repaired or failed here."""
        number = len(self._causes)
        self._causes.append(
            Cause(
                number=number,
                kind=kind,
                node_id=node_id,
                order=order,
                lineage=lineage,
                escalation=escalation,
            )
        )
        return self.intern(frozenset((number,)))

    def branch(self, node_id: str, order: int, slot: str) -> Absent:
        """The one Absent of a slot whose branch was not taken; shared by all lineages."""
        found = self._branches.get((order, slot))
        if found is None:
            number = len(self._causes)
            self._causes.append(
                Cause(number=number, kind=Kind.NOT_TAKEN, node_id=node_id, order=order, slot=slot)
            )
            found = Absent(Kind.NOT_TAKEN, self.intern(frozenset((number,))))
            self._branches[order, slot] = found
        return found

    def intern(self, causes: CauseSet) -> CauseSet:
        """The one shared object equal to this set."""
        return self._sets.setdefault(causes, causes)

    def union(self, one: CauseSet, other: CauseSet) -> CauseSet:
        """Both sets' causes, as one shared set."""
        if one is other or not other:
            return one
        return self.intern(one | other) if one else other

    def interventions(self, causes: CauseSet) -> CauseSet:
        """Only what a value may carry: branches not taken are left out."""
        kept = frozenset(n for n in causes if self._causes[n].kind is not Kind.NOT_TAKEN)
        return causes if len(kept) == len(causes) else self.intern(kept)

    def charge(self, causes: CauseSet) -> Cause:
        """The cause an item is charged to: of the strongest kind, the first on its way."""
        known = self._causes
        return min((known[n] for n in causes), key=rank)

    def ordered(self, causes: CauseSet) -> list[Cause]:
        """The causes in topological order, those of one node by item; for lists people read."""
        found = (self._causes[n] for n in causes)
        return sorted(found, key=lambda c: (c.order, c.lineage, c.number))


def rank(cause: Cause) -> tuple[int, int, Lineage, int]:
    """What an item is charged to rather, first: the same whichever of two came about first."""
    return -cause.kind, cause.order, cause.lineage, cause.number
