"""Ctrl-C in a program that runs a workflow: the run is cancelled, whatever runs just then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment
from kept import events_of

SCRIPT = """
import asyncio, os, signal, sys, time
import nightwarden as nw

@nw.node
async def step() -> int:
    if sys.argv[1] == "in a step":
        signal.raise_signal(signal.SIGINT)
    else:
        asyncio.get_running_loop().call_later(0.1, signal.raise_signal, signal.SIGINT)
    await asyncio.sleep(30)
    return 1

with nw.workflow("w") as w:
    w.add(step, id="step")
try:
    nw.run(w.build(), store="kept", run_id="r")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("where", ["in a step", "while it waits"])
def test_control_c_cancels_the_run_of_a_program(tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, where],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=25,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
    assert events_of(tmp_path / "kept")[-1]["type"] == "run_cancelled"


def test_another_programs_handler_of_control_c_is_left_alone() -> None:
    """Also the command line's own, which says what it does."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        from nightwarden.own_loop import run_on_own_loop

        async def main() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            return "done"

        assert run_on_own_loop(main()) == "done"
        assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
