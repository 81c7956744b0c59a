"""Slot types: reading and showing them, whether they fit, checking values (kernel.md §4, §5)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from nightwarden.nodes.io import AssetRef
from nightwarden.spec.assign import assignable
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.types import Json, Url, parse_type, type_text

T = TypeVar("T")


@dataclass
class Page:
    url: str
    status: int = 200


@dataclass
class LongPage(Page):
    body: str = ""


class Point(NamedTuple):
    x: int
    y: int


class Entry(TypedDict):
    title: str
    score: NotRequired[float]


class Tagged(Entry):
    tags: list[str]


class Model(BaseModel):
    title: str
    score: float = Field(ge=0, le=1)


class Opaque:
    """A class nobody but its own code can make."""


TYPES = [
    ("str", str),
    ("int", int),
    ("float", float),
    ("bool", bool),
    ("json", Json),
    ("url", Url),
    ("path", Path),
    ("asset", AssetRef),
    ("list[str]", list[str]),
    ("dict[str, list[int?]]", dict[str, list[int | None]]),
    ("list[path]?", list[Path] | None),
]


@pytest.mark.parametrize(("text", "annotation"), TYPES)
def test_a_files_type_and_its_annotation_turn_into_each_other(text: str, annotation: Any) -> None:
    assert parse_type(text) == annotation
    assert type_text(annotation) == text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (" list[ str ] ", "list[str]"),
        ("list", "list[json]"),
        ("dict", "dict[str, json]"),
        ("any", "json"),
        ("int??", "int?"),
    ],
)
def test_other_spellings_of_a_type_mean_the_same(text: str, normal: str) -> None:
    assert type_text(parse_type(text)) == normal


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("string", "did you mean 'str'?"),
        ("intt", "did you mean 'int'?"),
        ("nonsense", "types are str, int"),
        ("", "lacks a name"),
        ("list[str", "] is missing"),
        ("list[]", "lacks a name"),
        ("list[str, int]", "one part too many"),
        ("int[str]", "int takes no [ ]"),
        ("dict[int, str]", "keys of a dict are text"),
        ("int | str", "'|', which no type has"),
        ("str int", "'int' after its end"),
        ("list[" * 40 + "str" + "]" * 40, "nested more than 20 deep"),
    ],
)
def test_a_type_that_cannot_be_read_says_what_is_expected(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_type(text)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Any, "any"),
        (object, "any"),
        (None, "none"),
        (int | str | None, "int | str | none"),
        (Literal["a", 1], "'a' | 1"),
        (Page, "Page"),
        (Sequence[Page], "Sequence[Page]"),
        (tuple[int, ...], "tuple[int, …]"),
        (Annotated[int, Field(gt=1)], "int"),
        (T, "T"),
    ],
)
def test_any_annotation_can_be_shown(annotation: Any, text: str) -> None:
    assert type_text(annotation) == text


FITS = [
    (int, int),
    (int, float),
    (bool, bool),
    (int, object),
    (Any, object),
    (str, Any),
    (LongPage, Page),
    (int, int | None),
    (int, int | str),
    (list[int], list[float]),
    (list[int], Sequence[object]),
    (list[Any], list[Any]),
    (Any, T),
    (list[int], list[T]),
    (dict[str, int], Mapping[str, float]),
    (Entry, dict[str, object]),
    (Tagged, Entry),
    (Point, tuple[int, int]),
    (Literal["a"], Literal["a", "b"]),
    (Literal["a"], str),
    (Path, object),
    (str, Json),
    (dict[str, list[int]], Json),
    (Url, str),
    (Annotated[int, "said"], int),
    (None, int | None),
    (str, list[str] | str),
]
DIFFERS = [
    (str, int),
    (float, int),
    (bool, int),
    (bool, float),
    (int, bool),
    (str, Path),
    (Path, str),
    (str, list[str]),
    (str, Sequence[str]),
    (list[str], str),
    (list[str], list[int]),
    (list[int], tuple[int, ...]),
    (dict[str, str], dict[str, int]),
    (dict[str, object], Page),
    (dict[str, object], Model),
    (Model, dict[str, object]),
    (Page, str),
    (Page, Model),
    (None, str),
    (Literal["c"], Literal["a", "b"]),
    (int, Literal["a", "b"]),
    (str, int | float),
    (Entry, Tagged),
    (Point, tuple[int, int, int]),
]
DEPENDS = [
    (Any, str),
    (object, str),
    (T, str),
    (int | str, int),
    (int | None, int),
    (Page, LongPage),
    (Any, Json),
    (float, Json),
    (str, Url),
    (str, Literal["a", "b"]),
    (Sequence[int], list[int]),
    (list[Any], list[int]),
    (dict[str, object], Entry),
    (int, Annotated[int, Field(gt=1)]),
    (list, list[int]),
    (Point, Sequence[int]),
]


@pytest.mark.parametrize(("source", "target"), FITS)
def test_what_surely_fits_needs_no_check(source: Any, target: Any) -> None:
    assert assignable(source, target) is True


@pytest.mark.parametrize(("source", "target"), DIFFERS)
def test_what_cannot_fit_is_known_when_loading(source: Any, target: Any) -> None:
    assert assignable(source, target) is False


@pytest.mark.parametrize(("source", "target"), DEPENDS)
def test_what_depends_on_the_value_is_left_open(source: Any, target: Any) -> None:
    assert assignable(source, target) is None


_SCALARS = st.sampled_from([str, int, float, bool, None, Path, Page, Entry, Any, Json, Url, Point])
_ANNOTATIONS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda t: list[t]),  # type: ignore[valid-type]
        inner.map(lambda t: dict[str, t]),  # type: ignore[valid-type]
        inner.map(lambda t: Sequence[t]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda p: Union[p]),  # noqa: UP007
        st.tuples(inner, inner).map(lambda p: tuple[p]),  # type: ignore[valid-type]
    ),
    max_leaves=4,
)
_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 9),
        st.floats(-2, 2),
        st.sampled_from(["", "a", "https://example.org", Path("x"), Page("u"), Point(1, 2)]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["title", "score", "z"]), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "a"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b"]), inner)
    ),
    max_leaves=5,
)
_OF_CLASS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["", "a"]),
    int: st.integers(-9, 9),
    float: st.one_of(st.floats(), st.integers(-9, 9)),
    bool: st.booleans(),
    None: st.none(),
    type(None): st.none(),
    Path: st.just(Path("x")),
    Page: st.sampled_from([Page("u"), LongPage("u")]),
    Entry: st.sampled_from([{"title": "t"}, {"title": "t", "score": 0.5}]),
    Point: st.just(Point(1, 2)),
    Any: _VALUES,
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a type drawn from `_ANNOTATIONS`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation == Json:
        return _JSON
    if annotation == Url:
        return st.just("https://example.org")
    if origin is Union:
        return st.one_of(*(values_of(a) for a in arguments))
    if origin is tuple:
        return st.tuples(*(values_of(a) for a in arguments))
    if origin is dict:
        return st.dictionaries(st.sampled_from(["title", "z"]), values_of(arguments[1]))
    if origin is not None:
        return st.lists(values_of(arguments[0]), max_size=3)
    return _OF_CLASS[annotation]


@given(_ANNOTATIONS, st.lists(_ANNOTATIONS, min_size=8, max_size=8), st.data())
def test_a_type_that_surely_fits_never_lets_a_misfit_through(
    source: Any, targets: list[Any], data: st.DataObject
) -> None:
    value = data.draw(values_of(source))
    assert Checker(source).problems(value) == []
    for target in (source, source | None, *targets) if source else targets:
        if assignable(source, target):
            assert Checker(target).problems(value) == []


@given(_ANNOTATIONS, _VALUES)
def test_a_quick_answer_is_the_answer_of_a_close_look(annotation: Any, value: object) -> None:
    checker = Checker(annotation)
    assert checker.fits(value) == (checker.problems(value) == [])
    if not checker.anything:
        assert checker.fits(value) == (checker._look_closer(value) == [])


@given(_ANNOTATIONS, _JSON)
def test_what_a_property_is_made_into_is_of_the_type(annotation: Any, value: object) -> None:
    checker = Checker(annotation)
    try:
        made = checker.coerce(value)
    except Misfit:
        return
    assert checker.problems(made) == []
    assert checker.coerce(made) == made


@given(_ANNOTATIONS, st.data())
def test_a_repair_that_is_accepted_becomes_a_value_of_the_type(
    annotation: Any, data: st.DataObject
) -> None:
    checker = Checker(annotation)
    value = data.draw(st.one_of(values_of(annotation), _VALUES))
    if not checker.strict_problems(value):
        assert checker.problems(checker.revive(value)) == []


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (int, True, "expected a whole number, got a boolean"),
        (float, True, "expected a number, got a boolean"),
        (str, 5, "expected text, got a whole number"),
        (Path, "x", "expected an instance of Path, got text"),
        (Page, {"url": "x"}, "expected an instance of Page, got a mapping"),
        (Model, {"title": "x", "score": 1}, "expected an instance of Model, got a mapping"),
        (list[int], [1, "2"], "[1]: expected a whole number, got text"),
        (Entry, {"score": 1.0}, "title is missing"),
        (list[Entry], [{"title": 3}], "[0].title: expected text, got a whole number"),
        (int | str, [1], "expected int | str, got a list"),
        (list[Model], [{"title": "x"}], "[0]: expected an instance of Model, got a mapping"),
        (Opaque, 3, "expected an instance of Opaque, got a whole number"),
        (Iterator[int], [1], "expected an instance of Iterator, got a list"),
    ],
)
def test_a_value_that_arrives_is_taken_as_it_is(
    annotation: Any, value: object, problem: str
) -> None:
    assert Checker(annotation).problems(value) == [problem]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, 1),
        (float, math.nan),
        (list, [object()]),
        (list[Any], [object()]),
        (dict[str, Any], {"a": object()}),
        (Page, Page("x")),
        (Sequence[int], (1, 2)),
        (Callable[[], int], len),
        (Opaque, Opaque()),
        (T, object()),
        (Iterator[int], iter([1])),
    ],
)
def test_a_value_of_the_type_has_no_problems(annotation: Any, value: object) -> None:
    assert Checker(annotation).problems(value) == []


def test_checking_an_iterator_does_not_draw_from_it() -> None:
    numbers = iter([1, 2])
    assert Checker(Iterator[str]).problems(numbers) == []
    assert list(numbers) == [1, 2]


@pytest.mark.parametrize(
    ("annotation", "value", "made"),
    [
        (int, "5", 5),
        (int, 5.0, 5),
        (float, 1, 1.0),
        (bool, "no", False),
        (Path, "out.csv", Path("out.csv")),
        (list[int], ["1", 2], [1, 2]),
        (Page, {"url": "x"}, Page("x")),
        (Point, [1, 2], Point(1, 2)),
        (int | None, None, None),
        (Entry, {"title": "x"}, {"title": "x"}),
    ],
)
def test_a_property_is_made_into_its_type_once(annotation: Any, value: object, made: Any) -> None:
    result = Checker(annotation).coerce(value)
    assert result == made
    assert type(result) is type(made)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, True),
        (float, False),
        (int, 5.5),
        (int, "five"),
        (str, 5),
        (str, None),
        (list[str], "a"),
        (Page, {"url": "x", "color": "red"}),
        (Entry, {"title": "x", "color": "red"}),
        (Url, "example"),
        (Opaque, "x"),
    ],
)
def test_a_property_nothing_can_be_made_of_is_a_misfit(annotation: Any, value: object) -> None:
    with pytest.raises(Misfit):
        Checker(annotation).coerce(value)


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (float, "0.82", "expected a number, got text"),
        (float, True, "expected a number, got a boolean"),
        (float, math.nan, "the value is not a finite number"),
        (dict[str, object], {"a": [math.inf]}, "a[0] is not a finite number"),
        (int, 1.0, "expected a whole number, got a number"),
        (Entry, {"title": "x", "why": "y"}, "why is not known"),
        (Page, {"url": "x", "why": "y"}, "why is not known"),
        (
            Model,
            {"title": "x", "score": 2},
            "score: expected less than or equal to 1",
        ),
        (list[Model], [{"title": "x", "score": "0"}], "[0].score: expected a number, got text"),
        (str, "a\ud800", "the text holds half of a surrogate pair"),
        (list[str], ["a", "\udfff"], "[1] holds half of a surrogate pair"),
        (Any, 1, "any is a type nothing can be held against"),
        (Opaque, {}, "Opaque is a type nothing can be held against"),
    ],
)
def test_a_repair_is_held_against_the_type_to_the_end(
    annotation: Any, value: object, problem: str
) -> None:
    assert Checker(annotation).strict_problems(value) == [problem]


@pytest.mark.parametrize(
    ("annotation", "value", "made"),
    [
        (Page, {"url": "x", "status": 3}, Page("x", 3)),
        (Path, "x", Path("x")),
        (tuple[int, str], [1, "x"], (1, "x")),
        (Page, Page("x"), Page("x")),
        (float, 1, 1.0),
        (Json, {"a": [None, True]}, {"a": [None, True]}),
    ],
)
def test_plain_data_of_an_accepted_repair_becomes_the_value(
    annotation: Any, value: object, made: object
) -> None:
    checker = Checker(annotation)
    assert checker.strict_problems(value) == []
    assert checker.revive(value) == made


def test_reviving_what_was_not_accepted_is_refused() -> None:
    with pytest.raises(Misfit):
        Checker(int).revive("5")


@pytest.mark.parametrize(
    ("annotation", "answer"),
    [
        (str, True),
        (Page, True),
        (Entry, True),
        (Model, True),
        (Json, True),
        (Path, True),
        (dict[str, object], True),
        (list[Entry], True),
        (int | None, True),
        (Any, False),
        (object, False),
        (int | Any, False),
        (T, False),
        (Opaque, False),
        (list[Opaque], False),
        (Callable[[], int], False),
        (Iterator[int], False),
    ],
)
def test_only_types_that_say_something_can_be_repaired(annotation: Any, answer: bool) -> None:
    """supervision.md §1, note 2: every declared output has a checkable type."""
    assert Checker(annotation).checkable is answer


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (Any, {}),
        (Opaque, {}),
        (Callable[[], int], {}),
        (Url, {"type": "string", "format": "uri"}),
        (Json, {}),
        ("NoSuchName", {}),
    ],
)
def test_a_type_has_a_schema_or_an_empty_one(annotation: Any, schema: dict[str, Any]) -> None:
    assert Checker(annotation).schema() == schema


def test_the_schema_of_a_typed_dict_names_its_keys() -> None:
    schema = Checker(Tagged).schema()
    assert sorted(schema["properties"]) == ["score", "tags", "title"]
    assert schema["required"] == ["title", "tags"]


def test_a_value_that_cannot_be_shown_is_checked_all_the_same() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise ValueError("no")

    assert Checker(list[int]).problems([Rude()]) == ["[0]: expected a whole number, got Rude"]
