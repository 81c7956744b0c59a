"""`make soak`: random graphs, failures and cancels through the real driver, for as long as asked.

    python tests/soak/run.py [--minutes 10] [--seed 0]

Each seed draws a hundred runs. What fails is shrunk, printed, and can be played again with
`--seed N --minutes 0`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hypothesis
from hypothesis import HealthCheck, given
from soak.drawing import Plan, plans
from soak.playing import faults

RUNS = 100


def once(seed: int, workdir: Path) -> None:
    """The runs of one seed. Raises `AssertionError` with the smallest run that goes wrong."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=RUNS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(plans)
    def runs(plan: Plan) -> None:
        assert faults(plan, workdir) == []

    runs()


def main() -> int:
    """The command line: 0 if nothing went wrong."""
    options = argparse.ArgumentParser(description="random runs through the real driver")
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=0)
    given_ = options.parse_args()
    warnings.simplefilter("error")
    ends, wrong = time.monotonic() + 60 * given_.minutes, []
    with tempfile.TemporaryDirectory() as folder:
        for seed in count(given_.seed):
            try:
                once(seed, Path(folder))
                print(f"seed {seed}: {RUNS} runs", flush=True)
            except Exception:
                wrong.append(seed)
                traceback.print_exc()
                print(f"seed {seed} FAILED; again: --seed {seed} --minutes 0", flush=True)
            if time.monotonic() >= ends:
                break
    print(f"{seed - given_.seed + 1} seeds, {len(wrong)} of them failed: {wrong}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
