"""A workflow as a node, inlined when it is loaded (kernel.md §1 and §5).

row: K1-FAN-SUBWORKFLOW, S1-SUBWORKFLOW
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import spec_nodes as t
from nested_files import INNER, nested, opener, problems, wires
from spec_nodes import CATALOG, loaded

from nightwarden.errors import SpecError
from nightwarden.nodes.define import node
from nightwarden.nodes.registry import Registry
from nightwarden.spec.build import Builder, workflow
from nightwarden.spec.catalog import TIES
from nightwarden.spec.check import check
from nightwarden.spec.load import load, named_files
from nightwarden.spec.nested import DEEPEST, CannotOpen
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import SecretRef, Workflow

OUTER = """
name: outer
inputs: {url: str}
nodes:
  page: {type: t.Fetch, url: $inputs.url}
  sub: {type: flow.Subworkflow, workflow: inner.yaml, text: $page.text, times: 3}
  end: {type: t.Count, text: $sub.loud}
outputs: {end: $end, row: $sub.row}
"""


def as_json(text: str) -> Workflow:
    """A workflow loaded from canonical JSON."""
    return load(text, catalog=CATALOG, format="json")


def built_inner() -> Builder:
    with workflow("inner", catalog=CATALOG) as w:
        text, times = w.input("text", str), w.input("times", int, default=2)
        loud = w.add(t.shout, id="loud", text=text, times=times)
        row = w.add(t.row, id="row", said=loud, times=times)
        w.output("loud", loud)
        w.output("row", row)
    return w


def built_outer(inner: object) -> Workflow:
    with workflow("outer", catalog=CATALOG) as w:
        page = w.add(t.fetch, id="page", url=w.input("url", str))
        sub = w.add(inner, id="sub", text=page.slot("text"), times=3)
        w.output("end", w.add(t.count, id="end", text=sub.slot("loud")))
        w.output("row", sub.slot("row"))
    return w.build()


# -- what is inlined --


def test_inner_nodes_take_the_place_of_the_node_and_nothing_else_is_left() -> None:
    made = nested(OUTER, inner=INNER)
    assert [n.id for n in made.nodes] == ["page", "sub/loud", "sub/row", "end"]
    assert wires(made) == [
        "inputs.url > page.url",
        "page.text > sub/loud.text",
        "sub/loud.output > sub/row.said",
        "sub/loud.output > end.text",
    ]
    assert made.node("sub/loud").properties == {"times": 3}
    assert made.outputs == {"end": "end.output", "row": "sub/row.output"}


def test_yaml_json_and_python_give_the_same_inlined_canonical_form() -> None:
    from_yaml = nested(OUTER, inner=INNER)
    text = json.dumps(from_yaml.canonical())
    assert "flow.Subworkflow" not in text
    assert json.dumps(as_json(text).canonical()) == text
    assert json.dumps(built_outer(built_inner().build()).canonical()) == text
    assert as_json(text).digest() == from_yaml.digest()


def test_a_workflow_still_being_built_in_python_is_finished_when_it_is_added() -> None:
    assert built_outer(built_inner()).digest() == nested(OUTER, inner=INNER).digest()


def test_the_definitions_hash_covers_what_is_inside() -> None:
    changed = INNER.replace("type: t.Shout,", "type: t.Shout, loud: false,")
    assert nested(OUTER, inner=INNER).digest() != nested(OUTER, inner=changed).digest()


def test_a_file_in_json_names_a_subworkflow_like_any_other() -> None:
    sub = {"id": "sub", "type": "flow.Subworkflow", "properties": {"workflow": "inner.yaml"}}
    sub["properties"] |= {"text": "$inputs.text"}  # type: ignore[operator]
    outer = {"name": "outer", "inputs": {"text": "str"}, "nodes": [sub]}
    made = nested(json.dumps(outer), "outer.json", inner=INNER)
    assert wires(made)[0] == "inputs.text > sub/loud.text"
    edge = {"source": "inputs", "source_slot": "text", "target": "sub", "target_slot": "text"}
    sub["properties"] = {"workflow": "inner.yaml"}
    explicit = nested(json.dumps({**outer, "edges": [edge]}), "outer.json", inner=INNER)
    assert explicit.digest() == made.digest()


def test_an_editors_file_has_subworkflows_too() -> None:
    outer = {
        "nodes": [
            {"id": "p", "type": "t.Shout", "position": {}, "data": {"text": "x"}},
            {
                "id": "sub",
                "type": "flow.Subworkflow",
                "position": {},
                "data": {"workflow": "inner.yaml", "text": "saved before it was wired"},
            },
        ],
        "edges": [
            {
                "source": "p",
                "target": "sub",
                "sourceHandle": "output",
                "targetHandle": "text",
            }
        ],
    }
    made = nested(json.dumps(outer), "outer.json", inner=INNER)
    assert wires(made)[0] == "p.output > sub/loud.text"


def test_what_was_inlined_passes_every_check_again() -> None:
    made = nested(OUTER, inner=INNER)
    assert check(made, CATALOG) == ()


def test_ids_with_a_slash_stand_in_the_canonical_form_only() -> None:
    [problem] = problems({"outer.yaml": "nodes:\n  a/b: {type: t.Row}\n"})
    assert (problem.rule, problem.node) == ("bad-id", "a/b")
    listed = {"nodes": [{"id": "a/b", "type": "t.Row"}], "name": "x"}
    assert as_json(json.dumps(listed)).nodes[0].id == "a/b"
    for bad in ("a/", "/a", "a//b", "a/inputs", "secrets/a"):
        with pytest.raises(SpecError, match="bad-id"):
            as_json(json.dumps({"nodes": [{"id": bad, "type": "t.Row"}]}))


# -- inputs --


def test_an_input_that_several_nodes_use_is_wired_to_each_of_them() -> None:
    inner = """
