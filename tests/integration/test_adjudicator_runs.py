"""Whole runs that ask a model, over real wires: cases H05, H06 (prompts), H08; the command line."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from case_runs import build, read_case
from commands import nightwarden
from model_runs import KEY, PROTOCOLS, RETRY, answer, stub_model
from model_server import Call, Hang, ModelServer, Request, Script

import nightwarden as nw
from nightwarden import Context, RecoverableError, RunResult, Session
from nightwarden.agents.adjudicator import Adjudicator
from nightwarden.resuming import resume
from nightwarden.runtime.supervision import Bounds
from nightwarden.spec.workflow import Workflow
from nightwarden.store import open_store

CHAT = "openai-chat:gpt-5"
STOP = answer("fail", reason="The key is wrong.")
"""Where no signature lets an answer stick, it has no extent to give."""


class Record(pydantic.BaseModel):
    """What H05's parser has to make."""

    model_config = pydantic.ConfigDict(extra="forbid")
    title: str
    score: Annotated[float, pydantic.Field(ge=0, le=1)]
    tags: list[str]


class Harvest:
    """Case H05: a model's replies are parsed; where that fails, the raw reply is handed over."""

    def __init__(self, cases: Path, *, hands_over: bool = True) -> None:
        self.case = read_case(cases / "H05_repair_model_reply")
        lines = (cases / "H05_repair_model_reply" / "replies.jsonl").read_text("utf-8")
        self.replies = {r["id"]: r["raw"] for r in map(json.loads, lines.splitlines())}
        self.asked: list[int] = []
        self.collected: list[Any] = []
        self._hands_over = hands_over

    def workflow(self) -> Workflow:
        replies, asked, collected = self.replies, self.asked, self.collected
        hands_over = self._hands_over

        def items() -> Any:
            yield from (0, 1, 2)

        async def ask(value: int, ctx: Context) -> str:
            asked.append(value)
            ctx.spend(0.001)
            return str(replies[("r02", "r05", "r01")[value]])

        def parse(value: str) -> Record:
            try:
                return Record.model_validate_json(value)
            except pydantic.ValidationError as error:
                if not hands_over:
                    raise ValueError("no JSON") from error
                raise RecoverableError(
                    "the reply is no JSON", candidate_output=value, code="no-json"
                ) from error

        def collect(value: nw.Collect[Record]) -> int:
            collected.extend(record.model_dump() for record in value)
            return len(list(value))

        steps: Mapping[str, Callable[..., Any]] = {
            "items": items,
            "ask": ask,
            "parse": parse,
            "collect": collect,
        }
        return build(self.case, steps)

    def run(self, script: Sequence[Script]) -> tuple[RunResult, list[Request]]:
        with ModelServer(script) as server:
            supervisor = Adjudicator(stub_model(server))
            result = nw.run(self.workflow(), supervise=supervisor)
            return result, server.requests


def by_item(request: Request) -> int:
    """Which item of H05 a request is about, 1-based."""
    return 1 if '"item": "1' in request.text else 2


def repair(record: object) -> Call:
    return answer("substitute", outputs={"output": record})


