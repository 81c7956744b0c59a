"""How steps are run: modes, time, limits, pressure, copies, stopping, and what is written down.

Coroutine steps run on virtual time, in several seeded orders; threads on the real loop, where
events and not sleeping say when something has happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from case_runs import Asked, credits_of
from kept import events_of, lines_of

import nightwarden as nw
from nightwarden import ABSENT, Absent, Collect, Context, Many, Session, Stream
from nightwarden.events import (
    Event,
    InvocationFailed,
    InvocationStarted,
    InvocationSucceeded,
    ItemEmitted,
    Log,
    NodeProgress,
    NodeStarted,
    RunStopping,
    WindowWidened,
    encode,
)
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.session import run_session
from nightwarden.spec.workflow import Workflow
from nightwarden.store import open_store
from nightwarden.testing import InlineExecutor, Played, play
from nightwarden.verdict import EndStream, Fail, Retry, Skip, Verdict

SEEDS = (None, 1, 2, 3)


def made(step: Callable[..., Any], **promises: Any) -> Callable[..., Any]:
    return nw.node(type=f"test.{step.__name__.capitalize()}", **promises)(step)


def single(step: Callable[..., Any], **promises: Any) -> Workflow:
    with nw.workflow("single") as w:
        w.add(made(step, **promises), id="step")
    return w.build()


def counting(count: int) -> Callable[..., Any]:
    async def items() -> AsyncIterator[int]:
        for number in range(count):
            yield number

    return items


def per_item(count: int, step: Callable[..., Any], **promises: Any) -> Workflow:
    with nw.workflow("per-item") as w:
        source = w.add(made(counting(count)), id="items")
        w.add(made(step, **promises), id="step", value=source)
    return w.build()


def always(verdict: Verdict) -> Asked:
    return Asked([Rule(answers=(ScriptedAnswer(verdict, "as written"),))])


def node_of(played: Played, node_id: str) -> Mapping[str, Any]:
    return next(n for n in played.result.ledger["nodes"] if n["node_id"] == node_id)


async def echo(value: int) -> int:
    return value


# -- how a step's code is called --


async def by_coroutine(value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


def by_function(value: int) -> int:
    return value + 1


@pytest.mark.parametrize(
    ("step", "promises", "on_loop"),
    [
        (by_coroutine, {}, True),
        (by_function, {}, False),
        (by_function, {"inline": True}, True),
    ],
    ids=["coroutine", "thread", "inline"],
)
def test_plain_steps_run_where_their_kind_says(
    step: Callable[..., Any], promises: dict[str, Any], *, on_loop: bool
) -> None:
    names: list[str] = []

    async def coroutine(value: int) -> int:
        names.append(threading.current_thread().name)
        return await by_coroutine(value)

    def function(value: int) -> int:
        names.append(threading.current_thread().name)
        return by_function(value)

    chosen = coroutine if step is by_coroutine else function
    result = nw.run(per_item(3, chosen, **promises))
    assert list(result.outputs["step"]) == [1, 2, 3]
    assert all((name == threading.current_thread().name) is on_loop for name in names)


def letters_in_thread() -> Iterator[str]:
    yield from "abc"


async def letters_on_loop() -> AsyncIterator[str]:
    for letter in "abc":
        yield letter


@pytest.mark.parametrize(
    ("source", "promises"),
    [(letters_on_loop, {}), (letters_in_thread, {}), (letters_in_thread, {"inline": True})],
    ids=["async generator", "generator in a thread", "inline generator"],
)
def test_every_kind_of_generator_fans_out(
    source: Callable[..., Any], promises: dict[str, Any]
) -> None:
    """row: K1-FAN-OUT"""

    async def upper(value: str) -> str:
        return value.upper()

    with nw.workflow("fan") as w:
        a = w.add(made(source, **promises), id="source")
        w.add(made(upper), id="upper", value=a)
    result = nw.run(w.build())
    assert list(result.outputs["upper"]) == ["A", "B", "C"]
    assert list(result.outputs["upper"].indices) == [0, 1, 2]
    assert result.headline == "completed: 3/3 items"


async def read_on_loop(value: Stream[int]) -> list[int]:
    return [item async for item in value]


def read_in_thread(value: Stream[int]) -> list[int]:
    return list(value)  # type: ignore[call-overload]


@pytest.mark.parametrize("reader", [read_on_loop, read_in_thread])
def test_a_reader_gets_all_items_in_order(reader: Callable[..., Any]) -> None:
    """row: K1-FAN-READ"""
    with nw.workflow("read") as w:
        source = w.add(made(counting(50)), id="items")
        w.add(made(reader), id="reader", value=source)
    result = nw.run(w.build())
    assert result.outputs == {"reader": list(range(50))}


def test_a_reader_may_ask_for_indices_and_losses() -> None:
    """row: K1-FAN-READ"""

    async def odd_only(value: int) -> int:
        if value % 2 == 0:
            raise ValueError("even")
        return value

    async def reader(value: Stream[int]) -> tuple[list[tuple[int, int]], list[int]]:
        pairs = [pair async for pair in value.indexed()]
        return pairs, [loss.index for loss in value.losses]

    with nw.workflow("read") as w:
        source = w.add(made(counting(5)), id="items")
        odd = w.add(made(odd_only), id="odd", value=source)
        w.add(made(reader), id="reader", value=odd)
    played = play(Session(w.build(), supervise=always(Skip())), seed=1)
    assert played.result.outputs["reader"] == ([(1, 1), (3, 3)], [0, 2, 4])


def test_a_reader_in_a_thread_whose_source_dies_is_released() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise ValueError("dry")

    with nw.workflow("read") as w:
        items = w.add(made(source), id="items")
        w.add(made(read_in_thread), id="reader", value=items)
    result = nw.run(w.build(), supervise=always(EndStream()))
    assert result.outputs == {"reader": [1]}
    assert result.status == "completed"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_that_returns_early_cuts_its_source_short(seed: int | None) -> None:
    """row: K1-FAN-LEFT"""
    produced: list[int] = []
    closed: list[bool] = []

    async def source() -> AsyncIterator[int]:
        try:
            for number in range(1_000):
                produced.append(number)
                yield number
                await asyncio.sleep(1)
        finally:
            closed.append(True)

    async def first_two(value: Stream[int]) -> list[int]:
        found = []
        async for item in value:
            found.append(item)
            if len(found) == 2:
                break
        return found

    with nw.workflow("cut") as w:
        items = w.add(made(source), id="items")
        w.add(made(first_two), id="reader", value=items)
    played = play(Session(w.build()), seed=seed)
    assert played.result.outputs == {"reader": [0, 1]}
    assert played.result.status == "completed"
    assert closed == [True]
    assert len(produced) <= 3
    assert played.result.ledger["roots"][0]["marks"] == {"cut": 1}
    assert not played.result.supervised


# -- time --


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_that_takes_too_long_times_out(seed: int | None) -> None:
    async def slow() -> str:
        await asyncio.sleep(100)
        return "never"

    workflow = single(slow, timeout=5, retry_safe=True)
    played = play(Session(workflow, supervise=always(Skip())), seed=seed)
    escalation = played.result.interventions[0].escalation
    assert played.ended_s == pytest.approx(5)
    assert escalation.detail == "timeout after 5 s"
    assert escalation.signature == "timeout"
    assert "retry" in escalation.allowed_actions


def test_each_attempt_has_the_whole_time() -> None:
    async def slow(ctx: Context) -> int:
        await asyncio.sleep(100 if ctx.attempt == 1 else 4)
        return ctx.attempt

    workflow = single(slow, timeout=5, retry_safe=True)
    played = play(Session(workflow, supervise=always(Retry()), seed=1), seed=1)
    assert played.result.outputs == {"step": 2}


def test_a_timeout_in_the_workflow_counts_for_its_node() -> None:
    async def slow() -> str:
        await asyncio.sleep(100)
        return "never"

    with nw.workflow("t") as w:
        w.add(made(slow, timeout=50), id="step", timeout=2)
    played = play(Session(w.build()), seed=1)
    assert played.ended_s == pytest.approx(2)
    assert "timeout after 2 s" in played.result.reason


def test_a_steps_own_timeout_error_is_its_own() -> None:
    async def step() -> str:
        raise TimeoutError("the other side")

    played = play(Session(single(step, timeout=5), supervise=always(Skip())), seed=1)
    assert "the other side" in played.result.interventions[0].escalation.detail


def test_a_thread_that_times_out_is_left_behind_and_not_retried() -> None:
    """row: K3-ABANDONED"""
    release = threading.Event()
    left: list[str] = []

    def stuck() -> str:
        release.wait(20)
        left.append("late")
        return "late"

    asked = always(Skip())
    try:
        result = nw.run(single(stuck, timeout=0.05, retry_safe=True), supervise=asked)
    finally:
        release.set()
    escalation = asked.escalations[0]
    assert [str(a) for a in escalation.allowed_actions] == ["skip", "fail"]
    assert "not known" in escalation.retry_refused
    assert result.status == "completed"
    assert result.outputs["step"]["absent"] == "lost"


@pytest.mark.parametrize("seed", SEEDS)
def test_time_spent_paused_does_not_count(seed: int | None) -> None:
    """row: K2-PARKED"""

    async def source() -> AsyncIterator[int]:
        for number in range(6):
            await asyncio.sleep(0.5)
            yield number

    async def slow(value: int) -> int:
        await asyncio.sleep(10)
        return value

    with nw.workflow("paused") as w:
        items = w.add(made(source, timeout=4), id="items")
        w.add(made(slow), id="slow", value=items)
    played = play(Session(w.build(), window=1), seed=seed)
    assert played.result.status == "completed"
    assert played.ended_s > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_time_spent_waiting_for_an_item_does_not_count(seed: int | None) -> None:
    """row: K2-PARKED"""

    async def source() -> AsyncIterator[int]:
        for number in range(6):
            await asyncio.sleep(10)
            yield number

    async def reader(value: Stream[int]) -> int:
        total = 0
        async for item in value:
            await asyncio.sleep(0.5)
            total += item
        return total

    with nw.workflow("parked") as w:
        items = w.add(made(source), id="items")
        w.add(made(reader, timeout=4), id="reader", value=items)
    played = play(Session(w.build()), seed=seed)
    assert played.result.outputs == {"reader": 15}


def test_a_readers_own_time_does_count() -> None:
    async def reader(value: Stream[int]) -> int:
        async for _ in value:
            await asyncio.sleep(3)
        return 0

    with nw.workflow("parked") as w:
        items = w.add(made(counting(5)), id="items")
        w.add(made(reader, timeout=4), id="reader", value=items)
    played = play(Session(w.build()), seed=1)
    assert played.result.status == "failed"
    assert played.ended_s == pytest.approx(4)


# -- retry delays --


def too_many_requests(after: str) -> Exception:
    request = httpx2.Request("GET", "https://x.example/")
    response = httpx2.Response(429, headers={"Retry-After": after}, request=request)
    return httpx2.HTTPStatusError("slow down", request=request, response=response)


def test_a_retry_waits_as_long_as_the_error_asks() -> None:
    """row: K3-DELAY"""

    async def step(ctx: Context) -> str:
        if ctx.attempt == 1:
            raise too_many_requests("17")
        return "ok"

    played = play(Session(single(step, retry_safe=True), supervise=always(Retry())), seed=1)
    decision = played.result.interventions[0].decision
    assert decision is not None
    assert decision.delay_s == 17.0
    assert played.ended_s == pytest.approx(17)


def test_a_retry_without_a_hint_waits_longer_each_time() -> None:
    """row: K3-DELAY"""

    async def step() -> str:
        raise ValueError("always")

    session = Session(
        single(step, retry_safe=True),
        supervise=always(Retry()),
        bounds=Bounds(max_retries=4),
        seed=3,
    )
    played = play(session, seed=1)
    delays = [i.decision.delay_s for i in played.result.interventions[:4] if i.decision]
    assert all(low <= (d or 0) <= 2 * low for d, low in zip(delays, (0.5, 1, 2, 4), strict=True)), (
        delays
    )
    assert played.ended_s == pytest.approx(sum(d or 0 for d in delays))


def test_a_wait_over_the_limit_takes_retry_away_and_says_so() -> None:
    """row: S5-DEFAULTS"""

    async def step() -> str:
        raise too_many_requests("301")

    asked = always(Skip())
    play(Session(single(step, retry_safe=True), supervise=asked), seed=1)
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["skip", "fail"]
    assert "301 s" in asked.escalations[0].retry_refused


def test_cancel_cuts_a_retry_delay_short() -> None:
    """row: K3-DELAY"""

    async def step() -> str:
        raise too_many_requests("200")

    session = Session(single(step, retry_safe=True), supervise=always(Retry()))
    played = play(session, seed=1, at=[(3.0, session.cancel)])
    assert played.ended_s == pytest.approx(3)
    assert played.result.status == "cancelled"
    assert str(played.result.interventions[0].outcome.kind) == "retry_never_ran"  # type: ignore[union-attr]


def test_a_retry_delay_holds_no_place() -> None:
    """row: K2-PARKED"""
    ends: list[tuple[int, float]] = []

    async def step(value: int, ctx: Context) -> int:
        if value == 0 and ctx.attempt == 1:
            raise too_many_requests("100")
        await asyncio.sleep(1)
        ends.append((value, asyncio.get_running_loop().time()))
        return value

    workflow = per_item(4, step, retry_safe=True, concurrency=1)
    play(Session(workflow, supervise=always(Retry())), seed=1)
    assert [value for value, _ in ends] == [1, 2, 3, 0]
    assert ends[2][1] == pytest.approx(3)


# -- limits and pressure --


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("promises", "options", "wanted"),
    [
        ({}, {}, 1),
        ({"retry_safe": True}, {}, 8),
        ({"concurrency": 3}, {}, 3),
        ({"retry_safe": True, "concurrency": 3}, {"concurrency": 5}, 5),
    ],
)
def test_no_more_of_a_step_run_at_once_than_its_limit(
    promises: dict[str, Any], options: dict[str, Any], wanted: int, seed: int | None
) -> None:
    running, most = 0, 0

    async def step(value: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1 + value % 3)
        running -= 1
        return value

    with nw.workflow("limit") as w:
        source = w.add(made(counting(30)), id="items")
        w.add(made(step, **promises), id="step", value=source, **options)
    played = play(Session(w.build()), seed=seed)
    assert most == wanted
    assert list(played.result.outputs["step"]) == list(range(30))


def test_threads_of_a_step_are_limited_too() -> None:
    lock, running, most = threading.Lock(), 0, 0
    barrier = threading.Barrier(4)

    def step(value: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait(20)  # all four have to be there at once
        with lock:
            running -= 1
        return value

    result = nw.run(per_item(12, step, retry_safe=True))
    assert list(result.outputs["step"]) == list(range(12))
    assert most == 4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("window", [1, 2, 7])
def test_no_more_than_a_window_is_outstanding(window: int, seed: int | None) -> None:
    """row: K2-PRESSURE"""
    out = {"made": 0, "done": 0, "most": 0}

    async def source() -> AsyncIterator[int]:
        for number in range(40):
            out["made"] += 1
            out["most"] = max(out["most"], out["made"] - out["done"])
            yield number

    async def step(value: int) -> int:
        await asyncio.sleep(1)
        return value

    async def last(value: int) -> int:
        await asyncio.sleep(0.1)
        out["done"] += 1
        return value

    with nw.workflow("window") as w:
        items = w.add(made(source), id="items")
        a = w.add(made(step, retry_safe=True), id="step", value=items)
        w.add(made(last), id="last", value=a)
    played = play(Session(w.build(), window=window), seed=seed)
    assert list(played.result.outputs["last"]) == list(range(40))
    assert out["most"] <= window
    assert not played.of(WindowWidened)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diamond_that_needs_more_widens_the_window_instead_of_hanging(seed: int | None) -> None:
    """row: K2-PRESSURE"""

    async def total(value: Collect[int]) -> int:
        return sum(value)

    async def share(value: int, whole: int) -> float:
        return value / whole

    with nw.workflow("diamond") as w:
        items = w.add(made(counting(20)), id="items")
        whole = w.add(made(total), id="total", value=items.collect())
        w.add(made(share), id="share", value=items, whole=whole)
    played = play(Session(w.build(), window=4), seed=seed)
    assert played.result.status == "completed"
    assert [e.window for e in played.of(WindowWidened)] == [8, 16, 32]
    assert {e.node_id for e in played.of(WindowWidened)} == {"items"}
    assert sum(played.result.outputs["share"]) == pytest.approx(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_and_its_source_keep_in_step(seed: int | None) -> None:
    """row: K2-PRESSURE"""
    out = {"made": 0, "read": 0, "most": 0}

    async def source() -> AsyncIterator[int]:
        for number in range(30):
            out["made"] += 1
            out["most"] = max(out["most"], out["made"] - out["read"])
            yield number

    async def reader(value: Stream[int]) -> int:
        async for _ in value:
            out["read"] += 1
            await asyncio.sleep(1)
        return out["read"]

    with nw.workflow("read") as w:
        items = w.add(made(source), id="items")
        w.add(made(reader), id="reader", value=items)
    played = play(Session(w.build(), window=3), seed=seed)
    assert played.result.outputs == {"reader": 30}
    assert out["most"] <= 4


def test_a_generator_in_a_thread_is_held_back_too() -> None:
    made_so_far: list[int] = []
    gate = threading.Event()
    seen: list[int] = []

    def source() -> Iterator[int]:
        for number in range(500):
            made_so_far.append(number)
            yield number

    def step(value: int) -> int:
        if value == 0:
            gate.wait(0.2)  # long enough for a generator that is not held back to run away
            seen.append(len(made_so_far))
        return value

    with nw.workflow("held") as w:
        items = w.add(made(source), id="items")
        w.add(made(step), id="step", value=items)
    result = nw.run(w.build(), window=8)
    assert len(result.outputs["step"]) == 500
    assert seen[0] <= 8 + 32 + 2  # the window, and how far its thread may be ahead


# -- money and files of one attempt --


def test_money_spent_in_threads_of_a_step_is_its_own() -> None:
    first_may_end, second_ended = threading.Event(), threading.Event()

    def step(value: int, ctx: Context) -> int:
        def pay() -> None:
            ctx.spend(0.001 * (value + 1))

        helper = threading.Thread(target=pay)
        helper.start()
        helper.join()
        if value == 0:
            assert first_may_end.wait(20)
        else:
            first_may_end.set()
            second_ended.set()
        raise ValueError(f"item {value}")

    asked = always(Skip())
    result = nw.run(per_item(2, step, concurrency=2), supervise=asked)
    spent = {e.lineage[0]: e.cost_micro_usd for e in asked.escalations}
    assert spent == {0: 1_000, 1: 2_000}
    assert result.costs["nodes_micro_usd"] == {"step": 3_000}


def test_what_a_halted_step_spent_is_kept() -> None:
    async def payer(ctx: Context) -> str:
        ctx.spend(0.25)
        await asyncio.sleep(100)
        return "never"

    session = Session(single(payer))
    played = play(session, seed=1, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert played.result.costs["total_micro_usd"] == 250_000


# -- classes --


def class_node(name: str, log: list[str], *, fails: str = "") -> type[nw.Node]:
    class Made(nw.Node):
        def __init__(self) -> None:
            log.append(f"{name} made")

        async def setup(self, ctx: Context) -> None:
            if fails == "setup":
                raise ConnectionError(f"{name} has no connection")
            log.append(f"{name} set up")

        async def run(self, value: int) -> int:
            log.append(f"{name} ran {value}")
            if fails == "run":
                raise ValueError(f"{name} failed")
            return value

        async def teardown(self) -> None:
            log.append(f"{name} torn down")
            if fails == "teardown":
                raise RuntimeError("will not close")

    Made.__name__ = name
    return nw.node(type=f"test.{name.capitalize()}")(Made)


def with_classes(*classes: type[nw.Node]) -> Workflow:
    with nw.workflow("classes") as w:
        last: Any = w.add(made(counting(2)), id="items")
        for cls in classes:
            last = w.add(cls, id=cls.__name__, value=last)
    return w.build()


def test_a_class_is_made_once_a_run_and_torn_down_at_its_end() -> None:
    log: list[str] = []
    played = play(Session(with_classes(class_node("one", log))), seed=1)
    assert played.result.status == "completed"
    assert log == ["one made", "one set up", "one ran 0", "one ran 1", "one torn down"]


def test_when_the_second_set_up_fails_the_first_is_torn_down() -> None:
    log: list[str] = []
    one, two = class_node("one", log), class_node("two", log, fails="setup")
    played = play(Session(with_classes(one, two)), seed=1)
    assert played.result.status == "failed"
    assert "two could not be set up" in played.result.reason
    assert "two has no connection" in played.result.reason
    assert log == ["one made", "one set up", "two made", "one torn down"]
    assert not played.of(NodeStarted)
    assert played.types()[-1] == "run_failed"


def test_a_class_is_torn_down_after_a_failure_too() -> None:
    log: list[str] = []
    played = play(Session(with_classes(class_node("one", log, fails="run"))), seed=1)
    assert played.result.status == "failed"
    assert log[-1] == "one torn down"


def test_a_tear_down_that_fails_hides_nothing() -> None:
    log: list[str] = []
    played = play(Session(with_classes(class_node("one", log, fails="teardown"))), seed=1)
    assert played.result.status == "completed"
    warnings = [e.message for e in played.of(Log) if e.level == "warning"]
    assert warnings == ["tear-down failed: RuntimeError: will not close"]


@pytest.mark.parametrize("error", [SystemExit(2), GeneratorExit()])
@pytest.mark.parametrize("where", ["setup", "teardown"])
def test_a_set_up_or_tear_down_may_raise_anything(where: str, error: BaseException) -> None:
    class Made(nw.Node):
        async def setup(self, ctx: Context) -> None:
            if where == "setup":
                raise error

        async def run(self) -> int:
            return 1

        async def teardown(self) -> None:
            if where == "teardown":
                raise error

    with nw.workflow("classes") as w:
        w.add(nw.node(type="test.Made")(Made), id="made")
    played = play(Session(w.build()), seed=1)
    assert played.result.status == ("failed" if where == "setup" else "completed")
    assert played.types()[-1] == f"run_{played.result.status}"
    if where == "setup":
        assert "made could not be set up" in played.result.reason


def test_cancel_does_not_wait_for_a_set_up() -> None:
    """row: S5-CANCEL"""

    class Made(nw.Node):
        async def setup(self, ctx: Context) -> None:
            await asyncio.sleep(1_000)

        async def run(self) -> int:
            return 1

    with nw.workflow("classes") as w:
        w.add(nw.node(type="test.Made")(Made), id="made")
    session = Session(w.build())
    played = play(session, seed=1, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert played.ended_s == pytest.approx(1)


# -- whatever a step raises --


class Dumb(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


ODD: list[BaseException] = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    Dumb(),
    BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError("one")]),
    StopIteration(4),
    StopAsyncIteration(),
]


def raising(shape: str, error: BaseException) -> Workflow:
    async def coroutine() -> int:
        raise error

    def inline() -> int:
        raise error

    async def fanning() -> AsyncIterator[int]:
        raise error
        yield 1

    async def reading(value: Stream[int]) -> int:
        raise error

    if shape == "reader":
        with nw.workflow("odd") as w:
            items = w.add(made(counting(2)), id="items")
            w.add(made(reading), id="step", value=items)
        return w.build()
    if shape == "inline":
        return single(inline, inline=True)
    return single(coroutine if shape == "coroutine" else fanning)


@pytest.mark.parametrize("error", ODD, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("shape", ["coroutine", "inline", "fan-out", "reader"])
def test_whatever_a_step_raises_is_its_failure(shape: str, error: BaseException) -> None:
    """row: K3-CAUGHT"""
    verdict: Verdict = EndStream() if shape == "reader" else Skip()
    asked = always(verdict)
    played = play(Session(raising(shape, error), supervise=asked), seed=1)
    assert asked.calls == 1
    assert played.result.status == "completed"
    assert played.result.supervised
    failure = played.of(InvocationFailed)[0]
    assert failure.node_id == "step"
    if not isinstance(error, (StopIteration, StopAsyncIteration)):  # Python wraps those
        assert failure.error_type == type(error).__name__
    assert failure.detail


@pytest.mark.parametrize("error", ODD[:6], ids=lambda e: type(e).__name__)
def test_whatever_a_thread_raises_is_its_failure(error: BaseException) -> None:
    """row: K3-CAUGHT"""

    def step() -> int:
        raise error

    asked = always(Skip())
    result = nw.run(single(step), supervise=asked)
    assert result.status == "completed"
    assert asked.escalations[0].error_type == type(error).__name__


@pytest.mark.parametrize("error", ODD[:6], ids=lambda e: type(e).__name__)
def test_whatever_a_generator_in_a_thread_raises_is_its_failure(error: BaseException) -> None:
    """row: K3-CAUGHT"""

    def source() -> Iterator[int]:
        yield 1
        raise error

    asked = always(EndStream())
    result = nw.run(single(source), supervise=asked)
    assert result.status == "completed"
    assert asked.escalations[0].error_type == type(error).__name__
    assert list(result.outputs["step"]) == [1]


def test_a_cancelled_error_nobody_ordered_leaves_the_worker_usable() -> None:
    async def step(value: int) -> int:
        if value == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        return value

    played = play(Session(per_item(4, step), supervise=always(Skip())), seed=1)
    assert list(played.result.outputs["step"]) == [0, 2, 3]
    assert played.result.interventions[0].escalation.error_type == "CancelledError"


def test_an_output_of_the_wrong_type_is_the_producers_recoverable_failure() -> None:
    """row: S1-SUBSTITUTE"""

    async def step() -> int:
        return "1"  # type: ignore[return-value]

    asked = always(Skip())
    play(Session(single(step), supervise=asked), seed=1)
    escalation = asked.escalations[0]
    assert escalation.error_type == "RecoverableError"
    assert [str(a) for a in escalation.allowed_actions] == ["substitute", "skip", "fail"]
    assert escalation.candidate_output == "1"


# -- copies --


class Uncopied:
    """Refuses to be copied."""

    def __deepcopy__(self, memo: object) -> Uncopied:
        raise TypeError("no copies")


@pytest.mark.parametrize("first", ["shared", "own"])
def test_items_do_not_share_what_a_step_is_given_for_all_of_them(first: str) -> None:
    """kernel.md §1: a value that many items are given is each one's own, in a list as well."""

    async def shared() -> dict[str, int]:
        return {"seen": 0}

    async def own(item: int) -> dict[str, int]:
        return {"seen": 0}

    async def count(values: Many[dict[str, int]]) -> list[int]:
        for value in values:
            value["seen"] += 1
        return [value["seen"] for value in values]

    with nw.workflow("copies") as w:
        sources = {
            "shared": w.add(made(shared), id="shared"),
            "own": w.add(made(own), id="own", item=w.add(made(counting(3)), id="items")),
        }
        values = [sources.pop(first), *sources.values()]
        w.add(made(count), id="count", values=values)
    assert list(play(Session(w.build())).result.outputs["count"]) == [[1, 1]] * 3


