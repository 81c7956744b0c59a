"""When a supervisor looks (steering.md §2); scenarios are those of the steering reference §23."""

from __future__ import annotations

import msgspec
import pytest
from steering_kit import SILENCE, Clockwork, event, seen, spec

from nightwarden.spec.monitors import parse_monitor
from nightwarden.steering.monitors import MOST_REGISTERED
from nightwarden.steering.ports import Advice
from nightwarden.steering.rehearsal import rehearse
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import Armed, TriggerState

ERROR = "event_type=tool_error"
MARK = "event_type=assistant_text,text_contains=stuck"


def started(*monitors: str, thinking_s: float = 0.0, advice=None, **fields) -> Clockwork:  # type: ignore[no-untyped-def]
    """A supervisor whose watched node a starts at 0 and has had its first look at 3."""
    fields.setdefault("watches", ("a",))
    works = Clockwork(
        spec(*monitors, **fields),
        thinking_s=thinking_s,
        advice=advice or (lambda _n: SILENCE),
    )
    works.at(0.0, "node_started", "a")
    return works


# -- boundaries: debounce, starvation, deferral --


def test_an_unwatched_node_never_wakes() -> None:
    """Scenario 2."""
    works = Clockwork(spec(ERROR, watches=("a",)))
    works.at(0, "node_started", "b")
    for t in range(1, 200, 2):
        works.at(t, "llm_step_finished", "b")
        works.at(t, "tool_error", "b", tool="Bash", error=str(t))
    works.until(500)
    assert works.woke_at == []


def test_without_watches_a_boundary_wakes_after_three_seconds_unscoped() -> None:
    """Scenario 3."""
    works = Clockwork(spec())
    works.at(10, "assistant_text", "b", text="hello")
    works.until(60)
    assert works.woke_at == [13]
    assert works.wakes[0][1].node == ""


def test_a_burst_of_boundaries_is_one_look_after_the_quiet() -> None:
    """Scenario 4 and timeline T1: the deadline moves with every step."""
    works = Clockwork(spec(watches=("a",)), thinking_s=2.0)
    works.at(0.0, "node_started", "a")
    for t in (0.8, 2.1, 4.0):
        works.at(t, "llm_step_finished", "a")
    works.until(38.9)
    assert works.woke_at == [7.0]


def test_boundaries_without_a_pause_do_not_starve_it() -> None:
    """Scenario 5 and timeline T3: the window is pushed for one cooldown only."""
    works = Clockwork(spec(watches=("a",)))
    works.at(0, "node_started", "a")
    for t in range(2, 64, 2):
        works.at(t, "llm_step_finished", "a")
    works.until(64)
    assert works.woke_at == [31, 63]


def test_a_boundary_inside_the_cooldown_is_put_off_to_its_end() -> None:
    """Scenario 6, as steering.md §2 has it: one look at 39, not a lost one."""
    works = started(thinking_s=6.0)
    works.at(20, "llm_step_finished", "a")
    works.at(21, "llm_step_finished", "a")
    works.until(200)
    assert works.woke_at == [3, 39]
    assert works.deferred[0].wait_s == 15.0


def test_the_cooldown_starts_when_an_evaluation_returns() -> None:
    works = started(ERROR, thinking_s=20.0)
    works.at(30, "tool_error", "a", error="x")
    works.until(52.9)
    assert works.woke_at == [3]
    works.until(53)
    assert works.woke_at == [3, 53]


def test_a_short_cooldown_leaves_the_quiet_to_set_the_pace() -> None:
    """Timeline T13."""
    works = Clockwork(spec(watches=("a",), cooldown_s=1.0))
    works.at(0, "node_started", "a")
    for i in range(1, 25):
        works.at(i / 2, "llm_step_finished", "a")
    works.until(20)
    gaps = [b - a for a, b in zip(works.woke_at, works.woke_at[1:], strict=False)]
    assert all(3 <= gap <= 4.5 for gap in gaps)
    assert len(works.woke_at) >= 3


