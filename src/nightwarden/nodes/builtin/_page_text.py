"""A parsed page as readable text: what a person sees, block by block.

    paragraphs, headings, items: lines of their own · cells: parted by tabs · <pre>: as it stands
    never: comments, scripts, hidden elements, controls, navigation, consent banners

`strip` takes out what is furniture of the page, `text_of` renders what is left.

Read next: `html.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_FURNITURE: Final = ", ".join(
    (
        "script, style, noscript, template, iframe, object, embed, svg, math, canvas, audio, video",
        "input, select, textarea, button, datalist, progress, meter, dialog",
        "nav, footer, aside, [role=navigation], [role=contentinfo], [role=search], [role=menu]",
        "[role=menubar], [role=complementary], [role=dialog], [role=alertdialog]",
        "[aria-modal=true], [aria-hidden=true], [hidden]",
    )
)
_INVISIBLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CONTROLS: Final = "button, input, [role=button]"
_CONSENT: Final = frozenset({"cookie", "cookies", "consent", "gdpr", "ccpa", "cookiebar"})
"""Words of a class or id by which a consent banner is known."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_KEPT: Final = frozenset({"html", "body", "main", "article"})

_BLOCK_TAGS: Final = (
    "address article aside blockquote body br caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav "
    "ol p pre search section summary table tbody tfoot thead title tr ul"
)
_BLOCKS: Final = frozenset(_BLOCK_TAGS.split())
_CELLS: Final = frozenset({"td", "th"})
_NOTHING: Final[frozenset[str]] = frozenset()
_FIXED: Final = "\0"
"""Stands for a blank of preformatted text while blanks are run together; no page contains it."""


def strip(page: LexborHTMLParser) -> None:
    """Take out of a page what is no part of anything one reads there."""
    # Banners first: their buttons, by which they are known, are controls too.
    for element in page.css("[class], [id]"):
        if _is_consent_banner(element):
            element.decompose()
    for element in page.css("[style]"):
        if _INVISIBLE.search(element.attributes.get("style") or ""):
            element.decompose()
    for element in page.css(_FURNITURE):
        element.decompose()


def text_of(root: LexborNode, *, without: frozenset[str] = _NOTHING) -> str:
    """The text below an element, one block a line, no empty lines.

    What stands in elements with a tag of `without` is left out.
    """
    lines = map(_tidy, "".join(_pieces(root, without)).split("\n"))
    return "\n".join(line for line in lines if line)


def _pieces(root: LexborNode, without: frozenset[str]) -> Iterator[str]:
    """The tree in reading order, with line ends around blocks and a tab before cells."""
    preformatted = 0
    for node, entering in _walk(root, without):
        tag = node.tag or ""
        if tag in _BLOCKS:
            yield "\n"
        if tag == "pre":
            preformatted += 1 if entering else -1
        elif entering and tag in _CELLS:
            yield "\t"
        elif entering and node.is_text_node:
            text = node.text_content or ""
            yield _fixed(text) if preformatted else _run_together(text)


def _walk(root: LexborNode, without: frozenset[str]) -> Iterator[tuple[LexborNode, bool]]:
    """Every node twice, when it is entered and when it is left. A loop: pages nest endlessly."""
    node, depth = root, 0
    while True:
        yield node, True
        child = None if node.tag in without else node.first_child
        if child is not None:
            node, depth = child, depth + 1
            continue
        yield node, False
        while depth > 0 and (following := node.next) is None:
            parent = node.parent
            assert parent is not None
            node, depth = parent, depth - 1
            yield node, False
        if depth == 0:
            return
        assert following is not None
        node = following


def _run_together(text: str) -> str:
    """Blanks and line ends become one blank each; those at the ends part words, and stay."""
    return " ".join(f"|{text}|".split())[1:-1]


def _fixed(text: str) -> str:
    return text.expandtabs(4).replace("\xa0", " ").replace(" ", _FIXED)


def _tidy(line: str) -> str:
    cells = (" ".join(cell.split()) for cell in line.split("\t"))
    return "\t".join(cell for cell in cells if cell).replace(_FIXED, " ").rstrip()


def _is_consent_banner(element: LexborNode) -> bool:
    """Named like one, and outside the main part, or with something to press."""
    if element.tag in _KEPT or not (_names(element) & _CONSENT):
        return False
    if element.css_first("h1, main, article, [role=main]") is not None:
        return False
    return element.css_first(_CONTROLS) is not None or not _is_inside_main(element)


def _names(element: LexborNode) -> set[str]:
    given = (element.attributes.get("class") or "", element.attributes.get("id") or "")
    return {word.lower() for text in given for word in _WORDS.findall(text)}


def _is_inside_main(element: LexborNode) -> bool:
    parent = element.parent
    while parent is not None:
        if parent.tag in ("main", "article") or parent.attributes.get("role") == "main":
            return True
        parent = parent.parent
    return False
