"""What runs cost: counted once, by run, node, model and day; the supervisor apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from records import Record

import nightwarden as nw
from nightwarden.cli.costs import costs as costs_command
from nightwarden.cli.costs import is_free, spent
from nightwarden.cli.failing import Usage
from nightwarden.cli.output import Output
from nightwarden.errors import StoreError
from nightwarden.report import Spending, fold_costs, fold_report, spending_json, spending_text
from nightwarden.report.costing import Line, by_model
from nightwarden.report.spending import by_day

DAY, NEXT = "2026-03-01", "2026-03-02"


def line(node: str = "", model: str = "", day: str = DAY) -> Line:
    return Line(node, model, day)


def begun() -> Record:
    record = Record()
    record.started()
    return record


# -- one run --


def test_every_attempt_counts_also_one_that_failed() -> None:
    record = begun()
    record.failed("price", 0, cost=300_000)
    record.succeeded("price", 0, cost=200_000, attempt=2)
    record.succeeded("read", cost=5)
    costs = fold_costs(record.events)
    assert costs.by_node() == {"price": 500_000, "read": 5}
    assert (costs.steps_micro_usd, costs.supervisor_micro_usd) == (500_005, 0)


def test_what_a_step_booked_on_the_way_is_part_of_what_it_cost() -> None:
    record = begun()
    for _ in range(3):
        record.add("invocation_spent", "price", 0, attempt=1, cost_micro_usd=100, what="a call")
    record.succeeded("price", 0, cost=300)
    assert fold_costs(record.events).by_node() == {"price": 300}


def test_what_a_step_booked_before_it_was_cut_off_was_spent() -> None:
    """supervision.md §5: money spent is part of the record and survives resume."""
    record = begun()
    record.add("invocation_spent", "price", 0, attempt=1, cost_micro_usd=100)
    assert fold_costs(record.events).by_node() == {"price": 100}
    record.resumed()
    record.succeeded("price", 0, cost=70)
    assert fold_costs(record.events).by_node() == {"price": 170}


def test_what_deciding_cost_stands_apart() -> None:
    record = begun()
    record.failed("price", 0, cost=10)
    record.decided(1, "price", 0, cost=20_000, model="m:large")
    record.decided(2, "price", 1, cost=0)
    costs = fold_costs(record.events)
    assert costs.supervisor == {line(model="m:large"): 20_000}
    assert by_model(costs) == {"": (10, 0), "m:large": (0, 20_000)}


def test_model_turns_and_the_decision_they_led_to_are_counted_once() -> None:
    record = begun()
    for number, cost in ((1, 400), (2, 250)):
        turn = {"budget": "supervisor", "reservation": number}
        record.add(
            "budget_reserved", **turn, worst_micro_usd=9_000, model="m:large", escalation_id="e1"
        )
        record.add("budget_committed", **turn, cost_micro_usd=cost)
    record.decided(1, "price", 0, cost=650, model="m:large")
    assert fold_costs(record.events).supervisor == {line(model="m:large"): 650}


def test_a_model_turn_that_was_cut_off_counts_at_its_worst() -> None:
    """supervision.md §6, Money: an open reservation is not zero."""
    record = begun()
    turn = {"budget": "supervisor", "reservation": 1}
    record.add("budget_reserved", **turn, worst_micro_usd=9_000, model="m", escalation_id="e1")
    assert fold_costs(record.events).supervisor_micro_usd == 9_000
    record.add("budget_committed", **turn, cost_micro_usd=0, booked="refused")
    assert fold_costs(record.events).supervisor == {}


def test_what_the_end_tells_beyond_that_is_under_no_step() -> None:
    record = begun()
    record.succeeded("price", 0, cost=100)
    record.ended(cost=150, supervisor_cost=30)
    costs = fold_costs(record.events)
    assert costs.by_node() == {"price": 100, "": 50}
    assert costs.supervisor == {line(): 30}


def test_of_several_ends_the_last_one_counts() -> None:
    record = begun()
    record.succeeded("price", 0, cost=100)
    record.ended("suspended", cost=100)
    record.resumed()
    record.succeeded("price", 1, cost=60)
    record.ended(cost=160)
    assert fold_costs(record.events).by_node() == {"price": 160}


def test_each_amount_belongs_to_the_day_it_was_spent_on() -> None:
    record = begun()
    record.succeeded("price", 0, cost=100)
    record.waits(86_400)
    record.succeeded("price", 1, cost=50, model="m:small")
    record.decided(1, "price", 1, cost=7)
    costs = fold_costs(record.events)
    assert by_day(costs) == {DAY: (100, 0), NEXT: (50, 7)}
    assert costs.steps[line("price", "m:small", NEXT)] == 50


@pytest.mark.parametrize("odd", [None, "12", -5, True, 1.5, [], {}])
def test_what_is_no_amount_is_none(odd: object) -> None:
    event = {"type": "invocation_succeeded", "node_id": "a", "cost_micro_usd": odd}
    assert fold_costs([event, {"type": "run_completed", "cost_micro_usd": odd}]).steps == {}


def test_the_report_s_costs_are_these() -> None:
    record = begun()
    record.succeeded("price", 0, cost=100)
    record.decided(1, "price", 1, cost=7)
    report = fold_report(record.events)
    assert (report.cost_micro_usd, report.supervisor_cost_micro_usd) == (100, 7)
    assert {s.node: s.cost_micro_usd for s in report.states} == {"items[*]": 0, "price": 100}


# -- several runs --


def several() -> Spending:
    spending = Spending()
    for number, (node, cost) in enumerate([("price", 100_000), ("read", 2_000_000), ("price", 0)]):
        record = Record(f"r{number}")
        record.started()
        record.succeeded(node, 0, cost=cost, model="m:small" if node == "read" else "")
        if cost == 100_000:
            record.decided(1, node, 1, cost=30_000, model="m:large")
        spending.add(f"r{number}", "shop", "", fold_costs(record.events))
    return spending


def test_runs_are_summed_by_run_node_model_and_day() -> None:
    form = spending_json(several())
    assert form["version"] == 1
    assert (form["total_usd"], form["steps_usd"], form["supervisor_usd"]) == (2.13, 2.1, 0.03)
    assert form["free_runs"] == 1
    assert [(r["run_id"], r["steps_usd"], r["supervisor_usd"]) for r in form["runs"]] == [  # type: ignore[attr-defined]
        ("r0", 0.1, 0.03),
        ("r1", 2.0, 0.0),
    ]
    assert form["nodes"] == [
        {"workflow": "shop", "node": "read", "steps_usd": 2.0},
        {"workflow": "shop", "node": "price", "steps_usd": 0.1},
    ]
    assert form["models"] == [
        {"model": "m:small", "steps_usd": 2.0, "supervisor_usd": 0.0},
        {"model": "", "steps_usd": 0.1, "supervisor_usd": 0.0},
        {"model": "m:large", "steps_usd": 0.0, "supervisor_usd": 0.03},
    ]
    assert form["days"] == [{"day": DAY, "steps_usd": 2.1, "supervisor_usd": 0.03}]


def test_each_way_of_telling_adds_up_to_the_same() -> None:
    form: Mapping[str, Any] = spending_json(several())
    for way in ("runs", "nodes", "models", "days"):
        assert round(sum(row["steps_usd"] for row in form[way]), 6) == form["steps_usd"]
    for way in ("runs", "models", "days"):
        assert round(sum(row["supervisor_usd"] for row in form[way]), 6) == form["supervisor_usd"]


def test_the_table_has_the_supervisor_s_line_apart() -> None:
    told = spending_text(several())
    assert told.splitlines()[-4:] == [
        "steps            $2.10",
        "supervisor       $0.03",
        "together         $2.13",
        "2 runs; 1 other cost nothing",
    ]
    assert "By node steps\nshop: read $2.00" in re.sub(" +", " ", told).replace("\n ", "\n")
    assert "(no model)" in told


def test_only_what_was_asked_for_is_told() -> None:
    told = spending_text(several(), ["day"])
    assert "By day" in told
    assert "By node" not in told


def test_names_cannot_move_the_cursor() -> None:
    spending = Spending()
    record = Record("\x1b[2J")
    record.started()
    record.succeeded("\x1b]0;x\x07", 0, cost=5, model="\u202em")
    spending.add("\x1b[2J", "a\nb", "", fold_costs(record.events))
    assert [c for c in spending_text(spending) if not c.isprintable() and c != "\n"] == []


# -- the command --


@nw.node(type="shop.Price", retry_safe=True)
def price(n: int, ctx: nw.Context) -> int:
    ctx.spend(0.25)
    return n


@nw.node(type="shop.Free", retry_safe=True)
def free(n: int) -> int:
    return n


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A store with two runs that cost something, and one that did not."""
    for step, numbers in ((price, [1, 2]), (free, [1]), (price, [1])):
        with nw.workflow("shop") as w:
            w.add(step, id="step", n=w.input("numbers", list[int]).each())
        nw.run(w.build(), {"numbers": numbers}, store=tmp_path)
    return str(tmp_path)


