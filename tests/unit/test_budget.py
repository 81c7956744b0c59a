"""Money for model turns: supervision.md §6, Money; case H07."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.agents.budget import BudgetRefused, Reservation, TurnBudget, usd
from nightwarden.agents.prices import FREE, Catalogued, Fixed, Usage, catalogued
from nightwarden.events import BudgetCommitted, BudgetReserved, Event, decode_lines, encode
from nightwarden.events.budget import BudgetState, budget_state
from nightwarden.events.render import render

CASE = json.loads(
    (Path(__file__).parent.parent / "cases" / "H07_cost_ceiling" / "case.json").read_text("utf-8")
)
PRICED = [variant for variant in CASE["variants"] if variant.get("price", "listed")]


def price() -> Fixed:
    listed = CASE["price_micro_per_token"]
    return Fixed(Decimal(listed["in"]), Decimal(listed["out"]))


def worst(tokens_in: int) -> int:
    return price().micro_usd(Usage(tokens_in=tokens_in, tokens_out=CASE["max_output_tokens"]))


@pytest.mark.parametrize("variant", PRICED, ids=lambda variant: variant["name"])
def test_the_ceiling_of_the_neutral_case(variant: dict[str, Any]) -> None:
    """Case H07, to the micro-dollar."""
    budget = TurnBudget(variant["cap_micro"])
    budget.restore(BudgetState(spent_micro_usd=variant.get("spent_before_resume_micro", 0)))
    told, calls = [], 0
    for number, call in enumerate(variant["calls"], start=1):
        entry: dict[str, Any] = {
            "call": number,
            "admitted": True,
            "worst_micro": worst(call["tokens_in"]),
            "spent_before": budget.spent_micro_usd,
        }
        told.append(entry)
        try:
            turn = budget.reserve(entry["worst_micro"])
        except BudgetRefused:
            entry["admitted"] = False
            continue
        calls += 1
        known = call["tokens_out"] is not None
        usage = Usage(tokens_in=call["tokens_in"], tokens_out=call["tokens_out"] or 0)
        entry["cost_micro"] = budget.commit(turn, price().micro_usd(usage) if known else None)
    expect = variant["expect"]
    assert told == expect.get("calls", told)
    assert budget.spent_micro_usd == expect.get("spent_micro", budget.spent_micro_usd)
    assert calls == expect.get("model_calls", calls)


def test_equality_with_the_cap_is_admitted_and_one_more_is_not() -> None:
    budget = TurnBudget(100)
    assert budget.reserve(100).worst_micro_usd == 100
    with pytest.raises(BudgetRefused):
        budget.reserve(1)


def test_what_is_held_counts_before_it_is_booked() -> None:
    """Scenario 71, and two turns at once."""
    budget = TurnBudget(500_000)
    budget.restore(BudgetState(spent_micro_usd=200_000))
    first = budget.reserve(200_000)
    with pytest.raises(BudgetRefused) as caught:
        budget.reserve(100_001)
    assert str(caught.value) == (
        "cost cap of $0.50 reached: the next turn may cost $0.100001, $0.20 are spent, "
        "$0.20 are held by turns under way"
    )
    budget.commit(first, 1)
    assert budget.reserve(100_001).spent_before_micro_usd == 200_001


def test_unknown_actuals_are_booked_at_the_worst_case() -> None:
    """Scenario 74."""
    budget = TurnBudget(100)
    assert budget.commit(budget.reserve(60), None) == 60
    assert budget.spent_micro_usd == 60


def test_a_refused_turn_gives_its_reservation_back() -> None:
    """Scenario 75."""
    budget = TurnBudget(100)
    assert budget.release(budget.reserve(100)) is True
    assert (budget.spent_micro_usd, budget.left_micro_usd) == (0, 100)


def test_closing_one_reservation_leaves_the_others_held() -> None:
    """Scenario 76."""
    budget = TurnBudget(100)
    first, second = budget.reserve(40), budget.reserve(40)
    budget.commit(first, 10)
    assert budget.outstanding_micro_usd == second.worst_micro_usd == 40


def test_a_foreign_or_second_commit_changes_nothing() -> None:
    """Scenario 77."""
    budget, other = TurnBudget(100), TurnBudget(100)
    mine, theirs = budget.reserve(40), other.reserve(40)
    assert budget.commit(theirs, 5) is None
    assert budget.release(theirs) is False
    assert budget.commit(mine, 7) == 7
    assert budget.commit(mine, 7) is None
    assert budget.release(mine) is False
    assert (budget.spent_micro_usd, budget.outstanding_micro_usd) == (7, 0)


def test_a_cap_of_zero_allows_no_turn_not_even_a_free_one() -> None:
    """supervision.md §6: cap 0 = no call."""
    for worst_case in (0, 1):
        with pytest.raises(BudgetRefused, match=r"a cost cap of \$0\.00 allows no model turn"):
            TurnBudget(0).reserve(worst_case)


def test_a_free_turn_fits_under_a_tiny_cap_and_under_one_that_is_used_up() -> None:
    """Scenario 73: a local model is free, not unpriced."""
    budget = TurnBudget(1)
    budget.commit(budget.reserve(1), 1)
    assert budget.commit(budget.reserve(0), 0) == 0


def test_a_provider_that_charges_more_than_the_worst_is_believed() -> None:
    budget = TurnBudget(100)
    assert budget.commit(budget.reserve(50), 120) == 120
    with pytest.raises(BudgetRefused):
        budget.reserve(1)


@pytest.mark.parametrize("amount", [-1, -1_000_000])
def test_amounts_below_zero_are_no_amounts(amount: int) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        TurnBudget(amount)
    with pytest.raises(ValueError, match="0 or more"):
        TurnBudget(1).reserve(amount)


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "actual", "unknown", "refused", "again"]),
        st.integers(0, 400),
        st.integers(0, 10),
    ),
    max_size=60,
)


@given(cap=st.integers(0, 1_000), steps=STEPS)
def test_it_is_never_over_the_cap_whatever_happens(cap: int, steps: list[Step]) -> None:
    """The law: spent + outstanding <= cap, as long as nobody charges more than the worst case."""
    budget = TurnBudget(cap)
    held: list[Reservation] = []
    done: list[Reservation] = []
    booked = 0
    for what, amount, which in steps:
        if what == "reserve":
            fits = cap > 0 and budget.spent_micro_usd + budget.outstanding_micro_usd + amount <= cap
            admitted = fits or (cap > 0 and amount == 0)
            try:
                held.append(budget.reserve(amount))
            except BudgetRefused:
                assert not admitted
            else:
                assert admitted
        elif what == "again" and done:
            assert budget.commit(done[which % len(done)], amount) is None
        elif held and what != "again":
            turn = held.pop(which % len(held))
            done.append(turn)
            if what == "refused":
                assert budget.release(turn)
                continue
            actual = min(amount, turn.worst_micro_usd) if what == "actual" else None
            cost = budget.commit(turn, actual)
            assert cost == (turn.worst_micro_usd if actual is None else actual)
            booked += cost
        assert budget.spent_micro_usd == booked
        assert budget.spent_micro_usd + budget.outstanding_micro_usd <= cap
        assert budget.outstanding_micro_usd == sum(turn.worst_micro_usd for turn in held)


@given(cap=st.integers(1, 1_000), steps=STEPS, cut=st.integers(0, 120))
def test_a_record_cut_anywhere_restores_what_was_spent_at_worst(
    cap: int, steps: list[Step], cut: int
) -> None:
    """supervision.md §6: an open reservation has unknown cost, not zero; it survives resume."""
    budget = TurnBudget(cap)
    lines: list[bytes] = []
    held: list[Reservation] = []
    for what, amount, which in steps:
        if what == "reserve":
            try:
                turn = budget.reserve(amount)
            except BudgetRefused:
                continue
            held.append(turn)
            lines.append(encode(_reserved(turn)))
        elif held:
            turn = held.pop(which % len(held))
            cost = min(amount, turn.worst_micro_usd)
            budget.commit(turn, cost)
            event = BudgetCommitted(
                budget="supervisor", reservation=turn.number, cost_micro_usd=cost
            )
            lines.append(encode(event))
    whole = budget_state(_events(lines), "supervisor")
    assert whole == budget.state()
    early = budget_state(_events(lines[:cut]), "supervisor")
    resumed = TurnBudget(cap)
    resumed.restore(early)
    assert resumed.spent_micro_usd == early.at_worst_micro_usd <= cap
    assert resumed.state().last_reservation == early.last_reservation


def _reserved(turn: Reservation) -> BudgetReserved:
    return BudgetReserved(
        budget="supervisor", reservation=turn.number, worst_micro_usd=turn.worst_micro_usd
    )


def _events(lines: list[bytes]) -> Any:
    return decode_lines(line + b"\n" for line in lines)


def test_reservations_are_numbered_on_after_a_resume() -> None:
    budget = TurnBudget(100)
    budget.restore(BudgetState(spent_micro_usd=5, open={3: 20}, last_reservation=3))
    assert budget.spent_micro_usd == 25
    assert budget.reserve(1).number == 4


def test_other_budgets_events_and_broken_numbers_are_passed_over() -> None:
    events = [
        {"type": "budget_reserved", "budget": "run", "reservation": 1, "worst_micro_usd": 9},
        {"type": "log", "budget": "supervisor"},
        {"type": "budget_reserved", "budget": "supervisor", "reservation": 1},
        {"type": "budget_committed", "budget": "supervisor", "reservation": 1, "cost_micro_usd": 4},
        {"type": "budget_committed", "budget": "supervisor", "reservation": 1, "cost_micro_usd": 4},
        {
            "type": "budget_reserved",
            "budget": "supervisor",
            "reservation": 2,
            "worst_micro_usd": "x",
        },
    ]
    found = budget_state(events, "supervisor")
    assert found == BudgetState(spent_micro_usd=4, open={2: 0}, last_reservation=2)


# -- prices --


def test_a_price_is_rounded_up_to_whole_micro_dollars() -> None:
    tiny = Fixed(Decimal("0.0001"), Decimal("0.5"))
    assert tiny.micro_usd(Usage(tokens_in=1, tokens_out=0)) == 1
    assert tiny.micro_usd(Usage(tokens_in=0, tokens_out=3)) == 2
    assert tiny.micro_usd(Usage(tokens_in=0, tokens_out=0)) == 0


def test_a_free_price_is_a_price() -> None:
    assert FREE.micro_usd(Usage(tokens_in=10**9, tokens_out=10**9)) == 0
    assert FREE.words() == "free"


def test_the_catalogue_knows_steps_by_length_and_what_caching_saves() -> None:
    found = catalogued("anthropic", "claude-sonnet-4-5")
    assert isinstance(found, Catalogued)
    assert found.micro_usd(Usage(tokens_in=8_000, tokens_out=2_048)) == 54_720
    assert found.micro_usd(Usage(tokens_in=300_000, tokens_out=0)) == 1_800_000
    assert found.micro_usd(Usage(tokens_in=8_000, tokens_out=0, cache_read=8_000)) == 2_400


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "nobody-knows-it"), ("openai", "whisper-1"), ("no", "x")]
)
def test_a_model_without_a_price_both_ways_has_none(provider: str, model: str) -> None:
    assert catalogued(provider, model) is None


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_tokens_never_cost_less(tokens_in: int, more: int) -> None:
    """What the bound rests on: bytes are at least as many as tokens."""
    found = catalogued("anthropic", "claude-sonnet-4-5")
    assert found is not None
    some = found.micro_usd(Usage(tokens_in=tokens_in, tokens_out=2_048))
    assert found.micro_usd(Usage(tokens_in=tokens_in + more, tokens_out=2_048)) >= some


@pytest.mark.parametrize(
    ("micro", "text"),
    [(0, "$0.00"), (500_000, "$0.50"), (21, "$0.000021"), (12_340_000, "$12.34")],
)
def test_amounts_are_written_with_as_many_digits_as_they_need(micro: int, text: str) -> None:
    assert usd(micro) == text


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            BudgetReserved(
                budget="supervisor",
                reservation=1,
                worst_micro_usd=54_720,
                cap_micro_usd=500_000,
                model="openai:gpt-5",
            ),
            "supervisor reserves up to $0.05 of $0.50 for openai:gpt-5",
        ),
        (
            BudgetCommitted(
                budget="supervisor",
                reservation=1,
                cost_micro_usd=28_500,
                tokens_in=8_000,
                tokens_out=300,
            ),
            "supervisor spent $0.03 (8,000 tokens in, 300 out)",
        ),
        (
            BudgetCommitted(budget="run", reservation=1, cost_micro_usd=28_500, booked="worst"),
            "run counts $0.03 as spent: what the request cost is not known",
        ),
        (
            BudgetCommitted(budget="run", reservation=1, cost_micro_usd=0, booked="refused"),
            "run spent nothing: the request was refused",
        ),
    ],
)
def test_what_is_reserved_and_booked_is_a_line(event: Event, line: str) -> None:
    assert render(event) == line
