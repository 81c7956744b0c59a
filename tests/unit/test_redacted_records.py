"""Records: masked, then cut, bounded, never an error (supervision.md §4, last three points).

row: S4-CAPS, S4-SEALED
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.errors import NodeError, RecoverableError
from nightwarden.masking.marks import CUT_PREFIX, FIELD, HIDDEN, MASK_PREFIX, contains_mark, mask_of
from nightwarden.masking.redaction import Limits, SecretRegistry
from nightwarden.nodes.io import ABSENT, AssetRef, Collect
from nightwarden.runtime.failing import StepTimeout

KEY = 'zk-live/7Qm2+Zt9aB=="x'
OTHER = "plain-other-value"


@pytest.fixture
def secrets() -> SecretRegistry:
    made = SecretRegistry()
    made.register("K", KEY)
    return made


class Point(NamedTuple):
    x: int
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    user: str
    password: str


class Row(msgspec.Struct):
    name: str
    api_key: str


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    title: str


class Colour(enum.Enum):
    RED = "red"


class Evil:
    """Everything about it raises."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise SystemExit(3)

    def __len__(self) -> int:
        raise KeyboardInterrupt

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    def __hash__(self) -> int:
        return 1


class EvilDict(dict[str, object]):
    def items(self) -> object:  # type: ignore[override]
        raise SystemExit


class EvilMapping(Mapping[str, object]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, key: str) -> object:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        yield "a"
        raise GeneratorExit


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise ValueError("unreadable")


# What values become


@pytest.mark.parametrize(
    ("value", "record"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2.5, 2.5),
        ("text", "text"),
        (10**30, str(10**30)),
        (float("inf"), "inf"),
        ([1, (2, 3)], [1, [2, 3]]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "null": "b", "(1, 2)": "c"}),
        (OrderedDict(a=1), {"a": 1}),
        (deque([1, 2]), [1, 2]),
        ({5}, [5]),
        (Point(1, "p"), {"x": 1, "label": "p"}),
        (Model(title="t", extra=[1]), {"title": "t", "extra": [1]}),
        (Colour.RED, "red"),
        (Path("/a/b.csv"), "/a/b.csv"),
        (dt.datetime(2026, 11, 30, 18, 51), "2026-11-30 18:51:00"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (b"abc", "<3 bytes> abc"),
        (b"\xff\xfe\x00", "<3 bytes, not text>"),
        (ABSENT, "ABSENT"),
        (AssetRef("a.png", "d1", 3), {
            "name": "a.png", "digest": "d1", "size_bytes": 3,
            "media_type": "application/octet-stream",
        }),
        (Collect([1, 2]), [1, 2]),
        (ValueError("bad"), "ValueError: bad"),
        (UnreadableError(), "UnreadableError: (its message cannot be read)"),
        (len, "<built-in function len>"),
        ("half \ud800", "half \\ud800"),
    ],
)  # fmt: skip
def test_any_value_becomes_json(secrets: SecretRegistry, value: object, record: object) -> None:
    assert secrets.redact(value) == record
    json.dumps(secrets.redact(value))


def test_an_object_whose_own_code_raises_is_a_record_too(secrets: SecretRegistry) -> None:
    value = [Evil(), EvilDict(a=1), EvilMapping(), {Evil(): Evil()}]
    assert secrets.redact(value) == [
        "<Evil>",
        "<EvilDict>",
        f"{CUT_PREFIX}3 values, unreadable)",
        {"<Evil>": "<Evil>"},
    ]
    assert secrets.mask_value(value)[1]
    assert contains_mark(EvilMapping())
    assert not contains_mark(value[:2])


def test_an_object_is_shown_without_its_address(secrets: SecretRegistry) -> None:
    assert secrets.redact(object()) == "<object object>"


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner)
    ),
    max_leaves=40,
)


@given(json_like)
def test_every_record_is_json_and_small(value: object) -> None:
    made = SecretRegistry()
    made.register("K", KEY)
    record = made.redact({"value": value, "deep": [[[[[[[[value]]]]]]]]})
    text = json.dumps(record, allow_nan=False)
    assert len(text) <= 16_000
    msgspec.json.encode(record)


# Masking


