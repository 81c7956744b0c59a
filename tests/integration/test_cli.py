"""The command line as a subprocess, in a pipe and on a terminal (surfaces.md; issue 2)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from commands import nightwarden, on_terminal, started
from kept import events_of

from nightwarden.store import open_store

STEPS = '''
"""Steps for tests of the command line."""

import asyncio
import sys
import time

from nightwarden import Collect, Context, NodeError, RecoverableError, node


@node(type="t.Price", retry_safe=True, label="{name}")
def price(name: str, ctx: Context) -> float:
    if name == "tagless":
        raise RecoverableError("no price on the tag", candidate_output="?", code="no-tag")
    if name.startswith("gone"):
        raise NodeError(f"{name} is gone", code="gone")
    if name == "odd":
        ctx.log.warning("an odd name")
    return float(len(name))


@node(type="t.Total")
def total(prices: Collect[float]) -> float:
    return sum(prices)


@node(type="t.Secret")
def secret(ctx: Context) -> dict[str, str]:
    return {"url": "https://x.test/?key=" + ctx.secret("PARTNER_KEY")}


@node(type="t.Wait")
async def wait(ctx: Context) -> int:
    """Goes on for ever, and ends at once when it is cancelled."""
    print("begun", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)
    return 1


@node(type="t.Deaf")
async def deaf(ctx: Context) -> int:
    """Does not heed its cancellation."""
    print("begun", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@node(type="t.Hog")
async def hog(ctx: Context) -> int:
    """Holds up the event loop."""
    print("begun", file=sys.stderr, flush=True)
    time.sleep(3600)
    return 1


@node(type="t.Pause")
def pause(ctx: Context) -> int:
    ctx.suspend("until the morning")


@node(type="t.Speak")
def speak() -> str:
    return "\\x1b[2Jboo\\nbaa"


@node(type="t.Chatter", retry_safe=True)
def chatter(n: int, ctx: Context) -> str:
    ctx.log.info("x" * 200)
    return "y" * 200
'''
SHOP = """
    name: shop
    inputs: {names: {type: "list[str]"}}
    nodes:
      price:
        type: t.Price
        name: $inputs.names[*]
      total:
        type: t.Total
        prices: $price[]
    """
ANSWERS = """
    - when: {node: price, signature: "node:no-tag"}
      answer: {action: repair, reason: the tag is known, outputs: {output: 5.0}}
    - when: {node: price, signature: "node:gone"}
      answer: {action: skip, apply_to: signature, reason: gone for good}
    """
NAMES = "a\ntagless\nccc\ngone-1\ngone-2\n"
HELPED = "completed (supervised): 3/5 items, 2 skipped, 2 decisions, 1 repaired"
RUN = ("run", "shop.yaml", "--nodes", "steps.py", "--input", "names=@names.txt")
SCRIPTED = ("--supervise", "scripted:answers.yaml")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the shop and its steps."""
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(dedent(SHOP), encoding="utf-8")
    (tmp_path / "answers.yaml").write_text(dedent(ANSWERS), encoding="utf-8")
    (tmp_path / "names.txt").write_text(NAMES, encoding="utf-8")
    return tmp_path


def one_step(place: Path, type_name: str) -> tuple[str, ...]:
    """The arguments to run a workflow of this one step."""
    (place / "one.yaml").write_text(f"name: one\nnodes:\n  step:\n    type: {type_name}\n")
    return ("run", "one.yaml", "--nodes", "steps.py")


def record_of(place: Path) -> list[dict[str, object]]:
    """The events of the only run recorded here."""
    with open_store(place / ".nightwarden") as store:
        (run_id,) = store.run_ids()
    return events_of(place / ".nightwarden", run_id)


# -- a run --