inputs: {text: str}
nodes:
  a: {type: t.Shout, text: $inputs.text}
  b: {type: t.Count, text: $inputs.text}
"""
    outer = """
inputs: {u: str}
nodes:
  sub: {type: flow.Subworkflow, workflow: i.yaml, text: $inputs.u}
"""
    assert wires(nested(outer, i=inner)) == ["inputs.u > sub/a.text", "inputs.u > sub/b.text"]


def test_an_input_that_is_left_out_takes_its_default() -> None:
    made = nested(OUTER.replace(", times: 3", ""), inner=INNER)
    assert made.node("sub/loud").properties == {"times": 2}
    assert made.node("sub/row").properties == {"times": 2}


def test_a_default_stays_as_what_a_wired_slot_falls_back_on() -> None:
    """kernel.md §1: a default is used where nothing was taken."""
    outer = """
nodes:
  n: {type: t.Count, text: x}
  sub: {type: flow.Subworkflow, workflow: inner.yaml, text: y, times: $n}
"""
    made = nested(outer, inner=INNER)
    assert "n.output > sub/loud.times" in wires(made)
    assert made.node("sub/loud").properties == {"text": "y", "times": 2}
    assert check(made) == ()
    assert as_json(json.dumps(made.canonical())).canonical() == made.canonical()


def test_only_a_node_of_a_subworkflow_may_be_wired_and_have_a_value() -> None:
    text = "nodes:\n  n: {type: t.Count, text: x}\n  a: {type: t.Shout, text: x, times: 2}\n"
    explicit = text + "edges:\n  - {source: n, target: a, target_slot: times}\n"
    assert [p.rule for p in problems({"outer.yaml": explicit})] == ["wired-and-given"]


def test_an_input_wired_to_a_run_input_needs_nothing_to_fall_back_on() -> None:
    outer = OUTER.replace("times: 3", "times: $inputs.n").replace("url: str", "url: str, n: int")
    assert nested(outer, inner=INNER).node("sub/loud").properties == {}


def test_values_are_made_what_the_input_declares() -> None:
    made = nested(OUTER.replace("times: 3", 'times: "4"'), inner=INNER)
    assert made.node("sub/row").properties == {"times": 4}


def test_a_secret_goes_straight_to_the_slots_inside() -> None:
    """supervision.md §4: a secret is never part of a value."""
    made = nested(OUTER.replace("$page.text", "$secrets.WORD"), inner=INNER)
    assert made.node("sub/loud").properties["text"] == SecretRef("WORD")
    assert "$secrets.WORD" in json.dumps(made.canonical())


def test_a_secret_that_would_become_part_of_a_value_is_refused() -> None:
    inner = "inputs: {a: str}\nnodes:\n  p: {type: t.Pick, values: [$inputs.a, $q]}\n"
    inner += "  q: {type: t.Shout, text: x}\n"
    outer = "nodes:\n  sub:\n    type: flow.Subworkflow\n    workflow: i.yaml\n    a: $secrets.A\n"
    [problem] = problems({"outer.yaml": outer, "i.yaml": inner})
    assert (problem.rule, problem.line, problem.node, problem.slot) == (
        "secret-in-value",
        5,
        "sub",
        "a",
    )


@pytest.mark.parametrize(
    ("inner", "given", "value", "edge"),
    [
        (
            "inputs: {a: path}\nnodes:\n  r: {type: t.Row, x: $inputs.a}\n",
            "out.csv",
            Path("out.csv"),
            "sub/inputs.a.output > sub/r.x",
        ),
        (
            "inputs: {a: str}\nnodes:\n  p: {type: t.Pick, values: [$q, $inputs.a]}\n"
            "  q: {type: t.Shout, text: x}\n",
            "word",
            "word",
            "sub/inputs.a.output > sub/p.values",
        ),
        (
            "inputs: {a: str}\nnodes:\n  p: {type: t.Any, left: $inputs.a, right: $q}\n"
            "  q: {type: t.Shout, text: x}\n",
            "word",
            "word",
            "sub/inputs.a.output > sub/p.left",
        ),
    ],
    ids=["a slot that takes anything", "a list of others", "a merge"],
)
def test_a_value_becomes_a_node_where_it_cannot_be_a_property(
    inner: str, given: str, value: object, edge: str
) -> None:
    outer = f"nodes:\n  sub: {{type: flow.Subworkflow, workflow: i.yaml, a: {given}}}\n"
    made = nested(outer, i=inner)
    assert edge in wires(made)
    again = as_json(json.dumps(made.canonical()))
    assert made.node("sub/inputs.a").properties["value"] == value
    assert again.node("sub/inputs.a").properties["value"] == value
    assert again.canonical() == made.canonical()
    assert again.types["sub/inputs.a"] == made.types["sub/inputs.a"]


# -- outputs --


def test_without_outputs_the_unconnected_slots_are_what_it_puts_out() -> None:
    inner = "inputs: {u: str}\nnodes:\n  page: {type: t.Fetch, url: $inputs.u}\n"
    outer = """
