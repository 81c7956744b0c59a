"""The reference interpreter against examples worked by hand, a row of kernel.md §1 each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from reference.accounts import accounts, edge_number, unlawful_cuts
from reference.doing import (
    answers,
    fails,
    gives,
    gives_up,
    leaves,
    made,
    plain,
    reads,
    yields,
)
from reference.interpreter import interpret
from reference.small import collect, fan, many, merge, node, safe, step, stream, wire, workflow
from reference.words import (
    ABSENT,
    DEFAULT,
    STREAM,
    Absent,
    At,
    Broken,
    Cause,
    Choices,
    Closing,
    Code,
    Cut,
    Judge,
    Kind,
    Listed,
    Meaning,
    Next,
    Running,
    Settlement,
    Value,
)

from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Action, EndStream, Retry, Substitute

NOT_TAKEN, LOST, FAILED = Kind


def run(
    w: Workflow,
    *,
    judge: Judge = gives_up,
    keep_going: bool = False,
    choices: Choices | None = None,
    inputs: Mapping[str, object] | None = None,
    **code: Code,
) -> Meaning:
    full = {n: plain(t) for n, t in w.types.items()} | code
    return interpret(w, inputs or {}, full, judge, keep_going=keep_going, choices=choices)


def inputs_of(meaning: Meaning, name: str) -> list[dict[str, object]]:
    return [dict(i.inputs) for i in meaning.invocations if i.node == name]


def branch(name: str, slot: str = "output") -> Absent:
    return Absent(NOT_TAKEN, frozenset((Cause(name, slot=slot),)))


def given_up(*where: tuple[str, tuple[int, ...]], kind: Kind = LOST) -> Absent:
    return Absent(kind, frozenset(Cause(*w) for w in where))


def output(meaning: Meaning, name: str, slot: str = "output") -> Settlement:
    return meaning.slots[name, slot][()]


def value(meaning: Meaning, name: str, slot: str = "output") -> object:
    settled = output(meaning, name, slot)
    assert isinstance(settled, Value), settled
    return settled.value


# ── Joining ──────────────────────────────────────────────────────────────────────────────


def test_inputs_of_equal_scope_are_joined_by_equal_lineage() -> None:
    w = workflow(fan("n"), step("a", x="n"), step("b", x="n"), step("j", a="a", b="b"))
    meaning = run(w, n=yields(0, 1))
    assert meaning.slots["j", "output"] == {
        (0,): Value("j(a(0),b(0))"),
        (1,): Value("j(a(1),b(1))"),
    }


def test_an_input_of_a_shorter_scope_is_broadcast() -> None:
    w = workflow(step("s"), fan("n"), fan("m", x="n"), step("j", a="m", b="n", c="s"))
    meaning = run(w, n=yields("p", "q"), m=yields("x", "y"))
    assert list(meaning.slots["j", "output"]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert meaning.slots["j", "output"][1, 0] == Value("j(x,q,s())")


def test_a_run_input_reaches_its_readers() -> None:
    w = workflow(step("f", x="inputs.x"), inputs=["x"])
    assert value(run(w, inputs={"x": "here"}), "f") == "f(here)"


def test_a_required_absent_input_prunes_and_its_causes_are_united() -> None:
    w = workflow(step("a"), step("b"), step("c"), step("j", a="a", b="b", c="c"))
    meaning = run(w, a=fails(), b=leaves("output"))
    assert inputs_of(meaning, "j") == []
    assert output(meaning, "j") == Absent(LOST, frozenset((Cause("a"), Cause("b", slot="output"))))
    assert meaning.counts("j") == {"pruned": 1}


def test_a_default_stands_in_for_a_branch_not_taken_beside_a_value() -> None:
    w = workflow(step("a"), step("b"), step("j", a=wire("a", default=7), b="b"))
    assert inputs_of(run(w, a=leaves("output")), "j") == [{"a": DEFAULT, "b": "b()"}]


def test_a_branch_not_taken_never_runs_on_defaults() -> None:
    w = workflow(step("a"), step("j", a=wire("a", default=7)))
    assert output(run(w, a=leaves("output")), "j") == branch("a")


def test_a_broadcast_does_not_wake_a_default() -> None:
    w = workflow(step("s"), fan("n"), step("a", x="n"), step("j", a=wire("a", default=7), s="s"))
    meaning = run(w, n=yields(0, 1), a=leaves("output", (0,)))
    assert meaning.slots["j", "output"] == {(0,): branch("a"), (1,): Value("j(a(1),s())")}


def test_a_loss_never_turns_into_a_default() -> None:
    w = workflow(step("a"), step("b"), step("j", a=wire("a", default=7), b="b"))
    assert output(run(w, a=fails()), "j") == given_up(("a", ()))


@pytest.mark.parametrize(
    ("a", "carried"), [(fails(), frozenset({Cause("a")})), (leaves("output"), frozenset())]
)
def test_a_slot_that_accepts_absent_gets_absent(a: Code, carried: frozenset[Cause]) -> None:
    w = workflow(step("a"), step("j", a=wire("a", accepts=True)))
    assert output(run(w, a=a), "j") == Value("j(ABSENT)", carried)


def test_a_slot_that_accepts_absent_comes_before_its_default() -> None:
    w = workflow(step("a"), step("b"), step("j", a=wire("a", accepts=True, default=7), b="b"))
    assert inputs_of(run(w, a=leaves("output")), "j") == [{"a": ABSENT, "b": "b()"}]


def test_an_accepted_absence_counts_when_another_one_prunes() -> None:
    w = workflow(step("a"), step("b"), step("j", a=wire("a", accepts=True), b="b"))
    meaning = run(w, a=fails(), b=leaves("output"))
    assert output(meaning, "j") == Absent(LOST, frozenset((Cause("a"), Cause("b", slot="output"))))


@pytest.mark.parametrize("join", ["all", "any"])
def test_a_failed_input_prunes_whatever_the_slot_says(join: str) -> None:
    a, b = wire("a", accepts=True, default=7), wire("b", accepts=True)
    w = workflow(step("a"), step("b"), node("j", {"a": a, "b": b}, join=join))
    meaning = run(w, judge=answers(), keep_going=True, a=fails())
    assert output(meaning, "j") == given_up(("a", ()), kind=FAILED)


def test_a_merge_fires_once_with_what_has_a_value() -> None:
    w = workflow(
        step("a", outs=("then", "otherwise")),
        step("b", x="a.then"),
        step("c", x="a.otherwise"),
        merge("m", values=many("b", "c")),
    )
    assert value(run(w, a=gives(otherwise=1)), "m") == "m([c(1)])"


def test_a_merge_gets_default_or_absent_for_a_missing_slot() -> None:
    w = workflow(
        step("a"), step("b"), step("c"), merge("m", a="a", b=wire("b", default=7), c=wire("c"))
    )
    meaning = run(w, a=leaves("output"), b=leaves("output"))
    assert inputs_of(meaning, "m") == [{"a": ABSENT, "b": DEFAULT, "c": "c()"}]


def test_a_merge_carries_the_losses_it_survived() -> None:
    w = workflow(step("a"), step("b"), merge("m", values=many("a", "b")))
    assert output(run(w, a=fails()), "m") == Value("m([b()])", frozenset({Cause("a")}))


def test_a_merge_without_any_value_is_pruned() -> None:
    w = workflow(step("a"), step("b"), merge("m", values=many("a", "b"), more=wire("a", default=1)))
    meaning = run(w, a=leaves("output"), b=leaves("output"))
    assert output(meaning, "m") == Absent(
        NOT_TAKEN, frozenset((Cause("a", slot="output"), Cause("b", slot="output")))
    )


def test_a_plain_slot_of_a_merge_takes_the_first_value_in_edge_order() -> None:
    w = workflow(step("a"), step("b"), step("c"), merge("m", x=wire("a", "b", "c")))
    assert value(run(w, a=leaves("output")), "m") == "m(b())"


def test_many_is_a_list_in_edge_order_without_branches_not_taken() -> None:
    w = workflow(step("a"), step("b"), step("c"), step("j", x=many("c", "b", "a")))
    assert value(run(w, b=leaves("output")), "j") == "j([c(),a()])"


def test_many_joins_by_lineage_and_broadcasts() -> None:
    w = workflow(step("s"), fan("n"), step("j", x=many("s", "n")))
    assert run(w, n=yields(0, 1)).slots["j", "output"][1,] == Value("j([s(),1])")


def test_a_loss_prunes_many() -> None:
    w = workflow(step("a"), step("b"), step("j", x=many("a", "b")))
    assert output(run(w, a=fails()), "j") == given_up(("a", ()))


def test_many_that_accepts_absent_survives_a_loss() -> None:
    w = workflow(step("a"), step("b"), step("j", x=many("a", "b", accepts=True)))
    assert output(run(w, a=fails()), "j") == Value("j([b()])", frozenset({Cause("a")}))
    assert inputs_of(run(w, a=fails(), b=leaves("output")), "j") == [{"x": ABSENT}]


def test_many_of_branches_not_taken_counts_as_one_absence() -> None:
    w = workflow(step("a"), step("b"), step("c"), step("j", x=many("a", "b", default=()), c="c"))
    meaning = run(w, a=leaves("output"), b=leaves("output"))
    assert inputs_of(meaning, "j") == [{"c": "c()", "x": DEFAULT}]


def test_a_broadcast_in_many_does_not_wake_a_default() -> None:
    w = workflow(
        step("s"),
        fan("n"),
        step("a", x="n"),
        step("j", a=wire("a", default=7), x=many("s", "a")),
    )
    assert run(w, n=yields(0), a=leaves("output")).slots["j", "output"] == {(0,): branch("a")}


def test_a_field_of_an_output_is_wired_by_name() -> None:
    w = workflow(node("a", {}, parts={"url": "output"}), step("j", x="a.url"))
    assert value(run(w, a=gives(output={"url": "u"})), "j") == "j(u)"
    assert output(run(w, a=leaves("output")), "j") == branch("a")


# ── Fanning out and in ───────────────────────────────────────────────────────────────────


def test_a_slot_that_is_missing_in_a_frame_is_not_taken() -> None:
    w = workflow(fan("n", frames=("l", "r")), step("a", x="n.l"), step("b", x="n.r"))
    meaning = run(w, n=yields({"l": 0, "r": 1}, {"l": 2}))
    assert meaning.closings["n", ()] == Closing(2)
    assert meaning.slots["b", "output"] == {(0,): Value("b(1)"), (1,): branch("n", "r")}


def test_scalar_slots_of_a_fan_out_settle_in_its_own_scope() -> None:
    w = workflow(fan("n", outs=("total",)), step("j", x="n", t="n.total"))
    meaning = run(w, n=yields("a", "b", total=2))
    assert meaning.slots["j", "output"] == {(0,): Value("j(2,a)"), (1,): Value("j(2,b)")}


def test_streaming_in_and_out_opens_a_new_root() -> None:
    w = workflow(
        fan("n"), fan("pairs", items=stream("n")), step("f", x="pairs"), step("c", x=collect("f"))
    )

    def pairs(at: At) -> Running:
        yield from reads("items", 2)(at)  # type: ignore[misc]
        yield from yields("first two")(at)  # type: ignore[misc]
        yield from reads("items")(at)  # type: ignore[misc]
        yield from yields("the rest")(at)  # type: ignore[misc]
        return {}

    meaning = run(w, n=yields(0, 1, 2), pairs=pairs)
    assert meaning.closings == {("n", ()): Closing(3), ("pairs", ()): Closing(2)}
    assert value(meaning, "c") == "c([f(first two),f(the rest)])"


def test_a_collecting_slot_takes_one_list_a_parent() -> None:
    w = workflow(fan("n"), fan("m", x="n"), step("f", x="m"), step("c", n="n", x=collect("f")))

    def inner(at: At) -> Running:
        return yields(*range(at.lineage[0]))(at)  # type: ignore[return-value]

    meaning = run(w, n=yields("a", "b", "c"), m=inner)
    assert inputs_of(meaning, "c") == [
        {"n": "a", "x": Listed()},
        {"n": "b", "x": Listed(("f(0)",), (0,))},
        {"n": "c", "x": Listed(("f(0)", "f(1)"), (0, 1))},
    ]


def test_a_list_is_broadcast_to_items_of_another_fan_out() -> None:
    w = workflow(fan("n"), fan("m"), step("j", x="m", all=collect("n")))
    meaning = run(w, n=yields(1, 2), m=yields("a", "b"))
    assert meaning.slots["j", "output"][1,] == Value("j([1,2],b)")


def test_several_edges_collect_in_item_then_edge_order() -> None:
    w = workflow(fan("n"), step("a", x="n"), step("b", x="n"), step("c", x=collect("b", "a")))
    meaning = run(w, n=yields(0, 1), a=leaves("output", (0,)))
    assert inputs_of(meaning, "c") == [{"x": Listed(("b(0)", "b(1)", "a(1)"), (0, 1, 1))}]


def test_a_list_has_gaps_and_losses_and_carries_the_causes() -> None:
    w = workflow(fan("n"), step("a", x="n"), step("f", x="a"), step("c", x=collect("f")))
    meaning = run(w, n=yields(0, 1, 2, 3), a=leaves("output", (2,)), f=fails((1,)))
    assert inputs_of(meaning, "c") == [
        {"x": Listed(("f(a(0))", "f(a(3))"), (0, 3), ((1, frozenset({Cause("f", (1,))})),))}
    ]
    assert output(meaning, "c") == Value("c([f(a(0)),f(a(3))])", frozenset({Cause("f", (1,))}))


def test_one_failed_item_prunes_the_collector() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("c", x=collect("f", accepts=True)))
    meaning = run(w, judge=answers(), keep_going=True, n=yields(0, 1), f=fails((1,)))
    assert meaning.slots["f", "output"][0,] == Value("f(0)")
    assert output(meaning, "c") == given_up(("f", (1,)), kind=FAILED)


def test_a_reader_gets_items_in_order_and_carries_the_losses_it_read() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("r", items=stream("f")))
    meaning = run(w, n=yields(*range(4)), f=fails((1,), (3,)), r=reads("items"))
    assert inputs_of(meaning, "r") == [{"items": STREAM}]
    lost = frozenset({Cause("f", (1,)), Cause("f", (3,))})
    assert output(meaning, "r") == Value("r(f(0),f(2))", lost)
    assert accounts(w, meaning).exits["n", edge_number(1)] == {(): {"delivered": 2, "lost": 2}}


def test_an_empty_list_carries_what_its_fan_out_survived() -> None:
    w = workflow(
        fan("n"),
        step("f", x="n"),
        fan("m", items=stream("f")),
        step("c", x=collect("m")),
    )
    meaning = run(w, n=yields(0), f=fails(), m=reads("items"))
    assert meaning.closings["m", ()] == Closing(0)
    assert output(meaning, "c") == Value("c([])", frozenset({Cause("f", (0,))}))


def test_a_reader_that_returns_early_has_left_and_losses_stay_losses() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("r", items=stream("f")), step("g", x="n"))
    meaning = run(w, n=yields(*range(5)), f=fails((0,), (3,)), r=reads("items", 2))
    assert output(meaning, "r") == Value("r(f(1),f(2))", frozenset({Cause("f", (0,))}))
    assert accounts(w, meaning).exits["n", edge_number(1)] == {
        (): {"delivered": 2, "lost": 2, "left": 1}
    }


def test_a_reader_that_dies_loses_what_it_has_not_read() -> None:
    w = workflow(fan("n"), step("r", items=stream("n")))
    meaning = run(w, n=yields(*range(4)), r=reads("items", 3, then=Broken()))
    assert [e.allowed for e in meaning.escalations] == [{Action.END_STREAM, Action.FAIL}]
    assert output(meaning, "r") == given_up(("r", ()))
    ledger = accounts(w, meaning)
    assert ledger.exits["n", edge_number(0)] == {(): {"delivered": 3, "lost": 1}}
    assert ledger.charged["n", edge_number(0)] == {Cause("r"): 1}
    assert meaning.counts("r") == {"ended early": 1}


def test_a_pruned_reader_loses_everything() -> None:
    w = workflow(fan("n"), step("a"), step("r", items=stream("n"), a="a"))
    meaning = run(w, n=yields(0, 1), a=fails())
    assert accounts(w, meaning).exits["n", edge_number(0)] == {(): {"lost": 2}}
    assert output(meaning, "r") == given_up(("a", ()))


def test_a_running_reader_is_cancelled_by_a_failed_item() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("r", items=stream("f")))
    meaning = run(
        w, judge=answers(), keep_going=True, n=yields(0, 1, 2), f=fails((1,)), r=reads("items")
    )
    assert output(meaning, "r") == given_up(("f", (1,)), kind=FAILED)
    assert meaning.counts("r") == {"cancelled": 1}
    assert accounts(w, meaning).exits["n", edge_number(1)] == {(): {"delivered": 1, "failed": 2}}


def test_a_failed_item_may_cancel_a_reader_before_its_turn() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("r", items=stream("f")))

    def ended(choices: Choices | None) -> Meaning:
        return run(
            w,
            judge=answers(),
            keep_going=True,
            choices=choices,
            n=yields(0, 1, 2),
            f=fails((2,)),
            r=reads("items", 1),
        )

    assert output(ended(None), "r") == Value("r(f(0))")
    for steps, word in ((0, "cancelled"), (-1, "pruned")):
        early = ended(Choices(cancels={("r", ()): steps}))
        assert output(early, "r") == given_up(("f", (2,)), kind=FAILED)
        assert early.counts("r") == {word: 1}


def test_a_reader_under_items_reads_its_own_parents_stream() -> None:
    w = workflow(fan("n"), fan("m", x="n"), step("r", items=stream("m"), n="n"))
    meaning = run(w, n=yields("a", "b"), m=yields(0, 1), r=reads("items"))
    assert meaning.slots["r", "output"][1,] == Value("r(b,0,1)")


def test_a_fan_out_nobody_reads_any_more_is_cut_short() -> None:
    w = workflow(fan("n", outs=("total",)), step("r", items=stream("n")))
    choices = Choices(cuts={("n", ()): Cut(steps=3, n=2)})
    meaning = run(w, choices=choices, n=yields(*range(9), total=9), r=reads("items", 1))
    assert meaning.closings["n", ()] == Closing(2)
    assert meaning.counts("n") == {"succeeded": 1}
    assert output(meaning, "n", "total") == branch("n", "total")
    assert unlawful_cuts(w, meaning, choices) == []


def test_no_fan_out_may_be_cut_short_while_somebody_takes_its_items() -> None:
    w = workflow(
        fan("n"), step("r", items=stream("n")), step("f", x="n"), step("c", x=collect("f"))
    )
    choices = Choices(cuts={("n", ()): Cut(steps=2, n=2)})
    meaning = run(w, choices=choices, n=yields(*range(9)), r=reads("items", 1))
    assert unlawful_cuts(w, meaning, choices) == ["n under (): ('edge', '2') has not left"]


# ── Verdicts ─────────────────────────────────────────────────────────────────────────────


def test_a_skip_loses_all_slots() -> None:
    w = workflow(step("a", outs=("x", "y")))
    meaning = run(w, a=fails())
    assert output(meaning, "a", "x") == output(meaning, "a", "y") == given_up(("a", ()))
    assert meaning.counts("a") == {"skipped": 1}


def test_a_skipped_fan_out_prunes_what_collects_below() -> None:
    w = workflow(
        fan("n", outs=("total",)),
        step("f", x="n"),
        step("c", x=collect("f")),
        step("d", x=collect("f", accepts=True)),
        step("r", x=stream("f")),
    )
    meaning = run(w, n=fails(), r=reads("x"))
    assert inputs_of(meaning, "d") == [{"x": Listed(losses=((-1, frozenset({Cause("n")})),))}]
    assert meaning.closings["n", ()] == Closing(0, given_up(("n", ())))
    assert meaning.slots.get(("f", "output"), {}) == {}
    assert output(meaning, "c") == output(meaning, "r") == given_up(("n", ()))
    assert output(meaning, "n", "total") == given_up(("n", ()))
    assert output(meaning, "d") == Value("d([])", frozenset({Cause("n")}))


def test_a_fan_out_not_taken_is_an_absent_input_not_taken() -> None:
    w = workflow(
        step("a"),
        fan("n", x="a"),
        step("b"),
        step("c", x=collect("n", default=()), b="b"),
        step("d", x=collect("n", accepts=True)),
    )
    meaning = run(w, a=leaves("output"))
    assert meaning.closings["n", ()] == Closing(0, branch("a"))
    assert inputs_of(meaning, "c") == [{"b": "b()", "x": DEFAULT}]
    assert inputs_of(meaning, "d") == [{"x": ABSENT}]


def test_a_skipped_item_closes_the_scopes_it_would_have_opened() -> None:
    w = workflow(
        fan("n"),
        step("f", x="n"),
        fan("m", x="f"),
        step("c", x=collect("m")),
        step("d", y=collect("c")),
    )
    meaning = run(w, n=yields("a", "b"), f=fails((0,)), m=yields(1))
    assert meaning.closings["m", (0,)] == Closing(0, given_up(("f", (0,))))
    assert inputs_of(meaning, "d") == [
        {"y": Listed(("c([1])",), (1,), ((0, frozenset({Cause("f", (0,))})),))}
    ]


def test_end_stream_keeps_what_was_emitted() -> None:
    w = workflow(fan("n", outs=("total",)), step("f", x="n"), step("c", x=collect("f")))
    meaning = run(w, n=yields(0, 1, then=Broken(), total=2))
    assert [(e.allowed, e.emitted) for e in meaning.escalations] == [
        (frozenset((Action.END_STREAM, Action.FAIL)), 2)
    ]
    assert meaning.closings["n", ()] == Closing(2, given_up(("n", ())))
    assert output(meaning, "c") == Value("c([f(0),f(1)])", frozenset({Cause("n")}))
    assert output(meaning, "n", "total") == given_up(("n", ()))
    assert meaning.counts("n") == {"ended early": 1}


def test_a_reading_fan_out_ended_before_its_first_item_never_opened() -> None:
    w = workflow(fan("n"), fan("m", items=stream("n")), step("c", x=collect("m")))
    meaning = run(w, n=yields(0, 1), m=reads("items", 1, then=Broken()))
    assert meaning.closings["m", ()] == Closing(0, given_up(("m", ())))
    assert output(meaning, "c") == given_up(("m", ()))


def test_a_repair_gives_values_that_carry_it() -> None:
    w = workflow(step("a", outs=("x", "y")), step("j", a=wire("a.x"), b=wire("a.y", accepts=True)))
    meaning = run(
        w,
        judge=answers(a=Substitute({"x": "mended", "y": ABSENT})),
        a=fails(broken=lambda: Broken(has_candidate=True, checkable=True)),
    )
    assert output(meaning, "a", "x") == Value("mended", frozenset({Cause("a")}))
    assert output(meaning, "a", "y") == branch("a", "y")
    assert output(meaning, "j") == Value("j(mended,ABSENT)", frozenset({Cause("a")}))
    assert meaning.counts("a") == {"repaired": 1}


def test_what_a_value_carries_does_not_change_an_absence() -> None:
    w = workflow(step("a"), step("b"), step("j", a="a", b="b"))
    meaning = run(
        w,
        judge=answers(a=Substitute({"output": 1})),
        a=fails(broken=lambda: Broken(has_candidate=True, checkable=True)),
        b=leaves("output"),
    )
    assert output(meaning, "j") == branch("b")


def test_a_skip_is_its_own_only_cause() -> None:
    w = workflow(step("a"), step("j", a=wire("a", accepts=True)))
    meaning = run(w, a=fails(), j=fails())
    assert output(meaning, "j") == given_up(("j", ()))
    assert [e.caused_by for e in meaning.escalations] == [frozenset(), {Cause("a")}]


def test_a_retry_runs_again_with_equal_inputs() -> None:
    w = workflow(fan("n"), safe("f", x="n"))
    meaning = run(w, judge=answers(f=Retry()), n=yields(0), f=fails(attempts=2))
    assert [i[1:] for i in meaning.invocations if i.node == "f"] == [
        ((0,), attempt, (("x", 0),)) for attempt in (1, 2, 3)
    ]
    assert meaning.slots["f", "output"] == {(0,): Value("f(0)")}
    assert meaning.counts("f") == {"succeeded": 1}


def test_a_fan_out_is_run_again_only_if_nothing_came_out() -> None:
    w = workflow(node("n", {}, frames=("output",), outs=(), retry_safe=True))
    meaning = run(w, judge=answers(n=Retry()), n=fails(attempts=1, code=yields("a", "b")))
    assert meaning.closings["n", ()] == Closing(2)
    meaning = run(w, judge=answers(n=Retry()), n=yields("a", then=Broken()))
    assert meaning.stopped == ("n", ())


@pytest.mark.parametrize(
    ("broken", "actions"),
    [
        (Broken(), "retry skip fail"),
        (Broken(cost_micro_usd=1), "skip fail"),
        (Broken(cost_known=False), "skip fail"),
        (Broken(assets=1), "skip fail"),
        (Broken(copied=False), "skip fail"),
        (Broken(unknown=True), "skip fail"),
        (Broken(retry_after_s=301.0), "skip fail"),
        (Broken(bad_input=True, has_candidate=True, checkable=True), "skip fail"),
        (Broken(has_candidate=True), "retry skip fail"),
        (Broken(has_candidate=True, checkable=True), "retry skip fail substitute"),
    ],
)
def test_allowed_actions_of_a_plain_invocation(broken: Broken, actions: str) -> None:
    """supervision.md §1, first row and its notes."""
    meaning = run(workflow(safe("a")), a=fails(broken=lambda: broken))
    assert meaning.escalations[0].allowed == set(actions.split())


def test_retries_are_not_offered_when_used_up_and_refusals_become_fail() -> None:
    meaning = run(workflow(safe("a")), judge=answers(a=Retry()), a=fails())
    assert [Action.RETRY in e.allowed for e in meaning.escalations] == [True, True, False]
    assert meaning.stopped == ("a", ())


@pytest.mark.parametrize("verdict", [Substitute({"output": 1}), EndStream()])
def test_a_verdict_that_is_not_allowed_becomes_fail(verdict: Substitute | EndStream) -> None:
    assert run(workflow(step("a")), judge=answers(a=verdict), a=fails()).stopped == ("a", ())


def test_keep_going_prunes_what_depends_on_a_failure_and_no_more() -> None:
    w = workflow(fan("n"), step("f", x="n"), step("g", x="f"), step("c", x=collect("g")), step("d"))
    meaning = run(w, judge=answers(), keep_going=True, n=yields(0, then=Broken()))
    assert meaning.closings["n", ()] == Closing(1, given_up(("n", ()), kind=FAILED))
    assert meaning.slots["g", "output"] == {(0,): Value("g(f(0))")}
    assert output(meaning, "c") == given_up(("n", ()), kind=FAILED)
    assert value(meaning, "d") == "d()"
    assert meaning.stopped is None


# ── The ledger ───────────────────────────────────────────────────────────────────────────


def test_the_ledger_of_a_join_after_a_skip() -> None:
    """H02: eight pictures, the caption of the fourth is given up."""
    w = workflow(
        fan("pictures"),
        step("thumb", n="pictures"),
        step("caption", n="pictures"),
        step("join", a="thumb", b="caption"),
        step("album", x=collect("join")),
    )
    meaning = run(w, pictures=yields(*range(8)), caption=fails((3,)))
    ledger = accounts(w, meaning)
    assert len(inputs_of(meaning, "join")) == 7
    assert inputs_of(meaning, "album")[0]["x"].indices == (0, 1, 2, 4, 5, 6, 7)  # type: ignore[attr-defined]
    assert ledger.exits == {
        ("run", ("node", "pictures")): {(): {"delivered": 1}},
        ("run", ("node", "album")): {(): {"delivered": 1}},
        ("pictures", edge_number(4)): {(): {"delivered": 7, "lost": 1}},
    }
    assert ledger.charged["pictures", edge_number(4)] == {Cause("caption", (3,)): 1}
    assert ledger.lost["pictures"] == {(3,): Cause("caption", (3,))}


def test_a_lost_item_is_charged_to_the_first_loss_on_its_way() -> None:
    w = workflow(fan("n"), step("a", x="n"), step("b", x="n"), step("j", b="b", a="a"))
    meaning = run(w, n=yields(0), a=fails(), b=fails())
    ledger = accounts(w, meaning)
    assert ledger.charged["n", ("node", "j")] == {Cause("a", (0,)): 1}


def test_a_broadcast_is_an_exit_of_the_shorter_scope() -> None:
    w = workflow(
        fan("n"),
        fan("m", x="n"),
        step("j", x="m", n="n"),
        step("s", x="inputs.x"),
        step("t", x="inputs.x", n="n"),
        inputs=["x"],
    )
    meaning = run(w, inputs={"x": 1}, n=yields(0, 1), m=yields("a"))
    ledger = accounts(w, meaning)
    assert ledger.exits["n", edge_number(2)] == {(): {"delivered": 2}}
    assert ledger.exits["m", ("node", "j")] == {(0,): {"delivered": 1}, (1,): {"delivered": 1}}
    assert ("run", edge_number(3)) not in ledger.exits
    assert ledger.exits["run", edge_number(4)] == {(): {"delivered": 1}}


def test_a_stream_slot_without_edges_is_an_exit() -> None:
    w = workflow(fan("n", frames=("record", "rejected")), step("f", x="n.record"))
    meaning = run(w, n=yields({"record": 1}, {"rejected": 2}, {"record": 3}))
    assert accounts(w, meaning).exits["n", ("slot", "n", "rejected")] == {
        (): {"delivered": 1, "not_taken": 2}
    }


def test_a_reader_that_asks_two_streams_gets_each_in_order() -> None:
    w = workflow(fan("n"), fan("m"), step("r", a=stream("n"), b=stream("m")))

    def both(at: At) -> Running:
        got = []
        for slot in ("a", "b", "a", "b"):
            got.append((yield Next(slot)))
        return {"output": made(at, *got)}

    meaning = run(w, n=yields(0, 1), m=yields(2), r=both)
    assert value(meaning, "r") == "r([0,0],[0,2],[1,1],END)"
