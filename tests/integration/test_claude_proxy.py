"""The proxy before Claude Code, against a provider on loopback: no request it cannot pay for.

steering.md §5: `max_cost_usd`; dependencies.md: a hard cap is a proxy that reserves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from model_runs import KEY, PRICE, Run, stub_model
from model_server import Call, Cut, Drop, Hang, ModelServer, Say, Script, Status

from nightwarden.agents.budget import TurnBudget
from nightwarden.agents.claude.proxy import Payable, Proxy
from nightwarden.agents.meter import UNSEEN_TOKENS, Meter
from nightwarden.errors import ModelError
from nightwarden.events import Event
from nightwarden.events.budget import BudgetCommitted

NAME = "anthropic:claude-sonnet-5"
TURN = 1_000 * 3 + 50 * 15
BODY: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "How many?"}],
}


class Told(Run):
    """What is written down; `booked` once a turn is."""

    def __init__(self) -> None:
        super().__init__()
        self.booked = asyncio.Event()

    def publish(self, event: Event) -> None:
        super().publish(event)
        if isinstance(event, BudgetCommitted):
            self.booked.set()


class Bench:
    """A proxy, what it wrote down, and the provider behind it."""

    def __init__(self, proxy: Proxy, run: Told, server: ModelServer, budget: TurnBudget) -> None:
        self.proxy = proxy
        self.run = run
        self.server = server
        self.budget = budget
        self.client = httpx2.AsyncClient(base_url=proxy.url, headers={"x-api-key": proxy.key})

    async def ask(self, path: str = "/v1/messages?beta=true", **fields: Any) -> httpx2.Response:
        return await self.client.post(path, json={**BODY, **fields})


@asynccontextmanager
async def bench(
    script: Sequence[Script], *, cap: int = 10_000_000, unpriced: str = "", base_url: str = ""
) -> AsyncIterator[Bench]:
    run, budget = Told(), TurnBudget(cap)
    with ModelServer(script) as server:
        model = stub_model(server, NAME, **({"base_url": base_url} if base_url else {}))
        meter = Meter(budget, PRICE, model=NAME, journal=run)

        def payable(name: str) -> Payable:
            if name == unpriced:
                raise ModelError(f"anthropic:{name} has no known price")
            return Payable(model, meter)

        async with Proxy(payable, lambda text: text.replace("hunter2", "••••")) as proxy:
            found = Bench(proxy, run, server, budget)
            async with found.client:
                yield found


def worst_of(**fields: Any) -> int:
    size = len(json.dumps({**BODY, **fields}, separators=(",", ":")))
    return (size + UNSEEN_TOKENS) * 3 + 100 * 15


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_handed_on_and_booked_by_what_it_says_it_used(streamed: bool) -> None:
    async def main() -> None:
        async with bench([Say("Four.")]) as b:
            answer = await b.ask(stream=streamed)
            assert answer.status_code == 200
            assert "Four." in answer.text
            assert b.run.bookings == [("actual", TURN)]
            assert b.run.reserved[0].worst_micro_usd == worst_of(stream=streamed)
            sent = b.server.requests[0]
            assert (sent.path, sent.headers["x-api-key"]) == ("/v1/messages?beta=true", KEY)
            assert b.proxy.key not in str(sent.headers)

    asyncio.run(main())


def test_what_is_cached_counts_as_read_and_a_cache_may_be_written() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 700,
        "cache_creation_input_tokens": 290,
        "output_tokens": 50,
    }

    async def main() -> None:
        async with bench([Status(200, {"type": "message", "usage": usage})]) as b:
            await b.ask()
            assert b.run.bookings == [("actual", TURN)]

    asyncio.run(main())


def test_a_request_that_just_fits_is_sent_and_one_that_does_not_is_402() -> None:
    """To the micro-dollar."""

    async def main() -> None:
        async with bench([Say("Four.")], cap=worst_of()) as b:
            assert (await b.ask()).status_code == 200
        async with bench([Say("Four.")], cap=worst_of() - 1) as b:
            answer = await b.ask()
            assert answer.status_code == 402
            assert answer.headers["x-should-retry"] == "false"
            error = answer.json()
            assert error["type"] == "error"
            assert error["error"]["type"] == "billing_error"
            assert "cost cap of" in error["error"]["message"]
            assert str(b.proxy.refused) == error["error"]["message"]
            assert b.server.requests == []
            assert b.run.reserved == []

    asyncio.run(main())


def test_requests_at_the_same_time_never_hold_more_than_there_is() -> None:
    async def main() -> None:
        async with bench([Say("Four.")], cap=2 * worst_of() + 10) as b:
            answers = await asyncio.gather(*(b.ask() for _ in range(8)))
            for turn in b.run.reserved:
                held = turn.spent_micro_usd + turn.outstanding_micro_usd + turn.worst_micro_usd
                assert held <= 2 * worst_of() + 10
            assert {a.status_code for a in answers} <= {200, 402}
            assert b.budget.outstanding_micro_usd == 0
            assert b.budget.spent_micro_usd == TURN * sum(a.status_code == 200 for a in answers)

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_does_not_say_what_it_used_costs_the_worst_case(streamed: bool) -> None:
    async def main() -> None:
        async with bench([Say("Four.", usage=None)]) as b:
            assert (await b.ask(stream=streamed)).status_code == 200
            assert b.run.bookings == [("worst", worst_of(stream=streamed))]

    asyncio.run(main())


def test_a_stream_comes_piece_by_piece() -> None:
    """The first piece is there while the provider still thinks."""

    async def main() -> None:
        async with bench([Cut(Say("Four."), events=1, hang=True)]) as b:
            async with b.client.stream(
                "POST", "/v1/messages", json={**BODY, "stream": True}
            ) as answer:
                first = await anext(answer.aiter_bytes())
                assert b"message_start" in first
                assert b.run.bookings == []
            # The client has gone: the provider's end is closed, and the worst case booked.
            assert await asyncio.to_thread(b.server.closed.wait, 5)
            await asyncio.wait_for(b.run.booked.wait(), 5)
            assert b.run.bookings == [("worst", worst_of(stream=True))]

    asyncio.run(main())


def test_a_client_that_goes_before_the_answer_ends_the_request() -> None:
    async def main() -> None:
        async with bench([Hang()]) as b:
            asking = asyncio.ensure_future(b.ask())
            assert await asyncio.to_thread(b.server.waiting.wait, 5)
            asking.cancel()
            assert await asyncio.to_thread(b.server.closed.wait, 5)
            await asyncio.wait_for(b.run.booked.wait(), 5)
            assert b.run.bookings == [("worst", worst_of())]

    asyncio.run(main())


def test_closing_the_proxy_ends_what_is_under_way() -> None:
    async def main() -> None:
        async with bench([Hang()]) as b:
            asking = asyncio.ensure_future(b.ask())
            assert await asyncio.to_thread(b.server.waiting.wait, 5)
            await b.proxy.__aexit__()
            with pytest.raises(httpx2.HTTPError):
                await asking
            assert b.run.bookings == [("worst", worst_of())]

    asyncio.run(main())


def test_a_stream_that_breaks_off_costs_the_worst_case_and_is_no_whole_answer() -> None:
    async def main() -> None:
        async with bench([Cut(Say("Four."), events=3)]) as b:
            with pytest.raises(httpx2.HTTPError):
                await b.ask(stream=True)
            assert b.run.bookings == [("worst", worst_of(stream=True))]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "booked"), [(401, "refused"), (429, "refused"), (529, "refused"), (500, "worst")]
)
def test_what_the_provider_refuses_is_handed_on_and_costs_nothing(status: int, booked: str) -> None:
    async def main() -> None:
        said = Status(status, {"type": "error"}, {"retry-after": "7"})
        async with bench([said]) as b:
            answer = await b.ask()
            assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")
            assert answer.json() == {"type": "error"}
            assert b.run.bookings == [(booked, worst_of() if booked == "worst" else 0)]
            assert b.proxy.status == status

    asyncio.run(main())


def test_a_provider_that_cannot_be_reached_costs_nothing() -> None:
    async def main() -> None:
        async with bench([Drop()], base_url="http://127.0.0.1:9") as b:
            answer = await b.ask()
            assert answer.status_code == 502
            assert b.run.bookings == [("refused", 0)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"model": "dear"}, "no known price"),
        ({"max_tokens": None}, "how long its answer may be"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
        ({"speed": "fast"}, "speed"),
        (
            {"system": [{"type": "text", "text": "x", "cache_control": {"ttl": "1h"}}]},
            "a cache kept for an hour",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]},
            "a document cannot be held",
        ),
    ],
)
def test_what_no_price_bounds_is_refused(fields: dict[str, Any], says: str) -> None:
    async def main() -> None:
        async with bench([Say("Four.")], unpriced="dear") as b:
            answer = await b.ask(**fields)
            assert answer.status_code == 402
            assert says in answer.json()["error"]["message"]
            assert b.server.requests == []
            assert b.budget.outstanding_micro_usd == 0

    asyncio.run(main())


def test_nobody_without_the_key_is_let_through_and_nothing_but_messages() -> None:
    async def main() -> None:
        async with bench([Status(200, {"input_tokens": 5})]) as b:
            for headers in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}):
                async with httpx2.AsyncClient(base_url=b.proxy.url) as stranger:
                    answer = await stranger.post("/v1/messages", json=BODY, headers=headers)
                assert answer.status_code == 401
            assert (await b.ask("/v1/messages/batches")).status_code == 404
            assert (await b.client.get("/v1/models")).status_code == 404
            assert b.server.requests == []
            counted = await b.ask("/v1/messages/count_tokens")
            assert counted.json() == {"input_tokens": 5}
            assert b.run.reserved == []

    asyncio.run(main())


def test_secrets_do_not_leave_in_what_is_said() -> None:
    """steering.md §5, as the native agent: masked before the model reads it."""
    said = [
        {"role": "user", "content": "the key is hunter2"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hunter2?", "signature": "hunter2"},
                {
                    "type": "tool_use",
                    "id": "t",
                    "name": "Bash",
                    "input": {"type": "image", "x": "hunter2"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [{"type": "text", "text": "hunter2"}],
                }
            ],
        },
    ]

    async def main() -> None:
        async with bench([Say("Four.")]) as b:
            await b.ask(messages=said)
            sent = b.server.requests[0].body["messages"]
            assert sent[1]["content"][0] == said[1]["content"][0], "what is signed stays as it is"
            rest = json.dumps([sent[0], sent[1]["content"][1], sent[2]])
            assert "hunter2" not in rest

    asyncio.run(main())


def test_what_is_no_request_is_refused_and_the_connection_goes_on() -> None:
    async def main() -> None:
        async with bench([Call("list", {})]) as b:
            answer = await b.client.post("/v1/messages", content=b"{")
            assert answer.status_code == 402
            assert "no JSON object" in answer.json()["error"]["message"]
            assert (await b.ask()).status_code == 200

    asyncio.run(main())
