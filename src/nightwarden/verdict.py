"""Escalation, verdict, decision, outcome: the words kernel, supervisors and records share.

    a step fails ──▶ Escalation ──▶ supervisor ──▶ Decision(verdict) ──▶ kernel ──▶ Outcome

All are plain frozen records, and an `Intervention` is three of them. What stands in an
`Escalation` is already masked and cut: no raw value ever reaches one. Money is integer
micro-dollars.

Read next: `kernel/allowed.py` (which verdict may be given when).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.lineage import Lineage


class Action(StrEnum):
    """What may be answered. Four words for people; `end_stream` reads as a kind of skip."""

    RETRY = "retry"
    SUBSTITUTE = "substitute"
    SKIP = "skip"
    END_STREAM = "end_stream"
    FAIL = "fail"

    @property
    def word(self) -> str:
        """What people write and read for it."""
        return {Action.SUBSTITUTE: "repair", Action.FAIL: "stop"}.get(self, self.value)


class ApplyTo(StrEnum):
    """Whether a skip or fail is for this failure only, or for all like it at this node."""

    INVOCATION = "invocation"
    SIGNATURE = "signature"


class DecidedBy(StrEnum):
    """Who is credited with a decision."""

    AGENT = "agent"
    OPERATOR = "operator"
    STICKY = "sticky"
    BOUNDS = "bounds"
    DEFAULT = "default"
    KERNEL = "kernel"
    REPLAY = "replay"


class Retry(msgspec.Struct, frozen=True, tag_field="action", tag="retry"):
    """Run the step again, exactly as it was."""


class Substitute(msgspec.Struct, frozen=True, tag_field="action", tag="substitute"):
    """Use these values instead: slot → value, every declared slot named."""

    outputs: Mapping[str, object]


class Skip(msgspec.Struct, frozen=True, tag_field="action", tag="skip"):
    """Give the item up; it is named in the report."""

    apply_to: ApplyTo = ApplyTo.INVOCATION


class EndStream(msgspec.Struct, frozen=True, tag_field="action", tag="end_stream"):
    """Keep what the step has emitted and end it there."""


class Fail(msgspec.Struct, frozen=True, tag_field="action", tag="fail"):
    """Stop the run. `reason` becomes its one-sentence summary."""

    reason: str = ""
    apply_to: ApplyTo = ApplyTo.INVOCATION


Verdict = Retry | Substitute | Skip | EndStream | Fail

_ACTIONS: Mapping[type, Action] = {
    Retry: Action.RETRY,
    Substitute: Action.SUBSTITUTE,
    Skip: Action.SKIP,
    EndStream: Action.END_STREAM,
    Fail: Action.FAIL,
}


def action_of(verdict: Verdict) -> Action:
    """The action a verdict stands for."""
    return _ACTIONS[type(verdict)]


class Item(msgspec.Struct, frozen=True):
    """Which item a failure concerns, as people name it: `label`, `"148 of 200"`."""

    number: str = ""
    total: int | None = None
    label: str = ""

    def __str__(self) -> str:
        """`148/200 https://…`, `148`, or empty at the run's own scope."""
        count = f"{self.number}/{self.total}" if self.total is not None else self.number
        return f"{count} {self.label}".strip()


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """One failed invocation, as a supervisor and the record see it: masked, cut, bounded.

    `allowed_actions` is computed by the kernel and enforced by it. `signature` is categorical
    (`http:451`) or None, and then nothing sticks. `retry_refused` says why a retry is not offered,
    where the row would allow one. `emitted` counts the frames a fan-out had
    sent before it failed. `caused_by` names earlier escalations its inputs derive from.
    """

    id: EscalationId
    run_id: RunId
    node_id: NodeId
    node_type: str
    lineage: Lineage
    item: Item
    attempt: int
    retries_left: int
    allowed_actions: tuple[Action, ...]
    detail: str
    error_type: str
    signature: str | None = None
    has_candidate: bool = False
    candidate_output: object = None
    inputs: Mapping[str, object] = {}
    declared_outputs: Mapping[str, object] = {}
    cost_micro_usd: int = 0
    created_assets: int = 0
    retry_safe: bool = False
    retry_refused: str = ""
    emitted: int = 0
    caused_by: tuple[EscalationId, ...] = ()
    at: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, who gave it, why, and what it cost.

    A supervisor fills in what it knows; the runtime adds `escalation_id`, `started_at`,
    `duration_s`, and the kernel `delay_s` (of a retry) and `asked_for` (a refused verdict).
    `digest_hash` fingerprints the run state the supervisor was shown.
    """

    verdict: Verdict
    decided_by: DecidedBy = DecidedBy.AGENT
    rationale: str = ""
    escalation_id: EscalationId = EscalationId("")
    asked_for: Verdict | None = None
    cost_micro_usd: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""
    digest_hash: str = ""
    started_at: str = ""
    duration_s: float = 0.0
    delay_s: float | None = None


class OutcomeKind(StrEnum):
    """What became of a decision."""

    RETRIED_SUCCEEDED = "retried_succeeded"
    RETRIED_FAILED_AGAIN = "retried_failed_again"
    RETRY_NEVER_RAN = "retry_never_ran"
    REPAIR_ACCEPTED = "repair_accepted"
    SKIPPED = "skipped"
    ENDED_EARLY = "ended_early"
    STOPPED = "stopped"
    NEVER_RAN = "never_ran"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The third record of an intervention: what the decision came to, written when it is known."""

    escalation_id: EscalationId
    kind: OutcomeKind
    detail: str = ""
    kept: int | None = None


class Intervention(msgspec.Struct, kw_only=True):
    """One escalation with what was decided and what became of it, as far as that is known."""

    escalation: Escalation
    decision: Decision | None = None
    outcome: Outcome | None = None

    @property
    def action(self) -> Action | None:
        """What was decided; None where nothing was yet."""
        return None if self.decision is None else action_of(self.decision.verdict)

    @property
    def reason(self) -> str:
        """Why it was made: the decision's words, else the error's."""
        if self.decision is not None and self.decision.rationale:
            return self.decision.rationale
        return self.escalation.detail
