"""Runs that die more than once: what one life did is still known in the third. (kernel.md §3)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_resume import Lab

import nightwarden as nw
from nightwarden import Context
from nightwarden.spec.workflow import Workflow

KEY = "a-secret-of-some-length"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def followed(lab: Lab, code: Callable[..., Any], **promises: Any) -> Workflow:
    """The step, and one after it that never succeeds: the run can always be resumed."""

    async def breaks(text: str) -> str:
        raise ValueError("not today")

    with nw.workflow("followed") as w:
        text = w.add(lab.step(code, **promises), id="step")
        w.add(lab.step(breaks, retry_safe=True), id="breaks", text=text)
    return w.build()


@pytest.mark.parametrize("dies", [True, False])
def test_a_step_that_broke_off_after_its_pause_is_not_simply_run_again(
    lab: Lab, dies: bool
) -> None:
    """It asked to be called once more, not for ever: its effect may have been had."""

    async def sends(ctx: Context) -> str:
        if ctx.suspended_state is None:
            ctx.suspend("until somebody has looked", {"order": 7})
        lab.does("sends")
        if not dies and not again:
            raise ConnectionError("the line broke")
        return f"sent {ctx.suspended_state}"

    again: list[bool] = []
    assert lab.begin(followed(lab, sends)).status == "suspended"
    if dies:
        lab.fatal.add("sends")
        lab.resume_and_die()
    else:
        assert lab.resume().status == "failed"
    assert lab.did == {"sends": 1}
    third = lab.resume()
    assert (third.status, lab.did) == ("failed", {})
    assert third.reason.startswith("step: ")
    again.append(True)
    fourth = lab.resume(retry=["step"])
    assert lab.did == {"sends": 1}
    assert fourth.reason == "breaks: ValueError: not today"
    (returned,) = [e for e in lab.store.read("r") if e["type"] == "invocation_succeeded"]
    assert returned["outputs"] == {"output": "sent {'order': 7}"}  # it gets back what it gave


def test_what_an_attempt_spent_before_it_was_cut_off_is_never_forgotten(lab: Lab) -> None:
    async def pays(ctx: Context) -> str:
        ctx.spend(0.25)
        lab.does("pays")
        return "paid"

    lab.fatal.add("pays")
    lab.begin(followed(lab, pays))
    second = lab.resume(retry=["step"])
    assert second.costs["nodes_micro_usd"]["step"] == 500_000
    assert lab.resume().costs["nodes_micro_usd"]["step"] == 500_000


def test_what_an_attempt_spent_before_it_paused_is_never_forgotten(lab: Lab) -> None:
    async def pays(ctx: Context) -> str:
        ctx.spend(0.25)
        if ctx.suspended_state is None:
            ctx.suspend("until it has arrived", 1)
        return "paid"

    assert lab.begin(followed(lab, pays)).status == "suspended"
    assert lab.resume().costs["nodes_micro_usd"]["step"] == 500_000
    assert lab.resume().costs["nodes_micro_usd"]["step"] == 500_000


def test_what_cost_money_is_not_made_again_because_it_once_failed_for_nothing(lab: Lab) -> None:
    """Its result held a secret, and is worked out again only where that does no harm."""

    async def buys(ctx: Context) -> str:
        lab.does("buys")
        if not there:
            raise ValueError("not yet")
        ctx.spend(0.25)
        return f"bought with {ctx.secret('KEY')}"

    there: list[bool] = []
    lab.begin(followed(lab, buys, retry_safe=True), secrets={"KEY": KEY})
    there.append(True)
    assert lab.resume(secrets={"KEY": KEY}).costs["nodes_micro_usd"]["step"] == 250_000
    assert lab.did == {"buys": 1}
    third = lab.resume(secrets={"KEY": KEY})
    assert lab.did == {}
    assert third.costs["nodes_micro_usd"]["step"] == 250_000
    assert "step.output is not on record" in third.reason
