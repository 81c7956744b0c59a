"""The written answers of the demo fit the faults of its site (issue 2, the demo with faults)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nightwarden.demo import FAULTS, Kind, example
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors.rulefile import read_rules
from nightwarden.runtime.supervisors.scripted import Scripted
from nightwarden.verdict import Action, ApplyTo, Decision, Escalation, Item, Skip, action_of

REACHES_A_SUPERVISOR = {
    # kind of fault → step, signature, answers by attempt
    Kind.HANG: ("page", "timeout", [Action.RETRY]),
    Kind.LOCKED: ("page", "http:401", [Action.SKIP]),
    Kind.TRUNCATED: ("page", None, [Action.RETRY, Action.SKIP]),
    Kind.LOGIN: ("text", "node:no-main", [Action.SKIP]),
    Kind.CUT: ("text", "node:cut-off", [Action.SUBSTITUTE]),
}


@pytest.fixture
def supervisor() -> Scripted:
    path = example("pages.answers.yaml")
    return Scripted(read_rules(path.read_text(encoding="utf-8"), file=str(path)))


def ask(supervisor: Scripted, page: int, kind: Kind, attempt: int) -> Decision:
    node, signature, _ = REACHES_A_SUPERVISOR[kind]
    escalation = Escalation(
        id=EscalationId(f"{page}-{attempt}"),
        run_id=RunId("run"),
        node_id=NodeId(node),
        node_type="http.Fetch",
        lineage=(page - 1,),
        item=Item(str(page), 200, f"http://127.0.0.1:1/p/{page}"),
        attempt=attempt,
        retries_left=3 - attempt,
        allowed_actions=tuple(Action),
        detail="broken",
        error_type="FetchError",
        signature=signature,
    )
    return asyncio.run(supervisor.decide(escalation))


def test_every_fault_that_reaches_a_supervisor_has_its_answer(supervisor: Scripted) -> None:
    for page, fault in FAULTS.items():
        if fault.kind in REACHES_A_SUPERVISOR:
            expected = REACHES_A_SUPERVISOR[fault.kind][2]
            decisions = [ask(supervisor, page, fault.kind, n + 1) for n in range(len(expected))]
            assert [action_of(d.verdict) for d in decisions] == expected
            assert all(d.rationale for d in decisions)
    assert supervisor.unused() == ()


def test_pages_that_want_an_account_are_skipped_by_signature(supervisor: Scripted) -> None:
    decision = ask(supervisor, 88, Kind.LOCKED, 1)
    assert decision.verdict == Skip(apply_to=ApplyTo.SIGNATURE)


def test_the_other_faults_need_no_decision() -> None:
    """Within the two tries of a step, or readable as they are."""
    for fault in FAULTS.values():
        if fault.kind not in REACHES_A_SUPERVISOR:
            assert fault.times == 1 or fault.kind is Kind.SOUP


def test_the_demo_stays_within_the_default_number_of_decisions() -> None:
    sticky = {Kind.LOCKED}
    kinds = [f.kind for f in FAULTS.values() if f.kind in REACHES_A_SUPERVISOR]
    asked = sum(len(REACHES_A_SUPERVISOR[k][2]) for k in kinds if k not in sticky) + len(sticky)
    assert asked == 6
    assert asked <= Bounds().max_decisions


def test_the_example_lies_where_the_demo_looks_for_it(root: Path) -> None:
    assert example("pages.yaml") == root / "examples" / "pages.yaml"
