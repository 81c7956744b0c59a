"""The kernel, one rule a test, by hand: what a run says of itself and puts out.

kernel.md §1 and §3: what items are called by, what was missed, what unconnected slots hold, why a
caller gets no answer, how many calls run at once where nobody says.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from by_hand import Hand
from reference.small import Node, controlling, fan, node, step, stream, workflow

from nightwarden.kernel.causes import NOT_TAKEN, Kind
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.effects import Answer, Invoke, Prune
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.stimuli import ControlSent, Emitted, RunStarted
from nightwarden.spec.scopes import analyse
from nightwarden.verdict import DecidedBy, Fail, Skip, Substitute


def started(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def forfeit(run: Hand, name: str, *lineage: int) -> None:
    """Fail in a way that keep-going passes over."""
    run.fails(name, *lineage)
    run.decides(Fail(), by=DecidedBy.DEFAULT)


def test_an_item_is_called_by_what_its_first_slot_puts_out() -> None:
    """row: K1-FAN-OUT"""
    run = started(fan("items", frames=("name", "size")), step("each", x="items.name"))
    run.emits("items", {"name": "tea", "size": 3}, {"name": "salt", "size": 4})
    labels = [run.machine.label(run.calls["each", (i,)]) for i in range(2)]
    assert labels == [[(0, "tea")], [(1, "salt")]]


def test_what_an_unconnected_slot_holds_is_the_value_of_a_repair_and_nothing_else() -> None:
    """row: K3-OUTPUTS"""
    run = started(fan("items"), step("each", x="items"))
    run.emits("items", "a", "b")
    run.fails("each", 1, has_candidate=True, checkable=True)
    run.decides(Substitute({"output": "mended"}), outputs=["mended"])
    run.returns("each", 0, output="whole")
    (capture,) = run.machine.captures()
    assert (capture.values, capture.lineages) == (["mended", "whole"], [(1,), (0,)])


def test_what_a_reader_of_two_edges_has_missed_has_the_number_of_its_item() -> None:
    """row: K1-CAUSES"""
    run = started(
        fan("items"), step("p", x="items"), step("q", x="items"), step("read", x=stream("p", "q"))
    )
    run.emits("items", "a", "b", "c")
    for name, index in (("p", 0), ("q", 1), ("p", 2)):
        run.fails(name, index)
        run.decides(Skip())
    for name, index in (("q", 0), ("p", 1), ("q", 2)):
        run.returns(name, index)
    for _ in range(3):
        run.asks("read", "x")
    missed = run.machine.losses(run.calls["read", ()], "x")
    assert [index for index, _ in missed] == [0, 1, 2]


def asking(*, ends: str) -> Hand:
    """A caller that waits for an answer of a node whose other input has not come."""
    run = started(
        step("input"),
        step("tool", x="input"),
        controlling(step("boss"), "tool"),
        keep_going=True,
    )
    boss, tool = run.calls["boss", ()], run._plan("tool").index
    run.tell(ControlSent(boss, tool, 1, {}, awaits=True))
    if ends == "not taken":
        run.returns("input", output=NOT_TAKEN)
    elif ends == "failed":
        forfeit(run, "input")
    else:
        run.fails("input")
        run.decides(Skip())
    return run


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ("not taken", "it lies on a branch that was not taken"),
        ("lost", "it, or what it needs, was given up"),
        ("failed", "it, or what it needs, failed"),
    ],
)
def test_who_waits_for_a_node_that_does_not_run_is_told_why(ends: str, why: str) -> None:
    """row: K1-FAN-CONTROL"""
    run = asking(ends=ends)
    assert [(a.event, a.outputs, a.error) for a in run.of(Answer)] == [(1, None, why)]


def test_a_reader_whose_streams_have_failed_is_pruned_though_its_place_is_taken() -> None:
    """row: K1-CAUSES, K3-KEEP-GOING"""
    read = node("read", {"x": stream("a"), "y": stream("b")}, concurrency=1)
    run = started(
        fan("outer"),
        fan("items", x="outer"),
        step("a", x="items"),
        step("b", x="items"),
        read,
        keep_going=True,
    )
    run.emits("outer", 0, 1)
    for outer in (0, 1):
        run.emits("items", 0, at=(outer,))
    for name in "ab":
        run.returns(name, 0, 0)
    for name in "ab":
        forfeit(run, name, 1, 0)
    assert set(run.ran("read")) == {(0,)}
    pruned = [e for e in run.of(Prune) if e.node == run._plan("read").index]
    assert [(e.lineage, e.kind) for e in pruned] == [((1,), "failed")]
    assert run.kind("read", 1) is Kind.FAILED
    assert [c.node_id for c in run.causes(run.settled("read")[1,])] == ["a", "b"]


@pytest.mark.parametrize(
    ("in_file", "in_code", "at_once"), [(None, None, 1), (3, None, 3), (None, 2, 2), (3, 2, 3)]
)
def test_a_node_runs_once_at_a_time_unless_its_file_or_else_its_code_says_more(
    in_file: int | None, in_code: int | None, at_once: int
) -> None:
    """row: K2-PRESSURE"""
    each = node("each", {"x": "items"}, concurrency=in_file)
    each = replace(each, type=replace(each.type, concurrency=in_code))
    made = workflow(fan("items"), each)
    machine = Machine(compile_plan(made, analyse(made)))
    (begun,) = [e for e in machine.handle(RunStarted({})) if isinstance(e, Invoke)]
    frames = [(i,) for i in range(5)]
    effects = machine.handle(Emitted(begun.call, frames[0], frames[1:]))
    assert len([e for e in effects if isinstance(e, Invoke)]) == at_once
