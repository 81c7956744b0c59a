"""http.*: fetching over HTTP, with a patience of its own below the supervisor's.

    ask ─▶ answer ─▶ redirect? ─▶ again (never with credentials to another server)
                  ─▶ passing trouble? ─▶ wait (Retry-After, else back-off) ─▶ again
                  ─▶ Page, or an error that says what to do

What passes by itself never reaches a supervisor: 408, 425, 429, 5xx, connection errors
and timeouts are tried again within `attempts` and `max_wait_s`. Only GET and HEAD are
sent, so that doing it again is safe.

Read next: `_http_policy.py` (what passes), `_http_errors.py`, `html.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from nightwarden.nodes.builtin._charset import decode, looks_binary
from nightwarden.nodes.builtin._http_errors import (
    FetchConnectionError,
    FetchError,
    FetchTimeoutError,
    HttpStatusError,
    is_certificate_problem,
)
from nightwarden.nodes.builtin._http_policy import Advice, classify, phrase
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import Node, node

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS: Final = 10
_ERROR_BYTES: Final = 65_536
"""How much of an error's body is read: enough for what a server has to say."""
_LONGEST_BACKOFF_S: Final = 60.0
_LOOPBACK: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_TEXT_TYPES: Final = ("json", "xml", "javascript", "yaml", "csv", "x-www-form-urlencoded", "toml")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer. `url` is what was asked for, `final_url` where redirects led.

    `text` is decoded by what headers, document or bytes say; empty for what is no text, whose
    bytes are then in `content` (and only then). `headers` have lower-case names.
    """

    url: str
    final_url: str
    status: int
    content_type: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """One request and its limits."""

    url: str
    method: str
    headers: Mapping[str, str]
    timeout_s: float
    attempts: int
    backoff_s: float
    max_wait_s: float
    max_bytes: int


@node(type="http.Fetch", retry_safe=True, concurrency=16, label="{url}")
class Fetch(Node):
    """Get a page: a GET (or HEAD) request; fails with a clear error unless the status is 2xx.

    408, 425, 429, 5xx, broken connections and timeouts are tried again here, up to `attempts`
    times; `Retry-After` is honoured. `timeout_s` is for one try, from connecting to the last
    byte; the pauses between tries add up to `max_wait_s` at most. Answers over `max_bytes` are
    refused. `authorization` becomes the header of that name: give it as `$secrets.NAME`.
    """

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def setup(self, ctx: Context) -> None:  # noqa: ARG002
        """Open the one client of the run; connections are kept and shared."""
        self._client = _open_client()

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
        ask = _Ask(
            url=_checked(url),
            method=method,
            headers=headers | ({"Authorization": authorization.strip()} if authorization else {}),
            timeout_s=timeout_s,
            attempts=attempts,
            backoff_s=backoff_s,
            max_wait_s=max_wait_s,
            max_bytes=max_bytes,
        )
        waited_s, attempt = 0.0, 1
        while True:
            try:
                return await self._try(ask)
            except FetchError as error:
                pause_s = _pause(ask, attempt, error.retry_after_s)
                reason = _no_next_try(ask, attempt, error, waited_s + pause_s)
                if reason is not None:
                    error.explain(reason)
                    raise
                ctx.log.info(f"{error}; try {attempt + 1} of {attempts} in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            attempt += 1

    async def _try(self, ask: _Ask) -> Page:
        """One try under one clock. Everything that goes wrong on the way is a `FetchError`."""
        import httpx2

        try:
            async with asyncio.timeout(ask.timeout_s):
                return await self._follow(ask)
        except TimeoutError as error:
            text = f"timeout after {ask.timeout_s:g} s for {ask.url}"
            raise FetchTimeoutError(text, url=ask.url, transient=True) from error
        except (httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeEncodeError) as error:
            raise _bad_url(ask.url, str(error)) from error
        except httpx2.DecodingError as error:
            text = f"the answer of {ask.url} is not compressed as it claims: {error}"
            raise FetchError(text, url=ask.url, code="encoding", transient=True) from error
        except httpx2.TransportError as error:
            what = str(error) or type(error).__name__
            text = f"no connection for {ask.url}: {what}"
            raise FetchConnectionError(
                text, url=ask.url, transient=not is_certificate_problem(error)
            ) from error

    async def _follow(self, ask: _Ask) -> Page:
        assert self._client is not None, "setup was not called"
        request = self._client.build_request(ask.method, ask.url, headers=dict(ask.headers))
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._client.send(request, stream=True, follow_redirects=False)
            try:
                following = response.next_request
                if following is None:
                    return await _page(response, ask)
            finally:
                await response.aclose()
            _checked(str(following.url))
            if following.url.origin != request.url.origin:
                # The client drops Authorization only; a key may stand in any header.
                for name in ask.headers:
                    following.headers.pop(name, None)
            request = following
        text = f"{ask.url} leads from redirect to redirect, more than {MAX_REDIRECTS} times"
        raise FetchError(text, url=ask.url, code="redirects")


def _open_client() -> httpx2.AsyncClient:
    import httpx2

    return httpx2.AsyncClient(
        timeout=None,  # one clock for the whole try, see `_try`
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        # Proxies come from the environment, but this machine is never asked through one.
        mounts=dict.fromkeys(_LOOPBACK),
        headers={"User-Agent": "nightwarden"},
    )


async def _page(response: httpx2.Response, ask: _Ask) -> Page:
    if not response.is_success:
        raise await _status_error(response, ask)
    body = b"" if ask.method == "HEAD" else await _body(response, ask)
    content_type = response.headers.get("content-type", "")
    is_text = _is_text(content_type, body)
    decoded = decode(body, declared=response.charset_encoding if is_text else None)
    return Page(
        url=ask.url,
        final_url=str(response.url),
        status=response.status_code,
        content_type=content_type.partition(";")[0].strip().lower(),
        text=decoded.text if is_text else "",
        headers=dict(response.headers),
        encoding=decoded.encoding if is_text else "",
        content=b"" if is_text else body,
    )


async def _body(response: httpx2.Response, ask: _Ask) -> bytes:
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > ask.max_bytes:
        raise _too_large(ask, f"it announces {int(announced):,} bytes")
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > ask.max_bytes:
            raise _too_large(ask, "and there is more")
        chunks.append(chunk)
    return b"".join(chunks)


async def _status_error(response: httpx2.Response, ask: _Ask) -> HttpStatusError:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _ERROR_BYTES:
            break
    status = response.status_code
    if status < 400:
        advice = Advice(False, None, "a redirect without a target, or an answer without a page")
    else:
        said, now = body[:_ERROR_BYTES], datetime.now(UTC)
        advice = classify(status, response.headers, said, now=now, json_due=False)
    return HttpStatusError(
        f"{phrase(status)} for {ask.url}: {advice.reason}",
        status_code=status,
        url=ask.url,
        method=ask.method,
        retry_after_s=advice.wait_s,
        transient=advice.transient,
    )


def _pause(ask: _Ask, attempt: int, asked_s: float | None) -> float:
    """Seconds before the next try: never less than the server asked for; jitter spreads clients."""
    if asked_s is not None:
        return asked_s + random.uniform(0, min(1.0, asked_s / 10))
    longest = min(_LONGEST_BACKOFF_S, ask.backoff_s * 2 ** min(attempt - 1, 30))
    return random.uniform(longest / 2, longest)


def _no_next_try(ask: _Ask, attempt: int, error: FetchError, waited_s: float) -> str | None:
    """Why there is no next try, empty where that needs no words; None if there is one."""
    if not error.transient or ask.attempts == 1:
        return ""
    if attempt == ask.attempts:
        return f"tried {attempt} times"
    if waited_s > ask.max_wait_s:
        asked_s = error.retry_after_s
        wanted = "the next pause is" if asked_s is None else f"it asks to wait {asked_s:g} s,"
        return f"tried {attempt} times; {wanted} more than max_wait_s: {ask.max_wait_s:g} allows"
    return None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises for a port that is no number)
    except ValueError as error:
        raise _bad_url(url, str(error)) from error
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise _bad_url(url, "expected http:// or https:// and a host")
    return url


def _bad_url(url: str, why: str) -> FetchError:
    return FetchError(f"{url!r} cannot be fetched: {why}", url=url, code="bad-url")


def _too_large(ask: _Ask, seen: str) -> FetchError:
    text = (
        f"the answer of {ask.url} is larger than {ask.max_bytes:,} bytes, {seen}; "
        "raise max_bytes if it is wanted"
    )
    return FetchError(text, url=ask.url, code="too-large")


def _is_text(content_type: str, body: bytes) -> bool:
    """Whether a body is text: by its declared type, else by its bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.startswith("text/") or kind.endswith(_TEXT_TYPES):
        return True
    return kind in ("", "application/octet-stream") and not looks_binary(body)
