"""What a record says of money that was under way. (supervision.md §6, Money)"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nightwarden.errors import StoreError
from nightwarden.runtime.past import Past, Standing
from nightwarden.runtime.past_folding import ASKING, fold_past
from nightwarden.spec.catalog import NodeType

STEP = NodeType(name="t.Ask", inputs={}, outputs={}, retry_safe=True)
KEY = ("ask", (2,), 1)


STARTED = {
    "type": "run_started",
    "run_id": "r",
    "workflow": "w",
    "definition": {},
    "definition_hash": "",
    "inputs": {},
}


def past(*events: dict[str, Any]) -> Past:
    where = {"node_id": "ask", "lineage": [2], "attempt": 1}
    lines = [STARTED, *({**where, **event} for event in events)]
    return fold_past(msgspec.json.encode(line) for line in lines)


def reserved(number: int) -> dict[str, Any]:
    return {
        "type": "budget_reserved",
        "budget": "run",
        "reservation": number,
        "worst_micro_usd": 50_000,
    }


def booked(number: int, cost: int) -> dict[str, Any]:
    return {
        "type": "budget_committed",
        "budget": "run",
        "reservation": number,
        "cost_micro_usd": cost,
        "node_id": "",
    }


def test_a_turn_that_was_cut_off_has_an_unknown_cost_and_is_not_run_again() -> None:
    """row: S6-JOURNAL"""
    found = past(reserved(1))
    assert found.standing(STEP, KEY) is Standing.CUT_OFF
    assert found.touched[KEY] == ASKING
    assert found.costs["ask"] == 50_000  # the worst case


def test_a_turn_that_cost_nothing_leaves_the_step_as_it_was() -> None:
    found = past(reserved(1), booked(1, 0))
    assert found.standing(STEP, KEY) is Standing.NEW
    assert found.costs["ask"] == 0


def test_a_turn_that_was_paid_for_is_money_spent() -> None:
    found = past(reserved(1), reserved(2), booked(1, 0), booked(2, 700))
    assert found.standing(STEP, KEY) is Standing.CUT_OFF
    assert found.touched[KEY] == "it spent money"


def test_reservations_are_numbered_on_from_the_last_one() -> None:
    assert past(reserved(4), booked(4, 0), reserved(7)).last_call == 7
    assert past().last_call == 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"invocation_succeeded","seq":2,"outputs":{"x":}}',
        b'{"type":"node_started","seq":2,"node_id":"\xff"}',
        b'{"type":"invocation_failed","seq":2}',
        b'{"type":"control_sent","seq":2}',
        b"\0\0\0",
    ],
)
def test_an_event_that_cannot_be_read_is_named(line: bytes) -> None:
    first = msgspec.json.encode(STARTED)
    with pytest.raises(StoreError, match=r"^event 2 of the record is damaged .*verify"):
        fold_past([first, line])
