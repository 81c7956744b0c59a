"""Commands of agents: bounded, without secrets, gone when they are over (steering.md §5)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from processes import is_gone

from nightwarden.agents.shell import Ran, clean_environment, run_command
from nightwarden.agents.workspace import ToolProblem


def sh(command: str, folder: Path, *, timeout_s: float = 8.0, max_chars: int = 10_000) -> Ran:
    """Run it."""
    return asyncio.run(
        run_command(
            ["/bin/sh", "-c", command],
            cwd=folder,
            env=clean_environment(),
            timeout_s=timeout_s,
            max_chars=max_chars,
        )
    )


def test_both_outputs_and_the_code_come_back(tmp_path: Path) -> None:
    assert sh("echo out; echo err >&2; exit 3", tmp_path) == Ran("out\nerr\n", 3)


def test_it_runs_in_its_folder_and_reads_nothing(tmp_path: Path) -> None:
    assert sh("pwd; cat", tmp_path) == Ran(f"{tmp_path.resolve()}\n", 0)


def test_keys_are_not_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "MY_TOKEN", "DATABASE_URL", "AWS_PROFILE", "PGPASSWORD"):
        monkeypatch.setenv(name, "hunter2-hunter2")
    output = sh("env", tmp_path).output
    assert "hunter2" not in output
    assert f"PATH={os.environ['PATH']}\n" in output


def test_what_is_given_by_hand_is_in_its_environment() -> None:
    environ = {"PATH": "/bin", "LC_ALL": "C", "TOKEN": "x"}
    found = clean_environment(environ, {"CI": "1"})
    assert found == {"PATH": "/bin", "LC_ALL": "C", "CI": "1"}


def test_its_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    ran = sh("echo first; yes | head -c 3000000; echo last", tmp_path, max_chars=200)
    assert ran.code == 0
    assert ran.output.startswith("first\ny\n")
    assert ran.output.endswith("last\n")
    assert "characters left out" in ran.output
    assert len(ran.output) < 260


def test_a_command_whose_time_is_up_is_killed_with_all_it_started(tmp_path: Path) -> None:
    ran = sh("sleep 60 & echo $!; echo $$; sleep 60", tmp_path, timeout_s=0.3)
    assert ran.code is None
    child, own = map(int, ran.output.split())
    assert is_gone(child)
    assert is_gone(own)


def test_what_is_left_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    ran = sh("sleep 60 & echo $!", tmp_path)
    assert ran.code == 0
    assert is_gone(int(ran.output))


def test_one_that_left_the_group_does_not_hold_the_command_up(tmp_path: Path) -> None:
    code = "import os,time; os.setsid(); print(os.getpid(), flush=True); time.sleep(3)"
    ran = sh(f"{sys.executable} -c '{code}' & sleep 0.4", tmp_path, timeout_s=2.5)
    assert ran.code == 0


def test_cancelling_kills_the_group(tmp_path: Path) -> None:
    async def cancelled() -> int:
        os.mkfifo(tmp_path / "begun")
        task = asyncio.create_task(
            run_command(
                ["/bin/sh", "-c", "sleep 60 & echo $! > pid; echo > begun; wait"],
                cwd=tmp_path,
                env=clean_environment(),
                timeout_s=60,
                max_chars=100,
            )
        )
        await asyncio.to_thread((tmp_path / "begun").read_text)  # until it is written
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int((tmp_path / "pid").read_text())

    assert is_gone(asyncio.run(cancelled()))


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolProblem, match="cannot be started"):
        sh("true", tmp_path / "none")
