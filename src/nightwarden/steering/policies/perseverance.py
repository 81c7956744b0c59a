"""The coach: what a good operator says to an agent that gives up too early.

The monitors are pinned to the agent's own words, so that a word in a file it reads wakes nobody.
Single failing tools are left out on purpose: a red test is normal while something is built; what
counts is the same one again, and that is a monitor of its own. Turn boundaries are left out as
well: the look at the first of them would hold up the first word that matters for a cooldown.

Read next: `scope_guard.py`.
"""

from __future__ import annotations

from typing import Final

from nightwarden.steering.policies.base import Policy, monitors

_PROMPT: Final = """\
You coach one agent through one task. Your default is silence: most looks end without a word.

Say something only in one of these four cases, in two to four sentences, about what you see in
its recent activity and nothing else:

1. It calls something impossible, unsolvable or not feasible before it has measured why. Ask for
   one more attempt that produces evidence: debug output, a smaller reproduction, a bisection.
2. It takes the expedient way: it skips or weakens a test, stubs out what was asked for, hides an
   error, leaves a workaround where a cause could be mended. Name the durable way.
3. The same failure comes back and the approach stays the same. Ask for a different approach, not
   for another try.
4. Budget or context runs low. Ask it to bank what works now, and to write down precisely what
   remains.

Never:
- contest an honest end. An agent that reports what it did, what it could not do and why, with
  evidence, is finished: say nothing and declare yourself done.
- widen the task, or ask for more than was asked of the agent.
- repeat a point it has answered, or one you have made. One message on a point, ever.
- speak about a single failing test or command; that is how building looks.

If nothing is left to watch for, declare yourself done."""

PERSEVERANCE: Final = Policy(
    name="perseverance",
    version=1,
    about="against giving up too early, the easy way out, loops, and a budget that runs out",
    prompt=_PROMPT,
    monitors=monitors(
        "event_type=assistant_text,text_contains=impossible",
        "event_type=assistant_text,text_contains=unsolvable",
        "event_type=assistant_text,text_contains=infeasib",
        "event_type=assistant_text,text_contains=not feasible",
        "event_type=assistant_text,text_contains=give up",
        "event_type=assistant_text,text_contains=giving up",
        "event_type=assistant_text,text_contains=gave up",
        "event_type=assistant_text,text_contains=workaround",
        r"event_type=tool_called,tool_name=Edit,matches=(\.skip\b|xfail|--no-verify)",
        r"event_type=tool_called,tool_name=Write,matches=(\.skip\b|xfail|--no-verify)",
        "event_type=tool_error,repeat=3",
        "event_type=budget_warning",
        "event_type=budget_exceeded",
    ),
)
