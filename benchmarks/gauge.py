"""How one side is measured: time and memory of the same run, several times, as one JSON line.

Each script that uses this is a process of its own, started for one measurement:

    python SCRIPT.py WORKLOAD ITEMS [--declared HOW] [--times N]  ─▶  {"seconds": […], …}

Processor time is what remains comparable on a machine that has other things to do.

A short run goes before, so that nothing is imported or compiled while the clock runs.

Read next: `reference.py`, `subject.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WARM_UP = 100


@dataclass(frozen=True)
class Task:
    """What is asked for. `declared` says how the engine's steps are declared."""

    workload: str
    items: int
    declared: str
    times: int


Run = Callable[[int], Awaitable[int]]
"""One run over so many items, from nothing; its sum."""


@dataclass(frozen=True)
class Workload:
    """`run` does `steps` steps an item, and its sum must be `expected`."""

    run: Run
    steps: int
    expected: Callable[[int], int]
    warm_up: int = WARM_UP


def read_task() -> Task:
    """What the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("items", type=int)
    parser.add_argument("--declared", default="pure")
    parser.add_argument("--times", type=int, default=1)
    found = parser.parse_args()
    return Task(found.workload, found.items, found.declared, found.times)


async def gauge(workload: Workload, task: Task) -> dict[str, object]:
    """Time it, by the clock and by the processor. Memory is the process's own, in MB."""
    await workload.run(min(workload.warm_up, task.items))
    gc.collect()
    before_mb = resident_mb()
    seconds, processor, sums = [], [], []
    for _ in range(task.times):
        gc.collect()
        began, spent = time.perf_counter(), time.process_time()
        sums.append(await workload.run(task.items))
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    expected = workload.expected(task.items)
    return {
        "seconds": seconds,
        "processor": processor,
        "steps": workload.steps * task.items,
        "sum": sums[-1],
        "right": all(found == expected for found in sums),
        "before_mb": before_mb,
        "peak_mb": peak_mb(),
    }


def serve(measurement: Awaitable[Mapping[str, object]]) -> None:
    """Run a measurement and print what it came to."""

    async def main() -> Mapping[str, object]:
        return await measurement

    print(json.dumps(asyncio.run(main())))


def resident_mb() -> float:
    """Memory in use now; the highest so far where the system does not tell."""
    return _status_mb("VmRSS") or peak_mb()


def peak_mb() -> float:
    """The most memory this program has used.

    `ru_maxrss` alone would count what the process that started this one was using.
    """
    rss_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _status_mb("VmHWM") or round(rss_kb / 1024, 1)


def _status_mb(field: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    found = next((line.split() for line in lines if line.startswith(field + ":")), None)
    return round(int(found[1]) / 1024, 1) if found else 0.0
