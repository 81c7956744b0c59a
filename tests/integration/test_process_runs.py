"""Whole runs with steps in processes of their own (kernel.md §6)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import process_steps as steps
import pytest
from case_runs import Asked
from kept import everything_in

import nightwarden as nw
from nightwarden import Session, SpecError
from nightwarden.events import Event, Log
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Action, Retry, Skip, Substitute, Verdict


@nw.node(type="test.Numbers")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def answers(*verdicts: Verdict) -> Asked:
    given = tuple(ScriptedAnswer(verdict, "as written") for verdict in verdicts)
    return Asked([Rule(answers=given, repeats=len(given) == 1)])


def per_item(count: int, step: Any, **properties: Any) -> Workflow:
    with nw.workflow("per-item") as w:
        items = w.add(numbers, id="items", count=count)
        w.add(step, id="step", value=items, **properties)
    return w.build()


def alone(step: Any, **properties: Any) -> Workflow:
    with nw.workflow("alone") as w:
        w.add(step, id="step", **properties)
    return w.build()


def test_steps_of_a_fan_out_run_in_as_many_processes_as_there_are() -> None:
    result = nw.run(per_item(20, steps.square))
    assert result.status == "completed", result.reason
    found = list(result.outputs["step"])
    assert [value for value, _ in found] == [n * n for n in range(20)]
    pids = {pid for _, pid in found}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= (os.cpu_count() or 1)


def test_a_coroutine_goes_to_a_process_too() -> None:
    result = nw.run(per_item(3, steps.later))
    assert list(result.outputs["step"]) == [1, 2, 3]


def test_what_a_step_spends_in_a_process_is_in_the_result(tmp_path: Path) -> None:
    workflow = alone(steps.everything)
    result = nw.run(workflow, secrets={"KEY": "s3cret-value"}, workdir=tmp_path, store=tmp_path)
    assert result.costs["nodes_micro_usd"] == {"step": 750_000}
    assert result.rejected == {"step": 1}
    assert b"s3cret-value" not in everything_in(tmp_path)


def test_a_worker_that_dies_is_decided_like_any_failure() -> None:
    asked = answers(Skip())
    result = nw.run(per_item(4, steps.dies_at_two), supervise=asked)
    assert result.status == "completed", result.reason
    assert list(result.outputs["step"]) == [0, 1, 3]
    (escalation,) = asked.escalations
    assert escalation.signature == "node:worker-died"
    assert "was ended by SIGKILL" in escalation.detail
    assert Action.RETRY not in escalation.allowed_actions


@pytest.mark.parametrize("how", ["die", "hang"])
def test_a_safe_step_whose_process_is_gone_may_be_run_again(tmp_path: Path, how: str) -> None:
    """A thread would be left behind and its outcome unknown; a process is gone."""
    asked = answers(Retry())
    workflow = alone(steps.once_bad, mark=str(tmp_path / "mark"), how=how)
    result = nw.run(workflow, supervise=asked)
    assert result.status == "completed", result.reason
    assert result.outputs["step"] == "second time"
    assert len(asked.escalations) == 1


def test_what_a_step_in_a_process_holds_in_hand_can_be_repaired() -> None:
    asked = answers(Substitute({"output": "mended"}))
    result = nw.run(alone(steps.everything, fails=True), secrets={"KEY": "k"}, supervise=asked)
    assert result.outputs["step"] == "mended"


def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    async def main() -> tuple[str, int]:
        session = Session(alone(steps.busy), workdir=tmp_path)
        pids: list[int] = []

        def watch(event: Event) -> None:
            if isinstance(event, Log):
                pids.append(int(event.message.split()[1]))
                session.cancel()

        session.subscribe(watch)
        result = await session.run()
        return result.status, pids[0]

    status, pid = asyncio.run(main())
    assert status == "cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_step_that_cannot_go_to_a_process_is_refused_at_once() -> None:
    with pytest.raises(SpecError, match="a step that streams stays where its stream is"):
        nw.run(alone(steps.yields, count=1))
