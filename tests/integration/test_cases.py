"""The neutral cases H01–H04, H06 and H08, end to end: every value they expect has to come out.

Each test reads its numbers from the case's file; a value of `expect` that no check knows fails.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import os
import subprocess
import sys
import urllib.parse
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from case_runs import (
    Asked,
    Case,
    Faults,
    Journal,
    bounds_of,
    build,
    credits_of,
    error_of,
    in_order,
    read_case,
    rules_of,
)
from kept import events_of, everything_in

import nightwarden as nw
from nightwarden import Collect, Context, RunResult, Session, Stream
from nightwarden.events import (
    SupervisorDecision,
    SupervisorEscalation,
    encode,
)
from nightwarden.runtime.supervision import Bounds, RunReader, SupervisorBase
from nightwarden.spec.workflow import Workflow
from nightwarden.testing import InlineExecutor, Played, play
from nightwarden.verdict import Decision, Escalation, Retry, Skip, action_of

SEEDS = (None, 1, 2, 3)
Checks = Mapping[str, Callable[[Any], object]]


def check_all(expect: Mapping[str, Any], checks: Checks) -> None:
    """Every expected value has a check, and every check holds."""
    unknown = set(expect) - set(checks)
    assert not unknown, f"no check for {unknown}"
    for name, wanted in expect.items():
        outcome = checks[name](wanted)
        assert outcome is None or outcome is True, f"{name}: expected {wanted!r}, not {outcome!r}"


def same(found: object) -> Callable[[Any], object]:
    """A check for equality that tells what was found."""
    return lambda wanted: True if found == wanted else found


def variants(name: str, **where: Any) -> list[Any]:
    """The variants of a case as pytest parameters."""
    folder = Path(__file__).resolve().parent.parent / "cases" / name
    return [
        pytest.param(v, id=v["name"].replace(" ", "-"))
        for v in read_case(folder)["variants"]
        if not any(v.get(group, {}).get(flag) for group, flag in where.items())
    ]


# -- H01 --


class Harvest:
    """H01: forty pages, one CSV."""

    def __init__(self, case: Case, folder: Path, *, faults: bool = True) -> None:
        self.journal = Journal()
        self.csv = folder / "out.csv"
        self._faults = Faults(case["faults"] if faults else ())
        self.workflow = build(case, self.steps())

    def steps(self) -> Mapping[str, Callable[..., Any]]:
        journal, faults, csv = self.journal, self._faults, self.csv

        async def urls() -> AsyncIterator[str]:
            for number in range(40):
                yield f"item-{number:02}"

        async def fetch(value: str, ctx: Context) -> str:
            journal.note("fetch", ctx)
            await asyncio.sleep(0.01 * (ctx.lineage[0] % 7))
            faults.strike("fetch", ctx, value)
            return f"page of {value}"

        async def extract(value: str, ctx: Context) -> str:
            item = value.removeprefix("page of ")
            journal.note("extract", ctx)
            faults.strike("extract", ctx, item)
            return f"text of {item}"

        async def summarise(value: str) -> str:
            return value.replace("text of", "summary of")

        async def collect(value: Collect[str]) -> list[tuple[int, str]]:
            return list(zip(value.indices, value, strict=True))

        def write(value: list[tuple[int, str]]) -> str:
            rows = "".join(f"{index},{text}\n" for index, text in value)
            csv.write_text(f"index,summary\n{rows}", encoding="utf-8")
            return csv.name

        return {
            "urls": urls,
            "fetch": fetch,
            "extract": extract,
            "summarise": summarise,
            "collect": collect,
            "csv": write,
        }

    def rows(self) -> list[int]:
        """The indices in the CSV, after checking each row's text."""
        lines = self.csv.read_text(encoding="utf-8").splitlines()
        assert lines[0] == "index,summary"
        pairs = [line.split(",", 1) for line in lines[1:]]
        assert all(text == f"summary of item-{int(index):02}" for index, text in pairs)
        return [int(index) for index, _ in pairs]


