"""A workflow behind an agent's interface: surfaces.md, Library; seed 000 §7.3."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import nightwarden as nw
from nightwarden import Registry, node
from nightwarden.errors import ModelError, RunError
from nightwarden.events import Event
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Skip
from nightwarden.workflow_agent import WorkflowAgent


@node(type="t.Half")
def half(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


@node(type="t.Sum")
def total(numbers: nw.Collect[int]) -> int:
    return sum(numbers)


def halves() -> Workflow:
    with nw.workflow("halves", registry=Registry()) as w:
        numbers = w.input("numbers", list[int])
        each = w.add(half, id="half", properties={"number": numbers.each()})
        w.add(total, id="total", properties={"numbers": each.collect()})
    return w.build()


def skipping() -> Scripted:
    return Scripted([Rule(answers=(ScriptedAnswer(Skip(), "odd"),), node="half")])


async def told(events: AsyncIterator[Event]) -> list[str]:
    return [str(type(event).__struct_config__.tag) for event in [e async for e in events]]


def test_it_says_what_the_run_says_and_ends_with_its_end() -> None:
    agent = WorkflowAgent(halves(), supervise=skipping())

    async def main() -> list[str]:
        return await told(agent.execute({"numbers": [2, 3, 4]}))

    tags = asyncio.run(main())
    assert tags[0] == "run_started"
    assert tags[-1] == "run_completed"
    assert "supervisor_decision" in tags
    assert agent.get_results() == {"total": 3}
    assert agent.result is not None
    assert agent.result.supervised
    assert len(agent.result.interventions) == 1


def test_events_come_while_the_run_goes_on() -> None:
    waits = asyncio.Event()

    @node(type="t.Wait")
    async def wait() -> str:
        await waits.wait()
        return "done"

    with nw.workflow("waiting", registry=Registry()) as w:
        w.add(wait, id="wait")
    agent = WorkflowAgent(w.build(), supervise=None)

    async def main() -> None:
        async for event in agent.execute():
            if type(event).__struct_config__.tag == "node_started":
                assert agent.result is None
                waits.set()

    asyncio.run(main())
    assert agent.get_results() == {"wait": "done"}


def test_it_can_be_executed_again_but_not_twice_at_once() -> None:
    agent = WorkflowAgent(halves(), supervise=skipping())

    async def main() -> None:
        await told(agent.execute({"numbers": [2]}))
        assert agent.get_results() == {"total": 1}
        first = agent.execute({"numbers": [8]})
        await anext(first)
        with pytest.raises(RunError, match="is being executed"):
            await anext(agent.execute({"numbers": [2]}))
        await told(first)
        assert agent.get_results() == {"total": 4}

    asyncio.run(main())


def test_a_run_that_fails_raises_nothing_until_results_are_asked_for() -> None:
    agent = WorkflowAgent(halves(), supervise=None)

    async def main() -> list[str]:
        return await told(agent.execute({"numbers": [3]}))

    assert asyncio.run(main())[-1] == "run_failed"
    assert agent.result is not None
    with pytest.raises(RunError, match=r"halves has no results: .*3 is odd"):
        agent.get_results()


def test_before_the_first_execution_there_are_no_results() -> None:
    with pytest.raises(RunError, match="has not been executed yet"):
        WorkflowAgent(halves(), supervise=None).get_results()


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_whoever_stops_listening_or_cancels_stops_the_run(how: str) -> None:
    cut: list[bool] = []

    @node(type="t.Long")
    async def long() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append(True)
            raise
        return ""

    with nw.workflow("long", registry=Registry()) as w:
        w.add(long, id="long")
    agent = WorkflowAgent(w.build(), supervise=None)

    async def main() -> None:
        events = agent.execute()
        async for event in events:
            if type(event).__struct_config__.tag == "node_started":
                await asyncio.sleep(0)
                if how == "close":
                    break
                agent.cancel()
        await events.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(main())
    assert agent.result is not None
    assert agent.result.status == "cancelled"
    agent.cancel()  # nothing goes on, nothing happens
    with pytest.raises(RunError, match="no results"):
        agent.get_results()


def test_inputs_that_do_not_fit_and_a_model_that_cannot_be_asked_are_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def first(agent: WorkflowAgent, inputs: dict[str, object]) -> None:
        await anext(agent.execute(inputs))

    with pytest.raises(RunError, match="numbers"):
        asyncio.run(first(WorkflowAgent(halves(), supervise=None), {"numbers": "x"}))
    agent = WorkflowAgent(halves())
    with pytest.raises(ModelError, match="needs to know which"):
        asyncio.run(first(agent, {"numbers": [2]}))
    assert agent.result is None
