"""A supervisor over a run, on virtual time; scenarios of the steering reference §23."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from steering_kit import SILENCE, Box, Judge, Run, kinds, spec

from nightwarden.events import (
    Event,
    SteeringDone,
    SteeringEvaluated,
    SteeringExhausted,
    SteeringParked,
    SteeringWoken,
)
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.ports import Advice, Answer, Snapshot, Words, advice_of
from nightwarden.steering.wakes import TriggerState
from nightwarden.testing import run as run_virtually

ERROR = "event_type=tool_error"
SPEAK = Advice(intervene=True, message="Read month_end() first.", reason="a loop")


class Scene:
    """A coordinator with scripted ends, and everything it said."""

    def __init__(self, given: Any, judge: Any, *, run: Run | None = None, **options: Any) -> None:
        self.run = run or Run()
        self.judge = judge
        self.box = options.pop("box", None) or Box()
        self.said: list[Event] = []
        self.kept: list[TriggerState] = []
        self.coordinator = Coordinator(
            given,
            run_id=options.pop("run_id", "r1"),
            observer=options.pop("observer", self.run),
            evaluator=judge,
            injector=self.box,
            emit=self.said.append,
            keep=self.kept.append,
            **options,
        )

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.said if isinstance(event, kind)]


def play(
    make: Callable[[], Scene], script: Callable[[Scene], Awaitable[None]], *, seed: int = 0
) -> Scene:
    async def main() -> Scene:
        scene = make()
        scene.coordinator.start()
        await asyncio.sleep(0)
        await script(scene)
        await scene.coordinator.close()
        return scene

    return run_virtually(main(), seed=seed)


async def until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))


# -- the null coordinator --


@pytest.mark.parametrize("missing", [{"observer": None}, {"run_id": ""}])
def test_without_a_run_to_watch_nothing_happens(missing: dict[str, Any]) -> None:
    """Scenario 1."""

    async def script(scene: Scene) -> None:
        await scene.coordinator.wait()

    scene = play(lambda: Scene(spec(), Judge(), **missing), script)
    assert scene.said == []
    assert not scene.coordinator.works


# -- a look, a word --


def test_a_word_is_queued_for_the_node_with_the_name_before_it() -> None:
    async def script(scene: Scene) -> None:
        scene.run.say("node_started", "fix")
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR, watches=("fix",)), Judge(SPEAK)), script)
    (words,) = scene.box.words
    assert words.text == "[supervisor dog] Read month_end() first."
    assert (words.node_id, words.author, words.run_id) == ("fix", "dog", "r1")
    assert kinds(scene.said) == ["steering_armed", "steering_woken", "steering_evaluated"]
    (evaluated,) = scene.of(SteeringEvaluated)
    assert evaluated.outcome == "intervened"
    assert evaluated.message_id == words.message_id
    assert (evaluated.number, evaluated.limit, evaluated.cost_micro_usd) == (1, 20, 500)


def test_a_supervisor_without_a_name_puts_none_before_it() -> None:
    """Scenario 39."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR, name=""), Judge(SPEAK)), script)
    assert [w.text for w in scene.box.words] == ["Read month_end() first."]
    assert scene.box.words[0].node_id == ""


