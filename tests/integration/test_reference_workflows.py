"""The reference workflows B and C run without keys, break as their pages say, and are put right.

B is `examples/poster.yaml`: steps that cost money, a gate, a post that must go out once.
C is `examples/nightly.yaml`: streams, a real store, documents that break. Each test runs a
copy of the examples in a folder of its own, through the library or the command line; the
commands of the how-to pages are run as they stand there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import sysconfig
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from example_runs import Desk, counts, desk_in, only, told

from nightwarden.library import examine
from nightwarden.nodes.registry import Registry
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.runtime.supervisors.rulefile import read_rules
from nightwarden.session import run_session
from nightwarden.verdict import Fail, Retry, Skip, Verdict, action_of

ROOT = Path(__file__).resolve().parents[2]
POSTER_FAULTS = ("busy", "gate", "after_spend", "publish_lost_answer", "notify_down")
NIGHTLY_FAULTS = ("chunker_breaks", "poisoned", "upsert_lost_answer")
EXAMPLES = {"poster": POSTER_FAULTS, "nightly": NIGHTLY_FAULTS}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_in(tmp_path)


def always(verdict: Verdict) -> Scripted:
    return Scripted([Rule(answers=(ScriptedAnswer(verdict, "as the test says"),))])


# -- both --


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_free_of_problems_and_warnings(desk: Desk, name: str) -> None:
    found, problems = examine(desk.folder / "examples" / f"{name}.yaml", trust=True)
    assert found is not None
    assert problems == ()


@pytest.mark.parametrize("name", EXAMPLES)
def test_code_a_workflow_names_is_not_run_unless_it_is_trusted(desk: Desk, name: str) -> None:
    code, out, err = desk.command("run", f"examples/{name}.yaml")
    assert code == 2
    assert f"{name}_nodes.py" in err
    assert "--trust" in err
    assert out == ""
    assert sorted(path.name for path in desk.folder.iterdir()) == ["examples"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_faults_of_the_code_are_the_ones_tested_and_described(name: str) -> None:
    registry = Registry()
    definitions = registry.load_file(ROOT / "examples" / f"{name}_nodes.py")
    slots = [d.type.inputs["fault"].type for d in definitions if "fault" in d.type.inputs]
    assert slots
    for slot in slots:
        assert get_args(slot) == ("none", *EXAMPLES[name])
    text = (ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
    assert all(fault in text for fault in EXAMPLES[name])


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_written_answer_is_needed_by_a_fault(desk: Desk, name: str) -> None:
    text = (desk.folder / "examples" / f"{name}.answers.yaml").read_text(encoding="utf-8")
    needed: set[int] = set()
    for fault in EXAMPLES[name]:
        supervisor = Scripted(read_rules(text))
        desk.run(name, supervise=supervisor, fault=fault)
        unused = supervisor.unused()
        assert len(unused) == len(supervisor.rules) - 1, f"{fault} asks for one rule"
        needed |= {
            number
            for number, rule in enumerate(supervisor.rules)
            if not any(line.startswith(f"{rule}:") for line in unused)
        }
    assert needed == set(range(len(EXAMPLES[name])))


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in EXAMPLES.items() for fault in faults]
)
def test_without_a_supervisor_every_fault_stops_the_run(desk: Desk, name: str, fault: str) -> None:
    result = desk.run(name, fault=fault)
    assert result.status == "failed"
    assert result.interventions == ()
    assert desk.lines("notifications.txt") == []


def table(page: str) -> dict[str, tuple[list[str], str]]:
    """The faults of a how-to page: what may be answered, and what the file answers."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    return {
        fault: ([part.strip() for part in allowed.split(",")], answer.strip())
        for fault, _, allowed, answer in rows
    }


WORDS = {
    "retry": "retry",
    "substitute": "repair",
    "skip": "skip",
    "fail": "stop",
    "end_stream": "end the stream",
}


