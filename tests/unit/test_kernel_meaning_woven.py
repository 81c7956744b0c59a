"""Pairs, loops and control events: small cases of whole kinds, the kernel against the reference.

kernel.md §1, the rows of `Zip`, `Cross`, `Loop` and of control edges. Each case is played in many
orders, and what it means is also said by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from reference.acting import Act, Case, Fault, Frame, Hush, Read, Tell, codes, judge
from reference.comparing import differences, excess
from reference.drive import Pace, drive
from reference.interpreter import interpret
from reference.small import (
    Node,
    Wire,
    built_in,
    collect,
    controlling,
    crossed,
    fan,
    loop,
    many,
    safe,
    step,
    stream,
    wire,
    workflow,
    zipped,
)
from reference.translate import Run
from reference.words import Absent, Cause, Closing, Kind, Meaning, Value

from nightwarden.kernel.effects import Status
from nightwarden.verdict import Action

ABSENT = Act(absent=frozenset({"output"}))
BREAKS = Act(fault=Fault(after=0))
FAILS = Act(fault=Fault(after=0), answers=(Action.FAIL,))
MENDED = Act(fault=Fault(after=0, has_candidate=True), answers=(Action.SUBSTITUTE,))
YES, NO = Act(says=True), Act(says=False)
PACES = [
    Pace(order=o, seed=s, races=True, together=s % 3)
    for o in ("first", "last", "any")
    for s in range(6)
]
PACED = pytest.mark.parametrize("pace", PACES)


def frames(n: int, *, then: Fault | None = None, answers: Sequence[Action] = ()) -> Act:
    """So many items; then perhaps a failure, given up if nothing else is answered."""
    return Act(script=(Frame(),) * n, fault=then, answers=tuple(answers))


def cut_off(n: int) -> Act:
    """So many items, then an early end."""
    return frames(n, then=Fault(after=n))


def by_hand(*nodes: Node, **acts: Act | tuple[Act, ...]) -> Case:
    full = {n.spec.id: acts.get(n.spec.id, Act()) for n in nodes}
    return Case(workflow(*nodes), {k: a if isinstance(a, tuple) else (a,) for k, a in full.items()})


def meaning(case: Case, run: Run, *, keep_going: bool) -> Meaning:
    return interpret(
        case.workflow,
        case.inputs,
        codes(case),
        judge(case),
        keep_going=keep_going,
        choices=run.choices,
    )


def check(case: Case, pace: Pace, *, keep_going: bool = False) -> Run:
    run = drive(case, pace, keep_going=keep_going)
    assert differences(case, run, meaning(case, run, keep_going=keep_going)) == []
    return run


def lost(*names: str, kind: Kind = Kind.LOST) -> Absent:
    return Absent(kind, frozenset(Cause(name) for name in names))


# ── pairs ────────────────────────────────────────────────────────────────────────────────


@PACED
@pytest.mark.parametrize("pairing", [zipped, crossed])
def test_a_failed_item_fails_its_own_pairs_and_no_others(pace: Pace, pairing: object) -> None:
    """kernel.md §1, Zip: a pair is absent if either side is; §3: independent work goes on."""
    assert callable(pairing)
    case = by_hand(
        fan("a"),
        fan("b"),
        step("f", x="a"),
        pairing("p", "f", "b"),
        step("use", x="p.index"),
        a=frames(2),
        b=frames(2),
        f=(Act(), FAILS),
    )
    run = check(case, pace, keep_going=True)
    assert run.status is Status.FAILED
    kinds = [type(s) for _, s in sorted(run.captures["use", "output"].items())]
    good = 1 if pairing is zipped else 2
    assert kinds == [Value] * good + [Absent] * (len(kinds) - good)


@PACED
def test_too_many_pairs_have_the_failure_behind_them_that_reached_a_reader_in_time(
    pace: Pace,
) -> None:
    """kernel.md §3: of several failures in its stream, a reader knows those that came in time."""
    case = by_hand(
        fan("outer"),
        fan("a", x="outer"),
        step("f", x="a"),
        step("read", x=stream("f")),
        fan("b"),
        crossed("p", "read", "b", limit=2),
        step("use", x="p.index"),
        outer=frames(1),
        a=frames(2, then=Fault(after=2), answers=[Action.FAIL]),
        f=(FAILS, Act()),
        b=frames(3),
    )
    check(case, pace, keep_going=True)


@PACED
def test_a_side_that_fails_ends_the_pairs_where_it_ended(pace: Pace) -> None:
    """kernel.md §3: a fan-out that fails after k items settles Closed(k, failed)."""
    failing = frames(1, then=Fault(after=1), answers=[Action.FAIL])
    case = by_hand(
        fan("a"),
        fan("b"),
        zipped("p", "a", "b"),
        step("c", x=collect("p.index")),
        step("use", x="p.left"),
        a=failing,
        b=frames(3),
    )
    run = check(case, pace, keep_going=True)
    assert run.closings["p", ()] == Closing(1, lost("a", kind=Kind.FAILED))
    assert isinstance(run.captures["use", "output"][(0,)], Value)
    assert run.captures["c", "output"][()] == lost("a", kind=Kind.FAILED)


@PACED
def test_pairs_nobody_reads_on_are_cut_short_and_so_are_their_sides(pace: Pace) -> None:
    """kernel.md §1: every exit of a root has left, so it is closed at its next yield."""
    case = by_hand(
        fan("a"),
        fan("b"),
        zipped("p", "a", "b"),
        step("r", items=stream("p.left")),
        step("s", items=stream("p.right")),
        step("t", items=stream("p.index")),
        a=frames(30),
        b=frames(30),
        **dict.fromkeys("rst", Act(script=(Read("items", 1),))),
    )
    run = check(case, Pace(pace.order, pace.seed, window=2, races=True))
    assert run.status is Status.COMPLETED
    assert 1 <= run.closings["p", ()].n < 30
    assert run.closings["p", ()].cause is None


@PACED
def test_of_two_sides_that_end_early_together_both_are_the_cause(pace: Pace) -> None:
    """kernel.md §1: causes never hang on the order of arrival."""
    case = by_hand(fan("a"), fan("b"), zipped("p", "a", "b"), a=cut_off(2), b=cut_off(2))
    assert check(case, pace).closings["p", ()] == Closing(2, lost("a", "b"))


@PACED
def test_of_two_sides_that_end_early_apart_the_shorter_is_the_cause(pace: Pace) -> None:
    case = by_hand(fan("a"), fan("b"), zipped("p", "a", "b"), a=cut_off(2), b=cut_off(1))
    assert check(case, pace).closings["p", ()] == Closing(1, lost("b"))


@PACED
def test_a_side_that_ended_early_and_still_has_more_is_unequal(pace: Pace) -> None:
    """The surplus of the side that ended by itself would be missing; here it is the other one's."""
    case = by_hand(fan("a"), fan("b"), zipped("p", "a", "b"), a=cut_off(2), b=frames(1))
    run = check(case, pace)
    assert [e.node for e in run.escalations] == ["a", "p"] or run.escalations[-1].node in ("a", "p")
    assert run.closings["p", ()] == Closing(1, lost("p"))