def test_what_a_fan_out_yields_is_kept_in_order_under_its_numbers() -> None:
    with nw.workflow("kept") as w:
        w.add(made(counting(3)), id="items")
    kept = play(Session(w.build())).result.outputs["items"]
    assert isinstance(kept, Collect)
    assert (list(kept), list(kept.indices)) == ([0, 1, 2], [0, 1, 2])


def test_an_input_that_cannot_be_copied_takes_retry_away() -> None:
    """row: K2-VALUES"""

    async def source() -> Any:
        return Uncopied()

    async def step(value: Any) -> str:
        raise ValueError("broken")

    with nw.workflow("copy") as w:
        a = w.add(made(source), id="source")
        w.add(made(step, retry_safe=True), id="step", value=a)
    asked = always(Skip())
    played = play(Session(w.build(), supervise=asked), seed=1)
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["skip", "fail"]
    assert "copied" in asked.escalations[0].retry_refused
    assert played.result.status == "completed"


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_consumers_of_one_value_do_not_see_each_others_changes(
    seed: int | None, *, supervised: bool
) -> None:
    """row: K2-VALUES"""

    async def source() -> dict[str, list[int]]:
        return {"rows": [1]}

    async def one(value: dict[str, list[int]]) -> list[int]:
        value["rows"].append(2)
        return value["rows"]

    async def two(value: dict[str, list[int]]) -> list[int]:
        value["rows"].append(3)
        return value["rows"]

    with nw.workflow("copies") as w:
        a = w.add(made(source), id="source")
        w.add(made(one), id="one", value=a)
        w.add(made(two), id="two", value=a)
    session = Session(w.build(), supervise=always(Skip()) if supervised else None)
    played = play(session, seed=seed)
    assert played.result.outputs == {"one": [1, 2], "two": [1, 3]}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_value_given_to_every_item_is_each_items_own(seed: int | None) -> None:
    """row: K2-VALUES, K1-JOIN-BROADCAST"""

    async def settings() -> list[str]:
        await asyncio.sleep(3)  # later than the items
        return ["base"]

    async def step(value: int, settings: list[str]) -> list[str]:
        settings.append(str(value))
        return settings

    with nw.workflow("broadcast") as w:
        s = w.add(made(settings), id="settings")
        items = w.add(made(counting(3)), id="items")
        w.add(made(step), id="step", value=items, settings=s)
    played = play(Session(w.build()), seed=seed)
    assert list(played.result.outputs["step"]) == [["base", "0"], ["base", "1"], ["base", "2"]]


