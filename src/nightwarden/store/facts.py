"""What the list of runs knows of a run, drawn from its few events about the run as a whole.

They are told apart by how they begin: `events.encode` writes the type first.

Read next: `journal.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from nightwarden.events.run import ENDS

ABOUT_RUN: Final = b'{"type":"run_'

Facts = Mapping[str, str | int]
"""Columns of the table `runs` and their new values."""


def facts_in(lines: Iterable[bytes]) -> Facts:
    """What these events change in the list of runs."""
    found: dict[str, str | int] = {}
    for line in lines:
        if line.startswith(ABOUT_RUN):
            found.update(_facts(_decoded(line)))
    return found


def _facts(event: Mapping[str, Any]) -> Facts:
    match event.get("type"):
        case "run_started":
            return {"workflow": _text(event, "workflow"), "started_at": _text(event, "at")}
        case "run_resumed":
            return {"status": "", "ended_at": "", "headline": ""}
        case str(tag) if tag in ENDS:
            ledger = event.get("ledger")
            told = ledger if isinstance(ledger, dict) else {}
            return {
                "status": ENDS[tag],
                "ended_at": _text(event, "at"),
                "supervised": int(bool(event.get("supervised"))),
                "headline": _text(told, "headline") or _text(event, "reason"),
            }
    return {}


def _decoded(line: bytes) -> Mapping[str, Any]:
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}  # a reader will name it; the list of runs goes without
    return event if isinstance(event, dict) else {}


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name, "")
    return value if isinstance(value, str) else ""
