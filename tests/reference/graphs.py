"""Drawn workflows: every slot kind, nested scopes, joins, faults and answers to them.

Nodes are drawn one after another, each wired to what is there already, the newest first: so
a case shrinks towards short chains. Whatever is drawn is valid; nothing is thrown away.

Read next: `drive.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import MISSING, SlotKind
from nightwarden.spec.scopes import analyse
from nightwarden.verdict import Action
from reference.acting import Act, Case, Fault, Frame, Read
from reference.small import Node, Wire, node, workflow

MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Port:
    """Something to wire: an output slot and its scope."""

    node: str
    slot: str
    scope: Scope


def seldom() -> st.SearchStrategy[bool]:
    """True one time in four."""
    return _one_in(4)


def _one_in(times: int) -> st.SearchStrategy[bool]:
    """True one time in so many; shrinks to False."""
    return st.sampled_from((False,) * (times - 1) + (True,))


@st.composite
def cases(draw: st.DrawFn, *, max_nodes: int = 12, failing: bool = False) -> Case:
    """Cases that run to their end; with `failing`, some answers are *fail* or not allowed."""
    ports = [Port("inputs", "x", ())]
    nodes: list[Node] = []
    acts: dict[str, tuple[Act, ...]] = {}
    while len(nodes) < max_nodes:
        found = draw(_next(len(nodes), tuple(ports), failing=failing))
        if found is None:
            break
        drawn, scope, acts[drawn.spec.id] = found
        nodes.append(drawn)
        ports += _ports(drawn, scope)
    made = workflow(*nodes, inputs=["x"])
    assert not analyse(made).problems
    return Case(made, acts, {"x": "x"}, draw(st.sampled_from((2, 1, 0))))


@st.composite
def _next(
    draw: st.DrawFn, number: int, ports: Sequence[Port], *, failing: bool
) -> tuple[Node, Scope, tuple[Act, ...]] | None:
    """One more node, or the end; drawn as a whole, so that a case can shrink by a node."""
    if number and not draw(st.integers(0, 30)):
        return None
    drawn, scope = draw(_nodes(f"n{number}", ports, failing=failing))
    acts = draw(st.lists(_acts(drawn, len(scope), failing=failing), min_size=1, max_size=3))
    return drawn, scope, tuple(acts)


def _ports(drawn: Node, scope: Scope) -> list[Port]:
    name, outputs = drawn.spec.id, drawn.type.outputs
    slots = {s: s for s in outputs} | {p.name: p.slot for p in drawn.type.projections.values()}
    return [
        Port(name, slot, (*scope, name) if outputs[base].stream else scope)
        for slot, base in slots.items()
    ]


# ── nodes ────────────────────────────────────────────────────────────────────────────────


@st.composite
def _nodes(
    draw: st.DrawFn, name: str, ports: Sequence[Port], *, failing: bool
) -> tuple[Node, Scope]:
    newest = tuple(reversed(ports))
    joining = "any" if draw(seldom()) else "all"
    wires: dict[str, Wire] = {}
    scope: Scope = ()
    if not draw(_one_in(6)):
        kind, main = draw(_main(newest, joining))
        scope = main.scope if kind in (SlotKind.PLAIN, SlotKind.MANY) else main.scope[:-1]
        wires["main"] = draw(_wire(kind, main, scope, newest, joining))
        for number in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
            reads = any(w.kind is SlotKind.STREAM for w in wires.values())
            extra = draw(_extra(scope, newest, joining, reads=reads))
            if extra is not None:
                wires[f"x{number}"] = draw(_wire(*extra, scope, newest, joining))
    fans = len(scope) < MAX_DEPTH and draw(_one_in((2, 2, 3)[len(scope)]))
    wires = {k: replace(w, by_arrival=_arrival(draw, w, fans, failing)) for k, w in wires.items()}
    first = ("output", "other") if draw(seldom()) else ("output",)
    drawn = node(
        name,
        wires,
        frames=first if fans else (),
        outs=(("total",) if draw(seldom()) else ()) if fans else first,
        parts={"part": "output"} if draw(seldom()) else None,
        join=joining,
        retry_safe=not draw(_one_in(3)),
        concurrency=draw(st.sampled_from((None, 1, 2, 3))),
    )
    return drawn, scope


def _arrival(draw: st.DrawFn, w: Wire, fans: bool, failing: bool) -> bool:
    """Arrival order is drawn where the order is all that hangs on it."""
    single = w.kind is SlotKind.STREAM and len(w.sources) == 1
    return single and not fans and not failing and draw(seldom())


@st.composite
def _main(draw: st.DrawFn, ports: Sequence[Port], joining: str) -> tuple[SlotKind, Port]:
    port = draw(st.sampled_from([*ports, *(p for p in ports if p.scope)]))
    kinds = [SlotKind.PLAIN, SlotKind.PLAIN, SlotKind.MANY]
    if port.scope:
        kinds += [SlotKind.COLLECT] * 2
    if port.scope and joining == "all":
        kinds += [SlotKind.STREAM] * 3
    return draw(st.sampled_from(kinds)), port


@st.composite
def _extra(
    draw: st.DrawFn, scope: Scope, ports: Sequence[Port], joining: str, *, reads: bool
) -> tuple[SlotKind, Port] | None:
    """One more slot: what is wired to it must be a prefix of the node's scope."""
    found = []
    for port in ports:
        if _prefix(port.scope, scope):
            found += [(SlotKind.PLAIN, port)] * 2 + [(SlotKind.MANY, port)]
        if port.scope and _prefix(port.scope[:-1], scope):
            found.append((SlotKind.COLLECT, port))
        if port.scope and port.scope[:-1] == scope and joining == "all" and reads:
            found += [(SlotKind.STREAM, port)] * 2
    return draw(st.sampled_from(found)) if found else None


