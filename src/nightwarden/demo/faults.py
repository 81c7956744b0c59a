"""Which pages of the demo site break, and how: a table, and the broken pages themselves.

    FAULTS[n]   what is wrong with page n, and for how many requests (None: for good)

With the two requests a step of `examples/pages.yaml` makes by itself, the table shows each
way a failure may go: healed by the step's own retry, healed by a decision to retry, retried
in vain and skipped, skipped once and then by signature, repaired.

Read next: `server.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """How a page breaks."""

    BUSY = "busy"
    """429, with `Retry-After: 1`."""
    UNAVAILABLE = "unavailable"
    """503."""
    RESET = "reset"
    """The connection is reset after the request."""
    HANG = "hang"
    """No answer, until the client gives up."""
    LOCKED = "locked"
    """401."""
    TRUNCATED = "truncated"
    """Half of the announced length, then the connection closes."""
    SOUP = "soup"
    """Status 200, markup that no validator would pass; its text is whole."""
    CUT = "cut"
    """Status 200, a page that breaks off inside a tag, as if it had been saved like that."""
    LOGIN = "login"
    """Status 200, a form to sign in and nothing to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with a page. `times` requests meet it, then it heals; None: all do."""

    kind: Kind
    times: int | None = None
    shows: str = ""

    def holds(self, request: int) -> bool:
        """Whether the request of that number (from 1) meets the fault."""
        return self.times is None or request <= self.times


_LOCKED = Fault(kind=Kind.LOCKED, shows="one decision, then skipped by signature")

FAULTS: Final[Mapping[int, Fault]] = {
    9: Fault(kind=Kind.UNAVAILABLE, times=1, shows="the step's own retry"),
    23: Fault(kind=Kind.BUSY, times=1, shows="the step's own retry, when the server said"),
    41: Fault(kind=Kind.RESET, times=1, shows="the step's own retry"),
    57: Fault(kind=Kind.HANG, times=2, shows="a decision to retry, which heals"),
    74: Fault(kind=Kind.SOUP, shows="nothing: messy pages are read"),
    88: _LOCKED,
    89: _LOCKED,
    112: _LOCKED,
    131: Fault(kind=Kind.TRUNCATED, shows="a retry in vain, then a skip"),
    147: _LOCKED,
    153: Fault(kind=Kind.CUT, shows="a repair: what is missing is known"),
    176: _LOCKED,
    187: Fault(kind=Kind.LOGIN, shows="a skip: there is nothing to read"),
}
"""Page number (from 1) → what is wrong with it."""


def spoil(page: str, kind: Kind) -> str:
    """A page with status 200 as that kind of fault leaves it; other kinds change no page."""
    if kind is Kind.SOUP:
        return _soup(page)
    if kind is Kind.CUT:
        return page[: page.rfind("<", 0, len(page) // 2) + 2]
    if kind is Kind.LOGIN:
        return _LOGIN_PAGE
    return page


def _soup(page: str) -> str:
    """As written by hand a long time ago: unclosed, unquoted, crossed over."""
    page = re.sub(r"<!DOCTYPE[^>]*>|</?(?:html|head|body)\b[^>]*>", "", page)
    page = re.sub(r"</(?:p|dt|dd|dl|span|section|article|main|footer)>", "", page)
    page = re.sub(r'\b(class|id|name)="([\w-]+)"', r"\1=\2", page)
    page = page.replace("<section>", "<SECTION>").replace("<p>", "<P>")
    return page.replace("</h1>", "<b><i></b></i></h1></div>").replace("&amp;", "&")


_LOGIN_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign in</title></head>
<body>
<header><nav><a href="/">All pages</a> <a href="/help">Help</a></nav></header>
<form method="post" action="/session">
<label>Name <input name="name"></label>
<label>Password <input name="password" type="password"></label>
<button>Sign in</button>
</form>
<footer><a href="/privacy">Privacy</a></footer>
</body>
</html>
"""
