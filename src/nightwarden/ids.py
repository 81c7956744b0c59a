"""Names of things: the string types every layer shares.

A node id is what the author wrote, a run id is made once when a run is opened
and sorts by time.

Read next: `lineage.py`.
"""

from __future__ import annotations

from typing import NewType

NodeId = NewType("NodeId", str)
SlotName = NewType("SlotName", str)
RunId = NewType("RunId", str)
EscalationId = NewType("EscalationId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(stamp: str, random_bits: int) -> RunId:
    """A run id such as `20261130-185103-k3f9q`: sorts by time, easy to type.

    `stamp` is the start time as `YYYYMMDD-HHMMSS` in UTC; `random_bits` supplies 25 bits.
    """
    tail = "".join(_ALPHABET[(random_bits >> (5 * i)) & 31] for i in range(5))
    return RunId(f"{stamp}-{tail}")
