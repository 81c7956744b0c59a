"""http.*: fetching over HTTP, with a patience of its own below the supervisor's.

    try ─▶ Page
        ─▶ passing trouble ─▶ wait (Retry-After, else back-off with jitter) ─▶ try
        ─▶ an error that says what happened, and what to do

What passes by itself never reaches a supervisor: 408, 425, 429, 5xx, broken connections and
timeouts are tried again within `attempts` and `max_wait_s`. Only GET and HEAD are sent,
so that doing it again is safe.

Read next: `_http_exchange.py` (one try), `_http_policy.py` (what passes), `html.py`.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from nightwarden.nodes.builtin._http_errors import FetchError
from nightwarden.nodes.builtin._http_exchange import Ask, checked_url, exchange, open_client
from nightwarden.nodes.builtin._page import Page
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import Node, node

if TYPE_CHECKING:
    import httpx2

_LONGEST_BACKOFF_S: Final = 60.0


@node(type="http.Fetch", retry_safe=True, concurrency=16, label="{url}")
class Fetch(Node):
    """Get a page: a GET (or HEAD) request; fails with a clear error unless the status is 2xx.

    408, 425, 429, 5xx, broken connections and timeouts are tried again here, up to `attempts`
    times in all; `Retry-After` is honoured. `timeout_s` is for one try, from connecting to the
    last byte; the pauses between tries add up to `max_wait_s` at most. Answers over `max_bytes`
    are refused. `authorization` becomes the header of that name: give it as `$secrets.NAME`.
    """

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def setup(self, ctx: Context) -> None:  # noqa: ARG002
        """Open the one client of the run."""
        self._client = open_client()

    async def teardown(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def run(
        self,
        url: str,
        ctx: Context,
        *,
        method: Literal["GET", "HEAD"] = "GET",
        authorization: str = "",
        headers: dict[str, str] = {},  # noqa: B006  (never changed; a slot's default is a value)
        timeout_s: Annotated[float, Field(gt=0)] = 30.0,
        attempts: Annotated[int, Field(ge=1)] = 4,
        backoff_s: Annotated[float, Field(ge=0)] = 0.5,
        max_wait_s: Annotated[float, Field(ge=0)] = 60.0,
        max_bytes: Annotated[int, Field(ge=1)] = 10_000_000,
    ) -> Page:
        """Ask until there is an answer, or no hope of one within the limits."""
        assert self._client is not None, "setup was not called"
        ask = Ask(
            url=checked_url(url),
            method=method,
            headers=headers | ({"Authorization": authorization.strip()} if authorization else {}),
            timeout_s=timeout_s,
            max_bytes=max_bytes,
        )
        waited_s, attempt = 0.0, 1
        while True:
            try:
                return await exchange(self._client, ask)
            except FetchError as error:
                asked_s = error.retry_after_s
                pause_s = _pause(attempt, backoff_s, asked_s)
                if not error.transient or attempts == 1:
                    raise
                if attempt == attempts:
                    error.explain(f"tried {attempt} times")
                    raise
                if waited_s + (pause_s if asked_s is None else asked_s) > max_wait_s:
                    error.explain(_too_long(attempt, max_wait_s, asked_s))
                    raise
                pause_s = min(pause_s, max_wait_s - waited_s)
                ctx.log.info(f"{error}; try {attempt + 1} of {attempts} in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            attempt += 1


def _pause(attempt: int, backoff_s: float, asked_s: float | None) -> float:
    """Seconds before the next try: never less than the server asked for; jitter spreads clients."""
    if asked_s is not None:
        return asked_s + random.uniform(0, min(1.0, asked_s / 10))
    longest = min(_LONGEST_BACKOFF_S, backoff_s * 2 ** min(attempt - 1, 30))
    return random.uniform(longest / 2, longest)


def _too_long(attempt: int, max_wait_s: float, asked_s: float | None) -> str:
    wanted = "the next pause is" if asked_s is None else f"it asks to wait {asked_s:g} s,"
    tries = "once" if attempt == 1 else f"{attempt} times"
    return f"tried {tries}; {wanted} more than max_wait_s: {max_wait_s:g} allows"