@pytest.mark.parametrize(
    "value",
    [
        {"url": f"https://h/?k={KEY}&page=2"},
        {f"key {KEY}": 1},
        [[KEY]],
        (KEY,),
        {KEY},
        Point(1, KEY),
        Account(KEY, "pw"),
        Model(title=KEY),
        Path("data") / KEY,
        KEY.encode(),
        bytearray(b"\xff" + KEY.encode()),
        ValueError(KEY),
        {"headers": {"X": [{"deep": {"deeper": KEY}}]}},
        {(KEY, 1): 2},
    ],
)
def test_a_secret_shows_in_no_part_of_a_record(secrets: SecretRegistry, value: object) -> None:
    """Scenarios 61 and 65: error text, URL, nested header, mapping key."""
    assert "7Qm2" not in json.dumps(secrets.redact(value))
    masked, sealed = secrets.mask_value(value)
    assert sealed
    assert "7Qm2" not in repr(masked)


def test_a_number_that_is_a_secret_is_masked(secrets: SecretRegistry) -> None:
    secrets.register("N", "48213377")
    assert secrets.redact({"id": 48213377, "n": 5}) == {"id": mask_of("N"), "n": 5}
    assert secrets.mask_value([48213377]) == ([mask_of("N")], True)


def test_fields_with_telling_names_are_hidden_at_any_depth(secrets: SecretRegistry) -> None:
    """Scenario 63; the case of a secret everywhere: `field_named_api_key_value_found: 0`."""
    record = secrets.redact(
        {
            "request": {"options": [{"api_key": OTHER, "author": "me", "max_tokens": 5}]},
            "account": Account("me", OTHER),
            "row": Row("n", OTHER),
            "headers": [("Authorization", OTHER), ["Accept", "text/html"]],
            "har": [{"name": "Cookie", "value": OTHER}],
            "cookies": {"a": OTHER},
            "pin": 1234,
            "body": f'{{"api_key": "{OTHER}"}}',
            "url": f"https://h.example/x?api_key={OTHER}&page=2",
        }
    )
    assert OTHER not in json.dumps(record)
    assert "1234" not in json.dumps(record)
    assert isinstance(record, dict)
    assert record["request"] == {"options": [{"api_key": FIELD, "author": "me", "max_tokens": 5}]}
    assert record["account"] == {"user": "me", "password": FIELD}
    assert record["headers"] == [["Authorization", FIELD], ["Accept", "text/html"]]
    assert record["har"] == [{"name": "Cookie", "value": FIELD}]
    assert record["url"] == f"https://h.example/x?api_key={FIELD}&page=2"


def test_that_a_sensitive_field_is_empty_may_be_seen(secrets: SecretRegistry) -> None:
    empty = {"password": "", "token": None, "secret": False}
    assert secrets.redact(empty) == empty
    assert secrets.mask_value(empty) == (empty, False)


def test_two_keys_that_look_alike_once_masked_both_stay(secrets: SecretRegistry) -> None:
    secrets.register("L", "second-value-1")
    secrets.register("K", "second-value-2")
    record = secrets.redact({KEY: 1, "second-value-2": 2})
    assert record == {"••••(K)": 1, "••••(K) #2": 2}


def test_if_masking_fails_everything_is_hidden(secrets: SecretRegistry) -> None:
    class Broken(SecretRegistry):
        def _scanner(self) -> object:  # type: ignore[override]
            raise RuntimeError("bug")

    broken = Broken()
    broken.register("K", KEY)
    assert broken.mask(f"a {KEY}") == HIDDEN
    assert broken.redact({"a": 1}) == HIDDEN
    assert broken.redact_fields({"a": 1}) == {"fields": HIDDEN}
    assert broken.mask_value({"a": KEY}) == (HIDDEN, True)
    assert broken.describe_error(ValueError(KEY)) == HIDDEN


# Cutting


def test_a_string_is_cut_at_2000_characters_and_says_how_much_is_missing(
    secrets: SecretRegistry,
) -> None:
    record = secrets.redact("x" * 3_000)
    assert isinstance(record, str)
    assert 1_990 <= len(record) <= 2_000
    kept = record.index(CUT_PREFIX)
    assert record[kept:] == f"{CUT_PREFIX}{3_000 - kept:,} chars)"


def test_a_list_is_cut_at_100_elements_and_says_how_many_are_missing(
    secrets: SecretRegistry,
) -> None:
    record = secrets.redact(list(range(1_234)))
    assert record == [*range(100), f"{CUT_PREFIX}1,134 items)"]


def test_a_mapping_is_cut_like_a_list(secrets: SecretRegistry) -> None:
    record = secrets.redact({f"k{i}": i for i in range(10_000)})
    assert isinstance(record, dict)
    assert len(record) == 101
    assert record[f"{CUT_PREFIX}9,900 fields)"] is None