def test_a_step_cannot_change_what_the_caller_handed_in() -> None:
    """row: K2-VALUES"""

    async def step(rows: list[int]) -> int:
        rows.clear()
        return len(rows)

    with nw.workflow("given") as w:
        rows = w.input("rows", list[int])
        w.add(made(step), id="step", rows=rows)
    mine = [1, 2, 3]
    play(Session(w.build(), {"rows": mine}), seed=1)
    assert mine == [1, 2, 3]


def test_a_step_cannot_change_a_property_for_the_next_item() -> None:
    async def step(value: int, tags: list[str]) -> list[str]:
        tags.append(str(value))
        return list(tags)

    with nw.workflow("given") as w:
        items = w.add(made(counting(2)), id="items")
        w.add(made(step), id="step", value=items, tags=["x"])
    played = play(Session(w.build()), seed=1)
    assert list(played.result.outputs["step"]) == [["x", "0"], ["x", "1"]]


# -- who listens --


def test_a_subscriber_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Event] = []
    told: list[int] = []

    def clumsy(event: Event) -> None:
        told.append(event.seq)
        raise RuntimeError("no room")

    session = Session(per_item(3, echo))
    session.subscribe(clumsy)
    session.subscribe(seen.append)
    with caplog.at_level(logging.WARNING, logger="nightwarden"):
        played = play(session, seed=1)
    assert told == [1]
    assert played.result.status == "completed"
    assert [e.seq for e in seen] == list(range(1, len(seen) + 1))
    assert "a subscriber raised" in caplog.text


