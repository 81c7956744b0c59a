"""Runs with subworkflows: failures, verdicts, the ledger, and where files may lie.

kernel.md §1: inlined, each failure escalates on its own with the inner node's own safety, the
ledger is part of the run's, and as a whole nothing is ever retried.

row: K1-FAN-SUBWORKFLOW, S1-SUBWORKFLOW
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from case_runs import Asked, Journal, in_order, read_case
from commands import nightwarden

import nightwarden as nw
from nightwarden import ABSENT, Absent, Collect, Context, Session
from nightwarden.errors import RunError, SpecError
from nightwarden.events import InvocationStarted
from nightwarden.library import examine, load, recorded
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.testing import InlineExecutor, Played, play
from nightwarden.verdict import EndStream, Retry, Skip, Verdict, action_of

SEEDS = (None, 1, 2, 3)


def made(step: Callable[..., Any], **promises: Any) -> Callable[..., Any]:
    return nw.node(type=f"test.{step.__name__.capitalize()}", **promises)(step)


def answering(verdict: Verdict, **when: Any) -> Asked:
    return Asked([Rule(answers=(ScriptedAnswer(verdict, "as written"),), **when)])


def ran(workflow: Workflow, *, seed: int | None = 1, **options: Any) -> Played:
    return play(Session(workflow, executor=InlineExecutor(), **options), seed=seed)


def invoked(played: Played) -> list[tuple[str, tuple[int, ...], int]]:
    """Who was called for what, and in which attempt; engine nodes left out."""
    return [
        (e.node_id, e.lineage, e.attempt)
        for e in played.of(InvocationStarted)
        if "[" not in e.node_id
    ]


def node_of(played: Played, node_id: str) -> Mapping[str, Any]:
    return next(n for n in played.result.ledger["nodes"] if n["node_id"] == node_id)


async def items() -> AsyncIterator[int]:
    for number in range(4):
        yield number


async def double(value: int) -> int:
    return 2 * value


async def total(values: Collect[int]) -> int:
    return sum(values)


# -- H03, the nested variant --


def publishing(variant: Mapping[str, Any], folder: Path) -> Workflow:
    """prepare → publish, a workflow of one step → notify."""

    async def prepare() -> str:
        return "a post"

    async def append(value: str) -> str:
        with (folder / "ledger.txt").open("a", encoding="utf-8") as file:
            file.write(f"{value}\n")
        raise ConnectionError("the line broke after the post was taken")

    async def notify(value: str) -> str:
        (folder / "notified.txt").write_text(value, encoding="utf-8")
        return value

    assert variant["publish"]["is_nested_workflow"]
    with nw.workflow("publish") as inner:
        step = inner.add(made(append), id="append", value=inner.input("value", str))
        inner.output("published", step)
    with nw.workflow("h03") as w:
        post = w.add(made(prepare, retry_safe=True), id="prepare")
        published = w.add(inner.build(), id="publish", value=post)
        w.add(made(notify), id="notify", value=published)
    return w.build()


@pytest.mark.parametrize("seed", SEEDS)
def test_h03_a_nested_workflow_is_as_safe_as_the_step_inside(
    cases: Path, tmp_path: Path, seed: int | None
) -> None:
    case = read_case(cases / "H03_effect_then_error")
    [variant] = [v for v in case["variants"] if v["publish"].get("is_nested_workflow")]
    supervisor = Asked(in_order(variant["supervisor_answers"]))
    played = ran(publishing(variant, tmp_path), seed=seed, supervise=supervisor)
    [found] = played.result.interventions
    assert found.decision is not None
    assert found.decision.asked_for is not None
    assert {
        "allowed": list(found.escalation.allowed_actions),
        "ledger_lines": len((tmp_path / "ledger.txt").read_text().splitlines()),
        "status": played.result.status,
        "applied": action_of(found.decision.verdict),
    } == variant["expect"]
    assert action_of(found.decision.asked_for) == "retry"
    assert found.escalation.node_id == "publish/append"
    assert not (tmp_path / "notified.txt").exists()


@pytest.mark.parametrize("claim", ["retry_safe: true", "run: {retry_safe: true}"])
def test_a_claim_of_safety_around_it_is_refused(tmp_path: Path, claim: str) -> None:
    (tmp_path / "i.yaml").write_text("nodes:\n  a: {type: data.Record, x: 1}\n")
    outer = f"nodes:\n  s:\n    type: flow.Subworkflow\n    workflow: i.yaml\n    {claim}\n"
    (tmp_path / "o.yaml").write_text(outer)
    _, problems = examine(tmp_path / "o.yaml")
    assert [p.rule for p in problems] == ["code-only"]


# -- failures inside --


def test_only_the_step_that_failed_is_repeated() -> None:
    journal = Journal()

    async def first(value: int, ctx: Context) -> int:
        journal.note("first", ctx)
        return value

    async def second(value: int, ctx: Context) -> int:
        journal.note("second", ctx)
        if ctx.attempt == 1:
            raise TimeoutError
        return value + 1

    with nw.workflow("inner") as inner:
        a = inner.add(made(first), id="first", value=inner.input("value", int))
        inner.add(made(second, retry_safe=True), id="second", value=a)
    with nw.workflow("outer") as w:
        sub = w.add(inner, id="sub", value=20)
        w.add(made(double), id="end", value=sub)
    played = ran(w.build(), supervise=answering(Retry()))
    assert played.result.outputs == {"end": 42}
    assert (journal.starts("first"), journal.starts("second")) == (1, 2)
    [found] = played.result.interventions
    assert (found.escalation.node_id, found.escalation.attempt) == ("sub/second", 1)
    assert list(found.escalation.allowed_actions) == ["retry", "skip", "fail"]


def per_item() -> Workflow:
    """Four items, each through a workflow of two steps; then their sum."""

    async def halve(value: int) -> int:
        if value == 2:
            raise ValueError("cannot halve it")
        return value // 2

    with nw.workflow("inner") as inner:
        doubled = inner.add(made(double), id="double", value=inner.input("value", int))
        inner.output("half", inner.add(made(halve), id="halve", value=doubled))
    with nw.workflow("outer") as w:
        sub = w.add(inner, id="sub", value=w.add(made(items), id="items"))
        w.add(made(total), id="total", values=sub.collect())
    return w.build()


@pytest.mark.parametrize("seed", SEEDS)
def test_inside_a_fan_out_the_ledger_names_the_items_an_inner_step_lost(seed: int | None) -> None:
    played = ran(per_item(), seed=seed, supervise=answering(Skip()))
    result = played.result
    assert (result.status, result.outputs["total"]) == ("completed", 0 + 2 + 3)
    assert result.headline.startswith("completed (supervised): 3/4 items, 1 skipped")
    [root] = result.ledger["roots"]
    [missing] = root["missing"]
    assert (root["node"], root["items"], root["kept"]) == ("items", 4, 3)
    assert (missing["node"], missing["item"], missing["kind"]) == ("sub/halve", "2", "lost")
    assert missing["reason"] == "as written"
    counts = {n: node_of(played, n)["succeeded"] for n in ("sub/double", "sub/halve")}
    assert counts == {"sub/double": 4, "sub/halve": 3}
    assert node_of(played, "sub/halve")["skipped"] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_inside_is_ended_early_where_it_breaks(seed: int | None) -> None:
    async def words(value: int) -> AsyncIterator[int]:
        for number in range(3):
            if (value, number) == (1, 2):
                raise ConnectionError("the stream broke")
            yield number

    with nw.workflow("inner") as inner:
        word = inner.add(made(words), id="words", value=inner.input("value", int))
        doubled = inner.add(made(double), id="double", value=word)
        inner.output("sum", inner.add(made(total), id="total", values=doubled.collect()))
    with nw.workflow("outer") as w:
        sub = w.add(inner, id="sub", value=w.add(made(items), id="items"))
        w.add("data.Record", id="all", sums=sub.collect())
    played = ran(w.build(), seed=seed, supervise=answering(EndStream()))
    assert played.result.outputs["all"] == {"sums": [6, 2, 6, 6]}
    [found] = played.result.interventions
    assert found.escalation.node_id == "sub/words"
    assert list(found.escalation.allowed_actions) == ["end_stream", "fail"]
    assert played.result.status == "completed"


def test_a_value_that_does_not_fit_is_a_failure_of_the_step_inside() -> None:
    """supervision.md §1: skip · fail."""

    async def anything() -> Any:
        return "text"

    with nw.workflow("inner") as inner:
        inner.add(made(double), id="double", value=inner.input("value", int))
    with nw.workflow("outer") as w:
        w.add(inner, id="sub", value=w.add(made(anything), id="anything"))
    played = ran(w.build(), supervise=answering(Skip()))
    [found] = played.result.interventions
    assert found.escalation.node_id == "sub/double"
    assert list(found.escalation.allowed_actions) == ["skip", "fail"]


def test_keep_going_goes_on_beside_a_step_that_failed_inside() -> None:
    played = ran(per_item(), keep_going=True)
    assert played.result.status == "failed"
    assert node_of(played, "sub/halve")["failed"] == 1
    assert node_of(played, "sub/halve")["succeeded"] == 3


# -- the same as by hand --


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_does_what_the_graph_drawn_by_hand_does(seed: int | None) -> None:
    by_hand = nw.workflow("outer")
    doubled = by_hand.add(made(double), id="double", value=by_hand.add(made(items), id="items"))
    by_hand.add(made(total), id="total", values=doubled.collect())
    with nw.workflow("inner") as inner:
        inner.add(made(double), id="double", value=inner.input("value", int))
    with nw.workflow("outer") as w:
        sub = w.add(inner, id="sub", value=w.add(made(items), id="items"))
        w.add(made(total), id="total", values=sub.collect())
    one, other = ran(by_hand.build(), seed=seed), ran(w.build(), seed=seed)
    assert one.result.outputs == other.result.outputs == {"total": 12}
    assert one.result.headline == other.result.headline
    assert [(n.removeprefix("sub/"), i, a) for n, i, a in invoked(other)] == invoked(one)


# -- what was not taken, what was lost --


def with_a_source(given: Callable[..., Any]) -> Workflow:
    """A workflow inside with a step that follows nothing, and a default."""

    async def hello() -> str:
        return "hello"

    async def say(word: str, value: int, times: int) -> str:
        return " ".join([word] * times) + f" {value}"

    with nw.workflow("inner") as inner:
        value, times = inner.input("value", int), inner.input("times", int, default=2)
        word = inner.add(made(hello), id="hello")
        inner.add(made(say), id="say", word=word, value=value, times=times)
    with nw.workflow("outer") as w:
        number = w.add(made(items), id="items")
        w.add(inner, id="sub", value=w.add(made(given), id="given", value=number))
    return w.build()


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_inside_runs_for_an_item_that_takes_another_branch(seed: int | None) -> None:
    async def even(value: int) -> int | Absent:
        return ABSENT if value % 2 else value

    played = ran(with_a_source(even), seed=seed)
    assert sorted(i for n, i, _ in invoked(played) if n == "sub/hello") == [(0,), (2,)]
    assert list(played.result.outputs["sub"]) == ["hello hello 0", "hello hello 2"]
    assert played.result.headline.startswith("completed: 4/4 items, 2 filtered out")


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_inside_runs_for_an_item_that_was_lost(seed: int | None) -> None:
    async def odd(value: int) -> int:
        if value % 2 == 0:
            raise ValueError("even")
        return value

    played = ran(with_a_source(odd), seed=seed, supervise=answering(Skip()))
    assert sorted(i for n, i, _ in invoked(played) if n == "sub/hello") == [(1,), (3,)]
    missing = played.result.ledger["roots"][0]["missing"]
    assert {m["node"] for m in missing} == {"given"}


def test_a_default_stands_in_for_an_input_that_was_not_taken() -> None:
    """kernel.md §1: where another input has come; each step inside that uses it sees it."""

    async def absent() -> int | Absent:
        return ABSENT

    async def one() -> int:
        return 1

    async def both(value: int, extra: int) -> int:
        return value + extra

    async def alone(extra: int) -> int:
        return extra

    with nw.workflow("inner") as inner:
        value, extra = inner.input("value", int), inner.input("extra", int, default=40)
        inner.add(made(both), id="both", value=value, extra=extra)
        inner.add(made(alone), id="alone", extra=extra)
    with nw.workflow("outer") as w:
        nothing, something = w.add(made(absent), id="absent"), w.add(made(one), id="one")
        w.add(inner, id="sub", value=something, extra=nothing)
        w.add(inner, id="not", value=nothing, extra=nothing)
    played = ran(w.build())
    outputs = played.result.outputs
    assert (outputs["sub.both"], outputs["sub.alone"]) == (41, 40)
    assert outputs["not.both"]["absent"] == outputs["not.alone"]["absent"] == "not_taken"


def test_a_loop_repeats_a_workflow_with_all_its_steps() -> None:
    async def step() -> int:
        return 3

    async def add(value: int, more: int) -> int:
        return value + more

    async def below(value: int) -> bool:
        return value < 10

    with nw.workflow("inner") as inner:
        more = inner.add(made(step), id="step")
        sum_ = inner.add(made(add), id="add", value=inner.input("value", int), more=more)
        inner.output("sum", sum_)
        inner.output("on", inner.add(made(below), id="below", value=sum_))
    with nw.workflow("outer") as w:
        loop = w.add("flow.Loop", id="loop", initial=w.input("start", int))
        sub = w.add(inner, id="sub", value=loop.slot("value"))
        w.feed(loop, next=sub.slot("sum"), condition=sub.slot("on"))
        w.add(made(double), id="end", value=loop.slot("done"))
    played = ran(w.build(), inputs={"start": 0})
    assert played.result.outputs["end"] == 24
    assert [i for n, i, _ in invoked(played) if n == "sub/step"] == [(0,), (1,), (2,), (3,)]


def controlling_inner() -> Workflow:
    async def lead(value: int, ctx: Context) -> int:
        answer = await ctx.call("tool", value=value + 1)
        assert list(ctx.controls) == ["tool"]
        return int(answer["output"])

    with nw.workflow("inner") as inner:
        inner.add(made(double), id="tool")
        inner.add(made(lead), id="lead", value=inner.input("value", int), controls=["tool"])
    return inner.build()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_inside_controls_another_by_the_name_in_its_own_file(seed: int | None) -> None:
    with nw.workflow("outer") as w:
        w.add(controlling_inner(), id="sub", value=w.add(made(items), id="items"))
    played = ran(w.build(), seed=seed)
    assert list(played.result.outputs["sub.lead"]) == [2, 4, 6, 8]


# -- files --

OUTER = """
name: outer
python: [own.py]
inputs: {names: "list[str]"}
nodes:
  greet:
    type: flow.Subworkflow
    workflow: parts/greet.yaml
    name: $inputs.names[*]
  all: {type: data.Record, said: "$greet[]"}
