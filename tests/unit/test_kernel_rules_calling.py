"""The kernel, one rule a test, by hand: who may send a control event, and who may wait for one.

kernel.md §1, the row of control edges. Each of these rules was once broken on purpose and no other
test minded.
"""

from __future__ import annotations

import pytest
from by_hand import Hand
from reference.small import Node, collect, controlling, fan, many, node, step, stream, workflow

from nightwarden.kernel.causes import Kind
from nightwarden.kernel.effects import Answer, CloseRoot, Widen
from nightwarden.kernel.stimuli import ControlEnded, ControlSent, Succeeded
from nightwarden.spec.where import control_root
from nightwarden.verdict import DecidedBy, Fail, Skip


def begun(*nodes: Node, **settings: object) -> Hand:
    run = Hand(workflow(*nodes), **settings)
    run.start()
    return run


def ask(run: Hand, caller: str, *lineage: int, of: str = "tool", event: int = 1) -> str:
    """Send an event and wait for its answer; why it was refused, empty if it was not."""
    before = len(run.of(Answer))
    call = run.calls[caller, lineage]
    run.tell(ControlSent(call, run._plan(of).index, event, {}, awaits=True))
    return "".join(a.error for a in run.of(Answer)[before:])


def hush(run: Hand, caller: str, *lineage: int, of: str = "tool") -> None:
    run.tell(ControlEnded(run.calls[caller, lineage], run._plan(of).index))


# -- who may send --


@pytest.mark.parametrize("target", ["tool", "plain"])
def test_who_does_not_control_a_node_is_refused_and_changes_nothing(target: str) -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(
        fan("items"),
        step("other", x="items"),
        controlling(step("caller"), "tool"),
        step("tool"),
        step("plain"),
    )
    run.emits("items", 0)
    assert ask(run, "other", 0, of=target) == f"{target} takes no more events from other"
    hush(run, "other", 0, of=target)
    for name in ("plain", "items", "caller"):
        run.returns(name)
    run.returns("other", 0)
    assert run.status() == "completed"
    assert run.root(control_root("tool")).marks == {"closed": 1}
    assert (run.root("items").items, run.node("tool").due) == (1, 0)


@pytest.mark.parametrize(("other", "mark"), [("ended", "closed"), ("given up", "absent")])
def test_who_says_twice_that_it_is_done_has_said_it_once(other: str, mark: str) -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(
        controlling(step("caller"), "tool"), controlling(step("another"), "tool"), step("tool")
    )
    if other == "ended":
        run.returns("another")
    else:
        run.fails("another")
        run.decides(Skip())
    hush(run, "caller")
    hush(run, "caller")
    run.returns("caller")
    assert [(e.node, e.mark) for e in run.of(CloseRoot)] == [(run._plan("tool").index, mark)]
    assert run.status() == "completed"


def test_what_is_known_of_events_is_forgotten_when_their_senders_are_over() -> None:
    """row: K2-COST"""
    run = begun(fan("items"), controlling(step("caller", x="items"), "tool"), step("tool"))
    run.emits("items", 0, 1)
    for item in (0, 1):
        ask(run, "caller", item)
        run.returns("tool", item, 0)
    assert len(run.machine._state.controls) == 2
    run.returns("caller", 0)
    assert len(run.machine._state.controls) == 1
    run.returns("caller", 1)
    assert not run.machine._state.controls


# -- what is answered --


def test_an_answer_names_whole_slots_and_not_their_parts() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(
        controlling(step("caller"), "tool"),
        node("tool", {}, parts={"url": "output"}),
        step("use", x="tool.url"),
    )
    assert ask(run, "caller") == ""
    whole = {"url": "u"}
    outs = run._plan("tool").outs
    values = tuple("u" if out.projected else whole for out in outs)
    assert [out.name for out in outs] == ["output", "url"]
    run.tell(Succeeded(run.calls["tool", (0,)], values))
    assert [a.outputs for a in run.of(Answer)] == [{"output": whole}]
    assert run.ran("use") == {(0,): ("u",)}


# -- who may wait --


