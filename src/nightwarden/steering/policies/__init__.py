"""The shipped policies, by name.

    perseverance   against giving up too early, the easy way out, loops, a budget that runs out
    scope-guard    against changes outside what was asked for
    cost-pacer     one word when money begins to run
    loop-breaker   against the same failing call again and again

Read next: `base.py`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nightwarden.spec.supervisors import COOLDOWN_S, MAX_EVALS, SupervisorSpec
from nightwarden.steering.policies.base import Policy
from nightwarden.steering.policies.cost_pacer import COST_PACER
from nightwarden.steering.policies.loop_breaker import LOOP_BREAKER
from nightwarden.steering.policies.perseverance import PERSEVERANCE
from nightwarden.steering.policies.scope_guard import SCOPE_GUARD

POLICIES: Final = {
    policy.name: policy for policy in (COST_PACER, LOOP_BREAKER, PERSEVERANCE, SCOPE_GUARD)
}


def applied(spec: SupervisorSpec) -> SupervisorSpec:
    """The supervisor with the policy it names written out. What it says itself comes after."""
    policy = POLICIES.get(spec.policy)
    if policy is None:
        return spec
    monitors = dict.fromkeys((*policy.monitors, *spec.monitors))
    return msgspec.structs.replace(
        spec,
        policy="",
        system="\n\n".join(part for part in (policy.prompt, spec.system.strip()) if part),
        monitors=tuple(monitors),
        cooldown_s=policy.cooldown_s if spec.cooldown_s == COOLDOWN_S else spec.cooldown_s,
        max_evals=policy.max_evals if spec.max_evals == MAX_EVALS else spec.max_evals,
        boundaries=spec.boundaries and policy.boundaries,
    )


__all__ = ["POLICIES", "Policy", "applied"]