def test_a_supervised_run_in_a_pipe_tells_all_of_it(place: Path) -> None:
    """supervision.md §7: ⛨ lines go to stderr, the closing line is the ledger's headline."""
    done = nightwarden(*RUN, *SCRIPTED, cwd=place)
    assert done.code == 0
    shields = [line for line in done.lines if line.startswith("⛨")]
    assert sum("price [2/5 tagless] no price on the tag → repair" in line for line in shields) == 1
    assert len(shields) == 3
    assert "   price 5/5, 1 repaired, 2 skipped" in done.lines
    assert "   total 1/1" in done.lines
    lines = done.out.splitlines()
    assert lines[0] == f"── {HELPED}"
    assert "   missing   4, 5" in lines
    assert "   total     9.0" in lines
    (record,) = [line.split()[1] for line in lines if line.startswith("   record ")]
    assert (place / record).is_file()
    assert "\x1b" not in done.out + done.err


def test_json_is_the_result_and_people_read_stderr(place: Path) -> None:
    done = nightwarden(*RUN, *SCRIPTED, "--json", cwd=place)
    result = json.loads(done.out)
    assert done.code == 0
    assert (result["version"], result["status"], result["supervised"]) == (1, "completed", True)
    assert result["outputs"] == {"total": 9.0}
    assert len(result["interventions"]) == 3
    assert result["headline"] == HELPED
    assert f"── {HELPED}" in done.lines


def test_quiet_prints_nothing_but_errors(place: Path) -> None:
    done = nightwarden(*RUN, *SCRIPTED, "--quiet", cwd=place)
    assert (done.code, done.out, done.err) == (0, "", "")
    failed = nightwarden(*RUN, "--quiet", cwd=place)
    assert (failed.code, failed.out, len(failed.lines)) == (1, "", 1)
    assert failed.err.startswith("failed: price [")


def test_strict_exit_tells_a_supervised_completion_from_a_clean_one(place: Path) -> None:
    assert nightwarden(*RUN, *SCRIPTED, "--strict-exit", "-q", cwd=place).code == 4
    (place / "names.txt").write_text("a\nb\n")
    assert nightwarden(*RUN, *SCRIPTED, "--strict-exit", "-q", cwd=place).code == 0


def test_a_failure_without_a_supervisor_stops_the_run(place: Path) -> None:
    done = nightwarden(*RUN, cwd=place)
    assert done.code == 1
    assert done.out.startswith("── failed: price [")
    assert "⛨" not in done.err


def test_keep_going_names_every_failure(place: Path) -> None:
    done = nightwarden(*RUN, "--keep-going", cwd=place)
    assert done.code == 1
    assert "2/5 items, 3 failed" in done.out
    assert "   missing   2, 4, 5" in done.out.splitlines()


def test_a_suspended_run_exits_with_3(place: Path) -> None:
    done = nightwarden(*one_step(place, "t.Pause"), cwd=place)
    assert (done.code, done.out.splitlines()[0]) == (3, "── suspended: step: until the morning")


def test_a_clean_supervised_run_prints_what_an_unsupervised_one_prints(place: Path) -> None:
    """supervision.md §7."""
    (place / "names.txt").write_text("a\nodd\n")
    plain = nightwarden(*RUN, "--run-id", "same", cwd=place)
    (place / ".nightwarden").rename(place / "moved")
    helped = nightwarden(*RUN, *SCRIPTED, "--run-id", "same", cwd=place)
    assert (plain.code, plain.out) == (helped.code, helped.out)
    assert sorted(plain.lines) == sorted(helped.lines)
    assert "price [2] warning: an odd name" in plain.lines


def test_rules_that_were_never_needed_are_named_after_a_supervised_run(place: Path) -> None:
    (place / "names.txt").write_text("a\ntagless\n")
    done = nightwarden(*RUN, *SCRIPTED, cwd=place)
    assert "scripted:answers.yaml: line 4 (node price, signature node:gone): never needed" in (
        done.err
    )


