"""Drawn workflows: every slot kind, nested scopes, joins, pairs, loops, control, faults.

Nodes are drawn one after another, each wired to what is there already, the newest first: so
a case shrinks towards short chains. What belongs together is drawn together: a loop and its
body, a controlled node and who controls it. Whatever is drawn is valid; nothing is thrown away.

Read next: `drive.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from nightwarden.lineage import Scope
from nightwarden.spec.scopes import analyse, control_root
from reference.acting import Act, Case
from reference.nodes import MAX_DEPTH, Ground, Port, extras, made, nodes, ports_of
from reference.plays import acts, answers_, one_in, seldom
from reference.small import Node, Wire, controlling, crossed, loop, node, wire, workflow, zipped


class Part(NamedTuple):
    """A node, its scope, and what it does."""

    node: Node
    scope: Scope
    acts: tuple[Act, ...]


@st.composite
def cases(
    draw: st.DrawFn, *, max_nodes: int = 12, failing: bool = False, plain: bool = False
) -> Case:
    """Cases that run to their end; with `failing`, some answers are *fail* or not allowed.

    `plain` ones have no pairs, loops or control.
    """
    ground = Ground((Port("inputs", "x", ()),))
    parts: list[Part] = []
    number = 0
    while len(parts) < max_nodes:
        found = draw(_next(number, ground, failing=failing, plain=plain))
        if not found:
            break
        parts += found
        ground = ground.more(_ports(found))
        number += 1
    drawn = workflow(*(part.node for part in parts), inputs=["x"])
    assert not analyse(drawn).problems
    behaviour = {part.node.spec.id: part.acts for part in parts}
    return Case(drawn, behaviour, {"x": "x"}, draw(st.sampled_from((2, 1, 0))))


@st.composite
def _next(
    draw: st.DrawFn, number: int, ground: Ground, *, failing: bool, plain: bool
) -> Sequence[Part]:
    """One thing more, or the end; drawn as a whole, so that a case can shrink by it."""
    if number and not draw(st.integers(0, 30)):
        return []
    if plain:
        return draw(_single(f"n{number}", ground, failing=failing))
    return draw(_thing(f"n{number}", ground, failing=failing))


@st.composite
def _thing(draw: st.DrawFn, name: str, ground: Ground, *, failing: bool) -> Sequence[Part]:
    kinds = [_single] * 7 + [_pair, _pair, _loop, _loop, _control]
    found = draw(draw(st.sampled_from(kinds))(name, ground, failing=failing))
    return found or draw(_single(name, ground, failing=failing))


def _ports(parts: Sequence[Part]) -> list[Port]:
    return [port for part in parts for port in ports_of(part.node, part.scope)]


@st.composite
def _single(draw: st.DrawFn, name: str, ground: Ground, *, failing: bool) -> Sequence[Part]:
    drawn, scope = draw(nodes(name, ground, failing=failing))
    return [draw(_behaving(drawn, scope, failing=failing))]


@st.composite
def _behaving(
    draw: st.DrawFn, drawn: Node, scope: Scope, *, failing: bool, decides: bool = False
) -> Part:
    each = acts(drawn, len(scope), failing=failing, decides=decides)
    return Part(drawn, scope, tuple(draw(st.lists(each, min_size=1, max_size=3))))


@st.composite
def _answering(draw: st.DrawFn, drawn: Node, scope: Scope, *, failing: bool) -> Part:
    """A node that the kernel runs itself: all there is to draw is the answer if it fails."""
    return Part(drawn, scope, (Act(answers=draw(answers_(failing=failing))),))


# ── pairs ────────────────────────────────────────────────────────────────────────────────


@st.composite
def _pair(draw: st.DrawFn, name: str, ground: Ground, *, failing: bool) -> Sequence[Part]:
    found = [p for p in ground.newest if ground.gathers(p)]
    lefts = [p for p in found if p.scope[: len(ground.within)] == ground.within != p.scope]
    if not lefts:
        return []
    left = draw(st.sampled_from(lefts))
    right = draw(st.sampled_from([p for p in found if p.scope[:-1] == left.scope[:-1]]))
    sides = f"{left.node}.{left.slot}", f"{right.node}.{right.slot}"
    if draw(st.booleans()):
        drawn = zipped(name, *sides)
    else:
        drawn = crossed(name, *sides, limit=draw(st.sampled_from((12, 30, 3, 1))))
    return [draw(_answering(drawn, left.scope[:-1], failing=failing))]


# ── loops ────────────────────────────────────────────────────────────────────────────────


@st.composite
def _loop(draw: st.DrawFn, name: str, ground: Ground, *, failing: bool) -> Sequence[Part]:
    """A loop from some value, its body, and sometimes a node that says whether to go on."""
    found = [p for p in ground.newest if len(p.scope) < MAX_DEPTH]
    found = [p for p in found if p.scope[: len(ground.within)] == ground.within]
    if not found:
        return []
    initial = draw(st.sampled_from(found))
    inside = (*initial.scope, name)
    body = Ground(
        (*ground.ports, Port(name, "index", inside), Port(name, "value", inside)),
        inside,
        ground.open | {inside},
    )
    parts: list[Part] = []
    for number in range(draw(st.sampled_from((1, 2, 0, 3)))):
        more = draw(_thing(f"{name}b{number}", body, failing=failing))
        parts += more
        body = body.more(_ports(more))
    back = [p for p in body.newest if p.scope == inside]
    following = draw(st.sampled_from(back))
    wires: dict[str, str | Wire] = {
        "initial": f"{initial.node}.{initial.slot}",
        "next": f"{following.node}.{following.slot}",
    }
    properties: dict[str, object] = {"max_iterations": draw(st.sampled_from((3, 2, 1, 4)))}
    if draw(st.booleans()):
        asked = draw(st.sampled_from(back))
        again = node(f"{name}if", {"main": wire(f"{asked.node}.{asked.slot}")}, retry_safe=True)
        parts.append(draw(_behaving(again, inside, failing=failing, decides=True)))
        wires["condition"] = f"{name}if"
    elif draw(one_in(8)):
        properties["condition"] = False
    drawn = loop(name, wires, **properties)
    return [draw(_answering(drawn, initial.scope, failing=failing)), *parts]


# ── control ──────────────────────────────────────────────────────────────────────────────


@st.composite
def _control(draw: st.DrawFn, name: str, ground: Ground, *, failing: bool) -> Sequence[Part]:
    """A node or two, who controls them, and sometimes one that these control in turn."""
    first, scope = draw(nodes(f"{name}c0", ground, failing=failing))
    if len(scope) >= MAX_DEPTH:
        return [draw(_behaving(first, scope, failing=failing))]
    callers = [first]
    for number in range(1, draw(st.sampled_from((1, 2, 2, 3)))):
        before = ground.more([p for c in callers for p in ports_of(c, scope)])
        if any(p.scope == scope for p in before.ports):
            caller, _ = draw(nodes(f"{name}c{number}", before, failing=failing, at=scope))
            callers.append(caller)
    below = (*scope, control_root(f"{name}t"))
    two = draw(seldom())
    known = ground if two else ground.more([p for c in callers for p in ports_of(c, scope)])
    targets = [draw(_target(f"{name}t", scope, known))]
    if two:
        known = ground.more(ports_of(targets[0], below))
        targets.append(draw(_target(f"{name}u", scope, known)))
    deeper: list[Node] = []
    if len(below) < MAX_DEPTH and draw(seldom()):
        deeper = [draw(_target(f"{name}v", below, ground))]
    names = [t.spec.id for t in targets]
    callers = [controlling(c, *names) for c in callers]
    targets[0] = controlling(targets[0], *(d.spec.id for d in deeper))
    return [
        *[draw(_behaving(c, scope, failing=failing)) for c in callers],
        *[draw(_behaving(t, (*scope, control_root(t.spec.id)), failing=failing)) for t in targets],
        *[draw(_behaving(d, (*below, control_root(d.spec.id)), failing=failing)) for d in deeper],
    ]


@st.composite
def _target(draw: st.DrawFn, name: str, scope: Scope, ground: Ground) -> Node:
    """A controlled node: what is wired to it lies above its events and is broadcast to them."""
    joining = "any" if draw(seldom()) else "all"
    wires = draw(extras(scope, ground, joining, {}, st.sampled_from((0, 1, 1, 2))))
    fans = len(scope) + 1 < MAX_DEPTH and draw(seldom())
    return draw(made(name, wires, joining, fans=fans))
