"""Control events: who sent which, and what the node they are for is given.

Event i of a controlled node under a parent is its lineage parent + (i,). Which controller sends
its next one first is a choice; each sends its own in order.

Read next: `interpreter.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nightwarden.lineage import Lineage, Scope
from nightwarden.spec.catalog import SlotKind
from nightwarden.spec.scopes import (
    control_root,
    controllers,
    edge_scope,
    is_feedback,
    slot_streams,
)
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow
from reference.words import (
    CONTROL,
    NONE,
    Absent,
    Answered,
    Causes,
    Choices,
    Closing,
    Ending,
    Kind,
    Meaning,
    Overrides,
    Value,
    union,
)


class Events:
    """The events of a run so far."""

    def __init__(
        self,
        workflow: Workflow,
        scopes: Mapping[str, Scope],
        meaning: Meaning,
        choices: Choices,
    ) -> None:
        self._scopes = scopes
        self._workflow, self._meaning, self._choices = workflow, meaning, choices
        self._sent: Counter[tuple[str, Lineage, str]] = Counter()
        self._more: Counter[tuple[str, Lineage]] = Counter()
        self._over: dict[tuple[str, Lineage, str], Causes] = {}
        self.roots = {
            control_root(node.id): node.id
            for node in workflow.nodes
            if controllers(workflow, node.id)
        }

    def controllers(self, target: str) -> list[str]:
        """Who controls a node."""
        return controllers(self._workflow, target)

    def takes(self, target: str, parent: Lineage, sender: str) -> bool:
        """Whether this controller may still send something."""
        return (target, parent, sender) not in self._over

    def end(self, target: str, parent: Lineage, sender: str, causes: Causes) -> None:
        """This controller sends nothing more; `causes` are what it has lived through so far."""
        self._over.setdefault((target, parent, sender), causes)

    def add(
        self, target: str, parent: Lineage, sender: str, overrides: Overrides, causes: Causes
    ) -> Lineage:
        """One more event; the lineage for which the controlled node will run."""
        number = self._sent[target, parent, sender]
        self._sent[target, parent, sender] += 1
        order = self._choices.senders.get((target, parent), ())
        mine = [i for i, who in enumerate(order) if who == sender]
        if number < len(mine):
            index = mine[number]
        else:  # a run that did not come so far has not chosen
            index = len(order) + self._more[target, parent]
            self._more[target, parent] += 1
        slot = self._meaning.slots.setdefault((target, CONTROL), {})
        slot[(*parent, index)] = Value(overrides, causes)
        return (*parent, index)

    def close(self, target: str, parent: Lineage, endings: Mapping[str, Ending | None]) -> Closing:
        """Every controller has ended, or said that it sends nothing more under this parent.

        They ended early if one was given up before it had said that it sends nothing more. That
        there are no more carries what those that ran have lived through.
        """
        n = sum(self._sent[target, parent, who] for who in endings)
        absents = [
            ending.absent
            for who, ending in endings.items()
            if ending and ending.absent and self.takes(target, parent, who)
        ]
        cause = union(absents) if absents else None
        if cause is not None and len(absents) < len(endings):
            lost = cause.kind is not Kind.NOT_TAKEN
            cause = Absent(cause.kind, cause.interventions) if lost else None
        causes = NONE.union(
            *(self._over.get((target, parent, who), NONE) for who in endings),
            *(
                ending.causes
                for who, ending in endings.items()
                if ending and self.takes(target, parent, who)
            ),
        )
        closing = Closing(n, cause, causes)
        self._meaning.closings[control_root(target), parent] = closing
        return closing

    def waits_for(self, target: str, parent: Lineage, sender: str) -> bool:
        """Whether what a node is given beside its events hangs on the end of who asks it."""
        return any(
            self._hangs_on(edge, parent, sender) for edge in self._workflow.edges_into(target)
        )

    def _hangs_on(self, first: EdgeSpec, parent: Lineage, sender: str) -> bool:
        here = self._depth(first) == len(parent)
        seen: set[EdgeSpec] = set()
        ahead = [first]
        while ahead:
            edge = ahead.pop()
            if edge.source == sender:
                # Whoever sends nothing more has ended, as far as these events go.
                control = edge.kind == "control"
                if not (here and control and not self.takes(edge.target, parent, sender)):
                    return True
            elif edge not in seen and edge.source != INPUTS:
                seen.add(edge)
                ahead += self._behind(edge)
        return False

    def _depth(self, edge: EdgeSpec) -> int:
        """How long the lineages are for which an edge is settled at its target."""
        slot = self._workflow.types[edge.target].input(edge.target_slot)
        assert slot is not None
        gathers = slot.kind in (SlotKind.COLLECT, SlotKind.STREAM)
        return len(edge_scope(edge, self._workflow, self._scopes)) - gathers

    def _behind(self, edge: EdgeSpec) -> list[EdgeSpec]:
        """What may have to be settled before an edge is: of a loop its body, only if it has to
        end; of who controls a node, what this node is given, for it may wait for an answer."""
        edges = self._workflow.edges
        found = [e for e in edges if e.target == edge.source and not is_feedback(e, self._workflow)]
        ending = self._ending(edge)
        found += [e for e in edges if e.target == ending and is_feedback(e, self._workflow)]
        for control in (e for e in edges if e.kind == "control" and e.source == edge.source):
            found += self._workflow.edges_into(control.target)
        return found

    def _ending(self, edge: EdgeSpec) -> str:
        """The fan-out that has to end before what this edge carries is known at its target."""
        types = self._workflow.types
        if edge.kind == "control":
            return ""
        slot = types[edge.target].input(edge.target_slot)
        assert slot is not None
        if slot.kind in (SlotKind.COLLECT, SlotKind.STREAM):
            return edge_scope(edge, self._workflow, self._scopes)[-1]
        return "" if slot_streams(types[edge.source], edge.source_slot) else edge.source


def outcome(workflow: Workflow, meaning: Meaning, node: str, lineage: Lineage) -> Answered:
    """What a caller is told: the slots that have a value, or that the node did not run."""
    if meaning.endings[node, lineage].word not in ("succeeded", "repaired"):
        return Answered(None)
    found = []
    for name, slot in workflow.types[node].outputs.items():
        settled = None if slot.stream else meaning.slots[node, name][lineage]
        if isinstance(settled, Value):
            found.append((name, settled.value))
    return Answered(tuple(sorted(found)))
