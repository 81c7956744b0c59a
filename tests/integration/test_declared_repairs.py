"""A repair of what a model replied is held against the form the step declared for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from model_runs import KEY, answer, stub_model
from model_server import Call, ModelServer, Say

import nightwarden as nw
from nightwarden.agents.adjudicator import Adjudicator
from nightwarden.nodes.define import node
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import Action, Decision, Escalation, Substitute

MODEL = "openai-chat:gpt-5"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer", "minimum": 1000}},
    "required": ["name", "year"],
    "additionalProperties": False,
}
TREE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}


class Repairs(SupervisorBase):
    """Puts one value in place of the output, and keeps what it was shown."""

    def __init__(self, value: object) -> None:
        self.asked: list[Escalation] = []
        self._value = value

    async def decide(self, escalation: Escalation) -> Decision:
        self.asked.append(escalation)
        return Decision(verdict=Substitute(outputs={"output": self._value}), rationale="read by me")


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def use(server: ModelServer) -> None:
        Path("nightwarden.toml").write_text(
            f'[models."openai*"]\nbase_url = "{server.base_url}/v1"\nprice_in = 3\nprice_out = 15\n'
        )

    return use


def step(kind: str, *, inputs: Mapping[str, object] | None = None, **properties: object) -> Any:
    """A workflow of one step that asks the model."""
    document = {
        "version": 1,
        "name": "one",
        "inputs": inputs or {},
        "nodes": {"step": {"type": kind, "model": MODEL, **properties}},
    }
    Path("w.json").write_text(json.dumps(document))
    return nw.load(Path("w.json").absolute())


def told(result: nw.RunResult) -> Any:
    """The only decision of a run, as it was applied."""
    (intervention,) = result.interventions
    assert intervention.decision is not None
    return intervention.decision


def repaired(provider: Any, workflow: Any, value: object, reply: str = "no JSON") -> Any:
    """What comes of a run whose model says something broken, and of a repair."""
    repairs = Repairs(value)
    with ModelServer([Say(reply)]) as server:
        provider(server)
        return nw.run(workflow(), supervise=repairs), repairs


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "Bell Rock"}, '"year" is a required property'),
        ({"name": "Bell Rock", "year": 1810.5}, "year"),
        ({"name": "Bell Rock", "year": "1810"}, "year"),
        ({"name": "Bell Rock", "year": 810}, "minimum"),
        ({"name": "Bell Rock", "year": 1810, "more": 1}, "more"),
        ("Bell Rock, 1810", "object"),
        ([], "object"),
        (None, "object"),
    ],
)
def test_a_repair_that_breaks_the_declared_schema_is_refused_with_what_is_wrong(
    provider: Any, value: object, wrong: str
) -> None:
    """supervision.md §6: a substitute is checked, deep and strict, before it is accepted."""
    workflow = lambda: step("llm.Extract", text="The light of 1810.", schema=SCHEMA)  # noqa: E731
    result, _ = repaired(provider, workflow, value)
    assert result.status == "failed"
    decision = told(result)
    assert decision.decided_by == "kernel"
    assert isinstance(decision.asked_for, Substitute)
    assert wrong in decision.rationale + result.reason
    assert "no JSON" in result.interventions[0].escalation.detail  # the original error is kept


def test_a_repair_that_fits_the_declared_schema_is_the_output(provider: Any) -> None:
    value = {"name": "Bell Rock", "year": 1810}
    workflow = lambda: step("llm.Extract", text="The light of 1810.", schema=SCHEMA)  # noqa: E731
    result, repairs = repaired(provider, workflow, value)
    assert result.outputs == {"step": value}
    assert repairs.asked[0].declared_outputs == {"output": SCHEMA}


def test_a_schema_that_comes_over_an_edge_is_held_against_repairs_as_well(provider: Any) -> None:
    given = {"form": {"type": "dict", "default": SCHEMA}}
    workflow = lambda: step("llm.Extract", inputs=given, text="x", schema="$inputs.form")  # noqa: E731
    result, repairs = repaired(provider, workflow, {"name": 1})
    assert result.status == "failed"
    assert told(result).decided_by == "kernel"
    assert repairs.asked[0].declared_outputs == {"output": SCHEMA}


@pytest.mark.parametrize(
    ("verdict", "passed", "fits"),
    [("spam", True, True), ("ham", False, True), ("ham", True, False), ("eggs", False, False)],
)
def test_a_repaired_judgement_is_one_of_the_verdicts(
    provider: Any, verdict: str, passed: bool, fits: bool
) -> None:
    workflow = lambda: step(  # noqa: E731
        "llm.Judge", text="Buy!", question="What is it?", verdicts=["spam", "ham"]
    )
    value = {"verdict": verdict, "passed": passed, "reason": "I read it."}
    result, _ = repaired(provider, workflow, value)
    assert (result.status == "completed") is fits
    assert (told(result).decided_by == "kernel") is not fits


def test_a_schema_too_long_to_show_is_checked_all_the_same(provider: Any) -> None:
    long = {**SCHEMA, "description": "x" * 10_000}
    workflow = lambda: step("llm.Extract", text="x", schema=long)  # noqa: E731
    result, repairs = repaired(provider, workflow, {"name": 1})
    assert result.status == "failed"
    assert "x" * 100 not in repr(repairs.asked[0].declared_outputs)


@pytest.mark.parametrize(
    ("schema", "wrong", "right"),
    [
        (SCHEMA, {"name": "Bell Rock"}, {"name": "Bell Rock", "year": 1810}),
        (TREE, {"name": "a", "below": [{"n": 1}]}, {"name": "a", "below": [{"name": "b"}]}),
    ],
)
def test_a_model_whose_repair_breaks_the_schema_is_told_and_may_mend_it(
    provider: Any, schema: Mapping[str, Any], wrong: object, right: object
) -> None:
    """A schema that refers to itself stays out of the tool's own form, and is checked after."""
    rounds: list[Call] = [
        answer("substitute", outputs={"output": value}) for value in (wrong, right)
    ]
    with ModelServer([Say("no JSON")]) as steps, ModelServer(rounds) as deciding:
        provider(steps)
        workflow = step("llm.Extract", text="x", schema=schema)
        model = Adjudicator(stub_model(deciding), cap_micro_usd=500_000)
        result = nw.run(workflow, supervise=model)
        requests: Sequence[Any] = deciding.requests
    assert result.outputs == {"step": right}
    assert len(requests) == 2
    assert "name" in requests[1].text.split("does not fit")[1]


# -- what may be declared --


def test_a_declared_form_is_a_function() -> None:
    with pytest.raises(TypeError, match="output_schema is a function"):
        node(output_schema={"type": "object"})(_text)  # type: ignore[call-overload]


def test_a_declared_form_that_cannot_be_made_leaves_the_type() -> None:
    """A step of one's own promises a form that its inputs do not give."""

    @node(type="t.Own", output_schema=lambda given: given["no such slot"])
    def own(x: int) -> int:
        raise nw.RecoverableError("broken", candidate_output="7")

    with nw.workflow("own") as w:
        w.add(own, id="own", properties={"x": 1})
    repairs = Repairs(7)
    result = nw.run(w.build(), supervise=repairs)
    assert result.outputs == {"own": 7}
    assert Action.SUBSTITUTE in repairs.asked[0].allowed_actions


def _text(x: str) -> str:
    return x