@pytest.mark.parametrize(
    ("name", "page"), [("poster", "media-with-costs.md"), ("nightly", "nightly-ingest.md")]
)
def test_the_page_says_what_may_be_answered_and_what_is(desk: Desk, name: str, page: str) -> None:
    shown = table(page)
    assert tuple(shown) == EXAMPLES[name]
    for fault, (allowed, answer) in shown.items():
        found = only(desk.run(name, supervise=True, fault=fault))
        offered = [WORDS[action] for action in found.escalation.allowed_actions]
        assert offered == allowed, fault
        asked = found.decision.asked_for or found.decision.verdict
        refused = ", and is refused" if found.decision.asked_for else ""
        assert WORDS[action_of(asked)] + refused == answer, fault


# -- the pages' commands --

NUMBER = re.compile(r"\[(\d+(?:\.\d+)*)/\d+ ")
"""`[2/5 ` before an item's label."""


@pytest.mark.slow
@pytest.mark.parametrize("page", ["media-with-costs.md", "nightly-ingest.md"])
def test_the_commands_of_a_page_do_what_it_shows(desk: Desk, page: str) -> None:
    """Each command runs; the lines below it are among what it prints, `…` being anything.

    How many items there are may not be known yet where one of them fails.
    """
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    ran = 0
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for command, shown in commands(block):
            printed = NUMBER.sub(r"[\1 ", shell(desk, command))
            ran += 1
            for line in shown:
                parts = NUMBER.sub(r"[\1 ", line.strip()).split("…")
                pattern = ".*".join(re.escape(part) for part in parts)
                at = re.search(rf"^\s*{pattern}\s*$", printed, re.MULTILINE)
                assert at is not None, f"{command}\nshould print\n{line}\nnot\n{printed}"
                printed = printed[at.end() :]
    assert ran >= 5


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        yield command, [line for line in shown.splitlines() if line.strip()]