def test_without_boundaries_only_monitors_wake() -> None:
    works = Clockwork(spec(ERROR, boundaries=False))
    works.at(0, "node_started", "a")
    works.at(5, "assistant_text", "a", text="x")
    works.until(100)
    assert works.woke_at == []
    works.at(101, "tool_error", "a", error="x")
    assert works.woke_at == [101]


# -- seeded monitors --


def test_the_first_match_wakes_at_once() -> None:
    """Scenario 7."""
    works = Clockwork(spec(ERROR, watches=("a",)))
    works.at(0, "node_started", "a")
    works.at(1, "tool_error", "a", error="boom")
    assert works.woke_at == [1]
    assert "boom" in works.wakes[0][1].causes[0].text()


def test_a_match_inside_the_cooldown_waits_for_its_end_with_its_event() -> None:
    """Scenario 8 and timeline T4."""
    works = started(ERROR, thinking_s=6.0)
    works.at(12, "tool_error", "a", error="first")
    works.until(100)
    assert works.woke_at == [3, 39]
    assert "first" in works.wakes[1][1].causes[0].line


def test_matches_of_one_cooldown_are_one_look_that_carries_them_all() -> None:
    """Scenario 9; steering.md §2: the reason carries every trigger."""
    works = started(ERROR)
    for t in (12, 15, 18):
        works.at(t, "tool_error", "a", error=f"e{t}")
    works.until(100)
    assert works.woke_at == [3, 33]
    assert [c.line.split(": ")[-1].strip() for c in works.wakes[1][1].causes] == [
        "e12",
        "e15",
        "e18",
    ]


def test_the_reason_keeps_a_trigger_that_left_the_recent_ones() -> None:
    """Scenario 10."""
    works = started(ERROR)
    works.at(5, "tool_error", "a", error="needle")
    for i in range(60):
        works.at(6 + i / 10, "tool_called", "a", tool="Read", output=str(i))
    works.until(100)
    assert all("needle" not in s.line for s in works.trigger.recent)
    assert "needle" in works.wakes[1][1].causes[0].text()


def test_a_wake_whose_node_ended_waits_for_its_next_start() -> None:
    """Scenario 11 and timeline T5."""
    works = started(ERROR)
    works.at(12, "tool_error", "a", error="late")
    works.at(20, "node_finished", "a")
    works.until(99)
    assert works.woke_at == [3]
    works.at(100, "node_started", "a")
    assert works.woke_at == [3, 100]
    assert "late" in works.wakes[1][1].causes[0].text()
    works.until(300)
    assert works.woke_at == [3, 100]


def test_a_node_that_never_returns_leaves_nothing_behind() -> None:
    """Scenario 12."""
    works = started(ERROR)
    works.at(12, "tool_error", "a", error="late")
    works.at(20, "node_finished", "a")
    works.at(30, "run_completed")
    works.until(1000)
    assert works.woke_at == [3]
    assert works.trigger.closed
    assert works.trigger.deadline() is None


def test_what_waits_goes_into_the_look_that_overtakes_it() -> None:
    """Timeline T6: nothing new, so nothing is looked at twice."""
    advice = lambda n: Advice(intervene=False, watch=(MARK,)) if n == 1 else SILENCE  # noqa: E731
    works = started(ERROR, thinking_s=1.0, advice=advice)
    works.at(12, "tool_error", "a", error="waits")
    works.at(30, "assistant_text", "a", text="I am stuck")
    works.until(300)
    assert works.woke_at == [3, 30]
    assert {c.kind for c in works.wakes[1][1].causes} == {"seeded", "registered"}


def test_a_match_is_not_a_boundary_as_well() -> None:
    works = Clockwork(spec(MARK, cooldown_s=1.0))
    works.at(0, "assistant_text", "a", text="stuck")
    works.until(100)
    assert works.woke_at == [0]


def test_the_finish_of_the_only_watched_node_is_matched_before_it_disarms() -> None:
    """Scenario 42, as steering.md §2 decides it."""
    works = Clockwork(spec("event_type=node_finished", watches=("a",)))
    works.at(0, "node_started", "a")
    works.at(1, "node_finished", "a")
    assert works.woke_at == [1]
    assert works.wakes[0][1].node == "a"
    assert not works.trigger.armed


