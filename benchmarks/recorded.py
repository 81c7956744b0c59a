"""Whole runs with everything on record: against the same run in memory, and resumed (G7, G12).

    in_turns(…)   20,000 items × 3 steps, in memory and recorded, one after the other
    resumed(…)    a run whose record holds 100,000 finished invocations: until the first new one

Every step is a process of nothing: what is measured is the engine. Read next: `store.py`.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import time
from pathlib import Path

from nightwarden import Collect, node, workflow
from nightwarden.errors import NodeError
from nightwarden.nodes.registry import Registry
from nightwarden.resuming import resume_session
from nightwarden.session import Session, run_session
from nightwarden.spec.workflow import Workflow
from nightwarden.store import open_store

STEPS = 3


class World:
    """What the last step of the run is to stumble over, and when it was first called again."""

    stone = -1
    first_s: float | None = None


def fan_out() -> Workflow:
    """Items through three steps, collected."""
    registry = Registry()

    @node(type="bench.First", retry_safe=True)
    async def first(value: int) -> int:
        return value + 1

    @node(type="bench.Second", retry_safe=True)
    async def second(value: int) -> int:
        return value + 1

    @node(type="bench.Third", retry_safe=True)
    async def third(value: int) -> int:
        if value == World.stone:
            raise NodeError("a stone")
        if World.first_s is None:
            World.first_s = time.perf_counter()
        return value + 1

    @node(type="bench.Gather", retry_safe=True)
    async def gather(values: Collect[int]) -> int:
        return sum(values)

    for step in (first, second, third, gather):
        registry.add(step)
    with workflow("bench", registry=registry) as w:
        items = w.input("items", list[int])
        one = w.add(first, id="first", value=items.each())
        two = w.add(second, id="second", value=one)
        three = w.add(third, id="third", value=two)
        w.add(gather, id="all", values=three.collect())
    return w.build()


def in_turns(folder: Path, items: int, rounds: int) -> dict[str, float]:
    """A run in memory and the same one recorded."""
    made, inputs = fan_out(), {"items": list(range(items))}
    memory, recorded, sizes = [], [], []
    for number in range(rounds):
        memory.append(_timed(Session(made, inputs)))
        place = folder / f"run-{number}"
        recorded.append(_timed(Session(made, inputs, store=place)))
        sizes.append(sum(f.stat().st_size for f in place.iterdir() if f.is_file()))
        shutil.rmtree(place)
    steps = items * STEPS
    return {
        "run_steps_per_s": steps / statistics.median(recorded),
        "run_ratio_to_memory": statistics.median(
            [one / other for one, other in zip(recorded, memory, strict=True)]
        ),
        "run_bytes_per_invocation_on_disk": statistics.median(sizes) / steps,
    }


def resumed(folder: Path, invocations: int) -> dict[str, float]:
    """A failed run goes on: seconds until its first new invocation, and megabytes."""
    made, items = fan_out(), invocations // STEPS
    World.stone = items + 1  # the last item stumbles, once all others are through
    place = folder / "resumed"
    first = run_session(Session(made, {"items": list(range(items))}, store=place))
    assert first.status == "failed", first.headline
    World.stone, World.first_s = -1, None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    with open_store(place) as store:
        result = run_session(resume_session(store, workflow=made))
    assert result.status == "completed", result.headline
    assert World.first_s is not None
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "resume_invocations": float(items * STEPS),
        "resume_first_new_s": World.first_s - began,
        "resume_more_memory_mb": grown / 1024,
    }


def _timed(session: Session) -> float:
    began = time.perf_counter()
    result = run_session(session)
    assert result.status == "completed", result.headline
    return time.perf_counter() - began
