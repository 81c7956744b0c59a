"""Runs to be drawn: a graph of every kind of node, and how the world treats it.

A `Plan` is plain data that prints and shrinks; what it means is worked out from left to right,
each node wired to what is there already. Whatever is drawn is a valid workflow.

Read next: `playing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from soak.steps import World, caller, node_type, plain, streaming

import nightwarden as nw
from nightwarden.lineage import Scope
from nightwarden.spec.build import Builder
from nightwarden.spec.handles import Handle
from nightwarden.spec.where import control_root
from nightwarden.spec.workflow import Workflow

DEEPEST = 3
KINDS = (
    *("one", "two", "fans", "collects", "reads", "passes_on", "many", "default", "accepts"),
    *("if", "filter", "merge", "assert", "zip", "cross", "loop", "control", "reads_both"),
    *("batch", "limit", "reads_as_it_comes", "fans", "collects", "reads"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One more node: its kind, what it is wired to (counted from the newest), a number for it."""

    kind: str
    first: int = 0
    second: int = 0
    number: int = 2
    safe: bool = True
    places: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. Times in seconds; `patience` is how long whoever decides takes, None for nobody."""

    choices: tuple[Choice, ...]
    seed: int = 0
    shuffle: int | None = None
    wrong: int = 0
    suspends: bool = False
    window: int = 1024
    keep_going: bool = False
    patience: float | None = 0.0
    decisions: int = 1_000
    retries: int = 2
    harsh: bool = False
    cancel_after: float | None = None
    grace: float = 30.0


choices = st.builds(
    Choice,
    kind=st.sampled_from(KINDS),
    first=st.integers(0, 5),
    second=st.integers(0, 5),
    number=st.integers(1, 5),
    safe=st.booleans(),
    places=st.sampled_from((None, None, 1, 3)),
)

plans = st.builds(
    Plan,
    choices=st.lists(choices, min_size=1, max_size=14).map(tuple),
    seed=st.integers(0, 2**16),
    shuffle=st.none() | st.integers(0, 2**16),
    wrong=st.sampled_from((0, 12, 6, 3)),
    suspends=st.sampled_from((False, False, False, True)),
    window=st.sampled_from((1024, 1, 2, 3, 8)),
    keep_going=st.booleans(),
    patience=st.sampled_from((0.0, 0.0, None, 5.0, 90.0)),
    decisions=st.sampled_from((1_000, 1_000, 2, 0)),
    retries=st.sampled_from((2, 1, 0)),
    harsh=st.booleans(),
    cancel_after=st.sampled_from((None, None, 0.0, 0.0005, 0.4, 3.2, 44.0, 130.0)),
    grace=st.sampled_from((30.0, 0.0, 1.0)),
)


@dataclass(frozen=True, slots=True)
class _Port:
    handle: Handle
    scope: Scope


class _Drawing:
    """The workflow of a plan in the making."""

    def __init__(self, world: World, builder: Builder) -> None:
        self.world, self.builder = world, builder
        start = node_type("start", plain(world, "start", "one"), safe=True)
        self.ports = [_Port(builder.add(start, id="start", x=1), ())]

    def add(self, number: int, choice: Choice) -> None:
        """One more node, if what is there allows of its kind."""
        name, newest = f"n{number}", self.ports[::-1]
        first = newest[choice.first % len(newest)]
        match choice.kind:
            case "fans":
                if len(first.scope) < DEEPEST:
                    self._streams(name, choice, first)
            case "passes_on" | "batch" | "limit":
                if first.scope:
                    self._passes_on(name, choice, first)
            case "collects" | "reads" | "reads_as_it_comes":
                if first.scope:
                    self._gathers(name, choice, first)
            case "zip" | "cross" | "reads_both":
                self._pairs(name, choice, first, newest)
            case "loop":
                if len(first.scope) < DEEPEST:
                    self._loop(name, choice, first)
            case "control":
                if len(first.scope) < DEEPEST:
                    self._control(name, choice, first, newest)
            case "if" | "filter" | "assert":
                self._decides(name, choice, first)
            case "one":
                self._plain(name, choice, [first])
            case _:
                self._joins(name, choice, first, newest)

    def _type(self, name: str, choice: Choice, kind: str) -> object:
        return node_type(name, plain(self.world, name, kind), safe=choice.safe)

    def _plain(self, name: str, choice: Choice, wired: Sequence[_Port]) -> None:
        made = self._type(name, choice, choice.kind)
        slots = dict(zip("xy", (port.handle for port in wired), strict=False))
        handle = self.builder.add(made, id=name, concurrency=choice.places, properties=slots)
        self.ports.append(_Port(handle, max((p.scope for p in wired), key=len)))

    def _joins(self, name: str, choice: Choice, first: _Port, newest: Sequence[_Port]) -> None:
        fits = [p for p in newest if _meet(p.scope, first.scope) and p is not first]
        if not fits:
            return
        second = fits[choice.second % len(fits)]
        if choice.kind in ("two", "default", "accepts"):
            self._plain(name, choice, [first, second])
            return
        what = "flow.Merge" if choice.kind == "merge" else self._type(name, choice, "many")
        slot = "values" if choice.kind == "merge" else "x"
        wires = {slot: [first.handle, second.handle]}
        handle = self.builder.add(what, id=name, properties=wires)
        self.ports.append(_Port(handle, max(first.scope, second.scope, key=len)))

    def _streams(self, name: str, choice: Choice, first: _Port) -> None:
        step = streaming(self.world, name, "fans", choice.number)
        made = node_type(name, step, safe=choice.safe)
        handle = self.builder.add(made, id=name, x=first.handle, concurrency=choice.places)
        self.ports.append(_Port(handle, (*first.scope, name)))

    def _passes_on(self, name: str, choice: Choice, first: _Port) -> None:
        match choice.kind:
            case "batch":
                handle = self.builder.add(
                    "flow.Batch", id=name, items=first.handle, size=choice.number
                )
            case "limit":
                handle = self.builder.add(
                    "flow.Limit", id=name, items=first.handle, count=choice.number - 1
                )
            case _:
                step = streaming(self.world, name, "passes_on", choice.number)
                made = node_type(name, step, safe=choice.safe)
                handle = self.builder.add(made, id=name, x=first.handle)
        self.ports.append(_Port(handle, (*first.scope[:-1], name)))

    def _gathers(self, name: str, choice: Choice, first: _Port) -> None:
        collects = choice.kind == "collects"
        if collects:
            made, source = self._type(name, choice, "collects"), first.handle.collect()
        else:
            step = streaming(self.world, name, choice.kind, choice.number)
            made, source = node_type(name, step, safe=choice.safe), first.handle
        handle = self.builder.add(made, id=name, x=source, concurrency=choice.places)
        self.ports.append(_Port(handle, first.scope[:-1]))

    def _pairs(self, name: str, choice: Choice, first: _Port, newest: Sequence[_Port]) -> None:
        above = first.scope[:-1]
        fits = [p for p in newest if p.scope and p.scope[:-1] == above]
        if choice.kind != "reads_both":
            fits = [p for p in fits if p.scope != first.scope]
        if not first.scope or not fits:
            return
        second = fits[choice.second % len(fits)]
        if choice.kind == "reads_both":
            step = streaming(self.world, name, "reads_both", 0)
            made = node_type(name, step, safe=choice.safe)
            handle = self.builder.add(made, id=name, x=first.handle, y=second.handle)
            self.ports.append(_Port(handle, above))
            return
        kind = "flow.Zip" if choice.kind == "zip" else "flow.Cross"
        handle = self.builder.add(kind, id=name, left=first.handle, right=second.handle)
        self.ports.append(_Port(handle.slot("left"), (*above, name)))
        self.ports.append(_Port(handle.slot("right"), (*above, name)))

    def _loop(self, name: str, choice: Choice, first: _Port) -> None:
        add = self.builder.add
        loop = add("flow.Loop", id=name, initial=first.handle, max_iterations=choice.number)
        body, again = f"{name}b", f"{name}c"
        made = node_type(body, plain(self.world, body, "one"), safe=choice.safe)
        handle = add(made, id=body, x=loop.slot("value"))
        fed: dict[str, Handle] = {"next": handle}
        if choice.second % 2:
            tells = node_type(again, plain(self.world, again, "tells"), safe=choice.safe)
            fed["condition"] = add(tells, id=again, x=handle)
        self.builder.feed(loop, **fed)
        self.ports.append(_Port(handle, (*first.scope, name)))
        self.ports.append(_Port(loop.slot("done"), first.scope))

    def _control(self, name: str, choice: Choice, first: _Port, newest: Sequence[_Port]) -> None:
        tool = f"{name}t"
        made = node_type(tool, plain(self.world, tool, "two"), safe=choice.safe)
        above = [p for p in newest if first.scope[: len(p.scope)] == p.scope]
        wired = above[choice.second % len(above)]
        handle = self.builder.add(made, id=tool, x=0, y=wired.handle, concurrency=choice.places)
        step = caller(self.world, name, tool, choice.number)
        made = node_type(name, step, safe=choice.safe)
        calls = self.builder.add(made, id=name, x=first.handle, controls=[tool])
        self.ports.append(_Port(calls, first.scope))
        self.ports.append(_Port(handle, (*first.scope, control_root(tool))))

    def _decides(self, name: str, choice: Choice, first: _Port) -> None:
        tells = f"{name}c"
        made = node_type(tells, plain(self.world, tells, "tells"), safe=choice.safe)
        condition = self.builder.add(made, id=tells, x=first.handle)
        kind = {"if": "flow.If", "filter": "flow.Filter", "assert": "flow.Assert"}[choice.kind]
        handle = self.builder.add(kind, id=name, value=first.handle, condition=condition)
        slots = ("then", "otherwise") if choice.kind == "if" else ("output",)
        self.ports += [_Port(handle.slot(slot), first.scope) for slot in slots]


def _meet(one: Scope, other: Scope) -> bool:
    short = min(len(one), len(other))
    return one[:short] == other[:short]


def workflow_of(plan: Plan, world: World) -> Workflow:
    """The workflow of a plan, with steps that live in this world."""
    builder = nw.workflow("soak")
    drawing = _Drawing(world, builder)
    for number, choice in enumerate(plan.choices):
        drawing.add(number, choice)
    return builder.build()
