"""Commands over the store, as real processes: resume, detached runs, events, cancel, whole runs.

surfaces.md (Command line), kernel.md §3 (Resume), issue 4. What they say to bad input is in
`tests/bad_input.toml`; what is done again and what is not, in the tests of resuming itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer
from commands import (
    COMMAND,
    Done,
    environment,
    nightwarden,
    on_terminal,
    started,
    until_one_has_ended,
)
from kept import events_of
from model_server import ModelServer, Say
from typer.main import get_command

from nightwarden.cli.completing import run_ids
from nightwarden.store import open_store

STEPS = '''
"""Steps that note what they did in a file, and wait for another file."""

import asyncio
from pathlib import Path

from nightwarden import Collect, Context, NodeError, node


def note(line: str) -> None:
    with Path("done.txt").open("a", encoding="utf-8") as file:
        file.write(line + "\\n")


async def held_up(ctx: Context) -> None:
    ctx.log.info("held up")
    while not Path("go").exists():
        await asyncio.sleep(0.02)


@node(retry_safe=True, label="{name}")
def read(name: str) -> str:
    note(f"read {name}")
    return name.upper()


@node(label="{name}")
async def publish(name: str, ctx: Context) -> str:
    """Waits before the third item until it may go on."""
    note(f"publish {name}")
    if name == "C":
        await held_up(ctx)
    return name


@node(retry_safe=True)
async def wait(names: Collect[str], ctx: Context) -> int:
    """Waits until it may go on."""
    note("wait")
    await held_up(ctx)
    return len(names)


@node(type="t.Agent", retry_safe=True)
def agent(names: Collect[str]) -> int:
    return len(names)


@node(retry_safe=True)
def check(password: str) -> int:
    if not Path("go").exists():
        raise NodeError("not yet", code="not-yet")
    return len(password)


@node
def pause(ctx: Context) -> int:
    if not Path("go").exists():
        ctx.suspend("until the morning")
    return 1


@node(retry_safe=True)
def long() -> str:
    return "x" * 100_000
'''
WAITING = """
    name: waiting
    python: [steps.py]
    inputs: {names: {type: "list[str]", default: [a, b]}}
    nodes:
      read:
        type: steps.Read
        name: $inputs.names[*]
      wait:
        type: steps.Wait
        names: $read[]
    """
PUBLISHING = """
    name: publishing
    python: [steps.py]
    inputs: {names: {type: "list[str]", default: [a, b, c, d]}}
    nodes:
      read:
        type: steps.Read
        name: $inputs.names[*]
      publish:
        type: steps.Publish
        name: $read
      count:
        type: t.Agent
        names: $publish[]
    """
SECRETIVE = """
    name: secretive
    python: [steps.py]
    inputs: {password: str}
    nodes:
      check:
        type: steps.Check
        password: $inputs.password
      own:
        type: steps.Read
        name: $secrets.PASSWORD
    """
ONE = "name: one\npython: [steps.py]\nnodes:\n  step:\n    type: steps.{}\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with workflows and their steps."""
    for name, text in {
        "steps.py": STEPS,
        "waiting.yaml": dedent(WAITING),
        "publishing.yaml": dedent(PUBLISHING),
        "secretive.yaml": dedent(SECRETIVE),
        "pause.yaml": ONE.format("Pause"),
        "long.yaml": ONE.format("Long"),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def let_go(place: Path) -> None:
    """Let the steps that wait go on."""
    (place / "go").touch()


def done_in(place: Path) -> list[str]:
    """What the steps did, in order."""
    return (place / "done.txt").read_text(encoding="utf-8").splitlines()


def listed(place: Path, run_id: str) -> dict[str, Any]:
    """What `runs` says of a run."""
    found = json.loads(nightwarden("runs", "--json", cwd=place).out)
    (entry,) = [entry for entry in found["runs"] if entry["run_id"] == run_id]
    assert isinstance(entry, dict)
    return entry


def run_once(place: Path, run_id: str, file: str = "waiting.yaml") -> Done:
    """A run that nothing holds up."""
    let_go(place)
    return nightwarden("run", file, "--trust", "--run-id", run_id, cwd=place)


@contextlib.contextmanager
def detached(place: Path, file: str, *options: str, run_id: str = "r") -> Iterator[int]:
    """A detached run's process, ended afterwards if it goes on."""
    arguments = ("run", file, "--trust", "--detach", "--run-id", run_id, "--json", *options)
    done = nightwarden(*arguments, cwd=place)
    assert done.code == 0, done
    process = json.loads(done.out)["process"]
    try:
        yield process
    finally:
        end(process)


def end(process: int) -> None:
    """Kill a process that is not a child of this one."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def killed(place: Path, process: int, field: str = "message", value: str = "held up") -> None:
    """Kill the process of run `r` once an event has this, and wait until it is gone."""
    with open_store(place / ".nightwarden") as store:
        for event in store.follow("r"):
            if event.get(field) == value:
                break
        end(process)
        for _ in store.follow("r"):
            pass  # until its owner is dead


# -- detached runs --


def test_a_detached_run_says_how_to_follow_and_to_cancel_it(place: Path) -> None:
    let_go(place)
    done = nightwarden("run", "waiting.yaml", "--trust", "--detach", "--run-id", "r", cwd=place)
    assert (done.code, done.err) == (0, "")
    first, *rest = done.out.splitlines()
    assert re.fullmatch(r"run r goes on in process \d+", first)
    assert rest == [
        "   follow    nightwarden events r --follow",
        "   cancel    nightwarden cancel r",
        "   output    .nightwarden/runs/r/output.log",
    ]
    told = nightwarden("events", "r", "--follow", cwd=place)
    assert told.out.splitlines()[-1].endswith("── completed: 2/2 items")
    log = place / ".nightwarden" / "runs" / "r" / "output.log"
    assert "── completed: 2/2 items" in log.read_text(encoding="utf-8")


def test_a_detached_run_outlives_its_terminal(place: Path) -> None:
    shown = on_terminal(
        "run", "waiting.yaml", "--trust", "--detach", "--run-id", "r", cwd=place
    )  # the terminal is closed when this returns, and its processes are hung up on
    found = re.search(r"process (\d+)", shown.text)
    assert found is not None
    try:
        assert listed(place, "r")["owner_alive"]
        let_go(place)
        told = nightwarden("events", "r", "--follow", cwd=place)
        assert told.out.splitlines()[-1].endswith("── completed: 2/2 items")
    finally:
        end(int(found[1]))


def test_a_detached_run_that_is_killed_is_interrupted_and_can_be_resumed(place: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        running = nightwarden("runs", cwd=place).out
        assert re.search(rf"^r  waiting  \S+ \S+  +\d+  running: process {process} on ", running)
        killed(place, process)
    interrupted = nightwarden("runs", cwd=place).out
    assert "interrupted: nobody drives it any more (nightwarden resume r)" in interrupted
    entry = listed(place, "r")
    assert (entry["status"], entry["owner_alive"]) == ("interrupted", False)
    let_go(place)
    done = nightwarden("resume", "r", cwd=place)
    assert (done.code, done.out.splitlines()[0]) == (0, "── completed: 2/2 items")
    assert sorted(done_in(place)) == ["read a", "read b", "wait", "wait"]
    assert listed(place, "r")["status"] == "completed"


def test_a_detached_run_reads_standard_input_before_it_lets_go(place: Path) -> None:
    let_go(place)
    done = nightwarden(
        *("run", "waiting.yaml", "--trust", "--detach", "--run-id", "r", "--input", "names=@-"),
        cwd=place,
        stdin="x\ny\nz\n",
    )
    assert done.code == 0
    nightwarden("events", "r", "--follow", cwd=place)
    assert listed(place, "r")["headline"] == "completed: 3/3 items"


def test_a_detached_run_is_supervised_if_asked_for(place: Path) -> None:
    (place / "answers.yaml").write_text("- when: {node: check}\n  answer: skip\n")
    with detached(
        *(place, "secretive.yaml", "--input", "password=x", "--supervise", "scripted:answers.yaml")
    ):
        nightwarden("events", "r", "--follow", cwd=place, env={"NIGHTWARDEN_SECRET_PASSWORD": "y"})
    assert events_of(place / ".nightwarden", "r")[0]["supervisor"] == "scripted:answers.yaml"


def test_what_a_detached_runs_steps_send_to_a_model_is_said_once_where_it_was_started(
    tmp_path: Path,
) -> None:
    """supervision.md §7: what is sent to which model is said once, where somebody reads it."""
    ask = "version: 1\nnodes: {ask: {type: llm.Generate, prompt: hi, model: 'ollama:x'}}\n"
    (tmp_path / "ask.yaml").write_text(ask)
    with ModelServer([Say("Hello.")]) as server:
        env = {"OLLAMA_BASE_URL": f"{server.base_url}/v1"}
        for run_id, said in (
            ("r", ["What goes in at ask is sent to ollama:x on your own network."]),
            ("s", []),
        ):
            done = nightwarden(
                "run", "ask.yaml", "--detach", "--run-id", run_id, cwd=tmp_path, env=env
            )
            assert (done.code, done.lines) == (0, said)
            nightwarden("events", run_id, "--follow", cwd=tmp_path)


def test_what_cannot_begin_leaves_nothing_behind(place: Path) -> None:
    done = nightwarden("run", "secretive.yaml", "--trust", "--detach", "--run-id", "r", cwd=place)
    assert (done.code, done.out) == (2, "")
    assert done.lines == ["nightwarden: input password (str) is missing: give --input password=…"]
    assert not (place / ".nightwarden" / "runs" / "r").exists()


# -- resume --


def test_what_may_not_be_run_again_is_listed_before_anything_starts(place: Path) -> None:
    """kernel.md §3, Resume: without a supervisor the rest is run, and the run fails."""
    with detached(place, "publishing.yaml") as process:
        killed(place, process)
    before = done_in(place)
    assert before.count("publish C") == 1
    done = nightwarden("resume", "r", cwd=place)
    assert done.code == 1
    assert done.lines[:5] == [
        "1 call of a step may not simply be run again, so the run goes on without it:",
        "   publish[3]  was cut off; whether it took effect is not known",
        "   once it is known to do no harm: --retry 'publish[3]', at your own risk",
        "   to have it decided one by one: --supervise MODE",
        "   for good: retry_safe=True where a step is defined, if it may run twice",
    ]
    assert "── failed: publish [3" in done.out
    assert "   resume    nightwarden resume r" in done.out.splitlines()
    assert sorted(line for line in done_in(place) if "publish" in line) == [
        "publish A",
        "publish B",
        "publish C",
        "publish D",
    ]


def test_retry_runs_it_again_at_its_users_risk_and_on_record(place: Path) -> None:
    with detached(place, "publishing.yaml") as process:
        killed(place, process)
    let_go(place)
    done = nightwarden("resume", "r", "--retry", "publish[3]", "--quiet", cwd=place)
    assert (done.code, done.err, done.out) == (0, "", "")
    assert done_in(place).count("publish C") == 2
    assert done_in(place).count("publish A") == 1
    (resumed,) = [e for e in events_of(place / ".nightwarden") if e["type"] == "run_resumed"]
    assert resumed["retry"] == [["publish", [2]]]


def test_a_supervisor_given_on_resume_is_asked_about_it(place: Path) -> None:
    (place / "answers.yaml").write_text("- when: {node: publish}\n  answer: skip\n")
    with detached(place, "publishing.yaml") as process:
        killed(place, process)
    done = nightwarden("resume", "r", "--supervise", "scripted:answers.yaml", cwd=place)
    assert done.code == 0
    assert done.lines[0].endswith("so the run asks the supervisor about it:")
    assert not any("--supervise MODE" in line for line in done.lines)
    assert "completed (supervised): 3/4 items, 1 skipped" in done.out


def test_supervision_and_bounds_are_inherited_and_may_be_changed(place: Path) -> None:
    (place / "none.yaml").write_text("- when: {node: nobody}\n  answer: skip\n")
    options = ("--supervise", "scripted:none.yaml", "--max-decisions", "3", "--max-retries", "1")
    secret = {"NIGHTWARDEN_SECRET_PASSWORD": "hush-hush"}
    arguments = ("secretive.yaml", "--trust", "--run-id", "r", "--input", "password=x")
    assert nightwarden("run", *arguments, *options, cwd=place, env=secret).code == 1
    done = nightwarden("resume", "r", "--max-decisions", "7", cwd=place, env=secret)
    assert done.code == 1
    (resumed,) = [e for e in events_of(place / ".nightwarden") if e["type"] == "run_resumed"]
    assert resumed["supervisor"] == "scripted:none.yaml"
    bounds = resumed["bounds"]
    assert (bounds["max_decisions"], bounds["max_retries"]) == (7, 1)


def test_a_run_is_done_again_from_where_one_says(place: Path) -> None:
    run_once(place, "r", "publishing.yaml")
    (place / "done.txt").unlink()
    done = nightwarden("resume", "r", "--from", "read[2]", cwd=place)
    assert done.code == 0
    assert done_in(place) == ["read b", "publish B"]


def test_a_changed_workflow_is_refused_with_the_differences_unless_forced(place: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        killed(place, process)
    let_go(place)
    text = (place / "waiting.yaml").read_text(encoding="utf-8")
    (place / "waiting.yaml").write_text(text.replace("wait:", "hold:"), encoding="utf-8")
    refused = nightwarden("resume", "r", cwd=place)
    assert refused.code == 2
    assert any("wait" in line for line in refused.lines[1:-1])
    assert any("hold" in line for line in refused.lines[1:-1])
    assert "resume with --force" in refused.lines[-1]
    assert done_in(place).count("wait") == 1
    forced = nightwarden("resume", "r", "--force", cwd=place)
    assert (forced.code, forced.out.splitlines()[0]) == (0, "── completed: 2/2 items")
    assert done_in(place).count("read a") == 1


def test_a_run_that_goes_on_is_not_driven_twice(place: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        done = nightwarden("resume", "r", cwd=place)
    assert done.code == 2
    assert re.fullmatch(
        rf"nightwarden: run r is driven by process {process} on \S+: follow it with "
        r"`nightwarden events r --follow`, or end it with `nightwarden cancel r`",
        done.err.strip(),
    )


def test_of_two_resumes_at_once_one_drives_and_the_other_is_told(place: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        killed(place, process)
    with started("resume", "r", cwd=place) as one, started("resume", "r", cwd=place) as other:
        until_one_has_ended(one, other)
        let_go(place)
        ends = sorted((one.end(), other.end()), key=lambda done: done.code)
    assert [done.code for done in ends] == [0, 2]
    assert "run r is driven by process" in ends[1].err
    events = events_of(place / ".nightwarden", "r")
    assert [event["type"] for event in events].count("run_resumed") == 1


def test_a_complete_run_is_not_run_again_and_says_so_to_programs_too(place: Path) -> None:
    run_once(place, "r")
    before = events_of(place / ".nightwarden", "r")
    done = nightwarden("resume", "r", "--json", cwd=place)
    assert done.code == 0
    told = json.loads(done.out)
    assert (told["run_id"], told["status"]) == ("r", "completed")
    assert done.err == "run r is complete: nothing is left to do\n"
    assert events_of(place / ".nightwarden", "r") == before


def test_a_suspended_run_goes_on_when_it_is_resumed(place: Path) -> None:
    first = nightwarden("run", "pause.yaml", "--trust", "--run-id", "r", cwd=place)
    assert first.code == 3
    assert nightwarden("resume", "r", cwd=place).code == 3
    let_go(place)
    assert nightwarden("resume", "r", cwd=place).code == 0


def test_an_input_that_held_a_secret_is_asked_for_again(place: Path) -> None:
    """supervision.md §4: what is sealed is not on record."""
    secret = {"NIGHTWARDEN_SECRET_PASSWORD": "hush-hush"}
    given = ("--input", "password=hush-hush")
    arguments = ("secretive.yaml", "--trust", "--run-id", "r", *given)
    assert nightwarden("run", *arguments, cwd=place, env=secret).code == 1
    let_go(place)
    lacking = nightwarden("resume", "r", cwd=place, env=secret)
    assert lacking.code == 2
    assert lacking.lines == [
        "nightwarden: input password held a secret, and is not on record: give it again "
        "(--input password=…)"
    ]
    assert nightwarden("resume", "r", *given, cwd=place, env=secret).code == 0


def test_the_result_of_a_resumed_run_is_that_of_a_run(place: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        killed(place, process)
    let_go(place)
    told = json.loads(nightwarden("resume", "r", "--json", cwd=place).out)
    assert (told["version"], told["run_id"], told["status"]) == (1, "r", "completed")
    assert told["outputs"] == {"wait": 2}


def test_a_run_can_be_resumed_from_another_folder(place: Path, tmp_path: Path) -> None:
    with detached(place, "waiting.yaml") as process:
        killed(place, process)
    let_go(place)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "go").touch()
    done = nightwarden("resume", "r", "--store", str(place / ".nightwarden"), cwd=elsewhere)
    assert (done.code, done.out.splitlines()[0]) == (0, "── completed: 2/2 items")


def test_what_the_how_to_page_shows_is_what_happens(tmp_path: Path, root: Path) -> None:
    page = (root / "docs" / "how-to" / "resume.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```(yaml|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (tmp_path / "letters.yaml").write_text(shown["yaml"], encoding="utf-8")
    (tmp_path / "letters_nodes.py").write_text(shown["python"], encoding="utf-8")
    names = '--input=names=["Ada", "Bea"]'
    with detached(tmp_path, "letters.yaml", names) as process:
        killed(tmp_path, process, "type", "invocation_started")
    done = nightwarden("resume", "r", cwd=tmp_path)
    told = [
        line for line in page.splitlines() if line.startswith(("1 call", "   once it", "   for"))
    ]
    assert done.code == 1
    assert [re.sub(r"\[\d\]", "[5]", line) for line in (done.lines[i] for i in (0, 2, 4))] == told
    spots = re.findall(r"--retry '(sent\[\d\])'", done.err)
    again = nightwarden("resume", "r", "--retry", spots[0], cwd=tmp_path)
    assert (again.code, again.out.splitlines()[0]) == (0, "── completed: 2/2 items")


# -- events, cancel, message --


def test_a_run_of_another_process_is_followed_until_its_end(place: Path) -> None:
    with (
        detached(place, "waiting.yaml"),
        started("events", "r", "--follow", "--json", cwd=place) as follower,
    ):
        let_go(place)
        told = follower.end()
    assert told.code == 0
    events = [json.loads(line) for line in told.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run_started", "run_completed")
    rest = nightwarden("events", "r", "--after", "3", "--json", cwd=place).out.splitlines()
    assert [json.loads(line) for line in rest] == events[3:]


def test_following_says_when_nobody_drives_the_run_any_more(place: Path) -> None:
    with (
        detached(place, "waiting.yaml") as process,
        started("events", "r", "--follow", cwd=place) as follower,
    ):
        killed(place, process)
        told = follower.end()
    assert told.code == 0
    assert told.lines == ["interrupted: nobody drives it any more (nightwarden resume r)"]


def test_ctrl_c_ends_the_following_and_not_the_run(place: Path) -> None:
    with (
        detached(place, "waiting.yaml"),
        started("events", "r", "--follow", cwd=place) as follower,
    ):
        follower.wait_for_out("started")
        follower.send(signal.SIGINT)
        told = follower.end()
        assert (told.code, told.lines) == (130, ["no longer following; run r goes on"])
        assert listed(place, "r")["owner_alive"]


def test_following_ends_when_nobody_reads_it_any_more(place: Path) -> None:
    with detached(place, "waiting.yaml"):
        follower = subprocess.Popen(
            [*COMMAND, "events", "r", "--follow"],
            cwd=place,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert follower.stdout is not None
        follower.stdout.readline()
        follower.stdout.close()
        let_go(place)  # there is more to tell now
        assert (follower.wait(60), follower.stderr.read() if follower.stderr else b"") == (0, b"")
        assert follower.stderr is not None
        follower.stderr.close()


def test_a_run_of_another_process_is_cancelled_with_a_reason(place: Path) -> None:
    with detached(place, "waiting.yaml"):
        done = nightwarden("cancel", "r", "--reason", "wrong night", cwd=place)
        assert (done.code, done.err) == (0, "")
        assert done.out == (
            "run r is told to stop; see its end with `nightwarden events r --follow`\n"
        )
        told = nightwarden("events", "r", "--follow", cwd=place)
    assert "── cancelled: wrong night" in told.out.splitlines()[-1]
    assert listed(place, "r")["status"] == "cancelled"
    again = nightwarden("cancel", "r", cwd=place)
    assert (again.code, again.out) == (0, "run r is cancelled already: nobody drives it\n")


def test_a_cancelled_run_can_be_resumed(place: Path) -> None:
    with detached(place, "waiting.yaml"):
        nightwarden("cancel", "r", cwd=place)
        nightwarden("events", "r", "--follow", cwd=place)
    let_go(place)
    done = nightwarden("resume", "r", cwd=place)
    assert (done.code, done.out.splitlines()[0]) == (0, "── completed: 2/2 items")


def test_a_message_waits_for_whoever_drives_the_run_next(place: Path) -> None:
    with detached(place, "publishing.yaml") as process:
        alive = nightwarden("message", "r", "mind the gap", cwd=place)
        assert (alive.code, alive.out) == (0, "the message is left for run r\n")
        killed(place, process)
    dead = nightwarden("message", "r", "mind the gap", "--node", "count", cwd=place)
    assert dead.code == 0
    assert dead.out.endswith("; nobody drives the run now, so it waits for a resume\n")


# -- whole runs --


def test_runs_says_when_and_how_much_with_headings_on_a_terminal(place: Path) -> None:
    run_once(place, "r")
    piped = nightwarden("runs", cwd=place).out
    assert re.fullmatch(
        r"r  waiting  20\d\d-\d\d-\d\d \d\d:\d\d  \d+  completed: 2/2 items\n", piped
    )
    shown = on_terminal("runs", cwd=place).lines
    assert shown[0].split() == ["RUN", "WORKFLOW", "STARTED", "EVENTS", "STATE"]
    assert shown[1].index("waiting") == shown[0].index("WORKFLOW")
    assert shown[1].index("completed") == shown[0].index("STATE")


def test_commands_that_are_shown_find_the_run_where_it_is_kept(place: Path) -> None:
    let_go(place)
    run = ("run", "waiting.yaml", "--trust", "--store", "kept")
    done = nightwarden(*run, "--run-id", "r", cwd=place)
    assert "   report    nightwarden report r --store kept" in done.out.splitlines()
    apart = nightwarden(*run, "--run-id", "s", "--detach", cwd=place)
    follow = "   follow    nightwarden events s --follow --store kept"
    assert follow in apart.out.splitlines()
    assert nightwarden(*follow.split()[2:], cwd=place).code == 0


def test_an_exported_run_is_the_same_elsewhere(place: Path) -> None:
    run_once(place, "r", "long.yaml")
    assert nightwarden("runs", "export", "r", "r.zip", cwd=place).out == "put run r into r.zip\n"
    there = ("--store", "elsewhere")
    taken = nightwarden("runs", "import", "r.zip", *there, cwd=place)
    assert re.fullmatch(r"took in run r of one \(\d+ events\)\n", taken.out)
    here = json.loads(nightwarden("verify", "r", "--json", cwd=place).out)
    assert here["whole"]
    assert json.loads(nightwarden("verify", "r", "--json", *there, cwd=place).out) == here
    shown = [nightwarden("show", "r", "--json", *where, cwd=place).out for where in ((), there)]
    assert shown[0] == shown[1]


def test_options_of_the_group_hold_for_what_is_below_it(place: Path) -> None:
    let_go(place)
    arguments = ("run", "waiting.yaml", "--trust", "--run-id", "r", "--store", "kept")
    nightwarden(*arguments, cwd=place)
    done = nightwarden("runs", "--store", "kept", "delete", "r", cwd=place)
    assert re.fullmatch(r"deleted run r \(\d+ events\)\n", done.out)
    assert nightwarden("runs", "--store", "kept", cwd=place).out == (
        "no run is recorded in kept/nightwarden.db\n"
    )


def test_a_run_that_goes_on_is_not_deleted(place: Path) -> None:
    with detached(place, "waiting.yaml"):
        done = nightwarden("runs", "delete", "r", cwd=place)
        assert done.code == 2
        assert "run r is driven by process" in done.err
        assert listed(place, "r")["owner_alive"]


def test_prune_keeps_the_last_ones_and_what_can_be_resumed(place: Path) -> None:
    nightwarden("run", "pause.yaml", "--trust", "--run-id", "asleep", cwd=place)
    for run_id in ("r1", "r2", "r3"):
        run_once(place, run_id)
    tried = nightwarden("runs", "prune", "--keep-last", "1", "--dry-run", cwd=place)
    assert tried.out.splitlines() == ["would delete run r1", "would delete run r2"]
    done = nightwarden("runs", "prune", "--keep-last", "1", cwd=place)
    assert done.out.splitlines() == ["deleted run r1", "deleted run r2"]
    with open_store(place / ".nightwarden") as store:
        assert store.run_ids() == ["asleep", "r3"]
    assert nightwarden("runs", "prune", "--keep-days", "1", cwd=place).out == "no run has to go\n"


def test_a_setting_lets_old_runs_go_when_one_has_ended(place: Path) -> None:
    (place / "nightwarden.toml").write_text("[store]\nkeep_last = 1\n", encoding="utf-8")
    run_once(place, "r1")
    done = run_once(place, "r2")
    assert done.code == 0
    assert done.lines[-1] == "   1 old run deleted (store.keep_days, store.keep_last)"
    with open_store(place / ".nightwarden") as store:
        assert store.run_ids() == ["r2"]


def test_large_values_go_where_the_setting_says(place: Path) -> None:
    (place / "nightwarden.toml").write_text('[store]\nblobs = "large"\n', encoding="utf-8")
    run_once(place, "r", "long.yaml")
    assert [path for path in (place / "large").rglob("*") if path.is_file()]
    assert not (place / ".nightwarden" / "blobs").exists()
    assert nightwarden("verify", "r", cwd=place).code == 0


def test_verify_names_a_large_value_that_is_damaged(place: Path) -> None:
    run_once(place, "r", "long.yaml")
    whole = nightwarden("verify", "r", cwd=place)
    assert whole.code == 0
    assert re.fullmatch(r"run r is whole: \d+ events, hash [0-9a-f]{64}\n", whole.out)
    (blob, *_) = [p for p in (place / ".nightwarden" / "blobs").rglob("*") if p.is_file()]
    blob.write_bytes(b"something else")
    done = nightwarden("verify", "r", cwd=place)
    assert (done.code, done.out) == (1, "")
    assert done.lines[0].startswith("run r is not whole: value ")


# -- what is wrong with the place --


def test_a_read_only_folder_can_be_looked_at_and_nothing_else(place: Path) -> None:
    run_once(place, "r")
    for path in [*(place / ".nightwarden").rglob("*"), place / ".nightwarden"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    setpriv = shutil.which("setpriv")
    if os.getuid() == 0 and setpriv is None:
        pytest.skip("nothing stops the superuser here")
    mortal = [str(setpriv), "--bounding-set=-dac_override"] if os.getuid() == 0 else []
    try:
        looked = nightwarden("verify", "r", cwd=place, before=mortal)
        resumed = nightwarden("resume", "r", "--from", "wait", cwd=place, before=mortal)
        deleted = nightwarden("runs", "delete", "r", cwd=place, before=mortal)
        apart = ("--detach", "--run-id", "s")
        begun = nightwarden("run", "waiting.yaml", "--trust", *apart, cwd=place, before=mortal)
    finally:
        for path in [place / ".nightwarden", *(place / ".nightwarden").rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert looked.code == 0
    for done in (resumed, deleted):
        assert (done.code, len(done.lines)) == (2, 1), done
        assert "nightwarden.db cannot be written" in done.err
        assert "make it writable" in done.err
    assert (begun.code, len(begun.lines)) == (2, 1), begun
    assert ".nightwarden" in begun.err
    assert [event["type"] for event in events_of(place / ".nightwarden")][-1] == "run_completed"


def test_a_locked_database_is_waited_for_then_named(place: Path) -> None:
    run_once(place, "r")
    file = place / ".nightwarden" / "nightwarden.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = nightwarden("resume", "r", "--from", "wait", cwd=place)
    assert (done.code, len(done.lines)) == (2, 1)
    assert "nightwarden.db is locked by another program; close what has it open" in done.err


# -- PostgreSQL --


def test_all_of_it_works_with_a_server_as_well(place: Path, postgres_url: str) -> None:
    (place / "nightwarden.toml").write_text(f'[store]\nurl = "{postgres_url}"\n', encoding="utf-8")
    with detached(place, "waiting.yaml") as process:
        busy = nightwarden("resume", "r", cwd=place)
        assert f"run r is driven by process {process}" in busy.err
        with started("events", "r", "--follow", cwd=place) as follower:
            told = nightwarden("cancel", "r", "--reason", "wrong night", cwd=place)
            assert told.code == 0
            assert "── cancelled: wrong night" in follower.end().out.splitlines()[-1]
    let_go(place)
    done = nightwarden("resume", "r", cwd=place)
    assert (done.code, done.out.splitlines()[0]) == (0, "── completed: 2/2 items")
    assert nightwarden("verify", "r", cwd=place).code == 0
    nightwarden("runs", "export", "r", "r.zip", cwd=place)
    assert nightwarden("runs", "delete", "r", cwd=place).code == 0
    assert nightwarden("runs", "import", "r.zip", cwd=place).code == 0
    assert listed(place, "r")["headline"] == "completed: 2/2 items"
    assert not (place / ".nightwarden" / "nightwarden.db").exists()


# -- completion --


def test_ids_of_runs_are_completed_the_latest_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_once(place, "r1")
    run_once(place, "r2")
    monkeypatch.chdir(place)
    ctx = typer.Context(get_command(typer.Typer(callback=lambda: None)))
    assert run_ids(ctx, "") == ["r2", "r1", "last"]
    assert run_ids(ctx, "r") == ["r2", "r1"]
    ctx.params["store"] = "nowhere"
    assert run_ids(ctx, "r") == []
    assert not (place / "nowhere").exists()
