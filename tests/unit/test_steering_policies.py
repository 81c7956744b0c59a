"""The shipped policies over recorded sessions (steering.md §8); scenarios 100–103 of §23."""

from __future__ import annotations

import pytest
from policy_scores import Session, score, sessions

from nightwarden.spec.monitors import EVENT_TYPES
from nightwarden.spec.supervisors import POLICIES as NAMES
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.policies import POLICIES, Policy, applied

ALL = list(sessions())


@pytest.mark.parametrize("session", ALL, ids=lambda s: f"{s.policy}-{s.name}")
def test_it_looks_when_it_matters_and_not_much_else(session: Session) -> None:
    found = session.play()
    assert session.missed(found) == []
    assert len(found.wakes) <= session.expect["most"]
    assert len(found.messages) == session.expect["messages"]


@pytest.mark.parametrize("policy", NAMES)
def test_a_policy_catches_everything_in_its_sessions(policy: str) -> None:
    """steering.md §8: each with fixtures and a score."""
    found = score(policy)
    assert found.sessions >= 6
    assert (found.caught, found.words_right) == (1.0, 1.0)
    assert found.looks <= found.allowed


def test_the_names_the_specification_knows_are_those_there_are() -> None:
    assert sorted(POLICIES) == sorted(NAMES)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda p: p.name)
def test_a_policy_is_sound(policy: Policy) -> None:
    """The fleet test of the reference, §20."""
    assert policy.version >= 1
    assert policy.max_evals > 0
    assert policy.cooldown_s > 0
    assert policy.monitors
    for monitor in policy.monitors:
        assert monitor.remarks() == ()
        assert monitor.event_type in EVENT_TYPES or monitor.idle_for_s
        if monitor.text_contains or monitor.matches:
            assert monitor.event_type
    assert "silen" in policy.prompt


def test_a_policy_and_the_supervisor_that_names_it_are_put_together() -> None:
    plain = applied(SupervisorSpec(name="c", policy="cost-pacer"))
    assert plain.monitors == POLICIES["cost-pacer"].monitors
    assert (plain.cooldown_s, plain.max_evals, plain.boundaries) == (300, 4, False)
    own = applied(SupervisorSpec(name="c", policy="cost-pacer", cooldown_s=9, system="In French."))
    assert own.cooldown_s == 9
    assert own.system.endswith("\n\nIn French.")
    assert applied(SupervisorSpec(name="c", policy="gone")).monitors == ()
