"""Laws of the wake logic that hold for any run (steering.md §2)."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from steering_kit import SILENCE, Clockwork, spec

from nightwarden.steering.ports import Advice
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import TriggerState

ERROR = "event_type=tool_error"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "finish", "error", "step", "other", "silence"]),
        st.sampled_from([0.1, 1.0, 4.0, 25.0, 31.0]),
    ),
    max_size=40,
)


def play(works: Clockwork, steps: list[tuple[str, float]], first: int = 1) -> list[int]:
    """The numbers of the errors that came while the watched node was active."""
    seen, seq, now = [], first, works.now
    for kind, wait in steps:
        now += wait
        works.until(now)
        if kind == "silence":
            continue
        armed = works.trigger.armed
        what, node = {
            "start": ("node_started", "a"),
            "finish": ("node_finished", "a"),
            "error": ("tool_error", "a"),
            "step": ("llm_step_finished", "a"),
            "other": ("tool_error", "b"),
        }[kind]
        works.at(now, what, node, seq=seq, error=str(seq), at=f"t{seq}")
        if kind == "error" and armed:
            seen.append(seq)
        seq += 1
    return seen


@given(STEPS, st.floats(0, 40), st.lists(st.booleans(), max_size=6))
def test_every_match_is_looked_at_once_however_it_comes(
    steps: list[tuple[str, float]], thinking_s: float, fails: list[bool]
) -> None:
    def advice(n: int) -> Advice | None:
        return None if n <= len(fails) and fails[n - 1] else SILENCE

    given_ = spec(ERROR, watches=("a",), max_evals=1000)
    works = Clockwork(given_, thinking_s=thinking_s, advice=advice, trigger=Trigger(given_))
    matched = play(works, steps)
    works.at(works.now + 1, "node_started", "a", seq=10_000, at="again")
    works.until(works.now + 40_000)
    judged = [identity for identity in works.trigger.state.judged if identity]
    assert len(judged) == len(set(judged)) == len(matched)
    looked = {c.seq for _, w in works.wakes for c in w.causes if c.kind == "seeded"}
    assert looked == set(matched)


@given(STEPS, st.floats(0, 40))
def test_looks_are_a_cooldown_apart_and_only_while_it_is_armed(
    steps: list[tuple[str, float]], thinking_s: float
) -> None:
    given_ = spec(ERROR, watches=("a",), max_evals=1000)
    works = Clockwork(given_, thinking_s=thinking_s, trigger=Trigger(given_))
    play(works, steps)
    works.until(works.now + 500)
    for before, after in zip(works.woke_at, works.woke_at[1:], strict=False):
        assert after - before >= 30 + thinking_s - 1e-3
    assert all(wake.node == "a" for _, wake in works.wakes)


@given(STEPS, st.integers(1, 4))
def test_it_never_looks_more_often_than_it_may(steps: list[tuple[str, float]], cap: int) -> None:
    given_ = spec(ERROR, max_evals=cap)
    works = Clockwork(given_, trigger=Trigger(given_))
    play(works, steps)
    works.until(works.now + 500)
    assert len(works.wakes) <= cap
    assert len(works.exhausted) <= 1


@given(STEPS, STEPS, st.floats(0, 40))
def test_a_restart_anywhere_changes_nothing(
    before: list[tuple[str, float]], after: list[tuple[str, float]], thinking_s: float
) -> None:
    given_ = spec(ERROR, "event_type=tool_error,count=3,within=1m", watches=("a",), max_evals=1000)

    def run(restarts: bool) -> list[float]:
        works = Clockwork(given_, thinking_s=thinking_s, trigger=Trigger(given_))
        play(works, before)
        if restarts and not works.trigger.state.evaluating:
            kept = msgspec.json.encode(works.trigger.freeze())
            state = msgspec.json.decode(kept, type=TriggerState).moved(5_000.0)
            again = Clockwork(
                given_,
                thinking_s=thinking_s,
                trigger=Trigger(given_, state=state),
                now=works.now + 5_000.0,
            )
            play(again, after, first=1_000)
            again.until(again.now + 300)
            return [*works.woke_at, *(round(at - 5_000.0, 3) for at in again.woke_at)]
        play(works, after, first=1_000)
        works.until(works.now + 300)
        return works.woke_at

    assert [round(at, 2) for at in run(True)] == [round(at, 2) for at in run(False)]
