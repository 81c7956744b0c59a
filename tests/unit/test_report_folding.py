"""What a report makes of records that stopped, were resumed, or go on (kernel.md §3; events.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from records import Record, account, root

from nightwarden.report import (
    compare,
    comparison_json,
    comparison_text,
    costs_text,
    differences,
    fold_report,
    report_json,
    report_text,
)
from nightwarden.report.timeline import MOST_BINS


def squeezed(text: str) -> str:
    return " ".join(text.split())


# -- runs that stopped --


def test_what_stopped_a_supervised_run_is_missing_with_its_decision() -> None:
    record = Record()
    record.started()
    record.failed("price", 1)
    record.decided(1, "price", 1, action="fail", became="stopped", label="b", by="operator")
    record.ended("failed", roots=[root("items[*]", 3, 0, unfinished=3, missing=[])])
    report = fold_report(record.events)
    assert [(m.root, m.item, m.label, m.escalation) for m in report.missing] == [
        ("items[*]", "2", "b", "e1")
    ]
    told = squeezed(report_text(report))
    assert "2 b (e1, by operator)" in told
    assert "2 more items of items[*] not through when the run ended" in told


def test_what_the_ledger_names_is_not_named_twice() -> None:
    record = Record()
    record.started()
    record.failed("price", 1)
    record.decided(1, "price", 1, action="fail", became="stopped", by="default")
    missing = {"item": "2", "kind": "failed", "node": "other", "escalation": "e7"}
    record.ended("failed", roots=[root("items[*]", 3, 2, missing=[missing])])
    assert len(fold_report(record.events).missing) == 1


# -- runs that were resumed --


def failed_once() -> Record:
    """A run that failed at its second item, with its end."""
    record = Record()
    record.started()
    record.succeeded("price", 0, cost=100)
    record.failed("price", 1, cost=10)
    record.decided(1, "price", 1, action="fail", became="stopped", label="b")
    record.failed("price", 2, detail="cut off")
    record.ended(
        "failed",
        reason="price [2] broke",
        roots=[root("items[*]", 3, 1, unfinished=2, missing=[])],
        nodes=[account("price", 1, succeeded=1, failed=2)],
        cost=110,
        outputs={"price": {"items": 1}},
    )
    record.waits(86_400)
    return record


def test_a_resumed_run_has_no_end_until_the_next_one() -> None:
    record = failed_once()
    record.resumed()
    report = fold_report(record.events, unended="interrupted")
    assert (report.status, report.ended, report.headline) == ("interrupted", False, "")
    assert (report.roots, report.outputs, report.resumed) == ((), {}, 1)
    assert [m.item for m in report.missing] == ["2", "3"]
    told = squeezed(report_text(report))
    assert "result interrupted — its process ended before it did: nightwarden resume r1" in told
    assert "resumed 1 time" in told


def test_the_last_end_counts_and_later_facts_supersede_earlier_ones() -> None:
    record = failed_once()
    record.resumed()
    record.succeeded("price", 1)
    record.succeeded("price", 2)
    record.ended(
        roots=[root("items[*]", 3, 3, unfinished=0, missing=[])],
        nodes=[account("price", 1, succeeded=3)],
        supervised=True,
        cost=110,
    )
    report = fold_report(record.events)
    assert (report.status, report.ended, report.reason) == ("completed", True, "")
    assert (report.missing, report.failures) == ([], [])
    assert report.cost_micro_usd == 110
    assert report.afterwards == {"e1": "the run was resumed: succeeded"}
    told = squeezed(report_text(report))
    assert "became the run stopped; the run was resumed: succeeded" in told
    (price,) = [s for s in report.states if s.node == "price"]
    assert (price.state, price.counts["succeeded"]) == ("succeeded", 3)


@pytest.mark.parametrize(("asked", "how"), [(True, "asked again, e2"), (False, "failed again")])
def test_what_fails_again_after_a_resume_is_told_so(asked: bool, how: str) -> None:
    record = failed_once()
    record.resumed()
    if not asked:
        record.failed("price", 1)
    record.decided(2, "price", 1, reason="enough of it")
    report = fold_report(record.events)
    assert report.afterwards == {"e1": f"the run was resumed: {how}"}
    assert {(m.item, m.kind, m.escalation) for m in report.missing} == {
        ("2", "lost", "e2"),
        ("3", "failed", ""),
    }


def test_a_crash_without_an_end_is_a_drive_of_its_own() -> None:
    record = Record()
    record.started()
    record.succeeded("price", 0)
    record.waits(7_200)
    record.resumed(definition_hash="cd" * 32, inputs={"names": ["z"]})
    record.ended(supervised=False)
    report = fold_report(record.events)
    assert (report.status, report.definition_hash[:2]) == ("completed", "cd")
    assert report.inputs == {"names": ["z"]}
    first, second = report.timeline.drives
    assert (first.from_s, first.to_s) == (0.0, pytest.approx(0.1))
    assert (second.from_s, second.to_s) == (pytest.approx(0.1), pytest.approx(0.2))


def test_every_prefix_of_a_resumed_record_has_a_report() -> None:
    record = failed_once()
    record.resumed(redo=[["price", [0]], "odd"])
    record.succeeded("price", 0)
    record.decided(2, "price", 1)
    record.ended()
    for end in range(len(record.events) + 1):
        report = fold_report(record.events[:end])
        assert report_text(report)
        json.dumps(report_json(report), allow_nan=False)


# -- how nodes stand, before there is a ledger --


def states(record: Record, **options: Any) -> dict[str, tuple[str, dict[str, int]]]:
    found = fold_report(record.events, **options).states
    return {s.node: (s.state, {c: n for c, n in s.counts.items() if n}) for s in found}


def test_nodes_of_a_run_that_goes_on_stand_as_far_as_its_events_say() -> None:
    record = Record()
    record.started([("items[*]", "flow.ForEach"), ("price", "p"), ("next", "n"), ("total", "t")])
    record.add("node_started", "items[*]")
    record.succeeded("items[*]")
    record.add("node_finished", "items[*]")
    record.add("node_started", "price")
    record.succeeded("price", 0)
    record.decided(1, "price", 1)
    record.add("invocation_pruned", "next", lineages=[[1]], kind="lost", by="")
    assert states(record, unended="running") == {
        "items[*]": ("succeeded", {"succeeded": 1}),
        "price": ("running", {"succeeded": 1, "skipped": 1}),
        "next": ("pruned", {"pruned": 1}),
        "total": ("waiting", {}),
    }
    assert states(record)["price"][0] == "unfinished"


def test_what_is_done_again_is_not_counted_twice() -> None:
    record = Record()
    record.started()
    record.succeeded("price", 0)
    record.add("invocation_suspended", "price", 1, reason="later")
    record.ended("suspended")
    record.resumed(redo=[["price", [0]]])
    record.succeeded("price", 0)
    assert states(record)["price"] == ("unfinished", {"succeeded": 1})


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"succeeded": 2}, "succeeded"),
        ({"succeeded": 2, "unrun": 1}, "unfinished"),
        ({"succeeded": 2, "repaired": 1}, "repaired"),
        ({"repaired": 1, "skipped": 1}, "skipped"),
        ({"succeeded": 1, "ended_early": 1}, "skipped"),
        ({"skipped": 1, "failed": 1}, "failed"),
        ({"pruned": 3}, "pruned"),
        ({"unrun": 3}, "waiting"),
    ],
)
def test_a_node_is_called_by_the_worst_of_it(counts: dict[str, int], word: str) -> None:
    record = Record()
    record.started()
    record.ended("failed", nodes=[account("price", 1, **counts)])
    assert states(record)["price"][0] == word


# -- the timeline --


def test_work_is_placed_where_it_was_done() -> None:
    record = Record(step_s=1.0)
    record.started()
    record.succeeded("price", 0, took=1.0)  # from 0 to 1
    record.waits(2)
    record.succeeded("price", 1, took=0.5)  # from 3.5 to 4
    timeline = fold_report(record.events).timeline
    busy, width = timeline.busy["price"], timeline.width_s
    assert timeline.length_s == pytest.approx(4.0)
    assert sum(busy) == pytest.approx(1.5)
    assert sum(busy[: round(1 / width) + 1]) == pytest.approx(1.0)
    assert sum(busy[round(3.5 / width) - 1 :]) == pytest.approx(0.5)


def test_a_long_run_takes_no_more_room_than_a_short_one() -> None:
    record = Record(step_s=60.0)
    record.started()
    for i in range(3_000):
        record.succeeded("price", i, took=600.0)
    timeline = fold_report(record.events).timeline
    assert len(timeline.busy["price"]) <= MOST_BINS + 1
    assert sum(timeline.busy["price"]) == pytest.approx(3_000 * 600.0, rel=0.02)
    assert max(timeline.busy["price"]) / timeline.width_s == pytest.approx(10.0)


def test_a_clock_that_jumps_stands_still_here() -> None:
    record = Record()
    record.started()
    record.succeeded("price", 0)
    record.waits(-9_000)
    record.succeeded("price", 1)
    record.waits(80 * 365 * 86_400)
    record.succeeded("price", 2)
    timeline = fold_report(record.events).timeline
    assert timeline.length_s == pytest.approx(0.1)
    assert sum(timeline.busy["price"]) == pytest.approx(0.15)


def test_the_json_tells_nodes_and_timeline() -> None:
    record = Record()
    record.started()
    record.succeeded("price", 0, cost=500)
    record.decided(1, "price", 1)
    form: Any = report_json(fold_report(record.events))
    assert form["nodes"][1] == {
        "node": "price",
        "type": "shop.Price",
        "state": "unfinished",
        "counts": {"succeeded": 1, "skipped": 1},
        "decisions": {"skip": 1},
        "cost_usd": 0.0005,
    }
    (mark,) = form["timeline"]["decisions"]
    assert (mark["node"], mark["lineage"], mark["action"]) == ("price", [1], "skip")
    assert form["timeline"]["busy_s"].keys() == {"price"}


# -- how two runs differ --


def test_each_kind_of_difference_stands_apart() -> None:
    before, after = Record(), Record()
    for record, skipped, price in ((before, True, "1.0"), (after, False, "2.0")):
        record.started()
        record.succeeded("price", 0, cost=100)
        if skipped:
            record.decided(1, "price", 1, cost=30_000)
        lost = {"item": "2", "kind": "lost", "node": "price", "escalation": "e1"}
        record.ended(
            roots=[root("items[*]", 2, 2 - skipped, missing=[lost] * skipped)],
            nodes=[account("price", 1, succeeded=2 - skipped, skipped=int(skipped))],
            outputs={"price": price},
        )
    one, other = fold_report(before.events), fold_report(after.events)
    assert list(comparison_text(compare(one, other))) == [
        "Decisions",
        "  decision on price [2], attempt 1: skip (skipped) → none",
        "Items",
        "  item 2 of items[*]: missing at price → there",
        "Outputs",
        "  output price: 1.0 → 2.0",
        "Counts",
        "  price, succeeded: 1 → 2",
        "  price, skipped: 1 → 0",
    ]
    form: Any = comparison_json(one, other)
    assert form["same"] is False
    assert form["differences"] == differences(one, other)
    assert form["details"][0] == {
        "kind": "decision",
        "about": "decision on price [2], attempt 1",
        "before": "skip (skipped)",
        "after": "none",
    }
    assert form["costs"]["supervisor"] == {"before_usd": 0.03, "after_usd": 0.0}


def test_costs_are_told_and_are_no_difference() -> None:
    before, after = Record(), Record()
    for record, cost in ((before, 250_000), (after, 0)):
        record.started()
        record.succeeded("price", 0, cost=cost)
    one, other = fold_report(before.events), fold_report(after.events)
    assert compare(one, other) == []
    assert costs_text(one, other) == "steps $0.25 → $0.00"
    assert costs_text(other, other) == ""


def test_an_output_that_looks_the_same_but_is_not_is_named() -> None:
    before, after = Record(), Record()
    for record, end in ((before, "a"), (after, "b")):
        record.started()
        record.ended(outputs={"price": "x" * 500 + end})
    (found,) = compare(fold_report(before.events), fold_report(after.events))
    assert (found.kind, found.after.endswith("(its end differs)")) == ("output", True)
