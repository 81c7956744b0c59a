"""HTTP on one connection of a program: its requests one after the other, and who has gone.

Read next: `proxy.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Final, NamedTuple

import h11
import msgspec

CHUNK: Final = 65_536

_MOST_BYTES: Final = 64 * 2**20
_JSON: Final = [("content-type", "application/json")]

Headers = Sequence[tuple[str, str]]


class Asked(NamedTuple):
    """A request of the program."""

    target: str
    headers: Headers
    raw: bytes

    @property
    def path(self) -> str:
        """Without what follows the question mark."""
        return self.target.partition("?")[0]


class Line:
    """One connection of the program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def next(self) -> Asked | None:
        """The next request; None when there is none any more."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    request = event
                    if self._http.they_are_waiting_for_100_continue:
                        await self.send(h11.InformationalResponse(status_code=100, headers=[]))
                case h11.Data():
                    body += event.data
                    if len(body) > _MOST_BYTES:
                        return None
                case h11.EndOfMessage() if request is not None:
                    headers = [(k.decode(), v.decode("latin-1")) for k, v in request.headers]
                    return Asked(request.target.decode(), headers, bytes(body))
                case h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(CHUNK))
                case _:
                    return None

    async def watched(self, answer: Coroutine[object, object, None]) -> None:
        """Answer, as long as there is somebody to answer. Raises `ConnectionError` if not."""
        answering = asyncio.ensure_future(answer)
        listening = asyncio.ensure_future(self._reader.read(CHUNK))
        try:
            await asyncio.wait({answering, listening}, return_when=asyncio.FIRST_COMPLETED)
            if listening.done() and not answering.done() and listening.result():
                await asyncio.wait({answering})  # it already says more: it is there
        finally:
            for task in (answering, listening):
                task.cancel()
            await asyncio.gather(answering, listening, return_exceptions=True)
        if not listening.cancelled():
            self._http.receive_data(listening.result())
        if answering.cancelled():
            raise ConnectionResetError
        answering.result()

    async def head(self, status: int, headers: Headers) -> None:
        """Begin an answer."""
        await self.send(h11.Response(status_code=status, headers=list(headers)))

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer."""
        await self.head(status, [*headers, ("content-length", str(len(body)))])
        await self.send(h11.Data(body))
        await self.send(h11.EndOfMessage())

    async def error(self, status: int, kind: str, message: str) -> None:
        """An error in the provider's form; not to be tried again but where it may help."""
        body = {"type": "error", "error": {"type": kind, "message": message}}
        again = [] if status >= 500 else [("x-should-retry", "false")]
        await self.whole(status, [*_JSON, *again], msgspec.json.encode(body))

    async def send(self, event: h11.Event) -> None:
        """Send a part of an answer."""
        self._writer.write(self._http.send(event) or b"")
        with contextlib.suppress(ConnectionResetError):
            await self._writer.drain()