def test_a_resumed_run_does_not_call_rules_unneeded_that_were_needed_before(place: Path) -> None:
    (place / "names.txt").write_text("tagless\ngone\n")
    answers = place / "answers.yaml"
    answers.write_text("- {when: {item: 1}, answer: skip}\n", encoding="utf-8")
    first = nightwarden(*RUN, "--supervise", "scripted:answers.yaml", cwd=place)
    assert first.code == 1
    with answers.open("a", encoding="utf-8") as file:
        file.write("- {when: {item: 2}, answer: skip}\n")
    done = nightwarden("resume", "last", "--nodes", "steps.py", cwd=place)
    assert done.code == 0
    assert "never needed" not in done.err


def test_secrets_are_masked_in_everything_that_is_printed(place: Path) -> None:
    """supervision.md §4; case H06."""
    env = {"PARTNER_KEY": "zk-live/7Qm2+Zt9aB"}
    done = nightwarden(*one_step(place, "t.Secret"), "--json", cwd=place, env=env)
    printed = done.out + done.err + json.dumps(record_of(place))
    assert "https://x.test/?key=••••(PARTNER_KEY)" in done.out
    assert "7Qm2" not in printed


def test_what_a_step_puts_out_cannot_move_the_cursor(place: Path) -> None:
    done = nightwarden(*one_step(place, "t.Speak"), cwd=place)
    assert "   step      \\x1b[2Jboo\\nbaa" in done.out.splitlines()


def test_sticky_lines_beyond_a_few_are_counted(place: Path) -> None:
    (place / "names.txt").write_text("\n".join(f"gone-{n}" for n in range(30)))
    done = nightwarden(*RUN, *SCRIPTED, cwd=place)
    assert sum(line.startswith("⛨") for line in done.lines) == 6
    assert "   price, ⛨ node:gone: 24 more like it, in the report" in done.lines


def test_settings_are_read_from_file_and_environment(place: Path) -> None:
    """surfaces.md: flag → environment → file → default."""
    settings = 'store.url = "kept"\n[supervisor]\nmode = "scripted:answers.yaml"\n'
    (place / "nightwarden.toml").write_text(settings)
    assert nightwarden(*RUN, "-q", cwd=place).code == 0
    assert len(events_of(place / "kept")) > 1
    assert nightwarden(*RUN, "-q", "--supervise", "off", cwd=place).code == 1
    off = {"NIGHTWARDEN_SUPERVISOR_MODE": "off", "NIGHTWARDEN_STORE_URL": "else"}
    assert nightwarden(*RUN, "-q", cwd=place, env=off).code == 1
    assert len(events_of(place / "else")) > 1
    assert nightwarden(*RUN, "-q", "--max-decisions", "0", cwd=place).code == 1


# -- on a terminal --


def test_bars_are_drawn_on_a_terminal_and_lines_stand_above_them(place: Path) -> None:
    shown = on_terminal(*RUN, *SCRIPTED, cwd=place)
    assert shown.code == 0
    assert any(re.match(r"price +━+ 5/5", line) for line in shown.lines)
    assert any(line.startswith("⛨ price [2/5 tagless]") for line in shown.lines)
    assert f"── {HELPED}" in shown.lines
    assert "\x1b[?25h" in shown.raw  # the cursor is shown again
    assert not any(re.fullmatch(r" {3}price 5/5.*", line) for line in shown.lines)


def test_a_terminal_without_colours_gets_none(place: Path) -> None:
    shown = on_terminal(*RUN, *SCRIPTED, "-q", cwd=place)
    assert (shown.code, shown.text) == (0, "")
    shown = on_terminal("validate", "shop.yaml", cwd=place, env={"NO_COLOR": "1"})
    assert shown.code == 2
    assert "\x1b" not in shown.raw


def test_a_person_at_the_terminal_decides(place: Path) -> None:
    (place / "names.txt").write_text("a\ngone-1\n")
    typed = [("answer> ", "skip\n"), ("[y/N]> ", "n\n"), ("why?> ", "sold out\n")]
    shown = on_terminal(*RUN, "--supervise", "operator", cwd=place, answers=typed)
    assert shown.code == 0
    assert "⛨ price [2/2 gone-1] failed: gone-1 is gone" in shown.lines
    said = "⛨ price [2/2 gone-1] gone → skip (sold out) · by operator"
    assert said in shown.lines
    assert "── completed (supervised): 1/2 items, 1 skipped, 1 decision" in shown.lines