# -- registered monitors, done --


def registering(*watch: str, done: bool = False):  # type: ignore[no-untyped-def]
    return lambda n: Advice(intervene=False, watch=watch, done=done) if n == 1 else SILENCE


def test_a_registered_monitor_breaks_into_the_cooldown() -> None:
    """Scenario 13."""
    works = started(advice=registering(ERROR))
    works.at(10, "tool_error", "a", error="x")
    assert works.woke_at == [3, 10]


def test_listing_a_seeded_pattern_again_does_not_promote_it() -> None:
    """Scenario 14."""
    works = started(ERROR, advice=registering(ERROR))
    works.at(10, "tool_error", "a", error="x")
    works.until(32.9)
    assert works.woke_at == [3]
    works.until(33)
    assert works.woke_at == [3, 33]


def test_a_pattern_listed_five_times_is_there_once() -> None:
    """Scenario 15; keys in another order are the same pattern."""
    same = ("event_type=tool_error,tool_name=Bash", "tool_name=Bash,event_type=tool_error")
    works = started(advice=registering(*same, *same, same[0]))
    works.until(10)
    assert works.trigger.watchlist.registered() == [same[0]]


def test_at_most_twenty_monitors_are_registered() -> None:
    works = started(advice=registering(*(f"event_type=log,text_contains=w{i}" for i in range(50))))
    works.until(10)
    assert len(works.trigger.watchlist.registered()) == MOST_REGISTERED == 20


def test_done_rests_through_boundaries_and_seeded_matches() -> None:
    """Scenario 17 and timeline T7."""
    works = started(ERROR, advice=registering(done=True))
    works.at(50, "tool_error", "a", error="x")
    works.at(60, "llm_step_finished", "a")
    works.until(500)
    assert works.woke_at == [3]
    assert "done" in works.silent[0].why


def test_a_turn_that_ended_while_it_was_thinking_does_not_wake_one_that_is_done_since() -> None:
    """steering.md §2: done rests until a registered match or a fresh start, also of what came
    before it was said."""
    works = started(advice=registering(done=True), thinking_s=2.0)
    works.at(4, "llm_step_finished", "a")
    works.until(500)
    assert works.woke_at == [3]
    works.at(600, "node_finished", "a")
    works.at(700, "node_started", "a")
    works.until(800)
    assert works.woke_at == [3, 700]


def test_a_declared_silence_does_not_wake_one_that_is_done() -> None:
    """steering.md §2: a seeded monitor does not revive."""
    works = started("idle_for=1m", advice=registering(done=True))
    works.until(500)
    assert works.woke_at == [3]
    assert "done" in works.silent[0].why


def test_a_registered_silence_revives_one_that_is_done() -> None:
    works = started(advice=registering("idle_for=1m", done=True))
    works.until(500)
    assert works.woke_at == [3, 63]


def test_a_registered_match_revives_one_that_is_done() -> None:
    """Scenario 18."""
    works = started(advice=registering(ERROR, done=True))
    works.at(60, "tool_error", "a", error="x")
    assert works.woke_at == [3, 60]


def test_a_registered_match_while_it_says_that_it_is_done_is_looked_at() -> None:
    """What it asked to be told came after it had been shown what it judged."""

    def says(number: int) -> Advice:
        return Advice(intervene=False, watch=(ERROR,), done=number == 2)

    works = started(advice=says, thinking_s=2)
    works.at(40, "llm_step_finished", "a")
    works.at(44, "tool_error", "a", error="x")
    works.until(500)
    assert works.woke_at == [3, 43, 45]
    assert works.wakes[2][1].causes[0].kind == "registered"


def test_a_failed_look_of_one_that_was_done_is_taken_again() -> None:
    def says(number: int) -> Advice | None:
        return Advice(intervene=False, watch=(ERROR,), done=True) if number != 2 else None

    works = started(advice=says)
    works.at(60, "tool_error", "a", error="x")
    works.until(500)
    assert works.woke_at == [3, 60, 90]