def test_depth_ends_at_six(secrets: SecretRegistry) -> None:
    value: object = "bottom"
    for _ in range(50):
        value = {"d": value}
    text = json.dumps(secrets.redact(value), ensure_ascii=False)
    assert text.count('"d"') == 6
    assert f"{CUT_PREFIX}1 values, too deep)" in text


def test_an_empty_container_is_never_too_deep(secrets: SecretRegistry) -> None:
    assert secrets.redact([[[[[[{}]]]]]]) == [[[[[[{}]]]]]]


def test_a_cycle_ends(secrets: SecretRegistry) -> None:
    loop: dict[str, object] = {"a": 1}
    loop["self"] = [loop]
    assert secrets.redact(loop) == {"a": 1, "self": [f"{CUT_PREFIX}1 cycle)"]}


def test_the_same_part_twice_is_no_cycle(secrets: SecretRegistry) -> None:
    part = {"x": 1}
    assert secrets.redact([part, part]) == [part, part]


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x" * 1_000_000},
        {f"key-{i}": "v" * 50 for i in range(10_000)},
        {"k" * 1_000_000: "v"},
        [["é" * 5_000] * 200] * 200,
        {"rows": [{f"c{j}": "漢" * 100 for j in range(50)} for _ in range(1_000)]},
        b"\0" * 1_000_000,
        b"a" * 1_000_000,
        list(range(1_000_000)),
        [[[[[[[0] * 100] * 100] * 100] * 100] * 100] * 100],
    ],
)
def test_a_record_is_at_most_16_kb_whatever_comes(secrets: SecretRegistry, value: object) -> None:
    """Scenario 66."""
    record = secrets.redact(value)
    assert len(json.dumps(record)) <= 16_000
    assert contains_mark(record) or "not text" in str(record)


def test_small_fields_stay_whole_beside_a_huge_one(secrets: SecretRegistry) -> None:
    record = secrets.redact({"huge": ["x" * 5_000] * 90, "status": 451, "host": "api.example.com"})
    assert isinstance(record, dict)
    assert record["status"] == 451
    assert record["host"] == "api.example.com"


@given(offset=st.integers(1_940, 2_060), more=st.sampled_from([0, 500, 100_000]))
def test_a_secret_on_the_cut_leaves_no_fragment(offset: int, more: int) -> None:
    """Scenario 62: mask first, cut after."""
    made = SecretRegistry()
    made.register("K", KEY)
    record = made.redact({"t": "x" * offset + KEY + "y" * more})
    assert "zk-l" not in str(record)
    assert '=="x' not in str(record)


@pytest.mark.parametrize("at", [32_760, 32_768 + 64 * 22 - 5, 60_000])
def test_a_secret_on_the_end_of_the_window_leaves_no_fragment(
    secrets: SecretRegistry, at: int
) -> None:
    text = (KEY + "-") * 5_000
    shifted = "z" * (at % len(KEY)) + text
    for value in (text, shifted, f"password='{'p' * at}' {text}"):
        assert "7Qm2" not in str(secrets.redact(value))


def test_the_fields_of_a_record_are_always_a_mapping(secrets: SecretRegistry) -> None:
    assert secrets.redact_fields({"a": KEY, "pin": 5}) == {"a": "••••(K)", "pin": FIELD}
    nothing = Limits(record_bytes=10)
    assert secrets.redact_fields({"a": "x" * 50}, limits=nothing) == {
        "fields": f"{CUT_PREFIX}59 bytes)"
    }


def test_limits_can_be_set(secrets: SecretRegistry) -> None:
    record = secrets.redact(
        {"a": "x" * 100, "b": [1] * 10}, limits=Limits(string_chars=40, elements=3)
    )
    assert isinstance(record, dict)
    assert len(str(record["a"])) in (39, 40)
    assert record["b"] == [1, 1, 1, f"{CUT_PREFIX}7 items)"]


# Recorded values


def test_a_clean_value_stays_the_object_it_is(secrets: SecretRegistry) -> None:
    for value in (
        {"a": [1, {"b": "c"}], "n": None},
        [Point(1, "p")],
        AssetRef("a", "b", 1),
        b"bytes",
        ABSENT,
        Path("a/b"),
        dt.date(2026, 1, 2),
        "x" * 100_000,
    ):
        masked, sealed = secrets.mask_value(value)
        assert masked is value
        assert not sealed