nodes:
  sub: {type: flow.Subworkflow, workflow: i.yaml, u: x}
  whole: {type: t.Row, page: $sub, same: $sub.page, text: $sub.text}
"""
    assert wires(nested(outer, i=inner)) == [
        "sub/page.output > whole.page",
        "sub/page.output > whole.same",
        "sub/page.text > whole.text",
    ]


def test_slots_that_stay_inside_are_no_outputs_of_the_run() -> None:
    inner = INNER.replace("outputs: {loud: $loud, row: $row}", "outputs: {loud: $loud}")
    outer = "nodes:\n  sub: {type: flow.Subworkflow, workflow: i.yaml, text: x}\n"
    assert nested(outer, i=inner).outputs == {"sub": "sub/loud.output"}
    assert nested(outer, i=INNER).outputs == {
        "sub.loud": "sub/loud.output",
        "sub.row": "sub/row.output",
    }


def test_an_input_is_put_out_through_a_step_only() -> None:
    for given in ("$inputs.text", "inputs.text"):
        inner = INNER.replace("row: $row}", f"row: {given}}}")
        [problem] = problems({"outer.yaml": OUTER, "inner.yaml": inner})
        assert (problem.rule, problem.file) == ("bad-output", "inner.yaml")
        assert problem.remedy.endswith("type: flow.Value, value: $inputs.text")
    inner = INNER.replace(
        "row: {type: t.Row", "row: {type: flow.Value, value: $inputs.text}\n  x: {type: t.Row"
    )
    assert "page.text > sub/row.value" in wires(nested(OUTER, inner=inner))


def test_what_is_put_out_once_an_item_is_collected_like_anything() -> None:
    inner = """
inputs: {words: "list[str]"}
nodes:
  loud: {type: t.Shout, text: "$inputs.words[*]"}
"""
    outer = """
inputs: {words: "list[str]"}
nodes:
  sub: {type: flow.Subworkflow, workflow: i.yaml, words: $inputs.words}
  each: {type: t.Count, text: $sub}
  album: {type: t.Album, titles: "$sub[]"}
"""
    made = nested(outer, i=inner)
    scopes = analyse(made).scopes
    assert scopes["each"] == ("sub/inputs.words[*]",)
    assert scopes["album"] == ()
    assert "sub.output > album.titles" not in wires(made)
    assert "sub/loud.output > sub.loud[].items" in wires(made)


def test_two_subworkflows_have_fan_outs_of_their_own() -> None:
    inner = 'inputs: {w: "list[str]"}\nnodes:\n  loud: {type: t.Shout, text: "$inputs.w[*]"}\n'
    outer = """
inputs: {w: "list[str]"}
nodes:
  one: {type: flow.Subworkflow, workflow: i.yaml, w: $inputs.w}
  two: {type: flow.Subworkflow, workflow: i.yaml, w: $inputs.w}
  both: {type: t.Row, a: $one, b: $two}
