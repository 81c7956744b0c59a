"""Any value at all can stand in a record (issue 2, Bad input)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.events import InvocationSucceeded, SupervisorDecision, decode_lines, encode
from nightwarden.events.plain import plain
from nightwarden.nodes.io import AssetRef, Collect
from nightwarden.verdict import Decision, Substitute


class Mute:
    """Nothing can be read of it."""

    def __repr__(self) -> str:
        raise SystemExit("no")

    __str__ = __repr__


class Colour(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    a: int
    b: object


@dataclasses.dataclass
class Row:
    name: str
    size: object


CYCLE: list[object] = []
CYCLE.append(CYCLE)

VALUES = [
    (None, None),
    (2**200, 2**200),
    (1 << 20_000, hex(1 << 20_000)),
    (float("nan"), "nan"),
    (float("-inf"), "-inf"),
    ("\udc80", "\\udc80"),
    (Path("a/b"), "a/b"),
    (b"text", "text"),
    (b"\xff\x00", "ff00"),
    (datetime.date(2026, 11, 30), "2026-11-30"),
    (decimal.Decimal("1.50"), "1.50"),
    (Colour.RED, "red"),
    (Pair(1, Path("x")), {"a": 1, "b": "x"}),
    (Row("n", {3}), {"name": "n", "size": [3]}),
    (AssetRef("a", "d", 1, "t"), {"name": "a", "digest": "d", "size_bytes": 1, "media_type": "t"}),
    (Collect([1, 2]), [1, 2]),
    ({1: "x", (1, 2): "y", None: "z"}, {"1": "x", "[1, 2]": "y", "None": "z"}),
    ({Mute(): Mute()}, {"<Mute>": "<Mute>"}),
    (Mute(), "<Mute>"),
    (Mute, "<class 'test_plain.Mute'>"),
    (CYCLE, ["<the value it stands in>"]),
]


@pytest.mark.parametrize(("value", "shown"), VALUES, ids=lambda value: type(value).__name__)
def test_a_value_becomes_json_that_says_what_it_was(value: object, shown: object) -> None:
    assert plain(value) == shown
    json.dumps(plain(value), allow_nan=False)


@pytest.mark.parametrize("value", [value for value, _ in VALUES], ids=lambda v: type(v).__name__)
def test_an_event_with_any_value_is_one_line_of_json(value: object) -> None:
    line = encode(InvocationSucceeded(node_id="a", outputs={"output": value}, duration_s=0.5))
    (event,) = decode_lines([line + b"\n"])
    assert (event["type"], event["node_id"], event["duration_s"]) == (
        "invocation_succeeded",
        "a",
        0.5,
    )
    assert b"\n" not in line


def test_a_verdict_keeps_its_tag_when_its_values_have_no_form_in_json() -> None:
    decision = Decision(verdict=Substitute({"output": {(1, 2): Mute(), "\udc80": 1}}))
    (event,) = decode_lines(
        [encode(SupervisorDecision(escalation_id="e1", decision=decision)) + b"\n"]
    )
    assert event["decision"]["verdict"]["action"] == "substitute"


def test_a_value_nested_without_end_is_cut_not_followed() -> None:
    value: Any = "x"
    for _ in range(5_000):
        value = [value]
    assert "<the value it stands in>" in json.dumps(plain(value))


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(st.one_of(st.text(), st.integers()), inner),
            st.tuples(inner, inner),
        ),
    )
)
def test_whatever_plain_makes_is_json_and_stays_as_it_is(value: object) -> None:
    made = plain(value)
    assert msgspec.json.decode(json.dumps(made, allow_nan=False)) == made or isinstance(
        made, (int, list, dict)
    )
    assert plain(made) == made