def test_the_end_of_a_turn_of_another_node_wakes_nobody() -> None:
    """Rule: turn boundaries are those of watched nodes; scenario 2."""
    works = started(ERROR)
    works.at(40, "assistant_text", "b", text="done")
    works.at(41, "llm_step_finished", "b")
    works.until(90)
    assert works.woke_at == [3]


def test_a_turn_that_ended_just_before_its_node_is_looked_at_when_it_starts_again() -> None:
    """Rule: never dropped; if the node ends first, the wake waits for its next start."""
    works = started()
    works.at(40, "assistant_text", "a", text="I give up")
    works.at(41, "node_finished", "a")
    assert works.trigger.deadline() is None, "scenario 12: no timer is live meanwhile"
    works.at(100, "node_started", "a")
    works.until(200)
    assert works.woke_at[:2] == [3, 100]


def test_nothing_is_timed_while_nobody_is_active() -> None:
    """Scenario 12."""
    works = started(ERROR)
    works.at(10, "tool_error", "a", error="x")
    assert works.trigger.deadline() == 33
    works.at(20, "node_finished", "a")
    assert works.trigger.deadline() is None


def test_a_word_is_for_the_node_that_started_last_also_where_it_started_before() -> None:
    """Scenario 38."""
    works = started(ERROR, watches=("a", "b"))
    works.at(1, "node_started", "b")
    works.at(2, "node_started", "a")
    works.at(40, "tool_error", error="of no node")
    assert works.wakes[-1][1].node == "a"


def test_a_fresh_start_of_a_watched_node_revives_one_that_is_done() -> None:
    """Scenario 19."""
    works = started(ERROR, advice=registering(done=True))
    works.at(50, "node_finished", "a")
    works.at(70, "node_started", "a")
    works.at(71, "tool_error", "a", error="x")
    assert works.woke_at == [3, 71]


# -- spending, failing --


def test_the_third_and_fourth_wake_of_two_say_so_once() -> None:
    """Scenario 25 and timeline T9."""
    works = started(ERROR, max_evals=2)
    for t in (40, 75, 110):
        works.at(t, "tool_error", "a", error=str(t))
    works.until(200)
    assert works.woke_at == [3, 40]
    assert [e.limit for e in works.exhausted] == [2]


def test_its_own_cost_cap_exhausts_it() -> None:
    works = started(ERROR, cost_cap_usd=0.001)
    works.until(4)
    works.trigger.state.spent_micro_usd = 1_000
    works.at(100, "tool_error", "a", error="x")
    assert works.woke_at == [3]
    assert works.exhausted[0].detail == "$0.001 of its own"


def test_three_failures_in_a_row_park_it_and_cost_nothing() -> None:
    """Scenario 22 and timeline T8: what was looked at waits and is looked at again."""
    works = started(ERROR, advice=lambda _n: None)
    works.until(500)
    assert works.woke_at == [3, 33, 63]
    assert [p.failures for p in works.parked] == [3]
    assert works.trigger.state.completed == 0


def test_a_success_ends_a_streak_of_failures() -> None:
    """Scenario 23."""
    works = started(ERROR, advice=lambda n: None if n < 3 else SILENCE)
    works.until(100)
    assert works.woke_at == [3, 33, 63]
    assert works.trigger.state.failures == 0
    assert works.parked == []


def test_a_parked_supervisor_probes_after_ten_minutes_and_backs_off() -> None:
    works = started(ERROR, advice=lambda _n: None)
    works.until(63 + 600 + 1200 + 2400 + 3600 + 1)
    assert works.woke_at == [3, 33, 63, 663, 1863, 4263, 7863]
    assert [act.probe for _, act in works.wakes] == [False] * 3 + [True] * 4
    assert [p.retry_in_s for p in works.parked] == [600, 1200, 2400, 3600, 3600]