def told_json(capsys: Any, *arguments: Any, **options: Any) -> Mapping[str, Any]:
    assert costs_command(*arguments, json=True, **options) == 0
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_command_sums_all_runs_of_a_store(place: str, capsys: Any) -> None:
    form = told_json(capsys, store=place)
    assert (form["total_usd"], form["supervisor_usd"], form["free_runs"]) == (0.75, 0.0, 1)
    assert [run["steps_usd"] for run in form["runs"]] == [0.5, 0.25]
    assert form["nodes"] == [{"workflow": "shop", "node": "step", "steps_usd": 0.75}]


def test_the_command_prints_tables(place: str, capsys: Any) -> None:
    assert costs_command(store=place) == 0
    told = capsys.readouterr().out
    for title in ("By run", "By node", "By model", "By day", "supervisor       $0.00"):
        assert title in told


def test_single_runs_can_be_chosen(place: str, capsys: Any) -> None:
    assert told_json(capsys, ["last", "last"], store=place)["total_usd"] == 0.25


def test_runs_before_a_day_can_be_left_out(place: str, capsys: Any) -> None:
    assert told_json(capsys, since="2999-01-01", store=place)["runs"] == []
    assert told_json(capsys, since="2020-01-01", store=place)["total_usd"] == 0.75


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": ["hour"]}, "--by hour: costs are told by run, node, model or day"),
        ({"since": "yesterday"}, "--since yesterday: write a day as 2026-01-31"),
    ],
)
def test_what_cannot_be_told_is_said(options: Any, said: str, place: str) -> None:
    with pytest.raises(Usage, match=said):
        costs_command(store=place, **options)


