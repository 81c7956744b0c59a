"""feed.Read: items as they are, rejections by number, and what is no feed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_context import FakeContext

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._page import Page
from nightwarden.nodes.builtin.feed import read
from nightwarden.nodes.io import ABSENT

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>
<entry><id>tag:a</id><title type="html">&lt;b&gt;Bold&lt;/b&gt;</title><link href="/a"/>
<updated>2026-02-03T04:05:06+01:00</updated><author><name>Ada</name></author>
<category term="tea"/><summary>Short &amp; sweet</summary></entry></feed>"""


def read_all(source: Page | str, ctx: FakeContext | None = None, **options):
    frames = list(read(source, ctx or FakeContext(), **options))
    records = [frame.record for frame in frames if frame.record is not ABSENT]
    rejected = [frame.rejected for frame in frames if frame.rejected is not ABSENT]
    return records, rejected


@pytest.fixture
def expected(samples: Path) -> dict:
    return json.loads((samples / "expected.json").read_text(encoding="utf-8"))["feed_shop.xml"]


@pytest.fixture
def shop(samples: Path) -> str:
    return (samples / "feed_shop.xml").read_text(encoding="utf-8")


def test_the_sample_feed_is_read_as_a_careful_reader_reads_it(shop: str, expected: dict) -> None:
    records, rejected = read_all(shop)
    ids = [record["id"] for record in records]
    assert len(records) + len(rejected) == expected["items"]
    assert list(dict.fromkeys(filter(None, ids))) == expected["distinct_ids"]
    assert ids.count(None) + len(rejected) == expected["items_without_id"]
    assert sum(r["published"] is not None for r in records) == expected["usable_dates"]


def test_titles_and_texts_are_plain(shop: str) -> None:
    records, _ = read_all(shop)
    assert [record["title"] for record in records] == [
        "Kettle & cup",
        "Pots & pans",
        "Sale – half price",
        "Kettle again",
        "Café corner",
    ]
    assert records[0]["summary"] == "The cup’s handle"
    assert {record["feed"] for record in records} == {"Shop news today"}


def test_dates_are_utc_and_what_cannot_be_read_stays_as_written(shop: str) -> None:
    records, _ = read_all(shop)
    assert [record["published"] for record in records] == [
        "2026-01-25T09:35:20Z",
        "2026-01-27T10:00:00Z",
        None,
        None,
        "2026-01-29T08:00:00Z",
    ]
    assert records[2]["published_raw"] == "yesterday"


def test_links_are_absolute_from_the_channel_or_the_address_of_the_feed(shop: str) -> None:
    assert read_all(shop)[0][0]["link"] == "https://shop.test/kettle"
    page = Page("u", "https://cdn.test/feeds/x.xml", 200, "application/rss+xml", shop)
    assert read_all(page)[0][0]["link"] == "https://cdn.test/kettle"


def test_an_item_with_nothing_in_it_is_reported_by_its_number(shop: str) -> None:
    """kernel.md §4: readers never raise for one bad record; rejected ones are counted."""
    ctx = FakeContext()
    _, rejected = read_all(shop, ctx)
    reason = "an item without id, title, link and text"
    assert rejected == [{"line": 5, "raw": "{}", "reason": reason}]
    assert ctx.rejections == [(5, "{}", reason)]


def test_items_seen_before_are_kept_unless_their_author_says_otherwise(shop: str) -> None:
    assert [r["id"] for r in read_all(shop)[0]].count("k-1") == 2
    records, rejected = read_all(shop, duplicates="reject")
    assert [r["id"] for r in records].count("k-1") == 1
    assert [r["line"] for r in rejected] == [4, 5]
    assert rejected[0]["reason"] == "the id 'k-1' came before"


def test_atom_is_read_like_rss() -> None:
    page = Page("u", "https://shop.test/atom", 200, "application/atom+xml", ATOM)
    (record,), rejected = read_all(page)
    assert record == {
        "id": "tag:a",
        "title": "Bold",
        "link": "https://shop.test/a",
        "summary": "Short & sweet",
        "published": None,
        "published_raw": None,
        "updated": "2026-02-03T03:05:06Z",
        "author": "Ada",
        "tags": ["tea"],
        "feed": "News",
    }
    assert rejected == []


def test_a_feed_without_items_is_an_empty_fan_out() -> None:
    assert read_all('<rss version="2.0"><channel><title>x</title></channel></rss>') == ([], [])


@pytest.mark.parametrize("text", ["", "  ", "<html><body>x</body></html>", '{"a": 1}', "hello"])
def test_what_is_no_feed_is_a_clear_error(text: str) -> None:
    with pytest.raises(NodeError, match=r"no RSS or Atom feed|empty, not a feed") as caught:
        read_all(text)
    assert caught.value.code == "not-a-feed"


def test_text_that_looks_like_a_path_or_an_address_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text(ATOM, encoding="utf-8")
    for text in (str(tmp_path / "feed.xml"), "http://127.0.0.1:1/feed"):
        with pytest.raises(NodeError):
            read_all(text)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1767225600", None),
        ("1767225600.5", None),
        ("2026", None),
        ("2026-01", None),
        ("20260129", "2026-01-29T00:00:00Z"),
        ("2026-01-29", "2026-01-29T00:00:00Z"),
        ("Tue, 31 Feb 2026 10:00:00 GMT", None),
        ("25 Oct 26 02:30 EST", "2026-10-25T07:30:00Z"),
        ("Sun, 29 Mar 2026 02:30:00 +0100", "2026-03-29T01:30:00Z"),
    ],
)
def test_a_date_has_a_day_none_is_made_up(written: str, read: str | None) -> None:
    item = f"<item><title>t</title><pubDate>{written}</pubDate></item>"
    (record,), _ = read_all(f"<rss><channel>{item}</channel></rss>")
    assert (record["published"], record["published_raw"]) == (read, written)


@pytest.mark.parametrize(
    ("item", "link"),
    [
        ("<guid>c-9</guid>", None),
        ("<guid>https://shop.test/c-9</guid>", "https://shop.test/c-9"),
        ("<guid isPermaLink='false'>https://shop.test/c-9</guid>", None),
        ("<guid>c-9</guid><link>/kettle</link>", "https://shop.test/kettle"),
    ],
)
def test_a_guid_is_a_link_only_where_it_is_an_address(item: str, link: str | None) -> None:
    channel = f"<link>https://shop.test/</link><item><title>t</title>{item}</item>"
    (record,), _ = read_all(f"<rss><channel>{channel}</channel></rss>")
    assert record["link"] == link
