"""The bounds around every supervisor: supervision.md §3 (stickiness) and §5."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from nightwarden.errors import RunError, SupervisionError
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.runtime.bounded import Bounded, BoundsState, bounded
from nightwarden.runtime.supervision import Bounds, Supervisor, SupervisorBase
from nightwarden.runtime.supervisors import FailClosed
from nightwarden.testing import run
from nightwarden.verdict import (
    Action,
    ApplyTo,
    DecidedBy,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Item,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

ALL = (Action.RETRY, Action.SUBSTITUTE, Action.SKIP, Action.FAIL)
STICKY_SKIP = Decision(verdict=Skip(apply_to=ApplyTo.SIGNATURE), rationale="refused for good")


def escalation(number: int = 1, **fields: Any) -> Escalation:
    given: dict[str, Any] = {
        "id": EscalationId(f"e{number}"),
        "run_id": RunId("r"),
        "node_id": NodeId("fetch"),
        "node_type": "http.Fetch",
        "lineage": (number - 1,),
        "item": Item(number=str(number), total=200),
        "attempt": 1,
        "retries_left": 2,
        "allowed_actions": ALL,
        "detail": "timed out",
        "error_type": "TimeoutError",
        "signature": "http:451",
    }
    return Escalation(**(given | fields))


Answer = Callable[[Escalation], Awaitable[object]]


class Asked(SupervisorBase):
    """Answers with a function, and remembers what it was asked and whether it was cancelled."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.cancelled = 0

    async def decide(self, escalation: Escalation) -> Decision:
        self.asked.append(escalation.id)
        try:
            return await self.answer(escalation)  # type: ignore[return-value]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def always(answer: object) -> Asked:
    async def give(_: Escalation) -> object:
        return answer

    return Asked(give)


def after(seconds: float, answer: object = None) -> Asked:
    async def give(_: Escalation) -> object:
        await asyncio.sleep(seconds)
        return answer or Decision(verdict=Retry(), rationale="wait and see")

    return Asked(give)


def raising(error: BaseException) -> Asked:
    async def give(_: Escalation) -> object:
        raise error

    return Asked(give)


def within(supervisor: Supervisor, **bounds: Any) -> Bounded:
    return Bounded(supervisor, Bounds(**bounds), stamp=lambda: "2026-11-30T12:00:00.000Z")


def decide(box: Bounded, *escalations: Escalation) -> list[Decision]:
    """The decisions, one escalation after the other, on a virtual clock."""

    async def main() -> list[Decision]:
        return [await box.decide(one) for one in escalations]

    return run(main())


def only(box: Bounded, **fields: Any) -> Decision:
    (decision,) = decide(box, escalation(**fields))
    return decision


# ── what is passed on ──────────────────────────────────────────────────────


def test_a_usable_answer_passes_with_the_record_filled_in() -> None:
    given = Decision(verdict=Retry(), rationale="a hiccup", cost_micro_usd=1_200, tokens_in=7)
    box = within(after(3.5, given))
    decision = only(box)
    assert decision == msgspec.structs.replace(
        given,
        escalation_id="e1",
        started_at="2026-11-30T12:00:00.000Z",
        duration_s=3.5,
    )
    assert (box.decisions_used, box.spent_micro_usd) == (1, 1_200)


def test_now_may_be_any_steady_clock() -> None:
    ticks = iter([100.0, 103.0])
    box = Bounded(always(STICKY_SKIP), Bounds(), stamp=lambda: "", now=lambda: next(ticks))
    assert only(box).duration_s == 3.0


def test_a_verdict_that_is_not_allowed_is_left_to_the_kernel() -> None:
    """supervision.md §1: `kernel` is credited with refusing it, and keeps `asked_for`."""
    box = within(always(Decision(verdict=Retry(), rationale="once more")))
    decision = only(box, allowed_actions=(Action.SKIP, Action.FAIL))
    assert decision.verdict == Retry()
    assert decision.decided_by == DecidedBy.AGENT


def test_a_supervisor_cannot_choose_the_retry_delay() -> None:
    given = Decision(verdict=Retry(), rationale="later", delay_s=9_999.0)
    assert only(within(always(given))).delay_s is None