def test_a_probe_that_succeeds_ends_the_parking() -> None:
    works = started(ERROR, advice=lambda n: None if n < 4 else SILENCE)
    works.until(663)
    works.at(700, "tool_error", "a", error="again")
    assert works.woke_at == [3, 33, 63, 663, 700]
    assert works.wakes[-1][1].probe is False


def test_registered_matches_do_not_break_into_a_parking() -> None:
    def advice(n: int) -> Advice | None:
        return Advice(intervene=False, watch=(ERROR,)) if n == 1 else None

    works = started(advice=advice)
    for t in (10, 11, 12):
        works.at(t, "tool_error", "a", error=str(t))
        works.until(t + 0.5)
    assert len(works.parked) == 1
    works.at(100, "tool_error", "a", error="x")
    works.until(611)
    assert works.woke_at == [3, 10, 11, 12]
    works.until(612)
    assert works.woke_at[-1] == 612


# -- who is active --


def test_a_sibling_branch_does_not_disarm() -> None:
    """Scenario 34."""
    works = Clockwork(spec(ERROR, watches=("a",)))
    works.at(0, "node_started", "a", branch="A")
    works.at(0, "node_started", "b", branch="B")
    works.at(1, "node_finished", "b", branch="B")
    assert works.trigger.armed


def test_a_lost_finish_is_healed_by_the_next_start_of_its_branch() -> None:
    """Scenario 35."""
    works = Clockwork(spec(ERROR, watches=("a",)))
    works.at(0, "node_started", "a", branch="A")
    works.at(5, "node_started", "u", branch="A")
    assert not works.trigger.armed


def test_a_late_finish_of_a_replaced_node_is_ignored() -> None:
    """Scenario 36."""
    works = Clockwork(spec(watches=("a",)))
    works.at(0, "node_started", "u", branch="A")
    works.at(1, "node_started", "a", branch="A")
    works.at(2, "node_finished", "u", branch="A")
    assert works.trigger.armed


def test_the_scope_moves_to_the_watched_node_that_is_left() -> None:
    """Scenarios 37 and 38."""
    works = Clockwork(spec(watches=("a", "b")))
    works.at(0, "node_started", "a", branch="A")
    works.at(1, "node_started", "b", branch="B")
    assert works.trigger.activity.scope() == "b"
    works.at(2, "node_finished", "b", branch="B")
    assert works.trigger.activity.scope() == "a"


def test_a_message_is_for_the_node_whose_event_woke_it() -> None:
    """steering.md §2: a message carries the node it is for."""
    works = Clockwork(spec(ERROR, watches=("a", "b")))
    works.at(0, "node_started", "a")
    works.at(0, "node_started", "b")
    works.at(1, "tool_error", "a", error="x")
    assert works.wakes[0][1].node == "a"


def test_nodes_that_run_side_by_side_do_not_replace_each_other() -> None:
    works = Clockwork(spec(watches=("a",)))
    works.at(0, "node_started", "a")
    works.at(1, "node_started", "b")
    assert works.trigger.armed


def test_between_the_passes_of_a_loop_an_agent_is_not_active() -> None:
    works = Clockwork(spec(ERROR, watches=("fix",)))
    works.at(0, "node_started", "fix")
    works.at(0, "invocation_started", "fix", lineage=[0], attempt=1)
    works.at(9, "invocation_succeeded", "fix", lineage=[0])
    assert not works.trigger.armed
    works.at(20, "invocation_started", "fix", lineage=[1], attempt=1)
    assert works.trigger.armed


def test_what_other_nodes_do_does_not_wake_a_supervisor_of_one() -> None:
    """Scenario 102: a budget warning while another node is active."""
    works = Clockwork(spec("event_type=budget_warning", watches=("campaign",)))
    works.at(0, "node_started", "campaign")
    works.at(1, "node_started", "verify")
    works.at(2, "budget_warning", "verify", dimension="cost_usd", used=8, limit=10)
    assert works.woke_at == []
    works.at(3, "budget_warning", "campaign", dimension="cost_usd", used=8, limit=10)
    assert works.woke_at == [3]