"""
    [problem] = problems({"outer.yaml": outer, "i.yaml": inner})
    assert (problem.rule, problem.node, problem.file) == (
        "incompatible-scopes",
        "both",
        "outer.yaml",
    )


# -- where it lies --

IN_A_FAN_OUT = """
inputs: {urls: "list[str]"}
nodes:
  page: {type: t.Fetch, url: "$inputs.urls[*]"}
  most: {type: t.Count, text: x}
  sub: {type: flow.Subworkflow, workflow: i.yaml, text: $page.text, n: $most}
"""


def test_inside_a_fan_out_every_node_runs_once_an_item() -> None:
    inner = """
inputs: {text: str, n: int, langs: {type: "list[str]", default: [de, fr]}}
nodes:
  alone: {type: t.Shout, text: hello}
  broadcast: {type: t.Row, n: $inputs.n}
  fanned: {type: t.Row, lang: "$inputs.langs[*]", text: $inputs.text, hello: $alone}
  joined: {type: t.Row, a: $alone, b: $broadcast, c: $inputs.text}
"""
    made = nested(IN_A_FAN_OUT, i=inner)
    item = ("inputs.urls[*]",)
    assert {i: s for i, s in analyse(made).scopes.items() if i.startswith("sub/")} == {
        "sub/alone": item,
        "sub/broadcast": item,
        "sub/inputs.langs[*]": item,
        "sub/fanned": (*item, "sub/inputs.langs[*]"),
        "sub/joined": item,
    }


def ties(made: Workflow) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for edge in made.edges:
        if edge.target_slot in TIES:
            tie = f"{edge.source}.{edge.source_slot} {edge.target_slot}"
            found.setdefault(edge.target, []).append(tie)
    return found


def test_only_what_does_not_follow_its_inputs_is_tied_to_them() -> None:
    inner = """
inputs: {text: str, n: int}
nodes:
  follows: {type: t.Shout, text: $inputs.text}
  below: {type: t.Shout, text: $follows, times: $inputs.n}
  source: {type: t.Shout, text: hello}
  below_source: {type: t.Count, text: $source}
  broadcast: {type: t.Row, n: $inputs.n}
"""
    assert ties(nested(IN_A_FAN_OUT, i=inner)) == {
        "sub/source": ["page.text (sub.text)", "most.output (sub.n)"],
        "sub/broadcast": ["page.text (sub.text)"],
        "sub/below": ["page.text (sub.text)"],
    }


def test_what_falls_back_on_a_default_is_tied_to_what_must_have_come() -> None:
    inner = """
inputs: {text: str, n: {type: int, default: 1}}
nodes:
  a: {type: t.Shout, text: $inputs.text, times: $inputs.n}
  b: {type: t.Row, n: $inputs.n}
"""
    outer = """
nodes:
  page: {type: t.Fetch, url: x}
  count: {type: t.Count, text: x}
  sub: {type: flow.Subworkflow, workflow: i.yaml, text: $page.text, n: $count}
"""
    assert ties(nested(outer, i=inner)) == {"sub/b": ["page.text (sub.text)"]}


def test_of_two_nodes_of_one_name_the_first_is_meant() -> None:
    outer = """
- {id: s, type: t.Row, x: 1}
- {id: s, type: flow.Subworkflow, workflow: inner.yaml, text: x}
- {id: t, type: flow.Subworkflow, workflow: inner.yaml, text: x}
- {id: t, type: t.Row, x: 1}
"""
    listed = "nodes:\n" + "".join(f"  {line}\n" for line in outer.split("\n") if line)
    told = problems({"inner.yaml": INNER, "outer.yaml": listed})
    assert [(p.rule, p.line, p.node) for p in told] == [
        ("duplicate-id", 3, "s"),
        ("duplicate-id", 5, "t"),
    ]


def test_a_loop_inside_begins_with_what_it_is_given() -> None:
    inner = """
inputs: {start: {type: int, default: 1}}
nodes:
  loop: {type: flow.Loop, initial: $inputs.start, next: $more, max_iterations: 3}
  more: {type: t.Count, text: x, controls: []}
  end: {type: t.Row, x: $loop.value}
