"""One try: a request, its redirects, and the answer as a `Page`, under one clock and one size.

    ask ─▶ answer ─▶ redirect? ─▶ again, never with the asker's headers to another server
                  ─▶ 2xx ─▶ Page          everything else ─▶ FetchError

Read next: `http.py` (when to try again), `_http_policy.py` (what passes by itself).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from nightwarden.nodes.builtin._charset import decode, looks_binary
from nightwarden.nodes.builtin._http_errors import (
    FetchConnectionError,
    FetchError,
    FetchTimeoutError,
    HttpStatusError,
    is_certificate_problem,
)
from nightwarden.nodes.builtin._http_policy import Advice, classify, phrase
from nightwarden.nodes.builtin._page import Page

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS: Final = 10
_ERROR_BYTES: Final = 65_536
"""How much of an error's body is read: enough for what a server has to say."""
_LOOPBACK: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_TEXT_TYPES: Final = ("json", "xml", "javascript", "yaml", "csv", "x-www-form-urlencoded", "toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request and the limits of one try."""

    url: str
    method: str
    headers: Mapping[str, str]
    timeout_s: float
    max_bytes: int


def open_client() -> httpx2.AsyncClient:
    """A client whose connections are kept and shared."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=None,  # one clock for the whole try, see `exchange`
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        # Proxies come from the environment, but this machine is never asked through one.
        mounts=dict.fromkeys(_LOOPBACK),
        headers={"User-Agent": "nightwarden"},
    )


async def exchange(client: httpx2.AsyncClient, ask: Ask) -> Page:
    """Ask once. Everything that goes wrong on the way is a `FetchError`."""
    import httpx2

    try:
        async with asyncio.timeout(ask.timeout_s):
            return await _follow(client, ask)
    except TimeoutError as error:
        text = f"timeout after {ask.timeout_s:g} s for {ask.url}"
        raise FetchTimeoutError(text, url=ask.url, transient=True) from error
    except (httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeEncodeError) as error:
        raise _bad_url(ask.url, str(error)) from error
    except httpx2.DecodingError as error:
        text = f"the answer of {ask.url} is not compressed as it claims: {error}"
        raise FetchError(text, url=ask.url, code="compression", transient=True) from error
    except httpx2.TransportError as error:
        what = "no connection" if isinstance(error, httpx2.ConnectError) else "connection broken"
        text = f"{what} for {ask.url}: {str(error) or 'the server reset it'}"
        passes = not is_certificate_problem(error)
        raise FetchConnectionError(
            text, url=ask.url, code="connection", transient=passes
        ) from error


def checked_url(url: str) -> str:
    """The address, if it can be fetched at all. Raises `FetchError`, code `bad-url`."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises for a port that is no number)
    except ValueError as error:
        raise _bad_url(url, str(error)) from error
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise _bad_url(url, "expected http:// or https:// and a host")
    return url


async def _follow(client: httpx2.AsyncClient, ask: Ask) -> Page:
    request = client.build_request(ask.method, ask.url, headers=dict(ask.headers))
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            following = response.next_request
            if following is None:
                return await _page(response, ask)
        finally:
            await response.aclose()
        checked_url(str(following.url))
        if following.url.origin != request.url.origin:
            _forget_headers(following, ask)
        request = following
    text = f"{ask.url} leads from redirect to redirect, more than {MAX_REDIRECTS} times"
    raise FetchError(text, url=ask.url, code="redirects")


def _forget_headers(request: httpx2.Request, ask: Ask) -> None:
    """The client itself drops Authorization only; but a key may stand in any header."""
    for name in ask.headers:
        if name.lower() != "host":
            request.headers.pop(name, None)


async def _page(response: httpx2.Response, ask: Ask) -> Page:
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


async def _body(response: httpx2.Response, ask: Ask) -> bytes:
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > ask.max_bytes:
        raise _too_large(ask, f"it announces {int(announced):,}")
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > ask.max_bytes:
            raise _too_large(ask, "reading stopped there")
        chunks.append(chunk)
    return b"".join(chunks)


async def _status_error(response: httpx2.Response, ask: Ask) -> HttpStatusError:
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


def _is_text(content_type: str, body: bytes) -> bool:
    """Whether a body is text: by its declared type, else by its bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.startswith("text/") or kind.endswith(_TEXT_TYPES):
        return True
    return kind in ("", "application/octet-stream") and not looks_binary(body)


def _bad_url(url: str, why: str) -> FetchError:
    return FetchError(f"{url!r} cannot be fetched: {why}", url=url, code="bad-url")


def _too_large(ask: Ask, seen: str) -> FetchError:
    text = (
        f"the answer of {ask.url} has more than {ask.max_bytes:,} bytes, {seen}; "
        "raise max_bytes if it is wanted"
    )
    return FetchError(text, url=ask.url, code="too-large")
