"""One line of text an event, and the ⛨ line of an intervention (events.md; supervision.md §7)."""

from __future__ import annotations

import msgspec
import pytest

from nightwarden import events
from nightwarden.events import Event, decode_lines, encode
from nightwarden.events.interventions import Intervention, Interventions, intervention_line
from nightwarden.events.render import as_mapping, render
from nightwarden.events.words import (
    cut,
    cut_middle,
    dollars,
    items_text,
    seconds,
    usd,
    visible,
)
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.verdict import (
    Action,
    ApplyTo,
    DecidedBy,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Item,
    Outcome,
    OutcomeKind,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

URL = "https://x.test/p/147"


def escalation(**fields: object) -> Escalation:
    given: dict[str, object] = {
        "id": EscalationId("e1"),
        "run_id": RunId("r"),
        "node_id": NodeId("fetch"),
        "node_type": "http.Fetch",
        "lineage": (147,),
        "item": Item("148", 200, URL),
        "attempt": 1,
        "retries_left": 2,
        "allowed_actions": (Action.RETRY, Action.SKIP, Action.FAIL),
        "detail": "timeout after 10 s",
        "error_type": "StepTimeout",
        "signature": "timeout",
    }
    return Escalation(**(given | fields))  # type: ignore[arg-type]


def line(
    verdict: Verdict,
    kind: OutcomeKind,
    *,
    reason: str = "",
    by: DecidedBy = DecidedBy.AGENT,
    delay_s: float | None = None,
    asked_for: Verdict | None = None,
    kept: int | None = None,
    **fields: object,
) -> str:
    """The ⛨ line, put together from its three events."""
    e = escalation(**fields)
    decision = Decision(
        verdict=verdict,
        decided_by=by,
        rationale=reason,
        delay_s=delay_s,
        asked_for=asked_for,
        escalation_id=e.id,
    )
    outcome = Outcome(escalation_id=e.id, kind=kind, kept=kept)
    told = [
        events.SupervisorEscalation(escalation=e),
        events.SupervisorDeciding(escalation_id=e.id),
        events.SupervisorDecision(escalation_id=e.id, decision=decision),
        events.SupervisorOutcome(escalation_id=e.id, outcome=outcome),
    ]
    collected = Interventions()
    closed = [found for event in told if (found := collected.take(as_mapping(event)))]
    assert len(closed) == 1
    return intervention_line(closed[0])


def test_a_retry_that_healed_is_told_with_its_number_its_delay_and_its_reason() -> None:
    said = line(Retry(), OutcomeKind.RETRIED_SUCCEEDED, reason="slow", delay_s=2.0)
    assert said == f"⛨ fetch [148/200 {URL}] timeout after 10 s → retry (1/2) in 2 s (slow) → ok"


def test_a_second_retry_counts_on() -> None:
    said = line(Retry(), OutcomeKind.RETRIED_FAILED_AGAIN, attempt=2, retries_left=1)
    assert said.endswith("→ retry (2/2) → failed again")


def test_a_retry_that_never_ran_is_not_told_as_one_that_did() -> None:
    """supervision.md §2: lines are written from outcomes, not from intentions."""
    assert line(Retry(), OutcomeKind.RETRY_NEVER_RAN).endswith("→ retry (1/2) → never ran")


def test_a_skip_for_all_like_it_names_the_signature() -> None:
    said = line(
        Skip(ApplyTo.SIGNATURE),
        OutcomeKind.SKIPPED,
        reason="login page",
        node_id=NodeId("extract"),
        item=Item("153", 200, "https://x.test/p/152"),
        detail="page has no main part",
        signature="parse:no-main",
    )
    assert said == (
        "⛨ extract [153/200 https://x.test/p/152] page has no main part → skip (login page)"
        " · applies to parse:no-main"
    )


def test_a_sticky_skip_says_that_nobody_was_asked() -> None:
    said = line(Skip(ApplyTo.SIGNATURE), OutcomeKind.SKIPPED, by=DecidedBy.STICKY, reason="gone")
    assert said.endswith("→ skip (gone) · as for all timeout")


def test_a_repair_reads_repair() -> None:
    said = line(Substitute({"output": 1}), OutcomeKind.REPAIR_ACCEPTED, reason="known")
    assert said.endswith("→ repair (known) → ok")


def test_an_ended_stream_says_what_it_kept() -> None:
    said = line(EndStream(), OutcomeKind.ENDED_EARLY, kept=400, reason="enough", emitted=400)
    assert said.endswith("→ skipped the rest of this step, kept the 400 it had produced (enough)")


def test_a_refused_verdict_names_what_was_asked_for_and_who_refused() -> None:
    said = line(
        Fail("retry was refused: the attempt spent money"),
        OutcomeKind.STOPPED,
        by=DecidedBy.KERNEL,
        asked_for=Retry(),
        reason="a second try usually works",
    )
    assert said.endswith(
        "→ stop (retry was refused: the attempt spent money) · asked for retry · by kernel"
    )


def test_a_person_is_named_as_the_one_who_decided() -> None:
    said = line(Skip(), OutcomeKind.SKIPPED, by=DecidedBy.OPERATOR, reason="no")
    assert said.endswith("→ skip (no) · by operator")


def test_the_items_name_is_not_said_twice() -> None:
    said = line(Skip(), OutcomeKind.SKIPPED, detail=f"{URL} is cut off: it ends inside a tag")
    assert said == f"⛨ fetch [148/200 {URL}] cut off: it ends inside a tag → skip"
    said = line(Skip(), OutcomeKind.SKIPPED, detail=f"401 Unauthorized for {URL}: no")
    assert said == f"⛨ fetch [148/200 {URL}] 401 Unauthorized: no → skip"


def test_a_long_line_loses_its_detail_and_not_its_outcome() -> None:
    """supervision.md §2: lines on screen are cut to 200."""
    said = line(
        Retry(),
        OutcomeKind.RETRIED_FAILED_AGAIN,
        reason="r" * 300,
        detail="d" * 500,
        item=Item("148", 200, "https://x.test/" + "p" * 300 + "/end"),
    )
    assert len(said) <= 200
    assert said.endswith("…) → failed again")
    assert "/end] ddd" in said


def test_a_decision_without_its_escalation_still_gets_a_line() -> None:
    outcome = {"kind": "skipped"}
    closed = Interventions().take(
        {"type": "supervisor_outcome", "escalation_id": "e9", "node_id": "a", "outcome": outcome}
    )
    assert closed is not None
    assert intervention_line(closed) == "⛨ a → not decided"


def test_what_a_run_says_cannot_move_the_cursor() -> None:
    said = line(Skip(), OutcomeKind.SKIPPED, detail="\x1b[2J\rgone\u202e", reason="\x07")
    assert "\x1b" not in said
    assert "\\x1b[2J\\rgone\\u202e → skip (\\x07)" in said
    assert render({"type": "log", "node_id": "a\x1b", "message": "b\nc"}) == "a\\x1b None: b\\nc"


EVENTS: list[tuple[Event, str]] = [
    (
        events.BudgetReserved(
            budget="supervisor", reservation=1, worst_micro_usd=54_720, cap_micro_usd=500_000
        ),
        "supervisor reserves up to $0.05 of $0.50",
    ),
    (
        events.BudgetCommitted(
            budget="supervisor", reservation=1, cost_micro_usd=28_500, tokens_in=8, tokens_out=3
        ),
        "supervisor spent $0.03 (8 tokens in, 3 out)",
    ),
    (
        events.RunStarted(
            run_id="r1",
            workflow="pages",
            definition={},
            definition_hash="",
            inputs={},
            supervisor="operator",
        ),
        "run r1 of pages started, supervised: operator",
    ),
    (
        events.RunResumed(redo=(("a", ()),), retry=(("b", (1,)), ("b", (2,)))),
        "the run goes on, unsupervised, 1 step done again, 2 steps retried at its user's risk",
    ),
    (events.UserPrompt(node_id="fix", text="mend it"), "fix is told: mend it"),
    (
        events.LlmStepFinished(node_id="fix", step=2, text="I see", tool_calls=1),
        "fix took a step, 1 tool call: I see",
    ),
    (events.AssistantText(node_id="fix", text="done"), "fix says: done"),
    (
        events.ToolStarted(node_id="fix", tool="shell", input={"command": "ls"}),
        'fix calls shell {"command": "ls"}',
    ),
    (
        events.ToolCalled(node_id="fix", tool="shell", input={"command": "ls"}, output="a.py"),
        'fix shell {"command": "ls"} → a.py',
    ),
    (
        events.ToolFailed(node_id="fix", tool="read", error="no such file"),
        "fix read failed: no such file",
    ),
    (events.UsageProgress(node_id="fix", tokens=500, used=0.1), "fix has used $0.10"),
    (
        events.BudgetWarning(node_id="fix", dimension="cost_usd", used=0.8, limit=1.0),
        "fix comes near its budget: cost_usd: 0.8 of 1.0",
    ),
    (
        events.BudgetExceeded(node_id="fix", dimension="turns", used=20, limit=20),
        "fix is over its budget: turns: 20 of 20",
    ),
    (events.InputPushed(inputs={"urls": "x"}), "an item came in: urls"),
    (events.InputClosed(name="urls"), "input urls is complete"),
    (
        events.InvocationSuspended(node_id="ask", lineage=(2,), reason="until noon"),
        "ask [3] asks for a pause: until noon",
    ),
    (
        events.InvocationSpent(node_id="paint", lineage=(0,), cost_micro_usd=250_000),
        "paint [1] spent $0.25",
    ),
    (events.AssetWritten(node_id="paint", asset={"name": "a.png"}), "paint writes a.png"),
    (events.ControlSent(node_id="plan", target="tool"), "plan sent an event to tool"),
    (events.RunStopping(status="failed", reason="no"), "the run is stopping (failed): no"),
    (
        events.RunCompleted(ledger={"headline": "completed: 3/3 items"}),
        "── completed: 3/3 items",
    ),
    (events.RunFailed(reason="broken"), "── failed: broken"),
    (events.NodeStarted(node_id="a"), "a started"),
    (events.NodeFinished(node_id="a"), "a finished"),
    (events.NodeProgress(node_id="a", lineage=(2,), done=5, total=9), "a [3] 5 of 9"),
    (events.Log(node_id="a", level="warning", message="hm"), "a warning: hm"),
    (events.Log(level="warning", message="hm"), "warning: hm"),
    (
        events.RecordRejected(node_id="a", line=7, raw="x;y", reason="too short"),
        "a rejected line 7: too short: x;y",
    ),
    (
        events.WindowWidened(node_id="a", window=2048),
        "a may now be 2048 items ahead: everything waited for it",
    ),
    (events.InvocationStarted(node_id="a", lineage=(0,), attempt=2), "a [1] started, attempt 2"),
    (
        events.InvocationSucceeded(node_id="a", duration_s=0.25, cost_micro_usd=20_000),
        "a succeeded in 0.2 s, $0.02",
    ),
    (
        events.InvocationFailed(node_id="a", lineage=(3, 0), error_type="E", detail="no"),
        "a [4.1] failed: no (E)",
    ),
    (
        events.InvocationPruned(
            node_id="b", kind="lost", by="a [1] was given up", lineages=((0,), (4,), (5,), (6,))
        ),
        "b [1, 5–7] will not run: a [1] was given up",
    ),
    (events.ItemEmitted(node_id="a", lineage=(1,)), "a [2] put out an item"),
    (events.StreamClosed(node_id="a", emitted=1, mark="cut"), "a ended after 1 item, cut short"),
    (
        events.SupervisorEscalation(escalation=escalation()),
        f"⛨ fetch [148/200 {URL}] failed: timeout after 10 s — retry, skip, stop?",
    ),
    (
        events.SupervisorDeciding(node_id="a", lineage=(1,), escalation_id="e1"),
        "⛨ a [2] being decided",
    ),
    (
        events.SupervisorDecision(
            node_id="a",
            lineage=(1,),
            escalation_id="e1",
            decision=Decision(verdict=Skip(), rationale="gone", decided_by=DecidedBy.OPERATOR),
        ),
        "⛨ a [2] operator says skip: gone",
    ),
    (
        events.SupervisorOutcome(
            node_id="a",
            lineage=(1,),
            escalation_id="e1",
            outcome=Outcome(escalation_id=EscalationId("e1"), kind=OutcomeKind.ENDED_EARLY, kept=4),
        ),
        "⛨ a [2] ended early, kept 4",
    ),
    (
        events.SteeringArmed(supervisor="dog", watches=("fix",), monitors=("repeat=3",)),
        "◇ dog watches fix, 1 monitor",
    ),
    (
        events.SteeringWoken(supervisor="dog", number=3, triggers=("repeat=3",), dropped=2),
        "◇ dog woke, evaluation 3: repeat=3 (2 events unseen)",
    ),
    (
        events.SteeringDeferred(supervisor="dog", trigger="turn boundary", wait_s=12.0),
        "◇ dog puts a look off for 12 s: turn boundary",
    ),
    (
        events.SteeringEvaluated(
            supervisor="dog", outcome="silent", number=3, limit=20, reason="it is on its way"
        ),
        "◇ dog says nothing (3 of 20): it is on its way",
    ),
    (
        events.SteeringParked(supervisor="dog", failures=3, detail="no answer", retry_in_s=600),
        "◇ dog is parked after 3 failures, tries again in 10 min: no answer",
    ),
    (
        events.SteeringExhausted(supervisor="dog", limit=20),
        "◇ dog has spent what it may: 20 evaluations",
    ),
    (events.SteeringDone(supervisor="dog", reason="all green"), "◇ dog is done: all green"),
    (
        events.UserMessageQueued(message_id="m1", author="dog", node_id="fix", text="Look up."),
        "◇ dog to fix: Look up.",
    ),
    (
        events.UserMessageDelivered(message_id="m1", author="dog"),
        "◇ message m1 of dog was delivered",
    ),
    (
        events.UserMessageConsumed(message_id="m1", author="dog"),
        "◇ message m1 of dog was consumed",
    ),
    (
        events.UserMessageCancelled(message_id="m1", author="dog", reason="a newer one came"),
        "◇ message m1 of dog was cancelled: a newer one came",
    ),
    (
        events.UserMessageExpired(message_id="m1", author="dog", reason="the node ended"),
        "◇ message m1 of dog expired: the node ended",
    ),
]


@pytest.mark.parametrize(("event", "said"), EVENTS, ids=lambda value: type(value).__name__)
def test_an_event_has_its_line_as_an_object_and_as_recorded(event: Event, said: str) -> None:
    assert render(event) == said
    (recorded,) = decode_lines([encode(event) + b"\n"])
    assert render(recorded) == said


def test_every_type_of_event_has_a_line_of_its_own() -> None:
    shown = {type(event) for event, _ in EVENTS}
    ends = {events.RunCancelled, events.RunSuspended, events.RunEnded, Event}
    every = {
        found
        for found in vars(events).values()
        if isinstance(found, type) and issubclass(found, Event)
    }
    assert every - shown - ends == set()


def test_an_unknown_type_and_missing_fields_still_get_a_line() -> None:
    """events.md: readers tolerate unknown types and fields."""
    assert render({"type": "moon_landed", "node_id": "a", "lineage": [0]}) == "moon_landed a [1]"
    assert render({}) == "event"
    for event, _ in EVENTS:
        tag = event.__struct_config__.tag
        assert render({"type": tag})


def test_a_line_is_at_most_200_characters() -> None:
    assert len(render(events.Log(node_id="a", level="info", message="x" * 999))) == 200


def test_an_event_as_a_mapping_keeps_what_steps_put_out() -> None:
    thing = object()
    event = events.InvocationSucceeded(node_id="a", outputs={"output": thing})
    assert as_mapping(event)["outputs"]["output"] is thing


def test_numbers_in_words() -> None:
    assert [seconds(s) for s in (0, 0.04, 2, 59.96, 75, 3600, 7500)] == [
        "0 s",
        "0 s",
        "2 s",
        "60 s",
        "1 min 15 s",
        "1 h",
        "2 h 5 min",
    ]
    assert [dollars(n) for n in (0, 12, 20_000, 1_500_000)] == [
        "$0.00",
        "$0.000012",
        "$0.02",
        "$1.50",
    ]
    assert usd(12_345) == 0.012345
    assert items_text([(0,), (1,), (2,), (4,), (6,), (7,)]) == "1–3, 5, 7, 8"
    assert items_text([(0, 0), (0, 1), (0, 2), (1, 0)]) == "1.1–1.3, 2.1"
    assert items_text([(2 * n,) for n in range(20)], most=2) == "1, 3, and 18 more"


def test_text_is_cut_where_it_says_so() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"
    assert cut_middle("https://x.test/" + "p" * 80 + "/end", 30).endswith("/end")
    assert len(cut_middle("x" * 99, 30)) == 30
    assert visible("a b\u00a0") == "a b\\xa0"


def test_an_intervention_survives_fields_of_other_versions() -> None:
    odd = Intervention(
        {"id": "e1", "node_id": "a", "item": "7", "detail": None},
        {"verdict": {"action": "ponder"}, "decided_by": "moon"},
        {"kind": "pondered"},
    )
    assert intervention_line(odd) == "⛨ a → ponder · by moon"
    assert msgspec.json.encode(odd.escalation)
