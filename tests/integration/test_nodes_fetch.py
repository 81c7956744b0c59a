"""http.Fetch against a server on this machine that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fake_context import FakeContext

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._http_errors import (
    FetchConnectionError,
    FetchError,
    FetchTimeoutError,
    HttpStatusError,
)
from nightwarden.nodes.builtin.http import Fetch, Page

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
OK = b"<html><body>hello</body></html>"


def raw(data: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


def reply(status: int, body: bytes = b"", **headers: str) -> Answer:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def silence(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """A body that never ends: each byte comes in time, the whole does not."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@dataclass
class Site:
    """Answers each request to a path with the next of its list, the last one for ever."""

    answers: dict[str, list[Answer]]
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    port: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            path = head[0].split(" ")[1]
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            self.requests.append((head[0], headers))
            queue = self.answers[path.partition("?")[0]]
            await (queue.pop(0) if len(queue) > 1 else queue[0])(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def site(**answers: list[Answer]):
    found = Site({f"/{name}": list(queue) for name, queue in answers.items()})
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in found.tasks:
            task.cancel()
        await asyncio.gather(*found.tasks, return_exceptions=True)


async def fetch(url: str, ctx: FakeContext | None = None, **limits) -> Page:
    step = Fetch()
    ctx = ctx or FakeContext()
    await step.setup(ctx)
    try:
        return await step.run(url, ctx, **({"backoff_s": 0.001} | limits))
    finally:
        await step.teardown()


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 8))


def test_a_page_comes_with_its_address_status_headers_and_text() -> None:
    async def main() -> None:
        answer = reply(200, OK, content_type="Text/HTML; charset=utf-8", x_note="1")
        async with site(p=[answer]) as s:
            page = await fetch(f"{s.base}/p")
            assert (page.url, page.final_url) == (f"{s.base}/p", f"{s.base}/p")
            assert (page.status, page.content_type, page.encoding) == (200, "text/html", "utf-8")
            assert (page.text, page.content) == (OK.decode(), b"")
            assert page.headers["x-note"] == "1"

    run(main())


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 529])
def test_what_passes_by_itself_is_tried_again(status: int) -> None:
    async def main() -> None:
        ctx = FakeContext()
        async with site(p=[reply(status), reply(status), reply(200, OK)]) as s:
            assert (await fetch(f"{s.base}/p", ctx)).status == 200
            assert len(s.requests) == 3
        assert len(ctx.log.infos) == 2
        assert f"{status}" in ctx.log.infos[0]
        assert "try 2 of 4" in ctx.log.infos[0]

    run(main())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "401 Unauthorized"),
        (403, "refuses access"),
        (404, "no such page"),
        (451, "legal reasons"),
    ],
)
def test_what_does_not_pass_fails_at_once_and_says_what_it_means(status: int, words: str) -> None:
    async def main() -> None:
        async with site(p=[reply(status, OK)]) as s:
            with pytest.raises(HttpStatusError, match=words) as caught:
                await fetch(f"{s.base}/p?page=2")
            assert caught.value.status_code == status
            assert f"{s.base}/p?page=2" in str(caught.value)
            assert len(s.requests) == 1

    run(main())


def test_an_empty_purse_dressed_as_429_is_not_tried_again() -> None:
    async def main() -> None:
        body = b'{"error": {"code": "insufficient_quota"}}'
        async with site(p=[reply(429, body)]) as s:
            with pytest.raises(HttpStatusError, match="no money or quota"):
                await fetch(f"{s.base}/p")
            assert len(s.requests) == 1

    run(main())


def test_tries_are_limited_and_counted_in_the_error() -> None:
    async def main() -> None:
        async with site(p=[reply(503)]) as s:
            with pytest.raises(HttpStatusError, match=r"503 .* \(tried 3 times\)"):
                await fetch(f"{s.base}/p", attempts=3)
            assert len(s.requests) == 3

    run(main())


def test_retry_after_in_seconds_is_waited_for() -> None:
    async def main() -> None:
        async with site(p=[reply(429, retry_after="0.2"), reply(200, OK)]) as s:
            began = asyncio.get_running_loop().time()
            await fetch(f"{s.base}/p", backoff_s=0)
            assert asyncio.get_running_loop().time() - began >= 0.2

    run(main())


