"""A workflow as a picture: one SVG that needs nothing else, readable in light and in dark.

Layers run from left to right. What runs once an item is drawn as a stack of cards; control
edges are dashed. With `states`, each node shows how far a run has come, by a sign and a
colour, and with `badges` what was decided there: nothing is told by colour alone.

Read next: `routes.py`, `badges.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from nightwarden.spec.badges import STYLE as _BADGES
from nightwarden.spec.badges import badges_svg
from nightwarden.spec.layout import (
    Layout,
    lay_out,
    node_text,
    root_text,
    slot_text,
    source_text,
    type_words,
)
from nightwarden.spec.names import mark_of
from nightwarden.spec.routes import Routes, routes, source_name, subworkflows
from nightwarden.spec.workflow import INPUTS, WITHIN, EdgeSpec, Workflow

_CHARACTER = 7.3
_HEIGHT = 44
_ENGINE_HEIGHT = 30
_ROW = 70
_BEND = 22
_GAP = 64
_MARGIN = 24
_WIDEST = 34
_STACK = 5
_PAD = 10
_INSET = 4

_SIGNS: Mapping[str, str] = {
    "waiting": "·",
    "running": "▶",
    "succeeded": "✓",
    "repaired": "✎",
    "skipped": "⊘",
    "failed": "✕",
    "cancelled": "■",
    "suspended": "‖",
    "unfinished": "…",
    "pruned": "–",
}

# Plain rules, no CSS variables: some viewers of SVG files know none.
STYLE = """
.nw{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.nw rect{fill:#ffffff;stroke:#57606a}.nw .engine rect{fill:#eef1f4}
.nw text{fill:#1f2328}.nw .type{fill:#59636e;font-size:11px}
.nw path{fill:none;stroke:#8c959f;stroke-width:1.3}.nw marker path{fill:#8c959f;stroke:none}
.nw .control{stroke-dasharray:5 4}.nw .within{fill:none;stroke-dasharray:2 3}
.nw .running rect{stroke:#0969da;stroke-width:2}.nw .succeeded rect{stroke:#1a7f37;stroke-width:2}
.nw .repaired rect,.nw .skipped rect{stroke:#9a6700;stroke-width:2}
.nw .failed rect,.nw .cancelled rect{stroke:#cf222e;stroke-width:2}
@media (prefers-color-scheme:dark){
.nw rect{fill:#161b22;stroke:#9198a1}.nw .engine rect{fill:#21262d}
.nw text{fill:#e6edf3}.nw .type{fill:#9198a1}
.nw path{stroke:#656c76}.nw marker path{fill:#656c76}
.nw .running rect{stroke:#4493f8}.nw .succeeded rect{stroke:#3fb950}
.nw .repaired rect,.nw .skipped rect{stroke:#d29922}
.nw .failed rect,.nw .cancelled rect{stroke:#f85149}}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    """A node's place, in pixels; `y` is its middle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def low(self) -> float:
        return self.y + self.height / 2


def graph_svg(
    workflow: Workflow,
    *,
    states: Mapping[str, str] | None = None,
    badges: Mapping[str, Mapping[str, int]] | None = None,
) -> str:
    """The workflow's graph as SVG text.

    `states` maps node ids to words like `"failed"`, `badges` to how often each action was taken.
    """
    layout = lay_out(workflow)
    placed = routes(workflow, layout)
    boxes = dict(_boxes(placed, layout))
    width = max((box.right for box in boxes.values()), default=200.0) + _MARGIN
    height = max((box.y + box.height / 2 for box in boxes.values()), default=60.0) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="nw" role="img" viewBox="0 0 '
        f'{width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">',
        f"<title>{_text(workflow.name)}</title>",
        f"<style>{STYLE if badges is None else STYLE + _BADGES}</style>",
        '<defs><marker id="nw-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
        *_frames(placed, boxes),
        *(part for edge in workflow.edges for part in _edge(edge, boxes, placed, workflow)),
        *_inputs(workflow, boxes),
        *(_node(node_id, boxes, layout, states or {}) for node_id in layout.nodes),
        *(
            badge
            for node_id, counts in (badges or {}).items()
            for badge in badges_svg(counts, boxes[node_id].right, boxes[node_id].low + 10)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _boxes(placed: Routes, layout: Layout) -> Iterator[tuple[str, _Box]]:
    """A box for each name; columns are level in their middles. A bend is a box without size."""
    heights = [sum(_room(name) for name in column) for column in placed.columns]
    tallest = max(heights, default=_ROW)
    x = float(_MARGIN)
    for column, height in zip(placed.columns, heights, strict=True):
        widths = {name: _width(name, layout) for name in column}
        y = _MARGIN + (tallest - height) / 2
        for name in column:
            room = _room(name)
            width = widths[name] or max(widths.values())
            yield name, _Box(x, y + room / 2, width, _height(name, layout))
            y += room
        x += max(widths.values()) + _GAP


def _is_bend(name: str) -> bool:
    return "→" in name


def _room(name: str) -> float:
    return _BEND if _is_bend(name) else _ROW


def _height(name: str, layout: Layout) -> float:
    if _is_bend(name):
        return 0
    return _HEIGHT if name in layout.nodes and not mark_of(name) else _ENGINE_HEIGHT


def _width(node_id: str, layout: Layout) -> float:
    if _is_bend(node_id):
        return 0
    node = layout.nodes.get(node_id)
    texts = [_short(node_text(node_id))] + ([] if node is None else [_short(type_words(node))])
    return max(len(text) for text in texts) * _CHARACTER + 34


def _edge(
    edge: EdgeSpec, boxes: Mapping[str, _Box], placed: Routes, workflow: Workflow
) -> Iterator[str]:
    pair = (source_name(edge), edge.target)
    if pair not in placed.bends:
        return
    way = [boxes[name] for name in (pair[0], *placed.bends[pair], pair[1])]
    if edge.kind == "control":
        title, kind = f"{edge.source} controls {edge.target}", ' class="control"'
    else:
        title = f"{source_text(edge, workflow)} → {node_text(edge.target)}.{slot_text(edge)}"
        kind = ""
    yield (
        f'<path d="{_curve(way)}"{kind} marker-end="url(#nw-arrow)">'
        f"<title>{_text(title)}</title></path>"
    )


def _curve(way: Sequence[_Box]) -> str:
    """A smooth line from the first box, straight across the bends, to the last one."""
    parts = [f"M{way[0].right:.1f} {way[0].y:.1f}"]
    for one, other in pairwise(way):
        middle = (one.right + other.x) / 2
        parts.append(
            f"C{middle:.1f} {one.y:.1f} {middle:.1f} {other.y:.1f} {other.x:.1f} {other.y:.1f}"
        )
        if other is not way[-1]:
            parts.append(f"H{other.right:.1f}")
    return " ".join(parts)


def _frames(placed: Routes, boxes: Mapping[str, _Box]) -> Iterator[str]:
    """A frame around the steps of each subworkflow, column by column, its name on the first."""
    named: set[str] = set()
    for column in placed.columns:
        inside: dict[str, list[_Box]] = {}
        for name in column:
            for around in subworkflows(name):
                inside.setdefault(around, []).append(boxes[name])
        for around, found in inside.items():
            pad = _PAD - _INSET * around.count(WITHIN)
            x, right = min(b.x for b in found) - pad, max(b.right for b in found) + pad + _STACK
            top = min(b.y - b.height / 2 for b in found) - pad
            low = max(b.y + b.height / 2 for b in found) + pad
            yield (
                f'<rect class="within" x="{x:.1f}" y="{top:.1f}" width="{right - x:.1f}" '
                f'height="{low - top:.1f}" rx="8"><title>{_text(around)}</title></rect>'
            )
            if around not in named:
                named.add(around)
                name = _text(_short(around))
                yield f'<text class="type" x="{x + 6:.1f}" y="{top - 3:.1f}">{name}</text>'


def _inputs(workflow: Workflow, boxes: Mapping[str, _Box]) -> Iterator[str]:
    for spec in workflow.inputs:
        name = f"{INPUTS}.{spec.name}"
        box = boxes[name]
        yield (
            f'<g class="engine"><title>{_text(f"{name}: {spec.type}")}</title>'
            f"{_rect(box, 0, 15)}{_label(box, _short(name), 5)}</g>"
        )


def _node(
    node_id: str, boxes: Mapping[str, _Box], layout: Layout, states: Mapping[str, str]
) -> str:
    node, box = layout.nodes[node_id], boxes[node_id]
    scope = layout.scopes.get(node_id, ())
    state = states.get(node_id, "")
    words = [f"{node_text(node_id)}: {type_words(node)}"]
    words += [root_text(scope[-1])] if scope else []
    words += [state] if state else []
    classes = ["engine" if mark_of(node_id) else "node", *(["item"] if scope else [])]
    classes += [state] if state in _SIGNS else []
    cards = [
        _rect(box, _STACK * i, 15 if mark_of(node_id) else 6) for i in range(bool(scope), -1, -1)
    ]
    lines = [_label(box, _short(node_text(node_id)), 5 if mark_of(node_id) else -3)]
    if not mark_of(node_id):
        lines.append(_label(box, _short(type_words(node)), 13, kind="type"))
    if state:
        sign = _SIGNS.get(state, "?")
        down = 5 if mark_of(node_id) else -6
        lines.append(f'<text x="{box.right - 14:.1f}" y="{box.y + down:.1f}">{sign}</text>')
    body = "".join([*cards, *lines])
    return f'<g class="{" ".join(classes)}"><title>{_text(", ".join(words))}</title>{body}</g>'


def _rect(box: _Box, shift: float, radius: int) -> str:
    return (
        f'<rect x="{box.x + shift:.1f}" y="{box.y - box.height / 2 + shift:.1f}" '
        f'width="{box.width:.1f}" height="{box.height}" rx="{radius}"/>'
    )


def _label(box: _Box, text: str, down: float, *, kind: str = "name") -> str:
    return f'<text class="{kind}" x="{box.x + 12:.1f}" y="{box.y + down:.1f}">{_text(text)}</text>'


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _text(text: str) -> str:
    """Text for XML: escaped, without the characters no XML may have."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text))