def test_ctrl_c_typed_at_a_question_cancels_the_run(place: Path) -> None:
    (place / "names.txt").write_text("gone-1\n")
    shown = on_terminal(*RUN, "--supervise", "operator", cwd=place, answers=[("answer> ", "\x03")])
    assert shown.code == 130
    assert "── cancelled: Ctrl-C, 0/1 items" in shown.text
    assert "no longer asked" in shown.text


# -- interrupted --


def test_ctrl_c_once_stops_cleanly(place: Path) -> None:
    with started(*one_step(place, "t.Wait"), cwd=place) as run:
        run.wait_for("begun")
        run.send(signal.SIGINT)
        done = run.end()
    assert done.code == 130
    assert done.lines == ["Ctrl-C: stopping… press Ctrl-C again to end at once"]
    assert done.out.splitlines()[0] == "── cancelled: Ctrl-C"
    assert record_of(place)[-1]["type"] == "run_cancelled"


def test_sigterm_is_like_one_ctrl_c_and_so_are_two(place: Path) -> None:
    with started(*one_step(place, "t.Wait"), cwd=place) as run:
        run.wait_for("begun")
        run.send(signal.SIGTERM)
        run.send(signal.SIGTERM)
        done = run.end()
    assert done.code == 130
    assert done.out.splitlines()[0] == "── cancelled: SIGTERM"


def test_ctrl_c_twice_ends_at_once(place: Path) -> None:
    with started(*one_step(place, "t.Deaf"), cwd=place) as run:
        run.wait_for("begun")
        run.send(signal.SIGINT)
        run.wait_for("stopping…")
        run.send(signal.SIGINT)
        done = run.end()
    assert (done.code, done.out, done.err) == (130, "", "")


def test_ctrl_c_twice_ends_a_run_whose_loop_is_held_up(place: Path) -> None:
    with started(*one_step(place, "t.Hog"), cwd=place) as run:
        run.wait_for("begun")
        run.send(signal.SIGINT)
        run.wait_for("stopping…")
        run.send(signal.SIGINT)
        assert run.end().code == 130


# -- streams that are gone --


def test_a_reader_that_goes_away_is_no_error(place: Path) -> None:
    """issue 2: a closed standard output; the exit code stays meaningful."""
    for arguments, code in (((*RUN, *SCRIPTED), 0), (RUN, 1), (("nodes",), 0), (("--help",), 0)):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = nightwarden(*arguments, cwd=place, stdout=writer)
        finally:
            os.close(writer)
        assert done.code == code
        assert "Traceback" not in done.err
        assert "rror" not in done.err


