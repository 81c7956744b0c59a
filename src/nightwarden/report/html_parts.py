"""Elements of a page. Whatever is put into one is escaped, unless it is an element itself.

    el("td", label, cls="name")  ─▶  <td class="name">&lt;script&gt;…</td>

There is no other way to make markup here, so nothing that came out of a run can become any.
Characters that do not print, or turn the direction of writing, are spelled out.

Read next: `html_sections.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from nightwarden.events.words import text

FEW = 12
"""A table of more rows can be folded away."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def el(tag: str, *inside: object, cls: str = "", **attributes: object) -> Markup:
    """An element. Attribute names are written with `_` for `-`; None leaves one out."""
    given = {"class": cls or None, **attributes}
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(text(value))}"'
        for name, value in given.items()
        if value is not None
    )
    return Markup(f"<{tag}{written}>{joined(inside)}</{tag}>")


def joined(inside: Iterable[object]) -> Markup:
    """Elements and text one after another."""
    return Markup("".join(i if isinstance(i, Markup) else escape(text(i)) for i in inside))


def section(title: str, name: str, *inside: object) -> Markup:
    """A part of the page with a heading; nothing where it would be empty."""
    body = joined(inside)
    if not body:
        return Markup()
    return el("section", el("h2", title, id=name), body, aria_labelledby=name)


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    numbers: Iterable[int] = (),
    foot: Sequence[object] = (),
) -> Markup:
    """A table whose first column names the rows; `numbers` are columns set to the right."""
    if not rows and not foot:
        return Markup()
    right = set(numbers)
    kinds = ["number" if i in right else "" for i in range(len(heads))]
    head = el("tr", *(el("th", h, scope="col", cls=k) for h, k in zip(heads, kinds, strict=True)))
    body = el("tbody", *(_row(row, kinds) for row in rows))
    last = [el("tfoot", _row(foot, kinds))] if foot else []
    found = el("table", el("caption", caption), el("thead", head), body, *last)
    return el("div", found, cls="scroll", tabindex="0", role="region", aria_label=caption)


def _row(cells: Sequence[object], kinds: Sequence[str]) -> Markup:
    first, *rest = zip(cells, kinds, strict=True)
    return el(
        "tr",
        el("th", first[0], scope="row", cls=first[1]),
        *(el("td", cell, cls=kind) for cell, kind in rest),
    )


def folded(summary: str, body: Markup, size: int) -> Markup:
    """A part that can be folded away, and is at first if it is long."""
    if not body or size <= FEW:
        return body
    return el("details", el("summary", summary), body, open=None if size > 100 else "")


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Names and what they are."""
    found = [
        el("div", el("dt", name), el("dd", value))
        for name, value in pairs
        if value not in ("", None)
    ]
    return el("dl", *found) if found else Markup()
