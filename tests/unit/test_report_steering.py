"""Steering in a report: who watched, what was said, what became of it (steering.md §4, §6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from nightwarden.events import Event
from nightwarden.events.steering import (
    SteeringArmed,
    SteeringDone,
    SteeringEvaluated,
    SteeringParked,
    SteeringWoken,
    UserMessageCancelled,
    UserMessageConsumed,
    UserMessageDelivered,
    UserMessageExpired,
    UserMessageQueued,
)
from nightwarden.report import fold_report, report_html, report_json, report_text
from nightwarden.steering.mailbox import Message, State, event_of


def plain(*events: Event) -> list[Mapping[str, Any]]:
    return [json.loads(msgspec.json.encode(event)) for event in events]


def looked(number: int, outcome: str) -> Event:
    return SteeringEvaluated(supervisor="coach", outcome=outcome, number=number, limit=5)


def queued(id_: str, author: str = "coach", text: str = "Read the trace.") -> Event:
    return UserMessageQueued(
        message_id=id_, author=author, node_id="fix", text=text, at="2026-12-01T03:00:00.000Z"
    )


STEERED = plain(
    SteeringArmed(supervisor="coach", watches=("fix",)),
    SteeringArmed(supervisor="guard"),
    SteeringArmed(supervisor="coach", watches=("fix", "judge")),
    looked(1, "silent"),
    looked(2, "intervened"),
    looked(2, "failed"),
    queued("m1"),
    UserMessageDelivered(message_id="m1"),
    UserMessageConsumed(message_id="m1"),
    queued("m2", author="operator", text="Stop <soon>."),
    UserMessageExpired(message_id="m2", reason="its node ended"),
    SteeringDone(supervisor="coach", reason="all is well"),
)


def test_a_report_tells_who_watched_how_often_and_what_was_said() -> None:
    said = report_text(fold_report(STEERED), width=90)
    assert said[said.index("Steering") :] == (
        "Steering\n"
        "  ◇ coach: watched fix, judge, looked 2 times of 5: said nothing once, said a word once,\n"
        "      gave no answer once; done: all is well\n"
        "  ◇ guard: watched the whole run, looked 0 times\n"
        "  ◇ coach to fix: Read the trace. (consumed)\n"
        "  ◇ operator to fix: Stop <soon>. (expired: its node ended)\n"
    )


def test_programs_get_the_same() -> None:
    found: Any = report_json(fold_report(STEERED))["steering"]
    assert found["supervisors"] == [
        {
            "name": "coach",
            "watches": ["fix", "judge"],
            "looks": {"silent": 1, "intervened": 1, "failed": 1},
            "limit": 5,
            "standing": "done: all is well",
        },
        {"name": "guard", "watches": [], "looks": {}, "limit": None, "standing": None},
    ]
    assert [(m["id"], m["state"], m["reason"]) for m in found["messages"]] == [
        ("m1", "consumed", None),
        ("m2", "expired", "its node ended"),
    ]


@pytest.mark.parametrize("state", State)
def test_a_report_and_the_mailbox_call_the_states_of_a_message_alike(state: State) -> None:
    """steering.md §4: queued, delivered, consumed, cancelled, expired."""
    event = event_of(Message(message_id="m1", run_id="r", text="Hi.", state=state), str)
    report = fold_report(plain(event))
    told: Any = report_json(report)["steering"]
    assert [m["state"] for m in told["messages"]] == [state.value]
    assert f"({state.value})" in report_text(report)
    assert f"<td>{state.value}</td>" in report_html(report)


def test_the_page_has_it_as_text() -> None:
    page = report_html(fold_report(STEERED))
    assert 'id="steering"' in page
    assert "Stop &lt;soon&gt;." in page


def test_a_message_that_was_left_before_the_record_began_is_named_all_the_same() -> None:
    found = fold_report(plain(UserMessageCancelled(message_id="m9", author="x", reason="late")))
    assert [(w.id, w.fate) for w in found.steering.words.values()] == [("m9", "cancelled: late")]


def test_a_fresh_wake_ends_a_rest() -> None:
    events = [SteeringParked(supervisor="c", failures=3), SteeringWoken(supervisor="c", number=1)]
    report = fold_report(plain(*events))
    assert report.steering.watchers["c"].standing == ""
    assert fold_report(plain(events[0])).steering.watchers["c"].standing == (
        "left alone after failures"
    )


def test_a_run_without_agents_says_nothing_of_steering() -> None:
    report = fold_report([])
    assert "Steering" not in report_text(report)
    assert 'id="steering"' not in report_html(report)
    assert report_json(report)["steering"] == {"supervisors": [], "messages": []}