def test_the_same_words_of_the_same_look_have_the_same_id() -> None:
    """Scenario 55: said again after a crash they are queued once."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    ids = {
        play(lambda: Scene(spec(ERROR), Judge(SPEAK)), script).box.words[0].message_id
        for _ in range(2)
    }
    assert len(ids) == 1


def test_it_may_speak_and_be_done_at_once() -> None:
    """Scenario 20."""
    answer = msgspec.structs.replace(SPEAK, done=True)

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR), Judge(answer)), script)
    assert len(scene.box.words) == 1
    assert [d.reason for d in scene.of(SteeringDone)] == ["a loop"]
    assert scene.coordinator.state.done


def test_blank_words_are_refused_and_said() -> None:
    """Scenario 21: nothing queued, not done, the evidence may be judged again."""
    answer = Advice(intervene=True, message=" \n ", done=True)

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x", at="2026-01-01T00:00:00.000Z")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR), Judge(answer)), script)
    (evaluated,) = scene.of(SteeringEvaluated)
    assert evaluated.outcome == "refused"
    assert evaluated.detail == "it wanted to intervene without a word"
    assert scene.box.words == []
    assert not scene.coordinator.state.done
    assert scene.coordinator.state.judged == []


def test_a_mailbox_that_hangs_is_left_and_the_next_look_is_taken() -> None:
    class Deaf(Box):
        async def inject(self, words: Words) -> None:
            await asyncio.sleep(3_600)

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(9)
        assert scene.of(SteeringEvaluated) == []
        await until(50)
        scene.run.say("tool_error", "fix", error="y")
        await until(51)

    scene = play(lambda: Scene(spec(ERROR), Judge(SPEAK), box=Deaf()), script)
    assert [(e.outcome, e.detail) for e in scene.of(SteeringEvaluated)] == [
        ("refused", "nobody took the words within 10 s"),
        ("silent", ""),
    ]


def test_words_that_cannot_be_queued_are_no_intervention() -> None:
    """Scenarios 27 and 56."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x", at="2026-01-01T00:00:00.000Z")
        await until(40)
        scene.run.say("tool_error", "fix", error="x", at="2026-01-01T00:00:00.000Z")
        await until(41)

    make = lambda: Scene(spec(ERROR), Judge(SPEAK, SPEAK), box=Box("the run is over"))  # noqa: E731
    scene = play(make, script)
    assert [(e.outcome, e.detail) for e in scene.of(SteeringEvaluated)] == [
        ("refused", "the run is over")
    ] * 2
    assert scene.judge.asked[1][1].last is None


def test_what_was_advised_last_is_shown_the_next_time() -> None:
    """Scenario 103 needs it: nothing is said twice."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(40)
        scene.run.say("tool_error", "fix", error="y")
        await until(41)

    scene = play(lambda: Scene(spec(ERROR), Judge(SPEAK)), script)
    assert [s.last for _, s in scene.judge.asked] == [None, SPEAK]


# -- the evaluator fails --


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (RuntimeError("429"), "RuntimeError: 429"),
        (Answer(), "it answered without advice"),
        ("I think it is fine.", "it answered str, not advice"),
        (None, "it answered NoneType, not advice"),
    ],
)
def test_an_evaluator_that_fails_or_answers_prose_costs_nothing(
    answer: object, detail: str
) -> None:
    """Scenario 24, issue 6 bad input."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR), Judge(answer)), script)
    (evaluated,) = scene.of(SteeringEvaluated)
    assert (evaluated.outcome, evaluated.detail, evaluated.number) == ("failed", detail, 0)


def test_prose_is_no_advice() -> None:
    assert advice_of('{"intervene": false}') == SILENCE
    for prose in ("It is fine.", "[]", '{"message": "x"}', b"\xff"):
        with pytest.raises(ValueError, match="no advice"):
            advice_of(prose)


def test_an_evaluator_that_hangs_is_left_after_a_minute() -> None:
    """steering.md §2: an evaluation has a time limit of 60 s."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(61)

    scene = play(lambda: Scene(spec(ERROR), Judge(takes_s=10_000)), script)
    (evaluated,) = scene.of(SteeringEvaluated)
    assert (evaluated.outcome, evaluated.detail) == ("failed", "no answer within 60 s")
    assert evaluated.duration_s == 60.0


def test_an_evaluator_deaf_to_cancellation_holds_nothing_up() -> None:
    class Deaf:
        asked = 0

        async def evaluate(self, snapshot: Snapshot) -> Answer:
            self.asked += 1
            for _ in range(5):
                try:
                    await asyncio.sleep(200)
                except asyncio.CancelledError:
                    continue
            return Answer(advice=SPEAK)

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(95)

    scene = play(lambda: Scene(spec(ERROR), Deaf()), script)
    assert scene.judge.asked == 2
    assert scene.box.words == []


def test_three_failures_park_it_with_one_event() -> None:
    """Scenario 22."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(500)

    judge = Judge(*[RuntimeError("no key")] * 9)
    scene = play(lambda: Scene(spec(ERROR), judge), script)
    (parked,) = scene.of(SteeringParked)
    assert (parked.failures, parked.retry_in_s) == (3, 600.0)
    assert parked.detail == "RuntimeError: no key"
    assert scene.coordinator.state.completed == 0


