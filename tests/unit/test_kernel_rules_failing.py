"""The kernel, one rule a test, by hand: what fails, what is decided, how a run stops, the sums.

kernel.md §1 (verdicts, the ledger) and §3; supervision.md §1.
"""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Hand
from reference.small import collect, fan, node, safe, step, stream, wire, workflow

from nightwarden.errors import KernelBug
from nightwarden.kernel.causes import NOT_TAKEN, Absent, Carried, Kind
from nightwarden.kernel.effects import (
    Apply,
    Conclude,
    Delay,
    EndFeed,
    Escalate,
    Halt,
    Invoke,
    Stop,
)
from nightwarden.kernel.state import Gathered
from nightwarden.kernel.stimuli import (
    Decided,
    DelayPassed,
    Failed,
    Overspent,
    RunCancelled,
    Succeeded,
    Suspended,
    Unbegun,
)
from nightwarden.verdict import (
    DecidedBy,
    Decision,
    EndStream,
    Fail,
    OutcomeKind,
    Retry,
    Skip,
    Substitute,
    action_of,
)


def started(*nodes: object, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)  # type: ignore[arg-type]
    run.start()
    return run


def offered(run: Hand) -> list[str]:
    return [str(action) for action in run.of(Escalate)[-1].allowed]


def outcomes(run: Hand) -> list[tuple[int, str]]:
    return [(e.escalation, str(e.kind)) for e in run.of(Conclude)]


# -- what may be answered --


@pytest.mark.parametrize(
    ("facts", "expected", "refused"),
    [
        ({}, ["retry", "skip", "fail"], ""),
        (
            {"has_candidate": True, "checkable": True},
            ["retry", "substitute", "skip", "fail"],
            "",
        ),
        ({"has_candidate": True}, ["retry", "skip", "fail"], ""),
        ({"checkable": True}, ["retry", "skip", "fail"], ""),
        ({"cost_micro_usd": 1}, ["skip", "fail"], "the attempt spent money"),
        ({"cost_known": False}, ["skip", "fail"], "the attempt spent money"),
        ({"assets": 1}, ["skip", "fail"], "the attempt wrote a file"),
        (
            {"unknown": True},
            ["skip", "fail"],
            "whether the attempt took effect is not known",
        ),
        ({"copied": False}, ["skip", "fail"], "an input could not be copied"),
        (
            {"retry_after_s": 301.0},
            ["skip", "fail"],
            "it asks to wait 301 s, more than 300 s",
        ),
        ({"retry_after_s": 300.0}, ["retry", "skip", "fail"], ""),
        ({"bad_input": True, "has_candidate": True, "checkable": True}, ["skip", "fail"], ""),
    ],
)
def test_what_is_offered_hangs_on_what_the_attempt_did(
    facts: dict[str, Any], expected: list[str], refused: str
) -> None:
    """row: S1-PLAIN, S1-RETRY, S1-SUBSTITUTE, S1-MISFIT"""
    run = started(safe("step"))
    run.fails("step", **facts)
    assert offered(run) == expected
    assert run.of(Escalate)[-1].retry_refused == refused


def test_retry_is_offered_only_if_the_step_says_it_is_safe_or_passes_a_key() -> None:
    """row: S1-RETRY, S1-IDEMPOTENT"""
    run = started(step("step"))
    run.fails("step")
    assert offered(run) == ["skip", "fail"]
    run = started(step("step"))
    run.fails("step", idempotent=True)
    assert offered(run) == ["retry", "skip", "fail"]
    run = started(step("step"))
    run.fails("step", idempotent=True, cost_micro_usd=1)
    assert offered(run) == ["skip", "fail"]


def test_a_fan_out_may_be_retried_until_it_has_put_something_out() -> None:
    """row: S1-FANOUT-FRESH, S1-FANOUT-EMITTED"""
    items = node("items", {}, frames=("output",), outs=(), retry_safe=True)
    run = started(items)
    run.fails("items", has_candidate=True, checkable=True)
    assert (offered(run), run.of(Escalate)[-1].emitted) == (["retry", "skip", "fail"], 0)
    run = started(items)
    run.emits("items", 1)
    run.fails("items")
    assert (offered(run), run.of(Escalate)[-1].emitted) == (["end_stream", "fail"], 1)


