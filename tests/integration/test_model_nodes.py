"""Steps that ask a model: the real clients against a provider on loopback (supervision.md §6)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from model_server import Cut, Drop, Hang, ModelServer, Request, Say, Status, Vectors

import nightwarden as nw
from nightwarden.errors import ModelError
from nightwarden.nodes.context import Context
from nightwarden.report.costing import by_model, fold_costs
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.spec.workflow import Workflow
from nightwarden.store.opening import open_store
from nightwarden.verdict import Decision, Escalation, Skip

MODEL = "openai-chat:gpt-5"
MODELS = [MODEL, "openai:gpt-5", "anthropic:claude-sonnet-5", "google:gemini-2.5-flash"]
KEY = "sk-test-0123456789-abcdef"
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
    "additionalProperties": False,
}
ANSWER = '{"name": "Bell Rock", "year": 1810}'
COST = 1_000 * 3 + 50 * 15
"""What an answer costs that took 1,000 tokens in and 50 out, in micro-dollars."""

Make = Callable[..., AbstractContextManager[ModelServer]]


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a server the one the workspace in `tmp_path` asks, for $3 and $15 a million tokens."""

    @contextlib.contextmanager
    def use(
        server: ModelServer, *, price: str = "price_in = 3\nprice_out = 15"
    ) -> Iterator[ModelServer]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        with server:
            text = "".join(
                f'[models."{name}"]\nbase_url = "{server.base_url}{path}"\n{price}\n'
                for name, path in (("openai*", "/v1"), ("anthropic:*", ""), ("google:*", ""))
            )
            (tmp_path / "nightwarden.toml").write_text(text)
            yield server

    return use


def read_workflow(document: Mapping[str, object]) -> Workflow:
    """The workflow, read from a file in the workspace."""
    file = Path("w.json").absolute()
    file.write_text(json.dumps(document))
    return nw.load(file)


def one(node: str, **properties: object) -> Workflow:
    """A workflow of one step."""
    return read_workflow(
        {"version": 1, "name": "one", "nodes": {"step": {"type": node, **properties}}}
    )


def many(number: int, node: str = "llm.Generate", **properties: object) -> Workflow:
    """The step for each of several items."""
    return read_workflow(
        {
            "version": 1,
            "name": "many",
            "inputs": {"texts": {"type": "list[str]", "default": [f"t{i}" for i in range(number)]}},
            "nodes": {
                "step": {"type": node, "prompt": "$inputs.texts[*]", **properties},
                "all": {"type": "flow.Collect", "items": "$step[]"},
            },
        }
    )


def run(workflow: Workflow, store: Path | None = None, **options: Any) -> nw.RunResult:
    return nw.run(workflow, store=store, **options)


class SkipsAll(SupervisorBase):
    """Skips whatever it is asked about, and counts."""

    def __init__(self) -> None:
        self.asked: list[Escalation] = []

    async def decide(self, escalation: Escalation) -> Decision:
        self.asked.append(escalation)
        return Decision(verdict=Skip(), rationale="not needed")


# -- what comes back --


@pytest.mark.parametrize("model", MODELS)
def test_a_text_is_generated_and_paid_for_by_its_invocation(provider: Make, model: str) -> None:
    with provider(ModelServer([Say("Good morning.")])) as server:
        result = run(one("llm.Generate", prompt="Greet.", model=model, instructions="Be brief."))
    assert result.outputs == {"step": "Good morning."}
    assert result.costs["nodes_micro_usd"] == {"step": COST}
    (request,) = server.requests
    assert "Be brief." in request.text
    assert request.max_tokens == 2048


@pytest.mark.parametrize("model", MODELS)
def test_a_streamed_text_comes_line_by_line(provider: Make, model: str) -> None:
    with provider(ModelServer([Say("one\n\ntwo\nthree")])) as server:
        workflow = read_workflow(
            {
                "version": 1,
                "name": "lines",
                "nodes": {
                    "step": {"type": "llm.Stream", "prompt": "Count.", "model": model},
                    "all": {"type": "flow.Collect", "items": "$step[]"},
                },
            }
        )
        result = run(workflow)
    assert result.outputs == {"all": ["one", "two", "three"]}
    assert result.costs["nodes_micro_usd"] == {"step": COST}
    assert server.requests[0].streamed