class Shelf:
    """Runs kept in memory; `reads` counts how often one was read whole."""

    def __init__(self, *records: Record, broken: str = "") -> None:
        self._records = {record.run_id: record.events for record in records}
        self._broken = broken
        self.reads: list[str] = []

    def run_ids(self) -> list[str]:
        return [*self._records, *([self._broken] if self._broken else [])]

    def find(self, run_id: str) -> str:
        return run_id

    def read(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        self.reads.append(run_id)
        yield from self._records[run_id]

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        if run_id == self._broken:
            raise StoreError(f"{run_id} cannot be read")
        yield self._records[run_id][0]
        yield self._records[run_id][-1]


def test_a_run_that_says_it_cost_nothing_is_not_read() -> None:
    paid, free_run, going = Record("paid"), Record("free"), Record("going")
    for record, cost in ((paid, 5), (free_run, 0), (going, 0)):
        record.started()
        record.succeeded("price", 0, cost=cost)
    paid.ended(cost=5)
    free_run.ended()
    shelf = Shelf(paid, free_run, going)
    spending = spent(shelf, shelf.run_ids(), "", Output())
    assert shelf.reads == ["paid", "going"]
    assert (spending.steps, spending.free) == (5, 2)
    assert not is_free([])


def test_a_broken_record_is_named_and_hides_no_other(capsys: Any) -> None:
    record = begun()
    record.succeeded("price", 0, cost=5)
    shelf = Shelf(record, broken="torn")
    assert spent(shelf, shelf.run_ids(), "", Output()).steps == 5
    assert "torn cannot be read" in capsys.readouterr().err
