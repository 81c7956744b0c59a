"""Building in Python: the same graph, the same words for the same mistakes (kernel.md §5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spec_nodes as t
from spec_nodes import CATALOG, catalog, loaded

import nightwarden as nw
from nightwarden.errors import SpecError
from nightwarden.nodes.define import node
from nightwarden.spec.build import Builder, workflow
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import SecretRef

YAML = """
version: 1
name: summarise-pages
description: Pages into a table.
inputs:
  urls: {type: "list[str]"}
  limit: {type: int, default: 3, description: Words}
nodes:
  page:
    type: t.Fetch
    url: $inputs.urls[*]
    attempts: $inputs.limit
    token: $secrets.TOKEN
    label: "{url}"
    run: {timeout: 30, concurrency: 4}
  loud:
    type: t.Shout
    text: $page.text
    times: 2
  row:
    type: t.Row
    url: $page.url
    text: $loud
    note: $$5
  album:
    type: t.Album
    titles: $loud[]
  table:
    type: t.Write
    rows: $row[]
    path: out.csv
outputs:
  table: $table
  words: $loud[]
"""


def built() -> Builder:
    with workflow("summarise-pages", catalog=CATALOG, description="Pages into a table.") as w:
        urls = w.input("urls", list[str])
        limit = w.input("limit", int, default=3, description="Words")
        page = w.add(
            t.fetch,
            id="page",
            label="{url}",
            timeout=30,
            concurrency=4,
            url=urls.each(),
            attempts=limit,
            token=w.secret("TOKEN"),
        )
        loud = w.add(t.shout, id="loud", text=page.slot("text"), times=2)
        row = w.add(t.row, id="row", url=page.slot("url"), text=loud, note="$5")
        w.add(t.album, id="album", titles=loud.collect())
        table = w.add(t.write, id="table", rows=row.collect(), path="out.csv")
        w.output("table", table)
        w.output("words", loud.collect())
    return w


def test_yaml_json_and_python_of_one_example_give_equal_canonical_json() -> None:
    from_yaml, from_python = loaded(YAML), built().build()
    from_json = loaded(json.dumps(from_yaml.canonical()), file="x.json")
    assert json.dumps(from_yaml.canonical()) == json.dumps(from_python.canonical())
    assert json.dumps(from_yaml.canonical()) == json.dumps(from_json.canonical())
    assert from_yaml.digest() == from_python.digest() == from_json.digest()


def test_what_is_built_is_placed_like_what_is_loaded() -> None:
    assert analyse(built().build()).scopes == analyse(loaded(YAML)).scopes


def test_a_node_may_be_named_by_its_type() -> None:
    with workflow("x", catalog=CATALOG) as w:
        w.add("t.Shout", id="a", text="x")
    assert w.build().node("a").type == "t.Shout"


def test_ids_come_from_the_name_of_the_node_type() -> None:
    with workflow("x", catalog=CATALOG) as w:
        w.add(t.shout, text="x")
        w.add(t.shout, text="x")
        w.add("flow.Collect", items=w.add(t.words, text="x").collect())
    assert [n.id for n in w.build().nodes] == ["shout", "shout_2", "words", "collect"]


def test_a_value_in_python_is_a_value_whatever_it_begins_with() -> None:
    with workflow("x", catalog=CATALOG) as w:
        w.add(t.row, id="a", text="$page", deep=["$x", {"k": "$secrets.K"}])
    built = w.build()
    assert built.node("a").properties == {"text": "$page", "deep": ["$x", {"k": "$secrets.K"}]}
    assert loaded(json.dumps(built.canonical())).canonical() == built.canonical()


def test_properties_are_made_into_their_types_and_written_back_as_json() -> None:
    with workflow("x", catalog=CATALOG) as w:
        items = w.add(t.words, id="items", text="x")
        row = w.add(t.row, id="row", text=items, where=Path("a/b"))
        w.add(t.write, id="table", rows=row.collect(), path=Path("out.csv"))
    built = w.build()
    assert built.node("table").properties["path"] == Path("out.csv")
    assert loaded(json.dumps(built.canonical())).canonical() == built.canonical()


def test_properties_serve_slots_whose_names_collide() -> None:
    with workflow("x", catalog=CATALOG) as w:
        w.add(t.row, id="a", properties={"id": 1, "label": w.add(t.shout, id="s", text="x")})
    built = w.build()
    assert built.node("a").properties == {"id": 1}
    assert built.edges_into("a")[0].target_slot == "label"


def test_a_list_of_handles_makes_one_edge_each() -> None:
    with workflow("x", catalog=CATALOG) as w:
        a, b = w.input("a", str), w.input("b", "str")
        w.add(t.pick, id="pick", values=[b, a])
    assert [e.source_slot for e in w.build().edges_into("pick")] == ["b", "a"]


def test_a_decorated_function_stays_an_ordinary_function() -> None:
    @node(type="t.Twice")
    def twice(text: str) -> str:
        return text * 2

    with workflow("x") as w:
        w.add(twice, id="a", text="ab")
    assert twice("ab") == "abab"
    assert w.build().types["a"].name == "t.Twice"


def test_nodes_given_by_their_code_are_kept_by_a_catalog_that_can() -> None:
    @node(type="t.Own")
    def own(text: str) -> str:
        return text

    registry = catalog()
    with workflow("x", catalog=registry) as w:
        w.add(own, text="x")
    found = registry.definition("t.Own")
    assert found is not None
    assert found.target is own


def wrong_type(w: Builder) -> None:
    w.add("t.Shuot", text="x")


def not_a_node(w: Builder) -> None:
    w.add(len, text="x")


def missing(w: Builder) -> None:
    w.add(t.shout, id="a")


def wrong_value(w: Builder) -> None:
    w.add(t.shout, id="a", text=5)


def wrong_options(w: Builder) -> None:
    w.add(t.shout, id="a", text="x", timeout=0)


def wrong_id(w: Builder) -> None:
    w.add(t.shout, id="a.b", text="x")


def same_id(w: Builder) -> None:
    w.add(t.shout, id="a", text="x")
    w.add(t.shout, id="a", text="x")


def mixed_list(w: Builder) -> None:
    w.add(t.pick, id="a", values=[w.add(t.shout, text="x"), "y"])


def handle_inside(w: Builder) -> None:
    w.add(t.config, id="a", values={"k": w.add(t.shout, text="x")})


def other_workflow(w: Builder) -> None:
    w.add(t.shout, id="a", text=workflow("other").input("x", str))


def wrong_input(w: Builder) -> None:
    w.input("a", dict[int, str])


def wrong_default(w: Builder) -> None:
    w.input("a", int, default="x")


def input_twice(w: Builder) -> None:
    w.input("a", int)
    w.input("a", int)


def input_as_output(w: Builder) -> None:
    w.output("x", w.input("a", int))


def live_object(w: Builder) -> None:
    w.add(t.row, id="a", x=object())


def not_a_number(w: Builder) -> None:
    w.add(t.config, id="a", values={}, ratio=float("nan"))


def secret_inside(w: Builder) -> None:
    w.add(t.row, id="a", x=[SecretRef("K")])


@pytest.mark.parametrize(
    ("mistake", "rule", "slot"),
    [
        (wrong_type, "unknown-type", ""),
        (not_a_node, "unknown-type", ""),
        (missing, "missing-slot", "text"),
        (wrong_value, "property-type", "text"),
        (wrong_options, "run-options", ""),
        (wrong_id, "bad-id", ""),
        (same_id, "duplicate-id", ""),
        (mixed_list, "bad-reference", "values"),
        (handle_inside, "bad-reference", "values"),
        (other_workflow, "bad-reference", "text"),
        (wrong_input, "input-type", ""),
        (wrong_default, "input-default", ""),
        (input_twice, "duplicate-id", ""),
        (input_as_output, "bad-output", ""),
        (live_object, "property-type", "x"),
        (not_a_number, "property-type", "ratio"),
        (secret_inside, "bad-reference", "x"),
    ],
)
def test_a_mistake_is_reported_with_the_line_that_made_it(
    mistake: Callable[[Builder], None], rule: str, slot: str
) -> None:
    w = workflow("x", catalog=CATALOG)
    mistake(w)
    with pytest.raises(SpecError) as caught:
        w.build()
    (problem,) = caught.value.problems
    assert (problem.rule, problem.slot) == (rule, slot)
    assert problem.file == __file__
    first = mistake.__code__.co_firstlineno
    assert first < (problem.line or 0) <= first + 2


def test_what_mends_a_type_is_said_as_it_is_written_in_python() -> None:
    w = workflow("x", catalog=CATALOG)
    urls = w.input("urls", list[str])
    w.add(t.shout, id="whole", text=urls)
    w.add(t.album, id="all", titles=w.add(t.shout, id="each", text=urls.each()))
    with pytest.raises(SpecError) as caught:
        w.build()
    assert [p.remedy for p in caught.value.problems] == [
        "fan the list out: inputs.urls.each()",
        "gather the items first: each.collect()",
    ]


def test_leaving_the_block_reports_everything_at_once() -> None:
    def unfinished() -> None:
        with workflow("x", catalog=CATALOG) as w:
            w.add(t.shout, id="a")
            w.add(t.shout, id="b", text=5)

    with pytest.raises(SpecError) as caught:
        unfinished()
    assert [p.rule for p in caught.value.problems] == ["missing-slot", "property-type"]


def test_an_error_inside_the_block_is_not_hidden_by_what_is_unfinished() -> None:
    def interrupted() -> None:
        with workflow("x", catalog=CATALOG) as w:
            w.add(t.shout, id="a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()


def test_adding_after_building_is_seen_by_the_next_build() -> None:
    w = workflow("x", catalog=CATALOG)
    w.add(t.shout, id="a", text="x")
    first = w.build()
    assert w.build() is first
    w.add(t.shout, id="b", text="x")
    assert [n.id for n in w.build().nodes] == ["a", "b"]


def test_two_different_nodes_of_one_name_are_refused() -> None:
    @node(type="t.Same")
    def one(text: str) -> str:
        return text

    @node(type="t.Same")
    def two(text: str) -> str:
        return text

    w = workflow("x")
    w.add(one, id="a", text="x")
    w.add(two, id="b", text="x")
    with pytest.raises(SpecError) as caught:
        w.build()
    assert [p.rule for p in caught.value.problems] == ["type-name-clash"]


def test_a_handle_can_be_fanned_out_or_collected_but_not_both() -> None:
    w = workflow("x", catalog=CATALOG)
    urls = w.input("urls", list[str])
    with pytest.raises(ValueError, match="only been fanned out"):
        urls.each().collect()
    with pytest.raises(ValueError, match="already collected"):
        w.add(t.words, text="x").collect().each()
    with pytest.raises(ValueError, match="has no slots"):
        urls.slot("x")


def test_a_workflow_built_in_python_names_the_files_with_its_steps(tmp_path: Path) -> None:
    """Its canonical form can be loaded again as a file (kernel.md §5)."""
    steps = "from nightwarden import node\n@node\ndef twice(x: int) -> int:\n    return 2 * x\n"
    (tmp_path / "my_steps.py").write_text(steps)
    code = compile(
        "import nightwarden as nw\n"
        "with nw.workflow('w', python=['my_steps.py']) as w:\n"
        "    w.add('my_steps.Twice', id='a', x=w.input('x', int))\n"
        "built = w.build()\n",
        str(tmp_path / "w.py"),
        "exec",
    )
    space: dict[str, Any] = {}
    exec(code, space)
    built = space["built"]
    assert built.python == ("my_steps.py",)
    (tmp_path / "w.json").write_text(json.dumps(built.canonical()))
    assert nw.load(tmp_path / "w.json", trust=True).canonical() == built.canonical()


def test_a_python_file_that_is_not_there_is_told_when_the_workflow_is_begun() -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        nw.workflow("w", python=["no_such_steps.py"])
