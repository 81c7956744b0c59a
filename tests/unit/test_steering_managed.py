"""Steering wired to a run of this process: supervisors, mailbox, words from elsewhere."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from steered_runs import AGENT, WATCHED, session
from steering_kit import Judge

from nightwarden.errors import ModelError, RunError
from nightwarden.events import Log, SteeringEvaluated, UserMessageExpired, UserMessageQueued
from nightwarden.resuming import resume_session
from nightwarden.session import Session
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.ports import Advice, Answer, Snapshot
from nightwarden.store import open_store
from nightwarden.store.contract import Command
from nightwarden.testing import InlineExecutor, Played, play

WORD = Advice(intervene=True, message="Read the log first.", reason="it repeats itself")
SAID = "[supervisor dog] Read the log first."


def word(text: str, node: str = "", number: int = 1, kind: str = "message") -> Command:
    body = {"text": text, "node": node} if node else {"text": text}
    return Command(number=number, kind=kind, body=body, sent_at="2026-11-30T00:00:00.000Z")


def judged_by(judge: object) -> Any:
    return lambda _spec: judge


def steering(played: Played) -> list[str]:
    return [t for t in played.types() if t.startswith(("steering_", "user_message_"))]


def test_a_declared_supervisor_says_a_word_the_agent_reads_at_its_next_turn(
    tmp_path: Path,
) -> None:
    """steering.md §1: it queues a text the agent reads at its next turn."""
    judge = Judge(WORD, takes_s=2)
    played = play(session(tmp_path, evaluators=judged_by(judge)), seed=1)
    assert played.result.status == "completed"
    assert played.result.outputs["fix"] == [SAID]
    assert steering(played) == [
        "steering_armed",
        "steering_woken",
        "user_message_queued",
        "steering_evaluated",
        "user_message_delivered",
        "user_message_consumed",
    ]
    assert played.ended_s == 40.0
    assert judge.asked_at == [10.0]
    assert judge.asked[0][1].policy == "Stay calm."
    assert judge.asked[0][1].node == "fix"


def test_a_steered_run_ends_as_the_same_run_without_supervisors(tmp_path: Path) -> None:
    """Issue 6: the watched run is never slowed, failed or changed."""
    bare = play(session(tmp_path, AGENT), seed=1)
    silent = play(session(tmp_path, evaluators=judged_by(Judge())), seed=1)
    for run in (bare, silent):
        assert (run.result.status, run.ended_s, run.result.outputs) == (
            "completed",
            40.0,
            {"fix": []},
        )
        assert run.result.costs["total_micro_usd"] == 0
        assert run.events[-1].cost_micro_usd == 0  # type: ignore[attr-defined]
    assert silent.result.costs["steering_micro_usd"] == 500
    assert "steering_micro_usd" not in bare.result.costs
    assert steering(bare) == []


class Hanging:
    """Deaf to everything, also to being cancelled."""

    async def evaluate(self, snapshot: Snapshot) -> Answer:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (Judge("I think all is well.", takes_s=1), "it answered str, not advice"),
        (Judge(RuntimeError("no connection")), "RuntimeError: no connection"),
        (Judge(None), "it answered NoneType, not advice"),
    ],
)
def test_an_evaluator_that_answers_prose_or_raises_changes_nothing(
    tmp_path: Path, judge: Judge, said: str
) -> None:
    """Issue 6, bad input: an evaluator that answers prose."""
    played = play(session(tmp_path, evaluators=judged_by(judge)), seed=1)
    assert (played.result.status, played.ended_s) == ("completed", 40.0)
    first = played.of(SteeringEvaluated)[0]
    assert (first.outcome, first.detail) == ("failed", said)


def test_an_evaluator_that_hangs_holds_nothing_up(tmp_path: Path) -> None:
    """Issue 6, bad input: an evaluator that hangs; scenario 26."""
    played = play(session(tmp_path, evaluators=judged_by(Hanging())), seed=1)
    assert (played.result.status, played.ended_s) == ("completed", 40.0)
    assert played.types()[-1] == "run_completed"
    assert played.of(SteeringEvaluated) == []


class Dear(Hanging):
    """Hangs, at a price."""

    def untold_micro_usd(self) -> int:
        return 1234


def test_a_look_the_end_of_the_run_cuts_off_is_told_with_its_cost(tmp_path: Path) -> None:
    """steering.md §2: own ledger line; nothing that was spent is left out."""
    played = play(session(tmp_path, evaluators=judged_by(Dear())), seed=1)
    (cut,) = played.of(SteeringEvaluated)
    assert (cut.outcome, cut.cost_micro_usd) == ("failed", 1234)
    assert cut.detail == "the run ended while it thought"
    assert played.types()[-2:] == ["steering_evaluated", "run_completed"]
    assert played.result.costs["steering_micro_usd"] == 1234


def test_a_supervisor_without_a_model_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    def none_at_all(_spec: SupervisorSpec) -> None:
        raise ModelError("no key is here")

    played = play(session(tmp_path, evaluators=none_at_all), seed=1)
    assert played.result.status == "completed"
    assert "supervisor dog does not run: no key is here" in [e.message for e in played.of(Log)]


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ("dog: {}", "supervisor 'dog': it says nothing; give it watches:, system: or monitors:"),
        (
            "dog: {watches: [fxi], monitors: ['repeat=3']}",
            "supervisor 'dog': there is no node 'fxi' to watch; did you mean 'fix'?",
        ),
        (
            "dog: {monitors: ['repeat=once', 'repeat=3']}",
            "supervisor 'dog': monitor 'repeat=once' is left out: "
            "repeat is 'once', but has to be a number",
        ),
    ],
)
def test_a_run_says_what_a_declared_supervisor_lacks(
    tmp_path: Path, blocks: str, said: str
) -> None:
    """steering.md §6: a declared supervisor never disappears in silence, nor a part of it."""
    text = f"{AGENT}supervisors:\n  {blocks}\n"
    played = play(session(tmp_path, text, evaluators=judged_by(Judge())), seed=1)
    assert played.result.status == "completed"
    warned = [e.message for e in played.of(Log) if e.level == "warning"]
    assert warned == [said]


# -- the switch --


def test_the_switch_skips_declared_supervisors_and_says_so(tmp_path: Path) -> None:
    """Scenario 75, in a run."""
    played = play(session(tmp_path, evaluators=judged_by(Judge(WORD)), supervisors="off"), seed=1)
    assert steering(played) == []
    skipped = [e.message for e in played.of(Log) if e.level == "warning"]
    assert skipped == ["1 declared supervisor does not run: --supervisors off"]


def test_the_variable_decides_where_no_flag_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTWARDEN_SUPERVISORS", "off")
    off = play(session(tmp_path, evaluators=judged_by(Judge(WORD))), seed=1)
    on = play(session(tmp_path, evaluators=judged_by(Judge(WORD)), supervisors="on"), seed=1)
    assert (steering(off), steering(on)[0]) == ([], "steering_armed")


def test_a_switch_that_is_neither_is_refused(tmp_path: Path) -> None:
    """Scenario 74."""
    with pytest.raises(RunError, match="supervisors is 'maybe', but has to be on or off"):
        session(tmp_path, supervisors="maybe")


def test_a_run_that_has_nothing_to_steer_loads_none_of_it() -> None:
    """Issue 6: a clean run costs nothing and imports nothing of steering."""
    code = (
        "import sys, nightwarden as nw\n"
        "@nw.node(type='a.One')\n"
        "def one() -> int: return 1\n"
        "with nw.workflow('w') as w: w.add(one, id='one')\n"
        "nw.run(w.build())\n"
        "print(sorted(m for m in sys.modules if m.startswith('nightwarden.steering')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# -- words from elsewhere --


def test_a_word_from_another_process_reaches_the_agent(tmp_path: Path) -> None:
    """steering.md §4: `message RUN TEXT --node`, operator text."""
    mine = session(tmp_path, AGENT)
    played = play(mine, seed=1, at=[(12.0, lambda: mine._obey(word("Stop trying.", "fix")))])
    assert played.result.outputs["fix"] == ["Stop trying."]
    (queued,) = played.of(UserMessageQueued)
    assert (queued.author, queued.node_id, queued.text) == ("operator", "fix", "Stop trying.")


def test_words_that_came_before_the_run_had_begun_are_kept(tmp_path: Path) -> None:
    mine = session(tmp_path, AGENT)
    mine._obey(word("Before."))
    played = play(mine, seed=1)
    assert played.result.outputs["fix"] == ["Before."]


def test_a_word_is_delivered_once_however_often_it_comes(tmp_path: Path) -> None:
    mine = session(tmp_path, AGENT)
    twice = [(12.0, lambda: mine._obey(word("Once."))), (13.0, lambda: mine._obey(word("Once.")))]
    assert play(mine, seed=1, at=twice).result.outputs["fix"] == ["Once."]


@pytest.mark.parametrize(
    ("node", "reason"),
    [("mend", "there is no node mend"), ("other", "other reads no messages")],
)
def test_a_word_nobody_will_read_is_refused_on_the_record(
    tmp_path: Path, node: str, reason: str
) -> None:
    """steering.md §4: never lost without a record."""
    text = AGENT + "  other: {type: flow.Value, value: 1}\n"
    mine = session(tmp_path, text)
    played = play(mine, seed=1, at=[(12.0, lambda: mine._obey(word("Hello?", node)))])
    assert steering(played) == ["user_message_queued", "user_message_expired"]
    assert [e.reason for e in played.of(UserMessageExpired)] == [reason]


def test_a_word_for_a_node_that_ended_is_refused_on_the_record(tmp_path: Path) -> None:
    text = AGENT + "  slow: {type: t.Agent, turns: 9}\n"
    mine = session(tmp_path, text)
    played = play(mine, seed=1, at=[(50.0, lambda: mine._obey(word("Hello?", "fix")))])
    assert [e.reason for e in played.of(UserMessageExpired)] == ["the node ended"]


def test_a_run_without_agents_puts_a_word_on_record_and_refuses_it(tmp_path: Path) -> None:
    text = "version: 1\nname: w\nnodes:\n  a: {type: flow.Value, value: 1}\n"
    mine = session(tmp_path, text)
    mine._obey(word("Anybody?"))
    played = play(mine, seed=1)
    assert [e.reason for e in played.of(UserMessageExpired)] == [
        "nobody is left who reads messages"
    ]


def test_what_waits_when_the_run_ends_expires_before_its_last_event(tmp_path: Path) -> None:
    """Issue 6, bad input: a run that ends while a message is on its way."""
    mine = session(tmp_path, AGENT)
    acts = [(38.0, lambda: mine._obey(word("Wait."))), (39.0, mine.cancel)]
    played = play(mine, seed=1, at=acts)
    assert played.types()[-2:] == ["user_message_expired", "run_cancelled"]
    assert [e.reason for e in played.of(UserMessageExpired)] == ["the run ended"]


def test_a_secret_in_a_word_is_masked_on_the_record(tmp_path: Path) -> None:
    """supervision.md §4: there is no unredacted record anywhere."""
    mine = session(tmp_path, AGENT, secrets={"TOKEN": "hunter2-hunter2"})
    mine._registry.register("TOKEN", "hunter2-hunter2")
    mine._obey(word("Use hunter2-hunter2."))
    played = play(mine, seed=1)
    assert [e.text for e in played.of(UserMessageQueued)] == ["Use ••••(TOKEN)."]


def test_what_a_supervisor_elsewhere_tells_is_on_the_record(tmp_path: Path) -> None:
    """events.md: everything it does is an event of the run."""
    mine = session(tmp_path, AGENT)
    body = {"type": "steering_evaluated", "supervisor": "cat", "outcome": "silent", "number": 1}
    good = Command(number=1, kind="steering", body={**body, "limit": 20}, sent_at="")
    alien = Command(number=2, kind="steering", body={"type": "run_failed"}, sent_at="")
    broken = Command(number=3, kind="steering", body=body, sent_at="")
    acts = [(9.0, lambda c=c: mine._obey(c)) for c in (good, alien, broken)]
    played = play(mine, seed=1, at=acts)
    assert played.result.status == "completed"
    assert [e.supervisor for e in played.of(SteeringEvaluated)] == ["cat"]


# -- resume --


def resumed(tmp_path: Path, judge: object, **options: Any) -> Session:
    from steered_runs import workflow

    return resume_session(
        options.pop("store"),
        "r1",
        workflow=workflow(tmp_path, WATCHED),
        executor=InlineExecutor(),
        evaluators=judged_by(judge),
        **options,
    )


def test_where_a_supervisor_stood_survives_a_resume(tmp_path: Path) -> None:
    """steering.md §2: all of it survives a restart; scenario 54."""
    with open_store(tmp_path / "s") as store:
        first = session(
            tmp_path,
            WATCHED.replace("boundaries: false", "boundaries: false\n    max_evals: 1"),
            store=store,
            run_id="r1",
            evaluators=judged_by(Judge(WORD)),
        )
        play(first, seed=1, at=[(15.0, first.cancel)])
        judge = Judge(WORD)
        again = resumed(tmp_path, judge, store=store, force=True)
        played = play(again, seed=1)
        kinds = [e["type"] for e in store.read("r1")]
    assert played.result.status == "completed"
    assert kinds[-1] == "run_completed"
    (evaluated,) = played.of(SteeringEvaluated)
    assert evaluated.number == 2
    assert "steering_armed" in played.types()


def test_a_resume_has_to_be_told_again_to_leave_supervisors_out(tmp_path: Path) -> None:
    """Scenario 76: the switch is not kept with the run."""
    with open_store(tmp_path / "s") as store:
        first = session(tmp_path, store=store, run_id="r1", supervisors="off")
        off = play(first, seed=1, at=[(15.0, first.cancel)])
        on = play(resumed(tmp_path, Judge(WORD), store=store), seed=1)
    assert (steering(off), steering(on)[0]) == ([], "steering_armed")


def test_a_word_that_waits_is_read_after_a_resume(tmp_path: Path) -> None:
    """steering.md §4: what was handed over and not taken up waits for the agent again."""
    with open_store(tmp_path / "s") as store:
        first = session(tmp_path, AGENT, store=store, run_id="r1")
        hear = (12.0, lambda: first._obey(word("Hello.", "fix")))
        play(first, seed=1, at=[hear, (25.0, first.cancel)])
        before = [e["type"] for e in store.read("r1")]
        from steered_runs import workflow

        again = resume_session(
            store, "r1", workflow=workflow(tmp_path, AGENT), executor=InlineExecutor()
        )
        played = play(again, seed=1)
    assert before.count("user_message_delivered") == 1
    assert played.result.outputs["fix"] == ["Hello."]
