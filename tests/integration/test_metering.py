"""The wrapper that keeps a budget, on the providers' own models: whole and streamed turns.

supervision.md §6, Money: the check sits inside the model layer, so that no loop can pass it by.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from model_runs import PRICE, PROTOCOLS, Run, stub_model
from model_server import Call, Cut, Hang, ModelServer, Say, Script, Status
from pydantic_ai import Agent, BinaryContent, ImageUrl, ModelMessage, ModelRequest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from nightwarden.agents.budget import BudgetRefused, TurnBudget
from nightwarden.agents.building import build, metered
from nightwarden.agents.meter import Meter
from nightwarden.errors import ModelError

CHAT = "openai-chat:gpt-5"
TURN = 1_000 * 3 + 50 * 15
ASK: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("How many?")])]
PLAIN = ModelRequestParameters()


@asynccontextmanager
async def model_of(
    script: Sequence[Script], name: str = CHAT, *, cap: int = 10_000_000, longest: int = 2_048
) -> AsyncIterator[tuple[Any, Meter, Run, ModelServer]]:
    """A metered model behind which a scripted provider stands."""
    run = Run()
    meter = Meter(TurnBudget(cap), PRICE, model=name, journal=run, max_output_tokens=longest)
    with ModelServer(script) as server:
        built = build(stub_model(server, name))
        async with built:
            yield metered(built, meter, sleep=_no_wait), meter, run, server


async def drain(model: Any) -> None:
    """Read a stream to its end."""
    async with model.request_stream(ASK, None, PLAIN) as stream:
        async for _ in stream:
            pass


async def _no_wait(seconds: float) -> None:
    """Time is not what these tests are about."""


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_stream_read_to_its_end_is_booked_at_what_it_used(name: str) -> None:
    async def main() -> None:
        async with model_of([Say("Four.")], name) as (model, meter, run, server):
            async with model.request_stream(ASK, None, PLAIN) as stream:
                events = [event async for event in stream]
            assert events
            assert stream.get().text == "Four."
            assert run.bookings == [("actual", TURN)]
            assert (meter.tally.tokens_in, meter.tally.tokens_out) == (1_000, 50)
            assert server.requests[0].max_tokens == 2_048

    asyncio.run(main())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_stream_left_early_is_booked_at_the_worst_case(name: str) -> None:
    async def main() -> None:
        async with model_of([Say("Four.")], name) as (model, _, run, _):
            async with model.request_stream(ASK, None, PLAIN) as stream:
                async for _ in stream:
                    break
            assert run.bookings == [("worst", run.reserved[0].worst_micro_usd)]

    asyncio.run(main())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_stream_that_breaks_off_is_booked_at_the_worst_case_and_not_asked_again(
    name: str,
) -> None:
    """Issue 5, bad input: half an answer."""

    async def main() -> None:
        script = [Cut(Say("Four."), events=1), Say("Four.")]
        async with model_of(script, name) as (model, _, run, server):
            # One library ends such a stream as if it were whole; it has no usage then.
            with contextlib.suppress(ModelAPIError):
                await drain(model)
            assert run.bookings == [("worst", run.reserved[0].worst_micro_usd)]
            assert len(server.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_cancelling_amid_a_stream_closes_the_socket_and_books_the_worst_case(name: str) -> None:
    async def main() -> None:
        script = [Cut(Say("Four."), events=1, hang=True)]
        async with model_of(script, name) as (model, _, run, server):
            task = asyncio.ensure_future(drain(model))
            await asyncio.to_thread(server.waiting.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.closed.wait, 2.0)
            assert run.bookings == [("worst", run.reserved[0].worst_micro_usd)]

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_refused_stream_is_asked_again_like_any_request(name: str, streamed: bool) -> None:
    async def main() -> None:
        busy = Status(429, {"error": {"message": "busy"}})
        async with model_of([busy, Say("Four.")], name) as (model, _, run, server):
            await (drain(model) if streamed else model.request(ASK, None, PLAIN))
            assert run.bookings == [("refused", 0), ("actual", TURN)]
            assert len(server.requests) == 2

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_what_does_not_fit_is_refused_before_anything_is_sent(streamed: bool) -> None:
    async def main() -> None:
        async with model_of([Say("Four.")], cap=1) as (model, meter, run, server):
            ask = drain(model) if streamed else model.request(ASK, None, PLAIN)
            with pytest.raises(BudgetRefused):
                await ask
            assert (server.requests, run.events, meter.tally.turns) == ([], [], 0)

    asyncio.run(main())


def test_streams_at_once_hold_their_money_until_each_is_over() -> None:
    """supervision.md §6: concurrent reservations and streams."""

    async def main() -> None:
        async with model_of([Say("Four.")]) as (model, meter, run, _):
            async with model.request_stream(ASK, None, PLAIN) as first:
                async with model.request_stream(ASK, None, PLAIN) as second:
                    held = [reserved.worst_micro_usd for reserved in run.reserved]
                    assert meter.budget.outstanding_micro_usd == sum(held)
                    async for _ in second:
                        pass
                assert meter.budget.outstanding_micro_usd == held[0]
                assert meter.budget.spent_micro_usd == TURN
                async for _ in first:
                    pass
            assert meter.budget.outstanding_micro_usd == 0
            assert meter.budget.spent_micro_usd == 2 * TURN

    asyncio.run(main())


def test_a_crowd_of_turns_never_goes_over_the_cap() -> None:
    async def main() -> None:
        async with model_of([Say("Four.")]) as (model, _, run, _):
            await model.request(ASK, None, PLAIN)
            worst = run.reserved[0].worst_micro_usd
        cap = 3 * worst
        async with model_of([Say("Four.")], cap=cap) as (model, meter, run, server):
            asked = (model.request(ASK, None, PLAIN) for _ in range(20))
            done = await asyncio.gather(*asked, return_exceptions=True)
            refused = [one for one in done if isinstance(one, BudgetRefused)]
            assert len(refused) == 20 - len(server.requests) > 0
            assert meter.budget.spent_micro_usd == len(server.requests) * TURN <= cap
            for reserved in run.reserved:
                before = reserved.spent_micro_usd + reserved.outstanding_micro_usd
                assert before + reserved.worst_micro_usd <= cap

    asyncio.run(main())


@pytest.mark.parametrize(("asked", "sent"), [(None, 100), (50, 50), (4_000, 100)])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_longest_answer_is_set_whatever_is_asked(
    name: str, asked: int | None, sent: int
) -> None:
    """dependencies.md: unset max_tokens means the model's maximum."""

    async def main() -> None:
        async with model_of([Say("Four.")], name, longest=100) as (model, _, _, server):
            settings = ModelSettings() if asked is None else ModelSettings(max_tokens=asked)
            await model.request(ASK, settings, PLAIN)
            assert server.requests[0].max_tokens == sent

    asyncio.run(main())


