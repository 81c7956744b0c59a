"""What a report says of an intervention and of a value, for every form of it.

Read next: `text.py`, `html.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nightwarden.events.interventions import OUTCOMES, Intervention, verb, verdict_text
from nightwarden.events.words import cut, dollars, list_of, mapping_of, seconds, text

if TYPE_CHECKING:
    from nightwarden.report.folding import RunReport

_LEFT_OUT: Final = re.compile(r"…\(\+([\d,]+) ")


def told(found: Intervention, afterwards: str = "") -> Iterator[tuple[str, str]]:
    """What failed, what was seen, what was decided by whom and why, and what became of it."""
    escalation, decision = found.escalation, found.decision
    signature = text(escalation.get("signature"))
    kind = text(escalation.get("error_type")) + (f", {signature}" if signature else "")
    attempt = escalation.get("attempt")
    yield "failed", f"{text(escalation.get('detail'))} ({kind}; attempt {attempt})"
    if escalation.get("caused_by"):
        yield "because of", ", ".join(text(e) for e in list_of(escalation.get("caused_by")))
    inputs = mapping_of(escalation.get("inputs"))
    if inputs:
        yield "saw", "; ".join(f"{text(k)} = {short(v)}" for k, v in inputs.items())
    if escalation.get("has_candidate"):
        yield "value", short(escalation.get("candidate_output"))
    allowed = ", ".join(verb(a) for a in list_of(escalation.get("allowed_actions")))
    refused = text(escalation.get("retry_refused"))
    yield "allowed", allowed + (f" (no retry: {refused})" if refused else "")
    yield "decided", f"{verdict_text(found)} — {_by(decision)}"
    repair = mapping_of(mapping_of(decision.get("verdict")).get("outputs"))
    if repair:
        yield "repair", "; ".join(f"{text(k)} = {short(v)}" for k, v in repair.items())
    yield "became", _became(found) + (f"; {afterwards}" if afterwards else "")


def inputs_text(report: RunReport) -> Iterator[tuple[str, str]]:
    """Each input of the run, by name; of a large one, by what name it is kept."""
    yield from ((text(name), short(value)) for name, value in report.inputs.items())
    for name, digest in report.large_inputs.items():
        yield text(name), f"large, kept as {text(digest)}"


def no_end(report: RunReport) -> str:
    """What a record without an end means, and what can be done."""
    if report.status == "running":
        return "the run goes on"
    if report.status == "interrupted":
        return f"its process ended before it did: nightwarden resume {text(report.run_id)}"
    return "the record has no end: the run goes on, or its process ended before it did"


def output_text(value: object) -> str:
    """An output of the run in one line; why there is none, where there is none."""
    found = mapping_of(value)
    if found.keys() == {"absent", "causes"}:
        causes = "; ".join(text(cause) for cause in list_of(found["causes"]))
        return f"none: {causes or text(found['absent'])}"
    if found.keys() == {"items"}:
        return f"{found['items']:,} items" if isinstance(found["items"], int) else short(value)
    return short(value, 300)


def _by(decision: Mapping[str, Any]) -> str:
    """Who decided, when it was asked, how long it took, and what it cost."""
    if not decision:
        return "nobody yet"
    model = text(decision.get("model"))
    parts = [f"by {text(decision.get('decided_by'))}" + (f" {model}" if model else "")]
    if (decision.get("duration_s") or 0) >= 0.05:
        parts.append(f"in {seconds(decision.get('duration_s'))}")
    parts.append(dollars(decision.get("cost_micro_usd")))
    return ", ".join(parts)


def _became(found: Intervention) -> str:
    kind = OUTCOMES.get(found.became, text(found.became))
    kept = found.outcome.get("kept")
    return (kind or "not known") + ("" if kept is None else f", kept {kept}")


def size(value: Sequence[object]) -> int:
    """How many elements there were; the record may say at the end how many it left out."""
    last = _LEFT_OUT.match(value[-1]) if value and isinstance(value[-1], str) else None
    return len(value) - 1 + int(last.group(1).replace(",", "")) if last else len(value)


def short(value: object, width: int = 160) -> str:
    """A recorded value in one line."""
    if isinstance(value, str):
        return cut(text(value), width)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{text(k)}: {short(v, width)}" for k, v in value.items())
        return cut("{" + inner + "}", width)
    if isinstance(value, Sequence):
        first = ", ".join(short(v, width) for v in value[:3])
        number = size(value)
        more = f", … {number:,} in all" if number > 3 else ""
        return cut(f"[{first}", max(width - len(more) - 1, 8)) + more + "]"
    return cut(text("null" if value is None else value), width)
