"""Replies of models are read strictly, but for habits that hide no content."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from nightwarden.errors import RecoverableError
from nightwarden.nodes.builtin._replies import json_of, without_habits
from nightwarden.spec.json_schema import JsonSchema, problems_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='ab,]}[{"\\`\n ', max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab,]", max_size=3), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 2]))
@settings(max_examples=200, deadline=None)
def test_taking_habits_off_never_changes_a_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert json.loads(without_habits(text)) == value
    if "```" not in text:
        assert json.loads(without_habits(f"```json\n{text}\n```")) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```json\n{}\n```\nThat is all.", "reply:json-fence"),
        ("```json\n{}\n```\n```json\n{}\n```", "reply:json-fence"),
        ("{'a': 1}", "reply:json-python"),
        ("[1,, 2]", "reply:json-comma"),
        ("[NaN]", "reply:json-nan"),
        ('{"a": 1, "a": 2}', "reply:json-duplicate-key"),
        ("", "reply:json-empty"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused_with_the_reply_as_it_came(
    text: str, code: str
) -> None:
    with pytest.raises(RecoverableError) as refused:
        json_of(text, {})
    assert (refused.value.code, refused.value.candidate_output) == (code, text)


@pytest.mark.parametrize(
    "text",
    [
        '~~~json\n{"n": [","]}\n~~~',
        '````\n{"n": [","]}\n````',
        '``` json \r\n{"n": [","]}\r\n```\r\n',
        '\n```json5\n{"n": [",",],}```',
    ],
)
def test_a_fence_around_all_of_a_reply_hides_nothing_whatever_it_is_made_of(text: str) -> None:
    assert json_of(text, {"type": "object"}) == {"n": [","]}


def test_a_fence_inside_of_a_value_is_part_of_it() -> None:
    assert json_of('```json\n{"n": "```"}\n```', {"type": "object"}) == {"n": "```"}


@pytest.mark.parametrize("text", ["[,]", "{,}", "[1,,]"])
def test_a_comma_without_a_value_before_it_is_not_overlooked(text: str) -> None:
    with pytest.raises(RecoverableError, match="no JSON"):
        json_of(text, {})


@pytest.mark.parametrize("text", ["```" + "\n" * 300_000, "```\n" + "`" * 300_000 + "x"])
def test_a_long_reply_is_read_in_no_more_than_its_length(text: str) -> None:
    began = time.process_time()
    without_habits(text)
    assert time.process_time() - began < 2


def test_what_does_not_fit_is_named_by_its_place() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "string"}}}}
    assert problems_of({"n": ["a", 2]}, schema) == ['n.1: 2 is not of type "string"']


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "no JSON Schema"),
        ({"$ref": "https://example.com/s.json"}, "leads elsewhere; put that part under \\$defs"),
        ({"items": [{"$ref": "other.json#/a"}]}, "leads elsewhere"),
        ("string", "valid dictionary"),
    ],
)
def test_a_schema_that_is_none_is_refused_when_a_workflow_is_loaded(
    schema: object, said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        TypeAdapter(JsonSchema).validate_python(schema)


def test_a_schema_may_refer_to_its_own_parts() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}
    assert TypeAdapter(JsonSchema).validate_python(schema) == schema
    assert problems_of([1], schema) == []