def test_retry_after_as_a_date_is_relative_to_the_servers_date() -> None:
    async def main() -> None:
        sent = datetime(2020, 1, 1, tzinfo=UTC)
        later = format_datetime(sent + timedelta(seconds=90), usegmt=True)
        busy = reply(503, retry_after=later, date=format_datetime(sent, usegmt=True))
        async with site(p=[busy]) as s:
            with pytest.raises(HttpStatusError, match="it asks to wait 90 s, more than") as caught:
                await fetch(f"{s.base}/p", max_wait_s=89)
            assert caught.value.retry_after_s == 90
            assert len(s.requests) == 1

    run(main())


def test_pauses_add_up_to_no_more_than_max_wait_s() -> None:
    async def main() -> None:
        async with site(p=[reply(503)]) as s:
            with pytest.raises(HttpStatusError, match=r"max_wait_s: 0\.1 allows"):
                await fetch(f"{s.base}/p", backoff_s=0.03, max_wait_s=0.1, attempts=50)
            assert 2 <= len(s.requests) <= 6

    run(main())


def test_a_broken_connection_is_tried_again() -> None:
    async def main() -> None:
        short = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        async with site(p=[reset, short, raw(b"rubbish\r\n\r\n"), reply(200, OK)]) as s:
            assert (await fetch(f"{s.base}/p")).text == OK.decode()
            assert len(s.requests) == 4

    run(main())


def test_a_page_cut_off_on_the_way_is_a_broken_connection() -> None:
    async def main() -> None:
        short = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<html>half")
        async with site(p=[short]) as s:
            with pytest.raises(
                FetchConnectionError, match=r"connection broken for .*tried 2 times"
            ):
                await fetch(f"{s.base}/p", attempts=2)

    run(main())


def test_where_nobody_listens_there_is_no_connection() -> None:
    async def main() -> None:
        async with site() as s:
            pass
        with pytest.raises(FetchConnectionError, match="no connection for") as caught:
            await fetch(f"{s.base}/p", attempts=2)
        assert caught.value.host == "127.0.0.1"

    run(main())


@pytest.mark.parametrize("answer", [silence, drip])
def test_one_clock_covers_a_try_from_connecting_to_the_last_byte(answer: Answer) -> None:
    async def main() -> None:
        async with site(p=[answer]) as s:
            with pytest.raises(FetchTimeoutError, match=r"timeout after 0.1 s for http") as caught:
                await fetch(f"{s.base}/p", timeout_s=0.1, attempts=2)
            assert isinstance(caught.value, TimeoutError)
            assert len(s.requests) == 2

    run(main())


def test_a_timeout_heals() -> None:
    async def main() -> None:
        async with site(p=[silence, reply(200, OK)]) as s:
            assert (await fetch(f"{s.base}/p", timeout_s=0.3)).status == 200

    run(main())


