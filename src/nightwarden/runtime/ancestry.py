"""Which of a step's outputs a failing item descends from, and which part of them.

    S ──▶ … ──▶ T            the whole value of the slot that leads to T
    S ──▶ [*] ──▶ … ──▶ T    the one element of S's list that the item of T came from
    [*] ──▶ … ──▶ T          the one frame
    S ──▶ … ──▶ [*] ──▶ T    nothing: what leads to a fan-out through other steps holds all items

A fan-out whose items T's scope counts is a border: beyond it values hold T's siblings. What is
gathered before T, deeper than T, belongs to T whole.

Pure. Read next: `evidence.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nightwarden.kernel.plan import NodePlan, OutPlan, Plan
from nightwarden.lineage import Lineage


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a list that is fanned out: `place` in it, below `path` in the slot's value."""

    place: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What of a step's outputs may be read for one item.

    `whole` are slots, `elements` slots of which one element is; `frame` is the number of the one
    frame of a fan-out, None for what is no such fan-out.
    """

    whole: frozenset[str] = frozenset()
    elements: Mapping[str, Element] = field(default_factory=dict)
    frame: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing may be read."""
        return not self.whole and not self.elements and self.frame is None


class Ancestry:
    """What one failing invocation descends from."""

    def __init__(self, plan: Plan, target: NodePlan, lineage: Lineage) -> None:
        self._plan = plan
        self._target = target
        self._lineage = lineage
        scope = plan.roots[target.root].scope
        self._borders = {
            node.index: depth
            for node in plan.nodes
            for depth, root in enumerate(scope)
            if node.own_root == root and node.index != target.index
        }
        self._before = self._upstream()

    def share(self, source: NodePlan) -> Share:
        """What of this step's outputs the item descends from."""
        if source.index in self._borders:
            near = source.index in self._before
            return Share(frame=self._place(source.index)) if near else Share()
        return self._of((*source.outs, *source.ends))

    def share_of_inputs(self) -> Share:
        """What of the run's own inputs the item descends from."""
        return self._of(self._plan.inputs.values())

    def is_its_own(self, lineage: Lineage) -> bool:
        """Whether an invocation upstream is on this item's way: above it, or gathered into it."""
        shared = min(len(lineage), len(self._lineage))
        return lineage[:shared] == self._lineage[:shared]

    def feeding(self, border: NodePlan) -> Iterator[tuple[NodePlan | None, Share]]:
        """Who puts the list out that a border fans out, and the item's element of it.

        None stands for the run's own inputs.
        """
        for node, out in self._outs():
            if any(edge.target == border.index for edge in out.edges):
                yield node, Share(elements={out.base: self._element(out, border.index)})

    def _of(self, outs: Iterable[OutPlan]) -> Share:
        whole: set[str] = set()
        elements: dict[str, Element] = {}
        for out in outs:
            for edge in out.edges:
                if edge.target in self._borders:
                    if edge.target in self._before and self._is_list(edge.target):
                        elements[out.base] = self._element(out, edge.target)
                elif edge.target == self._target.index or edge.target in self._before:
                    whole.add(out.base)
        parts = {name: part for name, part in elements.items() if name not in whole}
        return Share(whole=frozenset(whole), elements=parts)

    def _element(self, out: OutPlan, border: int) -> Element:
        path = tuple(out.name.split(".")[1:]) if out.projected else ()
        return Element(self._place(border), path)

    def _place(self, border: int) -> int:
        return self._lineage[self._borders[border]]

    def _is_list(self, border: int) -> bool:
        return self._plan.nodes[border].type.engine_owned

    def _upstream(self) -> set[int]:
        """The steps that lead to the target without crossing a border, and the borders met."""
        sources: dict[int, set[int]] = {}
        for node, out in self._outs():
            for edge in out.edges:
                if node is not None:
                    sources.setdefault(edge.target, set()).add(node.index)
        met: set[int] = set()
        todo = [self._target.index]
        while todo:
            for source in sources.get(todo.pop(), ()):
                if source not in met and source != self._target.index:
                    met.add(source)
                    todo += [] if source in self._borders else [source]
        return met

    def _outs(self) -> Iterator[tuple[NodePlan | None, OutPlan]]:
        for out in self._plan.inputs.values():
            yield None, out
        for node in self._plan.nodes:
            for out in (*node.outs, *node.ends):
                yield node, out