def test_a_monitor_that_names_another_node_watches_it() -> None:
    works = Clockwork(spec("node_id=tests,event_type=invocation_failed", watches=("a",)))
    works.at(0, "node_started", "a")
    works.at(1, "invocation_failed", "tests", detail="red")
    assert works.woke_at == [1]


# -- messages of its own, history, restarts --


@pytest.mark.parametrize("author", ["dog", "operator"])
def test_messages_never_match_but_are_seen(author: str) -> None:
    """Scenarios 28 and 29."""
    works = Clockwork(spec("text_contains=stuck", boundaries=False))
    works.at(1, "user_message_queued", "a", author=author, text="you are stuck")
    works.at(2, "user_message_delivered", "a", author=author)
    works.until(100)
    assert works.woke_at == []
    assert "you are stuck" in works.trigger.recent[0].line


def test_history_wakes_nobody_and_arms() -> None:
    """Scenario 30 and timeline T10: the cut is a number, not the clock."""
    trigger = Trigger(spec(ERROR, watches=("a",)), cut=2)
    assert list(trigger.see(seen("node_started", "a", seq=1), 0)) == []
    assert list(trigger.see(seen("tool_error", "a", seq=2, error="old"), 0)) == []
    assert trigger.begin(100.0) == [Armed("a")]
    works = Clockwork(trigger.spec, trigger=trigger, now=100.0)
    works.at(101, "tool_error", "a", seq=3, error="new", at="1999-01-01T00:00:00.000Z")
    assert works.woke_at == [101]


def test_a_run_that_is_over_in_history_closes_without_a_look() -> None:
    """Scenario 31."""
    trigger = Trigger(spec(ERROR), cut=2)
    trigger.see(seen("node_started", "a", seq=1), 0)
    trigger.see(seen("run_completed", seq=2), 0)
    assert trigger.closed


@pytest.mark.parametrize("kind", ["run_completed", "run_failed", "run_cancelled", "run_suspended"])
def test_terminal_events_close(kind: str) -> None:
    """Scenario 33: a failed run that may be resumed gets a new supervisor then."""
    works = started()
    works.at(1, kind)
    assert works.trigger.closed


def test_a_pause_does_not_close_and_is_a_boundary() -> None:
    """Scenario 32."""
    works = Clockwork(spec())
    works.at(0, "run_paused")
    works.until(3)
    assert works.woke_at == [3]
    assert not works.trigger.closed


def test_an_event_that_comes_again_by_its_number_is_ignored() -> None:
    works = Clockwork(spec(ERROR))
    works.at(0, "tool_error", "a", seq=1, error="x")
    works.at(50, "tool_error", "a", seq=1, error="x")
    assert works.woke_at == [0]


def test_the_same_event_under_a_new_number_is_not_judged_twice() -> None:
    """Scenarios 52 and 53."""
    works = Clockwork(spec(ERROR))
    works.at(0, "tool_error", "a", seq=1, error="x", at="2026-01-01T00:00:00.000Z")
    works.at(50, "tool_error", "a", seq=2, error="x", at="2026-01-01T00:00:00.000Z")
    assert works.woke_at == [0]
    works.at(60, "tool_error", "a", seq=3, error="y", at="2026-01-01T00:00:00.000Z")
    assert works.woke_at == [0, 60]


def test_evidence_that_was_not_acted_upon_stays_eligible() -> None:
    """Scenarios 21 and 27."""
    works = Clockwork(spec(ERROR), advice=lambda _n: Advice(intervene=True, message="  "))
    works.at(0, "tool_error", "a", seq=1, error="x", at="2026-01-01T00:00:00.000Z")
    works.at(50, "tool_error", "a", seq=2, error="x", at="2026-01-01T00:00:00.000Z")
    assert works.woke_at == [0, 50]
    assert works.trigger.state.completed == 1


