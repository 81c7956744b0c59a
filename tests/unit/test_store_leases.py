"""When a run may be taken over: rules of `store/leases.py`, with clocks that do as they like."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from nightwarden.store.leases import BEAT_S, TTL_S, Lease, Life, Place, here, judge, stands_still

ELSEWHERE = Place("elsewhere", 1, boot="another")


def lease(place: Place = ELSEWHERE, *, beats: int = 5, beat_at: float = 1000.0) -> Lease:
    """A lease as found."""
    return Lease("owner", place, beats, beat_at, TTL_S)


class Clock:
    """Monotonic time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def test_a_living_process_of_this_machine_is_alive_whatever_the_clock() -> None:
    for now in (1000.0, 1e9, -1e9):
        assert judge(lease(here()), now, here()) is Life.ALIVE


def test_a_process_that_ended_is_dead_at_once() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    gone = Place(here().host, child.pid, here().boot, here().namespace, born="1")
    assert judge(lease(gone), 1000.0, here()) is Life.DEAD


def test_a_number_that_another_process_has_now_is_dead() -> None:
    before = Place(here().host, os.getpid(), here().boot, here().namespace, born="1")
    assert judge(lease(before), 1000.0, here()) is Life.DEAD


def test_the_remains_of_a_process_are_dead() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, but not buried
    zombie = Place(here().host, child.pid, here().boot, here().namespace, born=here().born)
    assert judge(lease(zombie), 1000.0, here()) is Life.DEAD
    child.wait()


@pytest.mark.parametrize(
    ("age", "life"),
    [
        (0.0, Life.ALIVE),
        (TTL_S, Life.ALIVE),
        (-TTL_S, Life.ALIVE),
        (TTL_S + 1, Life.UNSURE),
        (-TTL_S - 1, Life.UNSURE),
    ],
)
def test_of_another_machine_only_the_heartbeat_tells(age: float, life: Life) -> None:
    assert judge(lease(beat_at=1000.0), 1000.0 + age, here()) is life


def test_a_container_on_the_same_kernel_is_another_machine() -> None:
    inside = Place(here().host, os.getpid(), here().boot, "pid:[1]", here().born)
    assert judge(lease(inside), 1000.0 + 2 * TTL_S, here()) is Life.UNSURE


def test_an_owner_whose_count_moves_lives_though_the_clock_says_late() -> None:
    clock, found = Clock(), lease(beat_at=0.0)
    still = stands_still(
        found, 1e6, lambda: 5 + int(clock.now / BEAT_S), sleep=clock.sleep, monotonic=clock
    )
    assert not still
    assert clock.now <= BEAT_S + 1


def test_an_owner_that_is_late_and_stands_still_is_dead_after_some_beats() -> None:
    clock = Clock()
    assert stands_still(lease(beat_at=0.0), 1e6, lambda: 5, sleep=clock.sleep, monotonic=clock)
    assert 2 * BEAT_S < clock.now < TTL_S


def test_after_a_clock_jumped_back_the_whole_time_is_watched() -> None:
    clock = Clock()
    found = replace(lease(), beat_at=1e6)
    assert stands_still(found, 0.0, lambda: 5, sleep=clock.sleep, monotonic=clock)
    assert clock.now >= TTL_S


def test_a_lease_that_vanished_while_watched_is_not_ours_to_take() -> None:
    clock = Clock()
    assert not stands_still(lease(), 1e6, lambda: None, sleep=clock.sleep, monotonic=clock)
