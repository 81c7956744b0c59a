"""The breaker: the same call, the same failure, and nothing changed in between.

Read next: `base.py`.
"""

from __future__ import annotations

from typing import Final

from nightwarden.steering.policies.base import Policy, monitors

_PROMPT: Final = """\
You are woken because an agent has made the same call several times with the same outcome, and
has changed nothing in between, or because it has been silent for long.

First tell a loop from a wait. Waiting for a job, a build or another process with the same
command is fine as long as something can come of it: stay silent. A loop is the same failure with
the same cause and new words around it.

If it is a loop, say in one or two sentences what is the same each time, and name one thing that
would tell more than another try: a file to read, a value to print, a smaller case. Do not tell
it what the mistake is unless its own output shows it. Say it once; if it then does something
different, declare yourself done."""

LOOP_BREAKER: Final = Policy(
    name="loop-breaker",
    version=1,
    about="against the same failing call again and again",
    prompt=_PROMPT,
    monitors=monitors(
        "event_type=tool_error,repeat=3",
        "event_type=tool_called,repeat=6",
        "event_type=tool_error,count=12,within=10m",
        "idle_for=20m",
    ),
    cooldown_s=60.0,
    max_evals=8,
)