def _prefix(scope: Scope, longer: Scope) -> bool:
    return longer[: len(scope)] == scope


@st.composite
def _wire(
    draw: st.DrawFn, kind: SlotKind, port: Port, scope: Scope, ports: Sequence[Port], joining: str
) -> Wire:
    if kind in (SlotKind.COLLECT, SlotKind.STREAM):
        others = [p for p in ports if p.scope == port.scope]
        more = draw(st.lists(st.sampled_from(others), max_size=1)) if draw(seldom()) else []
    elif kind is SlotKind.MANY or joining == "any":
        others = [p for p in ports if _prefix(p.scope, scope)]
        more = draw(st.lists(st.sampled_from(others), max_size=2))
    else:
        more = []
    pairs = tuple(dict.fromkeys((p.node, p.slot) for p in (port, *more)))
    default: object = "the default" if draw(seldom()) else MISSING
    return Wire(pairs, kind, default, accepts=draw(seldom()))


# ── acts ─────────────────────────────────────────────────────────────────────────────────


@st.composite
def _acts(draw: st.DrawFn, drawn: Node, depth: int, *, failing: bool) -> Act:
    """Above the items little goes wrong: it would leave nothing to look at below."""
    wrong = _one_in(4 if depth else 10)
    frames = [n for n, s in drawn.type.outputs.items() if s.stream]
    scalars = [n for n, s in drawn.type.outputs.items() if not s.stream]
    script = draw(_scripts(drawn, frames))
    absent = frozenset(s for s in scalars if draw(wrong))
    fault = draw(_faults(drawn, len(script))) if draw(wrong) else None
    answers = draw(_answers(failing=failing)) if fault else ()
    insists = failing and bool(answers) and draw(seldom())
    return Act(script, absent, fault, answers, insists=insists)


@st.composite
def _scripts(draw: st.DrawFn, drawn: Node, frames: Sequence[str]) -> tuple[Read | Frame, ...]:
    steps: list[st.SearchStrategy[Read | Frame]] = []
    streams = [n for n, w in drawn.wires.items() if w.kind is SlotKind.STREAM]
    if any(drawn.wires[n].by_arrival for n in streams):
        return tuple(Read(n) for n in streams)
    if frames:
        missing = st.sampled_from((frozenset[str](), *(frozenset((f,)) for f in frames)))
        steps += [st.builds(Frame, missing)]
    if streams:
        count = st.sampled_from((None, 1, 2))
        steps += [st.builds(Read, st.sampled_from(streams), count)]
    if not steps:
        return ()
    length = draw(st.sampled_from((1, 2, 3, 4, 4, 3, 2, 0)))
    return tuple(draw(st.one_of(steps)) for _ in range(length))


@st.composite
def _faults(draw: st.DrawFn, drawn: Node, length: int) -> Fault:
    candidate = draw(st.booleans())
    kept = not drawn.type.fans_out and not drawn.type.reads
    return Fault(
        attempts=draw(st.sampled_from((99, 1, 2))),
        after=draw(st.integers(0, length)),
        has_candidate=candidate,
        cost=draw(st.sampled_from((0,) * 7 + (5,))),
        assets=draw(st.sampled_from((0,) * 7 + (1,))),
        unknown=draw(_one_in(8)),
        bad_input=kept and draw(_one_in(8)),
        idempotent=draw(seldom()),
        retry_after_s=draw(st.sampled_from((None, None, None, 3.0, 3.0, 301.0))),
    )


def _answers(*, failing: bool) -> st.SearchStrategy[tuple[Action, ...]]:
    answers = [(), (Action.RETRY,), (Action.SUBSTITUTE,), (Action.RETRY, Action.SUBSTITUTE)]
    if failing:
        answers += [(Action.FAIL,), (Action.RETRY, Action.FAIL), (Action.FAIL,)]
    return st.sampled_from(answers)
