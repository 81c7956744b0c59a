"""What a workflow built in Python is wired with.

A handle stands for what a node puts out, as `$page.url` does in a file; `each()` is `[*]` and
`collect()` is `[]`. It belongs to the workflow that made it.

Read next: `build.py`, `refs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nightwarden.spec.refs import Given, Reference, Written
from nightwarden.spec.workflow import INPUTS, SecretRef

_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Handle:
    """What a node, or a run input, puts out: to be given to a slot of another node."""

    reference: Reference
    owner: object

    def slot(self, name: str) -> Handle:
        """One output slot of the node, or a field of the record it puts out."""
        if self.reference.source == INPUTS or self.reference.fans or self.reference.closes:
            raise ValueError(f"{self.reference} has no slots; take the slot of a node first")
        return replace(self, reference=replace(self.reference, slot=name))

    def each(self) -> Handle:
        """Fan the list out: what takes it runs once an item. `[*]` in a file."""
        if self.reference.closes:
            raise ValueError(f"{self.reference} is already collected; each() would undo that")
        return replace(self, reference=replace(self.reference, fans=self.reference.fans + 1))

    def collect(self) -> Handle:
        """Gather the items of the innermost fan-out into a list. `[]` in a file."""
        if self.reference.fans:
            raise ValueError(
                f"{self.reference} has only been fanned out; collect() would undo that"
            )
        return replace(self, reference=replace(self.reference, closes=self.reference.closes + 1))


def written(value: object, owner: object) -> Written:
    """What a value given to a slot means: wires, a secret, or itself. Raises `ValueError`."""
    if isinstance(value, SecretRef):
        return value
    if isinstance(value, Handle):
        return (_own(value, owner),)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Handle) for v in value):
        if not all(isinstance(v, Handle) for v in value):
            raise ValueError("a list holds either handles or values, not both")
        return tuple(_own(handle, owner) for handle in value)
    if _mentions_handle(value, 0):
        raise ValueError("a handle stands inside another value, where nothing can be wired")
    return Given(value)


def _own(handle: Handle, owner: object) -> Reference:
    if handle.owner is not owner:
        raise ValueError(f"{handle.reference} belongs to another workflow")
    return handle.reference


def _mentions_handle(value: object, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(value, Mapping):
        return any(_mentions_handle(v, depth + 1) for v in value.values())
    if isinstance(value, (list, tuple, set)):
        return any(_mentions_handle(v, depth + 1) for v in value)
    return isinstance(value, (Handle, SecretRef))
