"""What a report says where nobody was asked, where nobody wanted more, and where branches part.

§7 of the supervision design: every missing item is named with its cause, and only with that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import nightwarden as nw
from nightwarden.report import fold_report, report_html, report_text
from nightwarden.report.missing import Missing, unfinished_texts
from nightwarden.store.opening import open_store


@nw.node(type="words.Odd", retry_safe=True)
def odd(x: int) -> bool:
    return x % 2 == 1


@nw.node(type="words.Picky", retry_safe=True)
def picky(x: int) -> int:
    if x == 4:
        raise ValueError(f"do not like {x}")
    return x


@nw.node(type="words.Total", retry_safe=True)
def total(xs: nw.Collect[int]) -> int:
    return sum(xs)


@nw.node(type="words.Losses", retry_safe=True)
def losses(xs: nw.Collect[int]) -> list[str]:
    return [loss.cause for loss in xs.losses]


@nw.node(type="words.First", retry_safe=True)
async def first(xs: nw.Stream[int], n: int) -> list[int]:
    found: list[int] = []
    async for x in xs:
        found.append(x)
        if len(found) == n:
            break
    return found


SKIP = "- {when: {node: picky}, answer: {action: skip, reason: no}}"


def told(tmp_path: Path, build: Any, **options: Any) -> tuple[nw.RunResult, str]:
    """What a run on five numbers came to, and its report on one line."""
    with nw.workflow("words") as w:
        build(w, w.input("xs", list[int]).each())
    with open_store(tmp_path) as store:
        result = nw.run(w.build(), {"xs": [1, 2, 3, 4, 5]}, store=store, **options)
        report = fold_report(store.read(result.run_id))
    return result, " ".join(report_text(report, width=500).split())


def summed(w: Any, xs: Any) -> None:
    w.add(total, id="total", xs=w.add(picky, id="picky", x=xs).collect())


def parted(collector: Any) -> Any:
    def build(w: Any, xs: Any) -> None:
        sides = w.add("flow.If", id="sides", value=xs, condition=w.add(odd, id="odd", x=xs))
        fine = w.add(picky, id="picky", x=sides.slot("otherwise"))
        both = w.add("flow.Merge", id="both", values=[sides.slot("then"), fine])
        w.add(collector, id="all", xs=both.collect())

    return build


def test_an_item_that_failed_without_a_decision_is_named_with_what_it_failed_of(
    tmp_path: Path,
) -> None:
    _, said = told(tmp_path, summed, keep_going=True)
    assert "1 item of inputs.xs[*] failed at picky: ValueError: do not like 4 4 4" in said
    assert "the run's own result failed at picky: ValueError: do not like 4" in said
    assert "(e1" not in said  # nobody was asked: there is no such decision


def test_a_step_that_lacked_something_is_not_said_to_have_been_reached_by_nothing(
    tmp_path: Path,
) -> None:
    result, _ = told(tmp_path, summed, keep_going=True)
    assert "total did not run: something it needs is missing" in result.headline


def test_a_branch_not_taken_is_no_cause_of_what_was_lost(tmp_path: Path) -> None:
    answers = tmp_path / "answers.yaml"
    answers.write_text(SKIP)
    result, _ = told(tmp_path, parted(losses), supervise=f"scripted:{answers}")
    assert result.outputs["all"] == ["picky [4] was given up"]


def test_a_branch_not_taken_is_no_cause_of_an_output_that_failed(tmp_path: Path) -> None:
    result, _ = told(tmp_path, parted(total), keep_going=True)
    assert result.outputs["all"] == {"absent": "failed", "causes": ["picky [4] failed"]}


@pytest.mark.parametrize(("n", "unread"), [(2, 3), (5, 0), (9, 0)])
def test_items_nobody_wanted_are_counted_apart(tmp_path: Path, n: int, unread: int) -> None:
    result, said = told(tmp_path, lambda w, xs: w.add(first, id="some", xs=xs, n=n))
    apart = f", {unread} left unread" if unread else ""
    assert result.headline == f"completed: 5/5 items{apart}"
    assert f"inputs.xs[*]: kept 5 of 5{apart}" in said
    with open_store(tmp_path) as store:
        page = report_html(fold_report(store.read(result.run_id)))
    assert bool(re.search(r"1 (closed|cut), 3 left unread", page)) is bool(unread)


def test_items_one_reader_left_and_another_took_are_not_left_unread(tmp_path: Path) -> None:
    def build(w: Any, xs: Any) -> None:
        w.add(first, id="some", xs=xs, n=2)
        w.add(total, id="total", xs=w.add(picky, id="picky", x=xs).collect())

    answers = tmp_path / "answers.yaml"
    answers.write_text(SKIP)
    result, _ = told(tmp_path, build, supervise=f"scripted:{answers}")
    assert result.headline == "completed (supervised): 4/5 items, 1 skipped, 1 decision"


def test_an_input_that_is_kept_apart_is_named_with_where_it_is(tmp_path: Path) -> None:
    with nw.workflow("words") as w:
        w.add(odd, id="odd", x=w.input("xs", list[int]).each())
    with open_store(tmp_path) as store:
        result = nw.run(w.build(), {"xs": [10**9] * 10_000}, store=store)
        report = fold_report(store.read(result.run_id))
    digest = report.large_inputs["xs"]
    assert len(digest) == 64
    assert f"input xs     large, kept as {digest}\n" in report_text(report)


def gone(root: str, item: str, kind: str) -> Missing:
    return Missing(root=root, item=item, label="", node="picky", kind=kind, reason="")


@pytest.mark.parametrize(
    ("unfinished", "listed", "missing", "said"),
    [
        (0, 0, [], []),
        (1, 0, [], ["1 item of xs[*] not through when the run ended"]),
        (4, 0, ["2", "5"], ["2 more items of xs[*] not through when the run ended"]),
        (2, 0, ["2", "5"], []),
        (3, 2, ["2", "5"], ["3 items of xs[*] not through when the run ended"]),
    ],
)
def test_items_by_name_are_not_counted_again_among_those_not_through(
    unfinished: int, listed: int, missing: list[str], said: list[str]
) -> None:
    """`listed` of those by name are the ledger's own: given up, not broken off."""
    root = {"node": "xs[*]", "unfinished": unfinished, "missing": [{}] * listed}
    named = [gone("xs[*]", item, "failed") for item in missing]
    assert list(unfinished_texts([root], [*named, gone("ys[*]", "1", "lost")])) == said