def test_h05_a_wrong_repair_comes_back_and_only_the_right_one_enters_the_graph(
    cases: Path,
) -> None:
    """Case H05."""
    world = Harvest(cases)
    scripted = world.case["supervisor"]["scripted"]
    wrong, right = (a["outputs"]["record"] for a in scripted[0]["answers"])
    reason = scripted[1]["answers"][0]["reason"]
    rounds = {1: [repair(wrong), repair(right)]}

    def model(request: Request) -> Call:
        if by_item(request) == 1:
            return rounds[1].pop(0)
        return answer("skip", rationale=reason, apply_to="invocation")

    result, requests = world.run([model])
    expect = world.case["expect"]
    assert (result.status, result.supervised) == (expect["status"], expect["supervised"])
    assert len(result.interventions) == expect["decisions"]
    about_item_0 = [request for request in requests if by_item(request) == 1]
    assert len(about_item_0) == expect["repair_rounds_item_0"]
    assert "score" in about_item_0[1].text.split("does not fit")[1]
    assert world.collected == expect["collected"]
    skipped = [i for i in result.interventions if i.outcome and i.outcome.kind == "skipped"]
    assert [(i.escalation.node_id, i.escalation.lineage) for i in skipped] == [
        (entry["node"], (entry["item"],)) for entry in expect["skipped"]
    ]
    assert skipped[0].decision is not None
    assert skipped[0].decision.rationale == reason
    assert sorted(world.asked) == [0, 1, 2]  # never a second time
    assert result.costs["supervisor_micro_usd"] == 3 * (1_000 * 3 + 50 * 15)
    told = result.to_json()["interventions"][0]["decision"]
    assert (told["model"], told["decided_by"], told["tokens_in"]) == (CHAT, "agent", 2_000)


def test_h05_three_wrong_repairs_in_a_row_are_the_bounds(cases: Path) -> None:
    """Case H05, "three wrong repairs in a row"."""
    world = Harvest(cases)
    variant = next(v for v in world.case["variants"] if "three wrong" in v["name"])
    result, requests = world.run([repair({"title": "Blue kettle"})])
    decision = result.interventions[0].decision
    assert decision is not None
    assert decision.decided_by == variant["expect"]["decided_by"]
    assert type(decision.verdict).__name__.lower() == variant["expect"]["applied"]
    assert len(requests) == variant["expect"]["repair_rounds"]
    assert "3 repairs did not fit" in result.reason
    assert world.collected == []


def test_h05_without_a_broken_value_no_repair_can_be_expressed(cases: Path) -> None:
    """Case H05, "no broken value handed over"."""
    world = Harvest(cases, hands_over=False)
    variant = next(v for v in world.case["variants"] if "no broken value" in v["name"])
    _, requests = world.run([repair({}), STOP])
    branches = requests[0].tools["decide"]["properties"]["verdict"]["anyOf"]
    offered = [branch["properties"]["action"]["enum"][0] for branch in branches]
    assert offered == variant["expect"]["allowed"]
    assert "'substitute' is no action that is allowed here" in requests[1].text


# -- H06: what is sent --


@pytest.mark.parametrize("name", PROTOCOLS)
def test_h06_no_request_to_a_model_shows_a_secret(cases: Path, name: str) -> None:
    """Case H06: every request body sent to the supervisor model."""
    folder = cases / "H06_secret_everywhere"
    secrets = json.loads((folder / "secrets.json").read_text("utf-8"))
    forbidden = json.loads((folder / "forbidden.json").read_text("utf-8"))
    values = _values(secrets)

    def pull(ctx: Context, request: dict[str, Any]) -> str:
        held = [ctx.secret(secret) for secret in values]
        raise ConnectionError(f"partner.example?page=2&key={held[0]} failed with {held!r}")

    with nw.workflow("h06", registry=nw.Registry()) as w:
        made = nw.node(type="t.Pull", retry_safe=True)(pull)
        w.add(made, id="pull", properties={"request": {"api_key": "plain-other-value"}})
    lookups = [
        Call("get_run_state", {}),
        Call("read_node_output", {"node_id": "pull"}),
        STOP,
    ]
    with ModelServer(lookups) as server:
        nw.run(w.build(), supervise=Adjudicator(stub_model(server, name)), secrets=values)
        sent = [request.raw.decode() + request.text for request in server.requests]
    assert len(sent) == 3
    for body in sent:
        for form in _forms(forbidden):
            assert form not in body
        assert "plain-other-value" not in body
        assert KEY not in body
        assert "page=2" in body


def _values(secrets: Any) -> dict[str, str]:
    """The secrets by name, whatever shape the file has."""
    if isinstance(secrets, dict):
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in secrets.items()
        }
    return {entry["name"]: entry["value"] for entry in secrets}