@PACED
def test_unequal_sides_without_a_pair_may_be_skipped_like_any_silent_fan_out(pace: Pace) -> None:
    """kernel.md §1: "with a fan-out's actions"; supervision.md §1, nothing emitted yet."""
    case = by_hand(
        fan("a"), fan("b"), zipped("p", "a", "b"), step("c", x=collect("p.index")), b=frames(2)
    )
    (escalated,) = check(case, pace).escalations
    assert escalated.allowed == {Action.SKIP, Action.FAIL}


@PACED
@pytest.mark.parametrize("longer", ["a", "b"])
def test_what_a_side_lived_through_is_named_when_the_sides_are_unequal(
    pace: Pace, longer: str
) -> None:
    """kernel.md §1: a later failure's escalation lists the causes its inputs carry."""
    case = by_hand(
        step("m"),
        step("k"),
        fan("a", x="m"),
        fan("b", x="k"),
        zipped("p", "a", "b"),
        m=MENDED,
        k=MENDED,
        a=frames(2 + (longer == "a")),
        b=frames(2 + (longer == "b")),
    )
    run = check(case, pace)
    assert [e.caused_by for e in run.escalations] == [set(), set(), {Cause("m"), Cause("k")}]


@PACED
@pytest.mark.parametrize("pairing", [zipped, crossed])
def test_an_empty_list_or_stream_of_pairs_carries_what_its_sides_lived_through(
    pace: Pace, pairing: object
) -> None:
    """As with any fan-out: that there were no more items is a result too."""
    assert callable(pairing)
    case = by_hand(
        step("m"),
        fan("a", x="m"),
        fan("b"),
        pairing("p", "a", "b"),
        step("c", x=collect("p.index")),
        step("r", x=stream("p.index")),
        m=MENDED,
        r=Act(script=(Read("x"),)),
    )
    run = check(case, pace)
    for name in ("c", "r"):
        settled = run.captures[name, "output"][()]
        assert isinstance(settled, Value)
        assert settled.causes == {Cause("m")}


