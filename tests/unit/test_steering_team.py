"""Several supervisors over a run of this process, its mailbox, and the switch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from steering_kit import Judge, kinds, spec

from nightwarden.events import (
    Event,
    InvocationStarted,
    ItemEmitted,
    Log,
    NodeFinished,
    NodeStarted,
    RunCompleted,
)
from nightwarden.runtime.bus import Bus
from nightwarden.steering.lookout import Lookout
from nightwarden.steering.mailbox import State
from nightwarden.steering.ports import Advice, NotQueued, Words
from nightwarden.steering.post import Post, messages_of
from nightwarden.steering.switch import VARIABLE, switch
from nightwarden.steering.team import LiveRun, Team
from nightwarden.steering.trigger import Trigger
from nightwarden.testing import run as run_virtually

RED = "event_type=log,text_contains=red"


def scene(script: Callable[..., object], *specs: object, seed: int = 1) -> tuple[list[Event], Post]:
    said: list[Event] = []

    async def main() -> Post:
        loop = asyncio.get_running_loop()
        bus = Bus()
        bus.subscribe(said.append)
        post = Post("r", bus.publish, now=loop.time)
        team = Team(
            specs,  # type: ignore[arg-type]
            run_id="r",
            run=LiveRun(bus.subscribe, cut=bus.seq),
            evaluator=lambda s: Judge(Advice(intervene=True, message=f"word of {s.name}")),
            injector=post,
            emit=bus.publish,
        )
        team.start()
        await script(bus, post, team)  # type: ignore[misc]
        await team.close()
        return post

    post = run_virtually(main(), seed=seed)
    return said, post


def test_two_supervisors_watch_one_run_and_share_the_gate() -> None:
    taken: list[list[str]] = []

    async def script(bus: Bus, post: Post, team: Team) -> None:
        bus.publish(NodeStarted(node_id="fix"))
        bus.publish(Log(node_id="fix", level="info", message="red"))
        await asyncio.sleep(1)
        for _ in range(2):
            taken.append([m.text for m in post.take("fix")])
            post.stepped("fix")
        assert team.cost_micro_usd == 1000
        bus.publish(NodeFinished(node_id="fix"))
        post.run_ended()
        bus.publish(RunCompleted())
        await asyncio.sleep(1)

    pair = (spec(RED, watches=("fix",)), spec(RED, watches=("fix",), name="cat"))
    said, post = scene(script, *pair)
    assert sorted(taken) == [["[supervisor cat] word of cat"], ["[supervisor dog] word of dog"]]
    assert {m.state for m in post.mailbox.all()} == {State.CONSUMED}
    assert [e.seq for e in said] == list(range(1, len(said) + 1))
    assert kinds(said).count("steering_woken") == 2


def test_a_node_that_ends_takes_its_messages_with_it() -> None:
    """steering.md §4: expired, the node ended; never lost without a record."""

    async def script(bus: Bus, post: Post, team: Team) -> None:
        bus.publish(NodeStarted(node_id="fix"))
        bus.publish(Log(node_id="fix", level="info", message="red"))
        await asyncio.sleep(1)
        post.node_ended("fix")
        assert post.take("fix") == []

    said, _ = scene(script, spec(RED, watches=("fix",)))
    assert kinds(said)[-1] == "user_message_expired"


def test_a_word_that_comes_after_the_end_is_refused() -> None:
    """Issue 6, bad input: a run that ends while a message is on its way."""

    async def script(bus: Bus, post: Post, team: Team) -> None:
        post.run_ended()
        bus.publish(Log(node_id="fix", level="info", message="red"))
        await asyncio.sleep(1)
        with pytest.raises(NotQueued):
            post.say("m", "too late")

    said, _ = scene(script, spec(RED))
    evaluated = said[-1]
    assert evaluated.outcome == "refused"  # type: ignore[attr-defined]
    assert "is over" in evaluated.detail  # type: ignore[attr-defined]


def test_a_resumed_run_reads_its_messages_from_its_events() -> None:
    """Scenario 67: what another process queued is noticed, for it is in the record."""
    said: list[Event] = []
    post = Post("r", said.append, now=lambda: 1000.0)
    for i, node in enumerate(("a", "b", "")):
        post.say(f"m{i}", f"text {i}", node)
    post.take("a")
    post.stepped("a")
    post.cancel("m1")
    again = Post("r", said.append, history=[msgspec.to_builtins(e) for e in said])
    assert [(m.message_id, m.state) for m in again.mailbox.all()] == [
        ("m0", State.CONSUMED),
        ("m1", State.CANCELLED),
        ("m2", State.CONSUMED),
    ]
    assert messages_of("r", []) == []


def test_words_that_wait_keep_their_time_over_a_resume() -> None:
    said: list[Event] = []
    words = Words(message_id="m", run_id="r", node_id="a", author="dog", text="x")
    post = Post("r", said.append, now=lambda: 1000.0)
    asyncio.run(post.inject(words))
    again = Post("r", said.append, history=said, now=lambda: 1901.0)
    assert again.take("a") == []
    assert again.mailbox.get("m").state is State.EXPIRED


def test_an_observer_that_is_let_go_hears_nothing() -> None:
    heard: list[object] = []
    bus = Bus()
    run = LiveRun(bus.subscribe)
    watch = run.observe("r", heard.append)
    bus.publish(RunCompleted())
    watch.release()
    bus.publish(RunCompleted())
    assert len(heard) == 1


def test_what_goes_wrong_in_a_sink_does_not_reach_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_fact: object) -> None:
        raise RuntimeError("no")

    bus = Bus()
    LiveRun(bus.subscribe).observe("r", broken)
    bus.publish(RunCompleted())
    assert "could not be shown" in caplog.text


def test_what_a_run_says_of_every_item_leaves_the_recent_events_alone() -> None:
    """The watched run is not slowed by what no supervisor has a use for."""
    lookout, taken = Lookout(), []
    trigger = Trigger(spec(RED, watches=("fix",)), recent=lookout.recent)
    lookout.join(taken.append, trigger.wants, lambda: None)
    lookout(NodeStarted(node_id="fix"))
    lookout(Log(node_id="page", level="info", message="hello"))
    for i in range(100):
        lookout(InvocationStarted(node_id="page", lineage=(i,)))
        lookout(ItemEmitted(node_id="page", lineage=(i,)))
    lookout(InvocationStarted(node_id="fix", lineage=(0,)))
    assert [seen.type for seen in taken] == ["node_started", "log", "invocation_started"]
    assert [seen.type for seen in lookout.recent] == ["node_started", "log"]


# -- the switch --


@pytest.mark.parametrize(
    ("flag", "variable", "on", "by"),
    [
        (None, None, True, ""),
        ("off", "on", False, "--supervisors off"),
        ("on", "off", True, "--supervisors on"),
        (None, " OFF ", False, f"{VARIABLE}=off"),
        (None, "On", True, f"{VARIABLE}=on"),
        (None, "", True, ""),
    ],
)
def test_the_flag_goes_before_the_variable(
    flag: str | None, variable: str | None, on: bool, by: str
) -> None:
    """Scenario 74."""
    env = {} if variable is None else {VARIABLE: variable}
    found = switch(flag, env)
    assert (found.on, found.by, found.remark) == (on, by, "")


def test_a_flag_that_is_neither_is_refused_and_a_variable_is_a_remark() -> None:
    """Scenario 74."""
    with pytest.raises(ValueError, match="has to be on or off"):
        switch("maybe", {})
    found = switch(None, {VARIABLE: "maybe"})
    assert found.on
    assert found.remark == f"{VARIABLE} is 'maybe', neither on nor off: supervisors run"


def test_a_skip_says_how_many_and_who_decided() -> None:
    """Scenario 75."""
    off = switch("off", {})
    assert off.skipped(2) == "2 declared supervisors do not run: --supervisors off"
    assert off.skipped(1) == "1 declared supervisor does not run: --supervisors off"
    assert off.skipped(0) == ""
    assert switch(None, {}).skipped(3) == ""
