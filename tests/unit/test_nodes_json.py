"""json.Parse: the standard, and nothing more; the rest is a failure one can repair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.errors import RecoverableError
from nightwarden.nodes.builtin.json import parse

SAMPLES = Path(__file__).parent.parent / "cases" / "samples"
REPLIES = [json.loads(line) for line in (SAMPLES / "replies.jsonl").read_text("utf-8").splitlines()]
CODES = {
    "r02": "json-words",
    "r03": "json-words",
    "r04": "json-python",
    "r05": "json-cut",
    "r06": "json-empty",
    "r08": "json-quotes",
    "r09": "json-nan",
    "r10": "json-none",
    "r11": "json-nested",
    "r12": "json-duplicate-key",
}


@pytest.mark.parametrize(
    "reply", [r for r in REPLIES if r["state"] == "strict"], ids=lambda r: r["id"]
)
def test_strict_replies_are_read(reply: dict) -> None:
    assert parse(reply["raw"]) == reply["value"]


@pytest.mark.parametrize(
    "reply", [r for r in REPLIES if r["state"] != "strict"], ids=lambda r: r["id"]
)
def test_every_other_reply_is_a_failure_with_the_reply_in_hand(reply: dict) -> None:
    """kernel.md §4: shipped parsers raise RecoverableError with a candidate output."""
    with pytest.raises(RecoverableError, match=r"^not strict JSON: ") as caught:
        parse(reply["raw"])
    assert caught.value.candidate_output == reply["raw"]
    assert caught.value.code == CODES[reply["id"]]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "json-empty", "is empty"),
        ("[1,]", "json-comma", "line 1, column 4"),
        ('{"a": 1,\n}', "json-comma", "comma with nothing after it"),
        ('{"a": 1', "json-cut", "ends before the value does"),
        ('{"a": "x', "json-cut", "ends before the value does"),
        ('{"a": tru', "json-cut", "ends before the value does"),
        ('{"a": 1} and', "json-words", "more text after the value"),
        ("```json\n{}\n```", "json-fence", "code fence"),
        ('{"a": True}', "json-python", "Python literal"),
        ("None", "json-python", "Python literal"),
        ('{"a": undefined}', "json-syntax", "found 'u'"),
        ("{a: 1}", "json-syntax", "found 'a'"),
        ('{"a": "x\ny"}', "json-syntax", "control sign"),
        ("[1 2]", "json-syntax", "found '2'"),
        ("[01]", "json-syntax", "found '1'"),
        ("[-Infinity]", "json-nan", "-Infinity is no JSON value"),
        ("[1e999]", "json-number", "out of range"),
        ("9" * 5000, "json-number", "thousands of digits"),
        ("[" * 100_000, "json-depth", "nested too deeply"),
        ('"\\ud800"', "json-text", "surrogate"),
        ('{"a": [["\\udc00"]]}', "json-text", "surrogate"),
        ('{"\\ud800": 1}', "json-text", "surrogate"),
        ('{"x": {"a": 1, "a": 2}}', "json-duplicate-key", "'a' stands twice"),
        ('"[1]"', "json-nested", "encoded twice"),
        ("I cannot.", "json-none", "it begins 'I cannot.'"),
    ],
)
def test_each_mistake_has_its_code_and_its_place(text: str, code: str, words: str) -> None:
    with pytest.raises(RecoverableError) as caught:
        parse(text)
    assert caught.value.code == code
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", ["null", " 1.5e3\n", "\ufeff{}", '"plain"', '"[not json"', '"\\ud83d\\ude00"']
)
def test_what_the_standard_allows_is_read(text: str) -> None:
    assert parse(text) == json.loads(text.removeprefix("\ufeff"))


KNOWN_CODES = {
    *CODES.values(),
    *("json-comma", "json-fence", "json-syntax", "json-number", "json-depth", "json-text"),
}
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
)


@given(JSON_VALUES.filter(lambda value: not isinstance(value, str)))
def test_every_json_value_is_read_as_it_was_written(value: object) -> None:
    assert parse(json.dumps(value)) == value


@given(st.text())
def test_any_text_is_a_value_or_a_failure_with_a_code(text: str) -> None:
    failure = None
    try:
        parse(text)
    except RecoverableError as error:
        failure = error
    if failure is not None:
        assert failure.code in KNOWN_CODES
        assert failure.candidate_output == text
