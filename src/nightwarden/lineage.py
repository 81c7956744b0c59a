"""Where a value stands among the items of a run.

A *scope* is static: the tuple of roots (nodes that fan out) a slot lies under.
A *lineage* is dynamic: a tuple of 0-based integers, as long as the scope. `()`
is what runs once, `(147,)` the 148th item of the only fan-out, `(3, 0)` the
first item under outer item 4. Records hold lineages as they are; people always
see 1-based numbers, nested ones joined by dots.

Read next: `verdict.py`.
"""

from __future__ import annotations

Lineage = tuple[int, ...]
Scope = tuple[str, ...]


def show(lineage: Lineage) -> str:
    """The lineage as people see it: 1-based, `"148"` or `"4.1"`; `""` at the run's own scope."""
    return ".".join(str(i + 1) for i in lineage)


def parse(text: str) -> Lineage:
    """The inverse of `show`. Raises `ValueError` when a part is no number from 1."""
    if not text:
        return ()
    parts = tuple(int(part) - 1 for part in text.split("."))
    if min(parts) < 0:
        raise ValueError(f"item numbers start at 1: {text!r}")
    return parts
