"""What the tests of steered runs share: a step that works like an agent, and workflows with it.

The step takes turns: it says something, drains its mailbox, and goes on when it was told to. The
type is called `t.Agent`, so that it counts as one that reads messages.
"""

from __future__ import annotations

import asyncio

import nightwarden as nw

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
async def agent(ctx: nw.Context, turns: int = 4, turn_s: float = 10.0) -> list[str]:
    """Takes turns of some seconds; what it read is its output."""
    read: list[str] = []
    for turn in range(turns):
        ctx.log.info(f"turn {turn}")
        await asyncio.sleep(turn_s)
        notes = ctx.mailbox.take()
        read += [note.text for note in notes]
        ctx.mailbox.stepped() if notes else None
    return read