def test_who_is_done_with_one_target_may_wait_for_a_list_of_it_over_all_items() -> None:
    """row: K1-FAN-CONTROL. The list is there, though it could not come before all were done."""
    run = begun(
        fan("items"),
        controlling(step("caller", x="items"), "one", "tool"),
        step("one"),
        step("part", x=collect("one")),
        step("slow"),
        step("tool", x=collect("part"), y="slow"),
    )
    run.emits("items", 0, 1)
    run.returns("items")
    hush(run, "caller", 0, of="one")
    assert ask(run, "caller", 0).startswith("tool waits for part, which depends on caller itself")
    hush(run, "caller", 1, of="one")
    for item in (0, 1):
        run.returns("part", item)
    assert ask(run, "caller", 0, event=2) == ""
    run.returns("slow", output="s")
    ((gathered, slow),) = [inputs[1:] for inputs in run.ran("tool").values()]
    assert (getattr(gathered, "values", None), slow) == (["part(1)", "part(2)"], "s")


def test_a_call_is_refused_though_a_part_of_what_its_target_waits_for_has_come() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(
        step("first"),
        controlling(step("caller"), "tool"),
        step("after", x="caller"),
        step("tool", x=many("first", "after")),
    )
    run.returns("first")
    assert ask(run, "caller") == (
        "tool waits for after, which depends on caller itself: "
        "send the event without waiting for its answer"
    )


def test_who_is_done_with_a_target_may_not_wait_for_what_that_needs_of_its_own_end() -> None:
    """row: K1-FAN-CONTROL. The event was sent before; it waits for what its sender returns."""
    run = begun(
        controlling(step("caller"), "one", "tool"),
        step("one", x="caller"),
        step("tool", x=collect("one")),
    )
    run.tell(ControlSent(run.calls["caller", ()], run._plan("one").index, 1, {}))
    hush(run, "caller", of="one")
    assert ask(run, "caller").startswith("tool waits for one, which depends on caller itself")


def test_a_caller_that_failed_while_it_waited_does_not_wait_any_more() -> None:
    """row: K1-FAN-CONTROL, K2-PRESSURE"""
    run = begun(
        fan("many"),
        node("both", {"x": stream("many"), "y": collect("many")}),
        controlling(step("caller"), "tool"),
        step("tool"),
        window=2,
    )
    assert ask(run, "caller") == ""
    run.fails("caller")
    run.decides(Skip())
    run.returns("tool", 0)
    run.emits("many", 0, 1)
    assert [e.window for e in run.of(Widen)] == [4]


def test_what_others_call_does_not_stand_between_a_caller_and_its_answer() -> None:
    """row: K1-FAN-CONTROL"""
    run = begun(
        controlling(step("caller"), "tool"),
        controlling(step("another"), "elsewhere"),
        step("slow"),
        step("tool", x="slow"),
        step("elsewhere", x="caller"),
    )
    assert ask(run, "caller") == ""
    run.returns("slow")
    run.returns("tool", 0, output="answer")
    assert [a.outputs for a in run.of(Answer)] == [{"output": "answer"}]


# -- how events are over --


def test_events_that_only_a_branch_not_taken_could_have_sent_are_no_empty_list() -> None:
    """row: K1-FAN-CONTROL, K1-CAUSES"""
    run = begun(
        step("if"),
        controlling(step("caller", x="if"), "tool"),
        step("tool"),
        step("all", x=collect("tool")),
    )
    run.returns("if", nothing=1)
    assert run.kind("all") is Kind.NOT_TAKEN
    assert run.root(control_root("tool")).marks == {"absent": 1}
    assert run.status() == "completed"


@pytest.mark.parametrize("failed", [True, False])
def test_events_of_a_sender_that_was_given_up_are_over_as_that_says(*, failed: bool) -> None:
    """row: K1-FAN-CONTROL, K3-KEEP-GOING"""
    run = begun(controlling(step("caller"), "tool"), step("tool"), keep_going=True)
    run.tell(ControlSent(run.calls["caller", ()], run._plan("tool").index, 1, {}))
    run.returns("tool", 0)
    run.fails("caller")
    if failed:
        run.decides(Fail(), by=DecidedBy.DEFAULT)
    else:
        run.decides(Skip())
    assert run.root(control_root("tool")).marks == {"failed" if failed else "early": 1}