def test_a_process_without_standard_output_runs_all_the_same(place: Path) -> None:
    close = ("sh", "-c", 'exec "$@" >&-', "sh")
    done = nightwarden(*RUN, *SCRIPTED, cwd=place, before=close)
    assert done.code == 0
    assert "Traceback" not in done.err
    both = ("sh", "-c", 'exec "$@" >&- 2>&-', "sh")
    assert nightwarden(*RUN, cwd=place, before=both).code == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_standard_output_on_a_full_disk_is_one_clear_line(place: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = nightwarden(*RUN, *SCRIPTED, "--json", cwd=place, stdout=full)
    assert done.code == 1
    assert done.lines[-1] == (
        "nightwarden: standard output cannot be written: No space left on device"
    )
    assert "Traceback" not in done.err


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("bytes_left", [150_000, 200_000])
def test_a_record_that_cannot_be_written_ends_the_run_with_one_line(
    place: Path, bytes_left: int
) -> None:
    """issue 2: a full disk, nothing half-written; here files may not grow any further."""
    (place / "chat.yaml").write_text(
        'name: chat\ninputs: {ns: {type: "list[int]"}}\n'
        "nodes:\n  chat:\n    type: t.Chatter\n    n: $inputs.ns[*]\n"
    )
    given = ("--input", f"ns={list(range(400))}", "--nodes", "steps.py")
    limited = (sys.executable, "-c", LIMITED, str(bytes_left))
    done = nightwarden("run", "chat.yaml", *given, cwd=place, before=limited)
    assert done.code == 1
    assert [line for line in done.lines if line.startswith("nightwarden: ")] == [
        line for line in done.lines if "the run was ended without its record" in line
    ]
    assert "free space or name another place with --store" in done.err
    assert "Traceback" not in done.err
    # What was written can be read, and says that it has no end.
    told = nightwarden("report", "last", cwd=place)
    assert (told.code, told.err) == (0, "")
    assert "interrupted" in told.out


def test_an_output_that_cannot_be_written_leaves_the_old_one(place: Path) -> None:
    """issue 2: outputs go to a temporary name first."""
    (place / "write.yaml").write_text(
        "name: write\ninputs: {text: str}\nnodes:\n  out:\n    type: file.WriteText\n"
        "    text: $inputs.text\n    path: out.txt\n"
    )
    (place / "out.txt").write_text("as it was")
    limited = (sys.executable, "-c", LIMITED, "60000")
    given = ("--input", "text=@big.txt")
    (place / "big.txt").write_text("x" * 50_000)
    (place / "store").mkdir()
    done = nightwarden("run", "write.yaml", *given, cwd=place)
    assert (done.code, (place / "out.txt").read_text()) == (0, "x" * 50_000)
    (place / "out.txt").write_text("as it was")
    (place / "big.txt").write_text("é" * 40_000)
    done = nightwarden("run", "write.yaml", *given, cwd=place, before=limited)
    assert done.code == 1
    assert (place / "out.txt").read_text() == "as it was"
    assert list(place.glob(".out.txt*")) == []


# -- the other commands --


def test_help_starts_fast_enough_and_names_every_command(place: Path) -> None:
    """performance.md G11; measured in benchmarks, here only that the engine is not loaded."""
    code = (
        "import sys; from nightwarden.cli.main import main; main(['--help']); "
        "print(sorted(m for m in sys.modules if m in ('asyncio', 'pydantic', 'rich', 'msgspec')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=place
    )
    for command in (
        "new",
        "run",
        "debug",
        "validate",
        "graph",
        "nodes",
        "report",
        "runs",
        "show",
        "replay",
        "resume",
        "events",
        "verify",
        "cancel",
        "message",
        "costs",
        "demo",
    ):
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)
    loaded = done.stdout.splitlines()[-1]
    assert "pydantic" not in loaded
    assert "asyncio" not in loaded


def test_every_command_has_help(place: Path) -> None:
    for command in (
        "new",
        "run",
        "debug",
        "validate",
        "graph",
        "nodes",
        "report",
        "runs",
        "show",
        "replay",
        "resume",
        "events",
        "verify",
        "cancel",
        "message",
        "costs",
        "demo",
    ):
        done = nightwarden(command, "--help", cwd=place)
        assert done.code == 0
        assert done.out.startswith(f"Usage: nightwarden {command} ")


def test_the_version_is_the_packages(place: Path) -> None:
    import nightwarden as nw

    assert nightwarden("--version", cwd=place).out == f"nightwarden {nw.__version__}\n"


def test_validate_tells_all_problems_at_once_and_runs_nothing(place: Path) -> None:
    done = nightwarden("validate", "shop.yaml", "--nodes", "steps.py", cwd=place)
    assert (done.code, done.out) == (0, "shop.yaml: shop can run, 2 steps\n")
    done = nightwarden("validate", "shop.yaml", "--json", cwd=place)
    found = json.loads(done.out)
    assert (done.code, found["version"], found["valid"]) == (2, 1, False)
    assert [(p["line"], p["node"], p["rule"]) for p in found["problems"]] == [
        (5, "price", "unknown-type"),
        (8, "total", "unknown-type"),
    ]
    assert not (place / ".nightwarden").exists()


