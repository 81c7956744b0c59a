"""One node of a drawn workflow, wired to what is there already, the newest first.

Read next: `graphs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from nightwarden.lineage import Scope
from nightwarden.spec.catalog import MISSING, SlotKind
from reference.plays import one_in, seldom
from reference.small import Node, Wire, node

MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Port:
    """Something to wire: an output slot and its scope."""

    node: str
    slot: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Ground:
    """What a node may be wired to. Inside the body of a loop it has to lie `within`, and must not
    gather the items of a loop that is still `open`: they are all there only when it has ended."""

    ports: tuple[Port, ...]
    within: Scope = ()
    open: frozenset[Scope] = field(default_factory=frozenset)

    @property
    def newest(self) -> tuple[Port, ...]:
        """The newest first, so that a case shrinks towards the oldest of its chains."""
        return tuple(reversed(self.ports))

    def gathers(self, port: Port) -> bool:
        """Whether something may collect or read what lies on this port."""
        return bool(port.scope) and port.scope not in self.open

    def more(self, ports: Sequence[Port]) -> Ground:
        """The same, with these ports."""
        return replace(self, ports=(*self.ports, *ports))


def ports_of(drawn: Node, scope: Scope) -> list[Port]:
    """What a node puts out, fields included."""
    name, outputs = drawn.spec.id, drawn.type.outputs
    slots = {s: s for s in outputs} | {p.name: p.slot for p in drawn.type.projections.values()}
    return [
        Port(name, slot, (*scope, name) if outputs[base].stream else scope)
        for slot, base in slots.items()
    ]


def prefix(scope: Scope, longer: Scope) -> bool:
    """Whether what lies in a scope is broadcast to a longer one, or joined in the same."""
    return longer[: len(scope)] == scope


@st.composite
def nodes(
    draw: st.DrawFn, name: str, ground: Ground, *, failing: bool, at: Scope | None = None
) -> tuple[Node, Scope]:
    """A node and its scope; `at` asks for one."""
    joining = "any" if draw(seldom()) else "all"
    wires: dict[str, Wire] = {}
    scope: Scope = at or ()
    if ground.within or at or not draw(one_in(6)):
        kind, main = draw(_main(ground, joining, at))
        scope = main.scope if kind in (SlotKind.PLAIN, SlotKind.MANY) else main.scope[:-1]
        wires["main"] = draw(_wire(kind, main, scope, ground, joining))
        wires |= draw(extras(scope, ground, joining, wires, st.sampled_from((0, 0, 1, 1, 2))))
    fans = len(scope) < MAX_DEPTH and draw(one_in((2, 2, 3)[len(scope)]))
    wires = {k: replace(w, by_arrival=_arrival(draw, w, fans, failing)) for k, w in wires.items()}
    return draw(made(name, wires, joining, fans=fans)), scope


@st.composite
def extras(
    draw: st.DrawFn,
    scope: Scope,
    ground: Ground,
    joining: str,
    before: dict[str, Wire],
    how_many: st.SearchStrategy[int],
) -> dict[str, Wire]:
    """More slots of a node of this scope."""
    wires: dict[str, Wire] = {}
    for number in range(draw(how_many)):
        reads = any(w.kind is SlotKind.STREAM for w in (*before.values(), *wires.values()))
        extra = draw(_extra(scope, ground, joining, reads=reads))
        if extra is not None:
            wires[f"x{number}"] = draw(_wire(*extra, scope, ground, joining))
    return wires


@st.composite
def made(draw: st.DrawFn, name: str, wires: dict[str, Wire], joining: str, *, fans: bool) -> Node:
    """A node with these wires."""
    first = ("output", "other") if draw(seldom()) else ("output",)
    return node(
        name,
        wires,
        frames=first if fans else (),
        outs=(("total",) if draw(seldom()) else ()) if fans else first,
        parts={"part": "output"} if draw(seldom()) else None,
        join=joining,
        retry_safe=not draw(one_in(3)),
        concurrency=draw(st.sampled_from((None, 1, 2, 3))),
    )


def _arrival(draw: st.DrawFn, w: Wire, fans: bool, failing: bool) -> bool:
    """Arrival order is drawn where the order is all that hangs on it."""
    single = w.kind is SlotKind.STREAM and len(w.sources) == 1
    return single and not fans and not failing and draw(seldom())


@st.composite
def _main(draw: st.DrawFn, ground: Ground, joining: str, at: Scope | None) -> tuple[SlotKind, Port]:
    ports = [p for p in ground.newest if prefix(ground.within, p.scope)]
    if at is not None:
        ports = [p for p in ports if _leads_to(at, p, ground)]
    port = draw(st.sampled_from([*ports, *(p for p in ports if p.scope)]))
    kinds = [] if at not in (None, port.scope) else [SlotKind.PLAIN, SlotKind.PLAIN, SlotKind.MANY]
    if ground.gathers(port) and at in (None, port.scope[:-1]):
        kinds += [SlotKind.COLLECT] * 2
        kinds += [SlotKind.STREAM] * 3 if joining == "all" else []
    return draw(st.sampled_from(kinds)), port


def _leads_to(scope: Scope, port: Port, ground: Ground) -> bool:
    return port.scope == scope or (ground.gathers(port) and port.scope[:-1] == scope)


@st.composite
def _extra(
    draw: st.DrawFn, scope: Scope, ground: Ground, joining: str, *, reads: bool
) -> tuple[SlotKind, Port] | None:
    """One more slot: what is wired to it must be a prefix of the node's scope."""
    found = []
    for port in ground.newest:
        if prefix(port.scope, scope):
            found += [(SlotKind.PLAIN, port)] * 2 + [(SlotKind.MANY, port)]
        if ground.gathers(port) and prefix(port.scope[:-1], scope):
            found.append((SlotKind.COLLECT, port))
        if reads and ground.gathers(port) and port.scope[:-1] == scope and joining == "all":
            found += [(SlotKind.STREAM, port)] * 2
    return draw(st.sampled_from(found)) if found else None


@st.composite
def _wire(
    draw: st.DrawFn, kind: SlotKind, port: Port, scope: Scope, ground: Ground, joining: str
) -> Wire:
    ports = ground.newest
    if kind in (SlotKind.COLLECT, SlotKind.STREAM):
        others = [p for p in ports if p.scope == port.scope]
        more = draw(st.lists(st.sampled_from(others), max_size=1)) if draw(seldom()) else []
    elif kind is SlotKind.MANY or joining == "any":
        others = [p for p in ports if prefix(p.scope, scope)]
        more = draw(st.lists(st.sampled_from(others), max_size=2))
    else:
        more = []
    pairs = tuple(dict.fromkeys((p.node, p.slot) for p in (port, *more)))
    default: object = "the default" if draw(seldom()) else MISSING
    return Wire(pairs, kind, default, accepts=draw(seldom()))
