"""What a model that decides may look up, as text, a page at a time.

    get_run_state()                       how far the run is, per step
    read_node_output(node_id, offset)     what the failing item descends from; the broken value

Both only read. Scope and masking are the run's own (`RunEvidence`): nothing of another item is
ever found here. Without a run to read, only what the escalation itself carries is shown.

Read next: `conversation.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nightwarden.agents.fencing import Fence, as_text
from nightwarden.events.base import Event
from nightwarden.events.budget import BudgetState
from nightwarden.runtime.patching import BadPatch, apply_patch, repairable
from nightwarden.runtime.supervision import Brief, Found, RunEvidence, RunReader
from nightwarden.verdict import Escalation

PAGE: Final = 8_000
"""Characters a page has."""


class Evidence:
    """The two tools of one conversation; what they show is data."""

    def __init__(self, escalation: Escalation, reader: RunEvidence, fence: Fence) -> None:
        self._escalation = escalation
        self._reader = reader
        self._fence = fence
        self._state = as_text(reader.state())

    @property
    def digest_hash(self) -> str:
        """The fingerprint of the run's state as it is shown."""
        return hashlib.sha256(self._state.encode("utf-8", "replace")).hexdigest()[:16]

    def get_run_state(self) -> str:
        """How far the run is: per step, what is due, done, lost; and decisions so far."""
        return self._page("run state", self._state, 0)

    async def read_node_output(self, node_id: str, offset: int = 0) -> str:
        """What a step put out on the failing item's way, or the failed step's broken value."""
        await self._reader.durable()  # what is read is what is on record by now
        if node_id == self._escalation.node_id:
            if not self._escalation.has_candidate:
                return "The failed step handed over no value; there is nothing to read of it."
            return self._page("broken value", as_text(self.candidate()), offset)
        found = self._reader.output(self._escalation.id, node_id)
        if found.refusal:
            return self._fence.around("refusal", found.refusal)
        return self._page("output", as_text(found.value), offset)

    def candidate(self) -> Mapping[str, object]:
        """The broken value, whole, in the form a patch is written for."""
        slots = list(self._escalation.declared_outputs)
        return repairable(self._reader.candidate(self._escalation.id), slots)

    def _page(self, about: str, text: str, offset: int) -> str:
        start = min(max(offset, 0), len(text))
        end = min(start + PAGE, len(text))
        rest = f"; {len(text) - end:,} follow, offset={end} reads on" if end < len(text) else ""
        head = f"Characters {start:,} to {end:,} of {len(text):,}{rest}."
        return f"{head}\n{self._fence.around(about, text[start:end])}"


class OnlyTheEscalation:
    """Stands in where a run can be read only a little, or not at all: the escalation has to do."""

    def __init__(self, escalation: Escalation, reader: RunReader | None) -> None:
        self._escalation = escalation
        self._reader = reader

    @property
    def run_id(self) -> str:
        """The run."""
        return self._escalation.run_id

    def state(self) -> Mapping[str, object]:
        """What the reader says, if there is one."""
        return {} if self._reader is None else self._reader.state()

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        """The reader's own check; without one, the kernel's has to do."""
        return [] if self._reader is None else self._reader.check(escalation_id, outputs)

    def brief(self, escalation_id: str) -> Brief:
        """Nothing is known."""
        del escalation_id
        return Brief()

    def output(self, escalation_id: str, node_id: str) -> Found:
        """Nothing can be read."""
        del escalation_id
        return Found(refusal=f"the outputs of {node_id} are not kept in this run")

    def candidate(self, escalation_id: str) -> object:
        """As the escalation has it: masked and cut."""
        del escalation_id
        return self._escalation.candidate_output

    def patched(
        self, escalation_id: str, patch: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Sequence[str]]:
        """The patch applied to the value as the escalation has it; marks in it are refused."""
        slots = list(self._escalation.declared_outputs)
        document = repairable(self._escalation.candidate_output, slots)
        try:
            outputs = apply_patch(document, patch)
        except BadPatch as error:
            return {}, [str(error)]
        problems = self.check(escalation_id, outputs)
        return ({} if problems else outputs), problems

    def budget(self) -> BudgetState:
        """Nothing was spent before."""
        return BudgetState()

    def protect(self, name: str, value: str) -> None:
        """There is nothing that could show it."""

    def publish(self, event: Event) -> None:
        """There is no record."""

    async def durable(self) -> None:
        """There is no record."""


def evidence_for(escalation: Escalation, reader: RunReader | None) -> RunEvidence:
    """The run as far as it can be read."""
    if isinstance(reader, RunEvidence):
        return reader
    return OnlyTheEscalation(escalation, reader)


def facts(escalation: Escalation, brief: Brief) -> Mapping[str, object]:
    """Everything the model is told of a failure before it asks, in reading order."""
    e = escalation
    told: dict[str, object] = {
        "step": e.node_id,
        "type": e.node_type,
        "purpose": brief.purpose,
        "item": str(e.item),
        "error": e.detail,
        "error_type": e.error_type,
        "signature": e.signature,
        "attempt": e.attempt,
        "retries_left": e.retries_left,
        "safe_to_run_again": e.retry_safe,
        "why_no_retry": e.retry_refused,
        "spent_by_the_attempt_usd": e.cost_micro_usd / 1_000_000,
        "files_written_by_the_attempt": e.created_assets,
        "frames_emitted_before": e.emitted,
        "decisions_left": brief.decisions_left,
        "like_failures_so_far": list(brief.like),
        "because_of_earlier_decisions": list(e.caused_by),
        "used_by": list(brief.consumers),
        "inputs": e.inputs,
        "declared_outputs": e.declared_outputs,
    }
    if e.has_candidate:
        told["broken_value"] = repairable(e.candidate_output, list(e.declared_outputs))
    empty: tuple[object, ...] = ("", None, [], {})
    return {
        name: msgspec.to_builtins(v, enc_hook=repr) for name, v in told.items() if v not in empty
    }