def shell(desk: Desk, command: str) -> str:
    """What a command prints, both streams in order."""
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=desk.folder,
        env={**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return done.stdout.decode()


# -- B: poster --


def test_poster_completes_without_anyone_being_asked(desk: Desk) -> None:
    result = desk.run("poster", supervise=True)
    assert (result.status, result.supervised, result.headline) == ("completed", False, "completed")
    assert result.interventions == ()
    assert result.outputs == {"notify": "published as no. 1: a lighthouse over quiet water"}
    assert desk.lines("notifications.txt") == [result.outputs["notify"]]


def test_poster_books_what_each_step_costs(desk: Desk) -> None:
    costs = desk.run("poster").costs
    assert costs["nodes_micro_usd"] == {"image": 80_000, "upscale": 20_000}
    assert costs["total_micro_usd"] == 100_000
    assert costs["supervisor_micro_usd"] == 0


def test_poster_makes_pictures_that_are_pictures(desk: Desk) -> None:
    result = desk.run("poster")
    sizes = {"draft-1.png": (48, 64), "draft-2.png": (48, 64), "poster.png": (192, 256)}
    for name, (width, height) in sizes.items():
        parts = png_parts(desk.asset(result, name))
        assert struct.unpack(">IIBBBBB", parts["IHDR"]) == (width, height, 8, 2, 0, 0, 0)
        pixels = zlib.decompress(parts["IDAT"])
        assert len(pixels) == height * (1 + 3 * width)
        assert len(set(pixels)) > 20, "more than a blank sheet"
        assert parts["IEND"] == b""


def png_parts(data: bytes) -> dict[str, bytes]:
    """The parts of a PNG file, their checksums checked."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    found, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        found[kind.decode()] = body
        at += 12 + length
    return found


def test_poster_paints_equal_prompts_equally_and_others_otherwise(desk: Desk) -> None:
    first, again = desk.run("poster"), desk.run("poster")
    other = desk.run("poster", prompt="a fox in the snow")
    for name in ("draft-1.png", "draft-2.png", "poster.png"):
        assert desk.asset(first, name) == desk.asset(again, name)
        assert desk.asset(first, name) != desk.asset(other, name)
    assert desk.asset(first, "draft-1.png") != desk.asset(first, "draft-2.png")


@pytest.mark.parametrize("prompt", ["x", "ein Fuchs im Schnee", "蒸気機関車", "a" * 500])
def test_poster_lets_any_prompt_through_the_gate(desk: Desk, prompt: str) -> None:
    assert desk.run("poster", prompt=prompt).status == "completed"


def test_poster_posts_the_picture_it_made(desk: Desk) -> None:
    result = desk.run("poster")
    (post,) = desk.posts()
    digest = hashlib.sha256(desk.asset(result, "poster.png")).hexdigest()
    assert post["key"] == post["sha256"] == digest
    assert (post["picture"], post["caption"]) == ("poster.png", "a lighthouse over quiet water")


def test_poster_posts_the_same_picture_once_in_two_runs(desk: Desk) -> None:
    first, again = desk.run("poster"), desk.run("poster")
    assert len(desk.posts()) == 1
    assert first.outputs == again.outputs


def test_poster_refuses_an_empty_prompt_before_it_spends(desk: Desk) -> None:
    result = desk.run("poster", prompt=" ")
    assert result.status == "failed"
    assert "the prompt is empty" in result.reason
    assert result.costs["total_micro_usd"] == 0


def test_poster_refuses_a_fault_it_does_not_know_before_it_spends(desk: Desk) -> None:
    result = desk.run("poster", fault="gates")
    assert result.status == "failed"
    assert "'gate'" in result.reason
    assert result.costs["total_micro_usd"] == 0


def test_poster_busy_is_retried_as_nothing_was_spent(desk: Desk) -> None:
    result = desk.run("poster", supervise=True, fault="busy")
    allowed = ["retry", "skip", "fail"]
    assert told(result) == ("image", allowed, "retry", "agent", "retried_succeeded")
    assert result.status == "completed"
    assert result.supervised
    assert counts(result, "image")["retries_run"] == 1
    assert result.costs["nodes_micro_usd"] == {"image": 80_000, "upscale": 20_000}


def test_poster_gate_is_repaired_in_place(desk: Desk) -> None:
    result = desk.run("poster", supervise=True, fault="gate")
    allowed = ["retry", "substitute", "skip", "fail"]
    assert told(result) == ("gate", allowed, "substitute", "agent", "repair_accepted")
    assert result.headline == "completed (supervised): 1 decision, 1 repaired"
    found = only(result).escalation
    assert found.candidate_output == {"take": 1, "why": "what the image service ranks first"}
    assert found.signature == "node:assert"
    assert counts(result, "gate")["repaired"] == 1


def test_poster_gate_sends_the_other_take_on_and_pays_nothing_twice(desk: Desk) -> None:
    repaired = desk.run("poster", supervise=True, fault="gate")
    assert repaired.costs["nodes_micro_usd"] == {"image": 80_000, "upscale": 20_000}
    assert counts(repaired, "image")["started"] == 1
    clean = desk.run("poster")
    assert desk.asset(repaired, "draft-1.png") != desk.asset(clean, "draft-1.png")
    assert desk.asset(repaired, "draft-2.png") == desk.asset(clean, "draft-2.png")
    assert desk.asset(repaired, "poster.png") != desk.asset(clean, "poster.png")


def test_poster_after_spend_is_not_run_again_whatever_is_asked_for(desk: Desk) -> None:
    result = desk.run("poster", supervise=True, fault="after_spend")
    assert told(result) == ("upscale", ["skip", "fail"], "fail", "kernel", "stopped")
    assert result.status == "failed"
    found = only(result)
    assert found.decision.asked_for == Retry()
    assert found.escalation.retry_safe
    assert found.escalation.retry_refused == "the attempt spent money"
    assert found.escalation.cost_micro_usd == 20_000
    assert result.costs["nodes_micro_usd"] == {"image": 80_000, "upscale": 20_000}
    assert desk.posts() == []


def test_poster_after_spend_may_be_skipped_and_the_charge_stays(desk: Desk) -> None:
    result = desk.run("poster", supervise=always(Skip()), fault="after_spend")
    assert told(result) == ("upscale", ["skip", "fail"], "skip", "agent", "skipped")
    assert result.status == "completed"
    assert "no output from notify: upscale was skipped" in result.headline
    assert result.outputs["notify"]["absent"] == "lost"
    assert result.costs["total_micro_usd"] == 100_000
    assert desk.posts() == []


def test_poster_lost_answer_is_sent_again_under_its_key_and_arrives_once(desk: Desk) -> None:
    result = desk.run("poster", supervise=True, fault="publish_lost_answer")
    allowed = ["retry", "skip", "fail"]
    assert told(result) == ("publish", allowed, "retry", "agent", "retried_succeeded")
    assert result.status == "completed"
    assert counts(result, "publish")["retries_run"] == 1
    assert len(desk.posts()) == 1
    assert len(desk.lines("notifications.txt")) == 1


def test_poster_notify_down_is_skipped_and_the_post_stays(desk: Desk) -> None:
    result = desk.run("poster", supervise=True, fault="notify_down")
    assert told(result) == ("notify", ["skip", "fail"], "skip", "agent", "skipped")
    assert "notify skipped: the poster is out" in result.headline
    assert len(desk.posts()) == 1
    assert desk.lines("notifications.txt") == []


# -- C: nightly --


def test_nightly_completes_without_anyone_being_asked(desk: Desk) -> None:
    result = desk.run("nightly", supervise=True)
    assert (result.status, result.supervised) == ("completed", False)
    assert result.headline == "completed: 5/5 items"
    assert result.outputs == {"notify": "nightly: 5 documents, 20 chunks, 20 new"}
    assert desk.lines("notifications.txt") == [result.outputs["notify"]]
    assert result.costs["total_micro_usd"] == 0


def test_nightly_stores_every_word_of_every_document_in_order(desk: Desk) -> None:
    desk.run("nightly")
    documents: dict[str, list[str]] = {}
    for document, position, text, _ in desk.stored():
        parts = documents.setdefault(document, [])
        assert position == len(parts)
        assert 0 < len(text) <= 320
        parts.append(text)
    names = sorted(str(p.relative_to(desk.folder)) for p in desk.folder.glob("examples/docs/*"))
    assert list(documents) == names
    for name, parts in documents.items():
        whole = (desk.folder / name).read_text(encoding="utf-8")
        assert " ".join(parts).split() == whole.split()


def test_nightly_stores_vectors_of_length_one(desk: Desk) -> None:
    desk.run("nightly")
    vectors = [array("f", blob) for _, _, _, blob in desk.stored()]
    assert {len(vector) for vector in vectors} == {512}
    for vector in vectors:
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)


def test_nightly_run_again_stores_nothing_new(desk: Desk) -> None:
    desk.run("nightly")
    before = desk.stored()
    result = desk.run("nightly")
    assert result.outputs == {"notify": "nightly: 5 documents, 20 chunks, 0 new"}
    assert desk.stored() == before


def test_nightly_stores_what_changed(desk: Desk) -> None:
    desk.run("nightly")
    bees = desk.folder / "examples" / "docs" / "bees.txt"
    text = bees.read_text(encoding="utf-8")
    bees.write_text(f"{text}\nA wasp has no such manners.\n", encoding="utf-8")
    result = desk.run("nightly")
    assert result.outputs == {"notify": "nightly: 5 documents, 21 chunks, 1 new"}
    assert len(desk.stored()) == 21
    assert "A wasp has no such manners." in ask(desk, "which manners has a wasp")[0]


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("why is high water later every day", "tides.txt"),
        ("how do bees keep warm in winter", "bees.txt"),
        ("how far is the light of a lamp seen", "lighthouse.txt"),
        ("what does rye bread need", "bread.txt"),
        ("on which draught does a ship enter", "harbour.txt"),
    ],
)
def test_nightly_answers_questions(desk: Desk, question: str, document: str) -> None:
    desk.run("nightly")
    lines = ask(desk, question)
    assert len(lines) == 3
    similarities = [float(line.split()[0]) for line in lines]
    assert similarities == sorted(similarities, reverse=True)
    assert lines[0].split()[1] == f"examples/docs/{document}"


def test_nightly_finds_a_piece_by_its_own_words(desk: Desk) -> None:
    desk.run("nightly")
    document, _, text, _ = desk.stored()[7]
    assert ask(desk, text)[0] == f"1.000  {document}  {text}"


def test_nightly_asked_before_its_first_run_says_what_to_do(desk: Desk) -> None:
    code, _, err = script(desk, "nightly.db", "what")
    assert (code, err) == (1, "nightly.db: there is no such store; run nightly.yaml first\n")
    assert not (desk.folder / "nightly.db").exists()
    assert script(desk)[0] == 2


def ask(desk: Desk, question: str) -> list[str]:
    code, out, err = script(desk, "nightly.db", question)
    assert (code, err) == (0, "")
    return out.splitlines()


def script(desk: Desk, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "examples/nightly_nodes.py", *arguments],
        cwd=desk.folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_nightly_sends_pieces_on_before_the_last_is_cut(desk: Desk) -> None:
    """With room for two pieces, cutting has to wait until the first ones are stored."""
    session = desk.session("nightly", {"documents": "examples/docs/bees.txt"}, window=2)
    seen: list[str] = []
    session.subscribe(
        lambda e: seen.append(f"{e.__struct_config__.tag} {getattr(e, 'node_id', '')}")
    )
    assert run_session(session).status == "completed"
    assert seen.index("invocation_succeeded stored") < seen.index("stream_closed chunk")


def test_nightly_broken_stream_keeps_what_it_had(desk: Desk) -> None:
    result = desk.run("nightly", supervise=True, fault="chunker_breaks")
    allowed = ["end_stream", "fail"]
    assert told(result) == ("chunk", allowed, "end_stream", "agent", "ended_early")
    assert result.status == "completed"
    assert only(result).outcome.kept == 2
    assert "chunk ended early: kept 18 of unknown" in result.headline
    kept = [position for document, position, _, _ in desk.stored() if "bread" in document]
    assert kept == [0, 1]
    assert len(desk.stored()) == 18
    assert result.outputs == {"notify": "nightly: 5 documents, 18 chunks, 18 new"}


def test_nightly_poisoned_document_is_skipped_and_named(desk: Desk) -> None:
    result = desk.run("nightly", supervise=True, fault="poisoned")
    allowed = ["retry", "skip", "fail"]
    assert told(result) == ("chunk", allowed, "skip", "agent", "skipped")
    assert result.headline.startswith("completed (supervised): 4/5 items, 1 skipped")
    documents = {Path(document).name for document, _, _, _ in desk.stored()}
    assert documents == {"bees.txt", "bread.txt", "lighthouse.txt", "tides.txt"}
    (missing,) = result.ledger["roots"][0]["missing"]
    assert (missing["item"], missing["node"]) == ("3", "chunk")
    assert missing["reason"] == "no text in it to search for"
    (line,) = desk.lines("notifications.txt")
    assert line.startswith("nightly: 4 documents, 16 chunks, 16 new; missing harbour.txt (chunk")


def test_nightly_documents_that_are_no_text_are_asked_about_once(desk: Desk) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (desk.folder / "examples" / "docs" / name).write_bytes(b"PK\x03\x04 no text\n")
    result = desk.run("nightly", supervise=True)
    assert [str(i.decision.decided_by) for i in result.interventions if i.decision] == [
        *("agent", "sticky", "sticky")
    ]
    assert result.headline.startswith("completed (supervised): 5/8 items, 3 skipped")
    assert len(desk.stored()) == 20


def test_nightly_a_night_with_every_document_lost_says_so(desk: Desk) -> None:
    for path in (desk.folder / "examples" / "docs").iterdir():
        path.write_bytes(b"\x01")
    result = desk.run("nightly", supervise=True)
    assert result.headline.startswith("completed (supervised): 0/5 items, 5 skipped")
    assert result.outputs["notify"].startswith("nightly: 0 documents, 0 chunks, 0 new; missing ")


def test_nightly_write_with_a_lost_answer_is_not_done_again(desk: Desk) -> None:
    result = desk.run("nightly", supervise=True, fault="upsert_lost_answer")
    assert told(result) == ("stored", ["skip", "fail"], "fail", "kernel", "stopped")
    assert result.status == "failed"
    found = only(result)
    assert found.decision.asked_for == Retry()
    assert not found.escalation.retry_safe
    stored = counts(result, "stored")
    assert stored["failed"] == 1
    assert stored["retries_run"] == 0
    assert len(desk.stored()) == stored["succeeded"] + 1, "the failed one is in the store"
    assert desk.lines("notifications.txt") == []


def test_nightly_the_next_night_puts_an_interrupted_one_right(desk: Desk) -> None:
    desk.run("nightly", supervise=always(Fail()), fault="upsert_lost_answer")
    before = len(desk.stored())
    result = desk.run("nightly")
    assert result.outputs == {"notify": f"nightly: 5 documents, 20 chunks, {20 - before} new"}
    assert len(desk.stored()) == 20


def test_nightly_a_skipped_write_counts_as_lost_though_it_may_be_there(desk: Desk) -> None:
    result = desk.run("nightly", supervise=always(Skip()), fault="upsert_lost_answer")
    assert result.status == "completed"
    assert "19/20 items of chunk, 1 skipped" in result.headline
    assert result.outputs == {"notify": "nightly: 5 documents, 19 chunks, 19 new"}
    assert len(desk.stored()) == 20


def test_nightly_finds_no_document_and_fails(desk: Desk) -> None:
    result = desk.run("nightly", documents="nowhere/*.txt")
    assert result.status == "failed"
    assert "no file matches nowhere/*.txt" in result.reason


# -- the command line --


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "code", "headline"),
    [
        ("poster", "none", 0, "completed"),
        ("poster", "gate", 0, "completed (supervised): 1 decision, 1 repaired"),
        ("poster", "after_spend", 1, "failed: stopped: retry was refused"),
        ("poster", "publish_lost_answer", 0, "completed (supervised): 1 decision"),
        ("nightly", "none", 0, "completed: 5/5 items"),
        (
            "nightly",
            "chunker_breaks",
            0,
            "completed (supervised): 5/5 items, chunk ended early: kept 18 of unknown",
        ),
        ("nightly", "poisoned", 0, "completed (supervised): 4/5 items, 1 skipped"),
        ("nightly", "upsert_lost_answer", 1, "failed: stopped: retry was refused"),
    ],
)
def test_the_command_line_tells_the_same(
    desk: Desk, name: str, fault: str, code: int, headline: str
) -> None:
    arguments = ("run", f"examples/{name}.yaml", "--trust", "--input", f"fault={fault}", "--json")
    answers = f"scripted:examples/{name}.answers.yaml"
    returned, out, err = desk.command(*arguments, "--supervise", answers)
    assert returned == code, err
    found = json.loads(out)
    assert found["headline"].startswith(headline)
    assert found["supervised"] == (fault != "none")
    assert ("⛨" in err) == (fault != "none")
    library = desk_in(desk.folder / "again")
    result = library.run(name, supervise=True, fault=fault)
    assert found["status"] == result.status
    assert found["costs"] == result.costs
    assert [verdict_of(i) for i in found["interventions"]] == [
        str(action_of(i.decision.verdict)) for i in result.interventions if i.decision
    ]
    if name == "poster":
        assert desk.posts() == library.posts()
    elif code == 0:
        assert desk.stored() == library.stored()


def verdict_of(intervention: Mapping[str, Any]) -> str:
    return str(intervention["decision"]["verdict"]["action"])