def _forms(forbidden: Any) -> list[str]:
    if isinstance(forbidden, str):
        return [forbidden]
    parts = forbidden.values() if isinstance(forbidden, dict) else forbidden
    return [form for part in parts for form in _forms(part)]


# -- H08: cancelled while a model thinks --


def stuck() -> Workflow:
    """A step that fails, and two behind it."""

    def a() -> str:
        raise ConnectionError("gone")

    def b(value: str) -> str:
        return value

    with nw.workflow("stuck", registry=nw.Registry()) as w:
        first = w.add(nw.node(type="t.A", retry_safe=True)(a), id="a")
        w.add(nw.node(type="t.B")(b), id="b", properties={"value": first})
    return w.build()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_h08_cancelling_the_run_closes_the_models_socket_within_a_tenth_of_a_second(
    name: str,
) -> None:
    """Case H08; supervision.md §5: cancel is instant."""

    async def main() -> None:
        with ModelServer([Hang()]) as server:
            session = Session(stuck(), supervise=Adjudicator(stub_model(server, name)))
            task = asyncio.ensure_future(session.run())
            await asyncio.to_thread(server.waiting.wait, 10)
            cancelled_at = time.monotonic()
            session.cancel()
            session.cancel()
            result = await task
            assert result.status == "cancelled"
            assert time.monotonic() - cancelled_at < 2
            assert await asyncio.to_thread(server.closed.wait, 2.0)
            assert server.closed_at - cancelled_at < 0.1
            credited = [str(i.decision.decided_by) for i in result.interventions if i.decision]
            assert credited == ["default"]
            assert result.costs["supervisor_micro_usd"] > 30_000  # the turn that was cut
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(main())


def test_h08_a_limit_on_the_decision_closes_it_too() -> None:
    """Case H08, "the decision limit"; what the turn cost at worst is in the record."""
    with ModelServer([RETRY, Hang()]) as server:
        supervisor = Adjudicator(stub_model(server))
        bounds = Bounds(decision_timeout_s=4.0, max_retries=5)
        result = nw.run(stuck(), supervise=supervisor, bounds=bounds)
        assert server.closed.wait(2.0)
    assert result.status == "failed"
    last = result.interventions[-1].decision
    assert last is not None
    assert last.decided_by == "bounds"
    assert "no decision within 4 s" in result.reason
    assert last.cost_micro_usd > 30_000


# -- resumed --


def test_what_deciding_cost_counts_after_a_resume(tmp_path: Path) -> None:
    """Case H07, "resumed run"; supervision.md §5: money spent survives resume.

    row: S6-JOURNAL, S5-RESUME
    """
    with ModelServer([STOP]) as server:
        first = Adjudicator(stub_model(server))
        failed = nw.run(stuck(), supervise=first, store=tmp_path)
        assert failed.reason == "The key is wrong."
        assert failed.costs["supervisor_micro_usd"] == 3_750
        (reserved,) = [e for e in _events(tmp_path) if e["type"] == "budget_reserved"]
        cap = 3_750 + reserved["worst_micro_usd"] - 500
        again = Adjudicator(stub_model(server), cap_micro_usd=cap)
        again_failed = resume(failed.run_id, store=tmp_path, workflow=stuck(), supervise=again)
        assert len(server.requests) == 1
    assert again.budget.spent_micro_usd == 3_750
    decision = again_failed.interventions[-1].decision
    assert decision is not None
    assert decision.decided_by == "bounds"
    assert "$0.00375 are spent" in decision.rationale


def _events(store: Path) -> list[Mapping[str, Any]]:
    with open_store(store) as opened:
        return list(opened.read(opened.find("last")))


# -- the command line --

