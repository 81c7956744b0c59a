"""The timeline as a picture: a row a node, how much of it ran when, decisions and resumes.

The height of a row's filling is how busy the node was, as a part of its own busiest moment;
that moment stands at the end of the row. A diamond is a decision, in the colour of its verdict.

Read next: `timeline.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightwarden.events.interventions import verb
from nightwarden.events.words import cut, seconds
from nightwarden.lineage import show
from nightwarden.report.html_parts import Markup, el, joined
from nightwarden.report.timeline import Mark, Timeline
from nightwarden.spec.layout import node_text

MOST_ROWS = 40
MOST_MARKS = 400
_WIDTH = 900
_NAME = 170
_RIGHT = 120
_ROW = 30
_TALL = 22
_TOP = 24
_LEAST_PX = 1.5
_MOST_TICKS = 7
_HOUR = 3600.0
_STEPS_S = (
    *(digit * 10.0**power for power in (-3, -2, -1) for digit in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(hours * _HOUR for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 672)),
)


def timeline_svg(timeline: Timeline, nodes: Sequence[str]) -> Markup:
    """The plot; nothing where nothing is known. Nodes that never ran have no row."""
    marked = {mark.node for mark in timeline.marks}
    rows = [n for n in nodes if n in marked or sum(timeline.busy.get(n, ())) > 0][:MOST_ROWS]
    if not rows or timeline.length_s <= 0:
        return Markup()
    height = _TOP + len(rows) * _ROW + 26
    parts = [
        el("title", "When each node was at work"),
        *_axis(timeline.length_s, height),
        *(part for i, node in enumerate(rows) for part in _row(timeline, node, i)),
        *_resumes(timeline, height),
        *_marks(timeline, rows),
    ]
    return el(
        "svg",
        joined(parts),
        cls="plot",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
    )


def _x(at_s: float, length_s: float) -> float:
    return _NAME + at_s / length_s * (_WIDTH - _NAME - _RIGHT)


def _axis(length_s: float, height: int) -> Iterator[Markup]:
    step = next((s for s in _STEPS_S if length_s / s <= _MOST_TICKS), length_s)
    for i in range(int(length_s / step) + 1):
        x = f"{_x(i * step, length_s):.1f}"
        yield el("line", x1=x, x2=x, y1=_TOP - 6, y2=height - 22, cls="rule")
        label = seconds(i * step) if step >= 0.1 else f"{i * step:.3g} s"
        yield el("text", label, x=x, y=height - 8, text_anchor="middle", cls="soft")


def _row(timeline: Timeline, node: str, i: int) -> Iterator[Markup]:
    low = _TOP + i * _ROW + _TALL
    yield el("text", cut(node_text(node), 24), x=0, y=low - 5)
    yield el("line", x1=_NAME, x2=_WIDTH - _RIGHT, y1=low, y2=low, cls="rule")
    busy = timeline.busy.get(node, [])
    peak = max(busy, default=0.0)
    if peak <= 0:
        return
    yield el("path", d=_area(timeline, busy, peak, low), cls="busy")
    yield el("text", _peak(peak / timeline.width_s), x=_WIDTH - _RIGHT + 8, y=low - 5, cls="soft")


def _peak(at_once: float) -> str:
    return f"up to {at_once:.0f} at once" if at_once >= 1.5 else ""


def _area(timeline: Timeline, busy: Sequence[float], peak: float, low: float) -> str:
    """A filled step line. What ran only for a moment is still to be seen."""
    found = []
    for i, amount in enumerate(busy):
        if amount > 0:
            left = _x(i * timeline.width_s, timeline.length_s)
            right = _x(min((i + 1) * timeline.width_s, timeline.length_s), timeline.length_s)
            tall = max(2.0, amount / peak * _TALL)
            wide = max(right - left, _LEAST_PX)
            found.append(f"M{left:.1f} {low}v{-tall:.1f}h{wide:.1f}v{tall:.1f}z")
    return "".join(found)


def _resumes(timeline: Timeline, height: int) -> Iterator[Markup]:
    for drive in timeline.drives[1:]:
        x = f"{_x(drive.from_s, timeline.length_s):.1f}"
        title = el("title", f"resumed {drive.started_at}")
        yield el("line", title, x1=x, x2=x, y1=_TOP - 10, y2=height - 22, cls="resume")
        yield el("text", "resumed", x=x, y=12, text_anchor="middle")


def _marks(timeline: Timeline, rows: Sequence[str]) -> Iterator[Markup]:
    places = {node: i for i, node in enumerate(rows)}
    for mark in timeline.marks[:MOST_MARKS]:
        if mark.node in places:
            x = _x(mark.at_s, timeline.length_s)
            y = _TOP + places[mark.node] * _ROW + _TALL - 8
            diamond = f"M{x:.1f} {y - 6}l5.5 6l-5.5 6l-5.5 -6z"
            yield el("path", el("title", _told(mark)), d=diamond, cls=f"mark {_kind(mark)}")


def _kind(mark: Mark) -> str:
    known = ("retry", "substitute", "skip", "end_stream", "fail")
    return mark.action if mark.action in known else ""


def _told(mark: Mark) -> str:
    item = f" [{show(mark.lineage)}]" if mark.lineage else ""
    return f"{mark.escalation} {node_text(mark.node)}{item}: {verb(mark.action)}, {mark.at}"
