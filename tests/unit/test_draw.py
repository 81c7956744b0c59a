"""Drawings: text that fits a terminal, a picture that needs nothing else (surfaces.md)."""

from __future__ import annotations

import re
from textwrap import dedent
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_files import nested
from spec_nodes import loaded
from test_scopes import graphs

from nightwarden.spec.draw import graph_text
from nightwarden.spec.layout import lay_out
from nightwarden.spec.routes import routes
from nightwarden.spec.svg import graph_svg
from nightwarden.spec.workflow import EdgeSpec, InputSpec, NodeSpec, Workflow

SVG = "{http://www.w3.org/2000/svg}"

FLOW = """
name: words
inputs:
  texts: {type: "list[str]"}
  out: {type: path, default: out.csv}
nodes:
  page: {type: t.Fetch, url: "$inputs.texts[*]"}
  word: {type: t.Words, text: $page.text}
  loud: {type: t.Shout, text: $word}
  album: {type: t.Album, titles: "$loud[]", controls: [table]}
  row: {type: t.Row, url: $page.url, album: $album}
  table: {type: t.Write, rows: "$row[]", path: $inputs.out}
outputs: {table: $table}
"""


def test_the_text_shows_layers_scopes_engine_nodes_and_control() -> None:
    assert graph_text(loaded(FLOW)) == dedent("""\
        words: 6 steps, 2 fan-outs

            inputs.texts: list[str]
            inputs.out: path = 'out.csv'

         1  inputs.texts[*]  fan out  ← inputs.texts
            ┌ for each item of inputs.texts[*]
         2  │ page           t.Fetch  url ← inputs.texts[*]
         3  │ word           t.Words  text ← page.text · fans out
            │ ┌ for each item of word
         4  │ │ loud         t.Shout  text ← word
         5  │ loud[]         collect  ← loud
         6  │ album          t.Album  titles ← loud[] · controls → table
         7  │ row            t.Row    url ← page.url · album ← album
            │ ┌ for each event that controls table
         8  │ │ table        t.Write  rows ← row[] · path ← inputs.out

            output table ← table.output
        """)


