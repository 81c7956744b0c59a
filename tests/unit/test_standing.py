"""When an agent's spending is worth an event (steering.md §5)."""

from __future__ import annotations

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.meter import Tally
from nightwarden.agents.standing import COST, TURNS, Standing
from nightwarden.events import BudgetExceeded, BudgetWarning, Event, UsageProgress
from nightwarden.nodes.working import WorkLimits

LIMITS = WorkLimits(
    max_turns=10,
    max_cost_usd=1.0,
    timeout_s=100.0,
    max_output_chars=1000,
    max_tokens=100,
    command_timeout_s=1.0,
)


class Desk:
    """An agent that spends what a test says."""

    def __init__(self, cap_micro_usd: int | None = None) -> None:
        self.events: list[Event] = []
        self.tally = Tally()
        self.budget = TurnBudget(cap_micro_usd, name="implement")
        self.now = 0.0
        self.turns = 0
        self.standing = Standing(
            self.events.append, LIMITS, self.tally, self.budget, clock=lambda: self.now
        )

    def spends(self, micro_usd: int, tokens: int = 0) -> None:
        self.tally.cost_micro_usd += micro_usd
        self.tally.tokens_in += tokens
        self.budget.spent_micro_usd += micro_usd
        self.turns += 1
        self.standing.step(self.turns)

    def told(self, kind: type[Event]) -> list[tuple[object, ...]]:
        base = set(Event.__struct_fields__)
        return [
            tuple(getattr(e, f) for f in e.__struct_fields__ if f not in base)
            for e in self.events
            if type(e) is kind
        ]


def test_dollars_are_told_when_they_have_grown_by_a_good_part() -> None:
    """A step of $0.05 and of a fifth, not each turn (reference §2)."""
    desk = Desk()
    for micro_usd in (40_000, 10_000, 40_000, 10_000, 250_000, 60_000, 10_000):
        desk.spends(micro_usd, 100)
    assert desk.told(UsageProgress) == [(200, 0.05), (400, 0.1), (500, 0.35), (700, 0.42)]


def test_of_a_free_model_tokens_are_told() -> None:
    desk = Desk()
    for tokens in (4_000, 1_000, 4_000, 1_000):
        desk.spends(0, tokens)
    assert desk.told(UsageProgress) == [(5_000, None), (10_000, None)]


def test_four_fifths_of_the_money_are_a_warning_said_once() -> None:
    desk = Desk(1_000_000)
    for micro_usd in (700_000, 99_999, 1, 100_000):
        desk.spends(micro_usd)
    assert desk.told(BudgetWarning) == [(COST, 0.8, 1.0)]


def test_four_fifths_of_the_turns_and_of_the_time_are_a_warning_too() -> None:
    desk = Desk()
    desk.now = 80.0
    for _ in range(9):
        desk.spends(0)
    assert desk.told(BudgetWarning) == [("seconds", 80.0, 100.0), (TURNS, 8, 10)]


def test_a_cap_of_nothing_is_no_warning_before_anything_is_spent() -> None:
    desk = Desk(0)
    desk.spends(0)
    assert desk.told(BudgetWarning) == []


def test_the_limit_that_ended_the_work_is_told() -> None:
    desk = Desk(500_000)
    desk.spends(450_000)
    desk.standing.exceeded(COST)
    assert desk.told(BudgetExceeded) == [(COST, 0.45, 0.5)]
