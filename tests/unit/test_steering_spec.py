"""Supervisors declared in a workflow, and what can be wrong with that (steering.md §6)."""

from __future__ import annotations

import json

import pytest

from nightwarden.errors import Problem, SpecError
from nightwarden.nodes.define import node
from nightwarden.nodes.registry import Registry
from nightwarden.spec.load import examine
from nightwarden.spec.schema import workflow_schema
from nightwarden.spec.supervisors import KEYS, SupervisorSpec, declared, reads_messages
from nightwarden.spec.workflow import Workflow
from nightwarden.steering.files import read_supervisor


@node(type="demo.Agent")
def agent(task: str) -> str:
    return task


@node(type="demo.Judge")
def judge(text: str) -> str:
    return text


@node(type="demo.Step")
def step(text: str) -> str:
    return text


CATALOG = Registry()
for _each in (agent, judge, step):
    CATALOG.add(_each)

HEAD = """\
version: 1
name: w
nodes:
  fix: {type: demo.Agent, task: x}
  rate: {type: demo.Judge, text: $fix}
  save: {type: demo.Step, text: $rate}
prompts:
  policy: Keep it short.
supervisors:
"""


def examined(block: str) -> tuple[Workflow | None, tuple[Problem, ...]]:
    indented = "".join(f"  {line}\n" for line in block.splitlines())
    return examine(HEAD + indented, catalog=CATALOG, file="w.yaml")


def said(block: str) -> list[tuple[str, str, int | None]]:
    return [(p.rule, p.severity, p.line) for p in examined(block)[1]]


def one(block: str) -> SupervisorSpec:
    workflow, _ = examined(block)
    assert workflow is not None
    (found,) = declared(workflow)
    return found


def test_everything_a_block_says_is_read() -> None:
    found = one(
        """\
dog:
  watches: [fix, rate]
  model: ollama:llama3
  system: policy
  cooldown: 45s
  max_evals: 12
  boundaries: false
  cost_cap_usd: 0.5
  monitors: ["event_type=tool_error,tool_name=Bash", "repeat=3"]"""
    )
    assert (found.name, found.watches, found.model) == ("dog", ("fix", "rate"), "ollama:llama3")
    assert (found.system, found.cooldown_s, found.max_evals) == ("Keep it short.", 45.0, 12)
    assert (found.boundaries, found.cost_cap_usd) == (False, 0.5)
    assert [m.text() for m in found.monitors] == [
        "event_type=tool_error,tool_name=Bash",
        "repeat=3",
    ]


def test_what_is_not_said_is_as_steering_md_has_it() -> None:
    found = one("dog: {system: policy}")
    assert (found.cooldown_s, found.max_evals, found.boundaries) == (30.0, 20, True)
    assert found.watches == ()


def test_agents_and_judges_may_be_watched_without_a_word() -> None:
    """Scenario 70."""
    assert said("dog: {watches: [fix, rate]}") == []


@pytest.mark.parametrize("watched", ["nobody", "save"])
def test_c190_watching_what_is_no_agent_is_a_warning(watched: str) -> None:
    """Scenario 70."""
    assert said(f"dog:\n  watches: [fix, {watched}]") == [("C190", "warning", 11)]


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("cooldown: soon", "warning"),
        ("cooldown: 0s", "error"),
        ("cooldown: -5", "error"),
        ("max_evals: 0", "error"),
        ("max_evals: -1", "error"),
        ("max_evals: many", "warning"),
        ("monitors: ['foo=1']", "warning"),
        ("monitors: ['text_contains=stuck']", "warning"),
        ("monitors: 3", "warning"),
        ("boundaries: perhaps", "warning"),
        ("boundaries: false", "warning"),
        ("cost_cap_usd: -1", "error"),
        ("cost_cap_usd: half a dollar", "error"),
        ("model: 3", "warning"),
        ("wathces: [fix]", "warning"),
    ],
)
def test_c191_what_cannot_be_used_has_its_line(line: str, severity: str) -> None:
    """Scenario 71; steering.md §2: a cooldown or max_evals of 0 or less is an error."""
    assert said(f"dog:\n  system: policy\n  {line}") == [("C191", severity, 12)]


@pytest.mark.parametrize("name", ["operator", "' '"])
def test_c191_a_supervisor_is_called_neither_nothing_nor_as_people_are(name: str) -> None:
    """steering.md §4: operator text goes first, so nobody else may be its author."""
    assert said(f"{name}: {{system: policy}}") == [("C191", "error", 10)]


@pytest.mark.parametrize("more", ["monitors: ['repeat=3']", "policy: loop-breaker"])
def test_without_boundaries_there_has_to_be_a_monitor(more: str) -> None:
    assert said(f"dog: {{boundaries: false, {more}}}") == []


@pytest.mark.parametrize("block", ["dog: {}", "dog:", "dog: text", "dog: [1]"])
def test_c191_an_empty_block_is_a_warning_and_no_supervisor(block: str) -> None:
    """Scenario 71."""
    assert said(block) == [("C191", "warning", 10)]
    workflow, _ = examined(block)
    assert workflow is not None
    assert declared(workflow) == ()