def test_a_reason_to_fail_stands_in_for_the_rationale() -> None:
    decision = only(within(always(Decision(verdict=Fail(reason="the site is gone")))))
    assert (decision.decided_by, decision.rationale) == (DecidedBy.AGENT, "the site is gone")


def test_nobody_who_was_asked_may_claim_that_the_answer_was_sticky() -> None:
    """supervision.md §7: the closing line counts non-sticky decisions."""
    claimed = Decision(verdict=Retry(), rationale="free", decided_by=DecidedBy.STICKY)
    box = within(always(claimed))
    assert only(box).decided_by == DecidedBy.AGENT
    assert box.decisions_used == 1


# ── decisions used up ──────────────────────────────────────────────────────


def test_when_the_decisions_are_used_up_nobody_is_asked() -> None:
    """supervision.md §5; scenario 44. row: S5-REASON, S1-CREDIT-BOUNDS"""
    inner = always(Decision(verdict=Skip(), rationale="bad page"))
    box = within(inner, max_decisions=2)
    decisions = decide(box, *(escalation(n) for n in (1, 2, 3)))
    assert [d.decided_by for d in decisions] == ["agent", "agent", "bounds"]
    assert inner.asked == ["e1", "e2"]
    last = decisions[-1]
    assert last.rationale == "2 decisions used up"
    assert last.verdict == Fail(reason="stopped: 2 decisions used up; fetch [3/200] timed out")
    assert last.escalation_id == "e3"


def test_ten_decisions_are_the_default() -> None:
    inner = always(Decision(verdict=Skip(), rationale="bad page"))
    decisions = decide(within(inner), *(escalation(n) for n in range(1, 13)))
    assert [d.decided_by for d in decisions].count(DecidedBy.AGENT) == 10
    assert decisions[-1].rationale == "10 decisions used up"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_decisions", -1),
        ("max_decisions", "10"),
        ("max_retries", 1.5),
        ("max_retries", True),
        ("cost_cap_micro_usd", None),
        ("decision_timeout_s", math.nan),
        ("decision_timeout_s", math.inf),
        ("max_retry_delay_s", -0.1),
    ],
)
def test_a_bound_that_is_none_is_refused_where_it_is_made(name: str, value: object) -> None:
    """supervision.md §5: zero is legal and means none; a limit nobody can hold is a mistake."""
    with pytest.raises(RunError, match=f"^{name} is .*, but has to be .*, 0 or more"):
        Bounds(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [{"max_decisions": 0}, {"decision_timeout_s": 0}])
def test_a_bound_of_zero_means_none(bounds: Mapping[str, float]) -> None:
    """supervision.md §5; scenario 60."""
    inner = always(STICKY_SKIP)
    decision = only(within(inner, **bounds))
    assert (decision.decided_by, type(decision.verdict)) == (DecidedBy.BOUNDS, Fail)
    assert inner.asked == []


def test_the_summary_needs_no_item() -> None:
    decision = only(within(always(STICKY_SKIP), max_decisions=0), item=Item(), lineage=())
    assert decision.verdict == Fail(reason="stopped: no decisions are allowed; fetch timed out")


def test_a_failed_decision_counts() -> None:
    box = within(raising(ValueError("no")), max_decisions=1)
    decisions = decide(box, escalation(1), escalation(2))
    assert [d.rationale for d in decisions] == [
        "the supervisor failed: ValueError: no",
        "1 decision used up",
    ]


def test_without_a_supervisor_nothing_is_counted() -> None:
    """supervision.md §1: `default` is credited where there is no supervisor."""
    box = within(FailClosed(), max_decisions=0)
    decision = only(box)
    assert (decision.decided_by, decision.verdict) == (DecidedBy.DEFAULT, Fail())
    assert (box.asks, box.decisions_used) == (False, 0)


# ── stickiness ─────────────────────────────────────────────────────────────


def test_seven_like_failures_cost_one_decision() -> None:
    """supervision.md §3; scenario 45. row: S3-STICKY, S3-STICKY-FREE"""
    inner = always(msgspec.structs.replace(STICKY_SKIP, cost_micro_usd=500))
    box = within(inner)
    decisions = decide(box, *(escalation(n) for n in range(1, 8)))
    assert [d.decided_by for d in decisions] == ["agent"] + ["sticky"] * 6
    assert {d.rationale for d in decisions} == {"refused for good"}
    assert [d.escalation_id for d in decisions] == [f"e{n}" for n in range(1, 8)]
    assert (inner.asked, box.decisions_used, box.spent_micro_usd) == (["e1"], 1, 500)
    assert [d.cost_micro_usd for d in decisions[1:]] == [0] * 6


