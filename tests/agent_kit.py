"""What tests of agents share, whoever does the work: a run with one in it, and its mailbox.

Read next: `integration/test_agents.py`, `claude/claude_runs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer, Request

import nightwarden as nw
from nightwarden.events import Event
from nightwarden.events.render import render
from nightwarden.result import RunResult
from nightwarden.runtime.services import RunServices
from nightwarden.session import run_session

Hear = Callable[[Event, nw.Session], None]


@dataclass
class Ran:
    """A run with one agent in it, and what it said."""

    result: RunResult
    events: list[Event]
    requests: list[Request]
    folder: Path

    def told(self, *tags: str) -> list[str]:
        """The lines of the events of these types."""
        return [render(e) for e in self.events if e.__struct_config__.tag in tags]

    def types(self, *tags: str) -> list[str]:
        """The order in which events of these types came."""
        found = [str(e.__struct_config__.tag) for e in self.events]
        return [tag for tag in found if tag in tags]


def run_file(
    file: Path, server: ModelServer, *, folder: Path, hear: Hear, options: Mapping[str, Any] | None
) -> Ran:
    """Run a workflow whose models are at this server; `hear` gets every event."""
    session = nw.Session(nw.load(file), workdir=folder, **(options or {}))
    events: list[Event] = []
    session.subscribe(events.append)
    session.subscribe(lambda event: hear(event, session))
    result = run_session(session)
    return Ran(result, events, server.requests, folder)


class Box:
    """A mailbox a test fills."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.taken: list[str] = []
        self.stepped_after: list[int] = []

    def take(self) -> list[Any]:
        found, self.waiting = self.waiting, []
        self.taken += found
        return [type("Note", (), {"text": text})() for text in found]

    def stepped(self) -> None:
        self.stepped_after.append(len(self.taken))


def with_box(monkeypatch: pytest.MonkeyPatch) -> Box:
    """The mailbox of every step from now on."""
    box = Box()
    monkeypatch.setattr(RunServices, "mailbox", lambda self, node_id: box)
    return box
