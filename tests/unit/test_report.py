"""The report of a recorded run, from its events alone (supervision.md §7; events.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import nightwarden as nw
from nightwarden.report import RunReport, differences, fold_report, report_json, report_text
from nightwarden.store.opening import open_store

ANSWERS = """
- when: {node: price, signature: "node:no-tag"}
  answer: {action: repair, reason: the tag is known, outputs: {output: 5.0}}
- when: {node: price, signature: "node:gone"}
  answer: {action: skip, apply_to: signature, reason: gone for good}
- when: {node: price, attempt: 1}
  answer: {action: retry, reason: may pass}
"""


@nw.node(type="shop.Price", retry_safe=True, label="{name}")
def price(name: str, ctx: nw.Context) -> float:
    ctx.spend(0.25)
    if name == "tagless":
        raise nw.RecoverableError("no price on the tag", candidate_output="?", code="no-tag")
    if name.startswith("gone"):
        raise nw.NodeError(f"{name} is gone", code="gone")
    if name == "odd":
        ctx.log.warning("an odd name")
    return float(len(name))


@nw.node(type="shop.Read")
def read(rows: list[str], ctx: nw.Context) -> list[str]:
    for number, row in enumerate(rows, start=1):
        if not row:
            ctx.rejected(number, row, "empty")
    return [row for row in rows if row]


@nw.node(type="shop.Total")
def total(prices: nw.Collect[float]) -> float:
    return sum(prices)


def shop() -> Any:
    with nw.workflow("shop") as w:
        names = w.input("names", list[str])
        rows = w.add(read, id="read", rows=names)
        item = w.add(price, id="price", name=rows.each())
        w.add(total, id="total", prices=item.collect())
    return w.build()


def play(tmp_path: Path, names: list[str], **options: Any) -> tuple[nw.RunResult, RunReport]:
    """Run the shop, and fold what was recorded of it."""
    result = nw.run(shop(), {"names": names}, store=tmp_path, **options)
    return result, fold_report(events_of(tmp_path, result.run_id), record=result.record)


def events_of(tmp_path: Path, run_id: str) -> list[Mapping[str, Any]]:
    with open_store(tmp_path) as store:
        return list(store.read(run_id))


def supervised(tmp_path: Path, names: list[str]) -> tuple[nw.RunResult, RunReport]:
    (tmp_path / "answers.yaml").write_text(ANSWERS)
    return play(tmp_path, names, supervise=f"scripted:{tmp_path / 'answers.yaml'}")


@pytest.fixture
def helped(tmp_path: Path) -> RunReport:
    names = ["a", "tagless", "", "gone-1", "odd", "gone-2"]
    _, report = supervised(tmp_path, names)
    return report


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_report_says_what_the_result_says(tmp_path: Path) -> None:
    """surfaces.md: same run, same record."""
    result, report = supervised(tmp_path, ["a", "gone-1", "bb"])
    assert (report.run_id, report.status, report.headline) == (
        result.run_id,
        "completed",
        result.headline,
    )
    assert report.supervised is result.supervised is True
    assert report.duration_s == result.duration_s
    assert report.outputs == {"total": 3.0}
    assert report.inputs == {"names": ["a", "gone-1", "bb"]}
    assert [dict(node) for node in report.nodes] == result.ledger["nodes"]


def test_every_missing_item_is_named(helped: RunReport) -> None:
    """supervision.md §7: the report lists precisely which items are missing."""
    assert [(m.item, m.label, m.node, m.kind, m.reason) for m in helped.missing] == [
        ("3", "gone-1", "price", "lost", "gone for good"),
        ("5", "gone-2", "price", "lost", "gone for good"),
    ]
    text = squeezed(report_text(helped))
    assert "2 items of read.output[*] given up at price: gone for good" in text
    assert "3 gone-1 (e" in text
    assert "5 gone-2 (e" in text


def test_each_intervention_tells_what_failed_was_seen_decided_and_became(
    helped: RunReport,
) -> None:
    assert sorted((i.action, i.decided_by, i.became) for i in helped.interventions) == [
        ("skip", "agent", "skipped"),
        ("skip", "sticky", "skipped"),
        ("substitute", "agent", "repair_accepted"),
    ]
    text = squeezed(report_text(helped))
    for said in (
        "⛨ price [2/5 tagless]",
        "failed no price on the tag (RecoverableError, node:no-tag; attempt 1)",
        "saw name = tagless",
        "value ?",
        "allowed repair, skip, stop",
        "decided repair (the tag is known) — by agent, $0.00",
        "repair output = 5.0",
        "became repaired",
        "decided skip (gone for good) · applies to node:gone — by agent",
        "decided skip (gone for good) · as for all node:gone — by sticky",
        "became skipped",
    ):
        assert said in text


def test_costs_rejected_records_and_warnings_are_told(helped: RunReport) -> None:
    assert helped.costs == {"price": 1_250_000}
    assert helped.cost_micro_usd == 1_250_000
    assert helped.rejected == {"read": 1}
    assert helped.warnings == ["price [4]: an odd name"]
    text = report_text(helped)
    assert "price: $1.25" in text
    assert "read: 1 record\n    line 3: empty:" in text
    assert "price [4]: an odd name" in text


def test_the_ledger_is_told_by_node_and_by_fan_out(helped: RunReport) -> None:
    text = squeezed(report_text(helped))
    assert "price 5 due: 2 succeeded, 1 repaired, 2 skipped" in text
    assert "read.output[*]: kept 3 of 5, missing 3, 5" in text


def test_an_unsupervised_failure_is_listed_with_nobody_asked(tmp_path: Path) -> None:
    _, report = play(tmp_path, ["gone-1"])
    assert (report.status, report.interventions, report.supervised) == ("failed", [], False)
    (failure,) = report.failures
    assert (failure.place, failure.detail) == ("price [1 gone-1]", "gone-1 is gone")
    text = squeezed(report_text(report))
    assert "Failures nobody was asked about price [1 gone-1]: gone-1 is gone" in text
    assert "result failed: price [1/1 gone-1]: gone-1 is gone" in text


def test_a_failure_somebody_was_asked_about_is_listed_once(helped: RunReport) -> None:
    assert helped.failures == []


def test_a_clean_run_has_a_short_report(tmp_path: Path) -> None:
    _, report = play(tmp_path, ["a", "bb"])
    text = report_text(report)
    assert "completed: 2/2 items" in text
    for title in ("Missing", "Interventions", "Failures", "Rejected", "Warnings"):
        assert title not in text


def test_a_record_without_an_end_has_a_report_that_says_so(tmp_path: Path) -> None:
    result, _ = supervised(tmp_path, ["a", "gone-1"])
    whole = events_of(tmp_path, result.run_id)
    report = fold_report(whole[:-1])
    assert (report.status, report.ended, report.supervised) == ("unfinished", False, True)
    assert [(m.item, m.label) for m in report.missing] == [("2", "gone-1")]
    assert "the record has no end" in report_text(report)
    assert report_json(report)["ended_at"] is None


def test_every_prefix_of_a_record_has_a_report(tmp_path: Path) -> None:
    result, _ = supervised(tmp_path, ["a", "tagless", "gone-1", ""])
    whole = events_of(tmp_path, result.run_id)
    for end in range(len(whole) + 1):
        report = fold_report(whole[:end])
        assert report_text(report)
        json.dumps(report_json(report), allow_nan=False)


def test_records_of_other_versions_have_a_report_too() -> None:
    """events.md: unknown types and fields are tolerated; old versions load for ever."""
    odd: Iterable[Mapping[str, Any]] = [
        {"type": "run_started", "run_id": "r", "new_field": 1},
        {"type": "moon_landed", "node_id": "a"},
        {"type": "supervisor_outcome", "escalation_id": "e7", "outcome": {"kind": "pondered"}},
        {"type": "invocation_failed", "node_id": "a"},
        {"type": "run_completed", "ledger": {"roots": [{"node": "x", "missing": [{}]}]}},
    ]
    report = fold_report(odd)
    assert (report.run_id, report.status) == ("r", "completed")
    assert "Run r of" in report_text(report)
    json.dumps(report_json(report))


def test_the_json_is_versioned_and_has_money_in_dollars(helped: RunReport) -> None:
    form = report_json(helped)
    assert form["version"] == 1
    costs: Any = form["costs"]
    assert costs["nodes_usd"] == {"price": 1.25}
    assert (costs["total_usd"], costs["supervisor_usd"]) == (1.25, 0.0)
    assert costs["models"] == [{"model": "", "steps_usd": 1.25, "supervisor_usd": 0.0}]
    assert sum(day["steps_usd"] for day in costs["days"]) == 1.25
    assert [m["label"] for m in form["missing"]] == ["gone-1", "gone-2"]  # type: ignore[attr-defined]
    json.dumps(form, allow_nan=False)


def test_nothing_in_a_report_can_move_the_cursor(tmp_path: Path) -> None:
    _, report = supervised(tmp_path, ["gone-\x1b[2J", "\x1b]0;title\x07"])
    text = report_text(report)
    assert "gone-\\x1b[2J" in text
    assert [c for c in text if not c.isprintable() and c != "\n"] == []


@pytest.mark.parametrize("width", [1, 60, 300])
def test_lines_of_the_report_fit_where_they_can(helped: RunReport, width: int) -> None:
    told = report_text(helped, width=width).partition("\nItems\n")[0].splitlines()
    assert [line for line in told if len(line) > max(width, 60)] == []


def test_a_run_does_not_differ_from_itself(helped: RunReport) -> None:
    assert differences(helped, helped) == []


def test_a_replay_with_its_decisions_does_not_differ(tmp_path: Path) -> None:
    names = ["a", "tagless", "gone-1", "gone-2"]
    first, before = supervised(tmp_path, names)
    _, after = play(tmp_path, names, supervise=f"replay:{first.run_id}")
    assert differences(before, after) == []


def test_what_differs_is_named(tmp_path: Path) -> None:
    _, before = supervised(tmp_path, ["a", "gone-1", "bb"])
    _, after = play(tmp_path, ["a", "xyz", ""])
    found = differences(before, after)
    assert "decision on price [2], attempt 1: skip (skipped) → none" in found
    assert "item 2 of read.output[*]: missing at price → there" in found
    assert "price, due: 3 → 2" in found
    assert "price, skipped: 1 → 0" in found
    assert "read, records rejected: 0 → 1" in found
    _, failed = play(tmp_path, ["gone-1"])
    assert "status: completed → failed" in differences(before, failed)


@pytest.mark.parametrize("keep_going", [False, True])
def test_what_never_ran_is_not_kept(tmp_path: Path, keep_going: bool) -> None:
    """kernel.md §1: kept are items lost, failed or unrun at none of the exits."""
    names = ["gone-1", *("a" * 9)]
    result, report = play(tmp_path, names, keep_going=keep_going)
    (ledger,) = result.ledger["roots"]
    through = sum(n["succeeded"] for n in result.ledger["nodes"] if n["node_id"] == "price")
    assert (ledger["items"], ledger["kept"]) == (10, 9 if keep_going else through)
    assert ledger["kept"] + len(ledger["missing"]) + ledger["unfinished"] == 10
    assert f"{ledger['kept']}/10 items" in result.headline
    assert f"kept {ledger['kept']} of 10" in report_text(report)


def test_the_item_that_stopped_a_run_is_missing_by_name(tmp_path: Path) -> None:
    _, report = play(tmp_path, ["a", "gone-1"])
    (missing,) = report.missing
    assert (missing.root, missing.item, missing.label, missing.node, missing.kind) == (
        "read.output[*]",
        "2",
        "gone-1",
        "price",
        "failed",
    )
    told = squeezed(report_text(report))
    assert "1 item of read.output[*] failed at price: gone-1 is gone" in told


def test_the_ends_of_a_record_are_read_without_its_middle(tmp_path: Path) -> None:
    result, report = supervised(tmp_path, ["a" * 1000] * 200)
    with open_store(tmp_path) as store:
        first, last = store.ends(result.run_id)
    assert (first["type"], last["type"]) == ("run_started", "run_completed")
    assert fold_report([first, last]).headline == report.headline