def test_progress_is_told_now_and_then_and_at_its_end() -> None:
    async def busy(ctx: Context) -> int:
        for done in range(10_001):
            ctx.progress(done, 10_000)
        return 1

    told = play(Session(single(busy)), seed=1).of(NodeProgress)
    assert 2 <= len(told) < 200
    assert (told[0].done, told[-1].done) == (0, 10_000)


# -- keep going --


@pytest.mark.parametrize("seed", SEEDS)
def test_keep_going_settles_failures_and_goes_on(seed: int | None) -> None:
    """row: K3-KEEP-GOING, K1-JOIN-FAILED"""
    done: list[int] = []

    async def step(value: int) -> int:
        if value == 1:
            raise ValueError("this one")
        return value

    async def after(value: int) -> int:
        done.append(value)
        return value

    async def gather(value: Collect[int]) -> int:
        raise AssertionError

    async def apart() -> str:
        await asyncio.sleep(5)
        return "independent"

    with nw.workflow("keep") as w:
        items = w.add(made(counting(4)), id="items")
        a = w.add(made(step), id="step", value=items)
        b = w.add(made(after), id="after", value=a)
        w.add(made(gather), id="gather", value=b.collect())
        w.add(made(apart), id="apart")
    played = play(Session(w.build(), keep_going=True), seed=seed)
    assert sorted(done) == [0, 2, 3]
    assert played.result.status == "failed"
    assert played.result.outputs["apart"] == "independent"
    assert played.result.outputs["gather"] == {
        "absent": "failed",
        "causes": ["step [2] failed"],
    }
    assert node_of(played, "step")["failed"] == 1
    assert node_of(played, "after")["pruned"] == 1
    assert "ValueError: this one" in played.result.reason


