"""What a run cost: by step, by model, by day, and what deciding cost apart from it.

    invocation_succeeded · invocation_failed     what an attempt came to, whole
    invocation_spent                             what it had spent by then: counts alone only
                                                 where the attempt has no end on record
    supervisor_decision · budget_…               what deciding cost, by model
    steering_evaluated                           what a look at a running agent cost, apart again

Money is counted once, whichever of the events tell of it, and resumed runs carry on. What the
run's end tells beyond that is kept under no step: nothing that was spent is left out.

Read next: `folding.py`, `spending.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nightwarden.events.run import ENDS
from nightwarden.events.words import list_of, mapping_of

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One amount in micro-dollars. `node` is empty where no step told of it, `model` where the
    money went to none or nobody knows which, `day` (UTC) where the event has no time."""

    node: str
    model: str
    day: str


@dataclass(slots=True)
class Costs:
    """`steps` and `supervisor` by line, `steering` by supervisor, in micro-dollars."""

    steps: Counter[Line] = field(default_factory=Counter)
    supervisor: Counter[Line] = field(default_factory=Counter)
    steering: Counter[str] = field(default_factory=Counter)

    @property
    def steps_micro_usd(self) -> int:
        """What the steps cost."""
        return self.steps.total()

    @property
    def supervisor_micro_usd(self) -> int:
        """What deciding cost."""
        return self.supervisor.total()

    @property
    def steering_micro_usd(self) -> int:
        """What watching agents cost."""
        return self.steering.total()

    def by_node(self) -> Counter[str]:
        """The steps' costs by node; what no step told of under an empty name."""
        return _sums((line.node, amount) for line, amount in self.steps.items())


class CostFold:
    """Takes a run's events in order; `close` gives what they cost."""

    def __init__(self) -> None:
        self._costs = Costs()
        self._open: dict[Hashable, dict[Line, int]] = {}
        self._turns: dict[Hashable, tuple[Line, int]] = {}
        self._calls: dict[Hashable, tuple[Line, int]] = {}
        self._asked: dict[str, Counter[Line]] = defaultdict(Counter)
        self._decided: Counter[tuple[str, Line]] = Counter()
        self._end: tuple[str, int, int] = ("", 0, 0)

    def take(self, event: Plain) -> None:
        """Fold one event in."""
        match event.get("type"):
            case "invocation_succeeded" | "invocation_failed":
                self._book(event, self._open.pop(_attempt(event), {}))
            case "invocation_spent":
                self._spent(event)
            case "supervisor_decision":
                self._decision(event)
            case "steering_evaluated":
                self._looked(event)
            case "budget_reserved" if event.get("escalation_id"):
                self._reserved(event)
            case "budget_reserved" if event.get("node_id"):
                self._calls[_turn(event)] = (_line(event), whole(event.get("worst_micro_usd")))
            case "budget_committed":
                self._calls.pop(_turn(event), None)
                self._committed(event)
            case "run_resumed":
                self._cut_off()
            case kind if kind in ENDS:
                self._end = (
                    _day(event),
                    whole(event.get("cost_micro_usd")),
                    whole(event.get("supervisor_cost_micro_usd")),
                )

    def close(self) -> Costs:
        """The costs so far. What is still open counts: of a reserved model turn its worst case."""
        self._cut_off()
        costs = Costs(Counter(self._costs.steps), steering=Counter(self._costs.steering))
        for line, worst in self._calls.values():
            costs.steps[line] += worst
        asked = {key: Counter(turns) for key, turns in self._asked.items()}
        for (escalation, line), amount in self._decided.items():
            turns = asked.setdefault(escalation, Counter())
            turns[line] += max(0, amount - turns.total())
        for turns in asked.values():
            costs.supervisor.update({line: n for line, n in turns.items() if n})
        day, steps, supervisor = self._end
        _rest(costs.steps, steps, day)
        _rest(costs.supervisor, supervisor, day)
        return costs

    def _book(self, event: Plain, spent: Mapping[Line, int]) -> None:
        """An attempt's whole cost: what went to models by model, the rest to none."""
        rest = whole(event.get("cost_micro_usd"))
        for line, amount in spent.items():
            if line.model and amount <= rest:
                self._costs.steps[line] += amount
                rest -= amount
        if rest:
            self._costs.steps[_line(event)] += rest

    def _spent(self, event: Plain) -> None:
        line = _line(event)
        spent = self._open.setdefault(_attempt(event), {})
        spent[line] = spent.get(line, 0) + whole(event.get("cost_micro_usd"))

    def _cut_off(self) -> None:
        """Attempts that never ended have cost what they had booked by then."""
        for spent in self._open.values():
            self._costs.steps.update(spent)
        self._open.clear()

    def _decision(self, event: Plain) -> None:
        decision = mapping_of(event.get("decision"))
        amount = whole(decision.get("cost_micro_usd"))
        if amount:
            line = Line("", str(decision.get("model") or ""), _day(event))
            self._decided[str(event.get("escalation_id", "")), line] += amount

    def _looked(self, event: Plain) -> None:
        amount = whole(event.get("cost_micro_usd"))
        if amount:
            self._costs.steering[str(event.get("supervisor") or "")] += amount

    def _reserved(self, event: Plain) -> None:
        escalation = str(event.get("escalation_id"))
        line = Line("", str(event.get("model") or ""), _day(event))
        worst = whole(event.get("worst_micro_usd"))
        self._turns[_turn(event)] = (Line(escalation, line.model, line.day), worst)
        self._asked[escalation][line] += worst

    def _committed(self, event: Plain) -> None:
        kept, worst = self._turns.pop(_turn(event), (None, 0))
        if kept is not None:
            line = Line("", kept.model, kept.day)
            self._asked[kept.node][line] += whole(event.get("cost_micro_usd")) - worst


def fold_costs(events: Iterable[Plain]) -> Costs:
    """What the events of one run say it cost."""
    fold = CostFold()
    for event in events:
        fold.take(event)
    return fold.close()


def by_model(costs: Costs) -> dict[str, tuple[int, int]]:
    """What went to each model: for steps, and for deciding; to none under an empty name."""
    lines = dict.fromkeys(line.model for line in (*costs.steps, *costs.supervisor))
    return {model: (_to(costs.steps, model), _to(costs.supervisor, model)) for model in lines}


def whole(value: object) -> int:
    """An amount of micro-dollars as a record holds it; 0 for what is none."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if fits else 0  # type: ignore[return-value]


def _rest(booked: Counter[Line], told: int, day: str) -> None:
    """What the end of the run tells beyond what its steps told."""
    missing = told - booked.total()
    if missing > 0:
        booked[Line("", "", day)] += missing


def _to(booked: Counter[Line], model: str) -> int:
    return sum(amount for line, amount in booked.items() if line.model == model)


def _sums(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, amount in pairs:
        found[name] += amount
    return found


def _day(event: Plain) -> str:
    return str(event.get("at") or "")[:10]


def _line(event: Plain) -> Line:
    return Line(str(event.get("node_id", "")), str(event.get("model") or ""), _day(event))


def _attempt(event: Plain) -> Hashable:
    return event.get("node_id"), tuple(list_of(event.get("lineage"))), event.get("attempt")


def _turn(event: Plain) -> Hashable:
    return str(event.get("budget")), str(event.get("reservation"))