"""
    inner = inner.replace("text: x, controls: []", "text: $said").replace(
        "  end:", "  said: {type: t.Say, n: $loop.value}\n  end:"
    )

    @node(type="t.Say")
    def say(n: int) -> str:
        return str(n)

    registry = Registry()
    for target in (*t.ALL, say):
        registry.add(target)
    files = {"i.yaml": inner}
    given = "nodes:\n  s: {type: flow.Subworkflow, workflow: i.yaml, start: 5}\n"
    made = load(given, catalog=registry, open=opener(files, "outer.yaml"))
    assert made.node("s/loop").properties == {"max_iterations": 3, "initial": 5}
    wired = "nodes:\n  n: {type: t.Count, text: x}\n" + given[7:].replace("5", "$n")
    made = load(wired, catalog=registry, open=opener(files, "outer.yaml"))
    assert "n.output > s/inputs.start.value" in wires(made)
    assert made.node("s/inputs.start").properties == {"value": 1, "of": "int"}


def test_a_tie_to_what_can_be_done_without_is_loose() -> None:
    @node(type="t.Maybe")
    def maybe(text: str | t.Absent) -> str:  # type: ignore[name-defined]
        return str(text)

    registry = Registry()
    for target in (*t.ALL, maybe):
        registry.add(target)
    inner = load(
        "inputs: {a: str}\nnodes:\n  m: {type: t.Maybe, text: $inputs.a}\n"
        "  s: {type: t.Shout, text: x}\n",
        catalog=registry,
    )
    with workflow("x", catalog=registry) as w:
        w.add(replace(inner, catalog=registry), id="sub", a=w.add(t.shout, id="p", text="y"))
    assert ties(w.build()) == {"sub/s": ["p.output (sub.a~)"]}


def test_nothing_is_tied_where_everything_comes_with_the_run() -> None:
    inner = "inputs: {a: str}\nnodes:\n  m: {type: t.Row, x: $inputs.a}\n  s: {type: t.Row, x: 1}\n"
    outer = (
        "inputs: {u: str}\nnodes:\n  sub: {type: flow.Subworkflow, workflow: i.yaml, a: $inputs.u}"
    )
    made = nested(outer, i=inner)
    assert ties(made) == {}
    again = """
nodes:
  p: {type: t.Shout, text: x}
  o: {type: flow.Subworkflow, workflow: m.yaml, u: $p}
"""
    assert ties(nested(again, m=outer, i=inner)) == {"o/sub/s": ["p.output (o.u)"]}


def test_ties_are_part_of_the_canonical_form() -> None:
    made = nested(IN_A_FAN_OUT, i="inputs: {text: str, n: int}\nnodes:\n  s: {type: t.Row, x: 1}")
    again = as_json(json.dumps(made.canonical()))
    assert again.canonical() == made.canonical()
    assert analyse(again).scopes == analyse(made).scopes
    assert again.types["sub/s"] == made.types["sub/s"]
    assert "(sub.text)" in made.types["sub/s"].inputs


def test_inputs_under_unrelated_fan_outs_are_refused_as_at_any_node() -> None:
    outer = """
inputs: {u: "list[str]", v: "list[str]"}
nodes:
  sub:
    type: flow.Subworkflow
    workflow: i.yaml
    a: $inputs.u[*]
    b: $inputs.v[*]
"""
    inner = "inputs: {a: str, b: str}\nnodes:\n  x: {type: t.Row, a: $inputs.a, b: $inputs.b}\n"
    [problem] = problems({"outer.yaml": outer, "i.yaml": inner})
    assert (problem.rule, problem.line, problem.node, problem.slot) == (
        "incompatible-scopes",
        8,
        "sub",
        "b",
    )


# -- within one another --


def test_subworkflows_lie_within_one_another() -> None:
    middle = """
inputs: {word: str}
nodes:
  sub: {type: flow.Subworkflow, workflow: inner.yaml, text: $inputs.word}
  n: {type: t.Count, text: $sub.loud}
"""
    outer = """
nodes:
  page: {type: t.Fetch, url: x}
  mid: {type: flow.Subworkflow, workflow: middle.yaml, word: $page.text}
  end: {type: t.Row, n: $mid.n, row: $mid.sub}
