"""Small signs on a node of a picture: what was decided there, and how often.

    ↻ 2  retried      ✎ 1  repaired      ⊘ 6  skipped      ⇥ 1  ended early      ✕ 1  stopped

Retry is blue, repair amber, skip gray, stop red; the sign says the same without the colour.

Read next: `svg.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

SIGNS: Final[Mapping[str, str]] = {
    "retry": "↻",
    "substitute": "✎",
    "skip": "⊘",
    "end_stream": "⇥",
    "fail": "✕",
}
WORDS: Final[Mapping[str, str]] = {
    "retry": "retried",
    "substitute": "repaired",
    "skip": "skipped",
    "end_stream": "ended early",
    "fail": "stopped",
}
STYLE: Final = """
.nw .badge rect{stroke:none}.nw .badge text{fill:#ffffff;font-size:11px}
.nw .retry rect{fill:#0969da}.nw .substitute rect{fill:#9a6700}.nw .skip rect{fill:#59636e}
.nw .end_stream rect{fill:#59636e}.nw .fail rect{fill:#cf222e}
"""
_CHARACTER: Final = 6.8
_HEIGHT: Final = 16
_GAP: Final = 4


def badges_svg(counts: Mapping[str, int], right: float, y: float) -> Iterator[str]:
    """Badges side by side, the last one ending at `right`, their middle at `y`."""
    for action in reversed([a for a in SIGNS if counts.get(a)]):
        text = f"{SIGNS[action]} {counts[action]}"
        width = len(text) * _CHARACTER + 10
        x = right - width
        yield (
            f'<g class="badge {action}"><title>{WORDS[action]}: {counts[action]}</title>'
            f'<rect x="{x:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{width:.1f}" '
            f'height="{_HEIGHT}" rx="8"/>'
            f'<text x="{x + 5:.1f}" y="{y + 4:.1f}">{text}</text></g>'
        )
        right = x - _GAP