def test_a_reader_may_only_be_ended() -> None:
    """row: S1-READER"""
    read = node("read", {"x": stream("items")}, retry_safe=True)
    run = started(fan("items"), read)
    run.emits("items", 1)
    run.fails("read", has_candidate=True, checkable=True)
    assert offered(run) == ["end_stream", "fail"]


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_step_is_retried_as_often_as_its_budget_says(retries: int) -> None:
    """row: S1-RETRY, K1-LEDGER-5"""
    run = started(safe("step"), max_retries=retries)
    for tried in range(retries):
        run.fails("step")
        assert "retry" in offered(run)
        assert run.of(Escalate)[-1].retries_left == retries - tried
        run.decides(Retry())
        run.waits()
    run.fails("step")
    assert offered(run) == ["skip", "fail"]
    assert run.of(Escalate)[-1].retry_refused == f"its {retries} retries are used up"
    assert run.of(Escalate)[-1].retries_left == 0
    run.decides(Skip())
    account = run.node("step")
    assert (account.started, account.attempts) == (1, retries + 1)
    assert (account.retries_decided, account.retries_run) == (retries, retries)


def test_each_item_has_a_retry_budget_of_its_own() -> None:
    """row: S1-RETRY"""
    run = started(fan("items"), safe("step", x="items"), max_retries=1)
    run.emits("items", 0, 1)
    run.fails("step", 0)
    run.decides(Retry())
    run.fails("step", 1)
    assert "retry" in offered(run)


@pytest.mark.parametrize("verdict", [EndStream(), Substitute({"output": 1}), Retry()])
def test_a_verdict_that_is_not_allowed_becomes_fail(verdict: Any) -> None:
    """row: S1-CREDIT-KERNEL"""
    run = started(step("step"), step("next", x="step"))
    run.fails("step")
    run.decides(verdict, outputs=(1,))
    (applied,) = [e.decision for e in run.of(Apply)]
    assert isinstance(applied.verdict, Fail)
    assert (applied.decided_by, applied.asked_for) == (DecidedBy.KERNEL, verdict)
    assert applied.verdict.reason.startswith(f"{action_of(verdict).word} was refused: ")
    assert run.status() == "failed"
    assert not run.ran("next")


def test_a_retry_beyond_the_budget_is_refused_by_the_bounds() -> None:
    """row: S1-CREDIT-BOUNDS"""
    run = started(safe("step"), max_retries=0)
    run.fails("step")
    run.decides(Retry())
    (applied,) = [e.decision for e in run.of(Apply)]
    assert (applied.decided_by, applied.asked_for) == (DecidedBy.BOUNDS, Retry())
    assert not run.of(Delay)
    assert outcomes(run) == [(1, "stopped")]


@pytest.mark.parametrize("facts", [{"assets": 1}, {"retry_after_s": 301.0}])
def test_a_retry_that_is_refused_for_another_reason_is_not_the_bounds_doing(
    facts: dict[str, Any],
) -> None:
    """row: S1-CREDIT-KERNEL"""
    run = started(safe("step"), max_retries=0)
    run.fails("step", **facts)
    run.decides(Retry())
    assert [e.decision.decided_by for e in run.of(Apply)] == [DecidedBy.KERNEL]


def test_a_repair_with_problems_is_refused() -> None:
    """row: S1-CREDIT-KERNEL"""
    run = started(step("step"), step("next", x="step"))
    run.fails("step", has_candidate=True, checkable=True)
    run.decides(Substitute({"output": "x"}), outputs=("x",), problems=("no number",))
    (applied,) = [e.decision for e in run.of(Apply)]
    assert isinstance(applied.verdict, Fail)
    assert applied.verdict.reason == "the repair was refused: no number"
    assert not run.ran("next")


# -- verdicts --


def test_a_skipped_step_leaves_all_its_slots_lost() -> None:
    """row: K1-VERDICT-SKIP"""
    run = started(step("a", outs=("x", "y")), step("b", v="a.x"), step("c", v="a.y"))
    run.fails("a")
    run.decides(Skip())
    assert (run.kind("a", slot="x"), run.kind("a", slot="y")) == (Kind.LOST, Kind.LOST)
    assert (run.node("a").skipped, run.node("b").pruned_lost, run.node("c").pruned) == (1, 1, 1)
    assert outcomes(run) == [(1, "skipped")]
    assert run.status() == "completed"


def test_a_skipped_fan_out_gives_no_empty_list() -> None:
    """row: K1-VERDICT-SKIP-FANOUT, K1-VERDICT-NEVER-OPENED"""
    run = started(
        fan("items", outs=("total",)),
        step("list", x=collect("items")),
        step("sum", n="items.total"),
    )
    run.fails("items")
    run.decides(Skip())
    assert not run.ran("list")
    assert (run.kind("list"), run.kind("items", slot="total")) == (Kind.LOST, Kind.LOST)
    assert run.root("items").marks == {"absent": 1}
    assert run.status() == "completed"