def test_a_sticky_answer_holds_after_the_decisions_are_used_up() -> None:
    """supervision.md §3; scenario 46. row: S3-STICKY-FREE"""
    box = within(always(STICKY_SKIP), max_decisions=1)
    decisions = decide(box, escalation(1), escalation(2), escalation(3, signature="http:500"))
    assert [d.decided_by for d in decisions] == ["agent", "sticky", "bounds"]


@pytest.mark.parametrize(
    "other", [{"signature": "http:500"}, {"node_id": NodeId("parse")}, {"signature": None}]
)
def test_another_signature_another_node_or_none_is_asked_anew(other: Mapping[str, Any]) -> None:
    """supervision.md §3; scenarios 47 and 48."""
    inner = always(STICKY_SKIP)
    decide(within(inner), escalation(1), escalation(2, **other))
    assert inner.asked == ["e1", "e2"]


def test_without_a_signature_nothing_sticks() -> None:
    inner = always(STICKY_SKIP)
    decide(within(inner), escalation(1, signature=None), escalation(2, signature=None))
    assert inner.asked == ["e1", "e2"]


@pytest.mark.parametrize(
    "verdict", [Retry(), Substitute({"output": 1}), Skip(), EndStream(), Fail(reason="no")]
)
def test_only_a_skip_or_fail_for_the_signature_sticks(verdict: Verdict) -> None:
    """supervision.md §3; scenario 49."""
    inner = always(Decision(verdict=verdict, rationale="so"))
    allowed = (*ALL, Action.END_STREAM)
    decide(within(inner), *(escalation(n, allowed_actions=allowed) for n in (1, 2)))
    assert inner.asked == ["e1", "e2"]


def test_a_fail_for_the_signature_sticks() -> None:
    given = Decision(verdict=Fail(reason="down", apply_to=ApplyTo.SIGNATURE), rationale="down")
    decisions = decide(within(always(given)), escalation(1), escalation(2))
    assert [d.decided_by for d in decisions] == ["agent", "sticky"]
    assert decisions[1].verdict == given.verdict


def test_a_sticky_answer_holds_only_where_its_action_is_allowed() -> None:
    """supervision.md §3; scenario 50."""
    inner = always(STICKY_SKIP)
    stream = (Action.END_STREAM, Action.FAIL)
    box = within(inner)
    decide(box, escalation(1), escalation(2, allowed_actions=stream), escalation(3))
    assert inner.asked == ["e1", "e2"]


def test_an_answer_that_was_not_allowed_is_not_remembered() -> None:
    inner = always(STICKY_SKIP)
    stream = (Action.END_STREAM, Action.FAIL)
    decide(within(inner), escalation(1, allowed_actions=stream), escalation(2))
    assert inner.asked == ["e1", "e2"]


def test_the_driver_may_look_a_sticky_answer_up_on_arrival() -> None:
    """supervision.md §3: looked up when an escalation arrives, too. row: S3-STICKY"""
    box = within(always(STICKY_SKIP))
    assert box.sticky(escalation(1)) is None
    decide(box, escalation(1))
    found = box.sticky(escalation(2))
    assert found is not None
    assert (found.decided_by, found.escalation_id) == (DecidedBy.STICKY, "e2")
    assert (found.started_at, found.duration_s) == ("2026-11-30T12:00:00.000Z", 0.0)


class Knows(Asked):
    """A supervisor that remembers by itself."""

    def __init__(self, known: object) -> None:
        super().__init__(always(STICKY_SKIP).answer)
        self.known = known

    def sticky(self, escalation: Escalation) -> Decision | None:
        if isinstance(self.known, Exception):
            raise self.known
        return self.known  # type: ignore[return-value]


def test_what_a_supervisor_remembers_itself_costs_no_decision() -> None:
    known = Decision(verdict=Skip(), rationale="known", decided_by=DecidedBy.STICKY)
    inner = Knows(known)
    box = within(inner, max_decisions=0)
    assert only(box).rationale == "known"
    assert inner.asked == []


