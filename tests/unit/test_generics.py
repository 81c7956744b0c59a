"""Type variables of generic nodes are bound to what is wired in (kernel.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from spec_nodes import Page, loaded, rules

from nightwarden.spec.generics import fill, unify
from nightwarden.spec.workflow import Workflow

T = TypeVar("T")
U = TypeVar("U")


@pytest.mark.parametrize(
    ("pattern", "actual", "bound"),
    [
        (T, str, {T: str}),
        (list[T], list[Page], {T: Page}),
        (list[T], list[str] | None, {T: str}),
        (list[T], str, {}),
        (list[T], Any, {}),
        (T | None, str | None, {T: str}),
        (dict[T, list[U]], dict[str, list[int]], {T: str, U: int}),
        (Sequence[T], list[int], {T: int}),
        (str, int, {}),
    ],
)
def test_a_variable_becomes_what_stands_in_its_place(
    pattern: Any, actual: Any, bound: dict[Any, Any]
) -> None:
    bindings: dict[Any, Any] = {}
    unify(pattern, actual, bindings)
    assert bindings == bound


@pytest.mark.parametrize(
    ("first", "second", "bound"),
    [
        (str, str, str),
        (int, float, float),
        (float, int, float),
        (str, int, Any),
        (str, Any, Any),
        (Any, str, Any),
    ],
)
def test_two_edges_bind_to_what_both_fit_or_to_anything(
    first: Any, second: Any, bound: Any
) -> None:
    bindings: dict[Any, Any] = {}
    unify(T, first, bindings)
    unify(T, second, bindings)
    assert bindings == {T: bound}


def test_what_nothing_binds_is_anything() -> None:
    assert fill(list[T], {}) == list[Any]
    assert fill(dict[str, T | None], {T: int}) == dict[str, int | None]
    assert fill(str, {T: int}) is str


def output(workflow: Workflow, node_id: str, slot: str = "output") -> Any:
    return workflow.types[node_id].outputs[slot].type


def test_bindings_run_through_a_chain_whatever_the_files_order() -> None:
    workflow = loaded("""
inputs: {urls: "list[str]"}
nodes:
  all: {type: flow.Collect, items: "$ok[]"}
  ok: {type: flow.Filter, value: $page, condition: true}
  page: {type: t.Fetch, url: "$inputs.urls[*]"}
""")
    assert output(workflow, "inputs.urls[*]") is str
    assert output(workflow, "ok") is Page
    assert output(workflow, "all") == list[Page]


def test_both_branches_have_the_type_of_what_went_in() -> None:
    workflow = loaded("""
nodes:
  page: {type: t.Fetch, url: x}
  if: {type: flow.If, value: $page, condition: true}
""")
    assert output(workflow, "if", "then") is Page
    assert output(workflow, "if", "otherwise") is Page


def test_a_merge_of_different_types_gives_anything() -> None:
    workflow = loaded("""
inputs: {a: str, b: int}
nodes:
  same: {type: flow.Merge, values: [$inputs.a, $inputs.a]}
  mixed: {type: flow.Merge, values: [$inputs.a, $inputs.b]}
""")
    assert output(workflow, "same") is str
    assert output(workflow, "mixed") is Any


def test_a_bound_type_is_checked_further_down() -> None:
    text = """
inputs: {numbers: "list[int]"}
nodes:
  loud: {type: t.Shout, text: "$inputs.numbers[*]"}
"""
    assert rules(text) == ["edge-type"]


def test_the_type_of_the_catalog_stays_as_it_is() -> None:
    first = loaded("inputs: {a: str}\nnodes:\n  m: {type: flow.Merge, values: [$inputs.a]}\n")
    second = loaded("inputs: {a: int}\nnodes:\n  m: {type: flow.Merge, values: [$inputs.a]}\n")
    assert (output(first, "m"), output(second, "m")) == (str, int)