@PACED
@pytest.mark.parametrize("type_name", ["flow.Zip", "flow.Cross"])
def test_several_edges_into_a_side_are_one_side_in_item_then_edge_order(
    pace: Pace, type_name: str
) -> None:
    """As in any reading slot."""
    both = wire("b", "s")
    case = by_hand(
        fan("a"),
        fan("b"),
        step("s", x="b"),
        built_in("p", type_name, {"left": "a", "right": both}),
        step("use", x="p.right"),
        a=frames(4),
        b=frames(2),
    )
    run = check(case, pace)
    n = 4 if type_name == "flow.Zip" else 16
    assert run.closings["p", ()] == Closing(n)
    made = [dict(i.inputs)["x"] for i in sorted(run.invocations) if i.node == "use"]
    assert [str(v).partition(".")[0] for v in made[:4]] == ["b", "s", "b", "s"]


@PACED
def test_each_with_none_is_none_however_early_the_other_side_ended(pace: Pace) -> None:
    case = by_hand(fan("a"), fan("b"), crossed("p", "a", "b"), a=cut_off(2))
    assert check(case, pace).closings["p", ()] == Closing(0)


@PACED
def test_a_limit_may_be_wired_like_any_input(pace: Pace) -> None:
    case = by_hand(
        loop("two", {"next": "two.value"}, initial=2, max_iterations=1),
        fan("a"),
        fan("b"),
        built_in("p", "flow.Cross", {"left": "a", "right": "b", "limit": "two.done"}),
        a=frames(2),
        b=frames(2),
    )
    run = check(case, pace)
    assert run.closings["p", ()] == Closing(2, lost("p"))


# ── loops ────────────────────────────────────────────────────────────────────────────────


def left_by_a_branch(*more: Node, **acts: Act | tuple[Act, ...]) -> Case:
    """A loop whose second iteration takes a branch that leads out."""
    return by_hand(
        step("s"),
        loop("l", {"initial": "s", "next": "body"}),
        step("body", x="l.value"),
        *more,
        body=(Act(), ABSENT),
        **acts,
    )


@PACED
def test_a_loop_left_by_a_branch_says_by_which(pace: Pace) -> None:
    """kernel.md §1: Closed(k+1, cause), done Absent(cause)."""
    run = check(left_by_a_branch(step("end", x="l.done")), pace)
    branch = Absent(Kind.NOT_TAKEN, frozenset({Cause("body", (), "output")}))
    assert run.closings["l", ()] == Closing(2, branch)
    assert run.captures["end", "output"][()] == branch


@PACED
def test_what_a_loop_left_by_a_branch_cannot_be_paired_with_is_not_taken(pace: Pace) -> None:
    """kernel.md §1: a side ended early, the surplus goes to that cause."""
    case = left_by_a_branch(fan("n"), zipped("p", "l.value", "n"), n=frames(4))
    run = check(case, pace)
    assert run.closings["p", ()].n == 2
    assert run.report is not None
    (root,) = [r for r in run.report.roots if r.node_id == "n"]
    assert [(e.delivered, e.not_taken) for e in root.exits] == [(2, 2)]