@pytest.mark.parametrize(
    "known", ["skip", ValueError("x"), Decision(verdict=EndStream(), rationale="not here")]
)
def test_a_supervisor_with_a_bad_memory_is_asked(known: object) -> None:
    inner = Knows(known)
    assert only(within(inner)).rationale == "refused for good"
    assert inner.asked == ["e1"]


# ── unusable answers ───────────────────────────────────────────────────────


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("bad  \n key"), "ValueError: bad key"),
        (SupervisionError("no answer at the terminal"), "no answer at the terminal"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (BaseException("odd"), "BaseException: odd"),
        (Unprintable(), "Unprintable"),
        (asyncio.CancelledError(), "it was cancelled from within"),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (ValueError("x" * 5_000), "ValueError: " + "x" * 288 + "…"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_supervisor_raises_is_a_fail_by_bounds(error: BaseException, words: str) -> None:
    """supervision.md §1; scenario 9. row: S1-CREDIT-BOUNDS"""
    decision = only(within(raising(error)))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert decision.rationale == f"the supervisor failed: {words}"


def test_what_was_spent_before_raising_is_kept() -> None:
    error = SupervisionError("three bad repairs")
    error.cost_micro_usd = 20_000  # type: ignore[attr-defined]
    box = within(raising(error))
    assert only(box).cost_micro_usd == 20_000
    assert box.spent_micro_usd == 20_000


@pytest.mark.parametrize("answer", [None, "retry", Retry(), {"verdict": "retry"}, 1])
def test_what_is_no_decision_is_a_fail_by_bounds(answer: object) -> None:
    decision = only(within(always(answer)))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert "where a Decision was expected" in decision.rationale


@pytest.mark.parametrize(
    "verdict",
    [
        None,
        "explode",
        Skip(apply_to="node"),  # type: ignore[arg-type]
        Fail(reason=3),  # type: ignore[arg-type]
        Substitute(outputs=None),  # type: ignore[arg-type]
        Substitute(outputs={1: 2}),  # type: ignore[dict-item]
    ],
    ids=repr,
)
def test_an_unknown_or_malformed_action_is_a_fail_by_kernel(verdict: Any) -> None:
    """supervision.md §1: `kernel` is credited; scenario 8."""
    given = Decision(verdict=verdict, rationale="boom", cost_micro_usd=5, tokens_out=2, model="m")
    decision = only(within(always(given)))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.KERNEL)
    assert (decision.cost_micro_usd, decision.tokens_out, decision.model) == (5, 2, "m")
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == decision


@pytest.mark.parametrize(
    "fields",
    [
        {"cost_micro_usd": math.nan},
        {"cost_micro_usd": -5},
        {"cost_micro_usd": True},
        {"tokens_in": "many"},
        {"decided_by": "oracle"},
        {"rationale": None},
        {"asked_for": "retry"},
        {"model": 3},
    ],
    ids=repr,
)
def test_a_malformed_record_is_a_fail_by_bounds(fields: Mapping[str, Any]) -> None:
    """reference §17, 11: a cost that is no number is never read as free and used."""
    given = msgspec.structs.replace(STICKY_SKIP, **fields)
    box = within(always(given))
    decision = only(box)
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert decision.cost_micro_usd == 0
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == decision


@pytest.mark.parametrize("rationale", ["", "  \n"])
def test_an_agent_must_say_why(rationale: str) -> None:
    """supervision.md §2: the rationale is mandatory for agent answers."""
    given = Decision(verdict=Skip(), rationale=rationale, cost_micro_usd=77)
    decision = only(within(always(given)))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert "rationale" in decision.rationale
    assert decision.cost_micro_usd == 77


def test_a_person_need_not_say_why() -> None:
    given = Decision(verdict=Skip(), decided_by=DecidedBy.OPERATOR)
    assert only(within(always(given))).verdict == Skip()


def test_an_unusable_answer_is_not_remembered() -> None:
    given = Decision(verdict=Skip(apply_to=ApplyTo.SIGNATURE))
    inner = always(given)
    decide(within(inner), escalation(1), escalation(2))
    assert inner.asked == ["e1", "e2"]


# ── time and cancelling ────────────────────────────────────────────────────


class Human(Asked):
    human = True


@pytest.mark.parametrize(
    ("kind", "bounds", "limit"),
    [
        (Asked, {}, 60.0),
        (Human, {}, 600.0),
        (Asked, {"decision_timeout_s": 5.0}, 5.0),
        (Human, {"decision_timeout_s": 5.0}, 5.0),
    ],
)
def test_a_decision_that_takes_too_long_is_cut_at_its_limit(
    kind: type[Asked], bounds: Mapping[str, float], limit: float
) -> None:
    """supervision.md §5: 60 s, 600 s for a person, one setting overrides both; scenario 53."""
    inner = kind(after(limit + 0.001).answer)
    decision = only(within(inner, **bounds))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert decision.rationale == f"no decision within {limit:g} s"
    assert decision.duration_s == pytest.approx(limit)
    assert inner.cancelled == 1


def test_a_decision_just_in_time_counts() -> None:
    assert only(within(after(59.999))).decided_by == DecidedBy.AGENT


def deaf(seconds: float, answer: object) -> Asked:
    """Swallows its cancellation and answers `seconds` after it was asked."""

    async def give(_: Escalation) -> object:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return Asked(give)


def test_an_answer_within_the_grace_is_dropped_and_its_cost_kept() -> None:
    """supervision.md §2: a cost is recorded even when the answer came too late; scenario 59."""
    given = Decision(verdict=Retry(), rationale="at last", cost_micro_usd=900, model="m")
    box = within(deaf(61, given))
    decision = only(box)
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    assert (decision.cost_micro_usd, decision.model) == (900, "m")
    assert (box.spent_micro_usd, box.late_cost_micro_usd) == (900, 0)


def test_a_deaf_supervisor_is_abandoned_after_two_seconds() -> None:
    """supervision.md §5: its late answer is dropped, its cost kept. row: S5-DEAF"""
    given = Decision(verdict=Skip(ApplyTo.SIGNATURE), rationale="at last", cost_micro_usd=900)
    inner = deaf(100, given)
    box = within(inner)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        decision = await box.decide(escalation(1))
        assert loop.time() == pytest.approx(62)
        assert (decision.decided_by, decision.cost_micro_usd) == (DecidedBy.BOUNDS, 0)
        assert len(box.abandoned) == 1
        await asyncio.sleep(50)
        assert box.abandoned == frozenset()
        assert (box.late_cost_micro_usd, box.spent_micro_usd) == (900, 900)
        assert box.sticky(escalation(2)) is None

    run(main())


@pytest.mark.parametrize("error", [ValueError("late"), SystemExit(1), asyncio.CancelledError()])
def test_what_an_abandoned_supervisor_raises_disturbs_nobody(error: BaseException) -> None:
    complaints: list[Mapping[str, object]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        await within(deaf(100, error)).decide(escalation())
        await asyncio.sleep(50)
        gc.collect()

    run(main())
    assert complaints == []


def test_cancelling_aborts_the_supervisor_at_once() -> None:
    """supervision.md §5; case H08."""
    inner = after(30)
    box = within(inner)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(box.decide(escalation()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert loop.time() == pytest.approx(1)
        assert inner.cancelled == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_cancelling_waits_two_seconds_for_a_deaf_supervisor() -> None:
    """Case H08, variant: the model library swallows cancellation."""
    given = Decision(verdict=Retry(), rationale="at last", cost_micro_usd=900)
    box = within(deaf(30, given))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(box.decide(escalation()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert loop.time() == pytest.approx(3)
        await asyncio.sleep(30)
        assert box.late_cost_micro_usd == 900

    run(main())


def test_an_answer_within_the_grace_of_a_cancel_still_costs() -> None:
    given = Decision(verdict=Retry(), rationale="at last", cost_micro_usd=900)
    box = within(deaf(2, given))

    async def main() -> None:
        task = asyncio.create_task(box.decide(escalation()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert box.late_cost_micro_usd == 900

    run(main())


def test_cancelling_twice_does_not_wait_for_the_grace() -> None:
    box = within(deaf(30, Decision(verdict=Retry(), rationale="at last")))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(box.decide(escalation()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert loop.time() == pytest.approx(1.2)

    run(main())


def test_a_supervisor_runs_outside_the_group_of_who_asks() -> None:
    """supervision.md §5: it lives outside the run's task group, which so can end."""
    box = within(deaf(100, Decision(verdict=Retry(), rationale="late")), decision_timeout_s=1)

    async def main() -> float:
        async with asyncio.TaskGroup() as group:
            group.create_task(box.decide(escalation()))
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(3)


@pytest.mark.parametrize("seed", range(5))
def test_the_outcome_does_not_depend_on_the_order_of_callbacks(seed: int) -> None:
    box = within(after(60.5), max_decisions=3)

    async def main() -> list[str]:
        return [(await box.decide(escalation(n))).rationale for n in (1, 2)]

    assert run(main(), seed=seed) == ["no decision within 60 s"] * 2


# ── resume ─────────────────────────────────────────────────────────────────


def test_counts_money_and_sticky_skips_survive_a_resume() -> None:
    """supervision.md §5: part of the record; sticky fails do not survive."""
    skip = msgspec.structs.replace(STICKY_SKIP, cost_micro_usd=400)
    fail = Decision(verdict=Fail(reason="down", apply_to=ApplyTo.SIGNATURE), rationale="down")

    async def by_signature(escalation: Escalation) -> object:
        return skip if escalation.signature == "http:451" else fail

    first = within(Asked(by_signature))
    decide(first, escalation(1), escalation(2, signature="http:503"))
    record = msgspec.json.encode(first.state())

    inner = Asked(by_signature)
    second = within(inner, max_decisions=3)
    second.restore(msgspec.json.decode(record, type=BoundsState))
    assert (second.decisions_used, second.spent_micro_usd) == (2, 400)
    decisions = decide(second, escalation(3), escalation(4, signature="http:503"), escalation(5))
    assert [d.decided_by for d in decisions] == ["sticky", "agent", "sticky"]
    assert decisions[0].rationale == "refused for good"
    assert inner.asked == ["e4"]
    assert only(second, number=6, signature="http:500").rationale == "3 decisions used up"


def test_who_resumes_may_raise_the_bounds() -> None:
    box = within(always(STICKY_SKIP), max_decisions=12)
    box.restore(BoundsState(decisions_used=10))
    assert only(box).decided_by == DecidedBy.AGENT


# ── attaching, closing, wrapping ───────────────────────────────────────────


class NoRun:
    run_id = "r"

    def state(self) -> Mapping[str, object]:
        return {}

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        return []


class Rude(SupervisorBase):
    """Raises, or hangs, wherever it is called."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error or ValueError("leave me alone")

    async def decide(self, escalation: Escalation) -> Decision:
        raise self.error

    def attach(self, reader: object) -> None:
        raise self.error

    async def aclose(self) -> None:
        if isinstance(self.error, TimeoutError):
            await asyncio.sleep(1_000)
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no")])
def test_what_attach_raises_does_not_end_the_run(error: BaseException) -> None:
    """reference §17, 13; scenario 58."""
    box = within(Rude(error))
    box.attach(NoRun())
    assert box.attach_error == f"{type(error).__name__}: no"


def test_what_closing_raises_does_not_end_the_run() -> None:
    box = within(Rude(SystemExit("no")))
    run(box.aclose())
    assert box.close_error == "SystemExit: no"


def test_closing_never_hangs() -> None:
    """reference §17, 20."""
    box = within(Rude(TimeoutError()))

    async def main() -> float:
        await box.aclose()
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(2)
    assert box.close_error == "did not close within 2 s"


def test_a_bounded_supervisor_is_not_wrapped_twice() -> None:
    """supervision.md §5; scenario 57."""
    inner = within(always(STICKY_SKIP), max_decisions=3)
    assert bounded(inner, Bounds(max_decisions=99), stamp=lambda: "") is inner
    wrapped = bounded(always(STICKY_SKIP), Bounds(max_decisions=3), stamp=lambda: "")
    assert (type(wrapped), wrapped.bounds.max_decisions) == (Bounded, 3)


def test_bounds_are_themselves_a_supervisor() -> None:
    assert isinstance(within(FailClosed()), Supervisor)
