"""Drawn runs are killed at drawn moments and resumed until they end. (kernel.md §3 Resume)

Compared with the same run left alone: same outputs, same ledger, and nothing that may not be done
twice done twice. The process dies between two events of its record, and loses what was not yet
durable, or some of it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crashing import FragileStore, Killed, mortal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soak.drawing import KINDS, Choice, Plan, workflow_of
from soak.playing import Moody, _ledger
from soak.steps import World

from nightwarden import RunResult, Session
from nightwarden.resuming import NothingLeft, resume_session
from nightwarden.runtime.supervision import Bounds
from nightwarden.testing import InlineExecutor, Played, play
from nightwarden.verdict import ApplyTo, Escalation, Skip, Verdict

MOST = 40
"""Resumes of one run; each gets further, or the run would never end."""


class Steady(Moody):
    """Answers the same failure the same way, whatever came before it."""

    def _verdict(self, dice: Any, escalation: Escalation) -> Verdict:
        verdict = super()._verdict(dice, escalation)
        return Skip(ApplyTo.INVOCATION) if isinstance(verdict, Skip) else verdict


def choice(safe: st.SearchStrategy[bool]) -> st.SearchStrategy[Choice]:
    return st.builds(
        Choice,
        kind=st.sampled_from(KINDS),
        first=st.integers(0, 5),
        second=st.integers(0, 5),
        number=st.integers(1, 5),
        safe=safe,
        places=st.sampled_from((None, None, 1, 3)),
    )


def plan(
    safe: st.SearchStrategy[bool], patience: tuple[float | None, ...] = (0.0, 5.0)
) -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        choices=st.lists(choice(safe), min_size=3, max_size=12).map(tuple),
        seed=st.integers(0, 2**16),
        shuffle=st.none() | st.integers(0, 2**16),
        wrong=st.sampled_from((0, 12, 6)),
        window=st.sampled_from((1024, 1, 3)),
        keep_going=st.booleans(),
        patience=st.sampled_from(patience),
        suspends=st.booleans() if None in patience else st.just(False),
    )


deaths = st.lists(st.tuples(st.integers(1, 25), st.integers(0, 8)), min_size=1, max_size=5)


def options(plan: Plan) -> dict[str, Any]:
    return {
        "supervise": None if plan.patience is None else Steady(plan),
        "bounds": Bounds(max_decisions=10_000),
        "executor": InlineExecutor(),
        "window": plan.window,
        "seed": plan.seed,
    }


def left_alone(plan: Plan, files: Path) -> Played:
    world = World(plan.seed, plan.wrong, plan.suspends)
    session = Session(
        workflow_of(plan, world),
        store=FragileStore(files),  # type: ignore[arg-type]
        keep_going=plan.keep_going,
        workdir=files,
        **options(plan),
    )
    return play(session, seed=plan.shuffle)


def killed(
    plan: Plan, deaths: list[tuple[int, int]], files: Path
) -> tuple[RunResult, World, FragileStore]:
    """The run as it ends after dying so often, with what its steps have seen of it."""
    world = World(plan.seed, plan.wrong, plan.suspends)
    workflow = workflow_of(plan, world)
    store = FragileStore(files)
    ahead = list(deaths)
    for number in range(MOST):
        store.dies_after, store.keeps = ahead.pop(0) if ahead else (None, 0)
        try:
            if not store.records or not next(iter(store.records.values())):
                session = Session(
                    workflow,
                    store=store,  # type: ignore[arg-type]
                    run_id=f"r{number}",
                    keep_going=plan.keep_going,
                    workdir=files,
                    **options(plan),
                )
                store.records.clear()
            else:
                session = resume_session(
                    store,  # type: ignore[arg-type]
                    workflow=workflow,
                    workdir=files,
                    **options(plan),
                )
            result = mortal(session, store, seed=plan.shuffle)
        except Killed:
            continue
        except NothingLeft:  # it died after its last event
            store.dies_after = None
            session = resume_session(
                store,  # type: ignore[arg-type]
                workflow=workflow,
                workdir=files,
                force=True,
                **options(plan),
            )
            result = mortal(session, store, seed=plan.shuffle)
        store.dies_after = None
        return result, world, store
    raise AssertionError("the run never ends")


def accounts(result: RunResult) -> dict[str, Any]:
    """The ledger, without the numbers of escalations, which come in any order."""
    ledger = json.loads(json.dumps(dict(result.ledger), default=str))

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k not in ("escalation", "reason")}
        return [bare(v) for v in value] if isinstance(value, list) else value

    return bare(ledger)  # type: ignore[no-any-return]


def values(result: RunResult) -> dict[str, str]:
    return {name: repr(value) for name, value in sorted(result.outputs.items())}


def numbering(result: RunResult) -> list[str]:
    return sorted(i.escalation.id for i in result.interventions)


slow = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@slow
@given(plan=plan(st.just(True)), deaths=deaths)
def test_a_killed_run_comes_to_what_it_would_have_come_to(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, deaths: list[tuple[int, int]]
) -> None:
    """H10; issue 4: same outputs, each safe item done, ledgers equal."""
    files = tmp_path_factory.getbasetemp()
    alone = left_alone(plan, files).result
    result, _, store = killed(plan, deaths, files)
    assert result.status == alone.status
    if alone.status == "completed":
        assert values(result) == values(alone)
        assert accounts(result) == accounts(alone)
        (record,) = store.records.values()
        assert [json.loads(line)["seq"] for line in record] == list(range(1, len(record) + 1))


@slow
@given(plan=plan(st.booleans(), (0.0, 5.0, None)), deaths=deaths)
def test_what_may_not_be_done_twice_is_not_done_twice(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, deaths: list[tuple[int, int]]
) -> None:
    """Issue 4: each unsafe effect at most once, and every item is accounted for."""
    files = tmp_path_factory.getbasetemp()
    result, world, store = killed(plan, deaths, files)
    again = None
    if result.status in ("failed", "suspended"):
        session = resume_session(
            store,  # type: ignore[arg-type]
            workflow=workflow_of(plan, world),
            workdir=files,
            **options(plan),
        )
        again = mortal(session, store, seed=plan.shuffle)
    unsafe = {
        f"n{number}{end}"
        for number, choice in enumerate(plan.choices)
        if not choice.safe
        for end in ("", "b", "c", "t")
    }
    asked = suspended_keys(store)
    twice = {k: n for k, n in world.begun.items() if n > 1 + asked[k] and k[0] in unsafe}
    assert twice == {}
    for ended in (result, again):
        if ended is not None:
            assert list(_ledger(ended.ledger, ended.status)) == []


def suspended_keys(store: FragileStore) -> Counter[tuple[str, tuple[int, ...], int]]:
    """What asked for a pause, and may therefore run once more."""
    return Counter(
        (event["node_id"], tuple(event["lineage"]), event["attempt"])
        for event in store.read(store.find("last"))
        if event["type"] == "invocation_suspended"
    )


lives = st.lists(
    st.none() | st.tuples(st.integers(1, 25), st.integers(0, 8)), min_size=2, max_size=8
)
"""When each process dies, and what it keeps; None for one that comes to an end."""


@slow
@given(plan=plan(st.booleans(), (0.0, None, None)), lives=lives)
def test_over_pauses_and_deaths_nothing_unsafe_begins_twice_and_no_money_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    lives: list[tuple[int, int] | None],
) -> None:
    """Issue 4: what may not be done twice begins again only after it asked for a pause."""
    files = tmp_path_factory.getbasetemp()
    world = World(plan.seed, wrong=3, suspends=True)
    workflow, store = workflow_of(plan, world), FragileStore(files)
    for number, death in enumerate(lives):
        store.dies_after, store.keeps = death or (None, 0)
        given: dict[str, Any] = {"workdir": files, "store": store, **options(plan)}
        try:
            if not store.records or not next(iter(store.records.values())):
                store.records.clear()
                session = Session(workflow, run_id=f"r{number}", **given)
            else:
                session = resume_session(workflow=workflow, **given)
            result = mortal(session, store, seed=plan.shuffle)
        except (Killed, NothingLeft):
            continue
        record = list(store.read(store.find("last")))
        spent = [e["cost_micro_usd"] for e in record if e["type"] == "invocation_spent"]
        assert result.costs["total_micro_usd"] == sum(spent)
        assert list(_ledger(result.ledger, result.status)) == []
    if store.records:
        assert begun_twice(plan, store) == []


def begun_twice(plan: Plan, store: FragileStore) -> list[object]:
    """What may not be done twice, and began again although it had not asked for it."""
    ends = ("", "b", "c", "t")
    unsafe = {f"n{n}{end}" for n, c in enumerate(plan.choices) if not c.safe for end in ends}
    begun: set[object] = set()
    twice: list[object] = []
    for event in store.read(store.find("last")):
        if event["type"] not in ("invocation_started", "invocation_suspended"):
            continue
        key = (event["node_id"], tuple(event.get("lineage", ())), event["attempt"])
        if event["type"] == "invocation_suspended":
            begun.discard(key)
        elif event["node_id"] in unsafe:
            twice += [key] if key in begun else []
            begun.add(key)
    return twice