@PACED
def test_a_repaired_condition_is_behind_what_comes_of_the_loop(pace: Pace) -> None:
    mended = Act(fault=Fault(after=0, has_candidate=True), answers=(Action.SUBSTITUTE,), says=False)
    case = by_hand(
        step("s"),
        loop("l", {"initial": "s", "next": "body", "condition": "again"}),
        step("body", x="l.value"),
        step("again", x="l.index"),
        step("end", x="l.done"),
        step("all", x=collect("l.value")),
        again=mended,
    )
    run = check(case, pace)
    for name in ("end", "all"):
        settled = run.captures[name, "output"][()]
        assert isinstance(settled, Value)
        assert settled.causes == {Cause("again", (0,))}


@PACED
def test_loops_in_loops_below_a_fan_out_end_each_for_itself(pace: Pace) -> None:
    """The inner loop is left by a loss in the second round of the first item only (act 4 of 5)."""
    case = by_hand(
        fan("n"),
        loop("o", {"initial": "n", "next": "i.done"}, max_iterations=2),
        loop("i", {"initial": "o.value", "next": "body", "condition": "again"}),
        step("body", x="i.value"),
        step("again", x="i.index"),
        step("end", x="o.done"),
        n=frames(2),
        body=(Act(), Act(), Act(), Act(), BREAKS),
        again=(YES, NO),
    )
    run = check(case, pace)
    assert run.status is Status.COMPLETED
    left = Absent(Kind.LOST, frozenset({Cause("body", (0, 1, 0))}))
    assert run.closings["o", (0,)] == Closing(2, left)
    assert run.closings["o", (1,)] == Closing(2)


def test_loops_and_nothing_else_balance() -> None:
    """A run in which no step is ever called has an account like any other."""
    case = by_hand(
        loop("l", {"next": "l.value"}, initial=1, max_iterations=2),
        loop("k", {"initial": "l.index", "next": "k.index"}, max_iterations=2),
    )
    run = check(case, Pace())
    assert (run.status, run.invocations) == (Status.COMPLETED, [])


def problems(*nodes: Node) -> list[str]:
    """The rules that a workflow breaks."""
    try:
        workflow(*nodes)
    except AssertionError as refused:
        return sorted(found.rule for found in refused.args[0])
    return []


def test_loops_that_wait_for_each_other_s_end_are_refused() -> None:
    """kernel.md §1, Loop: no path from `done` into its body, through another loop or not."""
    both = problems(
        step("s"),
        loop("l", {"initial": "s", "next": "b"}),
        step("b", x="l.value", y="k.done"),
        loop("k", {"initial": "s", "next": "c"}),
        step("c", x="k.value", y="l.done"),
    )
    assert both == ["loop-exit-into-body"] * 2
    one = problems(
        step("s"),
        loop("l", {"initial": "s", "next": "b"}),
        step("b", x="l.value"),
        loop("k", {"initial": "s", "next": "c"}),
        step("c", x="k.value", y="l.done"),
    )
    assert one == []


@pytest.mark.parametrize("reads", [True, False])
def test_a_controlled_node_reads_no_stream(reads: bool) -> None:
    """kernel.md §1: a reader lies right above its stream, a controlled node below its events."""
    gathered = stream("n") if reads else collect("n")
    found = problems(fan("n"), controlling(step("c"), "tool"), step("tool", x=gathered))
    assert found == ["controlled-reader"] * reads


# ── control ──────────────────────────────────────────────────────────────────────────────


def told(*awaits: bool, target: str = "tool") -> Act:
    """An event each."""
    return Act(script=tuple(Tell(target, a) for a in awaits))


