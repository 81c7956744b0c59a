"""The run's budget under concurrent calls of steps (supervision.md §6, Money)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightwarden.agents.purse import SharedBudget, StepPurse, Till
from nightwarden.errors import NodeError, OutOfMoney
from nightwarden.runtime.paying import Payer, Spending
from nightwarden.testing import run


@dataclass
class Call:
    """A call: its worst case, what it costs, how long it takes, and how it ends."""

    worst: int
    actual: int | None
    takes: int
    refused: bool


CALLS = st.lists(
    st.builds(
        Call,
        worst=st.integers(0, 60),
        actual=st.none() | st.integers(0, 60),
        takes=st.integers(0, 5),
        refused=st.booleans(),
    ),
    max_size=12,
)


def payer(booked: list[int], node: str = "step") -> Payer:
    async def durable() -> None:
        return None

    return Payer(
        node_id=node,
        lineage=(),
        attempt=1,
        book=lambda micro, model: booked.append(micro),
        tell=lambda event: None,
        on_record=durable,
    )


@given(CALLS, st.integers(0, 120), st.none() | st.integers(0, 120), st.integers(0, 20))
@settings(max_examples=150, deadline=None)
def test_concurrent_calls_never_hold_or_spend_more_than_there_is(
    calls: list[Call], cap: int, own_cap: int | None, outside: int
) -> None:
    # row: S6-RESERVE
    spending = Spending()
    spending.add(outside)
    till = Till(SharedBudget(cap, outside=spending.total), lambda node: 0)
    own = None if own_cap is None else till.step("step", own_cap)
    booked: list[int] = []

    def holds() -> None:
        taken = till.run.spent_micro_usd + till.run.outstanding_micro_usd
        assert taken == 0 or taken + outside <= cap
        if own is not None and own_cap is not None:
            assert own.spent_micro_usd + own.outstanding_micro_usd <= own_cap

    async def one(call: Call) -> str:
        purse = StepPurse(till, payer(booked), model="m", own=own, stream=False)
        try:
            held = await purse.admit(call.worst)
        except (OutOfMoney, NodeError):
            return "refused"
        holds()
        await asyncio.sleep(call.takes)
        if call.refused:
            purse.release(held)
        else:
            actual = None if call.actual is None else min(call.actual, call.worst)
            purse.commit(held, actual)
        holds()
        return "done"

    async def main() -> list[str]:
        return await asyncio.gather(*map(one, calls))

    ended = run(main(), seed=1)
    assert till.run.outstanding_micro_usd == 0
    assert till.run.spent_micro_usd == sum(booked)
    if cap >= outside + sum(call.worst for call in calls) and cap and own is None:
        assert set(ended) <= {"done"}


def test_a_call_that_does_not_fit_beside_another_waits_for_it_instead_of_ending_the_run() -> None:
    till = Till(SharedBudget(100), lambda node: 0)
    booked: list[int] = []
    purse = StepPurse(till, payer(booked), model="m", own=None, stream=False)

    async def main() -> None:
        first = await purse.admit(80)
        second = asyncio.ensure_future(purse.admit(80))
        await asyncio.sleep(1)
        assert not second.done()
        purse.commit(first, 10)
        purse.commit(await second, 10)
        third = asyncio.ensure_future(purse.admit(81))
        with pytest.raises(OutOfMoney, match=r"it may cost \$0.000081, \$0.00002 are spent"):
            await third

    run(main())
    assert booked == [10, 10]


def test_nobody_waits_for_a_stream() -> None:
    till = Till(SharedBudget(100), lambda node: 0)
    streaming = StepPurse(till, payer([]), model="m", own=None, stream=True)
    other = StepPurse(till, payer([]), model="m", own=None, stream=False)

    async def main() -> None:
        held = await streaming.admit(80)
        with pytest.raises(OutOfMoney):
            await other.admit(80)
        streaming.release(held)
        other.release(await other.admit(80))

    run(main())


def test_a_cancelled_wait_holds_nothing() -> None:
    till = Till(SharedBudget(100), lambda node: 0)
    purse = StepPurse(till, payer([]), model="m", own=till.step("step", 90), stream=False)

    async def main() -> None:
        held = await purse.admit(80)
        waiting = asyncio.ensure_future(purse.admit(80))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        purse.release(held)
        assert (till.run.outstanding_micro_usd, till.step("step", 90).left_micro_usd) == (0, 90)

    run(main())


def test_a_step_s_own_limit_counts_what_it_spent_before_the_run_was_resumed() -> None:
    till = Till(SharedBudget(None), {"step": 70}.__getitem__)
    own = till.step("step", 100)
    purse = StepPurse(till, payer([]), model="m", own=own, stream=False)

    async def main() -> None:
        purse.commit(await purse.admit(30), 20)
        with pytest.raises(NodeError, match=r"max_cost_usd of \$0.0001 does not cover") as told:
            await purse.admit(11)
        assert told.value.code == "model:budget"

    run(main())


def test_numbers_of_reservations_go_on_after_a_resume() -> None:
    till = Till(SharedBudget(None, last_reservation=7), lambda node: 0)
    purse = StepPurse(till, payer([]), model="m", own=None, stream=False)

    async def main() -> int:
        return (await purse.admit(1)).number

    assert run(main()) == 8
