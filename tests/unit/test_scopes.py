"""Static analysis: what lies under which fan-out (kernel.md §1, Scope)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from spec_nodes import loaded, rules

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import InputSlot, NodeType, OutputSlot, SlotKind
from nightwarden.spec.scopes import Analysis, analyse, edge_scope
from nightwarden.spec.workflow import EdgeSpec, NodeSpec, Workflow


def scopes(text: str) -> dict[str, Scope]:
    """The scope of every node of the author's own."""
    found = analyse(loaded(text)).scopes
    return {node_id: scope for node_id, scope in found.items() if "[" not in node_id}


def test_what_is_under_no_fan_out_has_the_runs_own_scope() -> None:
    text = "nodes:\n  a: {type: t.Row}\n  b: {type: t.Row, x: $a}\n"
    assert scopes(text) == {"a": (), "b": ()}


def test_a_fan_out_adds_itself_to_what_it_streams_but_not_to_itself() -> None:
    text = "nodes:\n  w: {type: t.Words, text: x}\n  a: {type: t.Row, x: $w}\n"
    assert scopes(text) == {"w": (), "a": ("w",)}


def test_a_diamond_under_one_fan_out_joins() -> None:
    text = """
nodes:
  w: {type: t.Words, text: x}
  a: {type: t.Shout, text: $w}
  b: {type: t.Shout, text: $w}
  c: {type: t.Row, a: $a, b: $b}
"""
    assert scopes(text)["c"] == ("w",)


def test_an_outer_value_is_broadcast_to_inner_items() -> None:
    text = """
nodes:
  outer: {type: t.Words, text: x}
  inner: {type: t.Words, text: $outer}
  both: {type: t.Row, a: $outer, b: $inner}
"""
    assert scopes(text)["both"] == ("outer", "inner")


def test_collecting_closes_the_innermost_root_only() -> None:
    text = """
nodes:
  outer: {type: t.Words, text: x}
  inner: {type: t.Words, text: $outer}
  album: {type: t.Album, titles: "$inner[]"}
  all: {type: t.Album, titles: "$album[]"}
"""
    assert scopes(text) == {"outer": (), "inner": ("outer",), "album": ("outer",), "all": ()}


def test_a_reader_lies_right_above_what_it_reads() -> None:
    text = """
nodes:
  outer: {type: t.Words, text: x}
  inner: {type: t.Words, text: $outer}
  store: {type: t.Store, lines: $inner}
"""
    assert scopes(text)["store"] == ("outer",)


def test_a_scalar_slot_of_a_fan_out_has_the_fan_outs_own_scope() -> None:
    """row: K1-FAN-SCALAR"""
    fan = NodeType(
        name="x.Fan",
        inputs={},
        outputs={
            "item": OutputSlot(name="item", type=str, stream=True),
            "count": OutputSlot(name="count", type=int),
        },
        fans_out=True,
    )
    workflow = graph([("fan", fan), ("a", PLAIN)], [("fan", "count", "a", "one")])
    assert analyse(workflow).scopes == {"fan": (), "a": ()}


@pytest.mark.parametrize(
    ("nodes", "rule"),
    [
        (
            "  v: {type: t.Words, text: x}\n  w: {type: t.Words, text: x}\n"
            "  a: {type: t.Row, x: $v, y: $w}\n",
            "incompatible-scopes",
        ),
        (
            "  v: {type: t.Words, text: x}\n  w: {type: t.Words, text: x}\n"
            "  a: {type: flow.Collect, items: ['$v[]', '$w[]']}\n",
            "unequal-scopes",
        ),
        (
            "  v: {type: t.Words, text: x}\n  n: {type: t.Count, text: $v}\n"
            "  a: {type: t.Store, lines: $v, limit: $n}\n",
            "reader-scope",
        ),
        ("  a: {type: t.Store, lines: $b}\n  b: {type: t.Shout, text: x}\n", "nothing-to-collect"),
    ],
)
def test_scopes_that_cannot_meet_are_refused(nodes: str, rule: str) -> None:
    found = [r for r in rules("nodes:\n" + nodes) if r != "cannot-resume"]
    assert found == [rule]


def test_every_circle_is_reported_once() -> None:
    text = """
nodes:
  a: {type: t.Row, x: $b}
  b: {type: t.Row, x: $a}
  c: {type: t.Row, x: $c}
  below: {type: t.Row, x: $a}
"""
    assert rules(text) == ["cycle", "cycle"]


def test_order_is_the_files_where_edges_leave_a_choice() -> None:
    workflow = loaded("nodes:\n  c: {type: t.Row}\n  a: {type: t.Row}\n  b: {type: t.Row, x: $c}\n")
    assert analyse(workflow).order == ("c", "a", "b")


# -- random graphs against a second, naive reading of the rules --


def slots(**kinds: SlotKind) -> dict[str, InputSlot]:
    return {n: InputSlot(name=n, type=object, kind=k, default=None) for n, k in kinds.items()}


OUT = {"output": OutputSlot(name="output", type=object)}
STREAMS = {
    "output": OutputSlot(name="output", type=object, stream=True),
    "summary": OutputSlot(name="summary", type=object),
}
PLAIN = NodeType(
    name="x.Plain",
    inputs=slots(one=SlotKind.PLAIN, two=SlotKind.PLAIN, many=SlotKind.MANY),
    outputs=OUT,
)
COLLECTS = replace(PLAIN, name="x.Collects", inputs=slots(all=SlotKind.COLLECT, one=SlotKind.PLAIN))
READS = replace(
    PLAIN,
    name="x.Reads",
    inputs=slots(left=SlotKind.STREAM, right=SlotKind.STREAM, one=SlotKind.PLAIN),
    reads=True,
)
KINDS = [
    PLAIN,
    replace(PLAIN, name="x.Fans", outputs=STREAMS, fans_out=True),
    COLLECTS,
    READS,
    replace(READS, name="x.Through", outputs=STREAMS, fans_out=True),
]


