"""From the lines of a record to what has already happened.

The frequent events are decoded as far as they are needed and no further; one function each for the
others. Later facts stand in place of earlier ones, and a resumed run's own events say what of the
past was taken back.

Pure. Read next: `past.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from nightwarden.errors import StoreError
from nightwarden.events.run import ENDS
from nightwarden.masking.redaction import contains_mark
from nightwarden.runtime.bounded import BoundsState
from nightwarden.runtime.past import Begun, Broken, Frame, Key, Past, Returned, Sent
from nightwarden.runtime.sticky import StickySkip
from nightwarden.verdict import (
    ApplyTo,
    DecidedBy,
    Decision,
    Escalation,
    Fail,
    Intervention,
    Outcome,
    Retry,
    Skip,
    Substitute,
)

_Hot = Returned | Frame | Broken | Begun
_hot = msgspec.json.Decoder(_Hot)
_any = msgspec.json.Decoder(dict)
_HOT: Final = tuple(
    f'{{"type":"{tag}"'.encode()
    for tag in ("invocation_succeeded", "item_emitted", "invocation_failed", "invocation_started")
)


def fold_past(lines: Iterable[bytes]) -> Past:
    """What the record says. Raises `StoreError` for one that is none."""
    return _Fold().all(lines)


class _Fold:
    def __init__(self) -> None:
        self.past = Past()
        self.open_costs: dict[Key, int] = {}
        self.reserved: dict[tuple[str, int], tuple[Key, int]] = {}
        self.asked: set[str] = set()
        self.skips: dict[tuple[str, str], StickySkip] = {}
        self.used = self.spent = 0
        self.turns: dict[int, tuple[str, int]] = {}
        """Of decisions that are not on record: what their turns cost, or may have cost."""

    def all(self, lines: Iterable[bytes]) -> Past:
        past = self.past
        try:
            for line in lines:
                past.last_seq += 1
                if line.startswith(_HOT):
                    self.hot(_hot.decode(line))
                else:
                    self.event(_any.decode(line))
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise StoreError(
                f"event {past.last_seq} of the record is damaged ({error}): the run cannot be "
                "resumed; `nightwarden verify` looks the record over"
            ) from error
        if not past.started:
            raise StoreError("the record does not begin with run_started: it cannot be resumed")
        for (node, _, _), cost in (*self.open_costs.items(), *self.reserved.values()):
            past.costs[node] += cost
        past.bounds_state = BoundsState(
            decisions_used=self.used + len(self.asked),
            spent_micro_usd=self.spent + self._undecided(),
            skips=tuple(self.skips.values()),
        )
        return past

    def hot(self, event: _Hot) -> None:
        past = self.past
        key = (event.node_id, event.lineage, event.attempt)
        if isinstance(event, Returned):
            past.returned[key] = event
            past.broken.pop(key, None)  # it was run again since
            past.suspended.pop(key, None)
            self._over(key)
            past.costs[event.node_id] += event.cost_micro_usd
        elif isinstance(event, Frame):
            past.frames.setdefault(key, []).append(event)
        elif isinstance(event, Broken):
            past.broken[key] = event
            past.returned.pop(key, None)
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
        self.spent += self._undecided()  # whoever resumed went on counting from there
        self.turns.clear()
        past = self.past
        for (node, _, _), cost in self.open_costs.items():
            past.costs[node] += cost  # by calls whose end does not come any more
        self.open_costs.clear()
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

    def turn_reserved(self, event: Mapping[str, Any]) -> None:
        """A model turn begins; until it is booked, nobody knows what it costs."""
        if event.get("node_id"):
            number = int(event.get("reservation", 0))
            self.past.last_call = max(self.past.last_call, number)
        elif event.get("escalation_id"):
            worst = int(event.get("worst_micro_usd", 0))
            self.turns[int(event["reservation"])] = str(event["escalation_id"]), worst
        if event.get("node_id") and event.get("worst_micro_usd"):
            key = _key(event)
            turn = (str(event.get("budget")), int(event.get("reservation", 0)))
            self.reserved[turn] = key, int(event.get("worst_micro_usd", 0))
            self.past.touched.setdefault(key, ASKING)

    def _undecided(self) -> int:
        """What was spent on decisions that did not come about."""
        return sum(cost for _, cost in self.turns.values())

    def turn_booked(self, event: Mapping[str, Any]) -> None:
        if not event.get("node_id") and int(event.get("reservation", 0)) in self.turns:
            asked, _ = self.turns[int(event["reservation"])]
            self.turns[int(event["reservation"])] = asked, int(event.get("cost_micro_usd", 0))
            return
        turn = (str(event.get("budget")), int(event.get("reservation", 0)))
        key, _ = self.reserved.pop(turn, (None, 0))
        if key is None:
            return
        asking = any(other == key for other, _ in self.reserved.values())
        if event.get("cost_micro_usd"):
            self.past.touched[key] = "it spent money"
        elif self.past.touched.get(key) == ASKING and not asking:
            del self.past.touched[key]

    def wrote_on_the_way(self, event: Mapping[str, Any]) -> None:
        self.past.touched.setdefault(_key(event), "it wrote a file")

    def paused(self, event: Mapping[str, Any]) -> None:
        key = _key(event)
        self.past.suspended[key] = event
        self.past.begun.discard(key)

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
        asked_by = str(event["escalation_id"])
        self.asked.discard(asked_by)
        self.turns = {k: turn for k, turn in self.turns.items() if turn[0] != asked_by}
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
        self.past.sealed_repairs.discard(key)
        if isinstance(verdict, Substitute) and contains_mark(verdict.outputs):
            self.past.sealed_repairs.add(key)
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


ASKING: Final = "a model call was cut off, and what it cost is not known"


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
    "budget_reserved": _Fold.turn_reserved,
    "budget_committed": _Fold.turn_booked,
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
