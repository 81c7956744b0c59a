"""A fetched page: what `http.Fetch` puts out, and what readers of pages and feeds take.

Read next: `http.py`, `html.py`, `feed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