def test_the_end_of_the_run_during_an_evaluation_is_no_failure() -> None:
    """Scenario 26."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)
        scene.run.say("run_completed")
        await scene.coordinator.wait()

    scene = play(lambda: Scene(spec(ERROR), Judge(SPEAK, takes_s=20)), script)
    assert scene.of(SteeringEvaluated) == []
    assert scene.box.words == []
    assert scene.coordinator.state.failures == 0


def test_detaching_keeps_the_state_and_leaves_no_task() -> None:
    """Scenarios 59 and 78: Ctrl-C detaches; what it knew is kept."""
    left: list[str] = []

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)
        await scene.coordinator.close()
        await asyncio.sleep(0)
        mine = asyncio.current_task()
        left.extend(t.get_name() for t in asyncio.all_tasks() if t is not mine)

    scene = play(lambda: Scene(spec(ERROR), Judge(takes_s=20)), script)
    assert left == []
    assert scene.run.watching.released == 1
    assert [c.monitor for c in scene.kept[-1].evaluating] == [ERROR]


# -- caps, queues, history --


def test_the_cap_is_said_once() -> None:
    """Scenario 25."""

    async def script(scene: Scene) -> None:
        for t in range(5):
            scene.run.say("tool_error", "fix", error=str(t))
            await until(40 * (t + 1))

    scene = play(lambda: Scene(spec(ERROR, max_evals=2), Judge()), script)
    assert len(scene.judge.asked) == 2
    assert [e.limit for e in scene.of(SteeringExhausted)] == [2]


def test_a_flood_slows_nobody_and_what_is_lost_is_counted() -> None:
    """Scenario 41: what says who is active is never lost."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)
        for i in range(1000):
            scene.run.say("assistant_text", "fix", text=str(i))
        scene.run.say("node_finished", "fix")
        scene.run.say("node_started", "other")
        await until(100)

    make = lambda: Scene(spec(ERROR, watches=()), Judge(takes_s=59))  # noqa: E731
    scene = play(make, script)
    assert scene.coordinator.dropped == 1000 - 256 + 2
    assert scene.coordinator.state.active == {"other": "other"}
    assert scene.of(SteeringWoken)[-1].dropped == 746


def test_events_that_come_in_time_are_all_seen_while_a_model_thinks() -> None:
    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        for i in range(1000):
            await until(1 + i / 20)
            scene.run.say("tool_called", "fix", tool="Read", output=str(i))

    scene = play(lambda: Scene(spec(ERROR), Judge(takes_s=59)), script)
    assert scene.coordinator.dropped == 0


def test_what_matches_while_a_model_thinks_is_looked_at_afterwards() -> None:
    """Timeline T12: the cooldown starts at the return."""

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(10)
        scene.run.say("tool_error", "fix", error="y")
        await until(100)

    scene = play(lambda: Scene(spec(ERROR, cooldown_s=5), Judge(takes_s=20)), script)
    assert scene.judge.asked_at[:2] == [0, 25]
    assert any("y" in reason for reason in scene.judge.asked[1][1].reasons)


