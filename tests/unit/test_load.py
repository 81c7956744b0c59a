"""Loading: every door, every mistake at once, each with its place (kernel.md §5)."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_bad import BAD, Found
from spec_nodes import CATALOG, loaded, rules

from nightwarden.errors import SpecError
from nightwarden.spec.catalog import MISSING
from nightwarden.spec.check import check
from nightwarden.spec.document import read_document
from nightwarden.spec.findings import Findings, strictly
from nightwarden.spec.load import examine, load, python_files
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import Workflow

PAGES = """
version: 1
name: summarise-pages
description: Fetches pages and writes a table.
inputs:
  urls: {type: "list[str]", description: Addresses}
  out: {type: path, default: out.csv}
nodes:
  page:
    type: t.Fetch
    url: $inputs.urls[*]
    attempts: "2"
    label: "{url}"
    run: {timeout: 30, concurrency: 4}
    ui: {x: 1}
  row:
    type: t.Row
    url: $page.url
    note: $$5
  table:
    type: t.Write
    rows: $row[]
    path: $inputs.out
outputs:
  table: $table
"""


@pytest.mark.parametrize(("text", "found"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_reported_all_at_once_each_with_its_place(
    text: str, found: list[Found]
) -> None:
    with pytest.raises(SpecError) as caught:
        load(text, catalog=CATALOG, file="flow.yaml")
    assert [(p.rule, p.line, p.node, p.slot) for p in caught.value.problems] == found
    assert {p.file for p in caught.value.problems} == {"flow.yaml"}


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("nodes:\n  a: {url: $inputs.u[*]}\n", 'quote it: "$inputs.u[*]"'),
        ("nodes:\n  a: {rows: $row[], b: 1}\n", 'quote it: "$row[]"'),
        ("nodes:\n  a: {rows: [$row[], $x]}\n", 'quote it: "$row[]"'),
        ("inputs: {u: list[str]}\n", 'quote it: "list[str]"'),
        ("inputs: {u: {items: @u.txt}}\n", 'quote it: "@u.txt"'),
        ("nodes:\n  a: {type: t.Rov}\n", "did you mean 't.Row'?"),
        ("nodes:\n  a: {type: row}\n", "did you mean 't.Row'?"),
        ("nodes:\n  a: {type: t.Shout, txt: x, text: y}\n", "did you mean 'text'?"),
        ("nodes:\n  a: {type: t.Shout, lable: x, text: y}\n", "did you mean 'label'?"),
        ("nodes:\n  a: {type: t.Shout, text: 5}\n", 'put it in quotes: "5"'),
        ("nodes:\n  a: {type: t.Row, x: $bb}\n  b: {type: t.Row}\n", "did you mean 'b'?"),
        ("inputs: {u: str}\nnodes:\n  a: {type: t.Row, x: $inputs.U}\n", "did you mean 'u'?"),
        ("nodes:\n  a: {type: t.Row, x: $inputs.u}\n", "declare it: inputs: {u: str}"),
        (
            "nodes:\n  p: {type: t.Fetch, url: x}\n  a: {type: t.Shout, text: $p}\n",
            "wire one of its fields: $p.url, $p.text",
        ),
        (
            "nodes:\n  p: {type: t.Fetch, url: x}\n  a: {type: t.Shout, text: $p.links}\n",
            "fan the list out: $p.links[*]",
        ),
        (
            "nodes:\n  w: {type: t.Words, text: x}\n  a: {type: t.Album, titles: $w}\n",
            "gather the items first: $w[]",
        ),
        (
            "inputs: {p: str}\nnodes:\n  w: {type: t.Words, text: x}\n  r: {type: t.Row, x: $w}\n"
            '  a: {type: t.Write, rows: "$r[]", path: $inputs.p}\n',
            'declare the input as type: "path"',
        ),
    ],
)
def test_a_problem_says_what_to_do(text: str, remedy: str) -> None:
    _, problems = examine(text, catalog=CATALOG)
    assert [p.remedy for p in problems if p.severity == "error"] == [remedy]


def test_scopes_that_cannot_be_joined_name_both_slots_and_what_can_join_them() -> None:
    """row: K1-JOIN-REFUSED"""
    text = next(row[1] for row in BAD if row[0].startswith("two fan-outs"))
    (problem,) = examine(text, catalog=CATALOG)[1]
    assert "x (from inputs.u[*].output) lies under the items of inputs.u[*]" in problem.message
    assert "y (from inputs.v[*].output) under the items of inputs.v[*]" in problem.message
    assert problem.remedy == (
        "pair them with flow.Zip or flow.Cross, or collect one of them first with []"
    )


def test_a_good_file_loads_into_canonical_form() -> None:
    workflow = loaded(PAGES)
    assert workflow.canonical() == {
        "version": 1,
        "name": "summarise-pages",
        "description": "Fetches pages and writes a table.",
        "inputs": [
            {"name": "urls", "type": "list[str]", "description": "Addresses"},
            {"name": "out", "type": "path", "default": "out.csv"},
        ],
        "outputs": {"table": "table.output"},
        "nodes": [
            {"id": "inputs.urls[*]", "type": "flow.ForEach"},
            {
                "id": "page",
                "type": "t.Fetch",
                "properties": {"attempts": 2},
                "label": "{url}",
                "run": {"timeout": 30.0, "concurrency": 4},
                "ui": {"x": 1},
            },
            {"id": "row", "type": "t.Row", "properties": {"note": "$$5"}},
            {"id": "table", "type": "t.Write"},
        ],
        "edges": [
            edge("inputs", "urls", "inputs.urls[*]", "items"),
            edge("inputs.urls[*]", "output", "page", "url"),
            edge("page", "url", "row", "url"),
            edge("row", "output", "table", "rows"),
            edge("inputs", "out", "table", "path"),
        ],
    }


def edge(source: str, source_slot: str, target: str, target_slot: str) -> dict[str, str]:
    return {
        "source": source,
        "source_slot": source_slot,
        "target": target,
        "target_slot": target_slot,
        "kind": "data",
    }


def test_the_canonical_form_loads_into_itself() -> None:
    workflow = loaded(PAGES)
    again = loaded(json.dumps(workflow.canonical()), file="x.json")
    assert again.canonical() == workflow.canonical()
    assert again.digest() == workflow.digest()


def test_the_hash_leaves_out_what_only_an_editor_needs() -> None:
    assert loaded(PAGES).digest() == loaded(PAGES.replace("x: 1", "x: 2")).digest()
    assert loaded(PAGES).digest() != loaded(PAGES.replace("timeout: 30", "timeout: 31")).digest()


def test_an_empty_graph_is_a_workflow() -> None:
    workflow = loaded("nodes: {}")
    assert workflow.canonical() == {"version": 1, "name": "workflow", "nodes": [], "edges": []}
    assert loaded(json.dumps(workflow.canonical())).canonical() == workflow.canonical()


def test_the_callers_name_stands_in_for_one_the_file_lacks() -> None:
    assert loaded("nodes: {}", name="nightly").name == "nightly"
    assert loaded("nodes: {}\nname: own", name="nightly").name == "own"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert loaded("\ufeffnodes: {}\nname: a").name == "a"
    assert loaded('\ufeff{"nodes": {}, "name": "a"}').name == "a"


def test_yaml_is_read_as_version_1_2() -> None:
    workflow = loaded(
        """