"""
    made = nested(outer, middle=middle, inner=INNER)
    assert [n.id for n in made.nodes] == ["page", "mid/sub/loud", "mid/sub/row", "mid/n", "end"]
    assert "page.text > mid/sub/loud.text" in wires(made)
    assert "mid/sub/row.output > end.row" in wires(made)


def test_a_workflow_that_contains_itself_is_refused_and_the_chain_named() -> None:
    a = "nodes:\n  x:\n    type: flow.Subworkflow\n    workflow: parts/b.yaml\n"
    b = "nodes:\n  y:\n    type: flow.Subworkflow\n    workflow: ../outer.yaml\n"
    [problem] = problems({"outer.yaml": a, "parts/b.yaml": b})
    assert (problem.rule, problem.file, problem.line) == ("recursion", "parts/b.yaml", 4)
    assert problem.message.endswith("outer.yaml → parts/b.yaml → outer.yaml")


def test_workflows_lie_within_one_another_only_so_deep() -> None:
    def file(n: int) -> str:
        return f"nodes:\n  x: {{type: flow.Subworkflow, workflow: f{n}.yaml}}\n"

    last = "nodes:\n  x: {type: t.Row}\n"
    deep = {f"f{n}.yaml": file(n + 1) for n in range(DEEPEST)} | {f"f{DEEPEST}.yaml": last}
    assert problems(deep, "f0.yaml") == ()
    deeper = {f"f{n}.yaml": file(n + 1) for n in range(DEEPEST + 1)} | {
        f"f{DEEPEST + 1}.yaml": last
    }
    assert [p.rule for p in problems(deeper, "f0.yaml")] == ["too-deep"]


def test_what_grows_without_measure_is_refused() -> None:
    twice = "nodes:\n" + "".join(
        f"  n{i}: {{type: flow.Subworkflow, workflow: f%d.yaml}}\n" for i in range(4)
    )
    files = {f"f{n}.yaml": twice.replace("%d", str(n + 1)) for n in range(9)}
    files["f9.yaml"] = "nodes:\n  x: {type: t.Row}\n"
    assert {p.rule for p in problems(files, "f0.yaml")} == {"too-large"}


# -- a value as a node --


def test_a_value_as_a_node_is_of_the_type_it_names() -> None:
    made = loaded(
        "nodes:\n  v: {type: flow.Value, value: 5, of: float}\n"
        "  w: {type: t.Config, values: {}, ratio: $v}\n"
    )
    assert made.types["v"].outputs["output"].type is float
    assert made.node("v").properties == {"value": 5.0, "of": "float"}
    wrong = "nodes:\n  v: {type: flow.Value, value: word, of: int}\n"
    wrong += "  w: {type: flow.Value, value: 1, of: itn}\n"
    told = problems({"outer.yaml": wrong})
    assert [(p.rule, p.node, p.slot) for p in told] == [
        ("property-type", "v", "value"),
        ("property-type", "w", "of"),
    ]


def test_a_value_wired_through_is_of_the_type_of_what_is_wired() -> None:
    text = "nodes:\n  n: {type: t.Count, text: x}\n  v: {type: flow.Value, value: $n}\n"
    assert loaded(text).types["v"].outputs["output"].type is int
    told = problems({"outer.yaml": text + "  s: {type: t.Shout, text: $v}\n"})
    assert [(p.rule, p.node, p.slot) for p in told] == [("edge-type", "s", "text")]


# -- what is wrong --

BAD = [
    (
        "a file that is not there",
        "nodes:\n  s:\n    type: flow.Subworkflow\n    workflow: no.yaml\n",
        [("subworkflow-file", "outer.yaml", 4, "s", "workflow")],
    ),
    (
        "no file at all",
        "nodes:\n  s: {type: flow.Subworkflow, text: x}\n",
        [("missing-slot", "outer.yaml", 2, "s", "workflow")],
    ),
    (
        "a file that is wired",
        "nodes:\n  n: {type: t.Shout, text: x}\n  s: {type: flow.Subworkflow, workflow: $n}\n",
        [("bad-value", "outer.yaml", 3, "s", "workflow")],
    ),
    (
        "a file that is no text",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: 5}\n",
        [("bad-value", "outer.yaml", 2, "s", "workflow")],
    ),
    (
        "inputs that are not there, are missing, do not fit",
        "nodes:\n  s:\n    type: flow.Subworkflow\n    workflow: inner.yaml\n    txt: x\n"
        "    times: lots\n",
        [
            ("missing-slot", "outer.yaml", 2, "s", "text"),
            ("unknown-slot", "outer.yaml", 5, "s", "txt"),
            ("property-type", "outer.yaml", 6, "s", "times"),
        ],
    ),
    (
        "an edge of the wrong type",
        "nodes:\n  n: {type: t.Count, text: x}\n  s:\n    type: flow.Subworkflow\n"
        "    workflow: inner.yaml\n    text: $n\n",
        [("edge-type", "outer.yaml", 6, "s", "text")],
    ),
    (
        "a value that fits the input, but nothing the input leads to",
        "inputs: {u: str}\nnodes:\n  s:\n    type: flow.Subworkflow\n    workflow: any.yaml\n"
        "    v: $inputs.u\n  z:\n    type: flow.Subworkflow\n    workflow: any.yaml\n    v: word\n",
        [
            ("edge-type", "outer.yaml", 6, "s", "v"),
            ("property-type", "outer.yaml", 10, "z", "v"),
        ],
    ),
    (
        "two edges into one input",
        "nodes:\n  n: {type: t.Shout, text: x}\n"
        "  s: {type: flow.Subworkflow, workflow: inner.yaml, text: [$n, $n]}\n",
        [("several-edges", "outer.yaml", 3, "s", "text")],
    ),
    (
        "outputs that are not there",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: inner.yaml, text: x}\n"
        "  a: {type: t.Row, x: $s.no}\n  b: {type: t.Row, x: $s}\noutputs: {o: $s.nor}\n",
        [
            ("unknown-output", "outer.yaml", 3, "a", "x"),
            ("which-slot", "outer.yaml", 4, "b", "x"),
            ("unknown-output", "outer.yaml", 5, "", ""),
        ],
    ),
    (
        "a step inside",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: inner.yaml, text: x}\n"
        "  a: {type: t.Row, x: $s/loud}\n",
        [("bad-reference", "outer.yaml", 3, "a", "x")],
    ),
    (
        "what a subworkflow has not as a whole",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: inner.yaml, text: x, label: hi}\n"
        "  r: {type: flow.Subworkflow, workflow: inner.yaml, text: x, run: {timeout: 1}}\n"
        "  c: {type: flow.Subworkflow, workflow: inner.yaml, text: x, controls: [a]}\n"
        "  a: {type: t.Row, controls: [s]}\n",
        [
            ("not-as-a-whole", "outer.yaml", 2, "s", ""),
            ("not-as-a-whole", "outer.yaml", 3, "r", ""),
            ("not-as-a-whole", "outer.yaml", 4, "a", ""),
            ("not-as-a-whole", "outer.yaml", 5, "s", ""),
        ],
    ),
    (
        "a promise that only code can make",
        "nodes:\n  s:\n    type: flow.Subworkflow\n    workflow: inner.yaml\n    text: x\n"
        "    retry_safe: true\n",
        [("code-only", "outer.yaml", 6, "s", "retry_safe")],
    ),
    (
        "faults of its own, and of those inside",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: bad.yaml, n: $no}\n"
        "  z: {type: flow.Subworkflow, workflow: bad.yaml}\n  t: {type: t.Rov, x: $s.any}\n"
        "  u: {type: flow.Subworkflow, workflow: broken.yaml}\n",
        [
            ("unknown-node", "outer.yaml", 2, "s", "n"),
            ("unknown-type", "outer.yaml", 4, "t", ""),
            ("unknown-type", "bad.yaml", 2, "a", ""),
            ("missing-slot", "bad.yaml", 3, "b", "url"),
            ("yaml-syntax", "broken.yaml", 1, "", ""),
        ],
    ),
    (
        "a circle through it",
        "nodes:\n  s: {type: flow.Subworkflow, workflow: inner.yaml, text: $n}\n"
        "  n: {type: t.Shout, text: $s.loud}\n",
        [("cycle", "outer.yaml", 3, "n", "")],
    ),
]
FILES = {
    "inner.yaml": INNER,
    "any.yaml": "inputs: {v: json}\nnodes:\n  a: {type: t.Share, value: $inputs.v, of: 2}\n",
    "bad.yaml": "nodes:\n  a: {type: t.Nope}\n  b: {type: t.Fetch}\n",
    "broken.yaml": "nodes: [",
}


@pytest.mark.parametrize(("outer", "found"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_everything_is_reported_at_once_each_with_its_file(
    outer: str, found: list[tuple[str, str, int, str, str]]
) -> None:
    told = problems({**FILES, "outer.yaml": outer})
    errors = [p for p in told if p.severity == "error"]
    assert [(p.rule, p.file, p.line, p.node, p.slot) for p in errors] == found


def test_a_fault_inside_that_shows_only_outside_is_told_where_it_can_be_mended() -> None:
    middle = """
