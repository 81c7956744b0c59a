"""Labels, templates and expressions: they name inputs of their own step, and reach no further."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nightwarden.errors import SpecError
from nightwarden.library import workflow
from nightwarden.nodes.registry import Registry
from nightwarden.runtime.failing import label_of
from nightwarden.spec.load import load
from nightwarden.spec.workflow import Workflow


def loaded(*nodes: str) -> Workflow:
    return load("name: t\nnodes:\n" + "".join(f"  {n}\n" for n in nodes), catalog=Registry())


def problems(*nodes: str) -> list[tuple[str, int | None, str, str]]:
    with pytest.raises(SpecError) as caught:
        loaded(*nodes)
    return [(p.rule, p.line, p.message, p.remedy) for p in caught.value.problems]


def test_an_expression_that_names_what_is_not_given_is_refused_at_load() -> None:
    found = problems('m: {type: data.Map, expression: "prize * 2 + n", price: 3}')
    message = "expression names {!r}, and no such input is given"
    assert found == [
        ("unknown-name", 3, message.format("n"), "give it here: n: $node"),
        ("unknown-name", 3, message.format("prize"), "did you mean 'price'?"),
    ]


def test_a_template_that_names_what_is_not_given_is_refused_at_load() -> None:
    found = problems('m: {type: text.Template, template: "{title.x} {when:%Y}", title: x}')
    message = "template names 'when', and no such input is given"
    assert found == [("unknown-name", 3, message, "give it here: when: $node")]


@pytest.mark.parametrize(
    "node",
    [
        'm: {type: data.Map, expression: "[x for x in item if x > least]", item: [1], least: 0}',
        'm: {type: data.Map, expression: "len(item)"}',
        'm: {type: text.Template, template: "{a}{{b}}", a: 1}',
        'm: {type: data.Record, label: "{a}", a: 1}',
    ],
)
def test_what_is_given_bound_or_declared_may_be_named(node: str) -> None:
    assert loaded(node).nodes[0].id == "m"


def test_an_input_whose_wire_is_wrong_is_not_called_missing_as_well() -> None:
    found = problems('m: {type: data.Map, expression: "x + 1", x: $nope}')
    assert [rule for rule, *_ in found] == ["unknown-node"]


def test_names_are_held_against_the_inputs_in_python_too() -> None:
    with pytest.raises(SpecError, match="unknown-name"), workflow("t") as w:
        w.add("data.Map", id="m", expression="y", x=1)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("{b}", "the label names 'b', which is no slot"),
        ("{a.__class__}", "cannot be read: {a.__class__}: names that begin with _ are not allowed"),
        ("{a[_x]}", "cannot be read: {a[_x]}: names that begin with _ are not allowed"),
        ("{a:99999999}", "cannot be read: {a:99999999}: such a width is not allowed"),
    ],
)
def test_a_label_names_inputs_and_reaches_no_further(label: str, message: str) -> None:
    ((rule, line, said, _),) = problems(f'm: {{type: data.Record, label: "{label}", a: 1}}')
    assert (rule, line) == ("bad-label", 3)
    assert message in said


def stranger() -> None: ...


@pytest.mark.parametrize(
    ("label", "value", "text"),
    [
        ("order {a}", 7, "order 7"),
        ("{a.name}", Path("in/x.csv"), "x.csv"),
        ("{a[id]}: {a[tags][0]}", {"id": 3, "tags": ["x"]}, "3: x"),
        ("{a:>4}", 1, "   1"),
        ("{a.__globals__}", stranger, ""),
        ("{a:{a}}", 99_999_999, ""),
        ("{a.nope}", 1, ""),
    ],
)
def test_a_label_that_cannot_be_filled_in_is_empty(
    label: str, value: object | Callable[[], None], text: str
) -> None:
    assert label_of(label, {"a": value}, "frame") == text
