"""A run with an agent in it, and a model on loopback for those who watch it from elsewhere.

The agent takes turns until somebody says a word; `begin` starts it in a process of its own.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from commands import Running, started
from model_server import Call

from nightwarden.store import open_store

STEPS = '''
import asyncio

import nightwarden as nw
from nightwarden import Context


@nw.node(type="t.Agent", retry_safe=True)
async def agent(ctx: Context, turns: int = 400) -> list[str]:
    """Takes turns until somebody says a word."""
    read = []
    for turn in range(turns):
        ctx.log.info(f"turn {turn} is red")
        await asyncio.sleep(0.1)
        ctx.mailbox.stepped()
        if read:
            break
        read += [note.text for note in ctx.mailbox.take()]
    return read
'''
FLOW = """
version: 1
name: attached
nodes:
  fix: {type: t.Agent}
"""
DOG = """
supervisors:
  dog: {watches: [fix], boundaries: false, cooldown: 1s, monitors: ["event_type=log"]}
"""
RED = ("--monitor", "event_type=log,text_contains=red", "--no-boundaries", "--cooldown", "1")
MODEL = "openai-chat:gpt-5"
ADVICE = Call("advise", {"intervene": True, "message": "Look at the log.", "reason": "red"})
SILENCE = Call("advise", {"intervene": False, "reason": "all is well"})
PATIENCE_S = 30.0


def settled(folder: Path, base_url: str) -> dict[str, str]:
    """A folder with a workflow, and a model at this address; the environment to run it in."""
    (folder / "steps.py").write_text(STEPS, encoding="utf-8")
    (folder / "w.yaml").write_text(FLOW, encoding="utf-8")
    (folder / "dog.yaml").write_text(FLOW + DOG, encoding="utf-8")
    (folder / "nightwarden.toml").write_text(
        f'[steering]\nmodel = "{MODEL}"\n[models."{MODEL}"]\n'
        f'base_url = "{base_url}/v1"\nprice_in = 3\nprice_out = 15\n',
        encoding="utf-8",
    )
    return {"OPENAI_API_KEY": "sk-test-0123456789"}


def record(folder: Path, place: str = "") -> list[dict[str, Any]]:
    """What is on record of the run `r1`, here or in the store at that address."""
    with open_store(place or folder / ".nightwarden") as store:
        return [dict(event) for event in store.read("r1")]


def until(found: Any, what: str) -> None:
    """Wait for something to be so; a test that waits in vain says what for."""
    end = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < end, f"in vain for {what}"
        time.sleep(0.05)


def has(folder: Path, kind: str, place: str = "") -> bool:
    """Whether an event of that type is on record."""
    try:
        return any(event["type"] == kind for event in record(folder, place))
    except Exception:
        return False


def begin(folder: Path, env: dict[str, str], flow: str = "w.yaml", place: str = "") -> Running:
    """Start the run `r1`, and wait until its agent is at work."""
    run = started("run", flow, "--nodes", "steps.py", "--run-id", "r1", cwd=folder, env=env)
    until(lambda: has(folder, "node_started", place), "the run to begin")
    return run
