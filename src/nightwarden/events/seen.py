"""What somebody who watches every step is told: inputs and outputs, never part of a record.

    began      its inputs            returned   its outputs          failed     what went wrong
    put_out    an item of it         suspended  what it waits for    halted     it had to end

Values are masked and cut where they are taken, before anybody sees them.

Read next: `runtime/watching.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from nightwarden.lineage import Lineage


class Moment(StrEnum):
    """Where an invocation stands."""

    BEGAN = "began"
    PUT_OUT = "put_out"
    RETURNED = "returned"
    FAILED = "failed"
    SUSPENDED = "suspended"
    HALTED = "halted"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of one invocation.

    `values` are inputs by slot when it began, later outputs by slot, as JSON data. A slot that
    nothing came to is `{"$absent": true}`. `detail` is one line: an error, a reason. `took_s` is
    the time since it began, known where it returned.
    """

    moment: Moment
    node_id: str
    lineage: Lineage = ()
    attempt: int = 1
    values: Mapping[str, object] = {}
    detail: str = ""
    took_s: float | None = None
