"""What a run can be asked about at any time: answers from its state, which they leave as it is.

    evidence ─▶ label, totals, losses, explain      streams ─▶ room, wanted, paused
    reports  ─▶ report, counts, captures, cause     waiting ─▶ idle, pending

Read next: `machine.py`, which changes the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightwarden.kernel.causes import Cause, CauseSet
from nightwarden.kernel.ledger import Report, make_report
from nightwarden.kernel.state import Capture, State
from nightwarden.kernel.waiting import is_idle

_ENDINGS = (
    "succeeded",
    "repaired",
    "skipped",
    "ended_early",
    "pruned",
    "failed",
    "cancelled",
    "suspended",
)


class Asked:
    """The questions. Calls and nodes are named by their numbers; a call that is over is unknown."""

    _state: State

    @property
    def trace(self) -> list[tuple[object, ...]] | None:
        """For tests: when set to a list, every settlement and closing is added to it."""
        return self._state.trace

    @trace.setter
    def trace(self, value: list[tuple[object, ...]] | None) -> None:
        self._state.trace = value

    def paused(self, call: int) -> bool:
        """Whether a fan-out has to wait for `Resume`."""
        found = self._state.calls.get(call)
        return found is not None and found.parked

    def room(self, call: int) -> int:
        """How many items a fan-out may put out at most before they are told. At least one.

        One if it may have to end, or to wait: then the answer to each counts.
        """
        found = self._state.calls.get(call)
        if found is None or found.group is None or not self.wanted(call):
            return 1
        root = found.group.root
        return max(1, root.window - root.outstanding)

    def wanted(self, call: int) -> bool:
        """Whether a call may go on with what it has been shown, as far as is known."""
        state = self._state
        found = state.calls.get(call)
        if found is None or found.halting or state.status is not None:
            return False
        return found.group is None or not found.group.cut

    def report(self) -> Report:
        """The ledger so far; final after `Ended`."""
        return make_report(self._state)

    @property
    def idle(self) -> bool:
        """Whether nothing will move but what is parked outside."""
        return is_idle(self._state)

    def counts(self, node: int) -> Mapping[str, int]:
        """How the lineages of a node have ended, as in the ledger; what is zero left out."""
        found = self._state.nodes[node]
        return {name: number for name in _ENDINGS if (number := getattr(found, name))}

    def captures(self) -> Sequence[Capture]:
        """What the unconnected slots have put out."""
        return self._state.captures

    def label(self, call: int) -> Sequence[tuple[int, object]]:
        """(index, frame) of the items a call stands under, outermost first."""
        found = self._state.calls.get(call)
        path: list[tuple[int, object]] = []
        item = found.item if found is not None else None
        while item is not None and item.parent is not None:
            path.append((item.lineage[-1], item.label))
            item = item.parent
        return path[::-1]

    def totals(self, call: int) -> Sequence[int | None]:
        """How many items each fan-out above a call has in all; None while that is open."""
        found = self._state.calls.get(call)
        sums: list[int | None] = []
        item = found.item if found is not None else None
        while item is not None and item.parent is not None:
            sums.append(item.group.emitted if item.group.closed else None)
            item = item.parent
        return sums[::-1]

    def losses(self, call: int, slot: str) -> Sequence[tuple[int, CauseSet]]:
        """(index, causes) of the items a reader has missed so far."""
        found = self._state.calls.get(call)
        buffer = (found.buffers or {}).get(slot) if found is not None else None
        if buffer is None:
            return ()
        return sorted((i // buffer.plan.edges, c) for i, c in buffer.losses.items())

    def cause(self, number: int) -> Cause:
        """One cause by its number."""
        return self._state.causes[number]

    def explain(self, causes: CauseSet) -> Sequence[Cause]:
        """Causes in topological order."""
        return self._state.causes.ordered(causes)

    def pending(self) -> list[str]:
        """What waits for something, in words; empty once a run has completed."""
        state = self._state
        waits = [f"{n.plan.id}: {len(n.entries)} joins" for n in state.nodes if n.entries]
        waits += [f"{n.plan.id}: {len(n.queue)} queued" for n in state.nodes if n.queue]
        waits += [f"{c.node.plan.id}: call {c.number}" for c in state.calls.values()]
        waits += [f"{r.plan.name}: {len(r.open_groups)} open" for r in state.roots if r.open_groups]
        return waits