def test_a_recorded_value_is_masked_but_not_cut(secrets: SecretRegistry) -> None:
    value = {"rows": [{"n": i, "t": "x" * 3_000} for i in range(200)], "k": f"<{KEY}>"}
    masked, sealed = secrets.mask_value(value)
    assert sealed
    assert masked == {**value, "k": "<••••(K)>"}


def test_a_telling_name_seals_a_recorded_value_even_without_secrets() -> None:
    masked, sealed = SecretRegistry().mask_value([{"api_key": OTHER, "page": 2}])
    assert masked == [{"api_key": FIELD, "page": 2}]
    assert sealed


def test_masking_a_masked_value_changes_nothing(secrets: SecretRegistry) -> None:
    once, _ = secrets.mask_value({"api_key": OTHER, "h": [("Cookie", OTHER)], "k": KEY})
    assert secrets.mask_value(once) == (once, False)


def test_an_object_that_holds_a_secret_out_of_sight_is_hidden(secrets: SecretRegistry) -> None:
    class Client:
        def __init__(self) -> None:
            self.auth = {"k": KEY}

    assert secrets.mask_value([Client()]) == ([HIDDEN], True)


def test_shared_parts_and_cycles_are_masked_in_one_pass(secrets: SecretRegistry) -> None:
    part: object = [KEY]
    for _ in range(60):
        part = [part, part]
    _, sealed = secrets.mask_value(part)
    assert sealed
    loop: list[object] = [KEY]
    loop.append(loop)
    masked, _ = secrets.mask_value(loop)
    assert masked == ["••••(K)", f"{CUT_PREFIX}1 cycle)"]


def test_a_value_too_deep_to_walk_is_hidden(secrets: SecretRegistry) -> None:
    value: object = KEY
    for _ in range(100_000):
        value = [value]
    assert secrets.mask_value(value) == (HIDDEN, True)
    while isinstance(value, list):  # taken apart by hand: freeing it at once may overflow the stack
        value = value.pop()


@given(json_like)
def test_masking_a_value_never_fails_and_leaves_clean_ones(value: object) -> None:
    made = SecretRegistry()
    made.register("K", KEY)
    masked, sealed = made.mask_value(["a", value])
    assert sealed or masked == ["a", value] or value != value or "nan" in repr(value)


# Marks


@pytest.mark.parametrize(
    "value",
    [
        "a ••••(K) b",
        "cut …(+12 chars)",
        {"a": [{"••••(field)": 1}]},
        ["…(+3 items)"],
        json.dumps({"k": "••••(K)"}),
        json.dumps(json.dumps("…(+3 items)")),
        "%E2%80%A2%E2%80%A2%E2%80%A2%E2%80%A2%28K%29",
        Account("••••(K)", ""),
        Point(1, "…(+1 cycle)"),
        "••••(K)".encode(),
    ],
)
def test_a_mark_is_found_wherever_it_stands(value: object) -> None:
    """A substitute that contains a mask or cut marker is rejected, whoever wrote it."""
    assert contains_mark(value)


@pytest.mark.parametrize("value", ["•••• 4242", "and so on…", {"a": ["(+3)"]}, None, 5, "• • • •("])
def test_ordinary_values_hold_no_mark(value: object) -> None:
    assert not contains_mark(value)


def test_whatever_was_masked_or_cut_holds_a_mark(secrets: SecretRegistry) -> None:
    for value in (KEY, {"pin": 1234}, "x" * 2_001, [0] * 101, {"a": KEY.encode()}):
        assert contains_mark(secrets.redact(value))
    loop: list[object] = []
    loop.append(loop)
    assert not contains_mark(loop)


# One line for an error


def _raised(*errors: BaseException) -> BaseException:
    """The last of `errors`, each raised from the one before."""
    cause: BaseException | None = None
    for error in errors:
        try:
            raise error from cause
        except BaseException as caught:
            cause = caught
    assert cause is not None
    return cause


def test_the_authors_own_words_come_before_what_they_wrapped(secrets: SecretRegistry) -> None:
    error = _raised(KeyError("title"), NodeError("page 7 has no title"))
    assert secrets.describe_error(error) == "page 7 has no title ← KeyError: 'title'"


def test_a_wrapper_without_words_steps_back_behind_its_cause(secrets: SecretRegistry) -> None:
    error = _raised(ValueError("bad row 3"), RuntimeError())
    assert secrets.describe_error(error) == "ValueError: bad row 3"