def test_no_loop_above_can_pass_the_meter_by() -> None:
    """An agent of the library's own, with tools, stops at the cap.

    row: S6-INSIDE
    """

    async def main() -> None:
        script = [Call("more", {})]
        async with model_of(script) as (model, meter, run, server):
            agent: Agent[None, str] = Agent(model, tools=[_more])
            with pytest.raises(Exception, match=r"request_limit|exceed"):
                await agent.run("Go on for ever.")
            spent = len(server.requests) * TURN
            assert meter.budget.spent_micro_usd == spent
        cap = run.reserved[0].worst_micro_usd + 5 * TURN
        async with model_of(script, cap=cap) as (model, meter, _, server):
            agent = Agent(model, tools=[_more])
            with pytest.raises(BudgetRefused):
                await agent.run("Go on for ever.")
            assert 1 <= len(server.requests) <= 6
            assert meter.budget.spent_micro_usd <= cap

    asyncio.run(main())


def _more() -> str:
    """More."""
    return "more"


_more.__name__ = "more"


@pytest.mark.parametrize(
    "content",
    [ImageUrl("https://images.example/big.png"), BinaryContent(b"\x89PNG", media_type="image/png")],
    ids=["address", "bytes"],
)
def test_what_cannot_be_bounded_by_its_length_is_not_sent(content: Any) -> None:
    async def main() -> None:
        async with model_of([Say("A cat.")]) as (model, _, run, server):
            ask: list[ModelMessage] = [
                ModelRequest(parts=[UserPromptPart(["What is this?", content])])
            ]
            with pytest.raises(ModelError, match="cannot be held to a budget"):
                await model.request(ask, None, PLAIN)
            assert (server.requests, run.events) == ([], [])

    asyncio.run(main())


def test_ways_to_spend_without_a_bound_are_closed() -> None:
    async def main() -> None:
        async with model_of([Say("x")]) as (model, _, run, server):
            with pytest.raises(ModelError, match="cannot be held to a budget"):
                await model.batch_create([])
            with pytest.raises(ModelError, match="cannot be held to a budget"):
                await model.compact_messages(None)
            assert (server.requests, run.events) == ([], [])

    asyncio.run(main())


def test_a_waiting_request_holds_its_worst_case() -> None:
    async def main() -> None:
        async with model_of([Hang()]) as (model, meter, run, server):
            task = asyncio.ensure_future(model.request(ASK, None, PLAIN))
            await asyncio.to_thread(server.waiting.wait, 10)
            assert meter.budget.outstanding_micro_usd == run.reserved[0].worst_micro_usd
            assert meter.budget.spent_micro_usd == 0
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert meter.budget.outstanding_micro_usd == 0

    asyncio.run(main())