"""
GREET = """
python: [greetings.py]
inputs: {name: str}
nodes:
  said: {type: greetings.Hello, name: $inputs.name}
"""
GREETINGS = """
from nightwarden import node

@node(retry_safe=True)
def hello(name: str) -> str:
    if name == "nobody":
        raise ValueError("nobody is there")
    return f"hello {name}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workflow beside whose file lie the parts it is made of."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "outer.yaml").write_text(OUTER)
    (tmp_path / "own.py").write_text("")
    (tmp_path / "parts" / "greet.yaml").write_text(GREET)
    (tmp_path / "parts" / "greetings.py").write_text(GREETINGS)
    return tmp_path


def test_a_file_and_those_it_names_are_run_as_one(folder: Path) -> None:
    made_ = load(folder / "outer.yaml", trust=True)
    assert made_.python == ("own.py", "parts/greetings.py")
    result = nw.run(made_, {"names": ["ann", "bob"]})
    assert result.outputs == {"all": {"said": ["hello ann", "hello bob"]}}


def test_code_an_inner_file_names_has_to_be_allowed_too(folder: Path) -> None:
    """kernel.md §4: a workflow file alone never executes code its user did not name."""
    (folder / "parts" / "greetings.py").write_text("raise SystemExit('ran')")
    with pytest.raises(RunError, match=r"run code from own\.py, parts/greetings\.py: .*--trust"):
        load(folder / "outer.yaml")


