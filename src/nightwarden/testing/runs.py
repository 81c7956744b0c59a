"""A whole run on virtual time, with everything it said.

    played = play(Session(workflow, supervise=…, executor=InlineExecutor()), seed=7,
                  at=[(1.0, session.cancel)])
    played.result.status, played.events, played.ended_s

An hour of sleeping steps costs nothing, a lost wake-up is a `Deadlock` at once, and a seed
shuffles the order of whatever is ready together.

Read next: `loop.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from nightwarden.events import Event
from nightwarden.own_loop import run_on_own_loop
from nightwarden.result import RunResult
from nightwarden.session import Session
from nightwarden.testing.loop import VirtualLoop

E = TypeVar("E", bound=Event)

Action = tuple[float, Callable[[], object]]
"""What to call, after how many virtual seconds."""


@dataclass(frozen=True, slots=True)
class Played:
    """A finished run: its result, its events, when it ended, and the tasks it left open."""

    result: RunResult
    events: tuple[Event, ...]
    ended_s: float
    left_open: tuple[str, ...]

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def types(self) -> list[str]:
        """The tags of all events, in order."""
        return [str(event.__struct_config__.tag) for event in self.events]


def play(session: Session, *, seed: int | None = None, at: Iterable[Action] = ()) -> Played:
    """Run a session to its end on a `VirtualLoop`; `at` says what is called when.

    Raises `Deadlock` when nothing can ever happen again.
    """
    events: list[Event] = []
    session.subscribe(events.append)

    async def main() -> Played:
        loop = asyncio.get_running_loop()
        for when, action in at:
            loop.call_at(when, action)
        result = await session.run()
        mine = asyncio.current_task()
        left = tuple(task.get_name() for task in asyncio.all_tasks() if task is not mine)
        return Played(result, tuple(events), loop.time(), left)

    return run_on_own_loop(
        main(), left_behind=lambda: session.abandoned, make_loop=lambda: VirtualLoop(seed)
    )