@PACED
def test_a_caller_is_released_when_what_it_called_ends_early(pace: Pace) -> None:
    """kernel.md §1: released on skip, prune, failure, stop; an early end leaves no answer."""
    case = by_hand(controlling(step("c"), "tool"), fan("tool"), c=told(True, True), tool=cut_off(1))
    run = check(case, pace)
    assert run.status is Status.COMPLETED
    assert [e.word for e in meaning(case, run, keep_going=False).endings.values()].count(
        "ended early"
    ) == 2


@PACED
def test_events_are_fewer_when_a_controller_was_given_up(pace: Pace) -> None:
    """kernel.md §1: Closed(n, cause) is how a root closes that ended early."""
    given_up = Act(script=(Tell("tool"), Tell("tool")), fault=Fault(after=2))
    case = by_hand(
        controlling(step("c"), "tool"),
        controlling(step("d"), "tool"),
        step("tool"),
        step("all", x=collect("tool")),
        c=given_up,
        d=told(False),
    )
    run = check(case, pace)
    assert run.closings["tool()", ()] == Closing(3, lost("c"))
    settled = run.captures["all", "output"][()]
    assert isinstance(settled, Value)
    assert settled.causes == {Cause("c")}


@PACED
def test_a_controller_that_fails_fails_what_gathers_its_events(pace: Pace) -> None:
    """kernel.md §3, keep going: its per-item work goes on, its collectors are pruned."""
    failing = Act(script=(Tell("tool"),), fault=Fault(after=1), answers=(Action.FAIL,))
    case = by_hand(
        controlling(step("c"), "tool"),
        step("tool"),
        step("use", x="tool"),
        step("all", x=collect("tool")),
        c=failing,
    )
    run = check(case, pace, keep_going=True)
    assert isinstance(run.captures["use", "output"][(0,)], Value)
    assert run.captures["all", "output"][()] == lost("c", kind=Kind.FAILED)


@PACED
def test_who_has_said_that_it_is_done_is_no_reason_for_fewer_events(pace: Pace) -> None:
    done = Act(script=(Tell("tool"), Hush("tool"), Tell("tool")), fault=Fault(after=3))
    case = by_hand(controlling(step("c"), "tool"), step("tool"), c=done)
    assert check(case, pace).closings["tool()", ()] == Closing(1)


@PACED
def test_no_events_because_of_a_loss_are_no_empty_list(pace: Pace) -> None:
    """kernel.md §1, Verdicts: an empty list would be an invented value."""
    case = by_hand(
        controlling(step("c"), "tool"),
        controlling(step("d"), "tool"),
        step("tool"),
        step("all", x=collect("tool")),
        c=BREAKS,
    )
    run = check(case, pace)
    assert run.closings["tool()", ()] == Closing(0, lost("c"))
    assert run.captures["all", "output"][()] == lost("c")


@PACED
def test_events_of_every_attempt_count_and_an_answer_finds_only_the_one_that_asked(
    pace: Pace,
) -> None:
    again = Act(
        script=(Tell("tool"), Tell("tool", awaits=True)),
        fault=Fault(attempts=1, after=1),
        answers=(Action.RETRY,),
    )
    case = by_hand(
        controlling(safe("c"), "tool"), controlling(step("d"), "tool"), step("tool"), c=again
    )
    assert check(case, pace).closings["tool()", ()] == Closing(3)


@PACED
def test_a_call_whose_target_waits_for_another_target_of_the_caller_is_refused(pace: Pace) -> None:
    """Never a hang: the list is there only when the caller has ended."""
    case = by_hand(
        controlling(step("c"), "one", "two"),
        step("one"),
        step("two", x=collect("one")),
        c=Act(script=(Tell("one", awaits=True), Tell("two", awaits=True), Tell("two"))),
    )
    run = check(case, pace)
    assert {at: c.n for (_, at), c in run.closings.items()} == {(): 1}
    assert len([i for i in run.invocations if i.node == "two"]) == 1


