"""Money that steps book by themselves, against the budget of the run. (supervision.md §6)"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import nightwarden as nw
from nightwarden import Collect, Context, Node
from nightwarden.resuming import resume
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Decision, Escalation, Skip

DOLLAR = 1_000_000


@nw.node(type="over.Pays", label="{number}")
async def pays(number: int, ctx: Context) -> int:
    ctx.spend(0.25)
    await asyncio.sleep(0)
    return number


@nw.node(type="over.Threaded", label="{number}")
def threaded(number: int, ctx: Context) -> int:
    ctx.spend(0.25)
    return number


@nw.node(type="over.All", retry_safe=True)
def gathered(numbers: Collect[int]) -> list[int]:
    return list(numbers)


def paying(step: Callable[..., object] = pays, *, at_once: int = 1) -> Workflow:
    with nw.workflow("paying") as w:
        number = w.input("numbers", list[int]).each()
        paid = w.add(step, id="paid", number=number, concurrency=at_once)
        w.add(gathered, id="all", numbers=paid.collect())
    return w.build()


@pytest.mark.parametrize("step", [pays, threaded])
def test_a_run_whose_steps_have_spent_more_than_it_may_begins_nothing_more(
    step: Callable[..., object],
) -> None:
    result = nw.run(
        paying(step), {"numbers": list(range(20))}, max_cost_micro_usd=DOLLAR, keep_going=True
    )
    assert result.status == "failed"
    assert result.reason == (
        "the run's budget of $1.00 is used up: $1.25 are spent; resume with a larger --max-cost"
    )
    assert result.costs["total_micro_usd"] == 1_250_000


def test_what_was_under_way_when_it_was_used_up_is_finished_and_counted() -> None:
    result = nw.run(paying(at_once=4), {"numbers": list(range(20))}, max_cost_micro_usd=DOLLAR // 2)
    assert result.status == "failed"
    (node,) = [node for node in result.ledger["nodes"] if node["node_id"] == "paid"]
    assert (node["attempts"], node["cancelled"], node["failed"]) == (node["succeeded"], 0, 0)
    assert result.costs["total_micro_usd"] == 250_000 * node["succeeded"]
    assert node["succeeded"] <= 3 + 4  # the third is too much; no more can be under way by then


def test_spending_the_budget_to_the_last_cent_is_not_too_much() -> None:
    result = nw.run(paying(), {"numbers": [1, 2, 3, 4]}, max_cost_micro_usd=DOLLAR)
    assert (result.status, result.outputs["all"]) == ("completed", [1, 2, 3, 4])


def test_it_goes_on_with_more_money_only_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    workflow, numbers = paying(), list(range(8))
    given = {"numbers": numbers}
    first = nw.run(workflow, given, max_cost_micro_usd=DOLLAR, store=tmp_path, workdir=tmp_path)
    assert first.costs["total_micro_usd"] == 1_250_000
    again = resume(store=tmp_path, workflow=workflow)
    assert "$1.25 are spent" in again.reason
    assert again.costs["total_micro_usd"] == 1_250_000
    more = resume(store=tmp_path, workflow=workflow, max_cost_micro_usd=2 * DOLLAR)
    assert (more.status, more.outputs["all"]) == ("completed", numbers)
    assert more.costs["total_micro_usd"] == 2 * DOLLAR


# -- whatever becomes of who spent it --


class Skips(SupervisorBase):
    async def decide(self, escalation: Escalation) -> Decision:
        return Decision(verdict=Skip(), rationale="not needed")


@nw.node(type="over.Late", timeout=0.05)
def late(ctx: Context) -> int:
    ctx.spend(0.25)
    time.sleep(0.3)
    ctx.spend(0.5)
    return 1


@nw.node(type="over.Longer")
async def longer() -> int:
    await asyncio.sleep(0.6)
    return 2


def test_what_a_step_spends_after_its_time_was_up_is_in_the_result() -> None:
    """kernel.md §3: a late result of an attempt changes nothing but cost and assets."""
    with nw.workflow("late") as w:
        w.add(late, id="late")
        w.add(longer, id="longer")
    result = nw.run(w.build(), supervise=Skips())
    assert (result.status, result.outputs["longer"]) == ("completed", 2)
    assert result.costs["nodes_micro_usd"] == {"late": 750_000}


@nw.node(type="over.Pauses")
async def pauses(ctx: Context) -> int:
    ctx.spend(0.25)
    ctx.suspend("until tomorrow")


def test_what_a_step_spent_before_its_pause_is_in_the_result() -> None:
    with nw.workflow("pausing") as w:
        w.add(pauses, id="pauses")
    result = nw.run(w.build())
    assert (result.status, result.costs["total_micro_usd"]) == ("suspended", 250_000)


@nw.node(type="over.Prepared")
class Prepared(Node):
    async def setup(self, ctx: Context) -> None:
        ctx.spend(0.25)

    def run(self) -> int:
        return 1


def test_what_setting_a_step_up_has_cost_is_in_the_result() -> None:
    with nw.workflow("prepared") as w:
        w.add(Prepared, id="prepared")
    result = nw.run(w.build())
    assert (result.status, result.costs["nodes_micro_usd"]) == ("completed", {"prepared": 250_000})
