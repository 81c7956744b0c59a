"""The ten scenarios of seed 001 §4.2, each end to end on the reference workflow it was found with.

A is `examples/pages.yaml` against pages served from here, B `examples/poster.yaml`, C
`examples/nightly.yaml`. Where a scenario needs a step none of them has, it is a few lines long
and stands with the test.
"""

from __future__ import annotations

import asyncio
import csv
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from case_runs import Asked, credits_of
from example_runs import Desk, counts, desk_in, only, told
from kept import events_of

import nightwarden as nw
from nightwarden import Collect, Context, RecoverableError, RunResult, Session
from nightwarden.cli.report import read_report
from nightwarden.report import report_text
from nightwarden.runtime.supervision import Bounds, RunReader, SupervisorBase
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.session import run_session
from nightwarden.store import open_store
from nightwarden.testing import InlineExecutor, play
from nightwarden.verdict import (
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

SEEDS = (None, 1, 2)


# -- the three workflows, and who answers --


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_in(tmp_path)


Refusals = list[tuple[int, dict[str, str]]]


@dataclass
class Site:
    """Serves pages; a page answers each request with the next of its refusals, then as it is."""

    count: int
    refusals: dict[int, Refusals] = field(default_factory=dict)
    requests: Counter[int] = field(default_factory=Counter)
    port: int = 0

    @property
    def urls(self) -> list[str]:
        """All pages in order, from 1."""
        return [f"http://127.0.0.1:{self.port}/p/{n}" for n in range(1, self.count + 1)]

    def answer(self, number: int) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of one request."""
        self.requests[number] += 1
        refusals = self.refusals.get(number, [])
        if self.requests[number] <= len(refusals):
            return *refusals[self.requests[number] - 1], ""
        said = f"Page {number} is about the number {number}. Nothing else is on it, but that. " * 6
        return 200, {}, f"<title>Page {number}</title><main><h1>{number}</h1><p>{said}</p></main>"


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of 200 pages."""
    pages = Site(200)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, text = pages.answer(int(self.path.rpartition("/")[2]))
            body = text.encode()
            self.send_response(status)
            sent = {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    pages.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield pages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


GONE: Refusals = [(410, {})] * 9
LOCKED: Refusals = [(401, {})] * 9


def answers(*pairs: tuple[Mapping[str, Any], Verdict]) -> Asked:
    """Rules: what to answer when."""
    given = ScriptedAnswer
    return Asked([Rule(answers=(given(verdict, "as written"),), **when) for when, verdict in pairs])


def always(verdict: Verdict) -> Asked:
    return answers(({}, verdict))


def rows(desk: Desk) -> list[str]:
    """The addresses in the table of A."""
    with (desk.folder / "pages.csv").open(encoding="utf-8", newline="") as file:
        return [row["url"] for row in csv.DictReader(file)]


def report_of(desk: Desk, result: RunResult) -> str:
    """The report, its lines unwrapped."""
    found = read_report(open_store(desk.folder / ".nightwarden"), result.run_id)
    return report_text(found, width=2_000)


# -- 1: a transient 429 in the middle of a batch (A) --


def test_scenario_01_a_transient_429_is_healed_below_the_supervisor(desk: Desk, site: Site) -> None:
    """What a step gets over by its own means is no failure: nobody is asked, nothing is marked."""
    site.refusals[41] = [(429, {"Retry-After": "0"})]
    asked = always(Skip())
    result = desk.run("pages", urls=site.urls, supervise=asked)
    assert asked.calls == 0
    assert (result.status, result.supervised) == ("completed", False)
    assert result.headline == "completed: 200/200 items"
    assert site.requests[41] == 2
    assert rows(desk) == site.urls


def test_scenario_01_the_supervisor_wakes_when_the_step_has_given_up(
    desk: Desk, site: Site
) -> None:
    """Only what outlasts the step's own tries is put to a supervisor, and once."""
    site.refusals[41] = [(429, {"Retry-After": "0"})] * 2
    asked = answers(({"signature": "http:429"}, Retry()))
    result = desk.run("pages", urls=site.urls[30:50], supervise=asked)
    assert [str(e.item.number) for e in asked.escalations] == ["11"]
    assert site.requests[41] == 3, "two tries of the step itself, then the retry"
    assert told(result)[2:] == ("retry", "agent", "retried_succeeded")
    assert rows(desk) == site.urls[30:50]


# -- 2: seven of 200 items fail the same way (A) --


def test_scenario_02_seven_like_failures_take_one_decision(desk: Desk, site: Site) -> None:
    """An answer may hold for all failures of its kind at that step; the rest costs no asking."""
    like, other = (3, 17, 60, 61, 99, 140, 200), 120
    site.refusals = {**dict.fromkeys(like, LOCKED), other: GONE}
    asked = answers(
        ({"signature": "http:401"}, Skip(ApplyTo.SIGNATURE)), ({"signature": "http:410"}, Skip())
    )
    result = desk.run("pages", urls=site.urls, supervise=asked)
    assert sorted(str(e.signature) for e in asked.escalations) == ["http:401", "http:410"]
    assert credits_of(result.interventions) == {"agent": 2, "sticky": 6}
    assert "192/200 items, 8 skipped" in result.headline
    assert "2 decisions" in result.headline
    gone = {site.urls[n - 1] for n in (*like, other)}
    assert rows(desk) == [url for url in site.urls if url not in gone]


def test_scenario_02_a_remembered_answer_is_good_for_its_own_step_only(desk: Desk) -> None:
    """The same kind of failure at another step is another question."""

    @nw.node(type="two.First")
    async def first(number: int) -> int:
        if number == 1:
            raise nw.NodeError("no", code="same")
        return number

    @nw.node(type="two.Second")
    async def second(number: int) -> int:
        if number == 2:
            raise nw.NodeError("no", code="same")
        return number

    with nw.workflow("two") as w:
        one = w.add(first, id="first", number=w.input("numbers", list[int]).each())
        w.add(second, id="second", number=one)
    asked = always(Skip(ApplyTo.SIGNATURE))
    result = nw.run(w.build(), {"numbers": [1, 2, 3]}, supervise=asked)
    assert sorted(e.node_id for e in asked.escalations) == ["first", "second"]
    assert credits_of(result.interventions) == {"agent": 2}


# -- 3: skipped items vanish silently (A) --


def test_scenario_03_a_run_that_skipped_never_reads_as_plain_success(
    desk: Desk, site: Site
) -> None:
    """Status, closing line and exit code tell a helped run from a clean one; items are named."""
    site.refusals = {8: GONE, 12: GONE}
    (desk.folder / "urls.txt").write_text("\n".join(site.urls[:20]), encoding="utf-8")
    (desk.folder / "skip.yaml").write_text(
        "- when: {node: page}\n  answer: {action: skip, reason: the page is gone}\n"
    )
    run = ("run", "examples/pages.yaml", "--input", "urls=@urls.txt")
    code, out, _ = desk.command(*run, "--supervise", "scripted:skip.yaml", "--strict-exit")
    assert code == 4
    assert "── completed (supervised): 18/20 items, 2 skipped, 2 decisions" in out
    assert "missing   8, 12" in out
    code, report, _ = desk.command("report", "last")
    assert code == 0
    missing = " ".join(report.partition("Missing")[2].partition("Interventions")[0].split())
    assert missing.startswith("2 items of inputs.urls[*] given up at page: the page is gone 8 ")
    for number in (8, 12):
        assert f"{number} {site.urls[number - 1]} (e" in missing
    assert len(rows(desk)) == 18


def test_scenario_03_a_list_says_what_it_lacks() -> None:
    """The losses travel with the list, by number, into whatever is made of it."""

    @nw.node(type="three.Fetch")
    async def fetch(number: int) -> int:
        if number in (20, 40):
            raise ValueError("gone")
        return number

    @nw.node(type="three.Sum", retry_safe=True)
    async def total(numbers: Collect[int]) -> list[int]:
        return [sum(numbers), *(loss.index for loss in numbers.losses)]

    with nw.workflow("three") as w:
        one = w.add(fetch, id="fetch", number=w.input("numbers", list[int]).each())
        w.add(total, id="total", numbers=one.collect())
    result = nw.run(w.build(), {"numbers": [10, 20, 30, 40]}, supervise=always(Skip()))
    assert result.outputs == {"total": [40, 1, 3]}
    assert [m["item"] for m in result.ledger["roots"][0]["missing"]] == ["2", "4"]


# -- 4: a repair of the wrong shape (B) --


WRONG = {
    "another type": {"output": {"take": "second", "why": "better"}},
    "a field too many": {"output": {"take": 2, "why": "better", "colour": "red"}},
    "a field too few": {"output": {"take": 2}},
    "out of bounds": {"output": {"take": 0, "why": "better"}},
    "no output": {},
    "another slot": {"picture": {"take": 2, "why": "better"}},
    "a slot too many": {"output": {"take": 2, "why": "better"}, "upscale": "poster.png"},
}


@pytest.mark.parametrize("outputs", WRONG.values(), ids=WRONG)
def test_scenario_04_a_repair_of_the_wrong_shape_does_not_get_in(
    desk: Desk, outputs: dict[str, object]
) -> None:
    """A repaired value is held against the declared output first; what misfits stops the run."""
    result = desk.run("poster", supervise=always(Substitute(outputs)), fault="gate")
    assert told(result)[2:] == ("fail", "kernel", "stopped")
    assert only(result).decision.asked_for == Substitute(outputs)
    assert result.status == "failed"
    assert counts(result, "upscale")["started"] == 0
    assert desk.posts() == []


class Insistent(SupervisorBase):
    """Tries repairs until one would be accepted, and remembers what was wrong with the others."""

    def __init__(self, *repairs: dict[str, object]) -> None:
        self.repairs = repairs
        self.refused: list[str] = []

    def attach(self, reader: RunReader) -> None:
        self.reader = reader

    async def decide(self, escalation: Escalation) -> Decision:
        for outputs in self.repairs:
            problems = self.reader.check(escalation.id, outputs)
            if not problems:
                return Decision(verdict=Substitute(outputs), rationale="this one fits")
            self.refused += problems
        return Decision(verdict=Fail("nothing fits"))


def test_scenario_04_a_bad_repair_comes_back_with_what_is_wrong_with_it(desk: Desk) -> None:
    """Whoever repairs is told why a value does not fit, and may mend it within one decision."""
    good = {"output": {"take": 2, "why": "it has more contrast"}}
    supervisor = Insistent(WRONG["another type"], WRONG["no output"], good)
    result = desk.run("poster", supervise=supervisor, fault="gate")
    assert any("take" in line and "whole number" in line for line in supervisor.refused)
    assert any("output is missing" in line for line in supervisor.refused)
    assert told(result)[2:] == ("substitute", "agent", "repair_accepted")
    assert result.status == "completed"
    assert len(desk.posts()) == 1


# -- 5: a retry after money was spent, or something was written outside (B, C) --


def test_scenario_05_nothing_is_paid_for_twice(desk: Desk) -> None:
    """An attempt that spent money is not run again, even by a step that is safe to repeat."""
    result = desk.run("poster", supervise=always(Retry()), fault="after_spend")
    assert told(result)[1:4] == (["skip", "fail"], "fail", "kernel")
    assert only(result).decision.asked_for == Retry()
    assert counts(result, "upscale")["started"] == 1
    assert result.costs["nodes_micro_usd"]["upscale"] == 20_000


def test_scenario_05_nothing_is_posted_twice(desk: Desk) -> None:
    """A post under a key that the outside takes once may be sent again, and arrives once."""
    result = desk.run("poster", supervise=always(Retry()), fault="publish_lost_answer")
    assert told(result)[1:] == (["retry", "skip", "fail"], "retry", "agent", "retried_succeeded")
    assert len(desk.posts()) == 1


def test_scenario_05_what_nobody_classified_is_not_done_twice(desk: Desk) -> None:
    """A step that says nothing of itself may have done its work and failed then: no retry."""
    result = desk.run("nightly", supervise=always(Retry()), fault="upsert_lost_answer")
    assert told(result)[1:4] == (["skip", "fail"], "fail", "kernel")
    assert only(result).escalation.cost_micro_usd == 0, "nothing on record that says unsafe"
    assert counts(result, "stored")["retries_run"] == 0


def test_scenario_05_an_attempt_that_left_a_file_is_not_run_again(tmp_path: Path) -> None:
    """A file made through the engine counts like money."""

    @nw.node(type="five.Draw", retry_safe=True)
    async def draw(ctx: Context) -> str:
        ctx.assets.write("drawing.txt", b"half of it")
        raise OSError("the pen broke")

    with nw.workflow("five") as w:
        w.add(draw, id="draw")
    result = nw.run(w.build(), supervise=always(Retry()), workdir=tmp_path)
    assert told(result)[1:4] == (["skip", "fail"], "fail", "kernel")
    assert only(result).escalation.created_assets == 1


def test_scenario_05_a_key_that_is_empty_protects_nothing(tmp_path: Path) -> None:
    """The promise is the key's, not the step's: without one there is no retry."""

    @nw.node(type="five.Post", idempotent_by="key")
    async def post(key: str) -> str:
        raise TimeoutError("no answer")

    offered = {}
    for key in ("k-1", ""):
        with nw.workflow("five") as w:
            w.add(post, id="post", key=key)
        offered[key] = told(nw.run(w.build(), supervise=always(Skip())))[1]
    assert offered == {"k-1": ["retry", "skip", "fail"], "": ["skip", "fail"]}


# -- 6: a streaming step fails in the middle (C) --


def test_scenario_06_a_stream_that_broke_off_may_end_or_stop(desk: Desk) -> None:
    """What has been sent on cannot be taken back: no retry, no repair; keep it, or stop."""
    result = desk.run("nightly", supervise=always(EndStream()), fault="chunker_breaks")
    assert told(result)[1:] == (["end_stream", "fail"], "end_stream", "agent", "ended_early")
    assert only(result).outcome.kept == 2
    assert "chunk ended early: kept 18 of unknown" in result.headline
    assert len(desk.stored()) == 18


@pytest.mark.parametrize("verdict", [Retry(), Skip(), Substitute({"output": 3})])
def test_scenario_06_nothing_else_may_be_answered(desk: Desk, verdict: Verdict) -> None:
    """An answer outside the two is refused, put on record, and stops the run."""
    result = desk.run("nightly", supervise=always(verdict), fault="chunker_breaks")
    assert told(result)[1:4] == (["end_stream", "fail"], "fail", "kernel")
    assert only(result).decision.asked_for == verdict
    assert counts(result, "chunk")["retries_run"] == 0


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [(0, ["retry", "skip", "fail"]), (1, ["end_stream", "fail"]), (4, ["end_stream", "fail"])],
)
def test_scenario_06_it_depends_on_whether_anything_was_sent(sent: int, wanted: list[str]) -> None:
    """Before its first item a safe stream may be run again; it is never repaired, value or not."""

    @nw.node(type="six.Lines", retry_safe=True)
    async def lines() -> AsyncIterator[int]:
        for number in range(sent):
            yield number
        raise RecoverableError("lost the thread", candidate_output=sent)

    with nw.workflow("six") as w:
        w.add(lines, id="lines")
    assert told(nw.run(w.build(), supervise=always(Fail("enough"))))[1] == wanted


# -- 7: one bad repair cascades downstream (A) --


def pipeline() -> nw.Workflow:
    """Like A: texts, each summarised and rated; an empty text makes both of them fail."""

    @nw.node(type="seven.Extract", retry_safe=True)
    async def extract(page: str) -> str:
        if page == "broken":
            raise RecoverableError("cut off", candidate_output="bro", code="cut-off")
        return page

    @nw.node(type="seven.Summarise", retry_safe=True)
    async def summarise(text: str) -> str:
        if len(text) < 2:
            raise ValueError("too short to be summarised")
        return text[:3]

    @nw.node(type="seven.Rate", retry_safe=True)
    async def rate(text: str) -> int:
        if not text:
            raise ValueError("nothing to rate")
        return len(text)

    @nw.node(type="seven.Table", retry_safe=True)
    async def table(summaries: Collect[str], ratings: Collect[int]) -> list[list[int]]:
        return [list(summaries.indices), list(ratings.indices)]

    with nw.workflow("seven") as w:
        text = w.add(extract, id="text", page=w.input("pages", list[str]).each())
        summary, rating = (
            w.add(summarise, id="summary", text=text),
            w.add(rate, id="rating", text=text),
        )
        w.add(table, id="table", summaries=summary.collect(), ratings=rating.collect())
    return w.build()


def repaired_badly(desk: Desk) -> RunResult:
    """Item 2 is repaired to an empty text; item 4 is too short by itself."""
    asked = answers(({"node": "text"}, Substitute({"output": ""})), ({}, Skip()))
    return nw.run(
        pipeline(),
        {"pages": ["one", "broken", "three", "4"]},
        supervise=asked,
        store=desk.folder / ".nightwarden",
    )


def test_scenario_07_later_failures_name_the_repair_they_descend_from(desk: Desk) -> None:
    """What fails on a repaired value is traced to that repair; what fails by itself is not."""
    result = repaired_badly(desk)
    because = {
        (i.escalation.node_id, i.escalation.item.number): i.escalation.caused_by
        for i in result.interventions
    }
    (cause,) = [i.escalation.id for i in result.interventions if i.escalation.node_id == "text"]
    assert because == {
        ("text", "2"): (),
        ("summary", "2"): (cause,),
        ("rating", "2"): (cause,),
        ("summary", "4"): (),
    }
    assert result.outputs == {"table": [[0, 2], [0, 2, 3]]}


def test_scenario_07_the_report_shows_the_cause_with_its_symptoms(desk: Desk) -> None:
    """Each symptom in the report says because of what; the item is missing once, not twice."""
    result = repaired_badly(desk)
    report = report_of(desk, result)
    (cause,) = [i.escalation.id for i in result.interventions if i.escalation.node_id == "text"]
    assert report.count(f"because of   {cause}\n") == 2
    missing = result.ledger["roots"][0]["missing"]
    assert sorted(m["item"] for m in missing) == ["2", "4"]


# -- 8: the supervisor itself hangs or dies --


def broken_step() -> nw.Workflow:
    @nw.node(type="eight.Step", retry_safe=True)
    async def step() -> str:
        raise ConnectionError("gone")

    @nw.node(type="eight.Next")
    async def after(value: str) -> str:
        return value

    with nw.workflow("eight") as w:
        w.add(after, id="after", value=w.add(step, id="step"))
    return w.build()


class Hanging(SupervisorBase):
    """Never answers; `deaf` ones do not even hear that they are called off."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.called_off = 0

    async def decide(self, escalation: Escalation) -> Decision:
        while True:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                self.called_off += 1
                if not self.deaf:
                    raise


class Dying(SupervisorBase):
    """Raises instead of answering."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def decide(self, escalation: Escalation) -> Decision:
        raise self.error


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_scenario_08_a_supervisor_that_hangs_means_stop(seed: int | None, *, deaf: bool) -> None:
    """A decision has a time limit; when it is over the run stops, whether or not anyone listens."""
    supervisor = Hanging(deaf=deaf)
    bounds = Bounds(decision_timeout_s=5)
    played = play(Session(broken_step(), supervise=supervisor, bounds=bounds), seed=seed)
    assert played.result.status == "failed"
    assert told(played.result)[2:4] == ("fail", "bounds")
    assert "no decision within 5 s" in played.result.reason
    assert supervisor.called_off >= 1
    assert played.ended_s == pytest.approx(5 if not deaf else 7, abs=1)


@pytest.mark.parametrize("error", [ValueError("out of its mind"), TimeoutError(), OSError(5, "x")])
def test_scenario_08_a_supervisor_that_dies_means_stop(error: Exception) -> None:
    """Whatever breaks in a supervisor ends the run, in order, and is never taken for a verdict."""
    played = play(Session(broken_step(), supervise=Dying(error)), seed=1)
    assert played.result.status == "failed"
    assert told(played.result)[2:4] == ("fail", "bounds")
    assert counts(played.result, "after")["started"] == 0


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_scenario_08_cancel_works_while_a_decision_is_pending(
    seed: int | None, *, deaf: bool
) -> None:
    """Cancel does not wait for an answer, and what it cuts off is nobody's verdict."""
    supervisor = Hanging(deaf=deaf)
    session = Session(broken_step(), supervise=supervisor)
    played = play(session, seed=seed, at=[(1.0, session.cancel)])
    assert played.result.status == "cancelled"
    assert told(played.result)[2:] == ("fail", "default", "never_ran")
    assert played.ended_s <= (3.1 if deaf else 1.1)


# -- 9: Tuesday's run behaves differently from Monday's (C) --


def test_scenario_09_the_record_tells_a_helped_night_from_a_clean_one(desk: Desk) -> None:
    """A run in which anyone decided is marked, wherever runs are listed; a clean one is not."""
    monday = desk.run("nightly", supervise=True)
    tuesday = desk.run("nightly", supervise=True, fault="poisoned", store="tuesday.db")
    assert (monday.supervised, tuesday.supervised) == (False, True)
    ends = [events_of(desk.folder / ".nightwarden", r.run_id)[-1] for r in (monday, tuesday)]
    assert [end["type"] for end in ends] == ["run_completed", "run_completed"]
    assert [end["supervised"] for end in ends] == [False, True]
    code, out, _ = desk.command("runs")
    assert code == 0
    first, second = out.splitlines()
    assert "completed: 5/5 items" in first
    assert "completed (supervised): 4/5 items" in second


def test_scenario_09_a_clean_night_is_the_same_with_and_without_a_supervisor(desk: Desk) -> None:
    """Supervision that is not needed changes nothing: same results, same record, no cost."""
    asked = always(Fail("nobody should ask"))
    runs = {}
    for name, supervisor in (("off", None), ("on", asked)):
        result = desk.run("nightly", supervise=supervisor, store=f"{name}.db")
        runs[name] = (result.outputs, result.costs, result.headline, facts(desk, result, name))
    assert asked.calls == 0
    assert runs["on"] == runs["off"]
    assert desk.stored("on.db") == desk.stored("off.db")


def facts(desk: Desk, result: RunResult, name: str) -> list[str]:
    """Everything on record but times, ids, which store it was, and whether anyone stood by."""
    found = []
    for event in events_of(desk.folder / ".nightwarden", result.run_id):
        kept = {k: v for k, v in event.items() if k not in ("at", "seq", "run_id", "duration_s")}
        kept.pop("supervisor", None)
        text = json.dumps(kept, sort_keys=True, ensure_ascii=False)
        found.append(text.replace(f"{name}.db", "x.db"))
    return sorted(found)  # threads end in whatever order they like


# -- 10: the gate fails, and the cause lies upstream (B) --


def test_scenario_10_a_gate_is_repaired_in_place(desk: Desk) -> None:
    """The value a gate would have passed on may be put right there; the producer is left alone."""
    good = Substitute({"output": {"take": 2, "why": "it has more contrast"}})
    result = desk.run("poster", supervise=always(good), fault="gate")
    assert told(result)[2:] == ("substitute", "agent", "repair_accepted")
    assert counts(result, "image")["started"] == 1
    assert result.costs["nodes_micro_usd"]["image"] == 80_000
    assert len(desk.posts()) == 1


def test_scenario_10_a_retry_runs_the_gate_again_and_not_the_producer(desk: Desk) -> None:
    """A retry is of the step that failed, as it was; so it fails again until the bound ends it."""
    result = desk.run("poster", supervise=always(Retry()), fault="gate")
    assert {i.escalation.node_id for i in result.interventions} == {"gate"}
    assert counts(result, "gate")["retries_run"] == 2
    assert counts(result, "image")["started"] == 1
    assert result.costs["nodes_micro_usd"] == {"image": 80_000}
    assert result.status == "failed"


BETTER_PROMPTS = """
version: 1
name: better-prompts
inputs:
  prompt: {type: str, default: a lighthouse}
nodes:
  first:
    type: ten.Begin
    prompt: $inputs.prompt
  rounds:
    type: flow.Loop
    initial: $first
    next: $painted
    condition: $poor
    max_iterations: 9
  painted:
    type: ten.Paint
    sketch: $rounds.value
  poor:
    type: data.Map
    expression: contrast < 0.4
    contrast: $painted.contrast
  gate:
    type: flow.Assert
    value: $rounds.done
    condition: true
"""


@dataclass(frozen=True)
class Sketch:
    """What a round of painting starts from, and what it came to."""

    prompt: str
    contrast: float


def test_scenario_10_a_better_prompt_is_a_loop_in_the_graph(tmp_path: Path) -> None:
    """To have the producer try again with other words is drawn, and then nobody needs to decide."""

    @nw.node(type="ten.Begin", retry_safe=True)
    async def begin(prompt: str) -> Sketch:
        return Sketch(prompt, 0.0)

    @nw.node(type="ten.Paint")
    async def paint(sketch: Sketch, ctx: Context) -> Sketch:
        ctx.spend(0.04)
        prompt = f"{sketch.prompt}, bolder"
        return Sketch(prompt, 0.15 * prompt.count("bolder"))

    file = tmp_path / "better.yaml"
    file.write_text(BETTER_PROMPTS, encoding="utf-8")
    workflow = nw.load(file, nodes=[begin, paint])
    asked = always(Fail("nobody should ask"))
    session = Session(workflow, supervise=asked, executor=InlineExecutor())
    result = run_session(session)
    assert result.status == "completed"
    assert asked.calls == 0
    assert result.outputs["gate"].prompt == "a lighthouse, bolder, bolder, bolder"
    assert result.costs["nodes_micro_usd"] == {"painted": 120_000}