def test_the_text_of_nothing_is_a_head_alone() -> None:
    assert graph_text(loaded("nodes: {}\nname: empty")) == "empty: 0 steps, 0 fan-outs\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_text_is_never_wider_than_asked(width: int) -> None:
    name = "a_node_with_a_name_that_is_longer_than_anybody_would_like_it_to_be"
    wires = "".join(f"    {name}_{i}: $word\n" for i in range(5))
    text = f"nodes:\n  word: {{type: t.Shout, text: x}}\n  {name}:\n    type: t.Row\n{wires}"
    lines = graph_text(loaded(text), width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert "←" in "".join(lines)


def picture(workflow: Workflow, **states: str) -> ElementTree.Element:
    return ElementTree.fromstring(graph_svg(workflow, states=states))


def titles(root: ElementTree.Element, path: str) -> list[str]:
    return [title.text or "" for title in root.findall(f"{path}/{SVG}title")]


def test_the_picture_has_a_box_a_node_and_a_line_an_edge() -> None:
    workflow = loaded(FLOW)
    root = picture(workflow)
    boxes = titles(root, f"{SVG}g")
    assert "page: t.Fetch, for each item of inputs.texts[*]" in boxes
    assert "loud[]: collect, for each item of inputs.texts[*]" in boxes
    assert "table: t.Write, for each event that controls table" in boxes
    assert len(boxes) == len(workflow.nodes) + len(workflow.inputs)
    lines = titles(root, f"{SVG}path")
    assert "page.text → word.text" in lines
    assert "row[] → table.rows" in lines
    assert "album controls table" in lines
    assert len(lines) == len(workflow.edges)


def test_what_runs_once_an_item_is_a_stack_of_cards() -> None:
    root = picture(loaded(FLOW))
    cards = {
        (group.find(f"{SVG}title").text or "").partition(":")[0]: len(group.findall(f"{SVG}rect"))  # type: ignore[union-attr]
        for group in root.findall(f"{SVG}g")
    }
    assert (cards["page"], cards["loud"], cards["inputs.out"]) == (2, 2, 1)


def test_states_are_told_by_a_sign_and_by_colour() -> None:
    root = picture(loaded(FLOW), page="failed", table="odd")
    failed = next(g for g in root.findall(f"{SVG}g") if "failed" in (g.get("class") or ""))
    assert "✕" in [t.text for t in failed.findall(f"{SVG}text")]
    assert "page: t.Fetch, for each item of inputs.texts[*], failed" in titles(root, f"{SVG}g")
    assert "table: t.Write, for each event that controls table, odd" in titles(root, f"{SVG}g")


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    text = graph_svg(loaded(FLOW))
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in text
    assert "<script" not in text


def test_names_cannot_break_out_of_the_picture() -> None:
    evil = '<script>alert("1")</script>&\x00\x1b'
    workflow = Workflow(
        name=evil,
        nodes=(NodeSpec(id=evil, type=evil),),
        edges=(),
        inputs=(InputSpec(name=evil, type=evil),),
    )
    root = picture(workflow, **{evil: evil})
    assert root.findall(f".//{SVG}script") == []
    assert root.find(f"{SVG}title").text == '<script>alert("1")</script>&��'  # type: ignore[union-attr]


@given(graphs())
def test_every_graph_can_be_drawn_and_always_alike(workflow: Workflow) -> None:
    text, svg = graph_text(workflow), graph_svg(workflow)
    assert (text, svg) == (graph_text(workflow), graph_svg(workflow))
    assert max(map(len, text.splitlines())) <= 80
    root = ElementTree.fromstring(svg)
    assert len(root.findall(f"{SVG}g")) == len(workflow.nodes)
    assert len(root.findall(f"{SVG}path")) == len(workflow.edges)


@given(graphs())
def test_no_two_things_stand_in_one_place(workflow: Workflow) -> None:
    layout = lay_out(workflow)
    placed = routes(workflow, layout)
    names = [name for column in placed.columns for name in column]
    assert len(names) == len(set(names))
    assert {node.id for node in workflow.nodes} <= set(names)
    column_of = {name: i for i, column in enumerate(placed.columns) for name in column}
    for (source, target), bends in placed.bends.items():
        way = [column_of[name] for name in (source, *bends, target)]
        assert way == list(range(way[0], way[-1] + 1))


@given(st.integers(1, 30))
def test_a_circle_can_be_drawn_too(count: int) -> None:
    workflow = loaded("nodes:\n  n0: {type: t.Row}\n")
    nodes = tuple(NodeSpec(id=f"n{i}", type="t.Row") for i in range(count))
    types = {node.id: workflow.types["n0"] for node in nodes}

    edges = tuple(
        EdgeSpec(
            source=f"n{i}", source_slot="output", target=f"n{(i + 1) % count}", target_slot="x"
        )
        for i in range(count)
    )
    circle = Workflow(name="circle", nodes=nodes, edges=edges, types=types)
    assert f"n{count - 1}" in graph_text(circle)
    assert ElementTree.fromstring(graph_svg(circle)) is not None


# -- subworkflows --

OUTER = """
name: outer
inputs: {texts: "list[str]"}
nodes:
  page: {type: t.Fetch, url: "$inputs.texts[*]"}
  sub: {type: flow.Subworkflow, workflow: middle.yaml, text: $page.text}
  row: {type: t.Row, x: $sub.album, url: $page.url}
"""
MIDDLE = """
inputs: {text: str}
nodes:
  alone: {type: t.Shout, text: hello}
  in: {type: flow.Subworkflow, workflow: inner.yaml, text: $inputs.text, more: $alone}
  album: {type: t.Album, titles: "$in.loud[]"}
"""
INNER = """
inputs: {text: str, more: str}
nodes:
  word: {type: t.Words, text: $inputs.text}
  loud: {type: t.Shout, text: $word}
  end: {type: t.Row, text: $inputs.more, words: "$loud[]"}
outputs: {loud: $loud, end: $end}
"""


def within() -> Workflow:
    return nested(OUTER, middle=MIDDLE, inner=INNER)


def test_the_text_shows_the_steps_of_a_subworkflow_together() -> None:
    assert graph_text(within()) == dedent("""\
        outer: 7 steps, 2 fan-outs

            inputs.texts: list[str]

         1  inputs.texts[*]      fan out  ← inputs.texts
            ┌ for each item of inputs.texts[*]
         2  │ page               t.Fetch  url ← inputs.texts[*]
         3  │ ┌ subworkflow sub
            │ ┆ sub/alone        t.Shout  with ← page.text
            │ ┆ ┌ subworkflow sub/in
            │ ┆ ┆ sub/in/word    t.Words  text ← page.text · with ← sub/alone · fans out
            │ ┆ ┆ ┌ for each item of sub/in/word
            │ ┆ ┆ │ sub/in/loud  t.Shout  text ← sub/in/word
            │ ┆ ┆ sub/in/loud[]  collect  ← sub/in/loud
            │ ┆ ┆ sub/in/end     t.Row    text ← sub/alone · words ← sub/in/loud[]
            │ ┆ sub/in.loud[]    collect  ← sub/in/loud
            │ ┆ sub/album        t.Album  titles ← sub/in.loud[]
         4  │ row                t.Row    x ← sub/album · url ← page.url

            output sub ← sub/in/end.output
            output row ← row.output
        """)


def test_the_picture_frames_the_steps_of_a_subworkflow() -> None:
    workflow = within()
    root = picture(workflow)
    frames = [
        (title.text, *(float(rect.get(side) or 0) for side in ("x", "y", "width", "height")))
        for rect in root.findall(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    ]
    assert {frame[0] for frame in frames} == {"sub", "sub/in"}
    boxes = {
        (group.find(f"{SVG}title").text or "").partition(":")[0]: group.find(f"{SVG}rect")  # type: ignore[union-attr]
        for group in root.findall(f"{SVG}g")
    }
    for name, x, y, width, height in frames:
        for node_id, rect in boxes.items():
            assert rect is not None
            at = [float(rect.get(side) or 0) for side in ("x", "y", "width", "height")]
            middle = (at[0] + at[2] / 2, at[1] + at[3] / 2)
            framed = x < middle[0] < x + width and y < middle[1] < y + height
            assert not framed or node_id.startswith(f"{name}/") or "[" in node_id, (name, node_id)
    assert "page.text → sub/alone.with" in titles(root, f"{SVG}path")


def test_steps_are_laid_out_one_by_one_where_a_subworkflow_has_no_place_of_its_own() -> None:
    inner = """
inputs: {a: str, b: str}
nodes:
  x: {type: t.Shout, text: $inputs.a}
  y: {type: t.Shout, text: $inputs.b}
outputs: {x: $x, y: $y}
"""
    outer = """
nodes:
  a: {type: t.Shout, text: word}
  s: {type: flow.Subworkflow, workflow: i.yaml, a: $a, b: $between}
  between: {type: t.Shout, text: $s.x}
"""
    lines = graph_text(nested(outer, i=inner)).splitlines()
    assert [line[:12].rstrip() for line in lines if "t.Shout" in line] == [
        " 1  a",
        " 2  s/x",
        " 3  between",
        " 4  s/y",
    ]