def test_what_a_wrapper_repeats_is_said_once(secrets: SecretRegistry) -> None:
    inner = ConnectionRefusedError(111, "Connection refused")
    error = _raised(inner, NodeError(f"cannot reach api.example.com: {inner}"))
    assert secrets.describe_error(error) == "cannot reach api.example.com: Connection refused"
    assert secrets.describe_error(_raised(ValueError("x"), RuntimeError("x"))) == "ValueError: x"


def test_a_suppressed_context_is_left_out_and_another_is_not(secrets: SecretRegistry) -> None:
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise NodeError("own words") from None
    except NodeError as hidden:
        assert secrets.describe_error(hidden) == "own words"
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise NodeError("own words")  # noqa: B904
    except NodeError as shown:
        assert secrets.describe_error(shown) == "own words ← KeyError: 'a'"


def test_a_group_speaks_through_its_members(secrets: SecretRegistry) -> None:
    members = [ValueError(f"bad {i}") for i in range(5)]
    stock = ExceptionGroup("unhandled errors in a TaskGroup", members)
    assert secrets.describe_error(stock) == (
        "ValueError: bad 0 ← ValueError: bad 1 ← ValueError: bad 2 ← …(+2 more errors)"
    )
    named = ExceptionGroup("two mirrors failed", members[:1])
    assert secrets.describe_error(named) == (
        "ExceptionGroup: two mirrors failed ← ValueError: bad 0"
    )


def test_notes_are_part_of_the_line(secrets: SecretRegistry) -> None:
    error = NodeError("row refused")
    error.add_note("line 17 of urls.txt")
    assert secrets.describe_error(error) == "row refused ← line 17 of urls.txt"


def test_the_line_shows_no_secret_and_no_named_value(secrets: SecretRegistry) -> None:
    inner = ValueError(f"Basic c3ZjOnprLWxpdmUvN1FtMitadDlhQj09Ing= for {{'api_key': '{OTHER}'}}")
    error = _raised(inner, RecoverableError(f"451 from api.example.com?key={KEY}&page=2"))
    error.add_note(f"key was {KEY!r}")
    line = secrets.describe_error(error)
    assert "451 from api.example.com?key=••••(K)&page=2" in line
    assert not any(part in line for part in ("7Qm2", "N1FtMi", OTHER))


def test_the_line_is_one_line_of_at_most_500_characters(secrets: SecretRegistry) -> None:
    line = secrets.describe_error(ValueError("first\n\n  second\t\x1b[31mred\x1b[0m \x00 é" * 200))
    assert len(line) <= 500
    assert line.startswith("ValueError: first second red é")
    assert CUT_PREFIX in line
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_secret_on_the_end_of_the_line_leaves_no_fragment(secrets: SecretRegistry) -> None:
    for length in range(440, 500):
        assert "zk-" not in secrets.describe_error(ValueError("x" * length + KEY))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (TimeoutError(), "TimeoutError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (FileNotFoundError(2, "No such file", "a.csv"), "FileNotFoundError: No such file: 'a.csv'"),
        (UnreadableError(), "UnreadableError: (its message cannot be read)"),
        (NodeError("half \ud800"), "half \\ud800"),
    ],
)
def test_any_error_has_a_line(secrets: SecretRegistry, error: BaseException, line: str) -> None:
    assert secrets.describe_error(error) == line


def test_an_error_of_the_engine_needs_no_type_in_front(secrets: SecretRegistry) -> None:
    assert secrets.describe_error(StepTimeout("timeout after 10 s")) == "timeout after 10 s"


def test_an_error_that_causes_itself_has_a_line(secrets: SecretRegistry) -> None:
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    assert secrets.describe_error(first) == "ValueError: one ← ValueError: two"


def test_an_error_whose_attributes_raise_has_a_line(secrets: SecretRegistry) -> None:
    class OddError(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]
            raise SystemExit

        @property
        def __notes__(self) -> list[str]:
            raise KeyboardInterrupt

    assert secrets.describe_error(OddError("odd")) == "OddError: odd"


def test_a_validation_error_is_readable(secrets: SecretRegistry) -> None:
    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"title": 5})
    line = secrets.describe_error(caught.value)
    assert "title Input should be a valid string" in line
    assert "errors.pydantic.dev" not in line


def test_a_mask_is_recognised_by_its_prefix(secrets: SecretRegistry) -> None:
    assert secrets.mask(KEY).startswith(MASK_PREFIX)
