"""What the nodes of a drawn workflow do: data, so that it prints and shrinks, played as code.

Each node has a few `Act`s; which of them a lineage gets hangs on the lineage alone. Values
are `Made`: equal only if made by the same node, attempt and inputs, so a wrong join shows.

Read next: `graphs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from hypothesis.vendor.pretty import RepresentationPrinter as Printer

from nightwarden.lineage import Lineage
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Action, EndStream, Fail, Retry, Skip, Substitute, Verdict
from reference.words import (
    ABSENT,
    END,
    STREAM,
    At,
    Broken,
    Code,
    Emit,
    EndControl,
    Judge,
    Next,
    Running,
    Send,
)


@dataclass(frozen=True, slots=True)
class Read:
    """Read so many items of a slot, or all of them."""

    slot: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """Yield a frame without these slots."""

    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tell:
    """Send an event to a node this one controls; with `awaits`, wait for what comes of it."""

    target: str
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class Hush:
    """Send nothing more to a node this one controls."""

    target: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail in the first `attempts`, before step `after` of the script (or at its end)."""

    attempts: int = 99
    after: int = 99
    has_candidate: bool = False
    cost: int = 0
    assets: int = 0
    unknown: bool = False
    bad_input: bool = False
    idempotent: bool = False
    retry_after_s: float | None = None

    def broken(self) -> Broken:
        """The failure as the engine is told of it."""
        return Broken(
            has_candidate=self.has_candidate,
            checkable=self.has_candidate,
            cost_micro_usd=self.cost,
            assets=self.assets,
            unknown=self.unknown,
            bad_input=self.bad_input,
            idempotent=self.idempotent,
            retry_after_s=self.retry_after_s,
        )


Step = Read | Frame | Tell | Hush


@dataclass(frozen=True, slots=True)
class Act:
    """One way a node behaves. `absent`: output slots not taken. `answers`: what is said when it
    fails, the first that is allowed, or the first of all if whoever decides `insists`; the last
    word is always to give up the item. `says`: what it puts out instead of a value of its own."""

    script: tuple[Step, ...] = ()
    absent: frozenset[str] = frozenset()
    fault: Fault | None = None
    answers: tuple[Action, ...] = ()
    insists: bool = False
    says: bool | None = None


def brief(record: object) -> str:
    """A record as one reads it: what is as usual is left out."""
    if isinstance(record, tuple):
        return "[" + ", ".join(map(brief, record)) + "]"
    if not isinstance(record, (Act, Fault, Read, Frame, Tell, Hush)):
        return repr(set(record)) if isinstance(record, frozenset) else str(record)
    told = (
        f"{f.name}={brief(getattr(record, f.name))}"
        for f in fields(record)
        if getattr(record, f.name) != f.default
    )
    return f"{type(record).__name__}({', '.join(told)})"


class Made:
    """A value, known by where it comes from."""

    __slots__ = ("name", "origin")

    def __init__(self, name: str, origin: tuple[object, ...]) -> None:
        self.name, self.origin = name, origin

    def __repr__(self) -> str:
        return self.name