def graph(
    nodes: Sequence[tuple[str, NodeType]], edges: Sequence[tuple[str, str, str, str]]
) -> Workflow:
    return Workflow(
        name="drawn",
        nodes=tuple(NodeSpec(id=node_id, type=kind.name) for node_id, kind in nodes),
        edges=tuple(
            EdgeSpec(source=s, source_slot=a, target=t, target_slot=b) for s, a, t, b in edges
        ),
        types=dict(nodes),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Workflow:
    """Graphs without circles, nodes in any order, most of them with scopes that fit."""
    count = draw(st.integers(2, 8))
    nodes = [(f"n{i}", draw(st.sampled_from(KINDS))) for i in range(count)]
    edges = []
    for i in range(1, count):
        wired = st.lists(st.sampled_from(sorted(nodes[i][1].inputs)), min_size=1, max_size=2)
        for slot in draw(wired):
            source, kind = nodes[draw(st.integers(max(0, i - 3), i - 1))]
            out = "summary" if kind.fans_out and draw(st.integers(0, 4)) == 0 else "output"
            edges.append((source, out, f"n{i}", slot))
    return graph(draw(st.permutations(nodes)), draw(st.permutations(edges)))


def naive(workflow: Workflow, node_id: str) -> Scope | None:
    """The scope of a node read off the rules, sources first by recursion; None if refused."""
    places: dict[str, list[Scope]] = {"plain": [], "collect": [], "stream": []}
    by_slot: dict[str, set[Scope]] = {}
    for edge in workflow.edges_into(node_id):
        scope = naive(workflow, edge.source)
        if scope is None:
            return None
        if workflow.types[edge.source].outputs[edge.source_slot].stream:
            scope = (*scope, edge.source)
        slot = workflow.types[node_id].inputs[edge.target_slot]
        kind = "plain" if slot.kind is SlotKind.MANY else str(slot.kind)
        if kind != "plain":
            by_slot.setdefault(slot.name, set()).add(scope)
            if not scope:
                return None
            scope = scope[:-1]
        places[kind].append(scope)
    every = [scope for group in places.values() for scope in group]
    longest = max(every, key=len, default=())
    fits = (
        all(len(found) == 1 for found in by_slot.values())
        and len(set(places["stream"])) <= 1
        and all(longest[: len(scope)] == scope for scope in every)
        and all(len(longest) == len(scope) for scope in places["stream"])
    )
    return longest if fits else None


@given(graphs())
def test_analysis_agrees_with_a_naive_reading_of_the_rules(workflow: Workflow) -> None:
    analysis = analyse(workflow)
    expected = {node.id: naive(workflow, node.id) for node in workflow.nodes}
    refused = any(scope is None for scope in expected.values())
    event("refused" if refused else f"deepest {max(map(len, analysis.scopes.values()))}")
    assert bool(analysis.problems) == refused
    if not refused:
        assert analysis.scopes == expected


@given(graphs())
def test_the_order_puts_sources_first_and_leaves_no_node_out(workflow: Workflow) -> None:
    analysis = analyse(workflow)
    assert sorted(analysis.order) == sorted(node.id for node in workflow.nodes)
    number = {node_id: i for i, node_id in enumerate(analysis.order)}
    assert all(number[e.source] < number[e.target] for e in workflow.edges)


@given(graphs())
def test_an_edge_is_at_most_one_root_deeper_than_its_source(workflow: Workflow) -> None:
    analysis: Analysis = analyse(workflow)
    for edge in workflow.edges:
        own = analysis.scopes[edge.source]
        assert edge_scope(edge, workflow, analysis.scopes) in (own, (*own, edge.source))


@given(
    st.integers(2, 7).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14),
        )
    )
)
def test_every_circle_is_found_whatever_hangs_on_it(
    drawn: tuple[int, set[tuple[int, int]]],
) -> None:
    """kernel.md §5: nothing that feeds itself may be loaded."""
    size, pairs = drawn
    step = NodeType(
        name="t.Step",
        inputs={f"i{k}": InputSlot(name=f"i{k}", type=object) for k in range(size)},
        outputs={"output": OutputSlot(name="output", type=object)},
    )
    workflow = Workflow(
        name="drawn",
        nodes=tuple(NodeSpec(id=f"n{k}", type="t.Step") for k in range(size)),
        edges=tuple(
            EdgeSpec(source=f"n{a}", source_slot="output", target=f"n{b}", target_slot=f"i{a}")
            for a, b in sorted(pairs)
        ),
        types={f"n{k}": step for k in range(size)},
    )
    reach = {(a, b) for a, b in pairs}
    for k in range(size):
        reach |= {
            (a, b) for a in range(size) for b in range(size) if (a, k) in reach and (k, b) in reach
        }
    circular = any((k, k) in reach for k in range(size))
    analysis = analyse(workflow)
    assert bool(analysis.problems) == circular
    assert circular == (len(analysis.order) < size)
    for problem in analysis.problems:
        path = [int(part[1:]) for part in problem.message.split(": ")[1].split(" → ")]
        assert path[0] == path[-1]
        assert all(pair in pairs for pair in pairwise(path))
