"""What a run has started ends with the process that runs it, even where that is killed (issue 6).

Each test kills a real engine with SIGKILL and looks for the processes it had started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Running, environment, started
from model_server import Call, ModelServer
from processes import is_gone

from nightwarden.leash import Leash

MODEL = "openai-chat:gpt-5"
PATIENCE_S = 30.0
LEASH_S = 5.0


def numbers(folder: Path, *names: str) -> list[int]:
    """The numbers of processes that have put themselves on record in these files."""
    end = time.monotonic() + PATIENCE_S
    found: list[str] = []
    while len(found) < len(names) or not all(found):
        assert time.monotonic() < end, f"in vain for {names} in {sorted(folder.iterdir())}"
        time.sleep(0.02)
        found = [(folder / name).read_text() for name in names if (folder / name).exists()]
    return [int(text) for text in found]


@pytest.fixture
def tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine puts what is temporary, and nobody else."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def agent(folder: Path, server: ModelServer, **properties: Any) -> Running:
    """The engine, with an agent in it."""
    (folder / "nightwarden.toml").write_text(
        f'[models."{MODEL}"]\nbase_url = "{server.base_url}/v1"\nprice_in = 3\nprice_out = 15\n'
    )
    work = {"type": "agent.Agent", "model": MODEL, "prompt": "Do it.", "workspace": "."}
    flow = {"version": 1, "name": "w", "nodes": {"work": {**work, **properties}}}
    (folder / "w.json").write_text(json.dumps(flow))
    return started("run", "w.json", cwd=folder, env={"OPENAI_API_KEY": "sk-test-0123456789"})


def killed(engine: Running) -> None:
    """End the engine as nothing can be tidied up after."""
    engine.send(signal.SIGKILL)
    engine.end()


def test_a_command_of_an_agent_ends_with_an_engine_that_is_killed(
    tmp_path: Path, tmpdir: Path
) -> None:
    """decisions/020: whatever an agent starts ends with the call that started it."""
    command = "sleep 600 & echo $! >other; echo $$ >own; wait"
    with (
        ModelServer([Call("shell", {"command": command})]) as server,
        agent(tmp_path, server) as engine,
    ):
        found = numbers(tmp_path, "own", "other")
        killed(engine)
        assert [is_gone(pid, within_s=LEASH_S) for pid in found] == [True, True]
    end = time.monotonic() + 5
    while any(tmpdir.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert list(tmpdir.iterdir()) == [], "nothing temporary is left"


DEAF = """
import os, subprocess, threading, time
from pathlib import Path
from mcp.server.mcpserver import MCPServer

server = MCPServer("deaf")

@server.tool()
def stay() -> str:
    "Says who it is, and stays."
    other = subprocess.Popen(["sleep", "600"])
    Path("other").write_text(str(other.pid))
    Path("own").write_text(str(os.getpid()))
    time.sleep(600)
    return ""

