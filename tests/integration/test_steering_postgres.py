"""`supervise --run-id` over a run recorded in a real PostgreSQL server (issue 6; surfaces.md)."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from attached_runs import ADVICE, RED, SILENCE, begin, has, record, settled, until
from commands import nightwarden, started
from model_server import ModelServer

from nightwarden.store.opening import open_store

EVENTS = 20_000
WATCH = ("supervise", "--run-id", "r1", "--node", "fix", "--name", "cat")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that has a word to say, and then none."""
    with ModelServer([ADVICE, SILENCE]) as made:
        yield made


def settled_there(folder: Path, server: ModelServer, url: str) -> dict[str, str]:
    """A folder whose runs are recorded at that address."""
    env = settled(folder, server.base_url)
    with (folder / "nightwarden.toml").open("a", encoding="utf-8") as file:
        file.write(f'[store]\nurl = "{url}"\n')
    return env


def test_a_word_is_queued_delivered_and_consumed(
    tmp_path: Path, server: ModelServer, postgres_url: str
) -> None:
    env = settled_there(tmp_path, server, postgres_url)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settled(elsewhere, server.base_url)
    with begin(tmp_path, env, place=postgres_url) as run:
        done = nightwarden(*WATCH, *RED, "--store", postgres_url, cwd=elsewhere, env=env)
        ended = run.end()
    assert (done.code, ended.code) == (0, 0), done.err + ended.err
    events = record(tmp_path, postgres_url)
    fates = [e for e in events if e["type"].startswith("user_message")]
    assert [e["type"] for e in fates] == [
        "user_message_queued",
        "user_message_delivered",
        "user_message_consumed",
    ]
    assert (fates[0]["author"], fates[0]["node_id"]) == ("cat", "fix")
    assert fates[0]["text"] == "[supervisor cat] Look at the log."
    (looked,) = [e for e in events if e["type"] == "steering_evaluated"]
    assert (looked["outcome"], looked["message_id"]) == ("intervened", fates[0]["message_id"])
    assert looked["seq"] < events[-1]["seq"], "what it did is on the run's own record"
    assert events[-1]["type"] == "run_completed"
    assert events[-1]["cost_micro_usd"] == 0, "its money is not the run's"
    assert "── run r1 is over: 1 look" in done.out


def test_ctrl_c_lets_go_and_the_run_goes_on(
    tmp_path: Path, server: ModelServer, postgres_url: str
) -> None:
    """Scenario 78."""
    env = settled_there(tmp_path, server, postgres_url)
    with begin(tmp_path, env, place=postgres_url) as run:
        with started(*WATCH, "--no-boundaries", cwd=tmp_path, env=env) as watch:
            until(lambda: has(tmp_path, "steering_armed", postgres_url), "it to be armed")
            watch.send(signal.SIGINT)
            done = watch.end()
        assert (done.code, done.out.splitlines()[-1]) == (
            0,
            "── let go of run r1, which goes on: 0 looks",
        )
        assert nightwarden("message", "r1", "That will do.", cwd=tmp_path, env=env).code == 0
        ended = run.end()
    assert ended.code == 0, ended.err
    events = record(tmp_path, postgres_url)
    assert events[-1]["type"] == "run_completed"
    assert [e["author"] for e in events if e["type"] == "user_message_consumed"] == ["operator"]
    assert server.requests == []


def test_two_of_one_name_are_refused_wherever_they_are(
    tmp_path: Path, server: ModelServer, postgres_url: str
) -> None:
    """Issue 6, bad input: two supervisors of one name, who share nothing but the database."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settled_there(elsewhere, server, postgres_url)
    env = settled_there(tmp_path, server, postgres_url)
    with (
        begin(tmp_path, env, place=postgres_url) as run,
        started(*WATCH, "--no-boundaries", cwd=tmp_path, env=env) as watch,
    ):
        until(lambda: has(tmp_path, "steering_armed", postgres_url), "it to be armed")
        twice = nightwarden(*WATCH, cwd=elsewhere, env=env)
        nightwarden("cancel", "r1", cwd=tmp_path, env=env)
        run.end()
        assert watch.end().code == 0
    assert twice.code == 2
    assert "a supervisor 'cat' watches this run already" in twice.err


def test_it_is_armed_soon_over_a_run_of_many_events(
    tmp_path: Path, server: ModelServer, postgres_url: str
) -> None:
    """Issue 6, How well: attach to a run of many events; measured from start to armed."""
    env = settled_there(tmp_path, server, postgres_url)
    definition = {"nodes": [{"id": "fix", "type": "agent.Agent", "properties": {}}], "edges": []}
    with open_store(postgres_url) as store:
        writer = store.create("r1")
        first = {"type": "run_started", "workflow": "w", "definition": definition}
        said = {"type": "assistant_text", "node_id": "fix", "text": "It is red."}
        for seq, event in enumerate(
            [first, {"type": "node_started", "node_id": "fix"}, *[said] * EVENTS], start=1
        ):
            writer.append(json.dumps({**event, "seq": seq}).encode())
        writer.barrier()
        begun = time.monotonic()
        with started(*WATCH, *RED, cwd=tmp_path, env=env) as watch:
            stop = threading.Timer(60, lambda: watch.send(signal.SIGKILL))
            stop.start()
            watch.wait_for_out("cat watches fix")
            took = time.monotonic() - begun
            stop.cancel()
            watch.send(signal.SIGINT)
            watch.end()
        writer.close()
    assert took < 15, "most of it is starting a process on a loaded machine"
    assert server.requests == [], "history wakes nobody, however much of it there is"
