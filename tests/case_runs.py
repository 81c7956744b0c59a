"""The neutral cases as runs: the workflow of a `case.json`, its faults and its scripted answers.

A test says what each step `does`; flags, edges, faults and answers come from the file. Actions
and items are translated here: `end_stream` stays itself, `item` is 0-based in the files.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2

from nightwarden import Context, Registry
from nightwarden.library import workflow
from nightwarden.nodes.define import node
from nightwarden.runtime.supervision import Bounds, SupervisorBase
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import (
    Action,
    ApplyTo,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

Case = Mapping[str, Any]
Step = Callable[..., Any]


def read_case(folder: Path) -> Case:
    """The case in a folder."""
    found = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


class Journal:
    """Who was called: (node, lineage, attempt), in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[int, ...], int]] = []

    def note(self, node_id: str, ctx: Context) -> None:
        """One call began."""
        self.calls.append((node_id, ctx.lineage, ctx.attempt))

    def starts(self, node_id: str) -> int:
        """How often a node was called, all attempts."""
        return sum(1 for called, _, _ in self.calls if called == node_id)


class Faults:
    """The faults of a case: raises what is due for a step, an item and an attempt."""

    def __init__(self, faults: Sequence[Mapping[str, Any]]) -> None:
        self._faults = tuple(faults)

    def strike(self, node_id: str, ctx: Context, item: object) -> None:
        """Raise if a fault is meant for this call."""
        for fault in self._faults:
            if fault["node"] == node_id and _meant(fault, ctx):
                raise error_of(fault, item)


def _meant(fault: Mapping[str, Any], ctx: Context) -> bool:
    items, attempts = fault.get("items", "all"), fault.get("attempts", "all")
    this_item = items == "all" or ctx.lineage[-1] in items
    return this_item and (attempts == "all" or ctx.attempt in attempts)


def error_of(fault: Mapping[str, Any], item: object) -> Exception:
    """The exception a fault describes."""
    name, message = fault["raises"]["type"], fault["raises"]["message"].format(item=item)
    if name == "HTTPStatusError":
        request = httpx2.Request("GET", "https://pages.example/p")
        response = httpx2.Response(fault["http_status"], request=request)
        return httpx2.HTTPStatusError(message, request=request, response=response)
    kind = getattr(builtins, name, None)
    assert isinstance(kind, type), name
    error = kind(message)
    assert isinstance(error, Exception), name
    return error


class Asked(SupervisorBase):
    """Scripted answers, counting how often it was really asked."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._inner = Scripted(rules)
        self.escalations: list[Escalation] = []

    @property
    def calls(self) -> int:
        """What a model would have been asked."""
        return len(self.escalations)

    async def decide(self, escalation: Escalation) -> Decision:
        """The scripted answer."""
        self.escalations.append(escalation)
        return await self._inner.decide(escalation)


def rules_of(supervisor: Mapping[str, Any]) -> list[Rule]:
    """The rules of a case's supervisor."""
    found = []
    for entry in supervisor["scripted"]:
        when = dict(entry["when"])
        item = when.pop("item", None)
        lineage = None if item is None else (item,)
        found.append(Rule(answers=(answer_of(entry["answer"]),), lineage=lineage, **when))
    return found


def in_order(actions: Sequence[str], outputs: Mapping[str, object] | None = None) -> list[Rule]:
    """One rule that gives these answers one after the other."""
    answers = tuple(answer_of({"action": action}, outputs) for action in actions)
    return [Rule(answers=answers, repeats=False)]


def answer_of(
    answer: Mapping[str, Any], outputs: Mapping[str, object] | None = None
) -> ScriptedAnswer:
    """One answer of a case."""
    apply_to = ApplyTo(answer.get("apply_to", "invocation"))
    verdicts: Mapping[Action, Verdict] = {
        Action.RETRY: Retry(),
        Action.SUBSTITUTE: Substitute(outputs or {"output": None}),
        Action.SKIP: Skip(apply_to),
        Action.END_STREAM: EndStream(),
        Action.FAIL: Fail(apply_to=apply_to),
    }
    return ScriptedAnswer(verdicts[Action(answer["action"])], answer.get("reason", "as written"))


def bounds_of(bounds: Mapping[str, Any]) -> Bounds:
    """The bounds of a case, in the program's own names."""
    names = {
        "max_decisions": "max_decisions",
        "max_retries_per_step": "max_retries",
        "decision_timeout_s": "decision_timeout_s",
    }
    given: dict[str, Any] = {names[k]: v for k, v in bounds.items() if k != "cost_cap_usd"}
    if "cost_cap_usd" in bounds:
        given["cost_cap_micro_usd"] = round(float(bounds["cost_cap_usd"]) * 1_000_000)
    return Bounds(**given)


def build(case: Case, steps: Mapping[str, Step], **promises: Mapping[str, object]) -> Workflow:
    """The workflow of a case.

    `steps` is what each node does. A step with one input takes it as `value`, one with several
    takes each under the name of the node it comes from. `promises` adds to a node's flags.
    """
    graph = case["workflow"]
    with workflow(case["id"], registry=Registry()) as w:
        handles: dict[str, Any] = {}
        for spec in graph["nodes"]:
            sources = [a for a, b in graph["edges"] if b == spec["id"]]
            ends = [handles[s] for s in sources]
            if spec.get("closes_fan_out"):
                ends = [handle.collect() for handle in ends]
            names = ["value"] if len(sources) == 1 else sources
            declared = {"retry_safe": bool(spec.get("retry_safe"))}
            kind = f"case.{spec['id'].capitalize()}"
            made = node(type=kind, **{**declared, **promises.get(spec["id"], {})})(
                steps[spec["id"]]
            )
            handles[spec["id"]] = w.add(
                made, id=spec["id"], properties=dict(zip(names, ends, strict=True))
            )
    return w.build()


def credits_of(interventions: Iterable[Any]) -> Counter[str]:
    """How many decisions each was credited with."""
    return Counter(str(i.decision.decided_by) for i in interventions)
