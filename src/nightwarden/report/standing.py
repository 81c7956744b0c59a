"""How far each node has come, and what was decided there: one state and some badges a node.

The ledger of the run's end says it exactly. Before there is one, the events say how far the run
is: an attempt that was superseded, by a resume that does it again, is not counted.

Read next: `folding.py`, `picture.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nightwarden.events.interventions import Intervention
from nightwarden.events.words import list_of, mapping_of

Plain = Mapping[str, Any]

COUNTS: Final = (
    "succeeded",
    "repaired",
    "skipped",
    "ended_early",
    "pruned",
    "failed",
    "cancelled",
    "suspended",
    "unrun",
)
"""What may become of a lineage at a node, as the ledger counts it."""

_STRONGEST: Final = (
    ("failed", "failed"),
    ("cancelled", "cancelled"),
    ("suspended", "suspended"),
    ("skipped", "skipped"),
    ("ended_early", "skipped"),
    ("repaired", "repaired"),
)
_ENDED: Final = ("completed", "failed", "cancelled", "suspended")
_APPLIED: Final = {"skip": "skipped", "substitute": "repaired", "end_stream": "ended_early"}


@dataclass(slots=True)
class NodeState:
    """A node. `state` is one word, `counts` those of the ledger, `badges` verdicts by action.

    `depth` is how many fan-outs it lies under, None where nothing says so.
    """

    node: str
    type: str = ""
    state: str = "waiting"
    depth: int | None = None
    fans_out: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    badges: Counter[str] = field(default_factory=Counter)
    cost_micro_usd: int = 0


class StandingFold:
    """Takes a run's events in order; `close` gives the nodes, in the definition's order."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._started: set[str] = set()
        self._finished: set[str] = set()

    def take(self, event: Plain) -> None:
        """Fold one event in."""
        kind, node = event.get("type"), str(event.get("node_id") or "")
        match kind:
            case "run_started":
                self._define(mapping_of(event.get("definition")))
            case "run_resumed":
                self._resume(event)
            case "node_started":
                self._started.add(node)
            case "node_finished":
                self._finished.add(node)
            case "invocation_succeeded":
                self._of(node, event).counts["succeeded"] += 1
            case "invocation_suspended":
                self._of(node, event).counts["suspended"] += 1
            case "invocation_pruned":
                self._of(node, None).counts["pruned"] += len(list_of(event.get("lineages")))
            case "stream_closed" | "item_emitted":
                self._of(node, None).fans_out = True

    def close(
        self,
        interventions: Iterable[Intervention],
        roots: Iterable[Plain],
        nodes: Iterable[Plain],
        *,
        status: str,
        made_good: Container[str],
    ) -> list[NodeState]:
        """How the nodes stand: by the ledger where there is one, else by the events so far.

        `status` is the run's; `made_good` are interventions that a resumed run has got over.
        """
        for found in interventions:
            state = self._of(str(found.escalation.get("node_id") or ""), None)
            if found.action:
                state.badges[found.action] += 1
            if found.action in _APPLIED and found.outcome:
                state.counts[_APPLIED[found.action]] += 1
            if found.became in ("stopped", "never_ran") and found.id not in made_good:
                state.counts["failed"] += 1
        for account in nodes:
            state = self._of(str(account.get("node_id") or ""), None)
            state.counts = Counter({c: int(account.get(c) or 0) for c in COUNTS})
            state.depth = int(account.get("depth") or 0)
            self._started |= {state.node} if account.get("started") else set()
        for root in roots:
            self._of(str(root.get("node") or ""), None).fans_out = True
        found_nodes = [state for name, state in self._nodes.items() if name and "()" not in name]
        for state in found_nodes:
            state.state = self._word(state, status)
        return found_nodes

    def _word(self, state: NodeState, status: str) -> str:
        begun = state.node in self._started or any(state.counts[c] for c, _ in _STRONGEST)
        begun = begun or bool(state.counts["succeeded"])
        over = status in _ENDED or state.node in self._finished
        if begun and not over and not state.counts["failed"]:
            return "running" if status == "running" else "unfinished"
        for count, word in _STRONGEST:
            if state.counts[count]:
                return word
        if state.counts["succeeded"]:
            return "unfinished" if state.counts["unrun"] else "succeeded"
        return "pruned" if state.counts["pruned"] else "waiting"

    def _define(self, definition: Plain) -> None:
        for given in list_of(definition.get("nodes")):
            node = mapping_of(given)
            self._of(str(node.get("id") or ""), None).type = str(node.get("type") or "")

    def _resume(self, event: Plain) -> None:
        """What is done again, and what a pause or an end had cut off, is open again."""
        self._finished.clear()
        self._define(mapping_of(event.get("definition")))
        for state in self._nodes.values():
            del state.counts["suspended"]
        for redone in list_of(event.get("redo")):
            pair = list_of(redone)
            if pair and str(pair[0]) in self._nodes:
                counts = self._nodes[str(pair[0])].counts
                counts["succeeded"] = max(0, counts["succeeded"] - 1)

    def _of(self, node: str, event: Plain | None) -> NodeState:
        state = self._nodes.get(node)
        if state is None:
            state = self._nodes[node] = NodeState(node)
        if event is not None and state.depth is None:
            state.depth = len(list_of(event.get("lineage")))
        return state
