"""The plan of a workflow, one rule a test: what is kept of it, where items end, who holds what.

kernel.md §1. A plan is told from what a run of it does, and from the exits its ledger names.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from by_hand import Hand
from reference.small import (
    Node,
    collect,
    controlling,
    fan,
    loop,
    many,
    node,
    step,
    wire,
    workflow,
)

import nightwarden as nw
from nightwarden.errors import KernelBug
from nightwarden.kernel.compiling import compile_plan
from nightwarden.kernel.effects import USE_DEFAULT, Answer, Invoke
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.stimuli import ControlSent, RunStarted
from nightwarden.spec.scopes import analyse
from nightwarden.spec.workflow import Workflow


def started(made: Workflow, **inputs: object) -> Hand:
    run = Hand(made)
    run.start(**inputs)
    return run


def kept(run: Hand) -> dict[str, list[object]]:
    """What the run has put out so far, by `node.slot`."""
    nodes = run.plan.nodes
    return {
        f"{nodes[c.plan.source].id}.{c.plan.source_slot}": list(c.values)
        for c in run.machine.captures()
    }


def exits(run: Hand, root: str = "run") -> list[str]:
    report = run.machine.report()
    (found,) = [r for r in (report.run, *report.roots) if r.node_id == root]
    return [exit_.name for exit_ in found.exits]


def named(*nodes: Node, **outputs: str) -> Workflow:
    return replace(workflow(*nodes), outputs=outputs)


# -- what is kept --


def test_what_leads_nowhere_is_kept_where_no_outputs_are_named() -> None:
    run = started(workflow(step("one"), step("two", x="one"), step("three", x="one")))
    for name in ("one", "two", "three"):
        run.returns(name)
    assert kept(run) == {"two.output": ["two()"], "three.output": ["three()"]}


def test_only_the_outputs_that_are_named_are_kept() -> None:
    run = started(
        named(step("one"), step("two", x="one"), step("three", x="one"), kept="one.output")
    )
    for name in ("one", "two", "three"):
        run.returns(name)
    assert kept(run) == {"one.output": ["one()"]}
    assert run.status() == "completed"


def test_a_part_of_a_value_is_kept_only_where_it_is_named() -> None:
    page = node("page", {}, parts={"url": "output", "title": "output"})
    assert list(kept(started(workflow(page)))) == ["page.output"]
    assert list(kept(started(named(page, link="page.url")))) == ["page.url"]


def test_a_slot_is_used_where_a_part_of_it_is() -> None:
    page = node("page", {}, parts={"url": "output"})
    run = started(workflow(page, step("fetch", url="page.url")))
    assert list(kept(run)) == ["fetch.output"]


def test_every_item_of_a_stream_is_kept_that_leads_nowhere() -> None:
    run = started(workflow(fan("items")))
    run.emits("items", "a", "b")
    assert kept(run) == {"items.output": ["a", "b"]}


# -- where items end --


def test_an_item_ends_where_it_leads_and_else_at_its_source() -> None:
    run = started(workflow(fan("items"), step("each", x="items"), step("all", x=collect("each"))))
    assert exits(run, "items") == ["output → all.x"]
    assert exits(started(workflow(fan("items"))), "items") == ["items.output"]


def test_an_item_that_is_kept_on_its_way_still_ends_where_it_leads() -> None:
    made = named(fan("items"), step("each", x="items"), kept="items.output", more="each.output")
    assert exits(started(made), "items") == ["each"]


def test_a_slot_of_a_fan_out_that_nobody_takes_is_an_end_of_its_own() -> None:
    made = named(
        fan("items", frames=("one", "two")), step("each", x="items.one"), kept="each.output"
    )
    run = started(made)
    assert sorted(exits(run, "items")) == ["each", "items.two"]
    run.emits("items", {"one": 1, "two": 2})
    run.returns("items")
    run.returns("each", 0)
    assert run.status() == "completed"


def test_a_part_of_an_item_that_is_kept_is_no_end_of_its_own() -> None:
    items = node("items", {}, frames=("output",), outs=(), parts={"url": "output"})
    run = started(named(items, whole="items.output", part="items.url"))
    assert exits(run, "items") == ["items.output"]


def test_what_is_handed_back_to_a_loop_ends_there() -> None:
    made = workflow(loop("again", {"next": "body"}, initial=0), step("body", x="again.value"))
    run = started(made)
    assert run.plan.node("again").index == 0
    assert exits(run, "again") == ["again.index", "output → again.next"]


# -- how inputs are given --


def test_a_step_that_takes_any_input_gets_those_it_does_not_name() -> None:
    @nw.node(type="plan.Open")
    async def opened(first: int, **others: object) -> int:
        return first

    @nw.node(type="plan.One")
    async def one() -> int:
        return 1

    with nw.workflow("open") as w:
        made = w.add(one, id="one")
        w.add(opened, id="opened", more=made, first=made)
    run = started(w.build())
    run.returns("one", output=1)
    assert [slot.name for slot in run.plan.node("opened").slots] == ["first", "more"]
    assert run.ran("opened") == {(): (1, 1)}


def test_a_property_stands_in_for_a_branch_that_was_not_taken() -> None:
    one = step("one", outs=("output", "other"))
    late = step("late", x="one", y=wire("one.other"))
    given = replace(late, spec=replace(late.spec, properties={"y": "as written"}))
    run = started(workflow(one, given))
    run.returns("one", output=1)
    assert run.ran("late") == {(): (1, USE_DEFAULT)}
    without = started(workflow(one, late))
    without.returns("one", output=1)
    assert without.ran("late") == {}


def test_a_list_of_several_sources_is_a_list_with_one_as_well() -> None:
    run = started(workflow(step("one"), step("all", x=many("one"))))
    run.returns("one", output=1)
    assert run.ran("all") == {(): ([1],)}


def test_a_limit_below_one_would_hold_a_run_for_ever_and_is_one() -> None:
    made = workflow(step("one"))
    machine = Machine(compile_plan(made, analyse(made)), limits=lambda _: 0)
    assert [type(effect) for effect in machine.handle(RunStarted({}))] == [Invoke]


# -- who is controlled --


def test_only_what_is_controlled_answers() -> None:
    made = workflow(controlling(step("caller"), "tool"), step("tool"), step("plain"))
    run = started(made)
    assert {plan.id: plan.control_root >= 0 for plan in run.plan.nodes} == {
        "caller": False,
        "tool": True,
        "plain": False,
    }


@pytest.mark.parametrize("outputs", [None, {}], ids=["all kept", "nothing kept"])
def test_a_tool_answers_whether_or_not_what_it_says_leads_on(
    outputs: dict[str, str] | None,
) -> None:
    made = replace(workflow(controlling(step("caller"), "tool"), step("tool")), outputs=outputs)
    run = started(made)
    run.tell(ControlSent(run.calls["caller", ()], run._plan("tool").index, 1, {}, awaits=True))
    effects = run.returns("tool", 0, output="found")
    assert [e.outputs for e in effects if isinstance(e, Answer)] == [{"output": "found"}]


# -- nothing left out --


def test_a_node_that_analysis_could_not_place_is_not_left_out_in_silence() -> None:
    made = workflow(step("one"), step("two", x="one"))
    analysis = analyse(made)
    with pytest.raises(KernelBug, match="without a place: two"):
        compile_plan(made, replace(analysis, order=("one",)))
