"""Which verdicts may be given for a failure: one table, computed here and enforced here.

    what failed                                   allowed
    plain invocation                              retry¹ · substitute² · skip · fail
    fan-out, nothing emitted yet                  retry¹ · skip · fail
    fan-out, something emitted                    end_stream · fail
    a node that reads its stream itself           end_stream · fail
    a value that does not fit its input           skip · fail

¹ only if the code says it is safe to run again (or passes an idempotency key on), the attempt
  recorded no cost and wrote no asset, its outcome is known, its inputs could be kept, and the
  retry budget is not used up   ² only with a candidate output, and only if every declared
  output slot has a type that can be checked

Read next: `escalating.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from nightwarden.kernel.plan import NodePlan
from nightwarden.kernel.stimuli import Failed
from nightwarden.spec.catalog import Role
from nightwarden.verdict import Action


class Shape(StrEnum):
    """What kind of invocation failed; the rows of the table."""

    PLAIN = "plain invocation"
    FANOUT_SILENT = "fan-out, nothing emitted yet"
    FANOUT_EMITTED = "fan-out, something emitted"
    READER = "a node that reads its stream itself"
    BAD_INPUT = "a value that does not fit its input"


TABLE: Mapping[Shape, tuple[Action, ...]] = {
    Shape.PLAIN: (Action.RETRY, Action.SUBSTITUTE, Action.SKIP, Action.FAIL),
    Shape.FANOUT_SILENT: (Action.RETRY, Action.SKIP, Action.FAIL),
    Shape.FANOUT_EMITTED: (Action.END_STREAM, Action.FAIL),
    Shape.READER: (Action.END_STREAM, Action.FAIL),
    Shape.BAD_INPUT: (Action.SKIP, Action.FAIL),
}
"""The actions a row could allow, in the order they are offered."""


def shape_of(node: NodePlan, failed: Failed, emitted: int) -> Shape:
    """The row of the table a failure belongs to."""
    if failed.bad_input:
        return Shape.BAD_INPUT
    if node.type.reads and node.type.role is Role.NONE:  # Zip and Cross have a fan-out's actions
        return Shape.READER
    if node.type.fans_out:
        return Shape.FANOUT_EMITTED if emitted else Shape.FANOUT_SILENT
    return Shape.PLAIN


def retry_refusal(node: NodePlan, failed: Failed) -> str:
    """Why this attempt may not be run again, in words; empty when nothing but the budget counts."""
    if not (node.type.retry_safe or failed.idempotent):
        return "the step does not say that it is safe to run again"
    if failed.cost_micro_usd or not failed.cost_known:
        return "the attempt spent money"
    if failed.assets:
        return "the attempt wrote a file"
    if failed.cut_off and not failed.idempotent:
        return "it was cut off, and whether it took effect is not known"
    if failed.unknown:
        return "whether the attempt took effect is not known"
    if not failed.copied:
        return "an input could not be copied"
    return ""


def repair_refusal(failed: Failed) -> str:
    """Why there is nothing a repair could be held against, in words; empty where there is."""
    if not failed.has_candidate:
        return "the step had no value at hand to be repaired"
    if not failed.checkable:
        return "the step declares no type of its output that a repair could be held against"
    return ""


def allowed_actions(
    shape: Shape, *, retry: bool, has_candidate: bool, checkable: bool
) -> tuple[Action, ...]:
    """The row of the table, less what its footnotes take away."""
    withheld = set()
    if not retry:
        withheld.add(Action.RETRY)
    if not (has_candidate and checkable):
        withheld.add(Action.SUBSTITUTE)
    return tuple(action for action in TABLE[shape] if action not in withheld)


def retry_delay_s(retry: int, retry_after_s: float | None, jitter: float) -> float:
    """Seconds before the given retry (from 1): what the error asks for, else exponential.

    Half of the exponential delay is fixed and half spread by `jitter` in [0, 1), so that
    failures that came together do not come back together.
    """
    if retry_after_s is not None:
        return max(0.0, retry_after_s)
    return float(min(60.0, 2.0 ** (retry - 1))) * (0.5 + 0.5 * jitter)
