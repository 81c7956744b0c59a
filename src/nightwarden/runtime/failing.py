"""From a caught exception to the masked facts that may leave the call.

A raw value never goes further than this: what is kept of a failure is already masked and cut.

Read next: `deciding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nightwarden.errors import RecoverableError
from nightwarden.kernel.plan import NodePlan
from nightwarden.kernel.stimuli import Failed
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.binding import BadInput
from nightwarden.signatures.signature import Recogniser, retry_after_s, signature_of
from nightwarden.spec.mentions import fill_label

LONGEST_LABEL: Final = 120
"""Characters of an item's label; an item may be a whole document, and be its own label."""


class StepTimeout(TimeoutError):
    """A step took longer than its `timeout`."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt as it may be shown: one readable line, masked inputs and candidate."""

    node_id: str
    detail: str
    error_type: str
    signature: str | None
    has_candidate: bool
    candidate: object
    inputs: Mapping[str, object]
    cost_micro_usd: int
    assets: int
    retry_safe: bool
    label: str
    number: str
    total: int | None
    ends_run: bool = False
    """Nobody is asked: the run has no money left for what the step was about to do."""
    raw_candidate: object = None
    """The value itself, for whoever applies a patch to it; never written down or shown."""
    output_schema: Mapping[str, object] | None = None
    """What a repair of the output has to fit besides its type; raw as well."""


def shown(error: BaseException, registry: SecretRegistry) -> tuple[str, str]:
    """The readable line of an error and the name of its type."""
    if isinstance(error, StepTimeout):
        # How the engine brought the timeout about (a cancellation) says nothing to anybody.
        return registry.mask_text(str(error)), type(error).__name__
    # A class may be made at run time, and be called anything.
    return registry.describe_error(error), registry.mask(type(error).__name__)


def stimulus(
    call: int,
    error: BaseException,
    account: Account,
    *,
    now: float,
    recognisers: Sequence[Recogniser],
    registry: SecretRegistry,
    checkable: bool,
    copied: bool,
    idempotent: bool,
    unknown: bool,
    cut_off: bool,
) -> Failed:
    """The facts of a failure the kernel decides on. What names a secret is no kind of failure."""
    signature = signature_of(error, recognisers)
    return Failed(
        call=call,
        signature=None if signature and registry.contains(signature) else signature,
        has_candidate=has_candidate(error),
        checkable=checkable,
        cost_micro_usd=account.cost_micro_usd,
        cost_known=account.cost_known,
        assets=len(account.assets),
        retry_after_s=retry_after_s(error, now),
        bad_input=isinstance(error, BadInput),
        copied=copied,
        unknown=unknown,
        idempotent=idempotent,
        cut_off=cut_off,
    )


_USUAL = Failed(call=0)
_FACTS = (
    "has_candidate",
    "checkable",
    "cost_known",
    "retry_after_s",
    "bad_input",
    "copied",
    "unknown",
    "idempotent",
    "cut_off",
)


def facts_of(fact: Failed, read: Mapping[str, int]) -> dict[str, object]:
    """What a record keeps of a failure besides its words: what is not as usual."""
    found = {n: getattr(fact, n) for n in _FACTS if getattr(fact, n) != getattr(_USUAL, n)}
    return {**found, "read": dict(read)} if read else found


def has_candidate(error: BaseException) -> bool:
    """Whether the step handed over something that can be repaired."""
    return isinstance(error, RecoverableError) and error.candidate_output is not None


def candidate_of(error: BaseException, registry: SecretRegistry) -> object:
    """The masked candidate; None where there is none."""
    return registry.redact(error.candidate_output) if has_candidate(error) else None  # type: ignore[attr-defined]


def declared_form(node: NodePlan, given: Mapping[str, object]) -> Mapping[str, object] | None:
    """The JSON Schema a call with these inputs promised its output to fit, if it did."""
    if node.type.output_schema is None:
        return None
    try:
        return node.type.output_schema(given)
    except Exception:  # the call had no inputs it could be made of
        return None


def called(label: str) -> str:
    """A masked label as people read it: on one line, and no longer than one takes in."""
    line = " ".join(label.split())
    return line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"


def label_of(template: str | None, arguments: Mapping[str, object], frame: object) -> str:
    """What people call an item: the node's label over its inputs, else what the item says."""
    if template:
        try:
            return fill_label(template, arguments)
        except Exception:  # a label is never worth a failure
            return ""
    return describe_frame(frame)


def item_label(
    node: NodePlan, arguments: Mapping[str, object], path: Sequence[tuple[int, object]]
) -> str:
    """What people call the item at the end of a path of frames; not masked."""
    frame = path[-1][1] if path else None
    template = node.spec.label or node.type.label
    return label_of(template if arguments else None, arguments, frame)


def describe_frame(frame: object) -> str:
    """A short name of an item: itself if it is text or a number, else its most telling field."""
    if isinstance(frame, (str, int, float)) and not isinstance(frame, bool):
        return str(frame)
    for field in ("label", "name", "title", "url", "id", "path"):
        value = frame.get(field) if isinstance(frame, Mapping) else getattr(frame, field, None)
        if isinstance(value, (str, int)) and not callable(value):
            return str(value)
    return str(frame) if hasattr(frame, "__fspath__") else ""