@pytest.mark.parametrize(
    "said",
    [
        ANSWER,
        f"```json\n{ANSWER}\n```",
        '{"name": "Bell Rock", "year": 1810,}',
        f"\n  ```\n{ANSWER}\n```\n",
    ],
)
def test_a_reply_that_fits_is_a_value_whatever_its_habits(provider: Make, said: str) -> None:
    with provider(ModelServer([Say(said)])) as server:
        result = run(one("llm.Extract", text="…", schema=SCHEMA, model=MODEL))
    assert result.outputs == {"step": {"name": "Bell Rock", "year": 1810}}
    assert '"year": {"type": "integer"}' in server.requests[0].text


@pytest.mark.parametrize(
    ("turn", "signature", "candidate"),
    [
        (Say("Here it is: " + ANSWER), "reply:json-words", "Here it is: " + ANSWER),
        (Say("I cannot do that."), "reply:json-none", "I cannot do that."),
        (Say(ANSWER[:20]), "reply:json-cut", ANSWER[:20]),
        (Say('{"name": "x", "year": "1810"}'), "reply:misfit", '{"name": "x", "year": "1810"}'),
        (Say(ANSWER, stop="length"), "reply:cut-off", ANSWER),
        (Say(""), "reply:empty", None),
        (Say("", stop="content_filter"), "model:refused", None),
        (Status(401, {"error": {"message": "no"}}), "http:401", None),
        (Status(400, {"error": {"message": "too long"}}), "http:400", None),
        (Drop(), "model:lost", None),
    ],
)
def test_a_reply_that_cannot_be_used_is_a_failure_with_a_code_and_what_came(
    provider: Make, turn: Any, signature: str, candidate: str | None
) -> None:
    skips = SkipsAll()
    with provider(ModelServer([turn])):
        result = run(one("llm.Extract", text="…", schema=SCHEMA, model=MODEL), supervise=skips)
    (asked,) = skips.asked
    assert (asked.signature, asked.candidate_output) == (signature, candidate)
    assert KEY not in asked.detail
    refused = isinstance(turn, Status)
    assert result.costs["total_micro_usd"] == asked.cost_micro_usd
    assert (asked.cost_micro_usd == 0) is refused
    assert ("retry" in asked.allowed_actions) is refused  # what was paid for is not asked again


def test_a_judgement_branches(provider: Make) -> None:
    verdict = '{"reason": "It asks for money.", "verdict": "spam"}'
    with provider(ModelServer([Say(verdict)])):
        result = run(
            one(
                "llm.Judge",
                text="Send money.",
                question="What is it?",
                verdicts=["spam", "ham"],
                model=MODEL,
            )
        )
    found: Any = result.outputs["step"]
    assert (found.verdict, found.passed, found.reason) == ("spam", True, "It asks for money.")


def test_a_verdict_that_was_not_offered_is_none(provider: Make) -> None:
    skips = SkipsAll()
    with provider(ModelServer([Say('{"reason": "so", "verdict": "maybe"}')])):
        run(one("llm.Judge", text="x", question="Is it?", model=MODEL), supervise=skips)
    assert skips.asked[0].signature == "reply:misfit"


def test_a_text_becomes_a_vector(provider: Make) -> None:
    with provider(ModelServer([Vectors()]), price="price_in = 2\nprice_out = 0") as server:
        result = run(one("llm.Embed", text="abc", model="openai:text-embedding-3-small"))
    assert result.outputs == {"step": [97.0, 98.0, 99.0]}
    assert result.costs["nodes_micro_usd"] == {"step": 200}
    assert server.requests[0].path.endswith("/embeddings")


def test_google_makes_vectors_whose_cost_it_does_not_tell(provider: Make) -> None:
    """Its answer says nothing of tokens: what was reserved is booked."""
    with provider(ModelServer([Vectors()]), price="price_in = 2\nprice_out = 0") as server:
        workflow = one("llm.Embed", text="abc", model="google:gemini-embedding-001", dimensions=2)
        result = run(workflow)
    assert result.outputs == {"step": [97.0, 98.0]}
    assert result.costs["nodes_micro_usd"] == {"step": 2 * (3 + 64)}
    (request,) = server.requests
    assert request.path.endswith(":batchEmbedContents")
    assert KEY not in request.path


def test_what_google_makes_of_a_form_is_read_as_any_reply(provider: Make) -> None:
    google = "google:gemini-2.5-flash"
    with provider(ModelServer([Say(ANSWER)])):
        assert run(one("llm.Extract", text="x", schema=SCHEMA, model=google)).outputs == {
            "step": {"name": "Bell Rock", "year": 1810}
        }
    skips = SkipsAll()
    with provider(ModelServer([Status(403, {"error": {"code": 403, "message": KEY}})])):
        run(one("llm.Extract", text="x", schema=SCHEMA, model=google), supervise=skips)
    assert skips.asked[0].signature == "http:403"
    assert KEY not in skips.asked[0].detail


