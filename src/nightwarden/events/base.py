"""What every event has: format version, sequence number, time, and what it is about.

`seq` counts from 1 without gaps and is given by the run's one writer, together with `at`
(UTC, milliseconds). Readers tolerate unknown types and fields; old versions load for ever.

Read next: `run.py`, `invocation.py`, `supervision.py`.
"""

from __future__ import annotations

from functools import partial

import msgspec

from nightwarden.lineage import Lineage

FORMAT = 1


class Event(msgspec.Struct, kw_only=True, tag_field="type"):
    """One published fact; empty fields do not apply.

    `v` is the version of the format, `seq` the event's number in its run, from 1 without gaps.
    `at` is when, in UTC with milliseconds. `node_id` is the step it is about, `lineage` the item
    (0-based), `attempt` counts from 1. `caused_by` names the escalations it follows from.
    """

    v: int = msgspec.field(default_factory=partial(int, FORMAT))
    seq: int = 0
    at: str = ""
    node_id: str = ""
    lineage: Lineage = ()
    attempt: int = 0
    caused_by: tuple[str, ...] = ()
