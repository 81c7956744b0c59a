"""html.*: the readable part of a page.

    <main>, [role=main] ─▶ one <article> ─▶ ids and classes by which sites name it
                        ─▶ the page without its furniture, if there is enough to read
                        ─▶ no main part

The first `<main>` counts. A page whose text is navigation, a login form, or nothing has
no main part, and is reported with what could be got, so that it can be repaired or skipped.

Read next: `_page_text.py`, `feed.py`.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from urllib.parse import urljoin

from pydantic import Field

from nightwarden.errors import NodeError, RecoverableError
from nightwarden.nodes.builtin._page import Page
from nightwarden.nodes.builtin._page_text import strip, text_of
from nightwarden.nodes.define import node

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_MARKED: Final = ("main", "[role=main]")
_NAMED: Final = (
    "[itemprop=articleBody]",
    "#main-content, #maincontent, #content, #main, #article, #mw-content-text",
    ".article-body, .article-content, .entry-content, .post-content, .post-body, .main-content",
    ".content, .post, .article",
)
_LINKS: Final = frozenset({"a"})
_TABLES: Final = frozenset({"table"})
_LOGIN_CHARS: Final = 500
"""A main part with a password field and less text than this is a login form."""

_HTML_TYPES: Final = ("", "text/html", "application/xhtml+xml", "application/xml", "text/xml")
_TAG: Final = re.compile(r"<(?:[a-z][a-z0-9]*[\s/>]|!doctype|!--)", re.IGNORECASE)
_OPEN_TAG_AT_END: Final = re.compile(r"<[a-z/!][^<>]*\Z", re.IGNORECASE)
_TAIL_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Article:
    """What a page says. `body` is plain text, a block a line; `url` and `links` are absolute."""

    title: str
    body: str
    url: str = ""
    links: tuple[str, ...] = ()
    language: str = ""


class _Main(NamedTuple):
    text: str
    root: LexborNode


@node(retry_safe=True, pure=True)
def extract(
    page: Page | str,
    *,
    min_chars: Annotated[int, Field(ge=0)] = 200,
    require_end: bool = False,
) -> Article:
    """Get title, text and links of the main part of an HTML page.

    `min_chars` is how much text outside links a page without a marked main part needs;
    with less it has none (code `no-main`). A page that ends inside a tag, comment or script is
    cut off (code `cut-off`); `require_end` asks for its closing `</html>` too.
    """
    from selectolax.lexbor import LexborHTMLParser

    source, url = _html(page)
    tree = LexborHTMLParser(source)
    title, language = _title(tree), _language(tree)
    base = urljoin_or_none(url, _attribute(tree, "base", "href")) or url
    asks_password = tree.css_first("input[type=password]") is not None
    strip(tree)
    found = _marked(tree, asks_password=asks_password) or _named(tree, min_chars)
    if found is None and not asks_password:
        found = _unmarked(tree, source, min_chars)
    cut = _cut_off(source, require_end=require_end)
    if found is not None and not cut:
        return Article(title, found.text, url, _links(found.root, base), language)
    rest = found.text if found is not None else _all_text(tree)
    candidate = asdict(Article(title, rest, url, (), language))
    name = url or (repr(title) if title else "the page")
    if cut:
        raise RecoverableError(
            f"{name} is cut off: it {cut}", candidate_output=candidate, code="cut-off"
        )
    why = "a login form" if asks_password else f"{len(rest)} characters, most of them navigation"
    raise RecoverableError(
        f"{name} has no main part, only {why}", candidate_output=candidate, code="no-main"
    )


def _html(page: Page | str) -> tuple[str, str]:
    """The source of a page and its address. Raises `NodeError` for what is no HTML."""
    if isinstance(page, str):
        source, url, kind = page, "", ""
    else:
        source, url, kind = page.text, page.final_url, page.content_type
        if page.content or kind not in _HTML_TYPES:
            raise NodeError(f"{url} is {kind or 'binary'}, not HTML", code="not-html")
    name = url or "the page"
    if not source.strip():
        raise NodeError(f"{name} is empty", code="empty-page")
    if not _TAG.search(source):
        start = " ".join(source[:60].split())
        raise NodeError(f"{name} is not HTML: it begins {start!r}", code="not-html")
    return source, url


def _marked(tree: LexborHTMLParser, *, asks_password: bool) -> _Main | None:
    """The part the page itself calls its main one, however short; a login form is none."""
    for selector in _MARKED:
        if (root := tree.css_first(selector)) is not None and (text := text_of(root)):
            is_login = asks_password and len(text) < _LOGIN_CHARS
            return None if is_login else _Main(text, root)
    articles = [_Main(text_of(root), root) for root in tree.css("article")]
    if not articles:
        return None
    longest = max(articles, key=lambda main: len(main.text))
    # Several articles of like length are a list of articles; its frame is the main part then.
    is_single = len(longest.text) * 2 > sum(len(main.text) for main in articles)
    return longest if is_single and longest.text else None


def _named(tree: LexborHTMLParser, min_chars: int) -> _Main | None:
    """The part that bears a name many sites use, if there is enough to read in it."""
    for selector in _NAMED:
        roots = tree.css(selector)
        if not roots:
            continue
        longest = max((_Main(text_of(root), root) for root in roots), key=lambda m: len(m.text))
        if len(text_of(longest.root, without=_LINKS)) >= max(min_chars, 1):
            return longest
    return None


def _unmarked(tree: LexborHTMLParser, source: str, min_chars: int) -> _Main | None:
    """The page without its furniture, if there is enough to read outside links.

    trafilatura tells text from furniture better where a page is made of blocks; pages laid out
    in tables it takes apart, and where it finds less than half of the text it found too little.
    """
    body = tree.body
    if body is None:
        return None
    for header in tree.css("body > header"):
        header.decompose()
    text, reading = text_of(body), text_of(body, without=_LINKS)
    if len(reading) < max(min_chars, 1):
        return None
    if len(text_of(body, without=_TABLES)) * 2 < len(text):
        return _Main(text, body)
    from trafilatura import extract as article_text

    article = article_text(source, favor_precision=True, include_comments=False) or ""
    return _Main(article if len(article) * 2 >= len(reading) else text, body)


def _all_text(tree: LexborHTMLParser) -> str:
    return "" if tree.body is None else text_of(tree.body)


def _cut_off(source: str, *, require_end: bool) -> str:
    """How one sees that the end is missing; empty where it is there."""
    lower = source.lower()
    comment = lower.rfind("<!--")
    # In a script these signs open no comment.
    if comment > lower.rfind("-->") and lower.find("</script", comment) < 0:
        return "ends inside a comment"
    if _OPEN_TAG_AT_END.search(source[-_TAIL_CHARS:]):
        return "ends inside a tag"
    for name in ("script", "style", "title"):
        if lower.rfind(f"<{name}") > lower.rfind(f"</{name}"):
            return f"ends inside <{name}>"
    if require_end and "</html" not in lower[-_TAIL_CHARS:]:
        return "has no closing </html>"
    return ""


def _title(tree: LexborHTMLParser) -> str:
    for selector in ("head > title", "title", "h1"):
        for found in tree.css(selector):
            if not _is_drawn(found) and (text := " ".join(found.text().split())):
                return text
    return _attribute(tree, "meta[property='og:title']", "content")


def _is_drawn(node: LexborNode) -> bool:
    """Whether it belongs to a picture: those have titles of their own."""
    above = node.parent
    while above is not None and above.tag != "svg":
        above = above.parent
    return above is not None


def _language(tree: LexborHTMLParser) -> str:
    return _attribute(tree, "html", "lang").strip().lower()


def _attribute(tree: LexborHTMLParser, selector: str, name: str) -> str:
    found = tree.css_first(selector)
    return (found.attributes.get(name) or "") if found is not None else ""


def _links(root: LexborNode, base: str) -> tuple[str, ...]:
    """Where the main part leads: each web address once, in order, without fragments."""
    targets = (urljoin_or_none(base, a.attributes.get("href")) for a in root.css("a[href]"))
    found = (target.partition("#")[0] for target in targets if target)
    return tuple(dict.fromkeys(t for t in found if t.startswith(("http://", "https://"))))


def urljoin_or_none(base: str, target: str | None) -> str | None:
    """An address seen from a page; None where there is none, or it cannot be one."""
    try:
        return urljoin(base, target.strip()) if target else None
    except ValueError:
        return None


def plain_text(markup: object) -> str:
    """A fragment that may hold markup or entities, as one line of text; empty for None."""
    if not isinstance(markup, str):
        return ""
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(f"<body>{markup}").body
    return "" if body is None else " ".join(text_of(body).split())
