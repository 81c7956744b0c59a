"""References and what they turn into (kernel.md §5): whole strings, `[*]`, `[]`, `$$`, secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_nodes import loaded

from nightwarden.spec.refs import BadReference, Given, Reference, is_id, literal, read
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import SecretRef, Workflow, json_value


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("$page", Reference("page", "")),
        ("$page.url", Reference("page", "url")),
        ("$inputs.urls", Reference("inputs", "urls")),
        ("$inputs.urls[*]", Reference("inputs", "urls", fans=1)),
        ("$inputs.table[*][*]", Reference("inputs", "table", fans=2)),
        ("$row[]", Reference("row", "", closes=1)),
        ("$row.output[][]", Reference("row", "output", closes=2)),
        ("$a-b_1.slot", Reference("a-b_1", "slot")),
        ("$t.Order No", None),
    ],
)
def test_a_reference_is_a_whole_string(text: str, reference: Reference | None) -> None:
    if reference is None:
        with pytest.raises(BadReference):
            read(text)
    else:
        assert read(text) == (reference,)
        assert str(reference) == text


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("plain", Given("plain")),
        ("costs $5", Given("costs $5")),
        ("$$page", Given("$page")),
        ("$$$page", Given("$$page")),
        ("", Given("")),
        (None, Given(None)),
        (["$$a", "b"], Given(["$a", "b"])),
        ({"k": "$$a", "$key": 1}, Given({"k": "$a", "$key": 1})),
        ([], Given([])),
        ("$secrets.API_KEY", SecretRef("API_KEY")),
        (["$a", "$b.c[]"], (Reference("a", ""), Reference("b", "c", closes=1))),
    ],
)
def test_a_leading_double_dollar_is_a_literal_dollar(value: object, meaning: object) -> None:
    assert read(value) == meaning


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("$", "is no reference"),
        ("$5.00", "is no reference"),
        ("${HOME}", "is no reference"),
        ("$page.", "is no reference"),
        ("$page.url.host", "has two dots"),
        ("$page[0]", "asks for one item"),
        ("$page[*][]", "fans out and closes at once"),
        ("$page[][*]", "fans out and closes at once"),
        ("$page and more", "more than a reference"),
        ("$inputs", "names no input"),
        ("$inputs[*]", "names no input"),
        ("$secrets", "names no secret"),
        ("$secrets.KEY[*]", "names no secret"),
        (["$a", "b"], "either references or values"),
        (["$a", "$secrets.K"], "a secret is never part of a value"),
        (["$a", ["$b"]], "either references or values"),
        ({"k": "$a"}, "stands inside another value"),
        ([{"k": ["$a"]}], "stands inside another value"),
        ({"k": "$secrets.K"}, "stands inside another value"),
    ],
)
def test_what_begins_like_a_reference_and_is_none_is_an_error(value: object, says: str) -> None:
    with pytest.raises(BadReference) as caught:
        read(value)
    assert says in str(caught.value)
    assert caught.value.remedy


def test_a_value_nested_without_end_is_refused() -> None:
    deep: list[object] = []
    deep.append(deep)
    with pytest.raises(BadReference, match="nested more than 100 deep"):
        literal(deep)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
        max_leaves=8,
    )
)
def test_what_the_canonical_form_writes_is_read_back(value: object) -> None:
    assert read(json_value(value)) == Given(value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read(text)
    except BadReference:
        found = None
    assert found or text.startswith("$")


@pytest.mark.parametrize(
    ("text", "good"),
    [("page", True), ("_", True), ("a-1", True), ("1a", False), ("a.b", False), ("", False)],
)
def test_ids_begin_with_a_letter_and_have_no_dots(text: str, good: bool) -> None:
    assert is_id(text) is good


def ids(workflow: Workflow) -> list[str]:
    return [node.id for node in workflow.nodes]


def arrows(workflow: Workflow) -> list[str]:
    return [f"{e.source}.{e.source_slot} > {e.target}.{e.target_slot}" for e in workflow.edges]


def test_all_stars_on_one_slot_are_one_node_so_that_their_users_join() -> None:
    workflow = loaded("""
inputs: {urls: "list[str]"}
nodes:
  a: {type: t.Shout, text: "$inputs.urls[*]"}
  b: {type: t.Shout, text: "$inputs.urls[*]"}
  row: {type: t.Row, a: $a, b: $b}
