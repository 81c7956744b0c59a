"""What a model that decides costs apart from the model's own time.

    python benchmarks/supervisor.py             a table
    python benchmarks/supervisor.py --quick     small sizes: does it work at all?
    python benchmarks/supervisor.py --json      for programs

    import     the model side and a provider's client, loaded when first needed, and not before
    first      from a step's failure to the first request, in a process that has loaded nothing
    next       the same for later decisions
    decision   from the failure to the step's next attempt, less what the provider took
    scripted   the same with an answer from a file, to compare

The provider is a server on loopback in the parent's process that answers at once, asked through
the provider's own client; the runs are in fresh processes. Both read the same clock.

Read next: `asked.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSION = 1
MODELS = ("anthropic:claude-sonnet-5", "openai:gpt-5", "google:gemini-2.5-flash")
TOLD = {"diagnosis": "a time-out", "rationale": "It may pass."}


@dataclass(frozen=True, slots=True)
class Row:
    """One number: the median of its samples, and the extremes."""

    name: str
    value: float
    unit: str
    low: float
    high: float


def row(name: str, unit: str, samples: Sequence[float], digits: int = 1) -> Row:
    """A row of samples."""
    low, high = min(samples), max(samples)
    value = statistics.median(samples)
    return Row(name, round(value, digits), unit, round(low, digits), round(high, digits))


# -- the provider, and the numbers --


def child(*arguments: str) -> dict[str, Any]:
    """What `asked.py` measures, in a fresh process."""
    command = [sys.executable, str(Path(__file__).with_name("asked.py")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def imports(rounds: int) -> list[Row]:
    """What the first escalation loads."""
    found = {name: [child("import", name) for _ in range(rounds)] for name in MODELS}
    library = [each["library"] for rows in found.values() for each in rows]
    rows = [row("model side, loaded when first needed", "s", library, 2)]
    for name, each in found.items():
        provider = name.partition(":")[0]
        samples = [one["client"] for one in each]
        rows.append(row(f"and the client of {provider}", "s", samples, 2))
    return rows


def decisions(name: str, items: int, rounds: int) -> list[Row]:
    """Runs that ask the loopback provider."""
    sys.path.insert(0, str(ROOT / "tests"))
    from model_server import Call, ModelServer  # noqa: PLC0415  (found by now)

    first, later, overhead = [], [], []
    answer = Call("decide", {**TOLD, "verdict": {"action": "retry"}})
    for _ in range(rounds):
        arrived: list[float] = []

        def model(_request: object, arrived: list[float] = arrived) -> Call:
            arrived.append(time.perf_counter())
            return answer

        with ModelServer([model]) as server:
            version = "" if name.startswith(("anthropic", "google")) else "/v1"
            times = child("run", name, server.base_url + version, str(items))
        if len(arrived) != items:
            raise RuntimeError(f"{len(arrived)} requests for {items} failures")
        waits = [came - at for came, at in zip(arrived, times["failed"], strict=True)]
        whole = [on - at for on, at in zip(times["went_on"], times["failed"], strict=True)]
        first.append(waits[0])
        later += [each * 1000 for each in waits[1:]]
        overhead += [each * 1000 for each in whole[1:]]
    provider = name.partition(":")[0]
    return [
        row(f"{provider}: failure to first request", "s", first, 2),
        row(f"{provider}: failure to request, later on", "ms", later),
        row(f"{provider}: failure to next attempt, later on", "ms", overhead),
    ]


def measure(*, quick: bool) -> list[Row]:
    """Every number."""
    items, rounds = (3, 1) if quick else (30, 5)
    rows = imports(rounds)
    for name in MODELS[:1] if quick else MODELS:
        rows += decisions(name, items, rounds)
    samples = []
    for _ in range(rounds):
        times = child("run", "scripted", "", str(items))
        pairs = zip(times["went_on"], times["failed"], strict=True)
        samples += [(on - at) * 1000 for on, at in pairs][1:]
    return [*rows, row("scripted: failure to next attempt", "ms", samples, 2)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what a model that decides costs.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(arguments)
    rows = measure(quick=options.quick)
    if options.json:
        print(json.dumps({"version": VERSION, "rows": [asdict(each) for each in rows]}, indent=1))
        return 0
    for each in rows:
        print(f"{each.name:<48}{each.value:>9} {each.unit:<3} ({each.low}–{each.high})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