def test_the_same_evidence_three_times_is_counted() -> None:
    """Scenario 60."""
    works = Clockwork(spec(ERROR))
    for t in (0, 50, 100):
        works.at(t, "tool_error", "a", error="x", at=f"2026-01-01T00:{t // 60:02}:{t % 60:02}.000Z")
    works.until(101)
    assert works.woke_at == [0, 50, 100]
    assert works.trigger.state.repeated == 2


def test_the_cooldown_survives_a_restart() -> None:
    """Scenario 54 and timeline T11: plain data, on another process's clock."""
    works = started(ERROR, thinking_s=6.0)
    works.at(12, "tool_error", "a", error="waits")
    works.until(20)
    kept = msgspec.json.encode(works.trigger.state)
    state = msgspec.json.decode(kept, type=TriggerState).moved(-20.0)
    again = Clockwork(works.trigger.spec, trigger=Trigger(works.trigger.spec, state=state))
    again.at(1, "tool_error", "a", error="too early")
    again.until(100)
    assert again.woke_at == [19]
    assert [c.line.split(": ")[-1].strip() for c in again.wakes[0][1].causes] == [
        "waits",
        "too early",
    ]
    assert again.trigger.state.completed == 2


# -- silence --


def test_silence_wakes_once_until_something_happens() -> None:
    works = started("idle_for=5m", boundaries=False)
    works.at(100, "tool_called", "a", tool="Read")
    works.until(2000)
    assert works.woke_at == [400]
    works.at(2000, "tool_called", "a", tool="Read")
    works.until(5000)
    assert works.woke_at == [400, 2300]


def test_silence_is_not_counted_while_nobody_is_watched() -> None:
    works = Clockwork(spec("idle_for=1m", watches=("a",), boundaries=False))
    works.until(500)
    works.at(500, "node_started", "a")
    works.at(530, "node_finished", "a")
    works.until(5000)
    assert works.woke_at == []


# -- a rehearsal --


def test_a_rehearsal_runs_on_the_time_of_the_record() -> None:
    def at(minute: int) -> str:
        return f"2026-01-01T10:{minute:02}:00.000Z"

    record = [
        event("run_started", seq=1, at=at(0), run_id="r", workflow="w"),
        event("node_started", "a", seq=2, at=at(1)),
        event("tool_error", "a", seq=3, at=at(2), error="x"),
        event("tool_error", "a", seq=4, at=at(2), error="y"),
        event("node_finished", "a", seq=5, at=at(9)),
        event("run_completed", seq=6, at=at(10)),
    ]
    found = rehearse(record, spec(ERROR, watches=("a",), cooldown_s=60, boundaries=False))
    assert [(m.at_s, m.seq) for m in found.moments if m.act in found.wakes] == [(120, 3), (182, 0)]
    assert [m.act.why for m in found.silences] == ["evaluating"]


def test_a_rehearsal_of_a_clock_that_was_set_back_stands_still() -> None:
    stamps = ("10:00", "10:05", "09:00", "10:06")
    record = [
        event("tool_error", "a", seq=n, error=str(n), at=f"2026-01-01T{at}:00.000Z")
        for n, at in enumerate(stamps, start=1)
    ]
    found = rehearse(record, spec(ERROR, boundaries=False), thinking_s=0)
    assert [(m.at_s, m.seq) for m in found.moments if m.act in found.wakes] == [
        (0, 1),
        (300, 2),
        (330, 0),
        (360, 4),
    ]


def test_watching_costs_nothing_where_nothing_is_of_concern() -> None:
    trigger = Trigger(spec(ERROR, boundaries=False))
    trigger.begin(0)
    assert trigger.see(seen("tool_called", "a", tool="Read"), 0) == ()
    assert len(trigger.recent) == 1


def test_a_registered_monitor_of_an_unused_kind_is_seen_from_then_on() -> None:
    works = started(advice=registering("event_type=log,text_contains=x"), boundaries=True)
    works.at(1, "log", "a", level="info", message="x")
    works.until(5)
    works.at(6, "log", "a", level="info", message="x")
    assert works.woke_at == [3, 6]
    assert parse_monitor("event_type=log,text_contains=x").text() in works.trigger.watchlist.texts()