@pytest.mark.parametrize("seed", SEEDS)
def test_keep_going_keeps_what_a_broken_fan_out_gave(seed: int | None) -> None:
    """row: K3-KEEP-GOING"""

    async def source() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise ValueError("dry")

    async def gather(value: Collect[int]) -> int:
        raise AssertionError

    with nw.workflow("keep") as w:
        items = w.add(made(source), id="items")
        w.add(made(echo), id="step", value=items)
        w.add(made(gather), id="gather", value=items.collect())
    played = play(Session(w.build(), keep_going=True), seed=seed)
    assert played.result.status == "failed"
    assert list(played.result.outputs["step"]) == [1, 2]
    assert played.result.outputs["gather"]["absent"] == "failed"
    assert played.result.ledger["roots"][0]["marks"] == {"failed": 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_keep_going_cancels_a_reader_a_failed_item_reaches(seed: int | None) -> None:
    """row: K3-KEEP-GOING"""
    state: dict[str, object] = {"read": []}

    async def step(value: int) -> int:
        await asyncio.sleep(1)
        if value == 2:
            raise ValueError("this one")
        return value

    async def reader(value: Stream[int]) -> int:
        try:
            async for item in value:
                state["read"].append(item)  # type: ignore[attr-defined]
        except asyncio.CancelledError:
            state["cancelled"] = True
            raise
        raise AssertionError("never told that the stream had ended")

    with nw.workflow("keep") as w:
        items = w.add(made(counting(5)), id="items")
        a = w.add(made(step), id="step", value=items)
        w.add(made(reader), id="reader", value=a)
    played = play(Session(w.build(), keep_going=True), seed=seed)
    assert played.result.status == "failed"
    assert state["cancelled"] is True
    assert state["read"] == [0, 1]
    assert played.result.outputs["reader"]["absent"] == "failed"


@pytest.mark.parametrize(
    ("verdict", "bounds", "credit", "ran"),
    [
        (Fail(reason="I said so"), Bounds(), "agent", False),
        (Skip(), Bounds(max_decisions=0), "bounds", True),
        (Retry(), Bounds(), "kernel", True),
    ],
)
def test_keep_going_covers_only_what_nobody_chose(
    verdict: Verdict, bounds: Bounds, credit: str, *, ran: bool
) -> None:
    """row: K3-KEEP-GOING"""
    later: list[int] = []

    async def bad() -> int:
        raise ValueError("bad")

    async def slow() -> int:
        await asyncio.sleep(5)
        return 1

    async def after(value: int) -> int:
        later.append(value)
        return value

    with nw.workflow("keep") as w:
        w.add(made(bad), id="bad")
        a = w.add(made(slow), id="slow")
        w.add(made(after), id="after", value=a)
    session = Session(w.build(), supervise=always(verdict), bounds=bounds, keep_going=True)
    played = play(session, seed=1)
    assert credits_of(played.result.interventions) == {credit: 1}
    assert played.result.status == "failed"
    assert bool(later) is ran


# -- stopping --


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_failure_nothing_new_starts(seed: int | None) -> None:
    """row: K3-STOP"""
    started: list[int] = []

    async def step(value: int) -> int:
        started.append(value)
        if value == 4:
            raise ValueError("item 5")
        return value

    played = play(Session(per_item(10, step)), seed=seed)
    assert started == [0, 1, 2, 3, 4]
    assert node_of(played, "step")["unrun"] == 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_running_step_drains_and_its_result_is_kept(seed: int | None) -> None:
    """row: K3-STOP"""
    started: list[str] = []

    async def bad() -> str:
        await asyncio.sleep(1)
        raise ValueError("bad")

    async def slow() -> str:
        await asyncio.sleep(10)
        return "paid for"

    async def after(value: str) -> str:
        started.append("after")
        return value

    with nw.workflow("drain") as w:
        w.add(made(bad), id="bad")
        a = w.add(made(slow), id="slow")
        w.add(made(after), id="after", value=a)
    played = play(Session(w.build()), seed=seed)
    assert played.result.status == "failed"
    assert played.ended_s == pytest.approx(10)
    assert started == []
    assert node_of(played, "slow")["succeeded"] == 1
    kept = [e.outputs for e in played.of(InvocationSucceeded) if e.node_id == "slow"]
    assert kept == [{"output": "paid for"}]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_that_does_not_drain_in_time_is_cancelled(seed: int | None) -> None:
    """row: K3-STOP"""
    state: dict[str, float] = {}

    async def bad() -> str:
        await asyncio.sleep(1)
        raise ValueError("bad")

    async def slow() -> str:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            state["cancelled"] = asyncio.get_running_loop().time()
            raise
        return "never"

    with nw.workflow("grace") as w:
        w.add(made(bad), id="bad")
        w.add(made(slow), id="slow")
    played = play(Session(w.build(), stop_grace_s=7), seed=seed)
    assert state == {"cancelled": pytest.approx(8)}
    assert played.ended_s == pytest.approx(8)
    assert node_of(played, "slow")["cancelled"] == 1
    assert played.left_open == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failure_while_draining_is_recorded_and_not_escalated(seed: int | None) -> None:
    """row: K3-STOP"""

    async def bad() -> str:
        await asyncio.sleep(1)
        raise ValueError("first")

    async def late() -> str:
        await asyncio.sleep(3)
        raise ValueError("second")

    with nw.workflow("drain") as w:
        w.add(made(bad), id="bad")
        w.add(made(late), id="late")
    asked = always(Fail(reason="stop here"))
    played = play(Session(w.build(), supervise=asked), seed=seed)
    assert asked.calls == 1
    assert [e.detail for e in played.of(InvocationFailed)] == [
        "ValueError: first",
        "ValueError: second",
    ]
    assert played.result.reason == "stop here"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_running_fan_out_is_closed_at_its_next_yield(seed: int | None) -> None:
    """row: K3-STOP"""
    produced: list[int] = []
    closed: list[float] = []

    async def source() -> AsyncIterator[int]:
        try:
            for number in range(100):
                produced.append(number)
                yield number
                await asyncio.sleep(2)
        finally:
            closed.append(asyncio.get_running_loop().time())

    async def bad() -> str:
        await asyncio.sleep(5)
        raise ValueError("bad")

    with nw.workflow("close") as w:
        w.add(made(bad), id="bad")
        w.add(made(source), id="items")
    played = play(Session(w.build()), seed=seed)
    assert produced == [0, 1, 2, 3]
    assert closed == [pytest.approx(6)]
    assert played.result.status == "failed"
    assert played.left_open == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_paused_fan_out_and_a_parked_reader_are_never_told_the_end(seed: int | None) -> None:
    """row: K3-STOP"""
    state: dict[str, float] = {}

    async def endless() -> AsyncIterator[int]:
        number = 0
        try:
            while True:
                yield number
                number += 1
        finally:
            state["closed at"] = asyncio.get_running_loop().time()

    async def slow(value: int) -> int:
        await asyncio.sleep(4)
        return value

    async def rare() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1_000)
        yield 2

    async def reader(value: Stream[int]) -> int:
        try:
            async for _ in value:
                pass
        except asyncio.CancelledError:
            state["reader cancelled at"] = asyncio.get_running_loop().time()
            raise
        state["told the end"] = True
        return 1

    async def bad() -> str:
        await asyncio.sleep(5)
        raise ValueError("bad")

    with nw.workflow("stop") as w:
        a = w.add(made(endless), id="endless")
        w.add(made(slow), id="slow", value=a)
        b = w.add(made(rare), id="rare")
        w.add(made(reader), id="reader", value=b)
        w.add(made(bad), id="bad")
    played = play(Session(w.build(), window=2, stop_grace_s=10), seed=seed)
    assert played.result.status == "failed"
    assert state == {"closed at": pytest.approx(5), "reader cancelled at": pytest.approx(5)}
    assert played.ended_s == pytest.approx(15)  # `rare` sleeps through its grace
    assert played.left_open == ()