def test_a_list_that_accepts_it_is_told_of_the_fan_out_it_lost() -> None:
    """row: K1-VERDICT-SKIP-FANOUT"""
    run = started(fan("items"), step("list", x=collect("items", accepts=True)))
    run.fails("items")
    run.decides(Skip())
    ((given,),) = run.ran("list").values()
    assert isinstance(given, Gathered)
    assert (given.values, [index for index, _ in given.losses]) == ([], [-1])


def test_a_reader_below_a_fan_out_that_never_opened_is_pruned() -> None:
    """row: K1-VERDICT-NEVER-OPENED"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.fails("items")
    run.decides(Skip())
    assert not run.ran("read")
    assert run.kind("read") is Kind.LOST


def test_a_fan_out_below_a_branch_not_taken_never_opens() -> None:
    """row: K1-VERDICT-NEVER-OPENED"""
    run = started(step("if"), fan("items", x="if"), step("list", x=collect("items")))
    run.returns("if", other=1)
    assert (run.kind("list"), run.node("items").pruned) == (Kind.NOT_TAKEN, 1)
    assert run.root("items").items == 0


def test_a_reader_skipped_for_its_input_loses_its_whole_stream() -> None:
    """row: S1-MISFIT, K1-FAN-LEFT"""
    run = started(fan("items"), step("read", x=stream("items")))
    run.emits("items", 0)
    run.fails("read", bad_input=True)
    run.decides(Skip())
    run.emits("items", 1)
    run.returns("items")
    assert run.exit("items", "read.x").lost == 2
    assert run.status() == "completed"


def test_what_fails_after_putting_something_out_fails_what_it_has_not_read() -> None:
    """row: K3-KEEP-GOING, K1-FAN-LEFT"""
    run = started(
        fan("items"), fan("pass", x=stream("items")), step("use", x="pass"), keep_going=True
    )
    run.emits("items", 0, 1)
    run.asks("pass", "x")
    run.emits("pass", 0)
    run.fails("pass")
    run.decides(Fail(), by=DecidedBy.DEFAULT)
    run.returns("items")
    run.returns("use", 0)
    assert (run.exit("items", "pass.x").delivered, run.exit("items", "pass.x").failed) == (1, 1)
    assert run.status() == "failed"


def test_an_ended_stream_keeps_what_it_put_out() -> None:
    """row: K1-VERDICT-END-STREAM"""
    run = started(
        fan("items", outs=("total",)),
        step("list", x=collect("items")),
        step("sum", n="items.total"),
    )
    run.emits("items", "a", "b")
    run.fails("items")
    run.decides(EndStream())
    ((given,),) = run.ran("list").values()
    assert isinstance(given, Gathered)
    assert given.values == ["a", "b"]
    assert run.kind("items", slot="total") is Kind.LOST
    assert run.root("items").marks == {"early": 1}
    assert run.of(Conclude)[-1].kept == 2
    run.returns("list", output="csv")
    assert [c.node_id for c in run.causes(run.settled("list")[()])] == ["items"]


def test_a_repair_goes_on_and_carries_that_it_is_one() -> None:
    """row: K1-VERDICT-SUBSTITUTE"""
    run = started(step("a", outs=("x", "y")), step("b", v="a.x"), step("c", v="a.y"))
    run.fails("a", has_candidate=True, checkable=True)
    run.decides(Substitute({"x": 1}), outputs=(1, NOT_TAKEN))
    assert run.ran("b") == {(): (1,)}
    assert run.kind("a", slot="y") is Kind.NOT_TAKEN
    found = run.settled("a", "x")[()]
    assert isinstance(found, Carried)
    assert [(c.node_id, c.kind) for c in run.causes(found)] == [("a", Kind.REPAIRED)]
    assert outcomes(run) == [(1, "repair_accepted")]


def test_a_repair_at_the_end_of_the_way_is_delivered() -> None:
    """row: K1-VERDICT-SUBSTITUTE, K1-LEDGER-1"""
    run = started(fan("items"), step("each", x="items"))
    run.emits("items", 0)
    run.returns("items")
    run.fails("each", 0, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    assert run.exit("items", "each").delivered == 1
    assert run.status() == "completed"


def test_what_no_step_takes_is_kept_with_what_is_missing() -> None:
    """row: K3-OUTPUTS"""
    run = started(fan("items"), step("each", x="items"))
    run.emits("items", 0, 1, 2)
    run.returns("each", 2, output="c")
    run.fails("each", 1)
    run.decides(Skip())
    run.returns("each", 0, output="a")
    (kept,) = run.machine.captures()
    assert (kept.lineages, kept.values) == ([(2,), (0,)], ["c", "a"])
    assert [(at, absent.kind) for at, absent in kept.absents] == [((1,), Kind.LOST)]


def test_a_retry_settles_nothing_and_is_the_next_attempt_with_equal_inputs() -> None:
    """row: K1-VERDICT-RETRY"""
    run = started(fan("items"), safe("step", x="items"), step("next", x="step"))
    run.emits("items", "v")
    run.fails("step", 0)
    run.decides(Retry())
    assert len(run.of(Invoke)) == 2
    run.waits()
    again = run.of(Invoke)[-1]
    assert (again.attempt, again.inputs, again.lineage) == (2, ("v",), (0,))
    run.returns("step", 0, output="done")
    assert run.ran("next") == {(0,): ("done",)}
    assert outcomes(run) == [(1, "retried_succeeded")]


@pytest.mark.parametrize("late", ["result", "failure"])
def test_what_an_older_attempt_says_late_changes_nothing(late: str) -> None:
    """row: K1-VERDICT-RETRY"""
    run = started(safe("step"), step("next", x="step"))
    first = run.calls["step", ()]
    run.fails("step")
    run.decides(Retry())
    stimulus = Succeeded(first, ("late",)) if late == "result" else Failed(call=first)
    assert run.tell(stimulus) == []
    run.waits()
    assert run.calls["step", ()] != first
    assert run.tell(stimulus) == []
    run.returns("step", output="now")
    assert run.ran("next") == {(): ("now",)}
    assert run.node("step").succeeded == 1


def test_a_retry_that_fails_again_concludes_the_first_decision() -> None:
    run = started(safe("step"))
    run.fails("step")
    run.decides(Retry())
    run.waits()
    run.fails("step")
    run.decides(Skip())
    assert outcomes(run) == [(1, "retried_failed_again"), (2, "skipped")]


def test_a_decision_counts_once() -> None:
    run = started(step("a"), step("b", x="a"))
    run.fails("a")
    run.decides(Skip())
    assert run.decides(Skip()) == []
    assert run.node("a").skipped == 1


def test_a_retry_takes_its_place_before_what_waits() -> None:
    each = node("each", {"x": "items"}, retry_safe=True, concurrency=1)
    run = started(fan("items"), each)
    run.emits("items", 0, 1, 2)
    run.fails("each", 0)
    assert list(run.ran("each")) == [(0,), (1,)]
    run.decides(Retry())
    run.waits()
    run.returns("each", 1)
    assert run.of(Invoke)[-1].attempt == 2
    run.returns("each", 0)
    assert list(run.ran("each")) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("retry_after_s", "jitters", "delays"),
    [
        (None, (0.0, 0.0), [0.5, 1.0]),
        (None, (0.5, 0.5), [0.75, 1.5]),
        (7.0, (0.5, 0.5), [7, 7]),
        (0.25, (0, 0), [0.25, 0.25]),
    ],
)
def test_a_delay_is_what_the_error_asks_for_else_exponential(
    retry_after_s: float | None, jitters: tuple[float, ...], delays: list[float]
) -> None:
    """row: K3-DELAY"""
    run = started(safe("step"))
    for jitter in jitters:
        run.fails("step", retry_after_s=retry_after_s)
        run.decides(Retry(), jitter=jitter)
        run.waits()
    assert [e.seconds for e in run.of(Delay)] == delays
    assert [e.decision.delay_s for e in run.of(Apply)] == delays


# -- causes --


def test_a_later_failure_names_what_its_inputs_have_lived_through() -> None:
    """row: K1-CAUSES"""
    run = started(
        fan("items"),
        step("each", x="items"),
        step("list", x=collect("each")),
        step("end", x="list"),
    )
    run.emits("items", *range(3))
    run.returns("items")
    for item in (0, 1):
        run.fails("each", item)
        run.decides(Skip())
    run.returns("each", 2)
    run.returns("list")
    run.fails("end")
    assert run.of(Escalate)[-1].caused_by == (1, 2)


def test_a_repair_is_no_reason_for_an_absence() -> None:
    """row: K1-CAUSES"""
    run = started(step("a"), step("b"), step("join", x="a", y="b"))
    run.fails("a", has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    run.returns("b", other=1)
    found = run.settled("join")[()]
    assert isinstance(found, Absent)
    assert found.kind is Kind.NOT_TAKEN
    assert [c.node_id for c in run.causes(found)] == ["b"]


def test_a_lost_item_is_charged_to_the_first_thing_on_its_way() -> None:
    """row: K1-LEDGER-CHARGE"""
    run = started(
        fan("items"), step("a", x="items"), step("b", x="items"), step("end", x="a"),
        step("other", x="b"),
    )  # fmt: skip
    run.emits("items", 0)
    run.returns("items")
    run.fails("b", 0)
    run.decides(Skip())
    run.fails("a", 0)
    run.decides(Skip())
    (missing,) = run.root("items").missing
    assert run.machine.cause(missing.cause).node_id == "a"
    assert run.root("items").kept == 0


# -- the ledger --


def test_an_item_is_counted_once_at_every_exit() -> None:
    """row: K1-LEDGER-1"""
    run = started(
        fan("items"),
        step("a", x="items"),
        step("b", x="a"),
        step("c", x="a"),
        step("list", x=collect("a")),
        step("read", x=stream("items")),
    )
    run.emits("items", *range(4))
    run.returns("items")
    run.asks("read", "x")
    run.returns("read")
    run.returns("a", 0)
    run.returns("a", 1, nothing=1)
    run.fails("a", 2)
    run.decides(Skip())
    run.returns("a", 3)
    run.returns("b", 0)
    run.returns("c", 0)
    run.fails("b", 3)
    run.decides(Skip())
    run.returns("c", 3)
    run.returns("list")
    found = {e.name: (e.delivered, e.not_taken, e.lost, e.left) for e in run.root("items").exits}
    assert found == {
        "b": (1, 1, 2, 0),
        "c": (2, 1, 1, 0),
        "output → list.x": (2, 1, 1, 0),
        "output → read.x": (1, 0, 0, 3),
    }
    assert (run.root("items").kept, run.root("items").filtered) == (2, 0)
    assert [m.lineage for m in run.root("items").missing] == [(2,), (3,)]


def test_an_item_that_every_exit_passed_over_was_filtered_out() -> None:
    """row: K1-LEDGER-HEADLINE"""
    run = started(fan("items"), step("if", x="items"), step("a", x="if"), step("b", x="if"))
    run.emits("items", 0, 1)
    run.returns("items")
    run.returns("if", 0, nothing=1)
    run.returns("if", 1)
    run.returns("a", 1)
    run.returns("b", 1)
    assert (run.root("items").filtered, run.root("items").kept) == (1, 2)
    assert run.machine.report().run.filtered == 0


def test_a_run_of_which_nothing_was_taken_was_filtered_out() -> None:
    run = started(step("if"), step("a", x="if"))
    run.returns("if", nothing=1)
    assert run.machine.report().run.filtered == 1


def test_every_edge_of_a_root_sees_every_item_once() -> None:
    """row: K1-LEDGER-2"""
    run = started(fan("items"), step("a", x="items"), step("b", x="a"), step("c", x="a"))
    run.emits("items", *range(3))
    run.returns("items")
    run.returns("a", 0)
    run.returns("a", 1, nothing=1)
    run.fails("a", 2)
    run.decides(Skip())
    run.returns("b", 0)
    run.returns("c", 0)
    trace = [t for t in run.machine.trace or [] if t[0] == "settle" and len(t[2]) == 1]  # type: ignore[arg-type]
    edges = {t[1] for t in trace}
    for edge in edges:
        assert sorted(t[2] for t in trace if t[1] == edge) == [(0,), (1,), (2,)]  # type: ignore[type-var]


def test_every_parent_closes_exactly_once() -> None:
    """row: K1-LEDGER-3"""
    run = started(fan("outer"), safe_fan("inner", x="outer"), step("list", x=collect("inner")))
    run.emits("outer", 0, 1, 2)
    run.returns("outer")
    run.emits("inner", "a", at=(0,))
    run.returns("inner", 0)
    run.emits("inner", "b", at=(1,))
    run.fails("inner", 1)
    run.decides(EndStream())
    run.fails("inner", 2)
    run.decides(Skip())
    closings = [t for t in run.machine.trace or [] if t[0] == "close" and t[1] == 2]
    told = [(parent, n, cause and cause.kind) for _, _, parent, n, cause in closings]  # type: ignore[attr-defined]
    assert told == [((0,), 1, None), ((1,), 1, Kind.LOST), ((2,), 0, Kind.LOST)]
    assert run.root("inner").marks == {"closed": 1, "early": 1, "absent": 1}


def safe_fan(name: str, **wires: Any) -> object:
    return node(name, wires, frames=("output",), outs=(), retry_safe=True)


def test_what_is_due_at_a_node_has_ended_in_one_way() -> None:
    """row: K1-LEDGER-4"""
    run = started(fan("items"), step("if", x="items"), safe("each", x="if"))
    run.emits("items", *range(4))
    run.returns("if", 0, nothing=1)
    for item in (1, 2, 3):
        run.returns("if", item)
    run.returns("each", 1)
    run.fails("each", 2)
    run.decides(Skip())
    run.fails("each", 3, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": 1}), outputs=(1,))
    each = run.node("each")
    assert (each.due, each.pruned, each.succeeded, each.skipped, each.repaired) == (4, 1, 1, 1, 1)
    assert (each.unrun, each.pruned_lost, each.started, each.attempts) == (0, 0, 3, 3)


def test_a_completed_run_has_nothing_left() -> None:
    """row: K1-LEDGER-6"""
    run = started(fan("items"), step("each", x="items"))
    run.emits("items", 0)
    run.returns("items")
    assert run.node("each").unrun == 1
    run.returns("each", 0)
    report = run.machine.report()
    assert report.status == "completed"
    assert [(n.unrun, n.failed, n.cancelled, n.suspended) for n in report.nodes] == [(0,) * 4] * 2
    assert all(e.unrun == e.failed == 0 for root in (report.run, *report.roots) for e in root.exits)


def test_a_sum_that_does_not_come_out_is_a_bug_with_its_story() -> None:
    """row: K1-LEDGER-BUG"""
    run = started(fan("items"), step("each", x="items"))
    run.emits("items", 0)
    run.returns("each", 0)
    (group,) = run.machine._state.roots[1].open_groups.values()
    group.delivered[0] += 1
    with pytest.raises(KernelBug, match="items: 1 items emitted, but 2 ended at each") as caught:
        run.returns("items")
    assert "closed under []" in str(caught.value.story)


@pytest.mark.parametrize("field", ["failed", "pruned"])
def test_a_completed_run_that_does_not_balance_is_a_bug(field: str) -> None:
    """row: K1-LEDGER-BUG"""
    run = started(step("a"))
    run.returns("a")
    (account,) = run.machine._state.nodes
    setattr(account, field, 1)
    with pytest.raises(KernelBug, match="a: the run completed, but"):
        run.machine.report()


def test_a_retry_that_was_decided_and_never_ran_is_a_bug_in_a_completed_run() -> None:
    """row: K1-LEDGER-BUG, K1-LEDGER-5"""
    run = started(step("a"))
    run.returns("a")
    run.machine._state.nodes[0].retries_decided = 1
    with pytest.raises(KernelBug, match="a retry was decided and never run"):
        run.machine.report()


def test_what_a_stopped_run_did_not_get_to_is_unrun_and_no_bug() -> None:
    """row: K1-LEDGER-BUG"""
    run = started(fan("items"), node("each", {"x": "items"}, concurrency=1))
    run.emits("items", 0, 1, 2)
    run.fails("each", 0)
    run.decides(Fail("enough"))
    run.returns("each", 1)
    run.returns("items")
    assert run.status() == "failed"
    each = run.node("each")
    assert (each.due, each.succeeded, each.failed, each.unrun) == (3, 1, 1, 1)
    end = run.exit("items", "each")
    assert (end.delivered, end.failed, end.unrun) == (1, 1, 1)
    items = run.root("items")
    assert (items.kept, items.missing, items.unfinished) == (1, (), 2)


def test_what_broke_off_counts_at_its_own_exit_and_what_would_have_followed_as_unrun() -> None:
    """row: K1-LEDGER-1"""
    run = started(
        fan("items"), step("a", x="items"), step("b", x="a"), step("c", x="items"), step("d")
    )
    run.emits("items", 0, 1, 2)
    run.returns("items")
    run.returns("c", 0)
    run.fails("a", 1)
    run.tell(Suspended(run.calls["c", (1,)], reason="later"))
    run.tell(RunCancelled("by hand"))
    for name, lineage in [*run.calls]:
        run.halted(name, *lineage)
    found = {e.name: (e.delivered, e.failed, e.suspended, e.unrun) for e in run.root("items").exits}
    assert found == {"b": (0, 0, 0, 3), "c": (1, 1, 1, 0)}
    (at_the_run,) = [e for e in run.machine.report().run.exits if e.name == "d"]
    assert (at_the_run.failed, at_the_run.unrun) == (1, 0)
    assert (run.root("items").kept, run.root("items").unfinished) == (0, 3)


def test_only_items_that_are_through_are_kept_in_a_run_that_stopped() -> None:
    """row: K1-LEDGER-HEADLINE"""
    run = started(fan("items"), step("a", x="items"), step("b", x="items"))
    run.emits("items", *range(6))
    run.returns("items")
    for name, item in (("a", 0), ("b", 0), ("a", 1), ("b", 2)):
        run.returns(name, item)
    run.fails("a", 3)
    run.decides(Skip())
    run.fails("a", 4)
    run.decides(Skip())
    run.returns("b", 4)
    run.fails("a", 5)
    run.decides(Fail("enough"))
    for item in (1, 3, 5):
        run.fails("b", item)
    run.fails("a", 2)
    items = run.root("items")
    assert [m.lineage for m in items.missing] == [(3,), (4,)]
    assert (items.kept, items.failed, items.unfinished) == (1, 0, 3)


# -- stopping --


def test_a_run_that_stops_starts_nothing_and_keeps_what_still_comes() -> None:
    """row: K3-STOP, K1-VERDICT-FAIL"""
    run = started(fan("items"), step("each", x="items"), step("next", x="each"))
    run.emits("items", 0, 1)
    run.fails("each", 0)
    run.decides(Fail("no more"))
    assert [(e.status, e.reason) for e in run.of(Stop)] == [("failed", "no more")]
    assert not run.of(Halt)
    run.returns("each", 1)
    assert not run.ran("next")
    assert run.settled("each") == {(1,): "each(2)"}
    assert [type(e) for e in run.emits("items", 2)] == [Halt]
    assert run.of(Halt)[-1].gently
    run.halted("items")
    assert run.status() == "failed"


def test_what_waits_on_the_engine_is_cancelled_by_a_stop() -> None:
    """row: K3-STOP"""
    run = started(
        fan("items"), fan("full"), step("read", x=stream("items")), step("a"), step("z", x="full"),
        window=1,
    )  # fmt: skip
    run.emits("items", 0)
    run.asks("read", "x")
    run.asks("read", "x")
    run.emits("full", 0)
    run.fails("a")
    run.decides(Fail())
    halts = {e.call: e.gently for e in run.of(Halt)}
    assert halts == {run.calls["read", ()]: False, run.calls["full", ()]: True}
    assert not run.of(EndFeed)


def test_a_stop_closes_what_is_undecided_and_what_waits_for_its_retry() -> None:
    """row: S1-CREDIT-DEFAULT, K3-DELAY"""
    run = started(safe("a"), safe("b"), safe("c"))
    run.fails("a")
    run.decides(Retry())
    run.fails("b")
    run.fails("c")
    run.decides(Fail("enough"), number=3)
    assert run.status() == "failed"
    assert dict(outcomes(run)) == {1: "retry_never_ran", 2: "never_ran", 3: "stopped"}
    by = {e.escalation: e.decision.decided_by for e in run.of(Apply)}
    assert by[2] is DecidedBy.DEFAULT
    assert run.node("a").failed == run.node("b").failed == run.node("c").failed == 1
    delay = run.of(Delay)[-1]
    assert run.tell(DelayPassed(delay.call)) == []
    late = Decided(escalation=2, decision=Decision(verdict=Skip()))
    assert run.tell(late) == []


def test_a_failure_while_the_run_stops_is_written_down_and_not_asked_about() -> None:
    """row: K3-STOP"""
    run = started(step("a"), step("b"))
    run.fails("a")
    run.decides(Fail())
    run.fails("b")
    assert len(run.of(Escalate)) == 1
    assert (run.node("b").failed, run.status()) == (1, "failed")


def test_a_cancel_halts_everything_and_ends_when_the_last_call_has() -> None:
    """row: S5-CANCEL"""
    run = started(fan("items"), step("each", x="items"), step("b"))
    run.emits("items", 0)
    run.tell(RunCancelled("by hand"))
    assert {e.call: e.gently for e in run.of(Halt)} == dict.fromkeys(run.calls.values(), False)
    run.halted("items")
    run.halted("b")
    assert run.status() == ""
    run.halted("each", 0)
    assert run.status() == "cancelled"
    assert [run.node(n).cancelled for n in ("items", "each", "b")] == [1, 1, 1]
    assert not run.machine._state.calls


def test_a_run_that_has_spent_too_much_finishes_what_runs_and_begins_nothing_more() -> None:
    """supervision.md §6"""
    run = started(fan("items"), step("each", x="items"), step("after", x="each"), step("b"))
    run.emits("items", 0)
    run.tell(Overspent("it is used up"))
    assert [(e.status, e.reason) for e in run.of(Stop)] == [("failed", "it is used up")]
    assert not run.of(Halt)
    run.returns("each", 0)
    run.returns("items")
    assert run.status() == ""
    run.returns("b")
    assert run.status() == "failed"
    assert (run.node("each").succeeded, run.node("b").succeeded) == (1, 1)
    assert (run.node("after").started, run.node("b").cancelled) == (0, 0)


def test_what_was_ordered_and_never_began_is_unrun() -> None:
    """row: K3-STOP"""
    run = started(step("a"), step("b"))
    run.tell(RunCancelled())
    run.halted("a")
    run.tell(Unbegun(run.calls["b", ()]))
    assert run.status() == "cancelled"
    b = run.node("b")
    assert (b.started, b.unrun, b.cancelled, b.failed) == (0, 1, 0, 0)


def test_a_retry_that_never_began_is_said_so() -> None:
    run = started(safe("a"))
    run.fails("a")
    run.decides(Retry())
    run.waits()
    run.tell(RunCancelled())
    run.tell(Unbegun(run.calls["a", ()]))
    a = run.node("a")
    assert (a.started, a.attempts, a.retries_decided, a.failed) == (1, 1, 1, 1)
    assert outcomes(run) == [(1, str(OutcomeKind.RETRY_NEVER_RAN))]


ENDINGS = {"cancelled": 0, "suspended": 1, "failed": 2}


@pytest.mark.parametrize("first", ENDINGS)
@pytest.mark.parametrize("second", ENDINGS)
def test_of_several_endings_the_stronger_wins(first: str, second: str) -> None:
    """row: K3-STATUS"""
    run = started(step("a"), step("b"), step("c"))
    for ending, name in ((first, "a"), (second, "b")):
        if ending == "failed":
            run.fails(name)
            if run.of(Escalate) and not run.of(Apply):
                run.decides(Fail())
        elif ending == "suspended":
            run.tell(Suspended(run.calls[name, ()], "later"))
        else:
            run.tell(RunCancelled())
    for name in "abc":
        run.halted(name)
    assert run.status() == min(first, second, key=ENDINGS.__getitem__)


@pytest.mark.parametrize("by", [DecidedBy.DEFAULT, DecidedBy.BOUNDS, DecidedBy.KERNEL])
def test_keep_going_passes_over_what_nobody_chose_to_stop_on(by: DecidedBy) -> None:
    """row: K3-KEEP-GOING"""
    run = started(step("a"), step("b", x="a"), step("c"), step("d", x="c"), keep_going=True)
    run.fails("a")
    run.decides(Fail(), by=by)
    assert run.kind("b") is Kind.FAILED
    run.returns("c")
    run.returns("d")
    assert run.status() == "failed"
    assert (run.node("a").failed, run.node("d").succeeded) == (1, 1)


@pytest.mark.parametrize(
    "by", [DecidedBy.AGENT, DecidedBy.OPERATOR, DecidedBy.STICKY, DecidedBy.REPLAY]
)
def test_keep_going_does_not_overrule_who_said_stop(by: DecidedBy) -> None:
    """row: K3-KEEP-GOING"""
    run = started(step("a"), step("c"), step("d", x="c"), keep_going=True)
    run.fails("a")
    run.decides(Fail(), by=by)
    assert run.of(Stop)
    run.returns("c")
    assert not run.ran("d")


def test_a_fan_out_that_fails_keeps_its_items_and_loses_its_lists() -> None:
    """row: K3-KEEP-GOING"""
    run = started(
        fan("items", outs=("total",)), step("each", x="items"), step("list", x=collect("items")),
        step("sum", n="items.total"), keep_going=True,
    )  # fmt: skip
    run.emits("items", 0, 1)
    run.fails("items")
    run.decides(Fail(), by=DecidedBy.DEFAULT)
    assert set(run.ran("each")) == {(0,), (1,)}
    assert (run.kind("list"), run.kind("items", slot="total")) == (Kind.FAILED, Kind.FAILED)
    run.returns("each", 0)
    run.returns("each", 1)
    assert (run.root("items").marks, run.status()) == ({"failed": 1}, "failed")


def test_a_default_does_not_hide_a_failure() -> None:
    """row: K1-JOIN-FAILED"""
    run = started(step("a"), step("b"), step("j", x=wire("a", default=1), y="b"), keep_going=True)
    run.fails("a")
    run.decides(Fail(), by=DecidedBy.DEFAULT)
    run.returns("b")
    assert run.kind("j") is Kind.FAILED
