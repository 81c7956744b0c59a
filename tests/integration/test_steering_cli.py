"""The steering commands, as people run them (surfaces.md, issue 6)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Done, nightwarden

from nightwarden.steering.claude import drain, hooks
from nightwarden.steering.claude.box import SessionBox
from nightwarden.steering.ports import Words
from nightwarden.store import open_store

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "tests" / "policies"


def recorded(folder: Path, session: str, run_id: str = "r1") -> None:
    """Put a recorded session into the store, as a run."""
    text = (SESSIONS / f"{session}.jsonl").read_text(encoding="utf-8")
    with open_store(folder / ".nightwarden") as store, store.create(run_id) as run:
        for line in text.splitlines():
            run.append(line.encode())


def clean(done: Done) -> str:
    assert done.code == 0, done.err
    return done.out


# -- monitors test --


def test_a_monitor_on_events_there_are_none_of_is_warned_about(tmp_path: Path) -> None:
    """Issue 6, bad input: bad monitors. A slip in a name would never match, and never be told."""
    recorded(tmp_path, "loop-breaker/the_same_failure")
    done = nightwarden("monitors", "test", "r1", "-m", "event_type=tool_eror", cwd=tmp_path)
    assert (done.code, done.out) == (0, "   0 hits  event_type=tool_eror\n")
    assert done.lines == [
        "warning: --monitor 'event_type=tool_eror': no event has type 'tool_eror'; "
        "did you mean 'tool_error'?"
    ]


def test_monitors_test_counts_what_would_have_been_hit(tmp_path: Path) -> None:
    recorded(tmp_path, "loop-breaker/the_same_failure")
    out = clean(
        nightwarden(
            "monitors",
            "test",
            "r1",
            "--monitor",
            "event_type=tool_error,repeat=3",
            "-m",
            "event_type=tool_error",
            "-m",
            "event_type=log",
            cwd=tmp_path,
        )
    )
    lines = out.splitlines()
    assert lines[0] == "    1 hit  event_type=tool_error,repeat=3"
    assert lines[1].strip().startswith("#")
    assert "   4 hits  event_type=tool_error" in lines
    assert lines[-1] == "   0 hits  event_type=log"


def test_monitors_test_speaks_json_and_knows_policies(tmp_path: Path) -> None:
    recorded(tmp_path, "loop-breaker/the_same_failure")
    arguments = ("monitors", "test", "r1", "--policy", "loop-breaker", "--json")
    found = json.loads(clean(nightwarden(*arguments, cwd=tmp_path)))
    assert found["version"] == 1
    hits = {row["monitor"]: row["hits"] for row in found["monitors"]}
    assert hits["event_type=tool_error,repeat=3"] == 1
    assert hits["idle_for=20m"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--monitor", "foo=1"], "there is no key 'foo'"),
        (["--monitor", "cost_gt=NaN"], "an amount of dollars above 0"),
        (["--policy", "persevere"], "did you mean 'perseverance'?"),
        ([], "there is no monitor to test"),
        (["--supervisor", "gone.yaml"], "gone.yaml: No such file"),
        (["--supervisor", "bad.yaml"], "the file holds no supervisor"),
    ],
)
def test_what_cannot_be_tested_is_a_usage_error(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    """steering.md §3: a malformed monitor is an error on the command line."""
    recorded(tmp_path, "loop-breaker/work")
    (tmp_path / "bad.yaml").write_text("[1]")
    done = nightwarden("monitors", "test", "r1", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


# -- steering replay --


def test_steering_replay_shows_when_it_would_have_looked_and_why_not(tmp_path: Path) -> None:
    recorded(tmp_path, "loop-breaker/the_same_failure")
    (tmp_path / "dog.yaml").write_text(
        "watches: [campaign]\nboundaries: false\ncooldown: 60s\n"
        "monitors: ['event_type=tool_error,repeat=3', 'event_type=tool_error']\n"
    )
    done = nightwarden("steering", "replay", "r1", "--supervisor", "dog.yaml", cwd=tmp_path)
    lines = [line.strip() for line in clean(done).splitlines()]
    assert lines[0].endswith("armed: campaign")
    assert sum(" look " in line for line in lines) == 3
    assert any("put off (cooldown" in line for line in lines)
    assert lines[-1] == "21 events: 3 looks of 20 at most, silent 4 times"


def test_steering_replay_speaks_json(tmp_path: Path) -> None:
    recorded(tmp_path, "loop-breaker/a_wait")
    arguments = ("steering", "replay", "last", "--policy", "loop-breaker", "--json")
    found = json.loads(clean(nightwarden(*arguments, cwd=tmp_path)))
    assert (found["version"], found["looks"], found["max_evals"]) == (1, 0, 8)
    assert [m["what"] for m in found["moments"]] == ["armed", "closed"]


def test_steering_replay_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    recorded(tmp_path, "loop-breaker/work")
    done = nightwarden("steering", "replay", "r9", "--policy", "loop-breaker", cwd=tmp_path)
    assert done.code == 2
    assert "r9" in done.err


# -- policies --


def test_policies_are_listed_and_shown(tmp_path: Path) -> None:
    listed = clean(nightwarden("policies", "list", cwd=tmp_path))
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == ["cost-pacer", "loop-breaker", "perseverance", "scope-guard"]
    shown = clean(nightwarden("policies", "show", "cost-pacer", cwd=tmp_path))
    assert shown.startswith("cost-pacer, version 1:")
    assert "event_type=usage_progress,cost_gt=8" in shown
    found = json.loads(
        clean(nightwarden("policies", "show", "scope-guard", "--json", cwd=tmp_path))
    )
    assert (found["name"], found["policy_version"]) == ("scope-guard", 1)


# -- hooks --


def at_home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}


def test_a_hook_is_put_in_works_and_is_taken_out(tmp_path: Path) -> None:
    env = at_home(tmp_path)
    out = clean(nightwarden("hook", "install", cwd=tmp_path, env=env))
    assert (
        "hooks at Stop, PostToolUse, PostToolUseFailure are in .claude/settings.local.json" in out
    )
    again = clean(nightwarden("hook", "install", "--cwd", str(tmp_path), cwd=tmp_path, env=env))
    assert again == "the hooks are in .claude/settings.local.json already\n"

    text = (tmp_path / ".claude" / "settings.local.json").read_text()
    command = json.loads(text)["hooks"]["Stop"][0]["hooks"][0]["command"]
    box = SessionBox("s1", root=tmp_path / ".nightwarden" / "claude")
    box.enqueue(Words(message_id="m1", run_id="s1", node_id="", author="", text="Look again."))
    hook = {"hook_event_name": "PostToolUseFailure", "session_id": "s1", "cwd": "/elsewhere"}
    done = subprocess.run(
        command,
        shell=True,
        input=json.dumps(hook),
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert json.loads(done.stdout)["hookSpecificOutput"] == {
        "hookEventName": "PostToolUseFailure",
        "additionalContext": "Look again.",
    }
    clean(nightwarden("hook", "uninstall", cwd=tmp_path, env=env))
    assert list((tmp_path / ".claude").iterdir()) == []


def test_corrupt_settings_are_an_error_and_stay(tmp_path: Path) -> None:
    """Scenario 97."""
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text('{"hooks": ')
    done = nightwarden("hook", "install", cwd=tmp_path, env=at_home(tmp_path))
    assert done.code == 2
    assert "nothing was changed" in done.err
    assert path.read_text() == '{"hooks": '


def test_the_doctor_says_what_is_not_well(tmp_path: Path) -> None:
    env = at_home(tmp_path)
    done = nightwarden("hook", "doctor", "--json", cwd=tmp_path, env=env)
    found: dict[str, Any] = json.loads(done.out)
    assert (done.code, found["well"]) == (1, False)
    assert any("no hook at Stop" in row["what"] for row in found["findings"])


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [("{", "cannot be edited: "), ('{"hooks": 5}', ": hooks is no object"), ("[]", "JSON object")],
)
def test_the_doctor_says_once_what_keeps_the_hooks_out(
    tmp_path: Path, settings: str, wrong: str
) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(settings)
    done = nightwarden("hook", "doctor", cwd=tmp_path, env=at_home(tmp_path))
    first = done.out.splitlines()[0]
    assert done.code == 1
    assert wrong in first
    assert first.endswith(" — mend the file by hand")
    assert first.count("by hand") == 1


# -- the drain and the benchmark --


def test_the_drain_can_be_run_as_a_module_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nightwarden.steering.claude.drain"],
        input=b"{}",
        capture_output=True,
        env={"HOME": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_command_of_the_hooks_is_the_drain_itself() -> None:
    assert f"-I -S {Path(drain.__file__).resolve()}" in hooks.command()


def test_the_steering_benchmark_measures_something() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "steering.py"), "--quick", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == 1
    assert len(found["rows"]) == 11
    assert all(row["value"] > 0 for row in found["rows"] if row["unit"] != "%")
