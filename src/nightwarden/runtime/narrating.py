"""What the kernel says of a run, as events: nodes that begin and end, fan-outs, what will not run.

A lineage that will not run is written down with others of its kind, in ranges. Of a resumed run,
what stands on record already is not said again.

Read next: `recording.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nightwarden.events import (
    InvocationPruned,
    Log,
    NodeFinished,
    NodeStarted,
    RunStopping,
    StreamClosed,
    WindowWidened,
)
from nightwarden.kernel.causes import Cause, Kind
from nightwarden.kernel.effects import CloseRoot, Finish, Invoke, Prune, Stop, Warn, Widen
from nightwarden.kernel.plan import Plan
from nightwarden.lineage import Lineage, show
from nightwarden.runtime.bus import Bus

_PRUNED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Said:
    """What a record says already, so that a resumed run does not say it again."""

    started: frozenset[str] = frozenset()
    finished: frozenset[str] = frozenset()
    pruned: frozenset[tuple[int, Lineage]] = frozenset()
    closed: frozenset[tuple[str, Lineage, str]] = frozenset()


NOTHING_SAID = Said()


class Narrator:
    """Tells of one run. `cause` looks a cause up by its number; `counts` are those of a node."""

    def __init__(self, plan: Plan, bus: Bus) -> None:
        self._plan, self._bus = plan, bus
        self.said = NOTHING_SAID
        self.cause: Callable[[int], Cause] | None = None
        self.counts: Callable[[int], Mapping[str, int]] = lambda _: {}
        self._pruned: dict[tuple[int, int, str], list[Lineage]] = defaultdict(list)

    def node_started(self, invoke: Invoke) -> None:
        """The first invocation of a node."""
        node_id = self._plan.nodes[invoke.node].id
        if node_id not in self.said.started:
            self._bus.publish(NodeStarted(node_id=node_id))

    def noted(self, effect: Warn) -> None:
        """Something the report should show."""
        self._bus.publish(
            Log(
                node_id=self._plan.nodes[effect.node].id,
                lineage=effect.lineage,
                level="warning",
                message=effect.message,
            )
        )

    def pruned(self, effect: Prune) -> None:
        """A lineage that will not run; written in ranges."""
        if not self._bus.active or (effect.node, effect.lineage) in self.said.pruned:
            return
        waiting = self._pruned[effect.node, effect.cause, effect.kind]
        waiting.append(effect.lineage)
        if len(waiting) >= _PRUNED_AT_ONCE:
            self._flush(effect.node)

    def closed(self, effect: CloseRoot) -> None:
        """A fan-out ended."""
        if self._bus.active and self._news(effect.node, effect.lineage, effect.mark):
            self._bus.publish(
                StreamClosed(
                    node_id=self._plan.nodes[effect.node].id,
                    lineage=effect.lineage,
                    emitted=effect.emitted,
                    mark=effect.mark,
                )
            )

    def widened(self, effect: Widen) -> None:
        """A window was doubled."""
        node = self._plan.nodes[effect.node]
        self._bus.publish(WindowWidened(node_id=node.id, window=effect.window))

    def finished(self, effect: Finish) -> None:
        """A node is done."""
        if not self._bus.active:
            return
        self._flush(effect.node)
        node_id = self._plan.nodes[effect.node].id
        if node_id not in self.said.finished:
            self._bus.publish(NodeFinished(node_id=node_id, counts=self.counts(effect.node)))

    def stopping(self, effect: Stop) -> None:
        """Nothing new starts."""
        self._bus.publish(RunStopping(status=effect.status, reason=effect.reason))

    def flush(self) -> None:
        """Write everything that was held back."""
        for node in {key[0] for key in self._pruned}:
            self._flush(node)

    def _flush(self, node: int) -> None:
        for key in [k for k in self._pruned if k[0] == node]:
            cause = self.cause(key[1]) if self.cause is not None else None
            self._bus.publish(
                InvocationPruned(
                    node_id=self._plan.nodes[node].id,
                    kind=key[2],
                    by=cause_text(cause) if cause is not None else "",
                    lineages=tuple(self._pruned.pop(key)),
                )
            )

    def _news(self, node: int, lineage: Lineage, mark: str) -> bool:
        return (self._plan.nodes[node].id, lineage, mark) not in self.said.closed


def explain(causes: Sequence[Cause]) -> str:
    """Causes in words, the first on the way first."""
    return "; ".join(cause_text(cause) for cause in telling(causes)[:3])


def telling(causes: Sequence[Cause]) -> Sequence[Cause]:
    """Those that say why: a branch that was not taken does not, where something was lost too."""
    return [c for c in causes if c.kind is not Kind.NOT_TAKEN] or causes


_HAPPENED = {Kind.REPAIRED: "was repaired", Kind.LOST: "was given up", Kind.FAILED: "failed"}


def cause_text(cause: Cause) -> str:
    """One cause in words."""
    if cause.kind is Kind.NOT_TAKEN:
        return f"{cause.node_id}.{cause.slot} was not taken"
    item = show(cause.lineage)
    return f"{cause.node_id}{f' [{item}]' if item else ''} {_HAPPENED[cause.kind]}"
