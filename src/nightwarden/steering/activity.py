"""Which watched nodes are active, per branch, so that parallel branches do not confuse it.

A branch an event names itself holds one node at a time: a start there replaces what was active,
so that a finish that got lost does no harm. Without one, each node is its own branch, and each
invocation of it one of its own; the invocations of a node stand for it as soon as there is one.

Read next: `trigger.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from nightwarden.steering.observed import Observed

STARTS: Final = frozenset({"node_started", "invocation_started"})
ENDS: Final = frozenset(
    {"node_finished", "invocation_succeeded", "invocation_failed", "invocation_pruned"}
)
TERMINAL: Final = frozenset(
    {"run_completed", "run_failed", "run_cancelled", "run_suspended", "session_ended"}
)
"""Events after which a run says nothing more to this supervisor; a resume attaches a new one."""

_CALL: Final = "\N{RIGHTWARDS ARROW}"


class Activity:
    """Who is active; `armed` while there is anybody to watch.

    `active` is branch → node in the order of starts, and belongs to the state.
    """

    def __init__(self, watches: Collection[str], active: dict[str, str]) -> None:
        self._watches = frozenset(watches)
        self._active = active
        self.armed = False
        self._look()

    def _look(self) -> None:
        watches = self._watches
        self.armed = not watches or any(node in watches for node in self._active.values())

    def is_watched(self, node: str) -> bool:
        """Whether a start of this node is one the supervisor waits for."""
        return not self._watches or node in self._watches

    def is_foreign(self, seen: Observed) -> bool:
        """Whether an event is about a node that is not watched."""
        return bool(self._watches and seen.node_id and seen.node_id not in self._watches)

    def scope(self, preferred: Iterable[str] = ()) -> str:
        """Who a message is for: the first watched node of these, else the last one started.

        Empty where the whole run is watched.
        """
        if not self._watches:
            return ""
        active = [node for node in self._active.values() if node in self._watches]
        asked = next((node for node in preferred if node in active), "")
        return asked or (active[-1] if active else "")

    def started(self, seen: Observed) -> bool:
        """Note a start; whether it is one of a watched node."""
        branch, node = self._branch(seen), seen.node_id
        if seen.type == "invocation_started":
            self._active.pop(node, None)
        elif not seen.named_branch and any(key.startswith(node + _CALL) for key in self._active):
            return self.is_watched(node)
        self._active.pop(branch, None)
        self._active[branch] = node
        self._look()
        return bool(node) and self.is_watched(node)

    def ended(self, seen: Observed) -> None:
        """Note an end. One that names another node than the branch has now came too late."""
        branch, node = self._branch(seen), seen.node_id
        if self._active.get(branch) == node:
            del self._active[branch]
        if seen.type == "node_finished" and not seen.named_branch:
            for key in [key for key in self._active if key.startswith(node + _CALL)]:
                del self._active[key]
        self._look()

    def clear(self) -> None:
        """Nobody is active any more."""
        self._active.clear()
        self._look()

    def _branch(self, seen: Observed) -> str:
        named = seen.named_branch
        if named:
            return f"branch {named}"
        if seen.type.startswith("invocation_"):
            return f"{seen.node_id}{_CALL}{seen.branch}"
        return seen.node_id