threading.Thread(target=time.sleep, args=(600,)).start()  # it does not end with its input
server.run()
"""


def test_a_server_of_tools_that_does_not_mind_its_input_ends_as_well(
    tmp_path: Path, tmpdir: Path
) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    mcp = {"d": {"command": sys.executable, "args": [str(tmp_path / "deaf.py")]}}
    with (
        ModelServer([Call("d_stay", {})]) as server,
        agent(tmp_path, server, mcp=mcp, tools=[]) as engine,
    ):
        found = numbers(tmp_path, "own", "other")
        killed(engine)
        assert [is_gone(pid, within_s=LEASH_S) for pid in found] == [True, True]


BUSY = '''
import os, subprocess
from pathlib import Path

import nightwarden as nw


@nw.node(type="t.Busy", retry_safe=True, executor="process")
def busy(folder: str) -> int:
    """Computes for years in one call, and lets no other thread of its process run."""
    other = subprocess.Popen(["sleep", "600"])
    Path(folder, "other").write_text(str(other.pid))
    Path(folder, "own").write_text(str(os.getpid()))
    return sum(range(10**15))
'''


def test_a_worker_process_ends_as_well_with_what_its_step_has_started(
    tmp_path: Path, tmpdir: Path
) -> None:
    """Even one that is deep in a call that lets no thread of it notice."""
    (tmp_path / "steps.py").write_text(BUSY)
    flow = {
        "version": 1,
        "name": "w",
        "nodes": {"busy": {"type": "t.Busy", "folder": str(tmp_path)}},
    }
    (tmp_path / "w.json").write_text(json.dumps(flow))
    with started("run", "w.json", "--nodes", "steps.py", cwd=tmp_path) as engine:
        found = numbers(tmp_path, "own", "other")
        killed(engine)
        assert [is_gone(pid, within_s=LEASH_S) for pid in found] == [True, True]


@pytest.fixture
def process() -> Iterator[list[int]]:
    """Processes to be ended after the test, by their numbers."""
    found: list[int] = []
    yield found
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_a_fork_that_lives_on_holds_nothing_up(
    tmp_path: Path, tmpdir: Path, process: list[int]
) -> None:
    """Steps may fork; the copy must not keep the guard from seeing that its parent is gone."""
    code = (
        "import os, subprocess, time; from pathlib import Path; "
        "from nightwarden.leash import Leash; "
        "started = subprocess.Popen(Leash().command('/bin/sh', "
        "['-c', 'echo $$ >own; exec sleep 600']), process_group=0); "
        "copy = os.fork(); "
        "Path('fork').write_text(str(copy)) if copy else None; "
        "time.sleep(600)"
    )
    engine = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment())
    own, fork = numbers(tmp_path, "own", "fork")
    process.append(fork)
    engine.kill()
    engine.wait()
    assert is_gone(own, within_s=LEASH_S)
    os.kill(fork, 0)  # it lives


def test_a_program_whose_mark_comes_too_late_never_begins(tmp_path: Path, tmpdir: Path) -> None:
    leash = Leash()
    command = leash.command("/bin/sh", ["-c", f"echo begun >{tmp_path}/begun"])
    leash.kill()
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "begun").exists()


def test_a_guard_whose_folder_was_tidied_away_is_replaced(tmp_path: Path, tmpdir: Path) -> None:
    """Some systems delete what is old in /tmp, and runs may take weeks."""
    Leash().command("true", [])
    for left in tmpdir.iterdir():
        left.rename(tmp_path / left.name)
    leash = Leash()
    done = subprocess.run(leash.command("echo", ["hello"]), capture_output=True, check=False)
    leash.kill()
    assert done.stdout == b"hello\n"


def test_an_engine_that_ends_leaves_no_guard_and_no_folder(tmp_path: Path, tmpdir: Path) -> None:
    code = (
        "from nightwarden import leash; held = leash.Leash(); held.command('true', []); "
        "print(leash._guards[0]._process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert is_gone(int(done.stdout), within_s=LEASH_S)
    assert list(tmpdir.iterdir()) == []


LEASHED = """
import os, subprocess, sys, time
from nightwarden.leash import Leash

leash = Leash("A_MARK=" + sys.argv[1])
command = leash.command("sh", ["-c", "setsid sleep 600 & echo $! > left; wait"])
subprocess.Popen(command, env={**os.environ, "A_MARK": sys.argv[1]}, start_new_session=True)
while not (os.path.exists("left") and os.path.getsize("left")):
    time.sleep(0.01)
if sys.argv[2] == "kill":
    leash.kill()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
@pytest.mark.parametrize("how", ["kill", "SIGKILL"])
def test_what_left_the_group_ends_too_where_it_bears_a_mark(tmp_path: Path, how: str) -> None:
    """The processes of a program that starts sessions of its own."""
    engine = subprocess.Popen(
        [sys.executable, "-c", LEASHED, f"{how}-0123456789abcdef", how],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"ready\n"
        (left,) = numbers(tmp_path, "left")
        if how == "SIGKILL":
            engine.kill()
        assert is_gone(left, within_s=LEASH_S)
        engine.kill()