class Mint:
    """Makes values; the same origin gives the same object."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Made] = {}

    def value(self, at: At, slot: str, *more: object) -> Made:
        """The value that an invocation puts on a slot."""
        origin = (at.node, at.lineage, at.attempt, slot, tuple(sorted(at.inputs.items())), more)
        known = self._known.get(origin)
        if known is None:
            where = ",".join(map(str, at.lineage))
            known = Made(f"{at.node}.{slot}({where})#{len(self._known)}", origin)
            self._known[origin] = known
        return known


@dataclass(frozen=True, slots=True)
class Case:
    """A workflow, what its nodes do, and how many retries an item has."""

    workflow: Workflow
    acts: Mapping[str, tuple[Act, ...]]
    inputs: Mapping[str, object] = field(default_factory=dict)
    max_retries: int = 2
    mint: Mint = field(default_factory=Mint, compare=False)

    def act(self, node: str, lineage: Lineage) -> Act:
        """The act that a lineage gets."""
        acts = self.acts[node]
        return acts[sum((3 * place + 1) * i for place, i in enumerate(lineage)) % len(acts)]

    def __repr__(self) -> str:
        """The case as one reads it: a line a node."""
        lines = [f"retries {self.max_retries}"]
        for spec in self.workflow.nodes:
            node_type = self.workflow.types[spec.id]
            marks = [m for m in ("fans_out", "reads", "retry_safe") if getattr(node_type, m)]
            marks += [f"join={node_type.join}"] * (node_type.join != "all")
            marks += [f"concurrency={spec.run.concurrency}"] * (spec.run.concurrency is not None)
            marks += [node_type.role] * bool(node_type.role)
            marks += [f"{name}={value}" for name, value in spec.properties.items()]
            marks += [
                f"controls {e.target}"
                for e in self.workflow.edges
                if e.kind == "control" and e.source == spec.id
            ]
            lines.append(f"{spec.id} {' '.join(marks)} → {', '.join(node_type.outputs)}")
            for edge in self.workflow.edges_into(spec.id):
                slot = node_type.inputs[edge.target_slot]
                more = ["default"] * (not slot.required) + ["accepts"] * slot.accepts_absent
                more += ["by_arrival"] * slot.by_arrival
                lines.append(
                    f"    {slot.name}: {slot.kind} ← {edge.source}.{edge.source_slot} "
                    + " ".join(more)
                )
            acts = self.acts[spec.id]
            lines += [f"    {brief(act)}" for act in acts if len(acts) > 1 or act != Act()]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """How Hypothesis prints a case."""
        printer.text(repr(self))


def codes(case: Case) -> dict[str, Code]:
    """The code of every node of a case."""
    return {node_id: _code(case) for node_id in case.workflow.types}


def _code(case: Case) -> Code:
    def code(at: At) -> Running:
        act = case.act(at.node, at.lineage)
        fault = act.fault if act.fault and at.attempt <= act.fault.attempts else None
        seen: list[object] = []
        frames = 0
        for number, step in enumerate(act.script):
            if fault is not None and fault.after == number:
                raise fault.broken()
            if not isinstance(step, Frame):
                yield from _ask(case, at, step, seen)
                continue
            slots = _slots(case, at.node, stream=True)
            frame = {
                s: case.mint.value(at, s, frames, *seen) for s in slots if s not in step.missing
            }
            frames += 1
            yield Emit(frame)
        if fault is not None:
            raise fault.broken()
        slots = _slots(case, at.node, stream=False)
        if act.says is not None:
            return {s: act.says for s in slots if s not in act.absent}
        return {s: case.mint.value(at, s, *seen) for s in slots if s not in act.absent}

    return code


def _ask(case: Case, at: At, step: Read | Tell | Hush, seen: list[object]) -> Running:
    """One step that yields no frame; what comes of it is added to what has been seen."""
    if isinstance(step, Read):
        yield from _read(at, step, seen)
    elif isinstance(step, Hush):
        yield EndControl(step.target)
    else:
        event = case.mint.value(at, f"→{step.target}", len(seen), *seen)
        seen.append((yield Send(step.target, (("x", event),), step.awaits)))
    return {}


def _read(at: At, step: Read, seen: list[object]) -> Running:
    left = step.count
    while at.inputs[step.slot] is STREAM and left != 0:
        item = yield Next(step.slot)
        seen.append(item)
        if item is END:
            break
        left = None if left is None else left - 1
    return {}


def _slots(case: Case, node: str, *, stream: bool) -> Sequence[str]:
    outputs = case.workflow.types[node].outputs
    return [name for name, slot in outputs.items() if slot.stream is stream]


def judge(case: Case) -> Judge:
    """Whoever decides, for a case: the act's own answers, else the item is given up."""

    def decide(node: str, lineage: Lineage, attempt: int, allowed: frozenset[Action]) -> Verdict:
        act = case.act(node, lineage)
        lossy = (Action.SKIP, Action.END_STREAM)
        action = next(a for a in (*act.answers, *lossy) if a in allowed or act.insists)
        return _verdict(case, node, lineage, action)

    return decide


def _verdict(case: Case, node: str, lineage: Lineage, action: Action) -> Verdict:
    match action:
        case Action.RETRY:
            return Retry()
        case Action.SKIP:
            return Skip()
        case Action.END_STREAM:
            return EndStream()
        case Action.FAIL:
            return Fail("enough")
        case _:
            absent = case.act(node, lineage).absent
            slots = _slots(case, node, stream=False)
            says = case.act(node, lineage).says
            return Substitute(
                {
                    s: ABSENT
                    if s in absent
                    else f"mended {node}.{s}{lineage}"
                    if says is None
                    else says
                    for s in slots
                }
            )