nodes:
  a:
    type: t.Row
    no: no
    yes: on
    day: 2026-11-30
    time: 12:30:45
    octal: 0o17
    hex: 0x1F
    float: 1.5e3
    under: 1_000
    empty: ""
    true: True
    version: 1.10.1
    null_: ~
""".replace("    true: True", '    "true": True')
    )
    assert workflow.node("a").properties == {
        "no": "no",
        "yes": "on",
        "day": "2026-11-30",
        "time": "12:30:45",
        "octal": 15,
        "hex": 31,
        "float": 1500.0,
        "under": "1_000",
        "empty": "",
        "true": True,
        "version": "1.10.1",
        "null_": None,
    }


def test_anchors_and_merge_keys_work() -> None:
    workflow = loaded("""
nodes:
  a: &base {type: t.Shout, text: x, times: 2, run: &run {timeout: 5}}
  b:
    <<: *base
    text: y
  c: {type: t.Row, run: *run}
""")
    assert workflow.node("b").type == "t.Shout"
    assert workflow.node("b").properties == {"text": "y", "times": 2}
    assert workflow.node("c").run.timeout_s == 5.0


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in zip("abcdefg", "bcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{', '.join(['*' + before] * 10)}]")
    assert rules("\n".join(lines)) == ["too-large"]


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_values_nested_too_deep_are_refused(format: str) -> None:
    assert rules("[" * 5_000, format=format) == ["too-deep"]


def test_a_file_that_is_too_long_is_refused_unread() -> None:
    assert rules("#" * 8_000_001) == ["too-large"]


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("{", "json-syntax", 1),
        ('{"nodes": {},\n}', "json-syntax", 2),
        ('{"nodes": {}\n "name": 1}', "json-syntax", 2),
        ('{"nodes": {}}\nmore', "json-syntax", 2),
        ('{"nodes": {\n"a": NaN}}', "json-syntax", 2),
        ('{"nodes": 1e999}', "json-syntax", 1),
        ('{"nodes": 01}', "json-syntax", 1),
        ('{"nodes": "a\nb"}', "json-syntax", 1),
        ('{"nodes": "\\x"}', "json-syntax", 1),
        ("{'nodes': 1}", "json-syntax", 1),
        ("", "empty-file", None),
        ('{"nodes": {}, "name": "a",\n\n"name": "b"}', "duplicate-key", 3),
    ],
)
def test_bad_json_is_reported_with_its_line(text: str, rule: str, line: int | None) -> None:
    _, problems = examine(text, catalog=CATALOG, file="flow.json")
    assert [(p.rule, p.line) for p in problems] == [(rule, line)]


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(),
        ),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
        max_leaves=10,
    ),
    st.sampled_from([None, 1]),
)
def test_json_says_what_the_standard_library_says(value: object, indent: int | None) -> None:
    findings = Findings()
    document = read_document(json.dumps(value, indent=indent), findings, "json")
    assert document is not None
    assert findings.report() == ()
    assert document.data == value


@given(st.text(alphabet="a:-[]{}*&!|>'\"%@`#,? \n\t$0.~<=", max_size=60))
def test_no_text_makes_loading_fail_in_an_unforeseen_way(text: str) -> None:
    for kind in ("yaml", "json"):
        workflow, problems = examine(text, catalog=CATALOG, format=kind)
        assert workflow is not None or problems


_WORDS = """
version name nodes edges inputs outputs type id a run url source target properties default items
controls python ui label sourceHandle data position
"""
_KEYS = st.sampled_from(_WORDS.split())
_DATA = st.recursive(
    st.one_of(
        st.none(),
        st.integers(0, 2),
        st.booleans(),
        st.sampled_from(
            ["a", "t.Row", "t.Fetch", "$a", "$a[]", "$inputs.a[*]", "$b.c", "list[str]"]
        ),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=5)),
    max_leaves=25,
)


@given(st.dictionaries(_KEYS, _DATA, max_size=6))
def test_no_shape_makes_loading_fail_in_an_unforeseen_way(data: dict[str, object]) -> None:
    workflow, problems = examine(json.dumps(data), catalog=CATALOG, format="json")
    assert workflow is not None or problems
    if workflow is not None:
        again, more = examine(json.dumps(workflow.canonical()), catalog=CATALOG, format="json")
        assert again is not None, more
        assert again.canonical() == workflow.canonical()


def test_the_long_form_serves_slots_whose_names_collide() -> None:
    workflow = loaded("""
