"""The loop of the test kit: virtual time, seeded order (house.md §4)."""

from __future__ import annotations

import asyncio
import time

import pytest

from nightwarden.testing import Deadlock, run


def test_waiting_costs_no_real_time() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400 * 3)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert run(main()) == pytest.approx(259_200)
    assert time.monotonic() - began < 5


def test_timers_fire_in_order_of_their_time() -> None:
    seen: list[int] = []

    async def note(after: int) -> None:
        await asyncio.sleep(after)
        seen.append(after)

    async def main() -> None:
        await asyncio.gather(*(note(after) for after in (30, 10, 20)))

    run(main(), seed=3)
    assert seen == [10, 20, 30]


def test_a_lost_wake_up_fails_at_once() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(main())


def order(seed: int | None) -> list[int]:
    seen: list[int] = []

    async def note(number: int) -> None:
        await asyncio.sleep(0)
        seen.append(number)

    async def main() -> None:
        await asyncio.gather(*(note(number) for number in range(20)))

    run(main(), seed=seed)
    return seen


def test_a_seed_shuffles_what_is_ready_the_same_way_each_time() -> None:
    assert order(None) == list(range(20))
    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == list(range(20))