inputs: {v: json}
nodes:
  sub: {type: flow.Subworkflow, workflow: any.yaml, v: $inputs.v}
"""
    outer = """inputs: {u: str}
nodes:
  m:
    type: flow.Subworkflow
    workflow: m.yaml
    v: $inputs.u
"""
    [problem] = problems({**FILES, "m.yaml": middle, "outer.yaml": outer})
    assert (problem.rule, problem.file, problem.line) == ("edge-type", "outer.yaml", 6)
    assert (problem.node, problem.slot) == ("m", "v")


def test_warnings_of_inner_files_are_told_once_with_their_file() -> None:
    inner = """
inputs: {text: str, unused: {type: str, default: x}}
nodes:
  w: {type: t.Words, text: $inputs.text}
"""
    outer = """
inputs: {u: str, v: str}
nodes:
  a: {type: flow.Subworkflow, workflow: i.yaml, text: $inputs.u, unused: $inputs.v}
  b: {type: flow.Subworkflow, workflow: i.yaml, text: $inputs.u}
"""
    told = problems({"outer.yaml": outer, "i.yaml": inner})
    assert [(p.severity, p.rule, p.file, p.line, p.node) for p in told] == [
        ("warning", "unused-input", "i.yaml", 2, ""),
        ("warning", "cannot-resume", "i.yaml", 4, "w"),
    ]


def test_what_a_subworkflow_cannot_say_for_the_whole_run_is_told() -> None:
    inner = INNER + "settings: {a: 1}\nprompts: {b: c}\n"
    told = problems({"outer.yaml": OUTER, "inner.yaml": inner})
    assert [(p.severity, p.rule, p.file, p.node) for p in told] == [
        ("warning", "ignored-key", "outer.yaml", "sub")
    ]
    assert "prompts, settings" in told[0].message


def test_a_text_without_an_opener_cannot_have_subworkflows() -> None:
    with pytest.raises(SpecError, match=r"cannot be read here \[subworkflow-file\]"):
        loaded(OUTER)


def test_who_opens_files_decides_what_may_be_opened() -> None:
    def closed(name: str) -> object:
        raise CannotOpen(f"{name} is private", "ask its owner")

    with pytest.raises(SpecError, match=r"inner\.yaml is private .* ask its owner"):
        load(OUTER, catalog=CATALOG, open=closed)  # type: ignore[arg-type]


# -- in Python --


def test_a_workflow_is_called_by_its_name_where_it_has_no_id() -> None:
    inner = replace(built_inner().build(), name="My flow, 2nd")
    with workflow("x", catalog=CATALOG) as w:
        w.add(inner, text="a")
        w.add(inner, text="b")
    assert [n.id for n in w.build().nodes if n.type == "t.Shout"] == [
        "my_flow_2nd/loud",
        "my_flow_2nd_2/loud",
    ]


def test_two_different_nodes_of_one_name_cannot_meet() -> None:
    @node(type="t.Shout")
    def other(text: str) -> str:
        return text

    with workflow("inner", catalog=Registry()) as inner:
        inner.add(other, id="a", text="x")
    w = workflow("x", catalog=CATALOG)
    w.add(t.shout, id="b", text="x")
    w.add(inner, id="sub")
    with pytest.raises(SpecError, match="type-name-clash"):
        w.build()


def test_a_subworkflow_in_python_is_a_workflow_and_not_a_name() -> None:
    with pytest.raises(SpecError, match="missing-workflow"), workflow("x", catalog=CATALOG) as w:
        w.add("flow.Subworkflow", id="a", workflow="inner.yaml")


def test_mistakes_around_it_name_the_line_of_the_call() -> None:
    w = workflow("x", catalog=CATALOG)
    sub = w.add(built_inner(), id="sub", text=5)
    w.add(t.shout, id="end", text=sub.slot("row"))
    with pytest.raises(SpecError) as caught:
        w.build()
    first, second = caught.value.problems
    assert (first.rule, first.node, first.slot) == ("property-type", "sub", "text")
    assert (second.rule, second.node) == ("edge-type", "end")
    assert second.line == (first.line or 0) + 1


# -- the files a workflow names --


def test_the_files_of_subworkflows_are_known_before_anything_is_loaded() -> None:
    text = """