def test_a_busy_provider_of_vectors_costs_nothing_and_its_silence_the_worst_case(
    provider: Make,
) -> None:
    skips = SkipsAll()
    with provider(ModelServer([Status(401, "no")]), price="price_in = 2\nprice_out = 0"):
        result = run(one("llm.Embed", text="abc", model="openai:e"), supervise=skips)
        assert (result.costs["total_micro_usd"], skips.asked[0].signature) == (0, "http:401")
    with provider(ModelServer([Vectors(usage=None)]), price="price_in = 2\nprice_out = 0"):
        result = run(one("llm.Embed", text="abc", model="openai:e"))
        assert result.costs["total_micro_usd"] == 2 * (3 + 64)


# -- what it costs --


def test_a_cost_nobody_told_is_the_worst_case(provider: Make) -> None:
    with provider(ModelServer([Say("x", usage=None)])) as server:
        result = run(one("llm.Generate", prompt="p", model=MODEL, max_tokens=10))
    most = len(server.requests[0].raw) + 2_000
    assert 10 * 15 + 1_000 * 3 < result.costs["total_micro_usd"] < most * 3 + 10 * 15


def test_a_stream_that_breaks_off_keeps_what_came_and_costs_the_worst_case(provider: Make) -> None:
    skips = SkipsAll()
    with provider(ModelServer([Cut(Say("one\ntwo"), 1)])):
        workflow = many(1, "llm.Stream", model=MODEL, max_tokens=10)
        result = run(workflow, supervise=skips)
    (asked,) = skips.asked
    assert asked.signature == "model:lost"
    assert [str(action) for action in asked.allowed_actions] == ["end_stream", "fail"]
    assert result.costs["total_micro_usd"] >= 10 * 15 + 1_000 * 3


def test_the_budget_of_a_run_stops_it_before_the_call_it_does_not_cover(
    provider: Make, tmp_path: Path
) -> None:
    with provider(ModelServer([Say("fine")])) as server:
        workflow = many(20, model=MODEL, max_tokens=100)
        result = run(workflow, tmp_path / "kept", max_cost_micro_usd=30_000)
        assert result.status == "failed"
        assert "the run's budget of $0.03 does not cover the next model call" in result.reason
        assert "resume with a larger --max-cost" in result.reason
        spent = result.costs["total_micro_usd"]
        assert spent == COST * len(server.requests) <= 30_000
        assert len(server.requests) >= 5

        again = nw.resume(result.run_id, store=tmp_path / "kept")
        assert again.status == "failed"
        assert again.costs["total_micro_usd"] <= 30_000

        done = nw.resume(result.run_id, store=tmp_path / "kept", max_cost_micro_usd=200_000)
    assert done.outputs == {"all": ["fine"] * 20}
    assert done.costs["total_micro_usd"] == 20 * COST
    assert len(server.requests) == 20  # nothing that was paid for was asked again


def test_nobody_is_asked_about_a_budget_that_is_used_up(provider: Make) -> None:
    skips = SkipsAll()
    with provider(ModelServer([Say("fine")])) as server:
        workflow = one("llm.Generate", prompt="p", model=MODEL)
        result = run(workflow, supervise=skips, max_cost_micro_usd=100)
        assert (result.status, skips.asked, server.requests) == ("failed", [], [])
        result = run(workflow, supervise=skips, max_cost_micro_usd=0)
    assert "the run's budget of $0.00 allows no model call" in result.reason
    assert server.requests == []


def test_what_a_step_spends_by_itself_counts_for_the_next_call(provider: Make) -> None:
    @nw.node(type="t.Pay", retry_safe=True)
    async def pay(ctx: Context) -> str:
        ctx.spend(0.05, what="a picture")
        return "paid"

    with provider(ModelServer([Say("fine")])) as server:
        with nw.workflow("paying") as w:
            paid = w.add(pay, id="pay")
            w.add("llm.Generate", id="step", prompt=paid, model=MODEL, max_tokens=10)
        result = run(w.build(), max_cost_micro_usd=50_000)
    assert result.status == "failed"
    assert "$0.05 are spent" in result.reason
    assert server.requests == []


