"""The node types of a workflow that is built in Python: given by their code, or looked up.

A catalog that keeps code is given the code too, so that what was built can be run.

Read next: `build.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from nightwarden.spec.catalog import Catalog, NodeType
from nightwarden.spec.workflow import Workflow


@runtime_checkable
class Enrolling(Protocol):
    """A catalog that keeps the code of nodes too, so that what was built can be run."""

    def add(self, target: object) -> object:
        """Take a decorated function or class in."""
        ...


class Definition(Protocol):
    """A node type, and the decorated code it describes."""

    @property
    def type(self) -> NodeType:
        """The type."""
        ...

    @property
    def target(self) -> object:
        """The function or class."""
        ...


@runtime_checkable
class Keeping(Protocol):
    """A catalog that has kept the code of its nodes."""

    def definition(self, name: str) -> Definition | None:
        """A node type with its code."""
        ...


class Enrolled:
    """The node types of one workflow: those handed in, and those of the catalog behind it."""

    def __init__(self, catalog: Catalog | None) -> None:
        self._catalog = catalog
        self._own: dict[str, tuple[object, NodeType]] = {}

    def take(self, target: object, node_type: NodeType) -> bool:
        """Remember a node given by its code; False if another one has its name."""
        known = self._own.setdefault(node_type.name, (target, node_type))
        if known[0] is not target:
            return False
        keeper: object = self._catalog
        if isinstance(keeper, Enrolling):
            keeper.add(target)
        return True

    def adopt(self, inner: Workflow) -> Sequence[str]:
        """Take over the types of a workflow that was built; those another node has the name of."""
        clashes = []
        for name, node_id in {node.type: node.id for node in inner.nodes}.items():
            keeper: object = inner.catalog
            known = keeper.definition(name) if isinstance(keeper, Keeping) else None
            found = inner.types[node_id] if inner.catalog is None else inner.catalog.find(name)
            try:
                if known is not None and not self.take(known.target, known.type):
                    clashes.append(name)
                elif known is None and found is not None and self.find(name) is None:
                    self._own[name] = (found, found)
            except TypeError:  # the catalog behind has other code of this name
                clashes.append(name)
        return clashes

    def find(self, name: str) -> NodeType | None:
        """The type of that name; None where there is none."""
        if name in self._own:
            return self._own[name][1]
        return None if self._catalog is None else self._catalog.find(name)

    def names(self) -> Sequence[str]:
        """Every type there is, in order of the alphabet."""
        known = set(() if self._catalog is None else self._catalog.names())
        return sorted(known | set(self._own))
