"""Processes that take turns: A B A B …, each started afresh, so that all of them meet the same
machine. Ratios are taken within a round, and the median over the rounds is what counts.

Read next: `goals.py`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

Reply = Mapping[str, Any]
Round = Mapping[str, Reply]


class Broken(RuntimeError):
    """A measurement that could not be taken, or whose result was wrong."""


@dataclass(frozen=True)
class Turn:
    """One process. `command` prints a reply, or is only timed from outside."""

    command: tuple[str, ...]
    replies: bool = True


def script(name: str, workload: str, items: int, *, declared: str = "", times: int = 1) -> Turn:
    """A script of this folder at one workload."""
    extra = ("--declared", declared) if declared else ()
    path = str(HERE / f"{name}.py")
    return Turn((sys.executable, path, workload, str(items), "--times", str(times), *extra))


def play(turns: Mapping[str, Turn], count: int, said: Callable[[str], None]) -> Sequence[Round]:
    """Let the processes take turns, `count` rounds of it. Raises `Broken`.

    One that is timed from outside runs once before, so that its files are at hand.
    """
    for turn in turns.values():
        if not turn.replies:
            run(turn)
    found = []
    for number in range(count):
        said(f"round {number + 1} of {count}")
        found.append({name: run(turn) for name, turn in turns.items()})
    return found


def run(turn: Turn) -> Reply:
    """One process, to its end. Raises `Broken`."""
    began = time.perf_counter()
    try:
        done = subprocess.run(turn.command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Broken(f"{_name(turn)}: {error.strerror}") from error
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Broken(f"{_name(turn)} ended with {done.returncode}: {last}")
    if not turn.replies:
        return {"seconds": [seconds], "right": True}
    reply = json.loads(done.stdout)
    assert isinstance(reply, dict)
    if not reply["right"]:
        raise Broken(f"{_name(turn)} came to a wrong result: {reply}")
    return reply


def seconds(reply: Reply) -> float:
    """What a run took, the median of a process."""
    return float(statistics.median(reply["seconds"]))


def processor(reply: Reply) -> float:
    """What a run took of the processor, the median of a process."""
    return float(statistics.median(reply["processor"]))


def step_us(reply: Reply) -> float:
    """Microseconds a step."""
    return seconds(reply) / int(reply["steps"]) * 1e6


def ratios(
    rounds: Sequence[Round], name: str, to: str, of: Callable[[Reply], float] = seconds
) -> list[float]:
    """How often `to` goes into `name`, round by round."""
    return [of(turns[name]) / of(turns[to]) for turns in rounds]


def each(rounds: Sequence[Round], name: str, of: Callable[[Reply], float]) -> list[float]:
    """One number of one process, round by round."""
    return [of(turns[name]) for turns in rounds]


def typical(rounds: Sequence[Round], name: str, of: Callable[[Reply], float]) -> float:
    """The median of that."""
    return statistics.median(each(rounds, name, of))


def _name(turn: Turn) -> str:
    return " ".join(Path(part).name for part in turn.command)
