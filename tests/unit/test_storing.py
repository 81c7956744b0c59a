"""What a record keeps of a value is the value, or says that it is not. (kernel.md §3 Resume)"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.nodes.io import AssetRef
from nightwarden.spec.checker import Checker
from nightwarden.spec.storing import original, plain_form, storable


@dataclasses.dataclass
class Spot:
    number: int
    place: Path


class Pair(NamedTuple):
    left: int
    right: str


class Colour(enum.Enum):
    RED = 1


class Opaque:
    pass


KEPT: list[tuple[Any, object]] = [
    (str, "text"),
    (float, 2.5),
    (int, 2**80),
    (int | None, None),
    (tuple[int, int], (1, 2)),
    (Spot, Spot(1, Path("a"))),
    (list[Spot], [Spot(1, Path("a")), Spot(2, Path("b"))]),
    (Pair, Pair(1, "a")),
    (Path, Path("a/b")),
    (datetime.datetime, datetime.datetime(2026, 11, 30, 12, 0, 0, 5)),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (Colour, Colour.RED),
    (dict[int, str], {1: "a"}),
    (set[int], {1, 2}),
    (AssetRef, AssetRef("a", "d", 1, "text/plain")),
    (Any, {"a": [1, 2.5, "x", None, True]}),
]
SEALED: list[tuple[Any, object]] = [
    (Any, (1, 2)),
    (Any, Pair(1, "a")),
    (Any, datetime.date(2026, 11, 30)),
    (dict[str, Any], {"a": Path("x")}),
    (float, math.nan),
    (float, math.inf),
    (bytes, b"\xff\x00"),
    pytest.param(object, Opaque(), id="opaque as object"),
    pytest.param(Opaque, Opaque(), id="opaque"),
    (Any, {1: "a"}),
]


@pytest.mark.parametrize(("kind", "value"), KEPT, ids=repr)
def test_a_value_of_a_known_type_comes_back_as_it_was(kind: Any, value: object) -> None:
    checker = Checker(kind)
    plain, whole = plain_form(checker, value)
    assert whole
    back = original(checker, msgspec.json.decode(msgspec.json.encode(plain)))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("kind", "value"), SEALED, ids=repr)
def test_a_value_that_would_come_back_as_another_is_sealed(kind: Any, value: object) -> None:
    assert not plain_form(Checker(kind), value)[1]


def test_a_type_nobody_can_read_back_is_known_before_it_is_used() -> None:
    assert [storable(Checker(kind)) for kind in (str, Any, Spot, Opaque)] == [
        True,
        True,
        True,
        False,
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(JSON)
def test_what_is_not_sealed_is_what_was_put_in(value: object) -> None:
    checker = Checker(Any)
    plain, whole = plain_form(checker, value)
    if whole:
        assert original(checker, msgspec.json.decode(msgspec.json.encode(plain))) == value
