"""What several runs cost together: by run, by node, by model, by day; deciding apart.

    a run's Costs ─▶ Spending.add ─▶ spending_json      for programs
                                 └─▶ spending_text      for people

Read next: `cli/costs.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nightwarden.events.words import count, cut, dollars, text, usd
from nightwarden.report.costing import Costs, Line, by_model

FORMAT: Final = 1

NO_MODEL: Final = "(no model)"
NO_STEP: Final = "(not told by a step)"
NO_DAY: Final = "(no day)"

_NAME_WIDTH: Final = 60


@dataclass(frozen=True, slots=True)
class RunCosts:
    """One run's share. Money in micro-dollars."""

    run_id: str
    workflow: str
    started_at: str
    steps: int
    supervisor: int


@dataclass(slots=True)
class Spending:
    """The sums. `nodes` are by workflow and node; the others hold (steps, supervisor).

    `steering` is what watching agents cost.
    """

    runs: list[RunCosts] = field(default_factory=list)
    free: int = 0
    steering: int = 0
    nodes: Counter[tuple[str, str]] = field(default_factory=Counter)
    models: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    days: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    @property
    def steps(self) -> int:
        """What all steps cost."""
        return sum(run.steps for run in self.runs)

    @property
    def supervisor(self) -> int:
        """What all deciding cost."""
        return sum(run.supervisor for run in self.runs)

    def add(self, run_id: str, workflow: str, started_at: str, costs: Costs) -> None:
        """Take a run in; one that cost nothing is only counted."""
        steps, supervisor = costs.steps_micro_usd, costs.supervisor_micro_usd
        self.steering += costs.steering_micro_usd
        if not steps and not supervisor and not costs.steering_micro_usd:
            self.free += 1
            return
        self.runs.append(RunCosts(run_id, workflow, started_at, steps, supervisor))
        for node, amount in costs.by_node().items():
            self.nodes[workflow, node] += amount
        for sums, per in ((self.models, by_model(costs)), (self.days, by_day(costs))):
            for name, (one, other) in per.items():
                sums[name][0] += one
                sums[name][1] += other


def by_day(costs: Costs) -> dict[str, tuple[int, int]]:
    """What was spent on each day (UTC): by steps, and for deciding."""
    days = sorted({line.day for line in (*costs.steps, *costs.supervisor)})
    return {day: (_on(costs.steps, day), _on(costs.supervisor, day)) for day in days}


def _on(booked: Counter[Line], day: str) -> int:
    return sum(amount for line, amount in booked.items() if line.day == day)


def models_json(costs: Costs) -> list[dict[str, object]]:
    """By model, an empty name for none."""
    return _pairs_json("model", by_model(costs))


def days_json(costs: Costs) -> list[dict[str, object]]:
    """By day, an empty name where it is not known."""
    return _pairs_json("day", by_day(costs))


def spending_json(spending: Spending) -> dict[str, object]:
    """Plain data; what `costs --json` prints."""
    return {
        "version": FORMAT,
        "total_usd": usd(spending.steps + spending.supervisor + spending.steering),
        "steps_usd": usd(spending.steps),
        "supervisor_usd": usd(spending.supervisor),
        **({"steering_usd": usd(spending.steering)} if spending.steering else {}),
        "free_runs": spending.free,
        "runs": [
            {
                "run_id": run.run_id,
                "workflow": run.workflow,
                "started_at": run.started_at,
                "steps_usd": usd(run.steps),
                "supervisor_usd": usd(run.supervisor),
            }
            for run in spending.runs
        ],
        "nodes": [
            {"workflow": workflow, "node": node, "steps_usd": usd(amount)}
            for (workflow, node), amount in spending.nodes.most_common()
        ],
        "models": _pairs_json("model", _largest(spending.models)),
        "days": _pairs_json("day", dict(sorted(spending.days.items()))),
    }


def _pairs_json(name: str, pairs: Mapping[str, Sequence[int]]) -> list[dict[str, object]]:
    return [
        {name: key, "steps_usd": usd(steps), "supervisor_usd": usd(supervisor)}
        for key, (steps, supervisor) in pairs.items()
    ]


def _largest(pairs: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    return dict(sorted(pairs.items(), key=lambda pair: -sum(pair[1])))


BY: Final = ("run", "node", "model", "day")
"""How costs may be told."""


def spending_text(spending: Spending, by: Sequence[str] = BY) -> str:
    """Tables, and the sums below them; the supervisor's line stands apart."""
    blocks = [list(_table(kind, spending)) for kind in by]
    blocks.append(list(_sums(spending)))
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


_Row = tuple[str, int, int]


def _rows(kind: str, spending: Spending) -> list[_Row]:
    match kind:
        case "run":
            return [
                (f"{run.run_id}  {run.workflow}", run.steps, run.supervisor)
                for run in spending.runs
            ]
        case "node":
            return [
                (f"{workflow}: {node or NO_STEP}", amount, 0)
                for (workflow, node), amount in spending.nodes.most_common()
            ]
        case "model":
            pairs = _largest(spending.models).items()
            return [(name or NO_MODEL, steps, deciding) for name, (steps, deciding) in pairs]
        case _:
            pairs = dict(sorted(spending.days.items())).items()
            return [(name or NO_DAY, steps, deciding) for name, (steps, deciding) in pairs]


def _table(kind: str, spending: Spending) -> Iterator[str]:
    rows = [(cut(text(name), _NAME_WIDTH), one, two) for name, one, two in _rows(kind, spending)]
    if not rows:
        return
    deciding = kind != "node"
    width = max(len(name) for name, _, _ in rows)
    head = f"  {'':<{width}}  {'steps':>10}" + (f"  {'supervisor':>10}" if deciding else "")
    yield f"By {kind}{head[len(kind) + 3 :]}"
    for name, steps, supervisor in rows:
        line = f"  {name:<{width}}  {dollars(steps):>10}"
        yield line + (f"  {dollars(supervisor):>10}" if deciding else "")


def _sums(spending: Spending) -> Iterator[str]:
    yield f"steps       {dollars(spending.steps):>10}"
    yield f"supervisor  {dollars(spending.supervisor):>10}"
    if spending.steering:
        yield f"steering    {dollars(spending.steering):>10}"
    together = spending.steps + spending.supervisor + spending.steering
    yield f"together    {dollars(together):>10}"
    free = f"; {count(spending.free, 'other')} cost nothing" if spending.free else ""
    yield f"{count(len(spending.runs), 'run')}{free}"