nodes:
  a: {type: t.Row, properties: {type: x, label: y, run: 3}}
""")
    assert workflow.node("a").properties == {"type": "x", "label": "y", "run": 3}
    assert workflow.node("a").label is None


def test_nodes_in_a_list_may_hold_references_too() -> None:
    workflow = loaded("""
inputs: [{name: urls, type: "list[str]"}]
nodes:
  - {id: page, type: t.Fetch, url: "$inputs.urls[*]"}
  - {id: row, type: t.Row, properties: {id: $page.url}}
edges: [{source: page, source_slot: status, target: row, target_slot: status}]
""")
    assert [e.target_slot for e in workflow.edges_into("row")] == ["id", "status"]
    assert workflow.inputs[0].type == "list[str]"


def test_two_nodes_of_one_id_are_refused() -> None:
    text = """
nodes:
  - {id: a, type: t.Row}
  - {id: a, type: t.Row}
"""
    _, problems = examine(text, catalog=CATALOG)
    assert [(p.rule, p.line, p.message) for p in problems] == [
        ("duplicate-id", 4, "there are two nodes 'a' (line 3)")
    ]


def test_an_edge_may_leave_out_what_leaves_no_choice() -> None:
    workflow = loaded("""
nodes:
  - {id: a, type: t.Count, properties: {text: x}}
  - {id: b, type: flow.Collect}
  - {id: w, type: t.Words, properties: {text: x}}
