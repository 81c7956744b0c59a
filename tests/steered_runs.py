"""What the tests of steered runs share: a step that works like an agent, and workflows with it.

The step takes turns: it says something, waits, and drains its mailbox. Its type is called
`t.Agent`, so that it counts as one that reads messages.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import nightwarden as nw
from nightwarden import Context
from nightwarden.library import load
from nightwarden.session import Session
from nightwarden.spec.workflow import Workflow
from nightwarden.testing import InlineExecutor

AGENT = """
version: 1
name: steered
nodes:
  fix: {type: t.Agent, turns: 4}
"""
WATCHED = (
    AGENT
    + """
prompts: {calm: Stay calm.}
supervisors:
  dog:
    watches: [fix]
    system: calm
    cooldown: 5s
    boundaries: false
    monitors: ["event_type=log,text_contains=turn 1"]
"""
)


@nw.node(type="t.Agent", retry_safe=True)
async def agent(ctx: Context, turns: int = 4, turn_s: float = 10.0) -> list[str]:
    """Takes turns of some seconds; what it has read is its output."""
    read: list[str] = []
    for turn in range(turns):
        ctx.log.info(f"turn {turn}")
        await asyncio.sleep(turn_s)
        ctx.mailbox.stepped()
        read += [note.text for note in ctx.mailbox.take()]
    return read


def workflow(folder: Path, text: str = WATCHED) -> Workflow:
    path = folder / "steered.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, nodes=[agent])


def session(folder: Path, text: str = WATCHED, **options: object) -> Session:
    return Session(workflow(folder, text), executor=InlineExecutor(), **options)  # type: ignore[arg-type]
