"""Layers for a drawing in which the steps of a subworkflow stay together.

    layer 1   layer 2                    layer 3
    page      sub ┌ sub/a   sub/b ┐      row
                  └ layer 1  2    ┘

A subworkflow is placed as one thing, and has layers of its own inside. Where what is around it
both feeds it and is fed by it, there is no such place, and its steps are laid out one by one.

Read next: `layout.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nightwarden.spec.workflow import WITHIN, EdgeSpec


@dataclass(frozen=True, slots=True)
class Group:
    """The steps of a subworkflow, in layers."""

    id: str
    layers: Layers

    def members(self) -> Iterator[str]:
        """All ids inside."""
        for layer in self.layers:
            for unit in layer:
                yield from unit.members() if isinstance(unit, Group) else (unit,)


Layers = Sequence[Sequence[str | Group]]


def grouped(order: Sequence[str], incoming: Mapping[str, Sequence[EdgeSpec]]) -> Layers:
    """Ids in topological order, by layer: the longest way from a source."""
    return _layers(order, "", incoming)


def columns(layers: Layers) -> list[list[str]]:
    """The same without groups: a group takes as many columns as it has layers."""
    found: list[list[str]] = []
    for layer in layers:
        start = len(found)
        for unit in layer:
            inner = columns(unit.layers) if isinstance(unit, Group) else [[unit]]
            for i, column in enumerate(inner, start):
                found += [[]] if i == len(found) else []
                found[i] += column
    return found


def _layers(ids: Sequence[str], within: str, incoming: Mapping[str, Sequence[EdgeSpec]]) -> Layers:
    unit_of = {node_id: _unit(node_id, within) for node_id in ids}
    depths = _depths(ids, unit_of, incoming)
    if depths is None:
        unit_of = {node_id: node_id for node_id in ids}
        depths = _depths(ids, unit_of, incoming) or {}
    members: dict[str, list[str]] = {}
    for node_id in ids:
        members.setdefault(unit_of[node_id], []).append(node_id)
    layers: list[list[str | Group]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    for unit, inside in members.items():
        is_group = unit.endswith(WITHIN)
        drawn = Group(unit[:-1], _layers(inside, unit, incoming)) if is_group else unit
        layers[depths[unit]].append(drawn)
    return layers


def _unit(node_id: str, within: str) -> str:
    """What stands for a node at one level: itself, or `sub/` for what lies in a subworkflow."""
    first, slash, _ = node_id.removeprefix(within).partition(WITHIN)
    return within + first + slash


def _depths(
    ids: Sequence[str], unit_of: Mapping[str, str], incoming: Mapping[str, Sequence[EdgeSpec]]
) -> dict[str, int] | None:
    """How far each unit is from a source; None if units feed each other in a circle."""
    place = {node_id: i for i, node_id in enumerate(ids)}
    sources: dict[str, set[str]] = {unit: set() for unit in unit_of.values()}
    for node_id in ids:
        for edge in incoming.get(node_id, ()):
            if place.get(edge.source, len(place)) < place[node_id]:
                sources[unit_of[node_id]].add(unit_of[edge.source])
    depths: dict[str, int] = {}
    left = dict.fromkeys(sources)
    while left:
        ready = [unit for unit in left if sources[unit] - {unit} <= depths.keys()]
        if not ready:
            return None
        for unit in ready:
            depths[unit] = max((depths[s] + 1 for s in sources[unit] - {unit}), default=0)
            del left[unit]
    return depths