def test_graph_is_text_or_a_picture(place: Path) -> None:
    done = nightwarden("graph", "shop.yaml", "--nodes", "steps.py", cwd=place)
    assert done.code == 0
    assert "┌ for each item of inputs.names[*]" in done.out
    done = nightwarden("graph", "shop.yaml", "--nodes", "steps.py", "--svg", "shop.svg", cwd=place)
    assert (done.code, done.out) == (0, "wrote shop.svg\n")
    assert (place / "shop.svg").read_text().startswith("<svg")
    assert list(place.glob(".shop*")) == []


def test_nodes_documents_every_type_from_its_signature(place: Path) -> None:
    listed = nightwarden("nodes", "--json", "--nodes", "steps.py", cwd=place)
    types = {node["type"]: node for node in json.loads(listed.out)["nodes"]}
    assert {"http.Fetch", "file.WriteCsv", "flow.ForEach", "t.Price"} <= types.keys()
    assert all(node["doc"] for name, node in types.items() if not name.startswith("t."))
    assert types["http.Fetch"]["retry_safe"] is True
    shown = nightwarden("nodes", "http.Fetch", cwd=place)
    assert shown.out.startswith("http.Fetch\n")
    assert re.search(r"^    attempts +int +default 4$", shown.out, re.MULTILINE)
    assert "safe to retry" in shown.out


def test_report_names_what_is_missing_and_show_tells_the_story(place: Path) -> None:
    nightwarden(*RUN, *SCRIPTED, "--run-id", "nightly-1", cwd=place)
    told = nightwarden("report", "nightly", cwd=place)
    assert told.code == 0
    assert "given up at price: gone for good" in told.out
    assert re.search(r"^ +4  gone-1  \(e\d, by (agent|sticky)\)$", told.out, re.MULTILINE)
    form = json.loads(nightwarden("report", "last", "--json", cwd=place).out)
    assert [item["label"] for item in form["missing"]] == ["gone-1", "gone-2"]
    listed = nightwarden("runs", cwd=place)
    assert re.fullmatch(
        rf"nightly-1  shop  20\d\d-\d\d-\d\d \d\d:\d\d  \d+  {re.escape(HELPED)}\n", listed.out
    )
    story = nightwarden("show", "last", cwd=place).out.splitlines()
    assert story[0].endswith("run nightly-1 of shop started, supervised: scripted:answers.yaml")
    assert story[-1].endswith(f"── {HELPED}")


def test_a_replay_comes_to_the_same_and_says_so(place: Path) -> None:
    nightwarden(*RUN, *SCRIPTED, "--run-id", "first", cwd=place)
    done = nightwarden("replay", "first", "--nodes", "steps.py", cwd=place)
    assert done.code == 0
    assert "   same as first: status, decisions, items, outputs, counts" in done.out.splitlines()


def test_a_replay_that_differs_says_in_what(place: Path) -> None:
    nightwarden(*RUN, *SCRIPTED, "--run-id", "first", cwd=place)
    steps = (place / "steps.py").read_text().replace('if name == "tagless"', "if False")
    (place / "steps.py").write_text(steps)
    done = nightwarden("replay", "first", "--nodes", "steps.py", "--json", cwd=place)
    found = json.loads(done.out)
    assert (done.code, found["same"]) == (1, False)
    assert "price, repaired: 1 → 0" in found["differences"]
    assert any(
        line.startswith("decision on price [2], attempt 1: substitute")
        for line in found["differences"]
    )


def test_an_unsupervised_run_is_replayed_unsupervised(place: Path) -> None:
    nightwarden(*RUN, "--keep-going", "--run-id", "first", cwd=place)
    done = nightwarden("replay", "first", "--nodes", "steps.py", cwd=place)
    assert done.code == 0
    assert "⛨" not in done.err


def test_the_module_and_the_script_are_the_same(place: Path) -> None:
    script = Path(sys.executable).with_name("nightwarden")
    done = subprocess.run(
        [script, "--version"], capture_output=True, text=True, check=True, cwd=place
    )
    assert done.stdout == nightwarden("--version", cwd=place).out