def test_a_step_has_a_limit_of_its_own_for_all_its_calls(provider: Make, tmp_path: Path) -> None:
    skips = SkipsAll()
    with provider(ModelServer([Say("fine")])) as server:
        workflow = many(12, model=MODEL, max_tokens=100, max_cost_usd=0.02)
        result = run(
            workflow, tmp_path / "kept", supervise=skips, bounds=nw.Bounds(max_decisions=99)
        )
    assert result.status == "completed"
    assert {each.signature for each in skips.asked} == {"model:budget"}
    assert "max_cost_usd of $0.02 does not cover" in skips.asked[0].detail
    assert result.costs["total_micro_usd"] == COST * len(server.requests) <= 20_000
    assert len(server.requests) + len(skips.asked) == 12


# -- before it starts --


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai-chat:gpt-5", "step: openai-chat:gpt-5 needs a key for api.openai.com"),
        ("gpt-5", "step: 'gpt-5' names no model"),
        ("openai:nobody-knows-it", "step: openai:nobody-knows-it has no known price"),
    ],
)
def test_a_run_whose_model_cannot_be_had_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match=said):
        nw.Session(one("llm.Generate", prompt="p", model=model))


def test_a_model_that_an_input_names_is_checked_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightwarden.toml").write_text('allowed_models = ["ollama:*"]\n')
    workflow = read_workflow(
        {
            "version": 1,
            "name": "w",
            "inputs": {"model": {"type": "str"}},
            "nodes": {"step": {"type": "llm.Generate", "prompt": "p", "model": "$inputs.model"}},
        }
    )
    nw.Session(workflow, {"model": "ollama:llama3.2"})
    with pytest.raises(ModelError, match="lmstudio:x is not allowed here"):
        nw.Session(workflow, {"model": "lmstudio:x"})


# -- what a step of one's own may do --


def test_a_step_of_ones_own_asks_a_model_and_reads_what_was_decided(provider: Make) -> None:
    @nw.node(type="t.Ask", retry_safe=True)
    async def ask(parts: nw.Collect[str], ctx: Context) -> str:
        told = [f"{d.node_id} {d.item}: {d.action} by {d.decided_by}" for d in ctx.decisions]
        reply = await ctx.model(MODEL).generate("; ".join(told) + f"; {len(parts)} left")
        return reply.text

    def answer(request: Request) -> Say | Status:
        return Status(400, "no") if '"t0"' in request.text else Say("heard")

    with provider(ModelServer([answer])) as server:
        with nw.workflow("own") as w:
            texts = w.input("texts", "list[str]")
            each = w.add("llm.Generate", id="each", prompt=texts.each(), model=MODEL)
            w.add(ask, id="ask", parts=each.collect())
        result = run(w.build(), inputs={"texts": ["t0", "t1"]}, supervise=SkipsAll())
    assert result.outputs == {"ask": "heard"}
    assert "each 1 of 2 t0: skip by agent; 1 left" in server.requests[-1].text.replace("/", " of ")


def test_a_step_in_a_thread_is_told_to_be_a_coroutine(provider: Make) -> None:
    @nw.node(type="t.Thread", retry_safe=True)
    def ask(ctx: Context) -> str:
        return str(ctx.model(MODEL))

    with provider(ModelServer([Say("x")])):
        with nw.workflow("thread") as w:
            w.add(ask, id="ask")
        result = run(w.build())
    assert "make the step `async def`" in result.reason


def test_a_cancelled_call_closes_its_socket_and_costs_the_worst_case(
    provider: Make, tmp_path: Path
) -> None:
    with provider(ModelServer([Hang()])) as server:
        session = nw.Session(one("llm.Generate", prompt="p", model=MODEL), store=tmp_path / "kept")

        async def main() -> nw.RunResult:
            running = asyncio.ensure_future(session.run())
            await asyncio.to_thread(server.waiting.wait, 20)
            session.cancel()
            return await running

        result = asyncio.run(main())
        assert server.closed.wait(5)
    assert result.status == "cancelled"
    assert result.costs["total_micro_usd"] >= 2048 * 15


def test_what_went_to_which_model_stands_in_the_costs(provider: Make, tmp_path: Path) -> None:
    with provider(ModelServer([Say("fine")])):
        result = run(many(3, model=MODEL), tmp_path / "kept")
    with open_store(tmp_path / "kept") as store:
        costs = fold_costs(store.read(result.run_id))
        text = "".join(json.dumps(event) for event in store.read(result.run_id))
    assert by_model(costs) == {MODEL: (3 * COST, 0)}
    assert KEY not in text
    assert text.count('"budget_reserved"') == text.count('"budget_committed"') == 3