def check_h01(case: Case, harvest: Harvest, played: Played, asked: Asked) -> None:
    result = played.result
    missing = [m["lineage"][0] for m in result.ledger["roots"][0]["missing"]]
    rows = harvest.rows()

    def final_line(wanted: Mapping[str, int]) -> bool:
        counts = f"{wanted['kept']}/{wanted['total']} items, {wanted['skipped']} skipped"
        return counts in result.headline

    def never(wanted: list[str]) -> bool:
        assert len(wanted) == 3, "the case forbids something new"
        assert result.headline.startswith("completed (supervised)")
        assert sorted(rows + missing) == list(range(40))
        ordinary = [i for i in result.interventions if i.escalation.node_id == "extract"]
        assert all(i.escalation.signature is None for i in ordinary)
        return all(i.decision.decided_by == "agent" for i in ordinary)

    check_all(
        case["expect"],
        {
            "status": same(result.status),
            "supervised": same(result.supervised),
            "csv_rows": same(len(rows)),
            "csv_indices": same(rows),
            "skipped_items": same(missing),
            "escalations": same(len(played.of(SupervisorEscalation))),
            "decided_by": same(credits_of(result.interventions)),
            "supervisor_model_calls": same(asked.calls),
            "final_line_names": final_line,
            "never": never,
        },
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_h01_like_failures_share_one_answer(cases: Path, tmp_path: Path, seed: int | None) -> None:
    """row: S3-STICKY, S3-STICKY-FREE"""
    case = read_case(cases / "H01_same_failure_many_items")
    harvest = Harvest(case, tmp_path)
    asked = Asked(rules_of(case["supervisor"]))
    session = Session(
        harvest.workflow,
        supervise=asked,
        bounds=bounds_of(case["supervisor"]["bounds"]),
        executor=InlineExecutor(),
    )
    check_h01(case, harvest, play(session, seed=seed), asked)


def test_h01_names_every_missing_item_with_its_reason(cases: Path, tmp_path: Path) -> None:
    case = read_case(cases / "H01_same_failure_many_items")
    harvest = Harvest(case, tmp_path)
    asked = Asked(rules_of(case["supervisor"]))
    result = nw.run(harvest.workflow, supervise=asked)
    missing = result.ledger["roots"][0]["missing"]
    told = {m["item"]: (m["label"], m["node"], m["reason"]) for m in missing}
    assert told["7"] == ("item-06", "fetch", "refused for legal reasons")
    assert told["18"] == ("item-17", "extract", "page has no main part")
    assert sorted(told, key=int) == ["7", "14", "18", "22", "31", "39"]


@pytest.mark.parametrize("seed", SEEDS)
def test_h01_without_faults_nobody_is_asked(cases: Path, tmp_path: Path, seed: int | None) -> None:
    case = read_case(cases / "H01_same_failure_many_items")
    harvest = Harvest(case, tmp_path, faults=False)
    asked = Asked(rules_of(case["supervisor"]))
    session = Session(harvest.workflow, supervise=asked, executor=InlineExecutor())
    result = play(session, seed=seed).result
    assert list(case["control"]) == ["without_faults"]
    check_all(
        case["control"]["without_faults"],
        {
            "supervisor_model_calls": same(asked.calls),
            "supervised": same(result.supervised),
            "csv_rows": same(len(harvest.rows())),
        },
    )
    assert result.headline == "completed: 40/40 items"


# -- H02 --


@pytest.mark.parametrize("seed", SEEDS)
def test_h02_a_join_runs_for_whole_pairs_only(cases: Path, seed: int | None) -> None:
    """row: K1-JOIN-DECIDED, K1-VERDICT-SKIP"""
    case = read_case(cases / "H02_join_after_skip")
    journal, faults = Journal(), Faults(case["faults"])

    async def pictures() -> AsyncIterator[int]:
        for number in range(8):
            yield number

    async def thumb(value: int, ctx: Context) -> str:
        journal.note("thumb", ctx)
        return f"thumb {value}"

    async def caption(value: int, ctx: Context) -> str:
        await asyncio.sleep(0.05)
        faults.strike("caption", ctx, value)
        return f"caption {value}"

    async def join(thumb: str, caption: str, ctx: Context) -> tuple[str, str]:
        journal.note("join", ctx)
        return thumb, caption

    async def album(value: Collect[tuple[str, str]]) -> list[int]:
        for index, pair in zip(value.indices, value, strict=True):
            assert pair == (f"thumb {index}", f"caption {index}")
        return list(value.indices)

    steps = {
        "pictures": pictures,
        "thumb": thumb,
        "caption": caption,
        "join": join,
        "album": album,
    }
    session = Session(
        build(case, steps),
        supervise=Asked(rules_of(case["supervisor"])),
        bounds=bounds_of(case["supervisor"]["bounds"]),
    )
    played = play(session, seed=seed)
    result = played.result
    waiting = session.pending()
    skipped = [
        {"node": i.escalation.node_id, "item": i.escalation.lineage[0]}
        for i in result.interventions
        if action_of(i.decision.verdict) == "skip"
    ]
    check_all(
        case["expect"],
        {
            "status": same(result.status),
            "supervised": same(result.supervised),
            "ends_within_s": lambda limit: played.ended_s <= limit,
            "join_invocations": same(journal.starts("join")),
            "album": same(result.outputs["album"]),
            "values_left_waiting_at_join": same(len(waiting)),
            "skipped": same(skipped),
            "thumb_invocations": same(journal.starts("thumb")),
        },
    )


# -- H03 --


class Publishing:
    """H03: prepare → publish → notify; publish leaves a mark outside, then may raise."""

    def __init__(self, case: Case, variant: Mapping[str, Any], folder: Path) -> None:
        self.journal = Journal()
        self.ledger, self.notified = folder / "ledger.txt", folder / "notified.txt"
        publish = variant["publish"]
        flags = {"publish": {"retry_safe": bool(publish.get("retry_safe"))}}
        self.workflow = build(case, self.steps(publish), **flags)

    def steps(self, spec: Mapping[str, Any]) -> Mapping[str, Callable[..., Any]]:
        journal, ledger, notified = self.journal, self.ledger, self.notified
        failing = spec.get("fails_on_attempts", "all")

        async def prepare() -> str:
            return "a post"

        async def publish(value: str, ctx: Context) -> str:
            journal.note("publish", ctx)
            with ledger.open("a", encoding="utf-8") as file:
                file.write(f"{value}\n")
            if "records_cost_usd" in spec:
                ctx.spend(float(spec["records_cost_usd"]))
            if spec.get("creates_asset"):
                ctx.assets.write("receipt.txt", b"made")
            if failing == "all" or ctx.attempt in failing:
                raise ConnectionError("the line broke after the post was taken")
            return "published"

        async def notify(value: str) -> str:
            with notified.open("a", encoding="utf-8") as file:
                file.write(f"{value}\n")
            return value

        return {"prepare": prepare, "publish": publish, "notify": notify}


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.mark.parametrize("variant", variants("H03_effect_then_error", publish="is_nested_workflow"))
def test_h03_what_is_known_decides_what_may_be_answered(
    cases: Path, tmp_path: Path, variant: Mapping[str, Any]
) -> None:
    """row: S1-RETRY, S1-CREDIT-KERNEL, S1-CREDIT-BOUNDS"""
    case = read_case(cases / "H03_effect_then_error")
    world = Publishing(case, variant, tmp_path)
    session = Session(
        world.workflow,
        supervise=Asked(in_order(variant["supervisor_answers"])),
        bounds=bounds_of(variant.get("bounds", {})),
        store=tmp_path / "store",
        workdir=tmp_path,
    )
    played = play(session, seed=1)
    result = played.result
    first, last = result.interventions[0], result.interventions[-1]
    assert last.decision is not None
    recorded = [
        event["decision"]
        for event in events_of(tmp_path / "store")
        if event["type"] == "supervisor_decision"
    ]
    refused = last.decision.asked_for
    check_all(
        variant["expect"],
        {
            "allowed": same(list(first.escalation.allowed_actions)),
            "ledger_lines": same(lines_of(world.ledger)),
            "notified": same(lines_of(world.notified)),
            "status": same(result.status),
            "supervised": same(result.supervised),
            "attempts": same(world.journal.starts("publish")),
            "asked_for": same(action_of(refused) if refused is not None else None),
            "applied": same(action_of(last.decision.verdict)),
            "refusal_recorded": same(recorded[-1]["asked_for"] == {"action": "retry"}),
            "last_decided_by": same(last.decision.decided_by),
        },
    )


# -- H04 --


class Chunks:
    """H04: chunker → embed → store."""

    def __init__(self, case: Case, variant: Mapping[str, Any], folder: Path) -> None:
        self.journal = Journal()
        self.stored = folder / "stored.txt"
        reads = "consumer_raises_after" in variant
        safe = {"retry_safe": bool(variant.get("retry_safe"))}
        flags = {"store" if reads else "chunker": safe}
        self.workflow = build(case, self.steps(variant, reads=reads), **flags)

    def steps(self, variant: Mapping[str, Any], *, reads: bool) -> Mapping[str, Any]:
        journal, stored = self.journal, self.stored
        breaks, only_on = variant.get("raises_after"), variant.get("only_on_attempt")
        pieces = [
            ValueError("a value, not a failure") if piece == "<ValueError object>" else piece
            for piece in variant.get("yields", [f"chunk {n}" for n in range(1, 11)])
        ]

        def trouble() -> Exception:
            if "candidate" in variant:
                return nw.RecoverableError("broken", candidate_output=variant["candidate"])
            return ConnectionError("the stream broke")

        async def chunker(ctx: Context) -> AsyncIterator[object]:
            journal.note("chunker", ctx)
            for number, piece in enumerate(pieces):
                if number == breaks and only_on in (None, ctx.attempt):
                    raise trouble()
                yield piece

        async def embed(value: object) -> object:
            return value

        async def store(value: object) -> str:
            with stored.open("a", encoding="utf-8") as file:
                file.write(f"{value!r}\n")
            return "stored"

        async def drain(value: Stream[object]) -> int:
            taken = 0
            async for _ in value:
                if taken == variant["consumer_raises_after"]:
                    raise ConnectionError("the store is gone")
                taken += 1
            return taken

        return {"chunker": chunker, "embed": embed, "store": drain if reads else store}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", variants("H04_stream_breaks"))
def test_h04_a_stream_that_breaks_keeps_what_it_gave(
    cases: Path, tmp_path: Path, variant: Mapping[str, Any], seed: int | None
) -> None:
    """row: S1-FANOUT-FRESH, S1-FANOUT-EMITTED, S1-READER, K1-VERDICT-END-STREAM"""
    case = read_case(cases / "H04_stream_breaks")
    world = Chunks(case, variant, tmp_path)
    answers = [variant["answer"]] if "answer" in variant else []
    rules = in_order(answers, {"output": variant.get("candidate")})
    session = Session(world.workflow, supervise=Asked(rules))
    played = play(session, seed=seed)
    result = played.result
    first = result.interventions[0] if result.interventions else None
    decision = first.decision if first is not None else None
    outcome = first.outcome if first is not None else None
    check_all(
        variant["expect"],
        {
            "allowed": same(list(first.escalation.allowed_actions) if first else None),
            "applied": same(action_of(decision.verdict) if decision else None),
            "stored": same(lines_of(world.stored)),
            "stored_at_most": lambda most: lines_of(world.stored) <= most,
            "status": same(result.status),
            "supervised": same(result.supervised),
            "escalations": same(len(played.of(SupervisorEscalation))),
            "report_kept": same(outcome.kept if outcome else None),
            "chunker_starts": same(world.journal.starts("chunker")),
        },
    )


# -- H06 --

NESTED = {"account": {"api_key": "plain-other-value", "region": "eu"}}


class Partner:
    """H06: a step whose error carries its secrets in several disguises."""

    def __init__(self, cases: Path, folder: Path) -> None:
        home = cases / "H06_secret_everywhere"
        self.case = read_case(home)
        self.secrets = json.loads((home / "secrets.json").read_text(encoding="utf-8"))
        self.forbidden = json.loads((home / "forbidden.json").read_text(encoding="utf-8"))
        self.folder = folder

    def workflow(self) -> Workflow:
        async def pull(request: dict[str, Any], ctx: Context) -> str:
            key, doc = ctx.secret("PARTNER_KEY"), ctx.secret("PARTNER_DOC")
            ctx.log.warning(f"calling with {key}")
            print_like = logging.getLogger("partner.client")
            print_like.warning("sending %s with %s", request, {"Authorization": f"Bearer {key}"})
            try:
                raise OSError(f"refused {key}")
            except OSError as cause:
                print_like.exception("refused")
                raise partner_error(key, doc) from cause

        with nw.workflow("H06") as w:
            given = w.input("request", dict[str, Any])
            w.add(nw.node(type="case.Pull", retry_safe=True)(pull), id="pull", request=given)
        return w.build()

    def session(self, supervisor: nw.Supervisor | None, **options: Any) -> Session:
        return Session(
            self.workflow(),
            {"request": NESTED},
            supervise=supervisor,
            secrets=self.secrets,
            store=self.folder / "store",
            workdir=self.folder,
            **options,
        )

    def assert_clean(self, where: str, text: str) -> None:
        """None of the forbidden forms, nor the named field's value, stands in the text."""
        forms = [*self.forbidden, "plain-other-value"]
        escaped = [*forms, *(json.dumps(form)[1:-1] for form in forms)]
        found = [form for form in escaped if form in text]
        assert found == [], f"{where} shows {found}"


def partner_error(key: str, doc: str) -> Exception:
    """The error of the case, the readable things first."""
    basic = base64.b64encode(f"svc:{key}".encode()).decode()
    quoted = urllib.parse.quote(key, safe="")
    error = error_of(
        {
            "http_status": 403,
            "raises": {
                "type": "HTTPStatusError",
                "message": "403 from https://partner.example/v1/items?{item}",
            },
        },
        f"key={quoted}&page=2 Basic {basic} {doc} {json.loads(doc)!r}"
        f" { ({'Authorization': f'Bearer {key}'})!r}",
    )
    error.add_note(f"the key was {key}")
    return error


class Curious(SupervisorBase):
    """Keeps all it was shown, reads what it may, and answers with the secret itself."""

    def __init__(self, reason: str = "not worth it") -> None:
        self.seen: list[object] = []
        self._reason = reason
        self._reader: RunReader | None = None

    def attach(self, reader: RunReader) -> None:
        self._reader = reader

    async def decide(self, escalation: Escalation) -> Decision:
        assert self._reader is not None
        self.seen += [escalation, self._reader.state(), self._reader.check(escalation.id, {})]
        return Decision(verdict=Skip(), rationale=self._reason)


def run_h06(cases: Path, tmp_path: Path) -> tuple[Partner, Played, Curious, str, bytes]:
    """A run of H06 with everything that left it: result, what was shown, log output, record."""
    partner = Partner(cases, tmp_path)
    curious = Curious(reason=f"the key {partner.secrets['PARTNER_KEY']} is stale")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        session = partner.session(curious)
        played = play(session, seed=1)
    finally:
        logging.getLogger().removeHandler(handler)
    return partner, played, curious, stream.getvalue(), everything_in(tmp_path / "store")


def test_h06_no_event_shows_a_secret(cases: Path, tmp_path: Path) -> None:
    """row: S4-SECRETS, S4-NAMES"""
    partner, played, _, _, _ = run_h06(cases, tmp_path)
    assert len(played.events) > 5
    for event in played.events:
        partner.assert_clean(type(event).__name__, encode(event).decode())
        partner.assert_clean(type(event).__name__, repr(event))


def test_h06_the_record_is_clean_byte_for_byte(cases: Path, tmp_path: Path) -> None:
    """row: S4-SECRETS"""
    partner, _, _, _, record = run_h06(cases, tmp_path)
    assert b"invocation_failed" in record
    partner.assert_clean("the record", record.decode("utf-8", "replace"))
    for event in events_of(tmp_path / "store"):
        partner.assert_clean("the record, decoded", repr(event))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            partner.assert_clean(path.name, path.read_bytes().decode("utf-8", "replace"))


def test_h06_log_lines_of_other_libraries_are_clean(cases: Path, tmp_path: Path) -> None:
    """row: S4-DOCUMENTS"""
    partner, _, _, logged, _ = run_h06(cases, tmp_path)
    assert "sending" in logged
    assert "refused" in logged
    for form in partner.forbidden:
        assert form not in logged


def test_h06_the_result_is_clean(cases: Path, tmp_path: Path) -> None:
    partner, played, _, _, _ = run_h06(cases, tmp_path)
    partner.assert_clean("RunResult", repr(played.result))
    partner.assert_clean("RunResult.to_json", json.dumps(played.result.to_json()))
    partner.assert_clean(
        "to_json, unescaped", json.dumps(played.result.to_json(), ensure_ascii=False)
    )
    partner.assert_clean("headline", played.result.headline)


def test_h06_the_supervisor_is_shown_nothing(cases: Path, tmp_path: Path) -> None:
    partner, _, curious, _, _ = run_h06(cases, tmp_path)
    assert len(curious.seen) == 3
    for shown in curious.seen:
        partner.assert_clean("what the supervisor saw", repr(shown))


def test_h06_what_is_no_secret_stays_readable(cases: Path, tmp_path: Path) -> None:
    partner, played, _, _, _ = run_h06(cases, tmp_path)
    escalation = played.result.interventions[0].escalation
    assert partner.case["expect"]["still_readable"] == [
        "the HTTP status",
        "the host name",
        "page=2",
    ]
    assert "403" in escalation.detail
    assert "partner.example" in escalation.detail
    assert "page=2" in escalation.detail
    assert escalation.signature == "http:403"
    assert escalation.inputs["request"]["account"]["region"] == "eu"  # type: ignore[index]


def test_h06_without_a_supervisor_the_reason_is_clean_too(cases: Path, tmp_path: Path) -> None:
    partner = Partner(cases, tmp_path)
    session = partner.session(None)
    played = play(session, seed=1)
    assert played.result.status == "failed"
    assert "403" in played.result.reason
    partner.assert_clean("reason", played.result.reason)
    for event in played.events:
        partner.assert_clean(type(event).__name__, encode(event).decode())


PARTNER_STEPS = """
import base64
import json
import logging
import sys
import urllib.parse
from typing import Any

from nightwarden import Context, node


class HTTPStatusError(Exception):
    status_code = 403


@node(type="partner.Pull", retry_safe=True)
def pull(request: dict[str, Any], ctx: Context) -> str:
    key, doc = ctx.secret("PARTNER_KEY"), ctx.secret("PARTNER_DOC")
    logging.getLogger("partner.client").warning("sending %s", {"Authorization": f"Bearer {key}"})
    ctx.log.warning(f"calling with {key} and {doc}")
    basic = base64.b64encode(f"svc:{key}".encode()).decode()
    error = HTTPStatusError(
        f"403 from https://partner.example/v1?key={urllib.parse.quote(key, safe='')}&page=2 "
        f"Basic {basic} {doc} {json.loads(doc)!r}"
    )
    error.add_note(f"the key was {key}")
    raise error from OSError(f"refused {key}")
"""

PARTNER_WORKFLOW = """
version: 1
name: partner
inputs:
  request: {type: json}
nodes:
  pull:
    type: partner.Pull
    request: $inputs.request
"""


def command_line(partner: Partner, *arguments: str) -> tuple[int, str, str]:
    """`nightwarden …` in the case's folder, with its secrets in the environment."""
    secrets = {f"NIGHTWARDEN_SECRET_{name}": value for name, value in partner.secrets.items()}
    done = subprocess.run(
        [sys.executable, "-m", "nightwarden", *arguments],
        cwd=partner.folder,
        env={**os.environ, **secrets, "PYTHONIOENCODING": "utf-8", "COLUMNS": "400"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verdict", "form"), [("skip", ["--json"]), ("stop", []), ("off", ["--debug"])]
)
def test_h06_the_command_line_shows_no_secret(
    cases: Path, tmp_path: Path, verdict: str, form: list[str]
) -> None:
    partner = Partner(cases, tmp_path)
    (tmp_path / "steps.py").write_text(PARTNER_STEPS, encoding="utf-8")
    (tmp_path / "partner.yaml").write_text(PARTNER_WORKFLOW, encoding="utf-8")
    (tmp_path / "request.json").write_text(json.dumps({"request": NESTED}), encoding="utf-8")
    (tmp_path / "answers.yaml").write_text(f"- answer: {verdict}\n", encoding="utf-8")
    supervise = [] if verdict == "off" else ["--supervise", "scripted:answers.yaml"]
    code, out, err = command_line(
        partner,
        *("run", "partner.yaml", "--nodes", "steps.py", "--inputs", "request.json"),
        *supervise,
        *form,
    )
    assert code == (0 if verdict == "skip" else 1), err
    assert "403" in out + err
    told = {"run": out + err}
    for surface in (["report", "last"], ["report", "last", "--json"], ["show", "last"]):
        code, out, err = command_line(partner, *surface)
        assert code == 0, err
        assert "partner.example" in out or surface[0] == "show"
        told[" ".join(surface)] = out + err
    told["the record"] = everything_in(tmp_path / ".nightwarden").decode("utf-8", "replace")
    assert "invocation_failed" in told["the record"]
    for where, text in told.items():
        partner.assert_clean(where, text)


# -- H08 --


class SlowModel(SupervisorBase):
    """Takes its time; `deaf` to cancellation like some libraries."""

    def __init__(self, after_s: float, *, deaf: bool = False) -> None:
        self.aborted = False
        self.asked = 0
        self.answered = False
        self._after_s = after_s
        self._deaf = deaf

    async def decide(self, escalation: Escalation) -> Decision:
        self.asked += 1
        loop = asyncio.get_running_loop()
        until = loop.time() + self._after_s
        while loop.time() < until:
            try:
                await asyncio.sleep(until - loop.time())
            except asyncio.CancelledError:
                self.aborted = True
                if not self._deaf:
                    raise
        self.answered = True
        return Decision(verdict=Retry(), rationale="again")


class Cancelled:
    """H08: a fails, b and c wait behind it, side sleeps."""

    def __init__(self, case: Case, *, deaf: bool = False, limit_s: float | None = None) -> None:
        self.journal = Journal()
        self.side_cancelled = False
        self.model = SlowModel(case["supervisor"]["answer_after_s"], deaf=deaf)
        self.session = Session(
            build(case, self.steps()),
            supervise=self.model,
            bounds=Bounds(decision_timeout_s=limit_s),
        )

    def steps(self) -> Mapping[str, Callable[..., Any]]:
        async def a(ctx: Context) -> str:
            self.journal.note("a", ctx)
            raise ConnectionError("gone")

        async def b(value: str, ctx: Context) -> str:
            self.journal.note("b", ctx)
            return value

        async def c(value: str, ctx: Context) -> str:
            self.journal.note("c", ctx)
            return value

        async def side(ctx: Context) -> str:
            self.journal.note("side", ctx)
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                self.side_cancelled = True
                raise
            return "done"

        return {"a": a, "b": b, "c": c, "side": side}


def cancels(case: Case, session: Session) -> list[tuple[float, Callable[[], object]]]:
    assert [act["do"] for act in case["act"]] == ["cancel the run", "cancel it again"]
    return [(act["at_s"], session.cancel) for act in case["act"]]


@pytest.mark.parametrize("seed", SEEDS)
def test_h08_cancel_is_instant_while_a_model_thinks(cases: Path, seed: int | None) -> None:
    """row: S5-CANCEL"""
    case = read_case(cases / "H08_cancel_while_deciding")
    world = Cancelled(case)
    played = play(world.session, seed=seed, at=cancels(case, world.session))
    by = credits_of(played.result.interventions)
    check_all(
        case["expect"],
        {
            "status": same(played.result.status),
            "ends_within_s_of_cancel": lambda limit: played.ended_s <= 1.0 + limit,
            "model_request_was_aborted": same(world.model.aborted),
            "steps_started_after_cancel": same(
                world.journal.starts("b") + world.journal.starts("c")
            ),
            "verdicts_recorded_as_agent": same(by["agent"]),
            "second_cancel": lambda _: played.types().count("run_cancelled") == 1,
            "side_saw_cancellation": same(world.side_cancelled),
            "open_tasks_left": same(len(played.left_open)),
        },
    )
    assert world.journal.starts("a") == 1
    assert by == {"default": 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_h08_a_second_cancel_while_the_first_is_under_way_changes_nothing(
    cases: Path, seed: int | None
) -> None:
    case = read_case(cases / "H08_cancel_while_deciding")
    world = Cancelled(case, deaf=True)  # so that the run is still ending at the second cancel
    played = play(world.session, seed=seed, at=cancels(case, world.session))
    assert played.types().count("run_stopping") == 1
    assert played.types()[-1] == "run_cancelled"
    assert played.result.reason == "cancelled"


@pytest.mark.parametrize("seed", SEEDS)
def test_h08_a_deaf_model_library_is_left_behind(cases: Path, seed: int | None) -> None:
    """row: S5-DEAF"""
    case = read_case(cases / "H08_cancel_while_deciding")
    variant = next(v for v in case["variants"] if "swallows" in v["name"])
    world = Cancelled(case, deaf=True)
    played = play(world.session, seed=seed, at=cancels(case, world.session))
    dropped = world.journal.starts("a") == 1 and not any(
        action_of(event.decision.verdict) == "retry" for event in played.of(SupervisorDecision)
    )
    check_all(
        variant["expect"],
        {
            "ends_within_s_of_cancel": lambda limit: played.ended_s <= 1.0 + limit,
            "late_answer": lambda _: dropped,
        },
    )
    assert played.result.status == "cancelled"


def test_h08_the_late_answer_of_a_deaf_model_changes_nothing(cases: Path) -> None:
    case = read_case(cases / "H08_cancel_while_deciding")
    world = Cancelled(case, deaf=True)
    after: list[int] = []
    events: list[object] = []
    world.session.subscribe(events.append)

    async def main() -> RunResult:
        loop = asyncio.get_running_loop()
        loop.call_at(1.0, world.session.cancel)
        result = await world.session.run()
        after.append(len(events))
        await asyncio.sleep(60)  # the model answers meanwhile
        after.append(len(events))
        return result

    from nightwarden.testing import run

    result = run(main(), seed=1)
    assert world.model.answered
    assert after[0] == after[1]
    assert result.status == "cancelled"
    assert world.journal.starts("a") == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_h08_a_decision_that_takes_too_long_is_the_bounds(cases: Path, seed: int | None) -> None:
    """row: S1-CREDIT-BOUNDS"""
    case = read_case(cases / "H08_cancel_while_deciding")
    variant = next(v for v in case["variants"] if "limit is 2 s" in v["name"])
    world = Cancelled(case, limit_s=2.0)
    played = play(world.session, seed=seed)
    check_all(
        variant["expect"],
        {
            "status": same(played.result.status),
            "decided_by": same(played.result.interventions[0].decision.decided_by),  # type: ignore[union-attr]
            "model_request_was_aborted": same(world.model.aborted),
        },
    )
    assert "no decision within 2 s" in played.result.reason
