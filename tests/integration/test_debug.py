"""`nightwarden debug`: every invocation with inputs and outputs (surfaces.md; issue 3)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Annotated, NamedTuple

import pytest
from commands import nightwarden, on_terminal
from kept import events_of

import nightwarden as nw
from nightwarden.cli.output import Output
from nightwarden.cli.tracing import MOST_HELD, Tracer, heading, value_text
from nightwarden.events.seen import Moment, Seen
from nightwarden.runtime.watching import LIMITS

STEPS = """
from nightwarden import Collect, Context, RecoverableError, node


@node(type="t.Price", retry_safe=True)
def price(name: str, rate: float = 2.0) -> float:
    if name == "tagless":
        raise RecoverableError("no price on the tag", candidate_output="?", code="no-tag")
    return len(name) * rate


@node(type="t.Total")
def total(prices: Collect[float]) -> float:
    return sum(prices)


@node(type="t.Call")
def call(key: str, address: str) -> dict[str, str]:
    return {"url": f"{address}?key={key}"}


@node(type="t.Pause")
def pause(ctx: Context) -> int:
    ctx.suspend("until the morning")
"""
SHOP = """
    name: shop
    inputs: {names: {type: "list[str]"}}
    nodes:
      price:
        type: t.Price
        name: $inputs.names[*]
        rate: 3
      total:
        type: t.Total
        prices: $price[]
    """
DEBUG = ("debug", "shop.yaml", "--nodes", "steps.py")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(dedent(SHOP), encoding="utf-8")
    return tmp_path


def blocks(err: str) -> dict[str, list[str]]:
    """Each heading of the trace without its duration, with the values below it."""
    found: dict[str, list[str]] = {}
    below: list[str] = []
    for line in err.splitlines():
        if line[:1] in ("→", "←", "+", "✗", "‖", "×"):
            below = found.setdefault(line.partition(" in ")[0], [])
        elif line.startswith("     "):
            below.append(line.strip())
    return found


def test_every_invocation_is_shown_with_its_inputs_and_outputs(place: Path) -> None:
    done = nightwarden(*DEBUG, "--input", 'names=["ab","c"]', cwd=place)
    assert done.code == 0
    assert blocks(done.err) == {
        "→ price [1]": ["rate  3.0", 'name  "ab"'],
        "← price [1]": ["output  6.0"],
        "→ price [2]": ["rate  3.0", 'name  "c"'],
        "← price [2]": ["output  3.0"],
        "→ total": ["prices  [6.0, 3.0]"],
        "← total": ["output  9.0"],
    }
    assert "── completed: 2/2 items" in done.out
    assert "→" not in done.out


def test_a_failure_is_shown_where_it_happens_and_ends_the_run_as_with_run(place: Path) -> None:
    done = nightwarden(*DEBUG, "--input", 'names=["tagless"]', "--json", cwd=place)
    assert done.code == 1
    assert "✗ price [1] no price on the tag (RecoverableError)" in done.lines
    assert json.loads(done.out)["status"] == "failed"


def test_secrets_are_masked_in_inputs_too_before_any_step_has_asked(place: Path) -> None:
    """supervision.md §4: what anybody is shown is masked."""
    text = """
        name: call
        inputs: {address: {type: str}}
        nodes:
          call:
            type: t.Call
            key: $secrets.PARTNER_KEY
            address: $inputs.address
        """
    (place / "call.yaml").write_text(dedent(text))
    done = nightwarden(
        "debug", "call.yaml", "--nodes", "steps.py",
        "--input", "address=https://x.test/zk-live-7Qm2Zt9aB/",
        cwd=place, env={"PARTNER_KEY": "zk-live-7Qm2Zt9aB"},
    )  # fmt: skip
    assert done.code == 0
    assert '     address  "https://x.test/••••(PARTNER_KEY)/"' in done.lines
    assert "7Qm2" not in done.err + done.out


def test_a_step_that_asks_for_a_pause_is_shown_to(place: Path) -> None:
    (place / "one.yaml").write_text("name: one\nnodes:\n  step:\n    type: t.Pause\n")
    done = nightwarden("debug", "one.yaml", "--nodes", "steps.py", cwd=place)
    assert done.code == 3
    assert "‖ step asked for a pause: until the morning" in done.lines


def test_break_on_failure_asks_in_a_pipe(place: Path) -> None:
    done = nightwarden(
        *DEBUG, "--break-on-failure", "--input", 'names=["ab","tagless"]',
        cwd=place, stdin="p\n4.5\nthe tag is known\n",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "answer>" in done.err
    assert blocks(done.err)["→ total"] == ["prices  [6.0, 4.5]"]
    assert "completed (supervised): 2/2 items, 1 decision, 1 repaired" in done.out


def test_break_on_failure_asks_on_a_terminal(place: Path) -> None:
    shown = on_terminal(
        *DEBUG, "--break-on-failure", "--input", 'names=["ab","tagless"]',
        cwd=place, answers=[("answer>", "s\n"), ("from now on, too?", "n\n"), ("why?>", "gone\n")],
    )  # fmt: skip
    assert shown.code == 0, shown.text
    assert "← price [1] in" in shown.text
    assert "✗ price [2] no price on the tag (RecoverableError)" in shown.text
    assert "prices  [6.0]" in shown.text
    assert "completed (supervised): 1/2 items, 1 skipped, 1 decision" in shown.text


def test_two_who_are_to_answer_are_a_mistake(place: Path) -> None:
    done = nightwarden(*DEBUG, "--break-on-failure", "--supervise", "scripted:a.yaml", cwd=place)
    assert done.code == 2
    assert "leave one of them out" in done.err


# -- the seam --


class Part(NamedTuple):
    word: str
    total: Annotated[int, nw.ONCE]


nw.outputs(Part)


@nw.node(type="t.Split", retry_safe=True)
async def split(text: str) -> AsyncIterator[Part]:
    for word in text.split():
        yield Part(word, len(text))


@nw.node(type="t.Join", retry_safe=True)
async def join(words: nw.Stream[str]) -> str:
    return "-".join([word async for word in words])


def joined(text: str, **options: object) -> tuple[list[Seen], nw.RunResult]:
    """Split and join; what was seen, and the result."""
    with nw.workflow("w") as w:
        parts = w.add(split, text=w.input("text", "str"))
        w.add(join, words=parts.slot("word"))
    seen: list[Seen] = []
    given = {"watch": seen.append, **options}
    return seen, nw.run(w.build(), {"text": text}, **given)


def test_streams_show_their_items_as_they_are_put_out() -> None:
    """No record and no listener besides: whoever watches is told all the same."""
    seen, _ = joined("a b")
    assert [(s.moment, s.values) for s in seen if s.node_id == "split"] == [
        (Moment.BEGAN, {"text": "a b"}),
        (Moment.PUT_OUT, {"word": "a"}),
        (Moment.PUT_OUT, {"word": "b"}),
        (Moment.RETURNED, {"total": 3}),
    ]
    assert [(s.moment, s.values) for s in seen if s.node_id == "join"] == [
        (Moment.BEGAN, {"words": "<a stream>"}),
        (Moment.RETURNED, {"output": "a-b"}),
    ]


def test_long_values_are_cut() -> None:
    seen, result = joined("x" * 10_000)
    shown = next(s for s in seen if s.moment is Moment.BEGAN).values["text"]
    assert len(str(shown)) < LIMITS.string_chars + 100
    assert result.outputs["join"] == "x" * 10_000


def test_a_watcher_that_raises_does_not_change_the_run(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Seen] = []

    def broken(seen: Seen) -> None:
        calls.append(seen)
        raise ValueError("no more paper")

    _, result = joined("a b", watch=broken)
    assert result.outputs["join"] == "a-b"
    assert len(calls) == 1
    assert "no longer told" in caplog.text


def test_watching_adds_nothing_to_the_record(tmp_path: Path) -> None:
    joined("a b", store=tmp_path / "watched", run_id="r", seed=1)
    joined("a b", store=tmp_path / "not", run_id="r", seed=1, watch=None)
    places = [tmp_path / name for name in ("watched", "not")]
    types = [[event["type"] for event in events_of(place)] for place in places]
    assert types[0] == types[1]


# -- the lines --


def test_nothing_is_printed_while_a_question_stands(capsys: pytest.CaptureFixture[str]) -> None:
    import contextlib

    tracer = Tracer(Output())
    with tracer.around(contextlib.nullcontext)():
        for number in range(MOST_HELD + 5):
            tracer(Seen(moment=Moment.BEGAN, node_id="n", lineage=(number,)))
        assert capsys.readouterr().err == ""
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "→ n [1]"
    assert lines[-1] == "  5 lines not shown: a question stood meanwhile"
    assert len(lines) == MOST_HELD + 1


def test_a_heading_says_which_attempt_and_how_it_ended() -> None:
    seen = Seen(moment=Moment.HALTED, node_id="n", lineage=(0, 2), attempt=2)
    assert heading(seen) == "n [1.3], attempt 2 ended because it had to"
    back = Seen(moment=Moment.RETURNED, node_id="n", took_s=0.0124)
    assert heading(back) == "n in 12 ms"
    assert value_text(["ä", None]) == '["ä", null]'
