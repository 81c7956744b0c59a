"""text.Summarise, text.Template, text.Split: deterministic, and strict where it matters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._sentences import most_telling, sentences, words
from nightwarden.nodes.builtin._templates import Template
from nightwarden.nodes.builtin.text import split, summarise, template

STORY = (
    "The old kettle factory in Harlow will close in June. Two hundred people work at the kettle "
    "factory, most of them for over ten years. The weather was fine yesterday. The owner says that "
    "the factory lost money on each kettle since steel became dear. Somebody parked a bicycle. "
    "The town council wants to buy the factory and make kettles again. It rained a little later."
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Dr. Smith met J. R. Hartley. They spoke.",
            ["Dr. Smith met J. R. Hartley.", "They spoke."],
        ),
        ("It is e.g. 3.14 or so. Fine.", ["It is e.g. 3.14 or so.", "Fine."]),
        ("Am 3. Mai kam er, z.B. mit Tee. Gut!", ["Am 3. Mai kam er, z.B. mit Tee.", "Gut!"]),
        ("In 2019. Then more.", ["In 2019.", "Then more."]),
        ("Wait… what? “Yes!” he said. (No.)", ["Wait… what?", "“Yes!” he said.", "(No.)"]),
        ("水が沸いた。茶を入れる！よい？", ["水が沸いた。", "茶を入れる！", "よい？"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("هل هذا صحيح؟ نعم.", ["هل هذا صحيح؟", "نعم."]),
        ("A heading\nThen a sentence. And", ["A heading", "Then a sentence.", "And"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def test_lines_broken_for_their_length_are_one_sentence() -> None:
    broken = "A line that was broken for its length goes on in\nlower case and ends. Here."
    assert sentences(broken) == [
        "A line that was broken for its length goes on in lower case and ends.",
        "Here.",
    ]


def test_words_are_folded_and_scripts_without_blanks_are_paired() -> None:
    assert words("The Straße, 12 cups!") == ["the", "strasse", "cups"]
    assert words("お茶を") == ["お茶", "茶を"]


def test_a_summary_takes_the_sentences_that_say_most_in_their_order() -> None:
    summary = summarise(STORY, max_sentences=3, max_chars=1000)
    assert summary.startswith("The old kettle factory in Harlow will close in June.")
    chosen = [part for part in sentences(STORY) if part in summary]
    assert " ".join(chosen) == summary
    assert len(chosen) == 3
    assert not {"The weather was fine yesterday.", "Somebody parked a bicycle."} & set(chosen)


def test_a_summary_does_not_say_the_same_twice() -> None:
    first = "The kettle factory in Harlow will close in June this year."
    text = f"{first} {first} The bakery around the corner opens a second shop in May."
    assert summarise(text, max_sentences=2).count("factory") == 1


def test_a_summary_is_the_same_every_time() -> None:
    assert len({summarise(STORY * 3) for _ in range(5)}) == 1


@given(st.text(max_size=300), st.integers(1, 5), st.integers(1, 120))
def test_a_summary_keeps_its_limits_whatever_the_text(text: str, count: int, room: int) -> None:
    summary = summarise(text, max_sentences=count, max_chars=room)
    assert len(summary) <= room
    assert bool(summary) == bool(text.split())


def test_a_sentence_too_long_for_a_summary_is_cut_at_a_word() -> None:
    assert summarise("word " * 50, max_chars=23) == "word word word word…"
    assert summarise("x" * 50, max_chars=10) == "x" * 9 + "…"


def test_a_summary_of_text_in_other_scripts() -> None:
    text = "湯を沸かす薬缶の工場が閉まる。今日は晴れた。薬缶の工場では二百人が働く。"
    assert "薬缶の工場" in summarise(text, max_sentences=1)


def test_a_text_of_signs_only_is_summarised_too() -> None:
    assert summarise("!!! ??? ***") != ""


def test_a_long_text_is_summarised_quickly() -> None:
    text = " ".join(
        f"Sentence number {n} tells of kettle {n % 97} and cup {n % 89}." for n in range(20_000)
    )
    assert len(summarise(text)) > 20


def test_every_sentence_is_ranked_once() -> None:
    parts = sentences(STORY)
    assert sorted(most_telling(parts)) == list(range(len(parts)))


@dataclass(frozen=True)
class Item:
    name: str
    _hidden: str = "x"


def test_a_template_is_filled_by_name() -> None:
    text = template("{a}, {b:.2f}, {c!r}, {d:>4}|", a=1, b=2.346, c="x", d="y")
    assert text == "1, 2.35, 'x',    y|"


def test_braces_are_doubled_and_those_in_values_stay() -> None:
    assert template("{{{a}}} {{b}}", a="{b}") == "{{b}} {b}"


def test_parts_of_records_are_reached_by_name() -> None:
    assert template("{r.name}/{d.x.y}", r=Item("n"), d={"x": {"y": 2}}) == "n/2"


@pytest.mark.parametrize("name", ["r._hidden", "r.__class__", "d.keys", "s.upper", "d.nothing"])
def test_nothing_but_keys_and_fields_can_be_reached(name: str) -> None:
    with pytest.raises(NodeError) as caught:
        template("{" + name + "}", r=Item("n"), d={"a": 1}, s="s")
    assert caught.value.code == "template"


def test_missing_names_are_an_error_that_names_them_all() -> None:
    with pytest.raises(NodeError, match=r"names b, c, but no such input is given; given: a") as e:
        template("{a}{c}{b.x}", a=1)
    assert e.value.code == "template"


@pytest.mark.parametrize(
    "text",
    ["{", "}", "{}", "{0}", "{a[0]}", "{a b}", "{a:{w}}", "{a:9999999999}", "{a!x}", "{a", "{.x}"],
)
def test_a_mistake_in_a_template_is_found_when_the_workflow_is_loaded(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Template).validate_python(text)
    with pytest.raises(NodeError):
        template(text, a=1)


def test_a_format_that_does_not_fit_the_value_names_the_place() -> None:
    with pytest.raises(NodeError, match=r"\{a\} cannot be filled in"):
        template("{a:.2f}", a="text")


@given(st.text(max_size=400), st.integers(1, 50), st.data())
def test_pieces_by_size_leave_nothing_out_and_are_never_longer(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    pieces = list(split(text, size=size, overlap=overlap))
    assert all(0 < len(piece) <= size for piece in pieces)
    whole = pieces[0] if pieces else ""
    for before, piece in pairwise(pieces):
        assert before[len(before) - overlap :] == piece[:overlap]
        whole += piece[overlap:]
    assert whole == text


def test_pieces_by_size_are_cut_at_blanks_where_one_is_near() -> None:
    assert list(split("aaaa bbbb cccc dddd", size=12)) == ["aaaa bbbb ", "cccc dddd"]


def test_an_overlap_as_long_as_a_piece_is_refused() -> None:
    with pytest.raises(NodeError, match="overlap: 5 is not less than size: 5"):
        list(split("text", size=5, overlap=5))


def test_a_text_is_split_by_paragraphs_or_lines_without_empty_ones() -> None:
    text = "one\ntwo\r\n\r\n \n  three\n\n\n"
    assert list(split(text, by="paragraphs")) == ["one\ntwo", "  three"]
    assert list(split(text, by="lines")) == ["one", "two", "  three"]
    assert list(split("", by="lines")) == list(split("", by="size")) == []