def test_c191_one_bad_monitor_of_three_loses_itself() -> None:
    """Scenario 49."""
    block = "dog:\n  monitors: ['repeat=3', 'foo=1', 'event_type=log']"
    assert [m.text() for m in one(block).monitors] == ["repeat=3", "event_type=log"]
    assert said(block) == [("C191", "warning", 11)]


def test_a_cooldown_that_is_none_is_the_default() -> None:
    assert one("dog: {system: policy, cooldown: soon}").cooldown_s == 30.0


def test_c192_two_of_one_name_are_an_error_in_yaml_and_json() -> None:
    """Scenario 72; caught while the file is parsed, a mapping would swallow them."""
    assert said("dog: {system: policy}\ndog: {watches: [fix]}") == [("C192", "error", 11)]
    text = '{"version": 1, "name": "w", "nodes": [], "supervisors": {"a": {"model": "m"}, "a": {}}}'
    _, problems = examine(text, catalog=CATALOG, file="w.json")
    assert "C192" in [p.rule for p in problems]


def test_c193_a_prompt_that_is_not_there_is_a_warning_and_an_empty_policy() -> None:
    """Scenario 72."""
    block = "dog:\n  system: polisy\n  watches: [fix]"
    assert said(block) == [("C193", "warning", 11)]
    assert one(block).system == ""
    _, (problem,) = examined(block)
    assert problem.remedy == "did you mean 'policy'?"


def test_c193_a_prompt_that_is_no_text_is_said_to_be_none() -> None:
    block = HEAD.replace("Keep it short.", "[1]") + "  dog: {system: policy}\n"
    _, problems = examine(block, catalog=CATALOG, file="w.yaml")
    (said,) = (p for p in problems if p.rule == "C193")
    assert said.message == "supervisor 'dog': prompt 'policy' is no text, so it has no policy"
    assert said.remedy == "write its text below it"


def test_c193_a_policy_that_is_not_shipped_is_a_warning() -> None:
    """Issue 6, bad input: a policy that is not there."""
    assert said("dog:\n  policy: persevere\n  watches: [fix]") == [("C193", "warning", 11)]


def test_a_workflow_that_is_written_and_read_again_has_its_supervisors() -> None:
    """Scenario 73."""
    workflow, _ = examined("dog: {watches: [fix], monitors: ['repeat=3'], system: policy}")
    assert workflow is not None
    again, _ = examine(json.dumps(workflow.canonical()), catalog=CATALOG, format="json")
    assert again is not None
    assert declared(again) == declared(workflow)
    assert again.digest() == workflow.digest()


# -- a supervisor in a file of its own --


@pytest.mark.parametrize(
    "text",
    [
        "monitors: ['repeat=3']\nsystem: p\nprompts: {p: Be kind.}",
        "supervisors:\n  dog:\n    monitors: ['repeat=3']\n    system: p\nprompts: {p: Be kind.}",
        json.dumps({"monitors": ["repeat=3"], "system": "p", "prompts": {"p": "Be kind."}}),
    ],
)
def test_a_file_of_its_own_holds_a_supervisor(text: str) -> None:
    found, problems = read_supervisor(text, file="dog.yaml")
    assert [m.text() for m in found.monitors] == ["repeat=3"]
    assert found.system == "Be kind."
    assert problems == ()


def test_of_several_one_is_named() -> None:
    text = "supervisors:\n  a: {monitors: ['repeat=3']}\n  b: {monitors: ['repeat=4']}"
    assert read_supervisor(text, file="s.yaml", name="b")[0].name == "b"
    for name, words in (("", "there are several: a, b"), ("c", "no supervisor 'c'")):
        with pytest.raises(SpecError, match=words):
            read_supervisor(text, file="s.yaml", name=name)


@pytest.mark.parametrize("text", ["", "[1]", "a: [", "supervisors: {}", "just words"])
def test_a_file_without_one_says_so(text: str) -> None:
    with pytest.raises(SpecError):
        read_supervisor(text, file="s.yaml")


def test_nodes_of_another_workflow_are_not_held_against_it() -> None:
    found, problems = read_supervisor("watches: [fix]\nmonitors: ['repeat=3']", file="s.yaml")
    assert found.watches == ("fix",)
    assert problems == ()


def test_one_alone_needs_no_list() -> None:
    workflow, _ = examined("dog: {watches: fix, monitors: repeat=3}")
    assert workflow is not None
    (found,) = declared(workflow)
    assert (found.watches, len(found.monitors)) == (("fix",), 1)


def test_the_schema_for_editors_knows_every_key() -> None:
    block = workflow_schema(CATALOG)["properties"]["supervisors"]["additionalProperties"]
    assert list(block["properties"]) == list(KEYS)


def test_a_judge_of_one_turn_reads_no_messages() -> None:
    names = ("agent.Agent", "agent.Judge", "t.agent", "llm.Judge", "flow.Value")
    assert [n for n in names if reads_messages(n)] == ["agent.Agent", "agent.Judge", "t.agent"]