edges:
  - {source: w, target: b}
""")
    assert workflow.edges[0].source_slot == "output"
    assert workflow.edges[0].target_slot == "items"


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        ([{"source": "a", "target": "z", "target_slot": "x"}], [("unknown-node", "a", "")]),
        ([{"source": "z", "target": "a", "target_slot": "x"}], [("unknown-node", "a", "x")]),
        ([{"source": "a", "target": "b"}], [("which-slot", "b", "")]),
        (
            [{"source": "a", "target": "b", "target_slot": "text"}],
            [("wired-and-given", "b", "text")],
        ),
        ([{"source": "a", "target": "b", "kind": "magic"}], [("bad-value", "", "")]),
        ([{"source": "a"}], [("bad-value", "", "")]),
        (["a"], [("bad-value", "", "")]),
        ([{"source": "a", "target": "b", "to": 1, "kind": "control"}], [("unknown-key", "", "")]),
        (
            [{"source": "a", "target": "b", "target_slot": "text", "kind": "control"}],
            [("control-slot", "b", "text")],
        ),
        ([{"source": "z", "target": "b", "kind": "control"}], [("unknown-node", "b", "")]),
    ],
)
def test_edges_written_out_are_checked(edges: list[object], found: list[tuple[str, ...]]) -> None:
    nodes = [
        {"id": "a", "type": "t.Count", "properties": {"text": "x"}},
        {"id": "b", "type": "t.Shout", "properties": {"text": "x"}},
    ]
    text = json.dumps({"nodes": nodes, "edges": edges})
    _, problems = examine(text, catalog=CATALOG)
    assert [(p.rule, p.node, p.slot) for p in problems if p.rule != "edge-type"] == found


def test_controls_become_control_edges() -> None:
    """Carried, not yet run."""
    workflow = loaded("nodes:\n  a: {type: t.Row, controls: [b]}\n  b: {type: t.Row}\n")
    assert [(e.source, e.target, e.kind) for e in workflow.edges] == [("a", "b", "control")]
    assert analyse(workflow).order == ("a", "b")
    assert loaded(json.dumps(workflow.canonical())).canonical() == workflow.canonical()


def test_a_control_edge_closes_a_circle_as_a_data_edge_does() -> None:
    """kernel.md §1: control edges count for cycles."""
    text = "nodes:\n  a: {type: t.Row, controls: [b], x: $b}\n  b: {type: t.Row}\n"
    assert rules(text) == ["cycle"]


def test_what_later_parts_read_is_carried() -> None:
    workflow = loaded("""