""")
    assert ids(workflow) == ["inputs.urls[*]", "a", "b", "row"]
    assert analyse(workflow).scopes["row"] == ("inputs.urls[*]",)
    assert arrows(workflow) == [
        "inputs.urls > inputs.urls[*].items",
        "inputs.urls[*].output > a.text",
        "inputs.urls[*].output > b.text",
        "a.output > row.a",
        "b.output > row.b",
    ]


def test_a_slot_left_out_and_the_slot_named_are_the_same_slot() -> None:
    workflow = loaded("""
nodes:
  config: {type: flow.Assert, value: [x], condition: true}
  a: {type: t.Shout, text: "$config[*]"}
  b: {type: t.Shout, text: "$config.output[*]"}
""")
    assert ids(workflow) == ["config", "config.output[*]", "a", "b"]


def test_stars_nest() -> None:
    workflow = loaded("""
inputs: {tables: "list[list[str]]"}
nodes:
  a: {type: t.Shout, text: "$inputs.tables[*][*]"}
  b: {type: t.Album, titles: "$inputs.tables[*]"}
""")
    assert ids(workflow) == ["inputs.tables[*]", "inputs.tables[*][*]", "a", "b"]
    assert analyse(workflow).scopes["a"] == ("inputs.tables[*]", "inputs.tables[*][*]")
    assert analyse(workflow).scopes["b"] == ("inputs.tables[*]",)


def test_brackets_into_a_collecting_slot_are_just_the_edge() -> None:
    workflow = loaded("""
inputs: {urls: "list[str]"}
nodes:
  row: {type: t.Row, url: "$inputs.urls[*]"}
  table: {type: t.Write, rows: "$row[]", path: out.csv}
""")
    assert ids(workflow) == ["inputs.urls[*]", "row", "table"]
    assert arrows(workflow)[-1] == "row.output > table.rows"


def test_brackets_into_a_list_slot_insert_one_collecting_node_for_all_users() -> None:
    workflow = loaded("""
inputs: {urls: "list[str]"}
nodes:
  loud: {type: t.Shout, text: "$inputs.urls[*]"}
  one: {type: t.Album, titles: "$loud[]"}
  two: {type: t.Album, titles: "$loud[]"}
""")
    assert ids(workflow) == ["inputs.urls[*]", "loud", "loud.output[]", "one", "two"]
    assert analyse(workflow).scopes["one"] == ()
    assert workflow.types["loud.output[]"].outputs["output"].type == list[str]


def test_double_brackets_close_two_roots() -> None:
    workflow = loaded("""
inputs: {tables: "list[list[str]]"}
nodes:
  loud: {type: t.Shout, text: "$inputs.tables[*][*]"}
  shelf: {type: t.Shelf, albums: "$loud[][]"}
  row: {type: t.Row, all: "$loud[][]"}
""")
    scopes = analyse(workflow).scopes
    assert scopes["loud.output[]"] == ("inputs.tables[*]",)
    assert scopes["loud.output[][]"] == ()
    assert scopes["shelf"] == scopes["row"] == ()
    assert "loud.output[].output > shelf.albums" in arrows(workflow)


def test_a_list_of_references_makes_one_edge_each_in_order() -> None:
    workflow = loaded("""
inputs: {a: str, b: str}
nodes:
  picked: {type: t.Pick, values: [$inputs.b, $inputs.a, $inputs.b]}
""")
    assert arrows(workflow) == [
        "inputs.b > picked.values",
        "inputs.a > picked.values",
        "inputs.b > picked.values",
    ]


def test_a_field_of_a_record_can_be_wired() -> None:
    workflow = loaded("""
nodes:
  page: {type: t.Fetch, url: https://example.org}
  link: {type: t.Shout, text: "$page.links[*]"}
  row: {type: t.Row, status: $page.status}
""")
    assert "page.links[*]" in ids(workflow)
    assert "page.status > row.status" in arrows(workflow)


def test_a_field_of_what_a_generic_node_passes_on_can_be_wired() -> None:
    workflow = loaded("""
nodes:
  page: {type: t.Fetch, url: https://example.org}
  ok: {type: flow.Assert, value: $page, condition: true}
  count: {type: t.Share, value: $ok.status, of: 3}
""")
    assert "ok.status > count.value" in arrows(workflow)


def test_a_secret_is_a_property_and_never_an_edge() -> None:
    workflow = loaded("""
nodes:
  page: {type: t.Fetch, url: https://example.org, token: $secrets.TOKEN}
""")
    assert workflow.node("page").properties["token"] == SecretRef("TOKEN")
    assert workflow.edges == ()
    assert workflow.canonical()["nodes"] == [
        {
            "id": "page",
            "type": "t.Fetch",
            "properties": {"url": "https://example.org", "token": "$secrets.TOKEN"},
        }
    ]