FILES = {
    "steps.py": """
import nightwarden as nw

TRIES = []

@nw.node(type="t.Flaky", retry_safe=True)
def flaky(x: int) -> int:
    TRIES.append(x)
    if len(TRIES) == 1:
        raise TimeoutError("the server did not answer")
    return x

@nw.node(type="t.Broken")
def broken(x: int) -> int:
    raise ValueError("the API key is not valid")
""",
    "flaky.yaml": """
name: flaky
inputs: {x: int}
nodes:
  - {id: flaky, type: t.Flaky, properties: {x: $inputs.x}}
""",
    "broken.yaml": """
name: broken
inputs: {x: int}
nodes:
  - {id: broken, type: t.Broken, properties: {x: $inputs.x}}
""",
}
WITH = ("--nodes", "steps.py", "--input", "x=1")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_run_supervise_asks_the_model_and_says_once_what_is_sent(here: Path) -> None:
    """supervision.md §7; surfaces.md: `--supervise` alone is a model.

    row: S6-NOTICE
    """
    model = ("--supervise", "--supervisor-model", CHAT)
    with ModelServer([RETRY]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        first = nightwarden("run", "flaky.yaml", *WITH, *model, cwd=here, env=env)
        again = nightwarden("run", "flaky.yaml", *WITH, *model, cwd=here, env=env)
        assert len(server.requests) == 2
    sentence = f"are sent to {CHAT} on your own network, with secrets masked."
    assert (first.code, again.code) == (0, 0)
    assert first.err.count(sentence) == 1
    assert sentence not in again.err
    assert "⛨ flaky" in first.err
    assert "It is so." in first.err
    assert "completed (supervised)" in first.out
    assert "1 decision, +$0.001750 supervisor cost\n" in first.out


def test_a_model_that_stops_the_run_gives_it_its_reason(here: Path) -> None:
    (here / "nightwarden.toml").write_text(
        '[supervisor]\nmode = "agent"\nmodel = "ollama:llama3.2"\n', encoding="utf-8"
    )
    with ModelServer([STOP]) as server:
        env = {"OLLAMA_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden("run", "broken.yaml", *WITH, "--json", cwd=here, env=env)
    assert done.code == 1
    told = json.loads(done.out)
    assert told["reason"] == "The key is wrong."
    assert told["headline"].startswith("failed: The key is wrong, ")
    decision = told["interventions"][0]["decision"]
    assert (decision["model"], decision["decided_by"]) == ("ollama:llama3.2", "agent")
    assert decision["rationale"] == "It is so."
    assert decision.get("cost_usd", 0) == 0


def test_a_cost_cap_of_nothing_stops_like_fail_without_a_request(here: Path) -> None:
    """Scenario 71, on the command line."""
    with ModelServer([RETRY]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden(
            "run",
            "flaky.yaml",
            *WITH,
            *("--supervise", f"agent:{CHAT}", "--supervisor-cost-cap", "0.0001"),
            cwd=here,
            env=env,
        )
        assert server.requests == []
    assert done.code == 1
    assert "cost cap of $0.0001 reached" in done.out + done.err


def test_a_shadow_asks_and_stops_the_run_all_the_same(here: Path) -> None:
    """row: S6-SHADOW"""
    with ModelServer([RETRY]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        done = nightwarden(
            "run",
            "flaky.yaml",
            *WITH,
            *("--supervise", "shadow", "--supervisor-model", CHAT),
            cwd=here,
            env=env,
        )
        assert len(server.requests) == 1
    assert done.code == 1
    assert "would have: retry" in done.err


def test_a_clean_supervised_run_says_what_the_unsupervised_one_says(here: Path) -> None:
    """Scenario 89; supervision.md §7, apart from the sentence that is said once."""
    model = ("--supervise", f"agent:{CHAT}")
    clean = here / "steps.py"
    clean.write_text(clean.read_text().replace("len(TRIES) == 1", "False"), encoding="utf-8")
    with ModelServer([RETRY]) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        runs = [
            nightwarden("run", "flaky.yaml", *WITH, "--run-id", name, *more, cwd=here, env=env)
            for name, more in (("one", ()), ("two", model), ("six", model))
        ]
        assert server.requests == []
    plain, first, again = (run.out.replace("two", "one").replace("six", "one") for run in runs)
    assert plain == first == again
    assert runs[2].err == runs[0].err