def test_a_registered_match_while_a_model_thinks_is_looked_at_at_once_afterwards() -> None:
    watch = Advice(intervene=False, watch=("event_type=log,text_contains=red",))

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(50)
        scene.run.say("tool_error", "fix", error="y")
        await until(55)
        scene.run.say("log", "fix", level="info", message="red")
        await until(100)

    scene = play(lambda: Scene(spec(ERROR), Judge(watch, takes_s=10)), script)
    assert scene.judge.asked_at == [0, 50, 60]


def test_monitors_that_cannot_be_used_are_ignored() -> None:
    """Scenario 16."""
    watch = Advice(intervene=False, watch=({}, "", "nonsense", {"event_type": "log"}))

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(1)

    scene = play(lambda: Scene(spec(ERROR), Judge(watch)), script)
    assert scene.of(SteeringEvaluated)[0].registered == ("event_type=log",)


def history(*said: Event, at: str = "2026-01-01T00:00:00.000Z") -> list[dict[str, Any]]:
    found = []
    for seq, event in enumerate(said, start=1):
        plain = msgspec.to_builtins(event)
        found.append({**plain, "seq": seq, "at": at})
    return found


def test_what_it_was_is_read_from_its_own_events() -> None:
    """Scenario 54, steering.md §2: all of it survives a restart."""
    before = history(
        SteeringWoken(supervisor="dog", number=1, triggers=("t",)),
        SteeringEvaluated(
            supervisor="dog",
            outcome="silent",
            number=3,
            limit=20,
            registered=("event_type=log",),
            done=True,
        ),
        SteeringEvaluated(supervisor="cat", outcome="silent", number=9, limit=20),
    )
    now = 1767225600.0 + 10  # ten seconds after

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="a seeded match does not revive")
        await until(5)
        scene.run.say("node_started", "fix")
        scene.run.say("tool_error", "fix", error="waits")
        await until(100)

    scene = play(lambda: Scene(spec(ERROR), Judge(), run=Run(before), wall=lambda: now), script)
    assert scene.judge.asked_at[0] == 20
    assert scene.of(SteeringEvaluated)[0].number == 4
    assert scene.of(SteeringEvaluated)[0].registered == ("event_type=log",)


def after_history(*said: Event, later_s: float = 10, **fields: Any) -> Scene:
    """A seeded match a second after attach, and what follows within half an hour."""

    async def script(scene: Scene) -> None:
        await until(1)
        scene.run.say("tool_error", "fix", error="x")
        await until(1_800)

    wall = lambda: 1767225600.0 + later_s  # noqa: E731
    given = spec(ERROR, boundaries=False, **fields)
    return play(lambda: Scene(given, Judge(), run=Run(history(*said)), wall=wall), script)


def test_that_it_was_done_survives_a_restart() -> None:
    """§2: all of it survives a restart."""
    done = SteeringEvaluated(supervisor="dog", outcome="silent", number=1, limit=20, done=True)
    assert after_history(done).judge.asked == []


def test_that_it_was_parked_survives_a_restart() -> None:
    failed = SteeringEvaluated(
        supervisor="dog", outcome="failed", number=1, limit=20, failures=3, detail="no"
    )
    parked = SteeringParked(supervisor="dog", failures=3, detail="no", retry_in_s=600)
    assert after_history(failed, parked).judge.asked_at == [590]


def test_that_its_looks_are_spent_is_said_once_over_a_restart() -> None:
    last = SteeringEvaluated(supervisor="dog", outcome="silent", number=2, limit=2)
    said = SteeringExhausted(supervisor="dog", limit=2)
    assert kinds(after_history(last, said, max_evals=2).said) == ["steering_armed"]
    assert kinds(after_history(last, max_evals=2).said) == ["steering_armed", "steering_exhausted"]


