"""The kernel, by hand: a fan-out that waits for the world outside, and nobody wants more of it.

kernel.md §1: "its fan-out is closed at its next yield". One that waits for a push would never
yield again, and the run would wait with it.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import fan, step, stream, workflow

from nightwarden.kernel.effects import Halt
from nightwarden.kernel.stimuli import Parked, Unparked


def read_once() -> Hand:
    """A fan-out that has put out one item, and a reader that was shown it."""
    run = Hand(workflow(fan("items"), step("read", x=stream("items"))))
    run.start()
    run.emits("items", "a")
    run.asks("read", "x")
    return run


def halts(run: Hand) -> list[bool]:
    """For each order to end: whether it is a gentle one."""
    return [effect.gently for effect in run.of(Halt)]


def closes_as_cut(run: Hand) -> None:
    run.halted("items")
    assert run.root("items").marks == {"cut": 1}
    assert run.node("items").succeeded == 1
    assert run.status() == "completed"


def test_a_fan_out_that_waits_outside_is_closed_when_every_exit_has_left() -> None:
    """row: K1-FAN-LEFT"""
    run = read_once()
    run.tell(Parked(run.calls["items", ()]))
    run.returns("read", output="enough")
    assert halts(run) == [True]
    closes_as_cut(run)


def test_a_fan_out_that_waits_outside_after_every_exit_has_left_is_closed_at_once() -> None:
    """row: K1-FAN-LEFT"""
    run = read_once()
    run.returns("read", output="enough")
    assert halts(run) == []
    run.tell(Parked(run.calls["items", ()]))
    assert halts(run) == [True]
    closes_as_cut(run)


@pytest.mark.parametrize("waited", [False, True])
def test_a_fan_out_that_waits_no_longer_is_left_to_its_next_yield(waited: bool) -> None:
    """row: K1-FAN-LEFT"""
    run = read_once()
    if waited:
        run.tell(Parked(run.calls["items", ()]))
        run.tell(Unparked(run.calls["items", ()]))
    run.returns("read", output="enough")
    assert halts(run) == []
    run.emits("items", "b")
    assert halts(run) == [True]
    closes_as_cut(run)
