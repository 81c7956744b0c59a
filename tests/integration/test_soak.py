"""A slice of `make soak`: the same few hundred random runs each time (house.md §4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from soak.drawing import KINDS, Choice, Plan, plans, workflow_of
from soak.playing import faults, play_plan
from soak.steps import World

RUNS = 150


@settings(
    max_examples=RUNS,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(plan=plans)
def test_whatever_is_drawn_the_account_is_whole(
    plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """row: K1-LEDGER-1, K1-LEDGER-4, K1-LEDGER-5, K1-LEDGER-6"""
    assert faults(plan, tmp_path_factory.getbasetemp()) == []


def every_kind() -> tuple[Choice, ...]:
    """Each kind of node once, wired so that it can be there."""
    names = ["fans", "one", "fans", *dict.fromkeys(KINDS)]
    return tuple(Choice(kind) for kind in names)


def test_every_kind_of_node_is_drawn_where_there_is_something_to_wire() -> None:
    types = {spec.type for spec in workflow_of(Plan(every_kind()), World(0)).nodes}
    flow = {"If", "Filter", "Merge", "Assert", "Zip", "Cross", "Loop", "Batch", "Limit"}
    assert {f"flow.{name}" for name in flow} <= types


def test_a_run_can_be_played_again(tmp_path: Path) -> None:
    plan = Plan(every_kind(), seed=11, shuffle=3, wrong=6, patience=5.0)
    once, again = (play_plan(plan, tmp_path)[0] for _ in range(2))
    assert once.types() == again.types()
    assert once.result.ledger == again.result.ledger
