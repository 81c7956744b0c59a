"""An evaluator that asks a model, on the wire (steering.md §1, §2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from model_runs import KEY, PROTOCOLS, stub_model
from model_server import Call, Hang, ModelServer, Say, Status
from steering_kit import spec

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.consulting import Consultant
from nightwarden.steering.evaluating import ModelEvaluator, evaluator_for
from nightwarden.steering.ports import Advice, Answer, Snapshot

TURN_MICRO_USD = 1000 * 3 + 50 * 15
LOOK = Snapshot(
    supervisor="dog",
    run_id="r",
    policy="Be brief.",
    model="",
    node="fix",
    reasons=("a turn ended",),
    recent=("#7 fix says: once more",),
    monitors=(),
    number=1,
    limit=20,
)


def advise(**fields: Any) -> Call:
    return Call("advise", {"intervene": False, **fields})


def looked(server: ModelServer, protocol: str = "openai-chat:gpt-5", **fields: Any) -> Answer:
    async def main() -> Answer:
        evaluator = evaluator_for(spec(**fields), stub_model(server, protocol))
        try:
            return await evaluator.evaluate(LOOK)
        finally:
            await evaluator.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_look_is_one_question_whatever_the_provider_speaks(protocol: str) -> None:
    advice = advise(intervene=True, message="Stop.", watch=[{"event_type": "log", "count": 3}])
    with ModelServer([advice]) as server:
        answer = looked(server, protocol)
        (request,) = server.requests
    assert answer.advice == Advice(
        intervene=True, message="Stop.", watch=({"event_type": "log", "count": 3},)
    )
    assert (answer.detail, answer.model, answer.input_tokens) == ("", protocol, 1000)
    assert answer.cost_micro_usd == TURN_MICRO_USD
    assert request.max_tokens == 2000
    assert "Be brief." in request.text
    assert "#7 fix says: once more" in request.text
    assert "advise" in request.tools


def test_prose_is_asked_again_and_then_no_answer() -> None:
    """Issue 6, bad input: an evaluator that answers prose. All of it is paid for and told."""
    with ModelServer([Say("I think all is well.")]) as server:
        answer = looked(server)
        assert len(server.requests) == 3
    assert answer.advice is None
    assert answer.detail.startswith("openai-chat:gpt-5: ")
    assert answer.cost_micro_usd == 3 * TURN_MICRO_USD


def test_an_answer_of_the_wrong_form_is_mended_in_the_same_look() -> None:
    with ModelServer([Call("advise", {"message": "no"}), advise(reason="fine")]) as server:
        answer = looked(server)
    assert answer.advice == Advice(intervene=False, reason="fine")
    assert answer.cost_micro_usd == 2 * TURN_MICRO_USD


def test_a_key_the_provider_does_not_accept_is_one_line_without_the_key() -> None:
    with ModelServer([Status(401, {"error": {"message": f"bad key {KEY}"}})]) as server:
        answer = looked(server)
    assert answer.detail == "openai-chat:gpt-5: the provider does not accept the key"
    assert (answer.advice, answer.cost_micro_usd) == (None, 0)


def test_a_look_its_own_cap_does_not_cover_is_not_taken() -> None:
    """steering.md §2: its own cap in dollars, never the run's money."""
    with ModelServer([advise()]) as server:
        answer = looked(server, cost_cap_usd=0.001)
        none = looked(server, cost_cap_usd=0.0)
        assert server.requests == []
    assert "cost cap of $0.001 reached" in answer.detail
    assert "a cost cap of $0.00 allows no model turn" in none.detail


def test_a_look_that_takes_too_long_ends_with_what_it_cost() -> None:
    """steering.md §2: an evaluation has a time limit; the socket is closed, the worst booked."""
    with ModelServer([Hang(), advise()]) as server:

        async def main() -> tuple[Answer, Answer]:
            consultant = Consultant(stub_model(server), TurnBudget(None), limit_s=3.0)
            evaluator = ModelEvaluator(consultant)
            first = await evaluator.evaluate(LOOK)
            second = await evaluator.evaluate(LOOK)
            await evaluator.aclose()
            return first, second

        first, second = asyncio.run(main())
        assert server.closed.wait(5)
    assert first.detail == "openai-chat:gpt-5: no answer within 3 s"
    assert first.cost_micro_usd > TURN_MICRO_USD
    assert (second.advice, second.cost_micro_usd) == (Advice(intervene=False), TURN_MICRO_USD)


def test_a_look_that_was_cut_off_is_told_at_its_worst_and_once() -> None:
    with ModelServer([Hang()]) as server:

        async def main() -> tuple[int, int]:
            evaluator = evaluator_for(spec(), stub_model(server))
            look = asyncio.create_task(evaluator.evaluate(LOOK))
            await asyncio.to_thread(server.waiting.wait, 20)
            look.cancel()
            told = evaluator.untold_micro_usd(), evaluator.untold_micro_usd()
            await asyncio.wait([look])
            await evaluator.aclose()
            return told

        told = asyncio.run(main())
    assert told[0] > TURN_MICRO_USD
    assert told[1] == 0
