"""Between Claude Code and the provider: no request passes that the budgets do not cover.

    the program ─▶ 127.0.0.1:PORT ─▶ masked ─▶ worst case held ─▶ the provider
                        │ 402                    │                    │ piece by piece
                        ◀──── does not fit ──────┘  booked by usage ◀─┘

The program is given this address, and a key of its own that opens nothing else; the provider's key
stays here. So every request is paid for, whichever part of the program makes it, and what it starts
cannot spend more either. A client that goes away ends its request at the provider.

Read next: `bounding.py`, `line.py`, `../meter.py`.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Self

import h11
import httpx2
import msgspec

from nightwarden.agents.budget import Reservation
from nightwarden.agents.claude.bounding import (
    StreamedUsage,
    decoded,
    masked,
    usage_of,
    worst_micro_usd,
)
from nightwarden.agents.claude.line import CHUNK, Asked, Headers, Line
from nightwarden.agents.meter import Meter
from nightwarden.agents.models import Model
from nightwarden.agents.prices import Usage
from nightwarden.errors import ModelError, NodeError
from nightwarden.events.budget import Booking

MESSAGES: Final = "/v1/messages"
COUNTING: Final = "/v1/messages/count_tokens"
"""What may be asked; counting tokens is free."""

_TIMEOUT: Final = httpx2.Timeout(30.0, read=600.0, write=60.0)
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_OWN_HEADERS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding"}
    | {"x-api-key", "authorization", "keep-alive", "expect"}
)
_FROM_THERE: Final = ("content-type", "request-id", "retry-after", "x-should-retry")


class Payable(NamedTuple):
    """A model that may be asked, and what its turns are paid from."""

    model: Model
    meter: Meter


class Proxy:
    """One for one piece of work; enter it. `payable` finds a model by the name the program uses,
    and raises `ModelError` for one without a price. `mask` takes secrets out of what is sent."""

    def __init__(self, payable: Callable[[str], Payable], mask: Callable[[str], str]) -> None:
        self._payable = payable
        self._mask = mask
        self._server: asyncio.Server | None = None
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT, follow_redirects=False)
        self._tasks: set[asyncio.Task[None]] = set()
        self.key = f"sk-ant-{secrets.token_urlsafe(32)}"
        """What the program has to show here."""
        self.refused: NodeError | ModelError | None = None
        """Why the last request was not let through; None where it was."""
        self.status = 0
        """What the provider answered last; 0 where it could not be reached."""

    @property
    def url(self) -> str:
        """The address the program is given."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=CHUNK)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it, with every request under way."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            line = Line(reader, writer)
            while (asked := await line.next()) is not None:
                await line.watched(self._answer(asked, line))
        except (OSError, h11.ProtocolError, httpx2.HTTPError, asyncio.CancelledError):
            pass  # it is closed below; what was held is booked by now
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, asked: Asked, line: Line) -> None:
        given = dict(asked.headers)
        shown = given.get("x-api-key") or given.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode(), self.key.encode()):
            await line.error(401, "authentication_error", "this key opens nothing here")
        elif asked.path == MESSAGES:
            await self._paid(asked, line)
        elif asked.path == COUNTING:
            await self._free(asked, line)
        else:
            await line.error(404, "not_found_error", f"{asked.path} cannot be held to a budget")

    async def _paid(self, asked: Asked, line: Line) -> None:
        try:
            body = masked(decoded(asked.raw), self._mask)
            raw = msgspec.json.encode(body)
            model, meter = self._payable(body["model"])
            turn = await meter.hold(worst_micro_usd(meter.price, body, len(raw)))
        except (ModelError, NodeError) as error:
            self.refused = error
            await line.error(402, "billing_error", str(error))
            return
        self.refused = None
        booking = _Turn(meter, turn)
        try:
            await self._pass_on(asked, raw, model, line, booking)
        finally:
            booking.close(Booking.WORST)  # unless it is booked by now

    async def _free(self, asked: Asked, line: Line) -> None:
        try:
            body = masked(decoded(asked.raw), self._mask)
            model, _ = self._payable(body["model"])
        except ModelError as error:
            await line.error(400, "invalid_request_error", str(error))
            return
        await self._pass_on(asked, msgspec.json.encode(body), model, line, None)

    async def _pass_on(
        self, asked: Asked, raw: bytes, model: Model, line: Line, turn: _Turn | None
    ) -> None:
        headers = [(k, v) for k, v in asked.headers if k not in _OWN_HEADERS]
        headers += [("x-api-key", model.key), ("accept-encoding", "identity")]
        url = model.base_url.rstrip("/") + asked.target
        try:
            async with self._client.stream("POST", url, content=raw, headers=headers) as response:
                self.status = response.status_code
                await self._back(response, line, turn)
        except _NEVER_SENT as error:
            self.status = 0
            if turn is not None:
                turn.close(Booking.REFUSED)
            await line.error(502, "api_error", f"the provider cannot be reached: {error}")

    async def _back(self, response: httpx2.Response, line: Line, turn: _Turn | None) -> None:
        status = response.status_code
        headers = [(k, response.headers[k]) for k in _FROM_THERE if k in response.headers]
        if status == 200 and response.headers.get("content-type", "").startswith("text/event-"):
            await _streamed(response, headers, line, turn)
            return
        whole = await response.aread()
        if turn is not None and status == 200:
            turn.close(Booking.ACTUAL, usage_of(_field(whole, "usage")))
        elif turn is not None and (400 <= status < 500 or status == 529):
            turn.close(Booking.REFUSED)
        await line.whole(status, headers, whole)


class _Turn:
    """A reservation that is booked once."""

    def __init__(self, meter: Meter, held: Reservation) -> None:
        self._meter = meter
        self._held: Reservation | None = held

    def close(self, booked: Booking, usage: Usage | None = None) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._meter.book(held, booked, usage)


async def _streamed(
    response: httpx2.Response, headers: Headers, line: Line, turn: _Turn | None
) -> None:
    """Hand the pieces on as they come; the turn is booked before its last one is."""
    usage = StreamedUsage()
    await line.head(200, [*headers, ("transfer-encoding", "chunked")])
    async for piece in response.aiter_bytes():
        usage.feed(piece)
        if usage.whole and turn is not None:
            turn.close(Booking.ACTUAL, usage.usage)
        await line.send(h11.Data(piece))
    await line.send(h11.EndOfMessage())


def _field(whole: bytes, name: str) -> object:
    try:
        found = msgspec.json.decode(whole)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found.get(name) if isinstance(found, Mapping) else None