def test_a_recorded_run_is_a_run_of_what_was_inlined(folder: Path) -> None:
    made_ = load(folder / "outer.yaml", trust=True)
    again, inputs = recorded(
        json.loads(json.dumps(made_.canonical())),
        {"names": ["ann"]},
        nodes=[folder / "parts" / "greetings.py"],
    )
    assert again.digest() == made_.digest()
    assert nw.run(again, inputs).outputs == {"all": {"said": ["hello ann"]}}


@pytest.mark.parametrize(
    "name", ["../secret.yaml", "parts/../../secret.yaml", "ABSOLUTE", "link.yaml"]
)
def test_a_file_outside_the_folder_of_the_workflow_is_not_opened(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "inside"
    (folder / "parts").mkdir(parents=True)
    outside = tmp_path / "secret.yaml"
    outside.write_text("nodes:\n  a: {type: data.Record, x: 1}\n")
    (folder / "link.yaml").symlink_to(outside)
    name = str(outside) if name == "ABSOLUTE" else name
    (folder / "o.yaml").write_text(f"nodes: {{s: {{type: flow.Subworkflow, workflow: {name}}}}}")
    _, [problem] = examine(folder / "o.yaml")
    assert (problem.rule, problem.node, problem.slot) == ("subworkflow-file", "s", "workflow")
    assert problem.message == f"{name} lies outside the folder of the workflow"


def test_files_name_each_other_from_where_they_lie_within_the_folder(folder: Path) -> None:
    (folder / "parts" / "deep").mkdir()
    (folder / "parts" / "deep" / "again.yaml").write_text(
        "inputs: {n: str}\nnodes:\n"
        "  g: {type: flow.Subworkflow, workflow: ../greet.yaml, name: $inputs.n}\n"
    )
    (folder / "top.yaml").write_text(
        "nodes:\n  s: {type: flow.Subworkflow, workflow: parts/deep/again.yaml, n: cy}\n"
    )
    made_ = load(folder / "top.yaml", trust=True)
    assert [n.id for n in made_.nodes] == ["s/g/said"]
    assert nw.run(made_).outputs == {"s": "hello cy"}


def test_items_of_an_inner_input_are_read_from_beside_the_inner_file(folder: Path) -> None:
    (folder / "parts" / "many.yaml").write_text(
        'inputs:\n  names: {type: "list[str]", items: "@names.txt"}\n'
        "nodes:\n  all: {type: data.Record, names: $inputs.names}\n"
    )
    (folder / "parts" / "names.txt").write_text("ann\nbob\n")
    (folder / "top.yaml").write_text(
        "nodes:\n  s: {type: flow.Subworkflow, workflow: parts/many.yaml}\n"
    )
    assert nw.run(load(folder / "top.yaml")).outputs == {"s": {"names": ["ann", "bob"]}}


def test_the_files_of_the_how_to_make_one_workflow(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "how-to" / "use-a-workflow-as-a-step.md").read_text(encoding="utf-8")
    outer, inner = (part.partition("```")[0] for part in page.split("```yaml\n")[1:])
    (tmp_path / "parts").mkdir()
    (tmp_path / "outer.yaml").write_text(outer, encoding="utf-8")
    (tmp_path / "parts" / "digest.yaml").write_text(inner, encoding="utf-8")
    made_, problems = examine(tmp_path / "outer.yaml")
    assert problems == ()
    assert made_ is not None
    assert made_.node("digest/summary").properties == {"max_chars": 400}


def test_mistakes_in_python_name_the_file_they_stand_in() -> None:
    w = nw.workflow("x")
    w.add("data.Recrod", id="a")
    with pytest.raises(SpecError) as caught:
        w.build()
    assert caught.value.problems[0].file == __file__


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("parts", "parts cannot be read (Is a directory)"),
        ("parts/no.yaml", "parts/no.yaml cannot be read (No such file or directory)"),
        ("bad.yaml", "bad.yaml cannot be read"),
        ('"a\\0b"', "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem_of_the_outer_one(
    folder: Path, name: str, told: str
) -> None:
    (folder / "bad.yaml").write_bytes(b"name: \xff")
    (folder / "o.yaml").write_text(
        f"nodes:\n  s:\n    type: flow.Subworkflow\n    workflow: {name}"
    )
    _, problems = examine(folder / "o.yaml")
    assert {p.rule for p in problems} <= {"subworkflow-file", "yaml-syntax"}
    assert any(told in p.message or p.rule == "yaml-syntax" for p in problems)


def test_a_circle_of_files_is_told_and_not_followed(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{one}.yaml").write_text(
            f"nodes:\n  s: {{type: flow.Subworkflow, workflow: {other}.yaml}}\n"
        )
    with pytest.raises(SpecError, match=r"recursion") as caught:
        load(tmp_path / "a.yaml")
    [problem] = caught.value.problems
    chain = [tmp_path / name for name in ("a.yaml", "b.yaml", "a.yaml")]
    assert problem.message.endswith(" → ".join(map(str, chain)))


# -- on the command line --


def test_the_command_line_validates_draws_and_runs_it(folder: Path) -> None:
    checked = nightwarden("validate", "outer.yaml", "--trust", cwd=folder)
    assert (checked.code, checked.out.splitlines()) == (0, ["outer.yaml: outer can run, 2 steps"])
    drawn = nightwarden("graph", "outer.yaml", "--trust", cwd=folder)
    assert drawn.code == 0
    assert "    │ ┆ greet/said" in drawn.out
    done = nightwarden(
        "run",
        "outer.yaml",
        "--trust",
        "--json",
        "-i",
        'names=["ann","nobody","bob"]',
        "--supervise",
        "scripted:answers.yaml",
        cwd=folder,
    )
    assert done.code == 2  # the answers are not there yet
    (folder / "answers.yaml").write_text(
        "- when: {node: greet/said}\n  answer: {action: skip, reason: nobody there}\n"
    )
    done = nightwarden(
        "run",
        "outer.yaml",
        "--trust",
        "--json",
        "-i",
        'names=["ann","nobody","bob"]',
        "--supervise",
        "scripted:answers.yaml",
        cwd=folder,
    )
    assert done.code == 0, done.err
    assert "⛨ greet/said [2/3 nobody]" in done.err
    assert json.loads(done.out)["outputs"]["all"]["said"] == ["hello ann", "hello bob"]


def test_all_problems_of_all_files_are_told_at_once(folder: Path) -> None:
    (folder / "outer.yaml").write_text(OUTER.replace("$greet[]", "$greet.no[]"))
    (folder / "parts" / "greet.yaml").write_text(GREET + "  b: {type: data.Recrod}\n")
    checked = nightwarden("validate", "outer.yaml", "--trust", "--json", cwd=folder)
    told = json.loads(checked.out)["problems"]
    assert checked.code == 2
    assert [(p["file"], p["rule"], p["line"]) for p in told] == [
        ("parts/greet.yaml", "unknown-type", 6)
    ]
    (folder / "parts" / "greet.yaml").write_text(GREET)
    told = json.loads(nightwarden("validate", "outer.yaml", "--trust", "--json", cwd=folder).out)[
        "problems"
    ]
    assert [(p["file"], p["rule"], p["line"], p["node"]) for p in told] == [
        ("outer.yaml", "unknown-output", 10, "all")
    ]