python: [a.py]
nodes:
  x: {type: flow.Subworkflow, workflow: one.yaml}
  y: {type: t.Row, workflow: no.yaml}
  z: {type: flow.Subworkflow, properties: {workflow: two.yaml}}
"""
    named = named_files(text)
    assert (named.python, named.workflows) == (("a.py",), ("one.yaml", "two.yaml"))
    editor = {"nodes": [{"id": "x", "data": {"type": "flow.Subworkflow", "workflow": "3.yaml"}}]}
    assert named_files(json.dumps(editor)).workflows == ("3.yaml",)
    assert named_files("nodes: [").workflows == ()


def test_python_files_of_subworkflows_are_asked_for_as_seen_from_outside() -> None:
    files = {
        "outer.yaml": "python: [own.py]\nnodes: {m: {type: flow.Subworkflow, workflow: a/m.yaml}}",
        "a/m.yaml": "python: [own.py]\nnodes: {s: {type: flow.Subworkflow, workflow: b/s.yaml}}",
        "a/b/s.yaml": "python: [s.py]\nnodes: {x: {type: t.Row}}",
    }
    made = load(files["outer.yaml"], catalog=CATALOG, open=opener(files, "outer.yaml"))
    assert made.python == ("own.py", "a/own.py", "a/b/s.py")
