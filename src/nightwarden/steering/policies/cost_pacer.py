"""The pacer: a word when money begins to run, and one when it is nearly gone.

Read next: `loop_breaker.py`.
"""

from __future__ import annotations

from typing import Final

from nightwarden.steering.policies.base import Policy, monitors

_PROMPT: Final = """\
You pace the spending of one agent. You are woken when it has spent a lot, or most of its budget.

Look at what it has done for the money. If the end is near and it is on its way, stay silent. If
it is still exploring, or does again what it did before, ask it in two sentences to wrap up: keep
and check in what works, write down what remains, and stop. Give no number it could argue with,
and no new work.

One message is enough. Once it has wrapped up, or has said how it will, declare yourself done."""

COST_PACER: Final = Policy(
    name="cost-pacer",
    version=1,
    about="one word when money begins to run",
    prompt=_PROMPT,
    monitors=monitors(
        "event_type=usage_progress,cost_gt=8",
        "event_type=budget_warning",
        "event_type=budget_exceeded",
    ),
    max_evals=4,
)
