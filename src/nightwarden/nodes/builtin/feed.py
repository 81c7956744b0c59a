"""feed.*: the items of an RSS or Atom feed, one at a time, as messy as feeds are.

Feeds that no strict XML parser takes are read: entities XML does not know, bare `&`,
a wrong encoding in the declaration. An item with nothing in it is reported, not dropped.

Read next: `file.py` (the other readers).
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._page import Page
from nightwarden.nodes.builtin.html import plain_text, urljoin_or_none
from nightwarden.nodes.context import Context
from nightwarden.nodes.define import node
from nightwarden.nodes.io import ABSENT, Absent, outputs

_RAW_CHARS: Final = 1_000
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NO_DAY: Final = re.compile(r"\d{1,7}|\d{9,}(\.\d+)?|\d{4}-\d{1,2}")


@outputs
class FeedFrame(NamedTuple):
    """An item, or what is wrong with it: `{line, raw, reason}`; `line` is its number from 1."""

    record: dict[str, object] | Absent = ABSENT
    rejected: dict[str, object] | Absent = ABSENT


@node(retry_safe=True, pure=True)
def read(
    page: Page | str, ctx: Context, *, duplicates: Literal["keep", "reject"] = "keep"
) -> Iterator[FeedFrame]:
    """Read the items of a feed, in its order, from a fetched page or from its text.

    A record has `id` (None where the item gives none), `title`, `link` (absolute), `summary` (both
    plain text), `published` and `updated` (ISO 8601 in UTC; None where the date cannot be read),
    `published_raw` (as written), `author`, `tags` and `feed` (the feed's title).
    `duplicates: reject` rejects items whose id came before.
    """
    import feedparser

    text, url = (page, "") if isinstance(page, str) else (page.text, page.final_url)
    parsed = feedparser.parse(
        # A stream: text that looks like an address or a path would be opened.
        io.BytesIO(text.encode("utf-8", "replace")),
        # The text is decoded already: what its declaration says no longer holds.
        response_headers={"content-type": "application/xml; charset=utf-8"},
        resolve_relative_uris=False,
    )
    if not parsed.get("version") and not parsed.entries:
        raise NodeError(_no_feed(text, url, parsed), code="not-a-feed")
    about = {"feed": plain_text(parsed.feed.get("title")), "base": url or parsed.feed.get("link")}
    seen: set[object] = set()
    for number, item in enumerate(parsed.entries, start=1):
        record = _record(item, about)
        reason = _fault(record, seen if duplicates == "reject" else set())
        seen.add(record["id"])
        if not reason:
            yield FeedFrame(record=record)
            continue
        raw = json.dumps(item, default=str, ensure_ascii=False)[:_RAW_CHARS]
        ctx.rejected(number, raw, reason)
        yield FeedFrame(rejected={"line": number, "raw": raw, "reason": reason})


def _record(item: Mapping[str, object], about: Mapping[str, object]) -> dict[str, object]:
    tags = item.get("tags")
    terms = [tag.get("term") for tag in tags] if isinstance(tags, list) else []
    link = item.get("link")
    if link == item.get("id") and not _ABSOLUTE.match(str(link)):
        link = None  # a guid that was taken for an address
    return {
        "id": item.get("id") or None,
        "title": plain_text(item.get("title")),
        "link": urljoin_or_none(str(about["base"] or ""), str(link)) if link else None,
        "summary": plain_text(item.get("summary")),
        "published": _moment(item.get("published_parsed"), item.get("published")),
        "published_raw": item.get("published"),
        "updated": _moment(item.get("updated_parsed"), item["updated"])
        if "updated" in item
        else None,
        "author": plain_text(item.get("author")),
        "tags": [term for term in terms if term],
        "feed": about["feed"],
    }


def _fault(record: Mapping[str, object], seen: set[object]) -> str:
    if not any(record[key] for key in ("id", "title", "link", "summary")):
        return "an item without id, title, link and text"
    if record["id"] is not None and record["id"] in seen:
        return f"the id {record['id']!r} came before"
    return ""


def _moment(parsed: object, written: object) -> str | None:
    """A parsed date as ISO 8601 in UTC; feedparser hands out times in UTC, or None.

    What names no day (a year, a month, seconds since 1970) is no date, though a parser makes one.
    """
    if not isinstance(parsed, time.struct_time) or _NO_DAY.fullmatch(str(written).strip()):
        return None
    try:
        return datetime(*parsed[:6], tzinfo=UTC).isoformat().replace("+00:00", "Z")
    except ValueError:  # a leap second, or a day that month does not have
        return None


def _no_feed(text: str, url: str, parsed: Mapping[str, object]) -> str:
    name = url or "the text"
    if not text.strip():
        return f"{name} is empty, not a feed"
    start, problem = " ".join(text[:60].split()), parsed.get("bozo_exception")
    because = f" ({problem})" if problem else ""
    return f"{name} is no RSS or Atom feed: it begins {start!r}{because}"