def test_a_thread_that_never_ends_does_not_hold_up_a_cancel() -> None:
    """row: K3-ABANDONED, S5-DEAF"""
    release, began = threading.Event(), threading.Event()

    def stuck() -> str:
        began.set()
        release.wait(20)
        return "late"

    session = Session(single(stuck))

    def on_event(event: Event) -> None:
        if isinstance(event, InvocationStarted):
            asyncio.get_running_loop().call_soon(session.cancel)

    session.subscribe(on_event)
    try:
        result = run_session(session)
    finally:
        release.set()
    assert result.status == "cancelled"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_deaf_to_cancellation_is_left_behind_after_two_seconds(seed: int | None) -> None:
    """row: S5-DEAF"""

    async def deaf() -> str:
        loop = asyncio.get_running_loop()
        until = loop.time() + 50
        while loop.time() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(until - loop.time())
        return "late"

    session = Session(single(deaf))
    played = play(session, seed=seed, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert played.ended_s == pytest.approx(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_cancel_does_not_wait_for_a_parked_reader(seed: int | None) -> None:
    """row: S5-CANCEL"""

    async def rare() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1_000)

    with nw.workflow("parked") as w:
        items = w.add(made(rare), id="items")
        w.add(made(read_on_loop), id="reader", value=items)
    session = Session(w.build())
    played = play(session, seed=seed, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert played.ended_s == pytest.approx(1)
    assert played.left_open == ()


def test_cancel_does_not_wait_for_a_parked_reader_in_a_thread() -> None:
    """row: S5-CANCEL"""

    async def rare() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1_000)

    with nw.workflow("parked") as w:
        items = w.add(made(rare), id="items")
        w.add(made(read_in_thread), id="reader", value=items)
    session = Session(w.build(), stop_grace_s=8)

    def on_event(event: Event) -> None:
        if isinstance(event, InvocationStarted) and event.node_id == "reader":
            asyncio.get_running_loop().call_later(0.1, session.cancel)

    session.subscribe(on_event)
    began = time.monotonic()
    assert run_session(session).status == "cancelled"
    assert time.monotonic() - began < 6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_deaf_to_its_timeout_is_left_behind_and_has_failed(seed: int | None) -> None:
    """row: S5-DEAF, K3-ABANDONED"""

    async def deaf() -> str:
        loop = asyncio.get_running_loop()
        until = loop.time() + 50
        while loop.time() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(until - loop.time())
        return "late"

    asked = always(Skip())
    session = Session(single(deaf, timeout=5, retry_safe=True), supervise=asked)
    played = play(session, seed=seed)
    assert played.ended_s == pytest.approx(7)
    assert asked.escalations[0].signature == "timeout"
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["skip", "fail"]
    assert played.result.outputs["step"]["absent"] == "lost"


def test_a_generator_in_a_thread_that_times_out_is_left_behind() -> None:
    """row: K3-ABANDONED"""
    release = threading.Event()

    def stuck() -> Iterator[int]:
        release.wait(4)
        yield 1

    asked = always(Skip())
    began = time.monotonic()
    try:
        result = nw.run(single(stuck, timeout=0.05, retry_safe=True), supervise=asked)
        took_s = time.monotonic() - began
    finally:
        release.set()
    assert took_s < 3
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["skip", "fail"]
    assert result.status == "completed"


def test_a_generator_in_a_thread_does_not_hold_up_a_cancel() -> None:
    """row: K3-ABANDONED"""
    release = threading.Event()

    def stuck() -> Iterator[int]:
        yield 1
        release.wait(8)
        yield 2

    session = Session(single(stuck))

    def on_event(event: Event) -> None:
        if isinstance(event, ItemEmitted):
            asyncio.get_running_loop().call_later(0.05, session.cancel)

    session.subscribe(on_event)
    began = time.monotonic()
    try:
        result = run_session(session)
        took_s = time.monotonic() - began
    finally:
        release.set()
    assert result.status == "cancelled"
    assert took_s < 4


def eventful() -> Workflow:
    """Fan-out, retries, skips, a join, a reader and a collector: something of everything."""

    async def step(value: int, ctx: Context) -> int:
        await asyncio.sleep(0.1 * (value % 3))
        if value % 4 == 1 and ctx.attempt == 1:
            raise ValueError("once")
        return value

    async def join(left: int, right: int) -> int:
        if left == 2:
            raise ValueError("never")
        return left + right

    async def total(value: Collect[int]) -> int:
        return sum(value)

    with nw.workflow("eventful") as w:
        items = w.add(made(counting(6)), id="items")
        a = w.add(made(step, retry_safe=True), id="step", value=items)
        b = w.add(made(join), id="join", left=a, right=items)
        w.add(made(total), id="total", value=b.collect())
        w.add(made(read_on_loop), id="reader", value=b)
    return w.build()


def answering() -> Asked:
    return Asked(
        [
            Rule(answers=(ScriptedAnswer(Retry()),), node="step"),
            Rule(answers=(ScriptedAnswer(Skip()),), node="join"),
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_cancel_at_any_event_ends_the_run_cleanly(seed: int | None) -> None:
    """row: S5-CANCEL"""
    whole = play(Session(eventful(), supervise=answering(), seed=1, window=2), seed=seed)
    assert whole.result.status == "completed"
    for moment in range(1, len(whole.events)):
        session = Session(eventful(), supervise=answering(), seed=1, window=2)

        at: list[float] = []

        def on_event(
            event: Event,
            session: Session = session,
            moment: int = moment,
            at: list[float] = at,
        ) -> None:
            if event.seq == moment:
                at.append(asyncio.get_running_loop().time())
                session.cancel()

        session.subscribe(on_event)
        played = play(session, seed=seed)
        assert played.result.status in ("cancelled", "completed"), moment
        assert played.types().count(f"run_{played.result.status}") == 1
        assert played.types()[-1] == f"run_{played.result.status}"
        assert played.ended_s == pytest.approx(at[0]), moment
        assert played.left_open == (), moment
        assert all(i.outcome is not None for i in played.result.interventions), moment


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_that_fails_at_any_point_never_hangs_the_run(seed: int | None) -> None:
    """row: K3-STOP"""
    for supervisor in (None, always(Fail(reason="no"))):
        for keep_going in (False, True):
            session = Session(
                eventful(), supervise=supervisor, seed=1, window=2, keep_going=keep_going
            )
            played = play(session, seed=seed)
            assert played.result.status == "failed"
            assert played.types()[-1] == "run_failed"
            assert played.left_open == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_step_does_with_its_cancellation_does_not_matter(seed: int | None) -> None:
    async def returns() -> str:
        try:
            await asyncio.sleep(50)
        except asyncio.CancelledError:
            return "early"
        return "late"

    async def raises() -> str:
        try:
            await asyncio.sleep(50)
        finally:
            raise ValueError("clean-up failed")

    with nw.workflow("cancel") as w:
        w.add(made(returns), id="returns")
        w.add(made(raises), id="raises")
    session = Session(w.build())
    played = play(session, seed=seed, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert played.ended_s == pytest.approx(1)
    assert played.types()[-1] == "run_cancelled"
    assert played.left_open == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_cancel_before_the_run_starts_nothing(seed: int | None) -> None:
    started: list[int] = []

    async def step() -> int:
        started.append(1)
        return 1

    session = Session(single(step))
    session.cancel("changed my mind")
    played = play(session, seed=seed)
    assert played.result.status == "cancelled"
    assert played.result.reason == "changed my mind"
    assert started == []
    assert played.types() == ["run_started", "run_cancelled"]
    assert "step" in played.result.outputs


def test_a_session_runs_once() -> None:
    session = Session(single(by_nothing))
    assert play(session, seed=1).result.status == "completed"
    with pytest.raises(nw.RunError, match="runs once"):
        run_session(session)


def test_a_second_run_while_the_first_is_active_is_refused_and_harms_nothing() -> None:
    async def slow() -> int:
        await asyncio.sleep(5)
        return 1

    session = Session(single(slow))
    refused: list[str] = []

    async def main() -> nw.RunResult:
        first = asyncio.ensure_future(session.run())
        await asyncio.sleep(1)
        try:
            await session.run()
        except nw.RunError as error:
            refused.append(str(error))
        return await first

    from nightwarden.testing import run

    result = run(main(), seed=1)
    assert len(refused) == 1
    assert result.outputs == {"step": 1}


async def by_nothing() -> int:
    return 1


def test_run_inside_a_loop_points_to_arun() -> None:
    async def main() -> nw.RunResult:
        with pytest.raises(nw.RunError, match="arun"):
            nw.run(single(by_nothing))
        return await nw.arun(single(by_nothing))

    assert asyncio.run(main()).outputs == {"step": 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_cancelling_the_task_of_a_run_cancels_the_run(seed: int | None) -> None:
    state: dict[str, bool] = {}

    async def slow() -> int:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            state["cancelled"] = True
            raise
        return 1

    events: list[Event] = []
    session = Session(single(slow))
    session.subscribe(events.append)

    async def main() -> float:
        task = asyncio.ensure_future(session.run())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    from nightwarden.testing import run

    assert run(main(), seed=seed) == pytest.approx(1)
    assert state == {"cancelled": True}
    assert str(events[-1].__struct_config__.tag) == "run_cancelled"


# -- status --


async def suspending(ctx: Context) -> str:
    await asyncio.sleep(1)
    ctx.suspend("wait for the mail", {"page": 2})


async def failing_later() -> str:
    await asyncio.sleep(2)
    raise ValueError("bad")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("cancel_at", "status", "reason"),
    [(None, "suspended", "wait for the mail"), (1.5, "cancelled", "cancelled")],
)
def test_the_stronger_ending_wins(
    cancel_at: float | None, status: str, reason: str, seed: int | None
) -> None:
    """row: K3-STATUS"""
    with nw.workflow("status") as w:
        w.add(made(suspending), id="suspending")
        w.add(made(failing_later), id="failing")
    session = Session(w.build())
    at = [] if cancel_at is None else [(cancel_at, session.cancel)]
    played = play(session, seed=seed, at=at)
    assert played.result.status == status
    assert played.result.reason == reason
    assert played.types()[-1] == f"run_{status}"


def test_a_suspension_after_a_failure_is_a_suspended_run() -> None:
    """row: K3-STATUS"""

    async def fails_first() -> str:
        await asyncio.sleep(0.5)
        raise ValueError("bad")

    with nw.workflow("status") as w:
        w.add(made(fails_first), id="failing")
        w.add(made(suspending), id="suspending")
    played = play(Session(w.build()), seed=1)
    assert played.result.status == "suspended"


# -- outputs --


class Sorted(NamedTuple):
    """Two ways."""

    small: int | Absent = ABSENT
    large: int | Absent = ABSENT


nw.outputs(Sorted)


async def sort_out(value: int) -> Sorted:
    return Sorted(small=value) if value < 2 else Sorted(large=value)


def test_outputs_have_an_entry_for_every_open_slot() -> None:
    """row: K3-OUTPUTS"""

    async def bad() -> str:
        raise ValueError("bad")

    async def after(value: str) -> str:
        return value

    async def not_all(value: int) -> int:
        if value == 1:
            raise ValueError("one")
        return value

    with nw.workflow("outputs") as w:
        items = w.add(made(counting(4)), id="items")
        w.add(made(sort_out), id="sorted", value=items)
        w.add(made(not_all), id="some", value=items)
        lost = w.add(made(bad), id="bad")
        w.add(made(after), id="after", value=lost)
        w.add(made(by_nothing), id="one")
    outputs = play(Session(w.build(), supervise=always(Skip())), seed=1).result.outputs
    assert set(outputs) == {"sorted.small", "sorted.large", "some", "after", "one"}
    assert outputs["one"] == 1
    assert outputs["after"] == {"absent": "lost", "causes": ["bad was given up"]}
    assert (list(outputs["sorted.small"]), list(outputs["sorted.small"].indices)) == (
        [0, 1],
        [0, 1],
    )
    assert (list(outputs["sorted.large"]), list(outputs["sorted.large"].indices)) == (
        [2, 3],
        [2, 3],
    )
    assert outputs["sorted.small"].losses == []
    assert (list(outputs["some"]), list(outputs["some"].indices)) == ([0, 2, 3], [0, 2, 3])
    assert [(loss.index, loss.cause) for loss in outputs["some"].losses] == [
        (1, "some [2] was given up")
    ]


def test_a_branch_not_taken_is_an_absent_output() -> None:
    """row: K3-OUTPUTS"""

    async def one() -> int:
        return 5

    with nw.workflow("branch") as w:
        a = w.add(made(one), id="one")
        b = w.add(made(sort_out), id="sorted", value=a)
        w.add(made(echo), id="small", value=b.slot("small"))
        w.add("flow.Merge", id="merged", values=[b.slot("small"), b.slot("large")])
    played = play(Session(w.build()), seed=1)
    assert played.result.outputs["merged"] == 5
    assert played.result.outputs["small"] == {
        "absent": "not_taken",
        "causes": ["sorted.small was not taken"],
    }
    assert played.result.headline == "completed"


def test_a_linear_run_with_a_skip_says_what_is_missing() -> None:
    """row: K3-OUTPUTS, K1-LEDGER-HEADLINE"""

    async def publish() -> str:
        raise ValueError("refused")

    async def notify(value: str) -> str:
        return value

    with nw.workflow("linear") as w:
        a = w.add(made(publish), id="publish")
        w.add(made(notify), id="notify", value=a)
    result = play(Session(w.build(), supervise=always(Skip())), seed=1).result
    assert result.status == "completed"
    assert result.supervised
    assert "no output from notify: publish was skipped" in result.headline
    assert result.reason == "no output from notify: publish was skipped"


# -- the record --


def crowded(seed: int | None, folder: Path) -> tuple[Session, Played]:
    async def step(value: int) -> int:
        await asyncio.sleep(value % 3)
        if value % 4 == 1:
            raise ValueError(f"item {value}")
        return value

    session = Session(
        per_item(12, step, retry_safe=True),
        supervise=always(Skip()),
        store=folder / f"store-{seed}",
    )
    return session, play(session, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_record_is_what_subscribers_were_told(tmp_path: Path, seed: int | None) -> None:
    _, played = crowded(seed, tmp_path)
    lines = lines_of(tmp_path / f"store-{seed}")
    assert lines == [encode(event) for event in played.events]
    events = events_of(tmp_path / f"store-{seed}")
    assert [e["seq"] for e in events] == list(range(1, len(lines) + 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_ends_with_its_one_terminal_event(tmp_path: Path, seed: int | None) -> None:
    _, played = crowded(seed, tmp_path)
    terminal = {"run_completed", "run_failed", "run_cancelled", "run_suspended"}
    assert [t for t in played.types() if t in terminal] == ["run_completed"]
    assert played.types()[-1] == "run_completed"
    assert played.types()[0] == "run_started"
    assert [e.seq for e in played.events] == list(range(1, len(played.events) + 1))


@pytest.mark.parametrize("how", ["failed", "cancelled", "suspended"])
def test_every_ending_has_one_terminal_event_last(how: str) -> None:
    steps = {"failed": failing_later, "cancelled": failing_later, "suspended": suspending}
    session = Session(single(steps[how]))
    at = [(0.5, session.cancel)] if how == "cancelled" else []
    played = play(session, seed=1, at=at)
    assert [t for t in played.types() if t.startswith("run_")] == [
        "run_started",
        "run_stopping",
        f"run_{how}",
    ]
    assert played.types()[-1] == f"run_{how}"
    assert len(played.of(RunStopping)) == 1


def test_the_record_can_be_read_while_it_grows(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    folder = open_store(tmp_path)

    async def step(value: int) -> int:
        for _ in range(200):  # written by a thread of its own: wait for it, not for long
            found = [e["type"] for e in folder.read("last")] if folder.run_ids() else []
            if found.count("item_emitted") > value:
                break
            await asyncio.sleep(0.01)
        seen.append(found)
        return value

    result = nw.run(per_item(3, step), store=tmp_path)
    assert result.status == "completed"
    assert [found.count("item_emitted") > n for n, found in enumerate(seen)] == [True] * 3
    assert all("run_completed" not in found for found in seen)


def test_two_runs_into_one_record_are_refused(tmp_path: Path) -> None:
    play(Session(single(by_nothing), store=tmp_path, run_id="same"), seed=1)
    with pytest.raises(nw.NightwardenError, match="recorded once"):
        play(Session(single(by_nothing), store=tmp_path, run_id="same"), seed=1)


def normal(event: Event) -> dict[str, Any]:
    """An event without what differs from run to run."""
    form = json.loads(encode(event))
    for key in ("at", "run_id", "duration_s", "supervisor"):
        form.pop(key, None)
    return form


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_supervised_run_is_the_unsupervised_one(tmp_path: Path, seed: int | None) -> None:
    async def gather(value: Collect[int]) -> list[int]:
        return list(value)

    with nw.workflow("clean") as w:
        items = w.add(made(counting(6)), id="items")
        step = w.add(made(echo, retry_safe=True), id="step", value=items)
        w.add(made(gather), id="gather", value=step.collect())
    workflow = w.build()
    runs = [
        play(Session(workflow, supervise=supervisor, executor=InlineExecutor()), seed=seed)
        for supervisor in (None, always(Skip()))
    ]
    plain, supervised = ([normal(event) for event in played.events] for played in runs)
    assert supervised == plain
    names = [played.events[0].supervisor for played in runs]  # type: ignore[attr-defined]
    assert names == ["", "asked"]
    assert runs[0].result.headline == runs[1].result.headline == "completed: 6/6 items"
    assert not runs[1].result.supervised


def test_orders_of_arrival_do_not_change_what_comes_out() -> None:
    """row: K1-JOIN-EQUAL"""

    async def left(value: int) -> int:
        await asyncio.sleep((value * 7) % 5)
        return value

    async def right(value: int) -> int:
        await asyncio.sleep((value * 3) % 4)
        return value * 10

    async def join(left: int, right: int) -> int:
        return left + right

    async def many(values: Many[int]) -> int:
        return sum(values)

    def build() -> Workflow:
        with nw.workflow("order") as w:
            items = w.add(made(counting(20)), id="items")
            a = w.add(made(left, retry_safe=True), id="left", value=items)
            b = w.add(made(right, retry_safe=True), id="right", value=items)
            w.add(made(join), id="join", left=a, right=b)
            w.add(made(many), id="many", values=[a, b])
        return w.build()

    outputs = [play(Session(build()), seed=seed).result.outputs for seed in range(10)]
    assert list(outputs[0]["join"]) == [n * 11 for n in range(20)]
    assert all(found == outputs[0] for found in outputs)


@pytest.mark.parametrize("early", [True, False])
def test_a_list_of_items_knows_that_its_fan_out_was_ended_early(early: bool) -> None:
    """kernel.md §1, The ledger: "400 of unknown"; a step may want to know that."""

    async def items() -> AsyncIterator[int]:
        yield 1
        yield 2
        if early:
            raise nw.NodeError("the line went dead")

    async def gather(values: Collect[int]) -> tuple[list[int], str]:
        return list(values), values.ended_early

    with nw.workflow("early") as w:
        source = w.add(made(items), id="items")
        w.add(made(gather), id="all", values=source.collect())
    result = play(Session(w.build(), supervise=always(EndStream())), seed=1).result
    assert result.outputs == {"all": ([1, 2], "items was given up" if early else "")}