@PACED
def test_callers_that_would_wait_for_each_other_s_end_are_refused(pace: Pace) -> None:
    """Never a hang. Who asks after the other one has ended finds everything there."""
    case = by_hand(
        controlling(step("c"), "t"),
        controlling(step("d"), "u"),
        step("t", x="d"),
        step("u", x="c"),
        c=told(True, False, target="t"),
        d=told(True, False, target="u"),
    )
    run = drive(case, pace)
    assert run.status is Status.COMPLETED
    ran = [i.node for i in run.invocations]
    assert (ran.count("t"), ran.count("u")) in ((1, 1), (1, 2), (2, 1))


@PACED
def test_who_is_done_with_one_target_may_wait_for_what_becomes_of_it(pace: Pace) -> None:
    """No matter whether the list is there already when it is asked for."""
    case = by_hand(
        controlling(step("c"), "one", "two"),
        controlling(step("d"), "one"),
        step("one"),
        step("two", x=collect("one")),
        c=Act(script=(Tell("one"), Hush("one"), Tell("two", awaits=True))),
        d=told(False, target="one"),
    )
    run = check(case, pace)
    assert len([i for i in run.invocations if i.node == "two"]) == 1


@PACED
def test_a_loop_s_own_way_back_does_not_stand_between_a_caller_and_its_answer(pace: Pace) -> None:
    """What the target waits for belongs to this iteration, not to the next one."""
    case = by_hand(
        step("s"),
        loop("l", {"initial": "s", "next": "c"}, max_iterations=3),
        step("slow", x="l.value"),
        controlling(step("c", x="l.index"), "tool"),
        step("tool", x="slow"),
        c=told(True),
    )
    run = check(case, pace)
    assert {at: c.n for (name, at), c in run.closings.items() if name == "tool()"} == {
        (0,): 1,
        (1,): 1,
        (2,): 1,
    }


@PACED
@pytest.mark.parametrize("end", [wire("l.done"), collect("l.value"), collect("inside")])
def test_a_call_whose_target_waits_for_the_end_of_the_loop_is_refused(
    pace: Pace, end: Wire
) -> None:
    case = by_hand(
        step("s"),
        loop("l", {"initial": "s", "next": "c"}, max_iterations=2),
        step("inside", x="l.value"),
        controlling(step("c", x="l.index"), "tool"),
        step("tool", x=end),
        c=told(True, False),
    )
    run = check(case, pace)
    assert len([i for i in run.invocations if i.node == "tool"]) == 2


@PACED
def test_a_window_gives_way_though_callers_hold_all_places_of_their_node(pace: Pace) -> None:
    """kernel.md §2: what waits for an answer is not at work, nor is what is queued behind it.

    The answer waits for the end of a fan-out that is paused, because its items wait for it too.
    """
    case = by_hand(
        fan("n", outs=("total",)),
        step("both", x="n", y="n.total"),
        fan("k"),
        controlling(step("c", x="k"), "tool"),
        step("tool", x="n.total"),
        n=frames(5),
        k=frames(3),
        c=told(True),
    )
    run = check(case, Pace(pace.order, pace.seed, window=2))
    assert run.status is Status.COMPLETED
    assert run.widened


@pytest.mark.parametrize("after", range(10))
@pytest.mark.parametrize("how", ["cancel", "suspend"])
def test_a_run_that_stops_waits_for_no_answers(after: int, how: str) -> None:
    case = by_hand(
        fan("n"),
        controlling(step("c", x="n"), "tool"),
        step("tool", x="n"),
        n=frames(2),
        c=told(True, False, True),
    )
    run = drive(case, Pace(order="any", seed=after, interrupt=how, after=after))
    assert excess(case, run, meaning(case, run, keep_going=False)) == []


@PACED
def test_a_default_counts_beside_a_control_event(pace: Pace) -> None:
    """The event lies at the full scope of the node; what is wired to it is broadcast."""
    tool = step("tool", x=wire("a", default="the default"), y=many("b"))
    case = by_hand(
        step("a"), step("b"), controlling(step("c"), "tool"), tool, a=ABSENT, c=told(True)
    )
    run = check(case, pace)
    assert len([i for i in run.invocations if i.node == "tool"]) == 1
