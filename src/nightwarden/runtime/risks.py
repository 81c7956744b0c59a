"""What a resumed run may not simply run again, said before anything starts.

Read next: `past.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightwarden.lineage import Lineage, show
from nightwarden.runtime.past import Past, Standing
from nightwarden.spec.catalog import NodeType


@dataclass(frozen=True, slots=True)
class Risk:
    """An invocation that failed or was cut off, and why it may not be run again."""

    node_id: str
    lineage: Lineage
    why: str

    def __str__(self) -> str:
        """`publish[3]`, as options name it."""
        return f"{self.node_id}[{show(self.lineage)}]" if self.lineage else self.node_id


def risks(past: Past, types: Mapping[str, NodeType]) -> Sequence[Risk]:
    """Every such invocation on record, by node and item."""
    keys = {*past.begun, *past.broken, *past.frames, *past.touched}
    found = []
    for key in sorted(keys):
        node = types.get(key[0])
        if node is None or (key[0], key[1], key[2] + 1) in keys:
            continue
        standing = past.standing(node, key)
        if standing is Standing.CUT_OFF:
            found.append(Risk(key[0], key[1], _cut_off(past, key)))
        elif standing is Standing.FAILED:
            broken = past.broken[key]
            spent = " after it had spent money" if broken.cost_micro_usd else ""
            made = " after it had written a file" if broken.assets else ""
            found.append(Risk(key[0], key[1], f"failed{spent or made}: {broken.detail}"))
    return found


def _cut_off(past: Past, key: tuple[str, Lineage, int]) -> str:
    touched = past.touched.get(key)
    also = f"; {touched}" if touched else ""
    return f"was cut off; whether it took effect is not known{also}"