def test_a_look_that_failed_is_paid_for_all_the_same() -> None:
    """§2, spending: what it cost is on its own line, and counts for its cap."""

    async def script(scene: Scene) -> None:
        for at in (1, 40, 80):
            await until(at)
            scene.run.say("tool_error", "fix", error=f"{at}")
        await until(200)

    dear = [Answer(detail="prose", cost_micro_usd=700) for _ in range(3)]
    scene = play(lambda: Scene(spec(ERROR, cost_cap_usd=0.001), Judge(*dear)), script)
    assert scene.coordinator.state.spent_micro_usd == 1_400
    assert len(scene.judge.asked) == 2, "then its own money is spent"


def test_history_of_a_clock_that_ran_ahead_counts_as_of_now() -> None:
    """Issue 6, bad input: a clock that jumps."""
    evaluated = SteeringEvaluated(supervisor="dog", outcome="silent", number=1, limit=20)
    before = history(evaluated, at="2099-01-01T00:00:00.000Z")

    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        await until(100)

    scene = play(lambda: Scene(spec(ERROR), Judge(), run=Run(before), wall=lambda: 0.0), script)
    assert scene.judge.asked_at == [30]


def test_a_clock_that_jumps_in_a_run_changes_nothing() -> None:
    """Issue 6, bad input: waiting is done on a clock that only goes forward."""

    async def script(scene: Scene) -> None:
        for t, at in ((0, "2026-01-01T00:00"), (10, "1999-01-01T00:00"), (50, "2099-01-01T00:00")):
            await until(t)
            scene.run.say("tool_error", "fix", error=str(t), at=f"{at}:00.000Z")
        await until(100)

    assert play(lambda: Scene(spec(ERROR), Judge()), script).judge.asked_at == [0, 30, 60]


def test_a_look_cut_off_by_the_end_of_a_process_is_taken_again() -> None:
    before = history(SteeringWoken(supervisor="dog", number=1, triggers=("the trigger",)))

    async def script(scene: Scene) -> None:
        await until(1)

    scene = play(lambda: Scene(spec(ERROR), Judge(), run=Run(before)), script)
    assert scene.judge.asked_at == [0]
    assert scene.judge.asked[0][1].reasons == ("the trigger held",)


def test_a_run_that_was_over_is_left_without_a_look() -> None:
    """Scenario 31."""
    before = [{"type": "tool_error", "seq": 1}, {"type": "run_failed", "seq": 2}]

    async def script(scene: Scene) -> None:
        await scene.coordinator.wait()

    scene = play(lambda: Scene(spec(ERROR), Judge(), run=Run(before)), script)
    assert scene.judge.asked == []
    assert scene.run.watching.released == 1


def test_a_channel_that_ends_ends_it() -> None:
    async def script(scene: Scene) -> None:
        scene.run.say("tool_error", "fix", error="x")
        scene.run.end()
        await scene.coordinator.wait()

    scene = play(lambda: Scene(spec(ERROR), Judge()), script)
    assert scene.run.watching.released == 1


def test_a_listener_that_raises_harms_nobody() -> None:
    def broken(_event: Event) -> None:
        raise OSError("no space")

    async def main() -> int:
        run, box = Run(), Box()
        coordinator = Coordinator(
            spec(ERROR),
            run_id="r",
            observer=run,
            evaluator=Judge(SPEAK),
            injector=box,
            emit=broken,
        )
        coordinator.start()
        await asyncio.sleep(0)
        run.say("tool_error", "fix", error="x")
        await asyncio.sleep(1)
        await coordinator.close()
        return len(box.words)

    assert run_virtually(main()) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_what_is_ready_does_not_matter(seed: int) -> None:
    async def script(scene: Scene) -> None:
        scene.run.say("node_started", "fix")
        for t in range(10):
            await until(t * 7)
            scene.run.say("tool_error", "fix", error=str(t))
        scene.run.say("run_completed")
        await scene.coordinator.wait()

    scene = play(lambda: Scene(spec(ERROR, watches=("fix",)), Judge(takes_s=2)), script, seed=seed)
    assert scene.judge.asked_at == [0, 32]