nodes: {}
python: [steps.py, more.py]
supervisors: {watchdog: {watches: [a], cooldown: 45s}}
prompts: {coach: "Go on."}
settings: {run: {window: 16}}
""")
    assert workflow.python == ("steps.py", "more.py")
    assert workflow.supervisors == {"watchdog": {"watches": ["a"], "cooldown": "45s"}}
    assert workflow.prompts == {"coach": "Go on."}
    assert workflow.settings == {"run": {"window": 16}}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("python: [a.py, 3]\nnodes: {}", ("a.py",)),
        ("python: a.py", ("a.py",)),
        ("nodes: {}", ()),
        ("nodes: {", ()),
        ("- a", ()),
    ],
)
def test_the_python_files_of_a_workflow_are_known_before_it_is_loaded(
    text: str, files: tuple[str, ...]
) -> None:
    assert python_files(text) == files


FILES = {
    "urls.txt": "\ufeffhttps://a.example\n\n  $b  \r\n",
    "urls.json": '["https://a.example", "$b"]',
    "rows.txt": '{"a": 1}\nplain\n',
    "numbers.txt": "1\n2\n",
    "words.txt": "1\nx\n",
    "empty.txt": "",
}


def read_text(name: str) -> str:
    if name not in FILES:
        raise FileNotFoundError(2, "No such file or directory", name)
    return FILES[name]


@pytest.mark.parametrize(
    ("type_text", "items", "default"),
    [
        ("list[str]", "@urls.txt", ["https://a.example", "$b"]),
        ("list[str]", "@urls.json", ["https://a.example", "$b"]),
        ("list[json]", "@rows.txt", [{"a": 1}, "plain"]),
        ("list[int]", "@numbers.txt", [1, 2]),
        ("list[str]", "@numbers.txt", ["1", "2"]),
        ("list[str]", "@empty.txt", []),
        ("list[str]", ["a", "$$b"], ["a", "$b"]),
    ],
)
def test_the_items_of_an_input_may_be_a_file(
    type_text: str, items: object, default: object
) -> None:
    text = json.dumps({"inputs": {"u": {"type": type_text, "items": items}}, "nodes": {}})
    workflow = loaded(text, read_text=read_text)
    assert workflow.inputs[0].default == default
    assert loaded(json.dumps(workflow.canonical())).inputs[0].default == default


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ("@nope.txt", "nope.txt cannot be read (No such file or directory)"),
        ("@words.txt", "is no list[int]: [1]: expected a whole number"),
    ],
)
def test_items_that_cannot_be_had_are_a_problem(items: str, says: str) -> None:
    text = json.dumps({"inputs": {"u": {"type": "list[int]", "items": items}}, "nodes": {}})
    _, problems = examine(text, catalog=CATALOG, read_text=read_text)
    assert [p.severity for p in problems] == ["error"]
    assert says in problems[0].message


def test_items_in_a_file_nobody_can_read_are_a_problem() -> None:
    text = 'inputs: {u: {type: "list[str]", items: "@urls.txt"}}\nnodes: {}'
    assert rules(text) == ["input-items"]


def test_an_input_without_a_default_has_none() -> None:
    workflow = loaded("inputs: {a: str, b: int?, c: {}}\nnodes: {}")
    assert [i.default for i in workflow.inputs] == [MISSING, MISSING, MISSING]
    assert [i.type for i in workflow.inputs] == ["str", "int?", "json"]


EDITOR = {
    "name": "drawn",
    "viewport": {"x": 0, "y": 0, "zoom": 1},
    "inputs": {"urls": {"type": "list[str]"}},
    "nodes": [
        {"id": "each", "type": "flow.ForEach", "position": {"x": 1, "y": 2}, "data": {}},
        {
            "id": "page",
            "type": "t.Fetch",
            "position": {"x": 3, "y": 4},
            "data": {"url": "saved", "attempts": "2", "collapsed": True, "label": "{url}"},
        },
        {
            "id": "row",
            "type": "custom",
            "position": {"x": 5, "y": 6},
            "data": {"type": "t.Row", "properties": {"note": "x"}, "color": "red"},
        },
    ],
    "edges": [
        {
            "id": "e1",
            "source": "inputs",
            "sourceHandle": "urls",
            "target": "each",
            "targetHandle": "items",
        },
        {
            "id": "e2",
            "source": "each",
            "sourceHandle": None,
            "target": "page",
            "targetHandle": "url",
        },
        {
            "id": "e3",
            "source": "page",
            "sourceHandle": "url",
            "target": "row",
            "targetHandle": "url",
        },
        {
            "id": "e4",
            "source": "page",
            "target": "row",
            "targetHandle": "__control__",
            "type": "smoothstep",
        },
    ],
}


def test_an_editors_file_loads_too() -> None:
    workflow = loaded(json.dumps(EDITOR))
    assert [(n.id, n.type, dict(n.properties)) for n in workflow.nodes] == [
        ("each", "flow.ForEach", {}),
        ("page", "t.Fetch", {"attempts": 2}),
        ("row", "t.Row", {"note": "x"}),
    ]
    assert workflow.node("page").ui == {"position": {"x": 3, "y": 4}, "data": {"collapsed": True}}
    assert workflow.node("page").label == "{url}"
    assert [(e.source_slot, e.target_slot, e.kind) for e in workflow.edges] == [
        ("urls", "items", "data"),
        ("output", "url", "data"),
        ("url", "url", "data"),
        ("", "", "control"),
    ]
    assert analyse(workflow).scopes["row"] == ("each", "row()")
    assert loaded(json.dumps(workflow.canonical())).canonical() == workflow.canonical()


def test_a_control_edge_of_an_editor_leads_to_no_slot() -> None:
    edges = [{"source": "page", "target": "row", "targetHandle": "note", "edge_type": "control"}]
    _, problems = examine(json.dumps({**EDITOR, "edges": edges}), catalog=CATALOG)
    assert ("control-slot", "row") in [(p.rule, p.node) for p in problems]
    assert "'note'" in next(p.message for p in problems if p.rule == "control-slot")


def test_an_editors_file_cannot_make_a_step_safe_to_repeat() -> None:
    nodes = [{"id": "a", "type": "t.Row", "position": {}, "data": {"properties": {}}}]
    claims = {
        "id": "b",
        "type": "t.Shout",
        "position": {},
        "data": {"text": "x", "retry_safe": True},
    }
    text = json.dumps({"nodes": [*nodes, claims], "edges": []})
    assert rules(text) == ["code-only"]


def test_warnings_do_not_keep_a_workflow_from_loading() -> None:
    text = """
