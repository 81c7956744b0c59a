"""What the nodes of a drawn workflow do, drawn: scripts, faults, and answers to them.

Read next: `graphs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from nightwarden.spec.catalog import SlotKind
from nightwarden.verdict import Action
from reference.acting import Act, Fault, Frame, Hush, Read, Step, Tell
from reference.small import Node


def seldom() -> st.SearchStrategy[bool]:
    """True one time in four."""
    return one_in(4)


def one_in(times: int) -> st.SearchStrategy[bool]:
    """True one time in so many; shrinks to False."""
    return st.sampled_from((False,) * (times - 1) + (True,))


@st.composite
def acts(draw: st.DrawFn, drawn: Node, depth: int, *, failing: bool, decides: bool = False) -> Act:
    """Above the items little goes wrong: it would leave nothing to look at below.

    A node that `decides` says true or false, mostly.
    """
    wrong = one_in(4 if depth else 10)
    frames = [n for n, s in drawn.type.outputs.items() if s.stream]
    scalars = [n for n, s in drawn.type.outputs.items() if not s.stream]
    script = draw(_scripts(drawn, frames))
    absent = frozenset(s for s in scalars if draw(wrong))
    fault = draw(_faults(drawn, len(script))) if draw(wrong) else None
    answers = draw(answers_(failing=failing)) if fault else ()
    insists = failing and bool(answers) and draw(seldom())
    says = draw(st.sampled_from((True, False, True, True, None))) if decides else None
    return Act(script, absent, fault, answers, insists=insists, says=says)


@st.composite
def _scripts(draw: st.DrawFn, drawn: Node, frames: Sequence[str]) -> tuple[Step, ...]:
    steps: list[st.SearchStrategy[Step]] = []
    streams = [n for n, w in drawn.wires.items() if w.kind is SlotKind.STREAM]
    if any(drawn.wires[n].by_arrival for n in streams):
        return tuple(Read(n) for n in streams)
    if frames:
        missing = st.sampled_from((frozenset[str](), *(frozenset((f,)) for f in frames)))
        steps += [st.builds(Frame, missing)]
    if streams:
        count = st.sampled_from((None, 1, 2))
        steps += [st.builds(Read, st.sampled_from(streams), count)]
    for target in drawn.controls:
        tells = st.builds(Tell, st.just(target), st.booleans())
        steps += [tells, tells, st.builds(Hush, st.just(target)) if draw(one_in(8)) else tells]
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
        unknown=draw(one_in(8)),
        bad_input=kept and draw(one_in(8)),
        idempotent=draw(seldom()),
        retry_after_s=draw(st.sampled_from((None, None, None, 3.0, 3.0, 301.0))),
    )


def answers_(*, failing: bool) -> st.SearchStrategy[tuple[Action, ...]]:
    answers = [(), (Action.RETRY,), (Action.SUBSTITUTE,), (Action.RETRY, Action.SUBSTITUTE)]
    if failing:
        answers += [(Action.FAIL,), (Action.RETRY, Action.FAIL), (Action.FAIL,)]
    return st.sampled_from(answers)
