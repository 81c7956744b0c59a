"""Columns for a picture of a graph, and the ways of its edges past what stands between.

An edge that spans several columns gets a *bend* in each one it crosses: a place of its own, so
that no edge is drawn behind a node. Nodes and bends are then ordered so that few edges cross
(the barycentre method: sweeps to and fro, each placing a column near its neighbour).

Read next: `svg.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nightwarden.spec.layout import Layout
from nightwarden.spec.workflow import INPUTS, WITHIN, EdgeSpec, Workflow

_SWEEPS = 4
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Routes:
    """Names by column, bends among them, and the bends of each pair of names with an edge."""

    columns: Sequence[Sequence[str]]
    bends: Mapping[Pair, Sequence[str]]


def source_name(edge: EdgeSpec) -> str:
    """What an edge comes from in a picture: a node, or one of the run's inputs."""
    return f"{INPUTS}.{edge.source_slot}" if edge.source == INPUTS else edge.source


def routes(workflow: Workflow, layout: Layout) -> Routes:
    """Place everything that is drawn."""
    first = [f"{INPUTS}.{spec.name}" for spec in workflow.inputs]
    columns = [list(column) for column in (first, *layout.columns) if column]
    column_of = {name: i for i, column in enumerate(columns) for name in column}
    bends: dict[Pair, list[str]] = {}
    near: dict[str, list[str]] = defaultdict(list)
    for pair in dict.fromkeys((source_name(e), e.target) for e in workflow.edges):
        if pair[0] in column_of and pair[1] in column_of:
            bends[pair] = list(_bend(pair, column_of, columns))
            _connect([pair[0], *bends[pair], pair[1]], near)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        _sweep(columns if forward else columns[::-1], near)
    return Routes(columns, bends)


def _bend(pair: Pair, column_of: Mapping[str, int], columns: Sequence[list[str]]) -> Iterator[str]:
    for column in range(column_of[pair[0]] + 1, column_of[pair[1]]):
        name = f"{pair[0]} → {pair[1]} @{column}"
        columns[column].append(name)
        yield name


def _connect(way: Sequence[str], near: Mapping[str, list[str]]) -> None:
    for one, other in pairwise(way):
        near[one].append(other)
        near[other].append(one)


def _sweep(columns: Sequence[list[str]], near: Mapping[str, Sequence[str]]) -> None:
    """Order each column by where its neighbours in the one before stand."""
    place: dict[str, float] = {}
    for column in columns:
        wanted: dict[str, float] = {}
        for i, name in enumerate(column):
            found = [place[other] for other in near.get(name, ()) if other in place]
            wanted[name] = sum(found) / len(found) if found else i / len(column)
        _sort(column, wanted)
        place = {name: i / len(column) for i, name in enumerate(column)}


def _sort(column: list[str], wanted: Mapping[str, float]) -> None:
    """Sort by where each wants to stand; the steps of a subworkflow stay together."""
    together: dict[str, list[float]] = defaultdict(list)
    for name in column:
        for around in subworkflows(name):
            together[around].append(wanted[name])
    means = {around: sum(found) / len(found) for around, found in together.items()}

    def place(name: str) -> list[tuple[float, str]]:
        around = [(means[s], s) for s in subworkflows(name)]
        return [*around, (wanted[name], "")]

    column.sort(key=place)


def subworkflows(name: str) -> list[str]:
    """The subworkflows something that is drawn lies in, outermost first."""
    if "→" in name:
        return []
    parts = name.split(WITHIN)[:-1]
    return [WITHIN.join(parts[: i + 1]) for i in range(len(parts))]