inputs: {a: str, b: str}
nodes:
  w: {type: t.Words, text: $inputs.a}
"""
    assert loaded(text).name == "workflow"
    workflow, problems = examine(text, catalog=CATALOG)
    assert workflow is not None
    assert [(p.severity, p.rule, p.line, p.node) for p in problems] == [
        ("warning", "unused-input", 2, ""),
        ("warning", "cannot-resume", 4, "w"),
    ]
    assert [p.severity for p in strictly(problems)] == ["error", "error"]


def test_per_item_work_that_waits_for_all_items_is_warned_of() -> None:
    """kernel.md §2, back-pressure: the static analysis predicts it for `validate`."""
    text = """
inputs: {words: "list[str]"}
nodes:
  n: {type: t.Count, text: "$inputs.words[*]"}
  sum: {type: t.Total, values: "$n[]"}
  share: {type: t.Share, value: $n, of: $sum}
"""
    _, problems = examine(text, catalog=CATALOG)
    assert [(p.rule, p.line, p.node, p.slot) for p in problems] == [
        ("holds-all-items", 6, "share", "of")
    ]


def test_collecting_a_fan_out_and_using_the_list_elsewhere_is_no_warning() -> None:
    text = """
inputs: {words: "list[str]", more: "list[str]"}
nodes:
  n: {type: t.Count, text: "$inputs.words[*]"}
  sum: {type: t.Total, values: "$n[]"}
  m: {type: t.Count, text: "$inputs.more[*]"}
  share: {type: t.Share, value: $m, of: $sum}
"""
    assert rules(text) == []


def test_checking_a_loaded_workflow_again_finds_what_loading_found() -> None:
    workflow = loaded(PAGES)
    assert check(workflow) == ()
    assert check(workflow, CATALOG) == ()


def test_checking_finds_what_is_wrong_with_a_workflow_made_by_hand() -> None:
    workflow = loaded(PAGES)
    broken = Workflow(name="x", nodes=workflow.nodes[:2], edges=workflow.edges[1:2])
    assert [p.rule for p in check(broken, CATALOG)] == ["missing-slot"]
    assert [p.rule for p in check(broken)] == ["unknown-type", "unknown-type"]


def test_several_edges_may_lead_into_many_collect_stream_and_merge_slots() -> None:
    """row: K1-JOIN-MANY"""
    workflow = loaded(
        dedent("""
        inputs: {urls: "list[str]"}
        nodes:
          a: {type: t.Shout, text: "$inputs.urls[*]"}
          b: {type: t.Shout, text: "$inputs.urls[*]"}
          many: {type: t.Pick, values: [$a, $b]}
          merged: {type: t.Any, left: [$a, $b]}
          gathered: {type: flow.Collect, items: ["$a[]", "$b[]"]}
          read: {type: t.Store, lines: [$a, $b]}
        """)
    )
    counts = {n.id: len(workflow.edges_into(n.id)) for n in workflow.nodes}
    assert counts["many"] == counts["merged"] == counts["gathered"] == counts["read"] == 2
