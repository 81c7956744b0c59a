"""What lines of text about a run are made of: places, amounts, and text made harmless.

What comes from a run is data: an escape sequence in an error message must not move the cursor,
retitle the window or hide a line.

Read next: `render.py`, `interventions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nightwarden.lineage import show

WIDTH: Final = 200
"""Lines on a screen are cut to this many characters."""

LABEL_WIDTH: Final = 60
_RANGE: Final = 3


def visible(text: str) -> str:
    """The text with everything that does not print spelled out: `\\x1b[2J`, `\\n`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def cut(text: str, width: int = WIDTH) -> str:
    """The text without its end where it is too long."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def cut_middle(text: str, width: int = LABEL_WIDTH) -> str:
    """The text without its middle where it is too long: the ends tell most of an address."""
    if len(text) <= width:
        return text
    head = width // 3
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def place(node: str, item: str = "") -> str:
    """Where something happened: `page`, or `page [57/200 https://…/p/57]`."""
    return f"{node} [{item}]" if item else node


def item_text(item: object, lineage: Sequence[int] = ()) -> str:
    """The item of an escalation as people name it: `57/200 https://…/p/57`."""
    if not isinstance(item, Mapping):
        return show(tuple(lineage))
    number = str(item.get("number") or show(tuple(lineage)))
    total = item.get("total")
    count = f"{number}/{total}" if number and total is not None else number
    return f"{count} {cut_middle(str(item.get('label') or ''))}".strip()


def items_text(lineages: Sequence[Sequence[int]], most: int = 12) -> str:
    """Items by number, neighbours in one: `88–89, 112, 3.1`."""
    parts: list[list[tuple[int, ...]]] = []
    for lineage in sorted(tuple(given) for given in lineages):
        last = parts[-1][-1] if parts else ()
        if lineage and last and lineage[:-1] == last[:-1] and lineage[-1] == last[-1] + 1:
            parts[-1].append(lineage)
        else:
            parts.append([lineage])
    words: list[str] = []
    for part in parts:
        if len(part) < _RANGE:
            words += [show(lineage) for lineage in part]
        else:
            words.append(f"{show(part[0])}–{show(part[-1])}")
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def count(number: int, word: str, words: str = "") -> str:
    """`1 retry`, `2 retries`."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def seconds(value: object) -> str:
    """A duration: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    amount = float(value) if isinstance(value, (int, float)) else 0.0
    if amount < 60:
        return f"{amount:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(amount), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def dollars(micro_usd: object) -> str:
    """Money: `$0.02`, with more digits where two would show nothing."""
    amount = micro_usd if isinstance(micro_usd, int) else 0
    digits = 6 if 0 < abs(amount) < 10_000 else 2
    return f"${amount / 1_000_000:.{digits}f}"


def usd(micro_usd: object) -> float:
    """Money as JSON shows it: dollars with six decimals."""
    return round((micro_usd if isinstance(micro_usd, int) else 0) / 1_000_000, 6)


def mapping_of(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: records of other versions are read too."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def text(value: object) -> str:
    """The value as harmless text; empty for None."""
    return "" if value is None else visible(str(value))