def test_a_larger_answer_than_allowed_is_refused_before_it_is_read() -> None:
    async def main() -> None:
        async with site(p=[raw(b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n")]) as s:
            with pytest.raises(FetchError, match="more than 1,000 bytes, it announces") as caught:
                await fetch(f"{s.base}/p", max_bytes=1000)
            assert caught.value.code == "too-large"

    run(main())


def test_a_small_answer_that_unpacks_to_a_large_one_is_refused() -> None:
    async def main() -> None:
        packed = gzip.compress(b"x" * 1_000_000)
        async with site(p=[reply(200, packed, content_encoding="gzip")]) as s:
            with pytest.raises(FetchError, match="more than 10,000 bytes"):
                await fetch(f"{s.base}/p", max_bytes=10_000)
            assert len(s.requests) == 1

    run(main())


def test_an_answer_of_just_the_allowed_size_is_taken() -> None:
    async def main() -> None:
        async with site(p=[reply(200, b"x" * 1000, content_type="text/plain")]) as s:
            assert len((await fetch(f"{s.base}/p", max_bytes=1000)).text) == 1000

    run(main())


def test_redirects_are_followed_and_final_url_says_where_to() -> None:
    async def main() -> None:
        async with site(a=[reply(302, location="/b")], b=[reply(200, OK)]) as s:
            page = await fetch(f"{s.base}/a")
            assert (page.url, page.final_url) == (f"{s.base}/a", f"{s.base}/b")

    run(main())


def test_a_redirect_loop_ends_with_a_clear_error() -> None:
    async def main() -> None:
        async with site(a=[reply(302, location="/b")], b=[reply(302, location="/a")]) as s:
            with pytest.raises(FetchError, match="redirect to redirect, more than 10") as caught:
                await fetch(f"{s.base}/a")
            assert caught.value.code == "redirects"
            assert len(s.requests) == 11

    run(main())


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_a_redirect_to_what_is_not_http_is_refused(target: str) -> None:
    async def main() -> None:
        async with site(a=[reply(302, location=target)]) as s:
            with pytest.raises(FetchError, match="expected http"):
                await fetch(f"{s.base}/a")

    run(main())


def test_credentials_do_not_follow_a_redirect_to_another_server() -> None:
    async def main() -> None:
        async with site(b=[reply(200, OK)]) as other:
            there = reply(302, location=f"{other.base}/b")
            async with site(a=[there], c=[reply(302, location="/a")]) as s:
                await fetch(f"{s.base}/c", authorization="Bearer k\n", headers={"X-Key": "k"})
                sent = [headers for _, headers in s.requests]
                assert [h["authorization"] for h in sent] == ["bearer k", "bearer k"]
                assert [h["x-key"] for h in sent] == ["k", "k"]
            ((_, headers),) = other.requests
            assert "authorization" not in headers
            assert "x-key" not in headers

    run(main())


def test_head_asks_for_no_body() -> None:
    async def main() -> None:
        head = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\ncontent-type: text/html\r\n\r\n")
        async with site(p=[head]) as s:
            page = await fetch(f"{s.base}/p", method="HEAD", max_bytes=10)
            assert (page.text, page.headers["content-length"]) == ("", "5000")
            assert s.requests[0][0].startswith("HEAD ")

    run(main())


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("naïve".encode("latin-1"), "text/html; charset=iso-8859-1", "naïve"),
        ("naïve".encode(), "text/html; charset=no-such", "naïve"),
        ("naïve".encode(), "text/html; charset=us-ascii", "naïve"),
        ('<meta charset="cp1251">да'.encode("cp1251"), "text/html", '<meta charset="cp1251">да'),
        (b"a\xff\xfe\x00", "text/plain; charset=utf-8", "a\ufffd\ufffd\x00"),
        ("é".encode(), "", "é"),
    ],
)
def test_text_is_decoded_whatever_the_server_claims(
    body: bytes, content_type: str, text: str
) -> None:
    async def main() -> None:
        headers = {"content_type": content_type} if content_type else {}
        async with site(p=[reply(200, body, **headers)]) as s:
            assert (await fetch(f"{s.base}/p")).text == text

    run(main())


def test_what_is_no_text_is_kept_as_bytes() -> None:
    async def main() -> None:
        async with site(p=[reply(200, b"\x89PNG\x00", content_type="image/png")]) as s:
            page = await fetch(f"{s.base}/p")
            assert (page.text, page.content, page.content_type) == ("", b"\x89PNG\x00", "image/png")

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.test/x",
        "ftp://example.test",
        "http://",
        "http://h:port/",
        "file:///etc/passwd",
        "http://[::1",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_cannot_be_fetched_is_refused_at_once(url: str) -> None:
    with pytest.raises(NodeError, match="cannot be fetched") as caught:
        run(fetch(url))
    assert caught.value.code == "bad-url"


def test_a_header_that_cannot_be_sent_is_refused() -> None:
    async def main() -> None:
        async with site(p=[reply(200, OK)]) as s:
            for value in ("a\nb: c", "naïve☃"):
                with pytest.raises(FetchError, match="cannot be fetched"):
                    await fetch(f"{s.base}/p", headers={"X-A": value})
            assert s.requests == []

    run(main())


def test_a_compression_that_is_none_is_named() -> None:
    async def main() -> None:
        async with site(p=[reply(200, b"not gzip", content_encoding="gzip")]) as s:
            with pytest.raises(FetchError, match="not compressed as it claims"):
                await fetch(f"{s.base}/p", attempts=1)

    run(main())


def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with site(p=[reply(200, OK)]) as s:
            monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
            monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
            assert (await fetch(f"{s.base}/p")).status == 200
            assert (await fetch(f"http://localhost:{s.port}/p")).status == 200

    run(main())


def test_connections_of_one_run_are_shared_by_its_items() -> None:
    async def main() -> None:
        kept = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nok")
        async with site(p=[kept]) as s:
            step, ctx = Fetch(), FakeContext()
            await step.setup(ctx)
            pages = await asyncio.gather(*(step.run(f"{s.base}/p", ctx) for _ in range(40)))
            await step.teardown()
            assert [page.text for page in pages] == ["ok"] * 40

    run(main())


def test_a_cancelled_fetch_stops_at_once() -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def ask(writer: asyncio.StreamWriter) -> None:
            asked.set()
            await silence(writer)

        async with site(p=[ask]) as s:
            task = asyncio.create_task(fetch(f"{s.base}/p"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main())
